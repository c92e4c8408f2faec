//! The test programs of the workspace: built in one go, run one after the other, each with a limit.
//!
//! `cargo test` would run them too, but one that hangs would take everything after it along, and
//! cargo's lock on the build folder would keep tests that run cargo themselves waiting.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use cargo_metadata::{Artifact, Message};

use super::Count;
use crate::shell::{self, Result, cargo, show};

/// The longest that one program may take. The slowest drive real clients through many sessions.
const LONGEST: Duration = Duration::from_mins(20);
/// The longest that compiling everything may take.
const LONGEST_BUILD: Duration = Duration::from_mins(40);

/// One test program.
pub(super) struct Program {
    /// The package's folder and the target, as in `session-claude it`.
    name: String,
    path: PathBuf,
    /// The package's folder, where cargo would run it.
    folder: PathBuf,
}

/// Builds all of them. No target is named: only then does cargo build the examples as programs,
/// which some tests run.
pub(super) fn build() -> Result<Vec<Program>> {
    let mut command = cargo(&[
        "test",
        "--workspace",
        "--locked",
        "--no-run",
        "--quiet",
        "--message-format=json-render-diagnostics",
    ]);
    let mut output = String::new();
    let status = shell::lines(&mut command, LONGEST_BUILD, |line| {
        output.push_str(line);
        output.push('\n');
    })?;
    if !status.success() {
        return Err(format!("{} ended with {status}", show(&command)).into());
    }
    let mut programs: Vec<Program> = Message::parse_stream(output.as_bytes())
        .filter_map(|message| match message {
            Ok(Message::CompilerArtifact(artifact)) => program(artifact),
            _ => None,
        })
        .collect();
    if programs.is_empty() {
        return Err(format!("{} built no tests", show(&command)).into());
    }
    // What cargo finishes first depends on the machine. The libraries, which are quick, come first.
    programs.sort_by_key(|program| (program.name.starts_with("cli "), program.name.clone()));
    Ok(programs)
}

fn program(artifact: Artifact) -> Option<Program> {
    let path = artifact.executable.filter(|_| artifact.profile.test)?;
    let folder = artifact.manifest_path.parent()?;
    Some(Program {
        name: format!("{} {}", folder.file_name()?, artifact.target.name),
        path: path.into_std_path_buf(),
        folder: folder.to_owned().into_std_path_buf(),
    })
}

impl Program {
    /// Runs the tests whose names hold one of the filters, or all where there is none.
    pub(super) fn run(&self, filters: &[String], with_clients: bool) -> Count {
        println!("\n--- {} ---", self.name);
        let start = Instant::now();
        let mut command = Command::new(&self.path);
        command
            .args(filters)
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder);
        let count = counted(&mut command, with_clients);
        println!(
            "--- {} took {:.1} s",
            self.name,
            start.elapsed().as_secs_f64()
        );
        count
    }
}

/// Runs a test command, shows its output, and adds up what its harnesses report.
pub(super) fn counted(command: &mut Command, with_clients: bool) -> Count {
    if with_clients {
        command.env("CTXFOLD_REQUIRE_CLIENTS", "1");
    } else {
        command
            .env_remove("CI")
            .env_remove("CTXFOLD_REQUIRE_CLIENTS");
    }
    let mut total = Count::default();
    let status = shell::lines(command, LONGEST, |line| {
        println!("{line}");
        total.failures.extend(failed_test(line).map(str::to_owned));
        if let Some(count) = harness_result(line) {
            total.add(count);
        }
    });
    let failure = match status {
        Ok(status) if status.success() || total.failed > 0 => return total,
        // It died before it could report.
        Ok(status) => format!("{} ended with {status}", show(command)),
        Err(error) => error.to_string(),
    };
    total.add(Count::failure(failure));
    total
}

/// The name in a line of the standard test harness that reports a test as failed.
fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

/// The numbers of a `test result:` line of the standard test harness.
fn harness_result(line: &str) -> Option<Count> {
    let rest = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    let mut count = Count::default();
    for part in rest.split("; ") {
        let Some((number, what)) = part.split_once(' ') else {
            continue;
        };
        let slot = match what {
            "passed" => &mut count.passed,
            "failed" => &mut count.failed,
            "ignored" => &mut count.ignored,
            _ => continue,
        };
        *slot = number.parse().ok()?;
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harness_lines_are_counted() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 4 filtered \
                    out; finished in 0.00s";
        let expected = Count {
            passed: 12,
            failed: 3,
            ignored: 1,
            ..Count::default()
        };
        assert_eq!(harness_result(line), Some(expected));
        assert_eq!(harness_result("test clients::one ... ok"), None);
        assert_eq!(
            harness_result("test result: ok. many passed; 0 failed"),
            None
        );
    }

    #[test]
    fn a_command_that_fails_without_a_report_counts_as_a_failure() {
        let mut broken = Command::new("false");
        assert_eq!(counted(&mut broken, false).failed, 1);
        let mut missing = Command::new("/nowhere/tests");
        let count = counted(&mut missing, false);
        assert_eq!(count.failed, 1);
        assert!(count.failures[0].contains("/nowhere/tests"), "{count:?}");
    }

    #[test]
    fn what_was_reported_before_a_crash_counts_beside_the_failure() {
        let mut crashes = Command::new("sh");
        crashes.args(["-c", "echo 'test result: ok. 2 passed; 0 failed'; exit 101"]);
        let count = counted(&mut crashes, true);
        assert_eq!((count.passed, count.failed, count.ignored), (2, 1, 0));
    }

    #[test]
    fn failed_tests_are_named() {
        let mut fails = Command::new("sh");
        fails.args([
            "-c",
            "echo 'test a::b ... ok'; echo 'test a::c ... FAILED'; \
             echo 'test result: FAILED. 1 passed; 1 failed'; exit 101",
        ]);
        let count = counted(&mut fails, true);
        assert_eq!((count.passed, count.failed), (1, 1));
        assert_eq!(count.failures, ["a::c"]);
    }
}
