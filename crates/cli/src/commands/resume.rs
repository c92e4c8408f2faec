//! `ctxfold resume`: compact if it pays, then become the client.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use ctxfold_compactor::idle::{Reason, RequestTokens, Verdict};

use super::{Context, Which, monitor};
use crate::agent::{self, Agent, Place};
use crate::config::Config;
use crate::error::{CommandError, CommandResult};
use crate::idle::{Outcome, Visitor};
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

    /// Print it as JSON
    #[arg(long, requires = "dry_run")]
    json: bool,

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
        let mut command = self.command(&place, &id);
        if self.dry_run {
            let preview = self.preview(cx, &place)?;
            if self.json {
                let words: Vec<_> = words(&command).collect();
                return output::json(&serde_json::json!({
                    "v": 1, "agent": place.agent.name(), "id": id, "path": place.path,
                    "folder": folder, "command": words, "compaction": preview,
                }));
            }
            preview.tell(cx);
            say_folder(cx, folder.as_deref());
            let words: Vec<_> = words(&command).map(|w| output::shell_word(&w)).collect();
            return output::data(&format!("{}\n", words.join(" ")));
        }
        if !self.no_compact {
            compact(cx, &place)?;
        }
        say_folder(cx, folder.as_deref());
        if let Some(folder) = folder {
            command.current_dir(folder);
        }
        become_client(&mut command)
    }

    /// What a real run would do first.
    fn preview(&self, cx: &Context, place: &Place) -> CommandResult<Preview> {
        let not = |because: &'static str, why: String| Preview {
            due: false,
            because: Some(because),
            why: Some(why),
            costs: None,
            tokens: None,
            tokens_after: None,
        };
        if self.no_compact {
            return Ok(not("no-compact", "--no-compact".to_owned()));
        }
        if let Err(error) = Config::read(&cx.env) {
            return Ok(not("configuration", error.line()));
        }
        if let Some(why) = idle::switched_off(&cx.config, place.agent) {
            return Ok(not(idle::name(&Reason::Off), why));
        }
        let settings = idle::settings(&cx.config, place.agent);
        let decision = match idle::look(cx, place, &settings) {
            Ok(decision) => decision,
            Err(error) if error.is_interrupted() => return Err(error),
            Err(error) => return Ok(not("refused", error.line())),
        };
        let reason = match decision.verdict {
            Verdict::Compact => None,
            Verdict::Leave(reason) => Some(reason),
        };
        let total = |t: RequestTokens| t.cached + t.uncached;
        Ok(Preview {
            due: reason.is_none(),
            because: reason.as_ref().map(idle::name),
            why: reason.map(|r| r.to_string()),
            costs: Some(idle::costs(&cx.config, &decision.cost)),
            tokens: Some(total(decision.cost.without)),
            tokens_after: decision.cost.with.map(total),
        })
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

/// What a dry run tells of the compaction.
#[derive(Debug, serde::Serialize)]
struct Preview {
    due: bool,
    /// Why not, in a word and in a sentence.
    because: Option<&'static str>,
    why: Option<String>,
    #[serde(skip)]
    costs: Option<String>,
    /// What the next request holds without a compaction and with one.
    tokens: Option<u64>,
    tokens_after: Option<u64>,
}

impl Preview {
    fn tell(&self, cx: &Context) {
        if let Some(costs) = &self.costs {
            cx.say(&format!("ctxfold: {costs}"));
        }
        match &self.why {
            None => cx.say("ctxfold: would compact first"),
            Some(why) => cx.say(&format!("ctxfold: would not compact: {why}")),
        }
    }
}

/// Compacts if the policy says so. Whatever goes wrong is said and left behind; only the user stops
/// it.
fn compact(cx: &Context, place: &Place) -> CommandResult {
    if let Err(error) = Config::read(&cx.env) {
        cx.say(&format!("ctxfold: not compacted: {error}"));
        return Ok(());
    }
    let settings = idle::settings(&cx.config, place.agent);
    if !settings.enabled {
        return Ok(());
    }
    match Visitor::default().visit(cx, place, &settings) {
        Ok(Outcome {
            done: Some(line), ..
        }) => cx.say(&format!("ctxfold: {line}")),
        Ok(outcome) => {
            if let Verdict::Leave(reason) = outcome.decision.verdict {
                cx.say(&format!("ctxfold: not compacted: {reason}"));
            }
        }
        Err(error) if error.is_interrupted() => return Err(error),
        Err(error) => cx.say(&format!("ctxfold: not compacted: {error}")),
    }
    Ok(())
}

fn say_folder(cx: &Context, folder: Option<&Path>) {
    if let Some(folder) = folder {
        cx.say(&format!("ctxfold: in {}", cx.env.show(folder)));
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

/// The words of the client's command line.
fn words(command: &Command) -> impl Iterator<Item = String> {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|w| w.to_string_lossy().into_owned())
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
