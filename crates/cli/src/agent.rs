//! The agents whose conversations ctxfold reads and writes, behind one set of words. The only
//! place that knows both session crates.

use std::fmt;
use std::path::{Path, PathBuf};

use ctxfold_session_claude as claude;
use ctxfold_transcript::{Plan, Transcript};

use crate::env::{self, Env};
use crate::error::{CommandError, CommandResult};

/// A coding agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Agent {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
}

impl Agent {
    /// The word on command lines and in the journal.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Agent::Claude => "claude",
            Agent::Codex => "codex",
        }
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where a conversation is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Whose it is.
    pub(crate) agent: Agent,
    /// The file.
    pub(crate) path: PathBuf,
}

/// Finds a conversation: by path, identifier or the beginning of one; without a word the one that
/// this process runs in, else the newest of the working directory.
pub(crate) fn locate(env: &Env, what: Option<&str>, agent: Option<Agent>) -> CommandResult<Place> {
    let Some(what) = what else { return newest(env, agent) };
    let as_path = Path::new(what);
    if as_path.is_file() {
        let path = as_path.to_path_buf();
        return Ok(Place { agent: agent.unwrap_or_else(|| agent_of_file(&path)), path });
    }
    if as_path.is_dir() {
        let inside = Env { cwd: as_path.to_path_buf(), ..env.clone() };
        return newest_in(&inside, agent);
    }
    let store = claude::Store::new(&env.claude_root);
    let found = store.find(what, Some(&env.cwd)).map_err(CommandError::from)?;
    Ok(Place { agent: Agent::Claude, path: found })
}

/// Codex begins a rollout with `session_meta`; nothing of Claude Code's does.
fn agent_of_file(path: &Path) -> Agent {
    use std::io::Read as _;
    let mut head = Vec::new();
    let read = std::fs::File::open(path).and_then(|f| f.take(4096).read_to_end(&mut head));
    let text = String::from_utf8_lossy(&head);
    if read.is_ok() && text.contains("\"session_meta\"") { Agent::Codex } else { Agent::Claude }
}

fn newest(env: &Env, agent: Option<Agent>) -> CommandResult<Place> {
    if agent != Some(Agent::Codex)
        && let Some(id) = env::var("CLAUDE_CODE_SESSION_ID")
        && let Ok(path) = claude::Store::new(&env.claude_root).find(&id, Some(&env.cwd))
    {
        return Ok(Place { agent: Agent::Claude, path });
    }
    newest_in(env, agent)
}

fn newest_in(env: &Env, _agent: Option<Agent>) -> CommandResult<Place> {
    let store = claude::Store::new(&env.claude_root);
    match store.newest(Some(&env.cwd)) {
        Ok(path) => Ok(Place { agent: Agent::Claude, path }),
        Err(e) if e.is_not_found() => Err(CommandError::input(format!(
            "no session of {} was found",
            env.show(&env.cwd)
        ))
        .hint("name one by identifier or path; `ctxfold list --all` shows what there is")),
        Err(e) => Err(e.into()),
    }
}

/// A conversation that was read.
#[derive(Debug)]
pub(crate) struct Conversation {
    place: Place,
    session: claude::Session,
}

/// What is known beside the messages.
#[derive(Debug, Clone)]
pub(crate) struct About {
    pub(crate) id: String,
    pub(crate) title: Option<String>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) version: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) file_bytes: u64,
    pub(crate) live_bytes: u64,
}

/// What a write did.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    pub(crate) len_before: u64,
    pub(crate) len_after: u64,
    pub(crate) sha256: String,
    pub(crate) repaired: bool,
}

/// Rows that are ready to be written.
#[derive(Debug)]
pub(crate) struct Ready {
    append: claude::Append,
}

impl Conversation {
    /// Reads the live part. `window` in tokens, where it is known.
    pub(crate) fn open(place: &Place, window: Option<u64>) -> CommandResult<Conversation> {
        let mut options = claude::Options::default();
        options.window = window;
        let mut session = claude::Session::open(&place.path, &options)?;
        if window.is_none()
            && let Some(fill) = session.transcript().fill
        {
            options.window = Some(assumed_window(session.meta().model.as_deref(), fill.tokens));
            session = claude::Session::open(&place.path, &options)?;
        }
        Ok(Conversation { place: place.clone(), session })
    }

    /// Where it is.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// The messages.
    pub(crate) fn transcript(&self) -> &Transcript {
        self.session.transcript()
    }

    /// What is known beside them.
    pub(crate) fn about(&self) -> About {
        let meta = self.session.meta();
        About {
            id: meta.id.clone(),
            title: meta.title.clone(),
            cwd: meta.cwd.clone(),
            version: meta.version.clone(),
            model: meta.model.clone(),
            file_bytes: meta.stamp.len,
            live_bytes: meta.live_bytes,
        }
    }

    /// What was found wrong while reading, one line each.
    pub(crate) fn findings(&self) -> Vec<String> {
        self.session.findings().iter().map(ToString::to_string).collect()
    }

    /// Refuses when a running client has the conversation.
    pub(crate) fn refuse_live(&self, env: &Env) -> CommandResult {
        let Some(pid) = live_pid(env, &self.place, &self.about().id)? else { return Ok(()) };
        Err(CommandError::refused(format!(
            "process {pid} has the session {} open; it would not see the change before the next resume",
            short(&self.about().id)
        ))
        .hint("end it first, or add --live: the compaction then holds from the next resume on"))
    }

    /// Turns a plan into rows.
    pub(crate) fn prepare(&self, env: &Env, plan: &Plan) -> CommandResult<Ready> {
        let stamp = claude::Stamp::new(env.now_ms(), env::random);
        Ok(Ready { append: self.session.prepare(plan, &stamp)? })
    }

    /// Makes the rows that undo the newest compaction.
    pub(crate) fn prepare_undo(&self, env: &Env) -> CommandResult<Ready> {
        let stamp = claude::Stamp::new(env.now_ms(), env::random);
        Ok(Ready { append: self.session.prepare_undo(&stamp)? })
    }
}

impl Ready {
    /// Bytes that will be appended.
    pub(crate) fn bytes(&self) -> u64 {
        self.append.bytes().len() as u64
    }

    /// Length of the file as it must still be.
    pub(crate) fn len_before(&self) -> u64 {
        self.append.expected().len
    }

    /// Appends.
    pub(crate) fn commit(self) -> CommandResult<Written> {
        let options = claude::CommitOptions::default().keep_mtime(true);
        Ok(Written::of(&self.append.commit(&options)?))
    }

    /// Writes a copy and leaves the file alone.
    pub(crate) fn write_copy(&self, out: &Path) -> CommandResult<Written> {
        Ok(Written::of(&self.append.write_copy(out)?))
    }
}

impl Written {
    fn of(receipt: &claude::Receipt) -> Written {
        Written {
            len_before: receipt.len_before,
            len_after: receipt.len_after,
            sha256: receipt.sha256.clone(),
            repaired: receipt.repaired,
        }
    }
}

/// The process that has a conversation open.
pub(crate) fn live_pid(env: &Env, place: &Place, id: &str) -> CommandResult<Option<u32>> {
    match place.agent {
        Agent::Claude => {
            let store = claude::Store::new(&env.claude_root);
            Ok(store.live_session(id, &claude::SystemProcesses)?.map(|live| live.pid))
        }
        Agent::Codex => Ok(None),
    }
}

/// The window of a model that the file does not tell: a million where its name says so or where
/// more than the usual window was used already, else 200,000 tokens.
pub(crate) fn assumed_window(model: Option<&str>, fill: u64) -> u64 {
    let model = model.unwrap_or_default().to_ascii_lowercase();
    let is_large = model.contains("[1m]") || model.contains("opus-5") || model.contains("sonnet-5");
    if is_large || fill > 200_000 { 1_000_000 } else { 200_000 }
}

/// The beginning of an identifier, as people write it.
pub(crate) fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}
