//! A home of Claude Code with mock models on both sides, a session that the client made in it,
//! and the binary run in it.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use ctxfold_test_support::{
    ClaudeHome, ClaudeLive, Client, MockAnthropic, MockGemini, Recorded, Turn, poll,
};
use serde_json::{Value, json};

use crate::wire::Wire;

pub(crate) const SESSION: &str = "6f1d2c3b-0000-4000-8000-0000000000aa";
/// A key that must never be seen again.
pub(crate) const KEY: &str = "AIzaPlanted0000000000000000000000000001";
const MINUTE: Duration = Duration::from_mins(1);

/// A run of the binary.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// The same run, which ended well.
    #[track_caller]
    pub(crate) fn done(self) -> Ran {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }

    /// Its standard output as JSON.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        let done = self.done();
        serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}: {}", done.stdout))
    }
}

pub(crate) struct Lab {
    pub(crate) mock: MockAnthropic,
    pub(crate) gemini: MockGemini,
    pub(crate) home: ClaudeHome,
}

/// A command whose output has the mark and about 7 KB.
fn noisy(mark: &str) -> Value {
    json!({"command": format!("seq 1 900; echo {mark}-$((40+2)); seq 901 1800"), "description": mark})
}

impl Lab {
    /// A home without a session, with the models' scripts.
    pub(crate) fn empty(client: &Client) -> Lab {
        let mock = MockAnthropic::start();
        let home = ClaudeHome::new(client, &mock);
        let file = home.project().join("notes.txt");
        fs::write(&file, "a line of the notes\n".repeat(400)).unwrap();
        let read = json!({"file_path": file});
        mock.on(
            "FIRST",
            [
                Turn::text("I look at numbers").and_tool("Bash", noisy("ALONE")),
                Turn::text("first done"),
            ],
        );
        mock.on(
            "SUB-TASK",
            [
                Turn::tool("Bash", noisy("INSIDE")),
                Turn::text("SUB-ANSWER"),
            ],
        );
        mock.on(
            "SECOND",
            [
                Turn::new()
                    .and_thinking("three are quicker")
                    .and_text("three at once")
                    .and_tool("Bash", noisy("PAR-A"))
                    .and_tool("Bash", noisy("PAR-B"))
                    .and_tool("Bash", noisy("PAR-C")),
                Turn::text("second done"),
            ],
        );
        mock.on(
            "THIRD",
            [
                Turn::new()
                    .and_thinking("read it twice")
                    .and_tool("Read", read.clone()),
                Turn::tool(
                    "Write",
                    json!({"file_path": home.project().join("made.txt"), "content": "made\n"}),
                ),
                Turn::text("third done"),
            ],
        );
        mock.on(
            "FOURTH",
            [
                Turn::tool(
                    "Agent",
                    json!({
                        "description": "look", "prompt": "SUB-TASK: look around",
                        "subagent_type": "general-purpose", "run_in_background": false,
                    }),
                ),
                Turn::text("fourth done"),
            ],
        );
        Lab {
            mock,
            gemini: MockGemini::start(),
            home,
        }
    }

    /// A session made by the client: a call, three parallel ones behind thinking, a call beside
    /// thinking, a write, a sub-agent, and three plain turns.
    pub(crate) fn new(client: &Client) -> Lab {
        let lab = Lab::empty(client);
        drop(lab.live_session());
        lab.mock.log().take();
        lab
    }

    /// The same session, its client still running.
    pub(crate) fn live_session(&self) -> ClaudeLive {
        let mut live = self.home.live(&["--session-id", SESSION]);
        for prompt in [
            "FIRST: numbers",
            "SECOND: more numbers",
            "THIRD: never touch the vault",
            "FOURTH: ask",
            "talk one",
            "talk two",
            "talk three",
        ] {
            let result = live.say(prompt);
            assert_eq!(result["is_error"], false, "{result}");
        }
        self.wait_for_text("to: talk three");
        live
    }

    /// Waits until the session holds a text: the client writes the end of a turn a little later.
    pub(crate) fn wait_for_text(&self, text: &str) {
        let seen = poll(MINUTE, || {
            let rows = fs::read_to_string(self.home.session_file(SESSION)?).ok()?;
            rows.contains(text).then_some(())
        });
        assert!(seen.is_some(), "{text} never came");
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.home
            .session_file(SESSION)
            .expect("the session has a file")
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        fs::read(self.file()).unwrap()
    }

    /// The folder of the journal.
    pub(crate) fn state(&self) -> PathBuf {
        self.home.home().join(".local/state/ctxfold")
    }

    pub(crate) fn journal(&self) -> String {
        fs::read_to_string(self.state().join("journal.jsonl")).unwrap_or_default()
    }

    /// Goes on with the session, and returns the one request that it makes. No compaction of the
    /// client's own may come of it.
    #[track_caller]
    pub(crate) fn resume(&self, prompt: &str) -> Recorded {
        self.ask(prompt, &[])
    }

    /// Goes on with the session, whatever requests that makes.
    pub(crate) fn say(&self, prompt: &str) -> Vec<Recorded> {
        self.mock.log().take();
        self.home.prompt(prompt).resume(SESSION).run().success();
        self.mock.log().take()
    }

    /// What the next request would hold, asked in a copy that the client makes of the session.
    #[track_caller]
    pub(crate) fn probe(&self) -> Wire {
        let before = self.bytes();
        let wire = Wire::of(self.ask("PROBE", &["--fork-session"]).messages());
        assert!(self.bytes() == before, "a fork changes its original");
        wire
    }

    #[track_caller]
    fn ask(&self, prompt: &str, arguments: &[&str]) -> Recorded {
        self.mock.log().take();
        let mut run = self.home.prompt(prompt).resume(SESSION);
        for argument in arguments {
            run = run.arg(argument);
        }
        run.run().success();
        assert_eq!(
            self.mock.log().compactions().len(),
            0,
            "the client compacted by itself"
        );
        let requests = self.mock.log().conversations();
        assert_eq!(requests.len(), 1, "one prompt makes one request");
        requests[0].clone()
    }

    /// The binary as a command in this home, with a key of the mock Gemini.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ctxfold"));
        command
            .env_clear()
            .env("HOME", self.home.home())
            .env("CLAUDE_CONFIG_DIR", self.home.config())
            .env("CTXFOLD_GEMINI_API_KEY", KEY)
            .env("CTXFOLD_GEMINI_BASE_URL", self.gemini.url())
            .env("NO_PROXY", "127.0.0.1")
            .current_dir(self.home.project())
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn ctxfold(&self, arguments: &[&str]) -> Ran {
        ran(&mut self.command(arguments))
    }

    /// Compacts the session; arguments follow. Returns the plan as the dry run told it, or as the
    /// run itself where a model has a word in it.
    #[track_caller]
    pub(crate) fn compact(&self, arguments: &[&str]) -> Value {
        let all = [&["compact", SESSION, "--json"], arguments].concat();
        let done = self.ctxfold(&all).json();
        assert_eq!(done["executed"], true);
        done
    }

    /// A refusal: exit code 3, a reason, not a byte changed, and nothing done in the journal.
    #[track_caller]
    pub(crate) fn refused(&self, arguments: &[&str], reason: &str) -> Ran {
        self.fails(3, arguments, reason)
    }

    /// A failure that changes nothing.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, arguments: &[&str], reason: &str) -> Ran {
        let before = self.bytes();
        let ran = self.ctxfold(arguments);
        assert_eq!(ran.code, code, "{ran:?}");
        assert!(ran.stderr.contains(reason), "{ran:?}");
        assert!(self.bytes() == before, "a refusal changes nothing");
        assert!(!self.journal().contains(r#""kind":"done""#));
        ran
    }
}

pub(crate) fn ran(command: &mut Command) -> Ran {
    let output = command.output().expect("the binary can be started");
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).expect("data is UTF-8 here"),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
