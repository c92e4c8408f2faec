//! `cargo xtask fuzz`: builds the fuzz targets and runs each for some seconds.
//!
//! The targets are built with the stable compiler: the coverage passes that libFuzzer needs are
//! LLVM's own. There is no address sanitizer, which needs a nightly one and finds little where
//! unsafe code is forbidden.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use cargo_metadata::MetadataCommand;

use crate::shell::{Result, cargo, read, root, run as run_command};

/// What makes LLVM count edges and trace comparisons, as libFuzzer wants it.
const RUSTFLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

const HELP: &str = "usage: cargo xtask fuzz [--seconds N] [TARGET...]";

/// Runs the targets named by `arguments`, or all of them, for 60 seconds each where none are said.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut seconds = 60;
    let mut wanted = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--seconds" => seconds = rest.next().and_then(|n| n.parse().ok()).ok_or(HELP)?,
            name if !name.starts_with('-') => wanted.push(name.to_owned()),
            _ => return Err(HELP.into()),
        }
    }
    fuzz(seconds, &wanted, None).map(|count| println!("fuzz: {count} targets found nothing"))
}

/// Builds and runs targets, a few at a time, and returns how many ran without a finding. With the
/// same `seed` and no corpus yet, a target tries the same inputs in the same order.
pub(crate) fn fuzz(seconds: u64, wanted: &[String], seed: Option<u32>) -> Result<usize> {
    let mut targets = targets()?;
    if let Some(unknown) = wanted.iter().find(|name| !targets.contains(name)) {
        return Err(format!(
            "no fuzz target {unknown}; there are: {}",
            targets.join(", ")
        )
        .into());
    }
    targets.retain(|name| wanted.is_empty() || wanted.contains(name));
    let folder = build()?;
    let at_once = thread::available_parallelism().map_or(1, usize::from);
    let mut failed = Vec::new();
    for batch in targets.chunks(at_once) {
        let running: Vec<_> = batch
            .iter()
            .map(|name| (name, thread::spawn(start(&folder, name, seconds, seed))))
            .collect();
        for (name, handle) in running {
            match handle.join() {
                Ok(Ok(report)) => println!("{name}: {}", summary(&report)),
                Ok(Err(message)) => failed.push(format!("{name}: {message}")),
                Err(_) => failed.push(format!("{name}: the runner panicked")),
            }
        }
    }
    if failed.is_empty() {
        Ok(targets.len())
    } else {
        Err(failed.join("\n").into())
    }
}

/// The names of the binaries of `fuzz/Cargo.toml`.
fn targets() -> Result<Vec<String>> {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("fuzz/Cargo.toml"))
        .no_deps()
        .other_options(["--locked".to_owned()])
        .exec()
        .map_err(|error| format!("failed to read fuzz/Cargo.toml: {error}"))?;
    let targets = metadata
        .packages
        .iter()
        .flat_map(|package| &package.targets);
    Ok(targets
        .filter(|target| target.is_bin())
        .map(|target| target.name.clone())
        .collect())
}

/// Builds every target and returns the folder of the binaries.
fn build() -> Result<PathBuf> {
    let version = read(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("rustc does not name its host")?;
    let folder = root().join("target/fuzz");
    // With `--target`, build scripts and macros stay without instrumentation.
    let arguments = [
        "build",
        "--release",
        "--locked",
        "--manifest-path",
        "fuzz/Cargo.toml",
        "--target",
        host,
    ];
    let mut command = cargo(&arguments);
    run_command(
        command
            .env("RUSTFLAGS", RUSTFLAGS)
            .env("CARGO_TARGET_DIR", &folder),
    )?;
    Ok(folder.join(host).join("release"))
}

/// A closure that runs one target and returns libFuzzer's report.
fn start(
    folder: &Path,
    name: &str,
    seconds: u64,
    seed: Option<u32>,
) -> impl FnOnce() -> std::result::Result<String, String> + use<> {
    let (program, name) = (folder.join(name), name.to_owned());
    move || {
        let home = root().join("fuzz");
        let (corpus, artifacts) = (home.join("corpus").join(&name), home.join("artifacts"));
        for folder in [&corpus, &artifacts] {
            fs::create_dir_all(folder)
                .map_err(|error| format!("failed to make {}: {error}", folder.display()))?;
        }
        let mut command = Command::new(program);
        command
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-artifact_prefix={}/{name}-", artifacts.display()))
            .args([
                "-timeout=10",
                "-rss_limit_mb=2048",
                "-max_len=65536",
                "-print_final_stats=1",
            ])
            .args(seed.map(|seed| format!("-seed={seed}")))
            .arg(&corpus);
        let seeds = home.join("seeds").join(&name);
        if seeds.is_dir() {
            command.arg(seeds);
        }
        let output = command
            .output()
            .map_err(|error| format!("failed to start {name}: {error}"))?;
        let report = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            return Ok(report);
        }
        let skip = report.lines().count().saturating_sub(30);
        let end: Vec<&str> = report.lines().skip(skip).collect();
        Err(format!("{}\n{}", output.status, end.join("\n")))
    }
}

/// The lines of a report that say how much was tried.
fn summary(report: &str) -> String {
    let number = |key: &str| {
        let line = report.lines().find_map(|line| line.strip_prefix(key));
        line.map_or("?", str::trim).to_owned()
    };
    let covered = report.lines().rev().find_map(|line| {
        let (_, rest) = line.split_once(" cov: ")?;
        rest.split_whitespace().next()
    });
    format!(
        "{} runs, {} edges covered, {} inputs kept",
        number("stat::number_of_executed_units:"),
        covered.unwrap_or("?"),
        number("stat::new_units_added:"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_summed_up() {
        let report = "#2\tINITED cov: 5 ft: 6 corp: 1/1b\n#99\tDONE   cov: 41 ft: 80 corp: 9\n\
                      stat::number_of_executed_units: 99\nstat::new_units_added:          8\n";
        assert_eq!(summary(report), "99 runs, 41 edges covered, 8 inputs kept");
    }

    #[test]
    fn unknown_targets_are_refused_before_anything_is_built() {
        let error = fuzz(1, &["no_such_target".to_owned()], None)
            .unwrap_err()
            .to_string();
        assert!(error.contains("hook_input"), "{error}");
    }
}
