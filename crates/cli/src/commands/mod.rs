//! The subcommands, one a file; a file's doc comments are its help.

mod check;
mod compact;
mod completions;
mod config;
mod doctor;
mod hook;
mod idle;
mod inspect;
mod list;
mod mod_;
mod models;
mod monitor;
mod repair;
mod resume;
mod stats;
mod statusline;
mod undo;
mod unfold;

pub(crate) use compact::write;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::agent::{Agent, Conversation, Place};
use crate::config::Config;
use crate::env::Env;
use crate::error::{CommandError, CommandResult};
use crate::progress::Progress;
use crate::{exit, output};

/// Fold long conversations of coding agents, with every folded part within reach
#[derive(Debug, Parser)]
#[command(
    name = "ctxfold",
    version,
    max_term_width = 100,
    disable_help_subcommand = true
)]
#[command(
    after_help = "Exit codes: 0 done, 1 input, 2 usage, 3 refused, 4 model or network, 255 bug."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Say nothing but errors on standard error
    #[arg(long, short, global = true)]
    quiet: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Compact(compact::Args),
    Inspect(inspect::Args),
    List(list::Args),
    Unfold(unfold::Args),
    Undo(undo::Args),
    Check(check::Args),
    Stats(stats::Args),
    Doctor(doctor::Args),
    Repair(repair::Args),
    Idle(idle::Args),
    Resume(resume::Args),
    Monitor(monitor::Args),
    Statusline(statusline::Args),
    Hook(hook::Args),
    Models(models::Args),
    Config(config::Args),
    Completions(completions::Args),
    #[command(name = "mod")]
    Mod(mod_::Args),
}

/// Which conversation a command is about.
#[derive(Debug, clap::Args)]
pub(crate) struct Which {
    /// Path, identifier or its beginning; without it the session that runs the command, else the
    /// newest of this folder
    #[arg(value_name = "SESSION")]
    session: Option<String>,

    /// Whose conversation it is, where both agents have one
    #[arg(long, value_enum)]
    agent: Option<Agent>,
}

/// What every command gets.
pub(crate) struct Context {
    pub(crate) env: Env,
    pub(crate) config: Config,
    pub(crate) quiet: bool,
}

impl Context {
    /// Reads a conversation, with its progress where that takes long.
    pub(crate) fn open(&self, place: &Place, window: Option<u64>) -> CommandResult<Conversation> {
        let _shown = self.reading(place);
        Conversation::open(place, window)
    }

    /// Shows that a file is read, for as long as what it returns lives.
    pub(crate) fn reading(&self, place: &Place) -> Progress {
        Progress::over(self.quiet, &place.path)
    }

    /// Talks to the user, unless silence was asked for.
    pub(crate) fn say(&self, text: &str) {
        if !self.quiet {
            output::say(text);
        }
    }
}

/// That a copy can be written there: ctxfold overwrites nothing, and a session is no text for a pipe.
fn new_file(cx: &Context, out: &Path) -> CommandResult {
    if out == Path::new("-") {
        return Err(CommandError::usage("--out needs the name of a new file")
            .hint("`ctxfold compact --json` prints the plan to standard output"));
    }
    if out.symlink_metadata().is_ok() {
        return Err(
            CommandError::input(format!("{} is there already", cx.env.show(out)))
                .hint("--out writes a new file; nothing is overwritten"),
        );
    }
    Ok(())
}

/// Why a real run would be refused before it writes; nothing where it `leaves` the session alone or
/// appends in any case.
fn would_refuse(cx: &Context, conversation: &Conversation, leaves: bool) -> Option<CommandError> {
    if leaves {
        return None;
    }
    conversation.refuse_live(&cx.env).err()
}

/// Says by a dry run that a real one would be refused.
fn say_refused(cx: &Context, refused: Option<&CommandError>) {
    if let Some(error) = refused {
        cx.say(&format!("ctxfold: a real run would be refused: {error}"));
    }
}

/// The whole command line, for completions and the reference.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

/// Answers a host that waits, if that is what the process was started for. Hosts start it for every
/// tool call and every redraw: nothing is parsed or read that is not needed, and no argument is an
/// error.
pub(crate) fn answer_host() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    let command = words.next()?;
    let words: Vec<OsString> = words.collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        return None;
    }
    match command.to_str()? {
        "hook" => Some(hook::Args::of(&words).run()),
        "statusline" => Some(statusline::Args::of(&words).run()),
        _ => None,
    }
}

/// Runs the process's command line.
pub(crate) fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let code = if error.use_stderr() {
                exit::USAGE
            } else {
                exit::DONE
            };
            // Help into a closed pipe is nobody's error.
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let cli = match cli.command {
        Command::Hook(args) => return args.run(),
        Command::Statusline(args) => return args.run(),
        _ => cli,
    };
    match dispatch(cli) {
        Ok(()) => ExitCode::from(exit::DONE),
        Err(error) => {
            if !error.is_silent() {
                output::say(&format!("ctxfold: {error}"));
            }
            ExitCode::from(error.code())
        }
    }
}

fn dispatch(cli: Cli) -> CommandResult {
    let env = Env::read();
    if let Command::Completions(args) = &cli.command {
        return args.run();
    }
    if let Command::Config(args) = cli.command {
        // It must run on a broken file too, to repair it.
        return args.run(&env, cli.quiet);
    }
    let config = match Config::read(&env) {
        // These two say it themselves: nothing keeps a user from resuming, and the doctor is asked
        // what is wrong.
        Err(_) if matches!(cli.command, Command::Resume(_) | Command::Doctor(_)) => {
            Config::default()
        }
        read => read?,
    };
    let cx = Context {
        env,
        config,
        quiet: cli.quiet,
    };
    match cli.command {
        Command::Compact(args) => args.run(&cx),
        Command::Inspect(args) => args.run(&cx),
        Command::List(args) => args.run(&cx),
        Command::Unfold(args) => args.run(&cx),
        Command::Undo(args) => args.run(&cx),
        Command::Check(args) => args.run(&cx),
        Command::Stats(args) => args.run(&cx),
        Command::Doctor(args) => args.run(&cx),
        Command::Repair(args) => args.run(&cx),
        Command::Idle(args) => args.run(&cx),
        Command::Resume(args) => args.run(&cx),
        Command::Models(args) => args.run(&cx),
        Command::Mod(args) => args.run(&cx),
        Command::Monitor(args) => args.run(&cx),
        // Done above.
        Command::Config(_)
        | Command::Completions(_)
        | Command::Hook(_)
        | Command::Statusline(_) => Ok(()),
    }
}
