//! `cargo xtask bench`: the release binary against named baselines, in the same run.
//!
//! Every command is run once to warm the page cache, then several times in turn with its baselines,
//! so that a slow minute of the machine hits all of them. Shown are the median wall time, the peak
//! memory, and the ratio to each baseline. A case that promises a share of its calls within a time is
//! called often enough for that, without its baselines. A case with limits says whether they hold;
//! `--check` makes the task fail where one doesn't.

mod cases;
mod inputs;
mod measure;

use std::path::PathBuf;
use std::time::Duration;

use cargo_metadata::MetadataCommand;

use crate::shell::{Result, cargo, root, run as run_command};
use cases::{Case, Effect, Limit};
use measure::Sample;
pub(crate) use measure::run as measure_one;

const HELP: &str = "usage: cargo xtask bench [--runs N] [--check] [CASE...]";

/// Runs the cases named by `arguments`, or all of them.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut runs = 5;
    let mut check = false;
    let mut wanted = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--runs" => runs = rest.next().and_then(|n| n.parse().ok()).ok_or(HELP)?,
            "--check" => check = true,
            name if !name.starts_with('-') => wanted.push(name.to_owned()),
            _ => return Err(HELP.into()),
        }
    }
    let binary = build()?;
    let home = root().join("target/bench");
    let cases = cases::all(&binary, &home);
    if let Some(unknown) = wanted
        .iter()
        .find(|name| cases.iter().all(|case| case.name != **name))
    {
        let names: Vec<&str> = cases.iter().map(|case| case.name).collect();
        return Err(format!("no case {unknown}; there are: {}", names.join(", ")).into());
    }
    let (mut broken, mut failed) = (Vec::new(), Vec::new());
    for case in cases
        .iter()
        .filter(|c| wanted.is_empty() || wanted.iter().any(|w| w == c.name))
    {
        println!("\n{}: {}", case.name, case.about);
        match measure_case(case, runs) {
            Ok(samples) => broken.extend(report(case, &samples)),
            Err(error) => failed.push(format!("{}: {error}", case.name)),
        }
    }
    for line in broken.iter().chain(&failed) {
        eprintln!("bench: {line}");
    }
    match (failed.len(), broken.len()) {
        (0, 0) => Ok(()),
        (0, over) if !check => {
            println!("\n{over} limits do not hold");
            Ok(())
        }
        (failed, over) => Err(format!("{failed} cases failed, {over} limits do not hold").into()),
    }
}

/// Calls of ours of which a share is to be within a time.
const CALLS: usize = 500;

/// Builds the binary as it is released and returns its path.
fn build() -> Result<PathBuf> {
    run_command(&mut cargo(&[
        "build",
        "--release",
        "--locked",
        "--package",
        "ctxfold",
        "--quiet",
    ]))?;
    let metadata = MetadataCommand::new()
        .current_dir(root())
        .no_deps()
        .exec()
        .map_err(|error| format!("failed to read the workspace: {error}"))?;
    Ok(metadata
        .target_directory
        .join("release/ctxfold")
        .into_std_path_buf())
}

/// The samples of each command of a case, ours first.
fn measure_case(case: &Case, runs: usize) -> Result<Vec<Vec<Sample>>> {
    inputs::prepare(&case.inputs)?;
    measure::forget(&case.commands[0])?;
    prove(case)?;
    let mut samples = vec![Vec::new(); case.commands.len()];
    // The first round warms up and does not count.
    for round in 0..=runs {
        for (command, samples) in case.commands.iter().zip(&mut samples) {
            let sample = measure::in_own_process(command)?;
            inputs::restore(&case.inputs)?;
            if round > 0 {
                samples.push(sample);
            }
        }
    }
    let is_within = |limit: &Limit| matches!(limit, Limit::Within { .. });
    if case.limits.iter().any(is_within) {
        for _ in 0..CALLS {
            samples[0].push(measure::in_own_process(&case.commands[0])?);
            inputs::restore(&case.inputs)?;
        }
    }
    Ok(samples)
}

/// Runs our command once and checks that it does its work: a time for nothing is no time.
fn prove(case: &Case) -> Result<()> {
    let printed = measure::output(&case.commands[0])?;
    let fine = match case.effect {
        Effect::Prints(text) => printed.contains(text),
        Effect::Appends => inputs::have_grown(&case.inputs),
    };
    inputs::restore(&case.inputs)?;
    if fine {
        Ok(())
    } else {
        Err(format!("our command did nothing: {:?}", case.effect).into())
    }
}

/// Prints what was measured and returns a line for each limit that does not hold.
fn report(case: &Case, samples: &[Vec<Sample>]) -> Vec<String> {
    let medians: Vec<Sample> = samples.iter().map(|samples| median(samples)).collect();
    let ours = medians[0];
    for (command, sample) in case.commands.iter().zip(&medians) {
        println!(
            "  {:<28} {:>10} {:>8.1} MB   {:>7.2}x",
            command.name,
            show(sample.wall),
            sample.peak_mb(),
            ratio(ours, *sample),
        );
    }
    let mut broken = Vec::new();
    for limit in &case.limits {
        let (holds, text) = judge(limit, case, &medians, &samples[0]);
        println!("  {} {text}", if holds { "ok   " } else { "OVER " });
        if !holds {
            broken.push(format!("{}: {text}", case.name));
        }
    }
    broken
}

/// How many times as long we take as another command.
fn ratio(ours: Sample, other: Sample) -> f64 {
    ours.wall.as_secs_f64() / other.wall.as_secs_f64().max(1e-9)
}

/// Whether a limit holds, and what it says with the numbers found.
fn judge(limit: &Limit, case: &Case, medians: &[Sample], ours: &[Sample]) -> (bool, String) {
    match *limit {
        Limit::Ratio { baseline, most } => {
            let found = ratio(medians[0], medians[baseline]);
            let name = case.commands[baseline].name;
            (
                found <= most,
                format!("{found:.2} of {name}, at most {most:.2}"),
            )
        }
        Limit::PeakMb(most) => {
            let found = medians[0].peak_mb();
            (
                found <= most,
                format!("{found:.1} MB at its peak, at most {most:.0}"),
            )
        }
        Limit::Within { percent, most } => {
            let found = within(ours, percent);
            let (found_text, most_text, calls) = (show(found), show(most), ours.len());
            (
                found <= most,
                format!("p{percent} of {calls} calls {found_text}, at most {most_text}"),
            )
        }
    }
}

/// The sample with the median time; its memory is the largest of all.
fn median(samples: &[Sample]) -> Sample {
    let mut walls: Vec<Duration> = samples.iter().map(|sample| sample.wall).collect();
    walls.sort_unstable();
    Sample {
        wall: walls.get(walls.len() / 2).copied().unwrap_or_default(),
        peak_bytes: samples
            .iter()
            .map(|sample| sample.peak_bytes)
            .max()
            .unwrap_or_default(),
    }
}

/// The time within which so many of a hundred samples are: the smallest such one.
fn within(samples: &[Sample], percent: usize) -> Duration {
    let mut walls: Vec<Duration> = samples.iter().map(|sample| sample.wall).collect();
    walls.sort_unstable();
    let rank = (walls.len() * percent).div_ceil(100).max(1);
    walls.get(rank - 1).copied().unwrap_or_default()
}

fn show(wall: Duration) -> String {
    let millis = wall.as_secs_f64() * 1000.0;
    if millis < 1000.0 {
        format!("{millis:.2} ms")
    } else {
        format!("{:.2} s", millis / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(millis: u64, megabytes: u64) -> Sample {
        Sample {
            wall: Duration::from_millis(millis),
            peak_bytes: megabytes * 1_000_000,
        }
    }

    #[test]
    fn the_median_ignores_one_slow_run_and_keeps_the_largest_peak() {
        let found = median(&[sample(10, 5), sample(500, 9), sample(11, 6)]);
        assert_eq!((found.wall.as_millis(), found.peak_bytes), (11, 9_000_000));
    }

    #[test]
    fn a_share_of_the_calls_is_within_the_time_of_its_slowest() {
        let samples: Vec<Sample> = (1..=100).rev().map(|millis| sample(millis, 1)).collect();
        for (percent, millis) in [(50, 50), (99, 99), (100, 100), (0, 1)] {
            assert_eq!(within(&samples, percent), Duration::from_millis(millis));
        }
        assert_eq!(within(&samples[..3], 99), Duration::from_millis(100));
        assert_eq!(within(&[], 99), Duration::ZERO);
    }

    #[test]
    fn limits_hold_up_to_their_number_and_not_past_it() {
        let case = Case {
            name: "x",
            about: "x",
            inputs: Vec::new(),
            commands: vec![
                cases::command("ours", "true", &[]),
                cases::command("base", "true", &[]),
            ],
            effect: Effect::Appends,
            limits: Vec::new(),
        };
        let medians = [sample(30, 64), sample(10, 1)];
        let ours = [sample(30, 64), sample(7, 64)];
        let within = |percent, millis| Limit::Within {
            percent,
            most: Duration::from_millis(millis),
        };
        for (limit, expected) in [
            (
                Limit::Ratio {
                    baseline: 1,
                    most: 3.0,
                },
                true,
            ),
            (
                Limit::Ratio {
                    baseline: 1,
                    most: 2.9,
                },
                false,
            ),
            (Limit::PeakMb(64.0), true),
            (Limit::PeakMb(63.0), false),
            (within(50, 7), true),
            (within(50, 6), false),
            (within(99, 30), true),
            (within(99, 29), false),
        ] {
            assert_eq!(judge(&limit, &case, &medians, &ours).0, expected);
        }
    }
}
