//! The environment, read once: variables, folders, clock and terminal. Nothing else in the project
//! reads them.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::error::{CommandError, CommandResult};

/// What the process was started with.
#[derive(Debug, Clone)]
pub(crate) struct Env {
    /// The user's home folder.
    pub(crate) home: Option<PathBuf>,
    /// The working directory.
    pub(crate) cwd: PathBuf,
    /// `config.toml`, which need not exist.
    pub(crate) config_file: PathBuf,
    /// Folder of the journal; need not exist.
    pub(crate) state_dir: PathBuf,
    /// Claude Code's config folder.
    pub(crate) claude_root: PathBuf,
    /// Codex's home.
    pub(crate) codex_home: PathBuf,
}

/// A variable that is set and not empty.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the environment"
)]
pub(crate) fn var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}

/// A variable that holds a path.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the environment"
)]
fn path_var(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|v| !v.is_empty())
        .map(PathBuf::from)
}

impl Env {
    /// Reads the environment.
    pub(crate) fn read() -> Env {
        let home = path_var("HOME")
            .or_else(|| path_var("USERPROFILE"))
            .or_else(std::env::home_dir);
        let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        // The XDG specification wants relative paths to be ignored.
        let xdg = |name: &str, under_home: &str| {
            path_var(name)
                .filter(|p| p.is_absolute())
                .or_else(|| home.as_ref().map(|h| h.join(under_home)))
                .unwrap_or_else(|| cwd.join(under_home))
                .join("ctxfold")
        };
        let in_home = |folder: &str| home.as_deref().unwrap_or(Path::new(".")).join(folder);
        Env {
            config_file: path_var("CTXFOLD_CONFIG")
                .unwrap_or_else(|| xdg("XDG_CONFIG_HOME", ".config").join("config.toml")),
            state_dir: xdg("XDG_STATE_HOME", ".local/state"),
            claude_root: path_var("CLAUDE_CONFIG_DIR").unwrap_or_else(|| in_home(".claude")),
            codex_home: path_var("CODEX_HOME").unwrap_or_else(|| in_home(".codex")),
            home,
            cwd,
        }
    }

    /// Now, in milliseconds since the Unix epoch.
    #[expect(clippy::unused_self, reason = "the clock belongs to the environment")]
    pub(crate) fn now_ms(&self) -> i64 {
        if let Some(fixed) = for_tests("CTXFOLD_TEST_NOW_MS") {
            return fixed;
        }
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
    }

    /// A path as people write it, with `~` for the home folder.
    pub(crate) fn show(&self, path: &Path) -> String {
        match self
            .home
            .as_ref()
            .and_then(|home| path.strip_prefix(home).ok())
        {
            Some(rest) if !rest.as_os_str().is_empty() => format!("~/{}", rest.display()),
            _ => path.display().to_string(),
        }
    }
}

/// The variables that name folders or a file, as far as they are set; paths made absolute.
pub(crate) fn folders() -> Vec<(&'static str, PathBuf)> {
    let named = |name| {
        let path = path_var(name)?;
        // A relative one counts for nothing here.
        if name.starts_with("XDG_") && path.is_relative() {
            return None;
        }
        Some((name, std::path::absolute(&path).unwrap_or(path)))
    };
    [
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "CTXFOLD_CONFIG",
        "XDG_CONFIG_HOME",
        "XDG_STATE_HOME",
    ]
    .into_iter()
    .filter_map(named)
    .collect()
}

/// The path of the running program.
///
/// # Errors
/// When the system does not tell, or the path is no text.
pub(crate) fn program() -> CommandResult<String> {
    let path = std::env::current_exe().map_err(|e| {
        CommandError::input(format!("the system does not tell where ctxfold is: {e}"))
    })?;
    path.into_os_string()
        .into_string()
        .map_err(|path| CommandError::input(format!("{} is no text", Path::new(&path).display())))
}

/// Whether talk goes to a terminal.
pub(crate) fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Whether data goes to a terminal.
pub(crate) fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Whether the user can be asked.
pub(crate) fn stdin_is_terminal() -> bool {
    std::io::stdin().is_terminal()
}

/// Columns for data: the terminal's, at most 120; 100 where there is none.
pub(crate) fn columns() -> usize {
    if let Some(columns) = var("COLUMNS").and_then(|v| v.parse::<usize>().ok()) {
        return columns.clamp(40, 200);
    }
    match terminal_size::terminal_size() {
        Some((terminal_size::Width(w), _)) if stdout_is_terminal() => usize::from(w).clamp(40, 120),
        _ => 100,
    }
}

/// A fresh random number for identifiers.
pub(crate) fn random() -> u128 {
    uuid::Uuid::new_v4().as_u128()
}

/// How long something may take before it says that it takes long.
pub(crate) fn patience(usual: Duration) -> Duration {
    for_tests("CTXFOLD_TEST_PATIENCE_MS").map_or(usual, Duration::from_millis)
}

/// What tests set in place of time, in debug builds alone.
fn for_tests<T: FromStr>(name: &str) -> Option<T> {
    let value = cfg!(debug_assertions).then(|| var(name)).flatten();
    value.and_then(|value| value.parse().ok())
}
