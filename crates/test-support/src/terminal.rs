//! A client in a real terminal: one tmux server a terminal, on a socket of its own.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::clients::search_path;
use crate::process::{Output, run};
use crate::wait::poll;

const TMUX_LIMIT: Duration = Duration::from_secs(20);

/// A program in a tmux session. Dropping it ends the session and the tmux server with it.
#[derive(Debug)]
pub struct Terminal {
    /// Holds the tmux server's socket, and goes with it.
    own: TempDir,
}

impl Terminal {
    /// Whether tmux can be run here.
    pub fn is_available() -> bool {
        Command::new("tmux")
            .arg("-V")
            .output()
            .is_ok_and(|output| output.status.success())
    }

    /// Starts `program` in a terminal of `columns` by `rows`, in `folder`, with only `env`.
    ///
    /// # Panics
    ///
    /// When tmux is missing or can't start the session.
    pub fn start(
        program: &Path,
        arguments: &[&OsStr],
        folder: &Path,
        env: &BTreeMap<String, String>,
        (columns, rows): (u16, u16),
    ) -> Self {
        let terminal = Self {
            own: TempDir::with_prefix("tmux-").expect("a temporary folder can be made"),
        };
        let mut command = terminal.tmux();
        command
            .args(["-f", "/dev/null", "new-session", "-d", "-s", "main"])
            .args(["-x", &columns.to_string(), "-y", &rows.to_string(), "-c"])
            .arg(folder)
            .args(["env", "-i", "TERM=xterm-256color"]);
        for (key, value) in env {
            command.arg(format!("{key}={value}"));
        }
        command.arg(program).args(arguments);
        let output = run(&mut command, b"", TMUX_LIMIT);
        assert!(
            output.status.success(),
            "tmux failed to start: {}",
            output.stderr
        );
        terminal
    }

    /// Types text, as it is.
    pub fn type_text(&self, text: &str) {
        self.check(&["send-keys", "-t", "main", "-l", "--", text]);
    }

    /// Presses a key by its tmux name: `Enter`, `Escape`, `C-c`, `Up`.
    pub fn press(&self, key: &str) {
        self.check(&["send-keys", "-t", "main", key]);
    }

    /// The screen as plain text, or nothing once the program has ended.
    pub fn screen(&self) -> String {
        self.capture(&["capture-pane", "-p", "-t", "main"])
    }

    /// The screen with its escape sequences for colours.
    pub fn screen_with_colours(&self) -> String {
        self.capture(&["capture-pane", "-p", "-e", "-t", "main"])
    }

    /// Waits until the screen holds `text` and returns the screen.
    ///
    /// # Panics
    ///
    /// When time is up first; the panic shows the screen.
    pub fn wait_for(&self, text: &str, limit: Duration) -> String {
        self.wait_until(limit, |screen| screen.contains(text))
            .unwrap_or_else(|screen| panic!("the screen never showed {text:?}:\n{screen}"))
    }

    /// Waits until the screen satisfies `test`.
    ///
    /// # Errors
    ///
    /// The last screen, when time is up first.
    pub fn wait_until(
        &self,
        limit: Duration,
        test: impl Fn(&str) -> bool,
    ) -> Result<String, String> {
        poll(limit, || Some(self.screen()).filter(|screen| test(screen)))
            .ok_or_else(|| self.screen())
    }

    /// Waits until the program has ended, and says whether it did.
    pub fn wait_for_end(&self, limit: Duration) -> bool {
        poll(limit, || {
            let alive = run(
                self.tmux().args(["has-session", "-t", "main"]),
                b"",
                TMUX_LIMIT,
            );
            (!alive.status.success()).then_some(())
        })
        .is_some()
    }

    fn capture(&self, arguments: &[&str]) -> String {
        run(self.tmux().args(arguments), b"", TMUX_LIMIT).stdout
    }

    fn check(&self, arguments: &[&str]) -> Output {
        let output = run(self.tmux().args(arguments), b"", TMUX_LIMIT);
        assert!(
            output.status.success(),
            "tmux {arguments:?} failed: {}",
            output.stderr
        );
        output
    }

    fn tmux(&self) -> Command {
        let mut command = Command::new("tmux");
        command
            .env_clear()
            .env("PATH", search_path())
            .env("LANG", "C.UTF-8");
        command
            .arg("-S")
            .arg(self.own.path().join("socket"))
            .arg("-u");
        command
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Ends this terminal's own server; there is none where the program has ended already.
        drop(self.tmux().arg("kill-server").output());
    }
}
