//! The binary in a home, and files that are made to look old.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use ctxfold_test_support::{Client, MockGemini};

/// A key that must never be used where no model was named.
const KEY: &str = "AIzaTEST-not-a-key-0000000000000000000000";
pub(crate) const HOUR: Duration = Duration::from_hours(1);

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

    /// That it said this.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) {
        assert!(self.stderr.contains(text), "{text:?} in {self:?}");
    }
}

/// The environment of a client with what the binary needs beside it: a key, the mock's address, and
/// the client on the `PATH`.
pub(crate) fn environment(
    env: &BTreeMap<String, String>,
    client: &Client,
    gemini: &MockGemini,
) -> BTreeMap<String, String> {
    let mut env = env.clone();
    let bin = client.program().parent().unwrap().display();
    let path = format!("{bin}:{}", env["PATH"]);
    env.insert("PATH".into(), path);
    env.insert("CTXFOLD_GEMINI_API_KEY".into(), KEY.into());
    env.insert("CTXFOLD_GEMINI_BASE_URL".into(), gemini.url());
    env
}

/// The binary as a command.
pub(crate) fn command(
    env: &BTreeMap<String, String>,
    folder: &Path,
    arguments: &[&str],
) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ctxfold"));
    command
        .args(arguments)
        .env_clear()
        .envs(env)
        .current_dir(folder)
        .stdin(Stdio::null());
    command
}

pub(crate) fn run(env: &BTreeMap<String, String>, folder: &Path, arguments: &[&str]) -> Ran {
    let output = command(env, folder, arguments).output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
