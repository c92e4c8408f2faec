//! Claude Code through `ctxfold resume`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use ctxfold_test_support::{
    ClaudeHome, Client, GeminiTurn, MockAnthropic, MockGemini, Recorded, Terminal, Turn, clients,
    poll, require_client,
};
use serde_json::{Value, json};

use crate::lab::{HOUR, Ran, command, environment, run};
use crate::old::make_old;

const ID: &str = "6f1d2c3b-0000-4000-8000-0000000000aa";
const MINUTE: Duration = Duration::from_mins(1);
/// Arguments of the client for one prompt.
const PRINT: &[&str] = &[
    "-p",
    "GO-ON: with it",
    "--output-format",
    "json",
    "--dangerously-skip-permissions",
];

/// A session with three outputs of 20 KB that ended a moment ago.
struct Lab {
    mock: MockAnthropic,
    gemini: MockGemini,
    home: ClaudeHome,
    env: BTreeMap<String, String>,
    /// Bytes of the last request's messages.
    full: usize,
}

impl Lab {
    fn new(client: &Client) -> Lab {
        let mock = MockAnthropic::start();
        let gemini = MockGemini::start();
        let home = ClaudeHome::new(client, &mock);
        let noisy = |mark: &str| {
            let command = format!("seq 1 2000; echo {mark}-$((40+2)); seq 2001 4000");
            json!({"command": command, "description": "count"})
        };
        let calls = Turn::tool("Bash", noisy("OLD-A")).and_tool("Bash", noisy("OLD-B"));
        mock.on(
            "FIRST",
            [
                calls.and_tool("Bash", noisy("OLD-C")),
                Turn::text("first done"),
            ],
        );
        let mut live = home.live(&["--session-id", ID]);
        for prompt in [
            "FIRST: count",
            "talk one",
            "talk two",
            "talk three",
            "talk four",
        ] {
            let result = live.say(prompt);
            assert_eq!(result["is_error"], false, "{result}");
        }
        drop(live);
        let sent = mock.log().last();
        assert!(sent.holds("OLD-B-42"), "the whole history was sent");
        let env = environment(home.env(), client, &gemini);
        let lab = Lab {
            full: size(&sent),
            mock,
            gemini,
            home,
            env,
        };
        let gone = poll(MINUTE, || {
            let listed = lab.run(&["list", "--json"]).done();
            let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
            listed["sessions"][0]["live_pid"].is_null().then_some(())
        });
        assert!(gone.is_some(), "the client never ended");
        lab.run(&["idle", "on"]).done();
        lab.mock.log().take();
        lab
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        run(&self.env, &self.home.project(), arguments)
    }

    /// `ctxfold resume` with a prompt for the client.
    fn resume(&self) -> Ran {
        self.run(&[&["resume", ID, "--"], PRINT].concat()).done()
    }

    fn file(&self) -> PathBuf {
        self.home.session_file(ID).unwrap()
    }

    fn text(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }

    fn boundaries(&self) -> usize {
        self.text().matches("\"compact_boundary\"").count()
    }

    /// The one request since the last look, which was short and holds the prompt.
    #[track_caller]
    fn short_request(&self, prompt: &str) -> Recorded {
        assert_eq!(
            self.mock.log().compactions().len(),
            0,
            "no summary of the client's"
        );
        let requests = self.mock.log().conversations();
        assert_eq!(requests.len(), 1, "one prompt, one request");
        let request = requests[0].clone();
        assert!(request.holds(prompt), "the prompt is in it");
        for old in ["OLD-A-42", "OLD-B-42", "OLD-C-42"] {
            assert!(!request.holds(old), "{old} is out of it");
        }
        for said in ["FIRST: count", "first done", "talk one"] {
            assert!(request.holds(said), "{said} stays");
        }
        let (now, full) = (size(&request), self.full);
        assert!(now * 2 < full, "{now} of {full} bytes");
        eprintln!("one request of {now} bytes of messages, {full} without a compaction");
        request
    }
}

fn size(request: &Recorded) -> usize {
    serde_json::to_string(request.messages()).unwrap().len()
}

fn a_cold_session_is_resumed_short_and_once(version: &str) {
    let client = require_client!(claude, version);
    let lab = Lab::new(&client);

    // Just used: the cache is warm, and breaking it would cost more.
    let before = lab.text();
    lab.run(&["resume", ID, "-n"]).done().says("cache is warm");
    lab.run(&["idle", "run"]).done().says("0 compacted");
    assert_eq!(lab.text(), before);

    // Cold, but small for what the user wants.
    make_old(&lab.file(), 3 * HOUR);
    let before = lab.text();
    lab.run(&["idle", "min", "10MB"]).done();
    lab.run(&["resume", ID, "-n"]).done().says("too small");
    lab.run(&["idle", "run"]).done().says("0 compacted");
    assert_eq!(lab.text(), before);
    lab.run(&["idle", "min", "64KB"]).done();

    // Cold and large: what it costs is said before, and with prices in money.
    let shown = lab.run(&["resume", ID, "-n"]).done();
    shown.says("not cached any more; compacted by local rules");
    shown.says("would compact first");
    assert!(!shown.stderr.contains("costs"), "{shown:?}");
    lab.run(&["config", "set", "idle.price-cached", "0.5"])
        .done();
    lab.run(&["config", "set", "idle.price-uncached", "6.25"])
        .done();
    lab.run(&["idle", "run", "-n"]).done().says("(costs 0.");
    assert_eq!(lab.text(), before);

    let resumed = lab.resume();
    resumed.says("% smaller");
    let result: Value = serde_json::from_str(&resumed.stdout).unwrap();
    assert_eq!(result["session_id"], ID);
    assert_eq!(result["is_error"], false);
    lab.short_request("GO-ON: with it");
    assert_eq!(lab.boundaries(), 1);
    assert!(lab.text().starts_with(&before), "only appended");

    // At once again: warm, and nothing is compacted.
    lab.mock.log().take();
    lab.resume().says("cache is warm");
    lab.short_request("GO-ON: with it");
    assert_eq!(lab.boundaries(), 1);
    assert_eq!(lab.gemini.log().all().len(), 0, "nothing left the machine");
}

fn a_pause_is_compacted_once_and_activity_starts_a_new_one(version: &str) {
    let client = require_client!(claude, version);
    let lab = Lab::new(&client);
    make_old(&lab.file(), 3 * HOUR);
    let age = || fs::metadata(lab.file()).unwrap().modified().unwrap();
    let modified = age();
    lab.run(&["idle", "run"]).done().says("1 compacted");
    assert_eq!(age(), modified, "`--continue` picks by this time");
    let text = lab.text();
    lab.run(&["idle", "run"])
        .done()
        .says("0 compacted, 1 left alone");
    lab.run(&["idle", "watch", "--passes", "1"]).done();
    lab.run(&["resume", ID, "-n"])
        .done()
        .says("compacted in this pause already");
    // The next day too: nobody said a word since.
    make_old(&lab.file(), 30 * HOUR);
    let next_day = lab.text();
    assert_eq!(text.len(), next_day.len());
    lab.run(&["idle", "run"])
        .done()
        .says("0 compacted, 1 left alone");
    lab.run(&["resume", ID, "-n"])
        .done()
        .says("compacted in this pause already");
    assert_eq!(lab.text(), next_day);

    // Who goes on and pauses again has a new pause.
    let calls =
        json!({"command": "seq 1 2000; echo NEW-$((40+2)); seq 2001 4000", "description": "count"});
    lab.mock.on(
        "AGAIN",
        [
            Turn::tool("Bash", calls.clone())
                .and_tool("Bash", calls.clone())
                .and_tool("Bash", calls.clone())
                .and_tool("Bash", calls),
            Turn::text("again done"),
        ],
    );
    lab.home.prompt("AGAIN: count").resume(ID).run().success();
    for prompt in ["word one", "word two", "word three"] {
        lab.home.prompt(prompt).resume(ID).run().success();
    }
    make_old(&lab.file(), 3 * HOUR);
    lab.run(&["idle", "run"]).done().says("1 compacted");
    lab.mock.log().take();
    lab.resume();
    let request = lab.short_request("GO-ON: with it");
    assert!(!request.holds("NEW-42"));
    assert!(request.holds("AGAIN: count") && request.holds("again done"));
}

fn a_terminal_is_handed_over(version: &str) {
    let client = require_client!(claude, version);
    let lab = Lab::new(&client);
    make_old(&lab.file(), 3 * HOUR);
    let arguments = ["resume", ID, "--", "--dangerously-skip-permissions"];
    let arguments: Vec<_> = arguments.iter().map(std::ffi::OsStr::new).collect();
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_ctxfold"));
    let folder = lab.home.project();
    let terminal = Terminal::start(binary, &arguments, &folder, &lab.env, (110, 40));
    terminal.wait_for("❯", 2 * MINUTE);
    terminal.type_text("GO-ON: in the box");
    terminal.wait_for("GO-ON: in the box", MINUTE);
    terminal.press("Enter");
    let asked = lab
        .mock
        .log()
        .wait_for(2 * MINUTE, |r| r.holds("GO-ON: in the box"));
    assert!(asked.is_some(), "{}", terminal.screen());
    lab.short_request("GO-ON: in the box");
    // The client's own way out works, and the terminal is free again.
    terminal
        .wait_until(MINUTE, |s| s.contains("to: GO-ON") || s.contains("GO-ON"))
        .unwrap();
    terminal.type_text("/exit");
    terminal.press("Enter");
    assert!(terminal.wait_for_end(MINUTE), "{}", terminal.screen());
}

/// What holds for any version, once.
#[test]
fn the_clients_exit_code_and_folder_are_its_own_and_a_failure_keeps_nobody() {
    let version = clients::CLAUDE[0];
    let client = require_client!(claude, version);
    let lab = Lab::new(&client);
    make_old(&lab.file(), 3 * HOUR);

    // The client's exit code is the command's.
    let bad = ["--no-such-option-of-the-client"];
    let theirs = lab.home.run(&[&["--resume", ID], &bad[..]].concat()).code();
    let ours = lab.run(&[&["resume", ID, "--no-compact", "--"], &bad[..]].concat());
    assert_ne!(theirs, 0);
    assert_eq!(ours.code, theirs, "{ours:?}");

    // A state folder that cannot be made: no compaction, but the client runs.
    let state = lab.home.home().join(".local/state");
    fs::create_dir_all(state.parent().unwrap()).unwrap();
    drop(fs::remove_dir_all(&state));
    fs::write(&state, "in the way").unwrap();
    let before = lab.text();
    lab.resume().says("not compacted: failed to");
    assert!(lab.text().starts_with(&before));
    assert_eq!(lab.boundaries(), 0);
    assert_eq!(lab.mock.log().conversations().len(), 1);
    fs::remove_file(&state).unwrap();

    // From another folder the client is started where it finds the session.
    make_old(&lab.file(), 3 * HOUR);
    lab.mock.log().take();
    let elsewhere = run(
        &lab.env,
        lab.home.home(),
        &[&["resume", ID, "--"], PRINT].concat(),
    )
    .done();
    elsewhere.says("ctxfold: in ");
    lab.short_request("GO-ON: with it");

    // Not a session of the client's.
    let copy = lab.home.home().join("copy.jsonl");
    fs::copy(lab.file(), &copy).unwrap();
    let ran = lab.run(&["resume", copy.to_str().unwrap()]);
    assert_eq!(ran.code, 1);
    ran.says("not among the client's sessions");
    let agent = lab
        .file()
        .with_extension("")
        .join("subagents/agent-a1.jsonl");
    fs::create_dir_all(agent.parent().unwrap()).unwrap();
    fs::copy(lab.file(), &agent).unwrap();
    let ran = lab.run(&["resume", agent.to_str().unwrap()]);
    assert_eq!(ran.code, 1);
    ran.says("a sub-agent's file");
}

#[test]
fn a_model_is_asked_only_where_one_was_named_and_masked_instead_where_it_fails() {
    let version = clients::CLAUDE[0];
    let client = require_client!(claude, version);
    let lab = Lab::new(&client);
    make_old(&lab.file(), 3 * HOUR);
    let pristine = lab.text();
    let second = lab
        .file()
        .with_file_name("6f1d2c3b-0000-4000-8000-0000000000bb.jsonl");
    fs::write(
        &second,
        pristine.replace(ID, "6f1d2c3b-0000-4000-8000-0000000000bb"),
    )
    .unwrap();
    make_old(&second, 3 * HOUR);

    // Named, and refused by the provider: masked, said once for both sessions, asked once.
    lab.run(&["idle", "model", "gemini-3.5-flash-lite"]).done();
    lab.gemini
        .next(GeminiTurn::error(400, "INVALID_ARGUMENT", "no such thing"));
    let ran = lab.run(&["idle", "run"]).done();
    ran.says("2 compacted");
    assert_eq!(ran.stderr.matches("no such thing").count(), 1, "{ran:?}");
    // Beside that, only the list of models was asked for.
    let asked = lab.gemini.log().all();
    assert_eq!(asked.iter().filter(|r| r.kind != "models").count(), 1);
    assert_eq!(asked.len(), 2);
    assert_eq!(lab.boundaries(), 1);

    // Not reachable at all.
    fs::remove_file(&second).unwrap();
    fs::write(lab.file(), &pristine).unwrap();
    make_old(&lab.file(), 3 * HOUR);
    let mut env = lab.env.clone();
    env.insert(
        "CTXFOLD_GEMINI_BASE_URL".into(),
        "http://127.0.0.1:9".into(),
    );
    let mut unreachable = command(&env, &lab.home.project(), &["resume", ID, "--"]);
    lab.run(&["config", "set", "gemini.deadline", "2"]).done();
    lab.mock.log().take();
    let output = unreachable.args(PRINT).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(said.matches("masked instead").count(), 1, "{said}");
    lab.short_request("GO-ON: with it");
}

macro_rules! on_each_version {
    ($($scene:ident),* $(,)?) => {
        mod newest { $( #[test] fn $scene() { super::$scene(ctxfold_test_support::clients::CLAUDE[0]); } )* }
        mod oldest { $( #[test] fn $scene() { super::$scene(ctxfold_test_support::clients::CLAUDE[1]); } )* }
    };
}
on_each_version!(
    a_cold_session_is_resumed_short_and_once,
    a_pause_is_compacted_once_and_activity_starts_a_new_one,
    a_terminal_is_handed_over,
);
