//! The binary `ctxfold`: the only crate that reads the environment, home, clock and terminal, and
//! the only one that sees all the others. A subcommand a file in `commands/`.

mod agent;
mod commands;
mod config;
mod engine;
mod env;
mod error;
mod exit;
mod files;
mod idle;
mod interrupt;
mod journal;
mod mod_session;
mod output;
mod plan_json;
mod progress;
mod watch;

fn main() -> std::process::ExitCode {
    commands::answer_host().unwrap_or_else(|| {
        exit::catch_bugs();
        commands::run()
    })
}
