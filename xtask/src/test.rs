//! `cargo xtask test`: everything that must hold, set-up included, on a fresh machine.
//!
//! Steps run one after the other and all of them run, whatever fails; the table at the end says
//! what took how long, and the last line counts tests and checks. A new kind of test is a line in
//! [`STEPS`].

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::shell::{Result, cargo, run as run_command, show};
use crate::{clients, fuzz, template, tidy};

/// One step, by name.
struct Step {
    name: &'static str,
    run: fn(&Options) -> Result<Count>,
}

/// The steps, cheapest findings first.
const STEPS: &[Step] = &[
    Step {
        name: "format",
        run: |_| check(&mut cargo(&["fmt", "--all", "--", "--check"])),
    },
    Step {
        name: "lints",
        run: lints,
    },
    Step {
        name: "tidy",
        run: |_| tidy::run(&[]).map(|()| Count::ONE),
    },
    Step {
        name: "clients",
        run: install_clients,
    },
    Step {
        name: "tests",
        run: tests,
    },
    Step {
        name: "template",
        run: |_| template::run(&[]).map(|()| Count::ONE),
    },
    Step {
        name: "docs",
        run: docs,
    },
    Step {
        name: "alone",
        run: each_crate_alone,
    },
    Step {
        name: "fuzz",
        run: fuzzing,
    },
];

const HELP: &str = "\
usage: cargo xtask test [--no-clients] [--only STEP]... [--skip STEP]... [--fuzz-seconds N]
                        [-- FILTER...]

  --no-clients      leave the real clients out; their tests are reported as not run
  --only STEP       run this step only; may be repeated
  --skip STEP       leave this step out; may be repeated
  --fuzz-seconds N  run each fuzz target this long in place of a minute
  FILTER            goes to the test binaries: a part of a test's name";

/// What the command line asked for.
#[derive(Debug, Default, PartialEq)]
struct Options {
    without_clients: bool,
    fuzz_seconds: Option<u64>,
    only: Vec<String>,
    skip: Vec<String>,
    filter: Vec<String>,
}

/// How many tests and checks ended how.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Count {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Count {
    /// One check that passed.
    pub(crate) const ONE: Self = Self {
        passed: 1,
        failed: 0,
        ignored: 0,
    };
    /// One check that failed.
    const FAILURE: Self = Self {
        passed: 0,
        failed: 1,
        ignored: 0,
    };

    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }
}

/// Runs the steps and prints the summary; an error where anything failed.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let options = parse(arguments)?;
    let mut rows = Vec::new();
    let mut total = Count::default();
    for step in STEPS.iter().filter(|step| options.wants(step.name)) {
        println!("\n=== {} ===", step.name);
        let start = Instant::now();
        let count = (step.run)(&options).unwrap_or_else(|error| {
            eprintln!("error: {error}");
            Count::FAILURE
        });
        rows.push((step.name, count, start.elapsed()));
        total.add(count);
    }
    println!("\n=== summary ===");
    for (name, count, took) in &rows {
        let mark = if count.failed == 0 { "ok" } else { "FAILED" };
        println!(
            "{name:<10} {mark:<7} {:>6} passed {:>4} failed {:>4} ignored {:>7.1} s",
            count.passed,
            count.failed,
            count.ignored,
            took.as_secs_f64()
        );
    }
    if options.without_clients {
        println!("the tests on the real clients were NOT RUN (--no-clients)");
    }
    println!("{} passed, {} failed", total.passed, total.failed);
    if total.failed == 0 {
        Ok(())
    } else {
        Err("not everything passed".into())
    }
}

fn parse(arguments: &[String]) -> Result<Options> {
    let mut options = Options::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--no-clients" => options.without_clients = true,
            "--fuzz-seconds" => {
                let seconds = rest.next().and_then(|number| number.parse().ok());
                options.fuzz_seconds = Some(seconds.ok_or("--fuzz-seconds takes a number")?);
            }
            "--only" => options.only.push(step_name(rest.next())?),
            "--skip" => options.skip.push(step_name(rest.next())?),
            "--" => options.filter.extend(rest.by_ref().cloned()),
            _ => return Err(format!("unknown argument {argument}\n{HELP}").into()),
        }
    }
    Ok(options)
}

fn step_name(name: Option<&String>) -> Result<String> {
    let known = STEPS.iter().map(|step| step.name);
    let known: Vec<&str> = known.collect();
    name.filter(|name| known.contains(&name.as_str()))
        .cloned()
        .ok_or_else(|| format!("a step is one of: {}", known.join(", ")).into())
}

impl Options {
    fn wants(&self, step: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|name| name == step);
        (self.only.is_empty() || named(&self.only)) && !named(&self.skip)
    }
}

fn check(command: &mut Command) -> Result<Count> {
    run_command(command).map(|()| Count::ONE)
}

fn lints(_: &Options) -> Result<Count> {
    check(&mut cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--quiet",
        "--",
        "-Dwarnings",
    ]))
}

fn install_clients(options: &Options) -> Result<Count> {
    if options.without_clients {
        println!("left out");
        return Ok(Count::default());
    }
    clients::run(&[]).map(|()| Count::ONE)
}

/// Every test of the workspace, those in the documentation included. No target is named: only then
/// does cargo build the examples as programs, which some tests run.
fn tests(options: &Options) -> Result<Count> {
    let mut command = cargo(&["test", "--workspace", "--no-fail-fast"]);
    if options.without_clients {
        command
            .env_remove("CI")
            .env_remove("CTXFOLD_REQUIRE_CLIENTS");
    } else {
        command.env("CTXFOLD_REQUIRE_CLIENTS", "1");
    }
    counted(command.arg("--").args(&options.filter))
}

fn docs(_: &Options) -> Result<Count> {
    let mut command = cargo(&["doc", "--workspace", "--no-deps", "--quiet"]);
    check(command.env("RUSTDOCFLAGS", "-Dwarnings"))
}

/// Builds each crate by itself: features that others switch on must not hide a missing one.
fn each_crate_alone(_: &Options) -> Result<Count> {
    let mut count = Count::default();
    for package in tidy::workspace_packages()? {
        let mut command = cargo(&["check", "--quiet", "--package", &package]);
        count.add(check(&mut command).unwrap_or_else(|error| {
            eprintln!("error: {error}");
            Count::FAILURE
        }));
    }
    Ok(count)
}

/// Runs every fuzz target for a minute, or as long as `--fuzz-seconds` says.
fn fuzzing(options: &Options) -> Result<Count> {
    let passed = fuzz::fuzz(options.fuzz_seconds.unwrap_or(60), &[])? as u64;
    Ok(Count {
        passed,
        ..Count::default()
    })
}

/// Runs a test command, shows its output, and adds up what its harnesses report.
fn counted(command: &mut Command) -> Result<Count> {
    let shown = show(command);
    let failed_to = |what: &str, error| format!("failed to {what} {shown}: {error}");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| failed_to("start", error))?;
    let mut total = Count::default();
    for line in child
        .stdout
        .take()
        .map(BufReader::new)
        .into_iter()
        .flat_map(BufRead::lines)
    {
        let line = line.map_err(|error| failed_to("read", error))?;
        println!("{line}");
        if let Some(count) = harness_result(&line) {
            total.add(count);
        }
    }
    let status = child.wait().map_err(|error| failed_to("wait for", error))?;
    if !status.success() && total.failed == 0 {
        // It did not even build, or a binary died before it could report.
        eprintln!("error: {shown} ended with {status}");
        total.add(Count::FAILURE);
    }
    Ok(total)
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

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn harness_lines_are_counted() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 4 filtered \
                    out; finished in 0.00s";
        assert_eq!(
            harness_result(line),
            Some(Count {
                passed: 12,
                failed: 3,
                ignored: 1
            })
        );
        assert_eq!(harness_result("test clients::one ... ok"), None);
        assert_eq!(
            harness_result("test result: ok. many passed; 0 failed"),
            None
        );
    }

    #[test]
    fn a_command_that_fails_without_a_report_counts_as_a_failure() {
        let mut broken = Command::new("false");
        assert_eq!(counted(&mut broken).unwrap(), Count::FAILURE);
        assert!(counted(&mut Command::new("/nowhere/cargo")).is_err());
    }

    #[test]
    fn steps_are_chosen_by_name_and_misspelt_ones_refused() {
        let options = parse(&words("--only tests --only docs --skip docs -- some name")).unwrap();
        assert!(options.wants("tests") && !options.wants("docs") && !options.wants("tidy"));
        assert_eq!(options.filter, ["some", "name"]);
        assert!(parse(&words("--skip tets")).is_err());
        assert!(parse(&words("--only")).is_err());
        assert!(parse(&words("everything")).is_err());
    }
}
