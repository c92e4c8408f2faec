//! Tasks of this repository: `cargo xtask TASK`, one file a task.
//!
//! Tasks run cargo, npm and the built binary; none of them links a crate of the product.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tasks talk to a terminal"
)]

mod bench;
mod clients;
mod fuzz;
mod package;
mod shell;
mod template;
mod test;
mod tidy;

use std::process::ExitCode;

use shell::Result;

/// A task: its name, its help, and what it does with the arguments that follow its name.
struct Task {
    name: &'static str,
    help: &'static str,
    run: fn(&[String]) -> Result<()>,
}

/// Every task, in the order in which help lists them. A new task is a file and a line here.
const TASKS: &[Task] = &[
    Task {
        name: "test",
        help: "run everything: format, lints, tidy, tests, real clients, docs, fuzzing",
        run: test::run,
    },
    Task {
        name: "tidy",
        help: "check the rules that no compiler checks: edges, documents, licences, versions",
        run: tidy::run,
    },
    Task {
        name: "clients",
        help: "install the pinned real clients under target/clients [NAME...]",
        run: clients::run,
    },
    Task {
        name: "fuzz",
        help: "build the fuzz targets and run them [--seconds N] [TARGET...]",
        run: fuzz::run,
    },
    Task {
        name: "package",
        help: "put the binary and the plugins together in dist/, or check a package",
        run: package::run,
    },
    Task {
        name: "template",
        help: "generate plugins from template/ in every way and check each [NAME...]",
        run: template::run,
    },
    Task {
        name: "bench",
        help: "measure the release binary against baselines [--runs N] [--check] [CASE...]",
        run: bench::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else {
        return usage();
    };
    if name == "measure" {
        return exit(bench::measure_one(rest));
    }
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        return usage();
    };
    exit((task.run)(rest))
}

fn exit(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: cargo xtask TASK [ARGUMENT...]\n");
    for task in TASKS {
        eprintln!("  {:<9} {}", task.name, task.help);
    }
    ExitCode::from(2)
}
