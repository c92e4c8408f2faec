//! Gemini CLI in a clean home, against a [`MockGemini`].

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::clients::{Client, search_path};
use crate::gemini::MockGemini;
use crate::process::{Output, run};

const TURN_LIMIT: Duration = Duration::from_mins(2);

/// A temporary home of Gemini CLI: `HOME` and a project, and nothing else of the environment but
/// `PATH`.
#[derive(Debug)]
pub struct GeminiHome {
    folder: TempDir,
    client: Client,
    env: BTreeMap<String, String>,
}

impl GeminiHome {
    /// Makes a home whose client talks to the mock, signed in by a key, in a trusted folder.
    ///
    /// # Panics
    ///
    /// When the folders can't be made.
    pub fn new(client: &Client, mock: &MockGemini) -> Self {
        let prefix = "ctxfold-gemini-";
        let folder = TempDir::with_prefix(prefix).expect("a temporary folder can be made");
        let mut home = Self {
            folder,
            client: client.clone(),
            env: BTreeMap::new(),
        };
        fs::create_dir_all(home.project()).expect("the project folder can be made");
        fs::create_dir_all(home.config()).expect("the configuration folder can be made");
        for (key, value) in [
            ("HOME", home.home().to_string_lossy().into_owned()),
            ("PATH", search_path().to_string_lossy().into_owned()),
            ("GEMINI_API_KEY", "mock".to_owned()),
            ("GOOGLE_GEMINI_BASE_URL", mock.url()),
            ("LANG", "C.UTF-8".to_owned()),
            ("NO_COLOR", "1".to_owned()),
            ("TERM", "xterm-256color".to_owned()),
            ("TZ", "UTC".to_owned()),
        ] {
            home.set_env(key, &value);
        }
        home.write_settings(Value::Null);
        home
    }

    /// The `HOME` folder.
    pub fn home(&self) -> &Path {
        self.folder.path()
    }

    /// The configuration folder, `~/.gemini`.
    pub fn config(&self) -> PathBuf {
        self.home().join(".gemini")
    }

    /// The working directory of the client.
    pub fn project(&self) -> PathBuf {
        self.home().join("proj")
    }

    /// The environment of the client: all of it.
    pub fn env(&self) -> &BTreeMap<String, String> {
        &self.env
    }

    /// Sets a variable for the client.
    pub fn set_env(&mut self, key: &str, value: &str) {
        self.env.insert(key.to_owned(), value.to_owned());
    }

    /// Writes `settings.json`: what a quiet, offline client needs, and these keys on top.
    ///
    /// # Panics
    ///
    /// When it can't be written.
    pub fn write_settings(&self, more: Value) {
        let mut settings = json!({
            "security": {
                "auth": {"selectedType": "gemini-api-key"},
                "folderTrust": {"enabled": false},
            },
            "privacy": {"usageStatisticsEnabled": false},
            "telemetry": {"enabled": false},
            "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
        });
        if let Value::Object(more) = more {
            for (key, value) in more {
                settings[key] = value;
            }
        }
        let path = self.config().join("settings.json");
        fs::write(path, settings.to_string()).expect("the settings can be written");
    }

    /// Runs one prompt to its end, tools allowed, and returns what the client printed.
    ///
    /// # Panics
    ///
    /// When the client can't be started or does not end within two minutes.
    pub fn prompt(&self, text: &str, arguments: &[&str]) -> GeminiRun {
        let mut command = self.command();
        command
            .args(["--prompt", text, "--yolo", "--output-format", "json"])
            .args(arguments);
        let output = run(&mut command, b"", TURN_LIMIT);
        // Notices may stand before the document.
        let start = output.stdout.find("{\n").unwrap_or(0);
        let result = serde_json::from_str(&output.stdout[start..]).unwrap_or(Value::Null);
        GeminiRun { output, result }
    }

    /// Runs the client with these arguments only, for example `extensions list`.
    ///
    /// # Panics
    ///
    /// When the client can't be started or does not end within two minutes.
    pub fn run(&self, arguments: &[&str], input: &[u8]) -> Output {
        run(self.command().args(arguments), input, TURN_LIMIT)
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
}

/// A finished prompt of Gemini CLI.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct GeminiRun {
    /// Status, standard output and standard error.
    pub output: Output,
    /// The client's own JSON result, or null where it printed none.
    pub result: Value,
}

impl GeminiRun {
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
        assert!(
            self.output.status.success() && self.result["response"].is_string(),
            "the client failed: {:?}\nstdout: {}\nstderr: {}",
            self.output.status,
            self.output.stdout,
            self.output.stderr
        );
        self
    }

    /// The text of the answer.
    pub fn text(&self) -> &str {
        self.result["response"].as_str().unwrap_or_default()
    }
}
