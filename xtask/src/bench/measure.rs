//! Wall time and peak memory of one command, measured by a process of its own.
//!
//! The kernel reports the largest peak among *all* the children that a process has waited for, so a
//! fresh copy of this program runs each command. On Linux the number starts at that copy's own
//! memory, some megabytes, which a bare process in the same table shows.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

use crate::shell::{Result, read, show};

/// A command of a case.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    /// How the table calls it.
    pub(super) name: &'static str,
    /// The program.
    pub(super) program: PathBuf,
    /// Its arguments.
    pub(super) arguments: Vec<String>,
    /// The home folder it gets, where it looks at one.
    pub(super) home: Option<PathBuf>,
    /// A file for its standard input.
    pub(super) stdin: Option<PathBuf>,
}

/// One run.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sample {
    pub(super) wall: Duration,
    pub(super) peak_bytes: u64,
}

impl Sample {
    pub(super) fn peak_mb(self) -> f64 {
        self.peak_bytes as f64 / 1e6
    }
}

/// Runs a command through a fresh copy of this program.
pub(super) fn in_own_process(measured: &Measured) -> Result<Sample> {
    let itself =
        std::env::current_exe().map_err(|error| format!("failed to find xtask: {error}"))?;
    let mut command = Command::new(itself);
    command
        .arg("measure")
        .arg(&measured.program)
        .args(&measured.arguments);
    if let Some(stdin) = &measured.stdin {
        command.env("CTXFOLD_BENCH_STDIN", stdin);
    }
    let answer = read(at_home(&mut command, measured))?;
    parse(&answer).ok_or_else(|| "the measuring process answered nonsense".into())
}

/// Runs a command as it is and returns what it prints.
pub(super) fn output(measured: &Measured) -> Result<String> {
    let mut command = Command::new(&measured.program);
    at_home(command.args(&measured.arguments), measured).stdin(stdin(measured.stdin.as_deref())?);
    let shown = show(&command);
    let output = command
        .output()
        .map_err(|error| format!("failed to start {shown}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!("{shown} ended with {}\n{}", output.status, stderr.trim()).into())
}

/// The folder for temporary files below a home.
fn temporary(home: &Path) -> PathBuf {
    home.join("tmp")
}

/// Empties it: a hook remembers there what it has said.
pub(super) fn forget(measured: &Measured) -> Result<()> {
    let Some(folder) = measured.home.as_deref().map(temporary) else {
        return Ok(());
    };
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    Ok(fs::create_dir_all(&folder)?)
}

fn at_home<'a>(command: &'a mut Command, measured: &Measured) -> &'a mut Command {
    if let Some(home) = &measured.home {
        for variable in [
            "XDG_CONFIG_HOME",
            "XDG_STATE_HOME",
            "XDG_RUNTIME_DIR",
            "CODEX_HOME",
        ] {
            command.env_remove(variable);
        }
        command.env("HOME", home).env("TMPDIR", temporary(home));
    }
    command
}

fn stdin(path: Option<&Path>) -> Result<Stdio> {
    let Some(path) = path else {
        return Ok(Stdio::null());
    };
    let file = File::open(path);
    Ok(file
        .map(Stdio::from)
        .map_err(|e| format!("failed to open {}: {e}", path.display()))?)
}

/// The hidden task behind [`in_own_process`]: runs the command that the arguments are, and prints
/// nanoseconds and bytes.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (program, rest) = arguments.split_first().ok_or("measure what?")?;
    let stdin = stdin(stdin_path().as_deref())?;
    let mut command = Command::new(program);
    command
        .args(rest)
        .stdin(stdin)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let start = Instant::now();
    let output = command
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .map_err(|error| format!("failed to run {program}: {error}"))?;
    let wall = start.elapsed();
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{program} ended with {}\n{}", output.status, stderr.trim()).into());
    }
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)
        .map_err(|error| format!("failed to read the usage: {error}"))?;
    // Kilobytes on Linux, bytes on macOS.
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    println!("{} {}", wall.as_nanos(), usage.max_rss() * unit);
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "passes a path from one copy of xtask to another"
)]
fn stdin_path() -> Option<PathBuf> {
    std::env::var_os("CTXFOLD_BENCH_STDIN").map(PathBuf::from)
}

fn parse(answer: &str) -> Option<Sample> {
    let (wall, peak) = answer.trim().split_once(' ')?;
    Some(Sample {
        wall: Duration::from_nanos(wall.parse().ok()?),
        peak_bytes: peak.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_parsed_and_nonsense_refused() {
        let sample = parse("1500000 2048\n").unwrap();
        assert_eq!((sample.wall.as_micros(), sample.peak_bytes), (1500, 2048));
        assert!(parse("fast small").is_none() && parse("1").is_none());
    }

    #[test]
    fn a_command_that_fails_is_no_sample() {
        let error = run(&["false".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("ended with"), "{error}");
        run(&["true".to_owned()]).unwrap();
    }
}
