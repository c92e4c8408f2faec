//! Claude Code in a clean home, against a [`MockAnthropic`].

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::anthropic::MockAnthropic;
use crate::clients::{Client, search_path};
use crate::json_lines::JsonLines;
use crate::process::{Output, run};
use crate::terminal::Terminal;

/// A turn of the real client takes about a second; a loaded machine gets a hundred times that.
const TURN_LIMIT: Duration = Duration::from_mins(2);
const KEY: &str = "sk-ant-mock-0123456789abcdefghij";

/// A temporary home of Claude Code: `HOME`, configuration folder and a project, and nothing else
/// of the environment but `PATH`.
#[derive(Debug)]
pub struct ClaudeHome {
    folder: TempDir,
    client: Client,
    env: BTreeMap<String, String>,
}

impl ClaudeHome {
    /// Makes a home whose client talks to the mock.
    ///
    /// # Panics
    ///
    /// When the folders can't be made.
    pub fn new(client: &Client, mock: &MockAnthropic) -> Self {
        Self::named(client, mock, "ctxfold-claude-")
    }

    /// The same, in a folder whose name starts with `prefix`, which may hold spaces and any letters.
    ///
    /// # Panics
    ///
    /// When the folders can't be made.
    pub fn named(client: &Client, mock: &MockAnthropic, prefix: &str) -> Self {
        let folder = TempDir::with_prefix(prefix).expect("a temporary folder can be made");
        let home = Self {
            folder,
            client: client.clone(),
            env: BTreeMap::new(),
        };
        fs::create_dir_all(home.project()).expect("the project folder can be made");
        fs::create_dir_all(home.config()).expect("the configuration folder can be made");
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let mut env = BTreeMap::from(
            [
                ("ANTHROPIC_API_KEY", KEY),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
                ("DISABLE_AUTOUPDATER", "1"),
                ("DISABLE_ERROR_REPORTING", "1"),
                ("DISABLE_TELEMETRY", "1"),
                // Lets a container's root user skip permission prompts.
                ("IS_SANDBOX", "1"),
                ("LANG", "C.UTF-8"),
                ("NO_PROXY", "127.0.0.1"),
                ("SHELL", "/bin/bash"),
                ("TZ", "UTC"),
            ]
            .map(|(key, value)| (key.to_owned(), value.to_owned())),
        );
        env.insert("ANTHROPIC_BASE_URL".into(), mock.url());
        env.insert("HOME".into(), text(home.home().to_owned()));
        env.insert("CLAUDE_CONFIG_DIR".into(), text(home.config()));
        env.insert("PATH".into(), search_path().to_string_lossy().into_owned());
        let home = Self { env, ..home };
        home.accept_first_run_questions();
        home
    }

    /// The `HOME` folder.
    pub fn home(&self) -> &Path {
        self.folder.path()
    }

    /// The configuration folder, `CLAUDE_CONFIG_DIR`.
    pub fn config(&self) -> PathBuf {
        self.home().join(".claude")
    }

    /// The working directory of the client.
    pub fn project(&self) -> PathBuf {
        self.home().join("proj")
    }

    /// The client that this home drives.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The environment of the client: all of it.
    pub fn env(&self) -> &BTreeMap<String, String> {
        &self.env
    }

    /// Sets a variable for the client.
    pub fn set_env(&mut self, key: &str, value: &str) {
        self.env.insert(key.to_owned(), value.to_owned());
    }

    /// Puts a folder in front of the client's `PATH`.
    pub fn prepend_path(&mut self, folder: &Path) {
        let path = format!("{}:{}", folder.display(), self.env["PATH"]);
        self.set_env("PATH", &path);
    }

    /// Another version of the client from now on, in the same home.
    pub fn set_client(&mut self, client: &Client) {
        self.client = client.clone();
    }

    /// Writes the user's `settings.json`: these keys, and what lets a terminal start unasked.
    ///
    /// # Panics
    ///
    /// When it can't be written.
    pub fn write_settings(&self, more: Value) {
        let mut settings = json!({"skipDangerousModePermissionPrompt": true});
        if let Value::Object(more) = more {
            for (key, value) in more {
                settings[key] = value;
            }
        }
        let path = self.config().join("settings.json");
        fs::write(path, settings.to_string()).expect("the settings can be written");
    }

    /// A prompt for `claude -p`. Nothing happens before [`ClaudePrompt::run`].
    pub fn prompt(&self, text: &str) -> ClaudePrompt<'_> {
        let arguments = ["--output-format", "json", "--dangerously-skip-permissions"];
        ClaudePrompt {
            home: self,
            text: text.to_owned(),
            arguments: arguments.map(OsString::from).to_vec(),
            limit: TURN_LIMIT,
        }
    }

    /// Runs the client with these arguments only, for example `plugin list`.
    ///
    /// # Panics
    ///
    /// When the client can't be started or does not end within two minutes.
    pub fn run(&self, arguments: &[&str]) -> Output {
        run(self.command().args(arguments), b"", TURN_LIMIT)
    }

    /// The client as a command: cleared environment, project folder, no arguments yet.
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.client.program());
        command
            .env_clear()
            .envs(&self.env)
            .current_dir(self.project());
        command
    }

    /// Starts the client in a terminal and waits until it takes input.
    ///
    /// # Panics
    ///
    /// When the terminal can't be started or the client never shows its prompt.
    pub fn terminal(&self, arguments: &[&str], size: (u16, u16)) -> Terminal {
        let mut all = vec![OsStr::new("--dangerously-skip-permissions")];
        all.extend(arguments.iter().map(OsStr::new));
        let program = self.client.program();
        let terminal = Terminal::start(program, &all, &self.project(), &self.env, size);
        let ready = |screen: &str| screen.contains('❯') || screen.contains("? for shortcuts");
        if let Err(screen) = terminal.wait_until(TURN_LIMIT, ready) {
            panic!("the client never asked for a prompt:\n{screen}");
        }
        terminal
    }

    /// Starts a process of the client that takes prompt after prompt: a session that stays live.
    ///
    /// # Panics
    ///
    /// When the client can't be started.
    pub fn live(&self, arguments: &[&str]) -> ClaudeLive {
        self.start_live(&[&["--dangerously-skip-permissions"], arguments].concat())
    }

    /// The same, but the client asks before it runs a tool, and the next of these answers is the
    /// user's: `{"behavior":"deny","message":"…"}` or `{"behavior":"allow","updatedInput":…}`.
    /// Behind the last answer everything is allowed.
    ///
    /// # Panics
    ///
    /// When the client can't be started.
    pub fn live_asking(
        &self,
        arguments: &[&str],
        answers: impl IntoIterator<Item = Value>,
    ) -> ClaudeLive {
        let mut live =
            self.start_live(&[&["--permission-prompt-tool", "stdio"], arguments].concat());
        live.answers = answers.into_iter().collect();
        live
    }

    fn start_live(&self, arguments: &[&str]) -> ClaudeLive {
        let mut command = self.command();
        command.args(["-p", "--verbose"]);
        command.args([
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
        ]);
        ClaudeLive {
            lines: JsonLines::start(command.args(arguments)),
            answers: VecDeque::new(),
        }
    }

    /// The file of a session of this home's projects, by session id.
    pub fn session_file(&self, id: &str) -> Option<PathBuf> {
        self.sessions()
            .into_iter()
            .find(|path| path.file_stem().is_some_and(|stem| stem == id))
    }

    /// The session files of every project of this home, sorted by path, sub-agents left out.
    ///
    /// # Panics
    ///
    /// When the projects folder can't be read.
    pub fn sessions(&self) -> Vec<PathBuf> {
        let Ok(projects) = fs::read_dir(self.config().join("projects")) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for project in projects {
            let project = project.expect("the projects folder can be read").path();
            let Ok(files) = fs::read_dir(&project) else {
                continue;
            };
            found.extend(files.map(|file| file.expect("the project can be read").path()));
        }
        found.retain(|path| path.extension() == Some(OsStr::new("jsonl")));
        found.sort();
        found
    }

    /// The files of a session's sub-agents, sorted by path.
    pub fn sub_agents(&self, id: &str) -> Vec<PathBuf> {
        let folder = self
            .session_file(id)
            .map(|path| path.with_extension("").join("subagents"));
        let Some(files) = folder.and_then(|folder| fs::read_dir(folder).ok()) else {
            return Vec::new();
        };
        let mut found: Vec<PathBuf> = files
            .filter_map(Result::ok)
            .map(|file| file.path())
            .collect();
        found.retain(|path| path.extension() == Some(OsStr::new("jsonl")));
        found.sort();
        found
    }

    /// Answers the questions of a first run (theme, trust, key), which only a terminal asks.
    fn accept_first_run_questions(&self) {
        let project = fs::canonicalize(self.project()).expect("the project folder exists");
        let tail = &KEY[KEY.len() - 20..];
        let state = json!({
            "hasCompletedOnboarding": true,
            "theme": "dark",
            "bypassPermissionsModeAccepted": true,
            "customApiKeyResponses": {"approved": [tail], "rejected": []},
            "projects": {project.to_string_lossy(): {
                "hasTrustDialogAccepted": true,
                "hasCompletedProjectOnboarding": true,
                "allowedTools": [],
            }},
        });
        let path = self.config().join(".claude.json");
        fs::write(path, state.to_string()).expect("the client's state can be written");
        self.write_settings(Value::Null);
    }
}

/// A live process of the client. Dropping it ends the client.
#[derive(Debug)]
pub struct ClaudeLive {
    lines: JsonLines,
    /// What the user answers where the client asks, in order.
    answers: VecDeque<Value>,
}

impl ClaudeLive {
    /// Says something and waits for the end of the turn; returns the client's result.
    ///
    /// The client may write the end of the turn to its session a moment later.
    ///
    /// # Panics
    ///
    /// When the client ends, or the turn does not within two minutes.
    pub fn say(&mut self, text: &str) -> Value {
        let message = json!({"role": "user", "content": [{"type": "text", "text": text}]});
        self.lines
            .send(&json!({"type": "user", "message": message}));
        let end = Instant::now() + TURN_LIMIT;
        loop {
            let message = self.lines.receive(end, text);
            if message["type"] == "result" {
                return message;
            }
            if message["request"]["subtype"] == "can_use_tool" {
                self.answer(&message);
            }
        }
    }

    /// Answers the client's question whether a tool may run.
    fn answer(&mut self, question: &Value) {
        let allowed = || json!({"behavior": "allow", "updatedInput": question["request"]["input"]});
        let answer = self.answers.pop_front().unwrap_or_else(allowed);
        self.lines
            .send(&json!({"type": "control_response", "response": {
                "subtype": "success", "request_id": question["request_id"], "response": answer,
            }}));
    }

    /// The id of the client's process.
    pub fn pid(&self) -> u32 {
        self.lines.pid()
    }

    /// Kills the client at once, as a crash would.
    pub fn kill(self) {
        self.lines.kill();
    }
}

/// One call of `claude -p`, before it runs.
#[derive(Debug)]
pub struct ClaudePrompt<'home> {
    home: &'home ClaudeHome,
    text: String,
    arguments: Vec<OsString>,
    limit: Duration,
}

impl ClaudePrompt<'_> {
    /// Goes on with a session.
    #[must_use]
    pub fn resume(self, id: &str) -> Self {
        self.arg("--resume").arg(id)
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Gives the client another time limit than two minutes.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs the client to its end.
    ///
    /// # Panics
    ///
    /// When it can't be started or runs past the limit.
    pub fn run(self) -> ClaudeRun {
        let mut command = self.home.command();
        command.arg("-p").arg(&self.text).args(&self.arguments);
        let output = run(&mut command, b"", self.limit);
        let result = serde_json::from_str(output.stdout.trim()).unwrap_or(Value::Null);
        ClaudeRun { output, result }
    }
}

/// A finished `claude -p`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClaudeRun {
    /// Status, standard output and standard error.
    pub output: Output,
    /// The client's own JSON result, or null where it printed none.
    pub result: Value,
}

impl ClaudeRun {
    /// The same run, which ended well.
    ///
    /// # Panics
    ///
    /// When it did not; the panic shows what the client wrote.
    #[track_caller]
    #[expect(
        clippy::return_self_not_must_use,
        reason = "many calls only check that it ended well"
    )]
    pub fn success(self) -> Self {
        let good = self.output.status.success() && self.result["is_error"] == false;
        assert!(
            good,
            "the client failed: {:?}\nstdout: {}\nstderr: {}",
            self.output.status, self.output.stdout, self.output.stderr
        );
        self
    }

    /// The session's id.
    ///
    /// # Panics
    ///
    /// When the client named none.
    #[track_caller]
    pub fn session_id(&self) -> &str {
        self.result["session_id"]
            .as_str()
            .expect("the client names its session")
    }

    /// The final text of the answer.
    pub fn text(&self) -> &str {
        self.result["result"].as_str().unwrap_or_default()
    }
}
