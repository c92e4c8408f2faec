//! `ctxfold resume`: compact if it pays, then become the client.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use ctxfold_compactor::idle::Verdict;

use super::{Context, Which, monitor};
use crate::agent::{self, Agent, Place};
use crate::config::Config;
use crate::error::{CommandError, CommandResult};
use crate::idle::Visitor;
use crate::{env, idle, output};

/// Resume a session; compact it first if its pause has cost the cache anyway
///
/// Becomes `claude --resume ID` or `codex resume ID`: arguments after `--`, exit code, terminal and
/// signals are the client's. A compaction that fails never keeps you from resuming.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,

    /// Do not compact, whatever the settings say
    #[arg(long)]
    no_compact: bool,

    /// Say what would be done and what would be run, and stop
    #[arg(long, short = 'n')]
    dry_run: bool,

    /// Choose from a list
    #[arg(long, conflicts_with = "session")]
    pick: bool,

    /// Arguments of the client, for example -p "go on" for Claude Code or exec for Codex
    #[arg(last = true, value_name = "CLIENT ARGS")]
    client: Vec<OsString>,
}

impl Args {
    pub(crate) fn run(self, cx: &Context) -> CommandResult {
        let place = if self.pick {
            pick(cx)?
        } else {
            agent::locate(&cx.env, self.which.session.as_deref(), self.which.agent)?
        };
        let folder = folder(cx, &place)?;
        let id = agent::id(&place)?;
        if let Some(crumb) = monitor::last_breadcrumb(&cx.env, &id) {
            cx.say(&format!("ctxfold: {crumb}"));
        }
        if !self.no_compact {
            self.compact(cx, &place)?;
        }
        let mut command = self.command(&place, &id);
        if let Some(folder) = folder {
            cx.say(&format!("ctxfold: in {}", cx.env.show(&folder)));
            command.current_dir(folder);
        }
        if self.dry_run {
            return output::data(&format!("{}\n", shown(&command)));
        }
        become_client(&mut command)
    }

    /// Compacts if the policy says so. Whatever goes wrong is said and left behind; only the user
    /// stops it.
    fn compact(&self, cx: &Context, place: &Place) -> CommandResult {
        if let Err(error) = Config::read(&cx.env) {
            cx.say(&format!("ctxfold: not compacted: {error}"));
            return Ok(());
        }
        let settings = idle::settings(&cx.config, place.agent);
        if !settings.enabled {
            return Ok(());
        }
        let outcome = if self.dry_run {
            idle::look(cx, place, &settings).map(|decision| {
                cx.say(&format!(
                    "ctxfold: {}",
                    idle::costs(&cx.config, &decision.cost)
                ));
                let done = matches!(decision.verdict, Verdict::Compact);
                (
                    decision.verdict,
                    done.then(|| "would compact first".to_owned()),
                )
            })
        } else {
            let outcome = Visitor::default().visit(cx, place, &settings);
            outcome.map(|o| (o.decision.verdict, o.done))
        };
        match outcome {
            Ok((_, Some(line))) => cx.say(&format!("ctxfold: {line}")),
            Ok((Verdict::Leave(reason), None)) => {
                cx.say(&format!("ctxfold: not compacted: {reason}"));
            }
            Ok((Verdict::Compact, None)) => {}
            Err(error) if error.is_interrupted() => return Err(error),
            Err(error) => cx.say(&format!("ctxfold: not compacted: {error}")),
        }
        Ok(())
    }

    fn command(&self, place: &Place, id: &str) -> Command {
        match place.agent {
            Agent::Claude => {
                let mut command = Command::new("claude");
                command.arg("--resume").arg(id).args(&self.client);
                command
            }
            Agent::Codex => {
                // `codex exec resume ID …`: the sub-command stands before the word.
                let mut command = Command::new("codex");
                let (exec, rest) = match self.client.split_first() {
                    Some((first, rest)) if first == "exec" => (true, rest),
                    _ => (false, &self.client[..]),
                };
                if exec {
                    command.arg("exec");
                }
                command.arg("resume").arg(id).args(rest);
                command
            }
        }
    }
}

/// The folder in which the client finds the session, where it is another than this one: Claude Code
/// looks under the working directory alone.
fn folder(cx: &Context, place: &Place) -> CommandResult<Option<PathBuf>> {
    if place.agent == Agent::Codex {
        return Ok(None);
    }
    let name = place.path.file_stem().unwrap_or_default().to_string_lossy();
    if name.starts_with("agent-") {
        return Err(CommandError::input(format!("{name} is a sub-agent's file"))
            .hint("resume the session that it belongs to"));
    }
    if agent::has(&cx.env, &cx.env.cwd, place) {
        return Ok(None);
    }
    let written_in = agent::cwd(place);
    let mut folders = written_in.iter().flat_map(|cwd| cwd.ancestors());
    match folders.find(|folder| agent::has(&cx.env, folder, place)) {
        Some(folder) if folder.is_dir() => Ok(Some(folder.to_owned())),
        Some(folder) => Err(CommandError::input(format!(
            "the session's folder {} is gone",
            cx.env.show(folder)
        ))
        .hint("make it again, or move the session's file to this folder's")),
        None => Err(CommandError::input(format!(
            "{} is not among the client's sessions",
            cx.env.show(&place.path)
        ))
        .hint("Claude Code resumes only what is under its own projects folder")),
    }
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|w| w.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Replaces this process by the client, so that terminal, signals and exit code are its own.
#[cfg(unix)]
fn become_client(command: &mut Command) -> CommandResult {
    use std::os::unix::process::CommandExt as _;
    let error = command.exec();
    Err(missing(command, &error))
}

#[cfg(not(unix))]
fn become_client(command: &mut Command) -> CommandResult {
    match command.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(error) => Err(missing(command, &error)),
    }
}

fn missing(command: &Command, error: &std::io::Error) -> CommandError {
    let program = command.get_program().to_string_lossy().into_owned();
    CommandError::input(format!("failed to start {program}: {error}"))
        .hint(format!("is {program} installed and on the PATH?"))
}

/// Lets the user choose on a terminal; elsewhere the newest.
fn pick(cx: &Context) -> CommandResult<Place> {
    let places = agent::recent(&cx.env, 20)?;
    if !env::stdin_is_terminal() || !env::stderr_is_terminal() {
        return Err(CommandError::usage("--pick needs a terminal").hint("name a session instead"));
    }
    if places.is_empty() {
        return Err(CommandError::input("no session of this folder was found"));
    }
    for (index, (_, title)) in places.iter().enumerate() {
        output::say(&format!(
            "{:>3}  {}",
            index + 1,
            output::cut(title, env::columns().saturating_sub(6))
        ));
    }
    let mut stderr = std::io::stderr();
    let _ = write!(stderr, "which one? [1] ");
    let _ = stderr.flush();
    let mut line = String::new();
    std::io::stdin()
        .read_line(&mut line)
        .map_err(|e| CommandError::input(format!("failed to read the answer: {e}")))?;
    let number = match line.trim() {
        "" => 1,
        text => text
            .parse::<usize>()
            .map_err(|_| CommandError::usage(format!("{text} is no number")))?,
    };
    places
        .into_iter()
        .nth(number.wrapping_sub(1))
        .map(|(place, _)| place)
        .ok_or_else(|| CommandError::usage(format!("there is no number {number}")))
}
