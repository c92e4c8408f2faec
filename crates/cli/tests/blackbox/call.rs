//! Calls of the binary in a folder of their own, in bounded time.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// The binary.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_ctxfold");

/// A home, a project and a temporary folder.
pub(crate) struct Lab {
    root: tempfile::TempDir,
}

impl Lab {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in [
            "tmp",
            "home/.claude",
            "proj/.planning",
            "proj/.claude",
            "proj/.git",
        ] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        Self { root }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    /// A file of the session `s`.
    pub(crate) fn state(&self, suffix: &str) -> PathBuf {
        self.path(&format!("tmp/claude-ctx-s{suffix}"))
    }

    pub(crate) fn bridge(&self, remaining: f64) {
        let bridge = json!({ "remaining_percentage": remaining, "used_pct": 100.0 - remaining,
            "timestamp": now() });
        std::fs::write(self.state(".json"), bridge.to_string()).unwrap();
    }

    /// Calls `hook` for an event with more fields.
    pub(crate) fn hook(&self, event: &str, more: &Value) -> String {
        let mut input = json!({ "session_id": "s", "cwd": self.path("proj"),
            "hook_event_name": event });
        for (name, value) in more.as_object().into_iter().flatten() {
            input[name] = value.clone();
        }
        self.run(&["hook"], &[], &input.to_string())
    }

    /// Calls `hook` after a tool call.
    pub(crate) fn tool(&self) -> String {
        self.hook("PostToolUse", &json!({ "tool_name": "Bash" }))
    }

    /// Calls the program; fails when it fails, talks on stderr, or takes ten seconds.
    pub(crate) fn run(&self, args: &[&str], env: &[(&str, &Path)], input: &str) -> String {
        let mut command = Command::new(PROGRAM);
        command
            .args(args)
            .env_clear()
            .current_dir(self.path("home"));
        command
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"));
        command.envs(env.iter().copied());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        let id = child.id();
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || sender.send(child.wait_with_output()));
        let Ok(output) = receiver.recv_timeout(Duration::from_secs(10)) else {
            Command::new("kill").arg(id.to_string()).status().unwrap();
            panic!("the call hangs");
        };
        let output = output.unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

pub(crate) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}
