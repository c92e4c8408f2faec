//! The pinned real clients that `cargo xtask clients` installs under `target/clients`.
//!
//! A test that needs one starts with [`require_client!`](crate::require_client): without the client it reports itself
//! as not run on standard error and returns, unless `CI=true` or `CTXFOLD_REQUIRE_CLIENTS=1`, where
//! it fails. This module alone reads the environment: those two variables, `PATH`, and nothing of
//! the developer's own set-up.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The versions of Claude Code that the project is tested with, newest first.
pub const CLAUDE: [&str; 2] = ["2.1.332", "2.1.197"];
/// The versions of Codex that the project is tested with, newest first.
pub const CODEX: [&str; 3] = ["0.171.0", "0.150.1", "0.144.6"];
/// The version of Gemini CLI that the project is tested with.
pub const GEMINI: [&str; 1] = ["0.61.0"];

/// One installed client.
#[derive(Debug, Clone)]
pub struct Client {
    name: &'static str,
    version: String,
    program: PathBuf,
}

impl Client {
    /// `claude`, `codex` or `gemini`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The version, as in `2.1.332`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The program to run.
    pub fn program(&self) -> &Path {
        &self.program
    }
}

/// Claude Code of that version, where it is installed.
pub fn claude(version: &str) -> Option<Client> {
    find("claude", version)
}

/// Codex of that version, where it is installed.
pub fn codex(version: &str) -> Option<Client> {
    find("codex", version)
}

/// Gemini CLI of that version, where it is installed.
pub fn gemini(version: &str) -> Option<Client> {
    find("gemini", version)
}

fn find(name: &'static str, version: &str) -> Option<Client> {
    let folder = workspace()
        .join("target/clients")
        .join(format!("{name}-{version}"));
    let program = folder.join("node_modules/.bin").join(name);
    program.exists().then(|| Client {
        name,
        version: version.to_owned(),
        program,
    })
}

/// The root folder of the workspace.
pub fn workspace() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors()
        .nth(2)
        .expect("this crate lies two folders below the root")
}

/// Says on standard error, past the test harness's capture, that a test did not run.
///
/// # Panics
///
/// Where clients are required: `CI=true` or `CTXFOLD_REQUIRE_CLIENTS=1`.
pub fn report_missing(name: &str, version: &str) {
    let current = std::thread::current();
    match missing(
        current.name().unwrap_or("a test"),
        name,
        version,
        required(),
    ) {
        // A closed standard error must not turn a missing client into another failure.
        Ok(report) => drop(writeln!(std::io::stderr(), "{report}")),
        Err(failure) => panic!("{failure}"),
    }
}

/// Says on standard error that a test, or a part of one, did not run, and why.
///
/// # Panics
///
/// Where nothing may be left out: `CI=true` or `CTXFOLD_REQUIRE_CLIENTS=1`.
pub fn report_not_run(why: &str) {
    let current = std::thread::current();
    let test = current.name().unwrap_or("a test");
    assert!(!required(), "{test}: {why}");
    drop(writeln!(std::io::stderr(), "NOT RUN: {test}: {why}"));
}

/// What to say about a missing client: a report where the test may be left, else a failure.
fn missing(test: &str, name: &str, version: &str, required: bool) -> Result<String, String> {
    let text = format!("{test}: {name} {version} is not installed; run `cargo xtask clients`");
    if required {
        Err(text)
    } else {
        Ok(format!("NOT RUN: {text}"))
    }
}

/// Takes the client of a kind and version, or leaves the test with a report that it did not run.
///
/// # Examples
///
/// ```no_run
/// let client = ctxfold_test_support::require_client!(claude, "2.1.332");
/// println!("{}", client.program().display());
/// ```
#[macro_export]
macro_rules! require_client {
    ($kind:ident, $version:expr) => {
        match $crate::clients::$kind($version) {
            Some(client) => client,
            None => {
                $crate::clients::report_missing(stringify!($kind), $version);
                return;
            }
        }
    };
}

#[expect(
    clippy::disallowed_methods,
    reason = "decides how a missing client is reported"
)]
fn required() -> bool {
    let is = |key: &str, value: &str| std::env::var_os(key).is_some_and(|found| found == value);
    is("CI", "true") || is("CTXFOLD_REQUIRE_CLIENTS", "1")
}

/// The search path that the real clients get: node and the usual tools are found through it.
#[expect(
    clippy::disallowed_methods,
    reason = "clients need the machine's node and shell"
)]
pub(crate) fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_client_is_a_failure_only_where_it_is_required() {
        assert!(claude("0.0.0").is_none());
        let report = missing("a::test", "claude", "0.0.0", false).unwrap();
        assert!(
            report.starts_with("NOT RUN: a::test: claude 0.0.0 "),
            "{report}"
        );
        assert!(missing("a::test", "claude", "0.0.0", true).is_err());
    }

    #[test]
    fn the_workspace_is_found_from_here() {
        assert!(workspace().join("crates/test-support/Cargo.toml").is_file());
    }
}
