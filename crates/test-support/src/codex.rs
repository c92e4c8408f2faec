//! Codex in a clean home, against a [`MockResponses`].

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::app_server::AppServer;
use crate::clients::{Client, search_path};
use crate::process::{Output, kill_programs_under, run};
use crate::responses::MockResponses;
use crate::terminal::Terminal;

const TURN_LIMIT: Duration = Duration::from_mins(2);

/// A temporary home of Codex: `HOME`, `CODEX_HOME` and a project, and nothing else of the
/// environment but `PATH`.
#[derive(Debug)]
pub struct CodexHome {
    folder: TempDir,
    client: Client,
    env: BTreeMap<String, String>,
}

impl CodexHome {
    /// Makes a home whose client talks to the mock.
    ///
    /// # Panics
    ///
    /// When the folders can't be made.
    pub fn new(client: &Client, mock: &MockResponses) -> Self {
        let folder =
            TempDir::with_prefix("ctxfold-codex-").expect("a temporary folder can be made");
        let mut home = Self {
            folder,
            client: client.clone(),
            env: BTreeMap::new(),
        };
        fs::create_dir_all(home.project()).expect("the project folder can be made");
        fs::create_dir_all(home.codex_home()).expect("the codex home can be made");
        let config = home.config_text(&mock.url());
        home.write_config(&config);
        let instructions = home.home().join("instructions.md");
        fs::write(instructions, "You are a test.\n").expect("the instructions can be written");
        for (key, value) in [
            ("HOME", home.home().to_string_lossy().into_owned()),
            (
                "CODEX_HOME",
                home.codex_home().to_string_lossy().into_owned(),
            ),
            ("PATH", search_path().to_string_lossy().into_owned()),
            ("MOCK_KEY", "mock".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("NO_PROXY", "127.0.0.1".to_owned()),
            ("SHELL", "/bin/bash".to_owned()),
            ("TZ", "UTC".to_owned()),
        ] {
            home.set_env(key, &value);
        }
        home
    }

    /// The `HOME` folder.
    pub fn home(&self) -> &Path {
        self.folder.path()
    }

    /// The `CODEX_HOME` folder.
    pub fn codex_home(&self) -> PathBuf {
        self.home().join(".codex")
    }

    /// The working directory of the client.
    pub fn project(&self) -> PathBuf {
        self.home().join("proj")
    }

    /// The client that this home drives.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Another version of the client from now on, in the same home.
    pub fn set_client(&mut self, client: &Client) {
        self.client = client.clone();
    }

    /// The environment of the client: all of it.
    pub fn env(&self) -> &BTreeMap<String, String> {
        &self.env
    }

    /// Sets a variable for the client.
    pub fn set_env(&mut self, key: &str, value: &str) {
        self.env.insert(key.to_owned(), value.to_owned());
    }

    /// The `config.toml` that this home starts with, for a provider at `url`.
    pub fn config_text(&self, url: &str) -> String {
        let home = self.home().display();
        let project = fs::canonicalize(self.project()).unwrap_or_else(|_| self.project());
        format!(
            r#"model = "gpt-5.1-codex"
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
model_instructions_file = "{home}/instructions.md"

[analytics]
enabled = false

[model_providers.mock]
name = "mock"
base_url = "{url}"
wire_api = "responses"
env_key = "MOCK_KEY"
requires_openai_auth = false
request_max_retries = 0
stream_max_retries = 0

[projects."{}"]
trust_level = "trusted"
"#,
            project.display()
        )
    }

    /// Replaces `config.toml`.
    ///
    /// # Panics
    ///
    /// When it can't be written.
    pub fn write_config(&self, text: &str) {
        let path = self.codex_home().join("config.toml");
        fs::write(path, text).expect("the configuration can be written");
    }

    /// A prompt for `codex exec`. Nothing happens before [`CodexPrompt::run`].
    pub fn prompt(&self, text: &str) -> CodexPrompt<'_> {
        CodexPrompt {
            home: self,
            text: text.to_owned(),
            thread: None,
            arguments: Vec::new(),
            limit: TURN_LIMIT,
        }
    }

    /// Runs the client with these arguments only, for example `archive ID`.
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

    /// Starts the client's app server, which speaks JSON-RPC over its standard streams.
    ///
    /// # Panics
    ///
    /// When it can't be started or refuses the handshake.
    pub fn app_server(&self) -> AppServer {
        AppServer::start(self.command().arg("app-server"))
    }

    /// Starts the client in a terminal and waits until it takes input.
    ///
    /// The newest versions start a daemon with it, which dropping this home stops.
    ///
    /// # Panics
    ///
    /// When the terminal can't be started or the client never shows its prompt.
    pub fn terminal(&self, arguments: &[&str], size: (u16, u16)) -> Terminal {
        let all: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        let program = self.client.program();
        let terminal = Terminal::start(program, &all, &self.project(), &self.env, size);
        if let Err(screen) = terminal.wait_until(TURN_LIMIT, |screen| screen.contains('›')) {
            panic!("the client never asked for a prompt:\n{screen}");
        }
        terminal
    }

    /// Every rollout of this home, archived and compressed ones too, sorted by path.
    pub fn rollouts(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for folder in ["sessions", "archived_sessions"] {
            collect_rollouts(&self.codex_home().join(folder), &mut found);
        }
        found.sort();
        found
    }

    /// The newest rollout whose name holds the thread's id.
    pub fn rollout(&self, thread: &str) -> Option<PathBuf> {
        let named = |path: &PathBuf| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().contains(thread))
        };
        self.rollouts().into_iter().rfind(named)
    }
}

impl Drop for CodexHome {
    fn drop(&mut self) {
        if self.codex_home().join("app-server-daemon").exists() {
            drop(
                self.command()
                    .args(["app-server", "daemon", "stop"])
                    .output(),
            );
            // The daemon runs a copy of the client from this home, and a second one that updates
            // it; the second outlives the first.
            kill_programs_under(self.home());
        }
    }
}

fn collect_rollouts(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            collect_rollouts(&path, found);
        } else if name.starts_with("rollout-") {
            found.push(path);
        }
    }
}

/// One call of `codex exec`, before it runs.
#[derive(Debug)]
pub struct CodexPrompt<'home> {
    home: &'home CodexHome,
    text: String,
    thread: Option<String>,
    arguments: Vec<OsString>,
    limit: Duration,
}

impl CodexPrompt<'_> {
    /// Goes on with a thread: `codex exec resume`.
    #[must_use]
    pub fn resume(mut self, thread: &str) -> Self {
        self.thread = Some(thread.to_owned());
        self
    }

    /// Adds an argument of `codex exec`.
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
    pub fn run(self) -> CodexRun {
        let mut command = self.home.command();
        command
            .args(["exec", "--json", "--skip-git-repo-check"])
            .args(&self.arguments);
        if let Some(thread) = &self.thread {
            command.args(["resume", thread]);
        }
        let output = run(command.arg(&self.text), b"", self.limit);
        let lines = output.stdout.lines();
        let events = lines
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        CodexRun { output, events }
    }
}

/// A finished `codex exec`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CodexRun {
    /// Status, standard output and standard error.
    pub output: Output,
    /// The events that the client printed, one JSON object each.
    pub events: Vec<Value>,
}

impl CodexRun {
    /// The same run, which completed its turn.
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
        let completed = self
            .events
            .iter()
            .any(|event| event["type"] == "turn.completed");
        assert!(
            self.output.status.success() && completed,
            "the client failed: {:?}\nstdout: {}\nstderr: {}",
            self.output.status,
            self.output.stdout,
            self.output.stderr
        );
        self
    }

    /// The thread's id.
    ///
    /// # Panics
    ///
    /// When the client named none.
    #[track_caller]
    pub fn thread_id(&self) -> &str {
        let started = self
            .events
            .iter()
            .find(|event| event["type"] == "thread.started");
        started
            .and_then(|e| e["thread_id"].as_str())
            .expect("the client names its thread")
    }

    /// The text of the last message.
    pub fn text(&self) -> &str {
        let mut items = self.events.iter().map(|event| &event["item"]);
        let last = items.rfind(|item| item["type"] == "agent_message");
        last.and_then(|item| item["text"].as_str())
            .unwrap_or_default()
    }
}
