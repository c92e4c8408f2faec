//! `cargo xtask test`: everything that must hold, set-up included, on a fresh machine.
//!
//! Steps run one after the other and all of them run, whatever fails; the table at the end says
//! what took how long, and the last line counts tests and checks. A new kind of test is a line in
//! [`STEPS`]. Nothing waits for ever: each test program has a limit, and so has the whole.

mod programs;

use std::fmt::Display;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::shell::{Result, be_over_in, cargo, run as run_command};
use crate::{clients, fuzz, template, tidy};

/// The longest that everything may take, when no other limit is named.
const LONGEST: Duration = Duration::from_mins(85);

/// One step, by name.
struct Step {
    name: &'static str,
    run: fn(&Options) -> Result<Count>,
}

/// The steps, cheapest findings first. Those that only check come together: they share what they
/// compile of the dependencies.
const STEPS: &[Step] = &[
    Step {
        name: "format",
        run: |_| check(&mut cargo(&["fmt", "--all", "--", "--check"])),
    },
    Step {
        name: "tidy",
        run: |_| tidy::run(&[]).map(|()| Count::ONE),
    },
    Step {
        name: "tools",
        run: |options| Ok(tools(options)),
    },
    Step {
        name: "clients",
        run: install_clients,
    },
    Step {
        name: "lints",
        run: lints,
    },
    Step {
        name: "alone",
        run: each_crate_alone,
    },
    Step {
        name: "docs",
        run: docs,
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
        name: "fuzz",
        run: fuzzing,
    },
];

const HELP: &str = "\
usage: cargo xtask test [--no-clients] [--only STEP]... [--skip STEP]... [--fuzz-seconds N]
                        [--minutes N] [-- FILTER...]

  --no-clients      leave the real clients out; their tests are reported as not run
  --only STEP       run this step only; may be repeated
  --skip STEP       leave this step out; may be repeated
  --fuzz-seconds N  run each fuzz target this long in place of a minute
  --minutes N       be over after N minutes in place of 85: what runs then has failed
  FILTER            goes to the test binaries: a part of a test's name";

/// What the command line asked for.
#[derive(Debug, Default, PartialEq)]
struct Options {
    without_clients: bool,
    fuzz_seconds: Option<u64>,
    minutes: Option<u64>,
    only: Vec<String>,
    skip: Vec<String>,
    filter: Vec<String>,
}

/// How many tests and checks ended how.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Count {
    passed: u64,
    failed: u64,
    ignored: u64,
    /// What failed: the names of tests, and the reasons of everything else.
    failures: Vec<String>,
}

impl Count {
    /// One check that passed.
    pub(crate) const ONE: Self = Self {
        passed: 1,
        failed: 0,
        ignored: 0,
        failures: Vec::new(),
    };

    /// One check that failed. Says why at once, too.
    fn failure(why: impl Display) -> Self {
        eprintln!("error: {why}");
        Self {
            failed: 1,
            failures: vec![why.to_string()],
            ..Self::default()
        }
    }

    fn add(&mut self, other: Self) {
        self.failures.extend(other.failures);
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }
}

/// Runs the steps and prints the summary; an error where anything failed.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let options = parse(arguments)?;
    let begin = Instant::now();
    be_over_in(options.minutes.map_or(LONGEST, Duration::from_mins));
    let mut rows = Vec::new();
    for step in STEPS.iter().filter(|step| options.wants(step.name)) {
        let so_far = begin.elapsed().as_secs();
        println!(
            "\n=== {} (after {}:{:02}) ===",
            step.name,
            so_far / 60,
            so_far % 60
        );
        let start = Instant::now();
        let count = (step.run)(&options).unwrap_or_else(Count::failure);
        rows.push((step.name, count, start.elapsed()));
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
    let mut total = Count::default();
    for (name, count, _) in rows {
        for failure in &count.failures {
            println!("failed in {name}: {failure}");
        }
        total.add(count);
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
            "--fuzz-seconds" => options.fuzz_seconds = Some(number(argument, rest.next())?),
            "--minutes" => options.minutes = Some(number(argument, rest.next())?),
            "--only" => options.only.push(step_name(rest.next())?),
            "--skip" => options.skip.push(step_name(rest.next())?),
            "--" => options.filter.extend(rest.by_ref().cloned()),
            _ => return Err(format!("unknown argument {argument}\n{HELP}").into()),
        }
    }
    Ok(options)
}

fn number(flag: &str, value: Option<&String>) -> Result<u64> {
    let value = value.and_then(|value| value.parse().ok());
    value.ok_or_else(|| format!("{flag} takes a number").into())
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
        "--locked",
        "--quiet",
        "--",
        "-Dwarnings",
    ]))
}

/// The programs that tests run and that cargo and npm do not bring.
fn tools(options: &Options) -> Count {
    let mut count = Count::default();
    for (program, flag, why) in [
        (
            "git",
            "--version",
            "tidy and several tests read repositories",
        ),
        ("node", "--version", "the clients run on it; 20 or newer"),
        ("npm", "--version", "the clients come from its registry"),
        ("tmux", "-V", "the clients' terminals are tested in it"),
    ] {
        if options.without_clients && program != "git" {
            continue;
        }
        match Command::new(program).arg(flag).output() {
            Ok(output) if output.status.success() => count.add(Count::ONE),
            _ => {
                count.add(Count::failure(format_args!(
                    "{program} was not found ({why}); install it, then run this again"
                )));
            }
        }
    }
    count
}

fn install_clients(options: &Options) -> Result<Count> {
    if options.without_clients {
        println!("left out");
        return Ok(Count::default());
    }
    clients::run(&[]).map(|()| Count::ONE)
}

/// Every test of the workspace, those in the documentation included.
fn tests(options: &Options) -> Result<Count> {
    let with_clients = !options.without_clients;
    let mut count = Count::default();
    for program in programs::build()? {
        count.add(program.run(&options.filter, with_clients));
    }
    println!("\n--- documentation ---");
    let mut examples = cargo(&["test", "--workspace", "--locked", "--doc", "--no-fail-fast"]);
    examples.arg("--").args(&options.filter);
    count.add(programs::counted(&mut examples, with_clients));
    Ok(count)
}

fn docs(_: &Options) -> Result<Count> {
    let mut command = cargo(&["doc", "--workspace", "--no-deps", "--locked", "--quiet"]);
    check(command.env("RUSTDOCFLAGS", "-Dwarnings"))
}

/// Builds each crate by itself: features that others switch on must not hide a missing one.
fn each_crate_alone(_: &Options) -> Result<Count> {
    let mut count = Count::default();
    for package in tidy::workspace_packages()? {
        let mut command = cargo(&["check", "--locked", "--quiet", "--package", &package]);
        count.add(check(&mut command).unwrap_or_else(Count::failure));
    }
    Ok(count)
}

/// Runs every fuzz target for a minute, or as long as `--fuzz-seconds` says. The seed is fixed, so
/// that the outcome depends on the code; `cargo xtask fuzz` is for new inputs.
fn fuzzing(options: &Options) -> Result<Count> {
    let passed = fuzz::fuzz(options.fuzz_seconds.unwrap_or(60), &[], Some(1))? as u64;
    Ok(Count {
        passed,
        ..Count::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn steps_are_chosen_by_name_and_misspelt_ones_refused() {
        let options = parse(&words("--only tests --only docs --skip docs -- some name")).unwrap();
        assert!(options.wants("tests") && !options.wants("docs") && !options.wants("tidy"));
        assert_eq!(options.filter, ["some", "name"]);
        assert!(parse(&words("--skip tets")).is_err());
        assert!(parse(&words("--only")).is_err());
        assert!(parse(&words("everything")).is_err());
        assert_eq!(parse(&words("--minutes 3")).unwrap().minutes, Some(3));
        assert!(parse(&words("--minutes soon")).is_err());
    }
}
