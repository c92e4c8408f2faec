//! A home with sessions in it, and nothing else of the environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ctxfold_test_support::generate::ClaudeSession;
use serde_json::Value;
use tempfile::TempDir;

/// The generated session's identifier.
pub(crate) const SESSION: &str = "11111111-2222-4333-8444-555555555555";
/// The clock of every run.
const NOW_MS: &str = "1772000000000";

/// A run of the binary, with the home folder shown as `HOME`.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    #[track_caller]
    pub(crate) fn done(self) -> Ran {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn json(self) -> Value {
        let done = self.done();
        serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}: {}", done.stdout))
    }

    /// Both streams and the code, for a snapshot.
    pub(crate) fn shown(&self) -> String {
        let part = |name: &str, text: &str| match text {
            "" => String::new(),
            text => format!("--- {name}\n{}\n", text.trim_end()),
        };
        let (out, err) = (part("stdout", &self.stdout), part("stderr", &self.stderr));
        format!("exit {}\n{out}{err}", self.code)
    }
}

pub(crate) struct Lab {
    folder: TempDir,
}

impl Lab {
    pub(crate) fn empty() -> Lab {
        let folder = TempDir::with_prefix("ctxfold-it-").unwrap();
        fs::create_dir(folder.path().join("proj")).unwrap();
        Lab { folder }
    }

    /// A home with one generated session.
    pub(crate) fn new() -> Lab {
        let lab = Lab::empty();
        lab.generate(&ClaudeSession::default());
        lab
    }

    /// A home with the session in the folder that commands run in, and in `bin` a client that says
    /// how it was started and ends with 7.
    pub(crate) fn with_client() -> Lab {
        use std::os::unix::fs::PermissionsExt as _;

        let lab = Lab::new();
        let here = lab.home().join("proj").canonicalize().unwrap();
        let here = here.to_str().unwrap().chars();
        let slug: String = here
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        let folder = lab.home().join(".claude/projects").join(slug);
        fs::create_dir(&folder).unwrap();
        fs::rename(lab.file(), folder.join(format!("{SESSION}.jsonl"))).unwrap();
        let client = lab.home().join("bin/claude");
        fs::create_dir(client.parent().unwrap()).unwrap();
        fs::write(&client, "#!/bin/sh\necho started: \"$@\"\nexit 7\n").unwrap();
        fs::set_permissions(&client, fs::Permissions::from_mode(0o755)).unwrap();
        lab
    }

    /// Runs with that client on the path, a day later.
    pub(crate) fn a_day_later(&self, arguments: &[&str]) -> Ran {
        let mut command = self.command(arguments);
        let path = format!("{}:/usr/bin:/bin", self.home().join("bin").display());
        let now: i64 = NOW_MS.parse().unwrap();
        command
            .env("PATH", path)
            .env("CTXFOLD_TEST_NOW_MS", (now + 86_400_000).to_string());
        self.ran(&mut command)
    }

    /// Makes this test's own process a client that has the session open; returns its number.
    pub(crate) fn is_live(&self) -> u32 {
        let pid = std::process::id();
        let sessions = self.home().join(".claude/sessions");
        fs::create_dir_all(&sessions).unwrap();
        let row = serde_json::json!({"pid": pid, "sessionId": SESSION});
        fs::write(sessions.join(format!("{pid}.json")), row.to_string()).unwrap();
        pid
    }

    pub(crate) fn home(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn file(&self) -> PathBuf {
        let folder = self.home().join(".claude/projects/-home-dev-proj");
        fs::create_dir_all(&folder).unwrap();
        folder.join(format!("{SESSION}.jsonl"))
    }

    pub(crate) fn generate(&self, session: &ClaudeSession) {
        let file = fs::File::create(self.file()).unwrap();
        session.write_to(std::io::BufWriter::new(file)).unwrap();
        self.rest();
    }

    /// Gives the session a time of change that does not depend on when the test runs.
    pub(crate) fn rest(&self) {
        let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_771_999_000);
        let file = fs::File::options().append(true).open(self.file()).unwrap();
        file.set_modified(then).unwrap();
    }

    pub(crate) fn write(&self, bytes: impl AsRef<[u8]>) {
        fs::write(self.file(), bytes).unwrap();
        self.rest();
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        fs::read(self.file()).unwrap()
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.home().join("state/ctxfold")
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.home().join("config/ctxfold/config.toml")
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ctxfold"));
        command
            .env_clear()
            .env("HOME", self.home())
            .env("XDG_CONFIG_HOME", self.home().join("config"))
            .env("XDG_STATE_HOME", self.home().join("state"))
            .env("CTXFOLD_TEST_NOW_MS", NOW_MS)
            .env("COLUMNS", "100")
            .env("TZ", "UTC")
            .current_dir(self.home().join("proj"))
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn ctxfold(&self, arguments: &[&str]) -> Ran {
        self.ran(&mut self.command(arguments))
    }

    pub(crate) fn ran(&self, command: &mut Command) -> Ran {
        let output = command.output().expect("the binary can be started");
        let home = self.home().to_str().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap().replace(home, "HOME");
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Runs what must change nothing.
    #[track_caller]
    pub(crate) fn refused(&self, code: i32, arguments: &[&str], reason: &str) -> Ran {
        let before = self.bytes();
        let ran = self.ctxfold(arguments);
        assert_eq!(ran.code, code, "{ran:?}");
        assert!(ran.stderr.contains(reason), "{ran:?}");
        assert!(self.bytes() == before, "a refusal changes nothing");
        ran
    }
}
