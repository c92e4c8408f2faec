//! A packaged marketplace, a home of Claude Code, and mock models on both sides.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use ctxfold_test_support::{
    ClaudeHome, Client, GeminiTurn, MockAnthropic, MockGemini, Output, Turn, clients,
};
use serde_json::json;
use tempfile::TempDir;

/// A summary as a model writes it, and the words by which it is known.
pub(crate) const SUMMARY: &str = "\
## 1. Request and intent
OUR-SUMMARY: the user asked for lists of numbers and then for a word.
## 2. Technical concepts
seq and echo in a shell.
## 3. Files and code
No file was touched.
## 4. Errors and fixes
Nothing failed.
## 5. Problem solving
The lists were made one after the other.
## 6. User messages
Every request was answered.
## 7. Pending tasks
None.
## 8. Current work
None.
## 9. Next step
The user's.";
pub(crate) const OURS: &str = "OUR-SUMMARY";
/// The words of the client's own summary.
pub(crate) const THEIRS: &str = "THE-CLIENTS-OWN-SUMMARY";

/// Runs `cargo xtask package` with the binary under test.
pub(crate) fn package(out: &Path) {
    let binary = stripped();
    let ran = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--package", "xtask", "--", "package"])
        .arg("--replace")
        .arg("--binary")
        .arg(binary)
        .arg("--out")
        .arg(out)
        .current_dir(clients::workspace())
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

/// The binary under test without what only a debugger reads: a tenth of the size to copy.
fn stripped() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let built = Path::new(env!("CARGO_BIN_EXE_ctxfold"));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ctxfold-stripped");
        let ran = Command::new("strip")
            .arg("-o")
            .arg(&path)
            .arg(built)
            .status();
        if ran.is_ok_and(|status| status.success()) {
            path
        } else {
            built.to_owned()
        }
    })
}

/// The package, made once for all tests, at a path with a space and a letter outside ASCII.
pub(crate) fn dist() -> &'static Path {
    static DIST: OnceLock<PathBuf> = OnceLock::new();
    DIST.get_or_init(|| {
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("a markét/dist");
        package(&out);
        out
    })
}

/// A copy of a folder, modes and all.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The binary of a packaged plugin, behind its launcher.
pub(crate) fn binary(market: &Path, plugin: &str) -> PathBuf {
    binary_in(&market.join("plugins").join(plugin))
}

/// The same in the folder of a plugin or extension.
pub(crate) fn binary_in(part: &Path) -> PathBuf {
    let entries = fs::read_dir(part.join("bin")).unwrap();
    let folders = entries.map(|entry| entry.unwrap().path());
    folders
        .map(|folder| folder.join("ctxfold"))
        .find(|path| path.is_file())
        .unwrap()
}

/// Puts a script where a program was.
pub(crate) fn replace(program: &Path, script: &str) {
    fs::remove_file(program).unwrap();
    fs::write(program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
}

pub(crate) struct Lab {
    pub(crate) mock: MockAnthropic,
    pub(crate) gemini: MockGemini,
    pub(crate) home: ClaudeHome,
}

impl Lab {
    /// A home with a space and a letter outside ASCII in its name, without a plugin.
    pub(crate) fn bare(client: &Client) -> Lab {
        let mock = MockAnthropic::start();
        for name in ["FIRST", "SECOND"] {
            let command = format!("seq 1 900; echo {name}-$((40+1)); seq 901 1800");
            mock.on(
                name,
                [
                    Turn::tool("Bash", json!({"command": command, "description": "count"})),
                    Turn::text(format!("{name} done")),
                ],
            );
        }
        mock.set_summary(THEIRS);
        let gemini = MockGemini::start();
        let mut home = ClaudeHome::named(client, &mock, "ctx fold ü-");
        home.set_env("CTXFOLD_GEMINI_BASE_URL", &gemini.url());
        Lab { mock, gemini, home }
    }

    /// The same with ctxfold-compact from a marketplace, switched on, and with a key.
    pub(crate) fn with(client: &Client, market: &Path) -> Lab {
        let lab = Lab::bare(client);
        lab.install(
            market,
            &["ctxfold-core@ctxfold", "--config", "apiKey=KEY-OF-A-TEST"],
        );
        lab.done(&["plugin", "install", "ctxfold-compact@ctxfold"]);
        let on = lab.home.prompt("/ctxfold on").run().success();
        assert!(on.text().contains("ctxfold is on"), "{}", on.text());
        lab.mock.log().take();
        lab
    }

    /// Adds a marketplace and installs from it.
    pub(crate) fn install(&self, market: &Path, plugin: &[&str]) {
        self.done(&["plugin", "marketplace", "add", market.to_str().unwrap()]);
        self.done(&[&["plugin", "install"], plugin].concat());
    }

    /// Runs the client with these arguments, which must succeed.
    #[track_caller]
    pub(crate) fn done(&self, arguments: &[&str]) -> Output {
        let output = self.home.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        output
    }

    /// A conversation with two long outputs and four short answers, made by one process; its id.
    pub(crate) fn conversation(&self) -> String {
        let mut live = self.home.live(&[]);
        let mut id = String::new();
        for prompt in ["FIRST", "SECOND", "THIRD", "FOURTH", "FIFTH", "SIXTH"] {
            let result = live.say(&format!("{prompt}: go on"));
            assert_eq!(result["is_error"], false, "{result}");
            result["session_id"].as_str().unwrap().clone_into(&mut id);
        }
        drop(live);
        self.mock.log().take();
        id
    }

    /// One prompt in a new process; what it printed as stream-json, the transcript lines included.
    #[track_caller]
    pub(crate) fn stream(&self, id: &str, text: &str) -> String {
        let mut command = self.home.command();
        command.args(["-p", text, "--resume", id, "--verbose"]);
        command.args([
            "--output-format",
            "stream-json",
            "--dangerously-skip-permissions",
        ]);
        let output = command.output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{printed}");
        printed
    }

    /// Answers the next request for a summary.
    pub(crate) fn expect_summary(&self) {
        self.gemini.next(GeminiTurn::text(SUMMARY));
    }
}

/// A marketplace of one's own to change.
pub(crate) fn own_market() -> (TempDir, PathBuf) {
    let folder = TempDir::with_prefix("a markét ").unwrap();
    let market = folder.path().join("dist");
    for part in [".claude-plugin", "plugins"] {
        copy(&dist().join(part), &market.join(part));
    }
    (folder, market)
}
