//! The agents whose conversations ctxfold reads and writes, behind one set of words. The only
//! place that knows both session crates.

mod pause;

pub(crate) use pause::pause;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use ctxfold_session_claude as claude;
use ctxfold_session_codex as codex;
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
    /// Codex's home, for its threads.
    pub(crate) home: PathBuf,
}

impl Place {
    /// A session of Claude Code.
    pub(crate) fn claude(path: PathBuf) -> Place {
        Place {
            agent: Agent::Claude,
            path,
            home: PathBuf::new(),
        }
    }

    /// A thread of Codex.
    pub(crate) fn codex(env: &Env, path: PathBuf) -> Place {
        Place {
            agent: Agent::Codex,
            path,
            home: env.codex_home.clone(),
        }
    }

    /// The store of Codex that the thread is in.
    pub(crate) fn codex_store(&self) -> codex::Store {
        codex::Store::new(&self.home)
    }
}

/// Finds a conversation: by path, identifier or the beginning of one (for Codex also the end, or
/// the title); without a word the one that this process runs in, else the newest of the working
/// directory.
pub(crate) fn locate(env: &Env, what: Option<&str>, agent: Option<Agent>) -> CommandResult<Place> {
    let Some(what) = what else {
        return newest(env, agent);
    };
    let as_path = Path::new(what);
    if as_path.is_file() {
        let path = as_path.to_path_buf();
        return Ok(match agent.unwrap_or_else(|| agent_of_file(&path)) {
            Agent::Claude => Place::claude(path),
            Agent::Codex => Place::codex(env, path),
        });
    }
    if as_path.is_dir() {
        let inside = Env {
            cwd: std::path::absolute(as_path).unwrap_or_else(|_| as_path.into()),
            ..env.clone()
        };
        return newest_in(&inside, agent);
    }
    let in_claude = (agent != Some(Agent::Codex))
        .then(|| claude::Store::new(&env.claude_root).find(what, Some(&env.cwd)));
    let in_codex = (agent != Some(Agent::Claude))
        .then(|| codex::Store::new(&env.codex_home).find(&codex::Query::Text(what.to_owned())));
    match (in_claude, in_codex) {
        (Some(Ok(session)), Some(Ok(thread))) => Err(CommandError::input(format!(
            "{what} is a session of Claude Code ({}) and a thread of Codex ({})",
            env.show(&session),
            env.show(&thread.path)
        ))
        .hint("say which with --agent claude or --agent codex")),
        (Some(Ok(path)), _) => Ok(Place::claude(path)),
        (_, Some(Ok(thread))) => Ok(Place::codex(env, thread.path)),
        // What is ambiguous says more than what is not there.
        (Some(Err(e)), Some(Err(other))) if e.is_not_found() && !other.is_not_found() => {
            Err(other.into())
        }
        (Some(Err(e)), Some(Err(_))) if e.is_not_found() && is_word(what) => {
            Err(CommandError::input(format!(
                "{what:?} names neither a session under {} nor a thread under {}",
                env.show(&env.claude_root),
                env.show(&env.codex_home)
            ))
            .hint("`ctxfold list --all` shows the sessions there are"))
        }
        (Some(Err(e)), _) => Err(e.into()),
        (None, Some(Err(e))) => Err(e.into()),
        (None, None) => newest(env, agent),
    }
}

/// Whether it can be no path.
fn is_word(what: &str) -> bool {
    !what.contains(['/', '\\']) && Path::new(what).extension().is_none()
}

/// Refuses what is not even read in order to be written.
pub(crate) fn refuse_packed(place: &Place) -> CommandResult {
    if place.agent == Agent::Codex && place.path.extension().is_some_and(|e| e == "zst") {
        return Err(CommandError::refused(format!(
            "the rollout is compressed: {}",
            place.path.display()
        ))
        .hint("resume the thread in Codex once: that unpacks it"));
    }
    Ok(())
}

/// Codex begins a rollout with `session_meta`; nothing of Claude Code's does.
fn agent_of_file(path: &Path) -> Agent {
    use std::io::Read as _;
    if path.extension().is_some_and(|e| e == "zst") {
        return Agent::Codex;
    }
    let mut head = Vec::new();
    let read = std::fs::File::open(path).and_then(|f| f.take(4096).read_to_end(&mut head));
    let text = String::from_utf8_lossy(&head);
    if read.is_ok() && text.contains("\"session_meta\"") {
        Agent::Codex
    } else {
        Agent::Claude
    }
}

fn newest(env: &Env, agent: Option<Agent>) -> CommandResult<Place> {
    if agent != Some(Agent::Codex)
        && let Some(id) = env::var("CLAUDE_CODE_SESSION_ID")
        && let Ok(path) = claude::Store::new(&env.claude_root).find(&id, Some(&env.cwd))
    {
        return Ok(Place::claude(path));
    }
    newest_in(env, agent)
}

fn newest_in(env: &Env, agent: Option<Agent>) -> CommandResult<Place> {
    let mut found: Vec<(i64, Place)> = Vec::new();
    if agent != Some(Agent::Codex) {
        match claude::Store::new(&env.claude_root).newest(Some(&env.cwd)) {
            Ok(path) => found.push((modified_ms(&path), Place::claude(path))),
            Err(e) if e.is_not_found() => {}
            Err(e) => return Err(e.into()),
        }
    }
    if agent != Some(Agent::Claude) && env.codex_home.is_dir() {
        match codex::Store::new(&env.codex_home).find(&codex::Query::Newest(Some(env.cwd.clone())))
        {
            Ok(entry) => found.push((entry.updated_ms, Place::codex(env, entry.path))),
            Err(e) if e.is_not_found() => {}
            Err(e) => return Err(e.into()),
        }
    }
    found
        .into_iter()
        .max_by_key(|(at, _)| *at)
        .map(|(_, place)| place)
        .ok_or_else(|| {
            CommandError::input(format!("no session of {} was found", env.show(&env.cwd)))
                .hint("name one by identifier or path; `ctxfold list --all` shows what there is")
        })
}

fn modified_ms(path: &Path) -> i64 {
    let modified = std::fs::metadata(path).and_then(|m| m.modified()).ok();
    modified
        .and_then(|t| t.duration_since(UNIX_EPOCH).ok())
        .map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
}

/// Whether Claude Code finds the session when it is started in a folder.
pub(crate) fn has(env: &Env, folder: &Path, place: &Place) -> bool {
    let entries = claude::Store::new(&env.claude_root).entries_in(folder);
    entries.is_ok_and(|found| found.iter().any(|e| is_same(&e.path, &place.path)))
}

fn is_same(a: &Path, b: &Path) -> bool {
    a == b
        || std::fs::canonicalize(a)
            .ok()
            .is_some_and(|a| std::fs::canonicalize(b).ok() == Some(a))
}

/// The working directory that a session of Claude Code was last in.
pub(crate) fn cwd(place: &Place) -> Option<PathBuf> {
    claude::read_tail(&place.path).ok()?.cwd.map(PathBuf::from)
}

/// Every conversation of both agents. Archived and compressed threads are left out.
pub(crate) fn all(env: &Env) -> CommandResult<Vec<Place>> {
    let entries = claude::Store::new(&env.claude_root).entries()?;
    let mut places: Vec<Place> = entries.into_iter().map(|e| Place::claude(e.path)).collect();
    if env.codex_home.is_dir() {
        let (threads, _) = codex::Store::new(&env.codex_home).entries();
        let usable = threads
            .into_iter()
            .filter(|t| !t.archived && !t.compressed && !t.missing);
        places.extend(usable.map(|t| Place::codex(env, t.path)));
    }
    Ok(places)
}

/// The newest conversations of the working directory with a line about each, the newest first.
pub(crate) fn recent(env: &Env, most: usize) -> CommandResult<Vec<(Place, String)>> {
    let mut found: Vec<(i64, Place, String)> = Vec::new();
    let mut filter = claude::Filter::default();
    filter.cwd = Some(env.cwd.clone());
    for listed in claude::Store::new(&env.claude_root).list(&filter, &claude::SystemProcesses)? {
        let title = listed.title.or(listed.last_prompt).unwrap_or_default();
        let line = format!("{}  claude  {title}", short(&listed.id));
        found.push((
            listed.active_ms.unwrap_or(0),
            Place::claude(listed.path),
            line,
        ));
    }
    if env.codex_home.is_dir() {
        let (threads, _) = codex::Store::new(&env.codex_home).entries();
        let here = threads
            .into_iter()
            .filter(|t| t.cwd.as_deref() == Some(&env.cwd) && !t.archived && !t.missing);
        for thread in here {
            let line = format!(
                "{}  codex   {}",
                codex_short(&thread.id),
                thread.title.unwrap_or_default()
            );
            found.push((thread.updated_ms, Place::codex(env, thread.path), line));
        }
    }
    found.sort_by_key(|(at, ..)| std::cmp::Reverse(*at));
    Ok(found
        .into_iter()
        .take(most)
        .map(|(_, place, line)| (place, line))
        .collect())
}

/// The identifier by which the client resumes a conversation.
pub(crate) fn id(place: &Place) -> CommandResult<String> {
    match place.agent {
        Agent::Claude => {
            let stem = place.path.file_stem().unwrap_or_default();
            Ok(stem.to_string_lossy().into_owned())
        }
        Agent::Codex => Ok(codex::Thread::open(&place.codex_store(), &place.path)?
            .meta()
            .id
            .clone()),
    }
}

#[derive(Debug)]
enum Read {
    Claude(Box<claude::Session>),
    Codex(Box<codex::Thread>),
}

/// A conversation that was read.
#[derive(Debug)]
pub(crate) struct Conversation {
    place: Place,
    read: Read,
}

/// What is known beside the messages.
#[derive(Debug, Clone)]
pub(crate) struct About {
    pub(crate) id: String,
    pub(crate) title: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) file_bytes: u64,
    /// Time of the newest compaction, in milliseconds since the Unix epoch.
    pub(crate) compacted_ms: Option<i64>,
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
pub(crate) enum Ready {
    Claude(claude::Append),
    Codex(codex::Append, bool),
}

impl Conversation {
    /// Reads the live part. `window` in tokens, where it is known.
    pub(crate) fn open(place: &Place, window: Option<u64>) -> CommandResult<Conversation> {
        let read = match place.agent {
            Agent::Claude => {
                let mut options = claude::Options::default();
                options.window = window;
                let mut session = claude::Session::open(&place.path, &options)?;
                if window.is_none()
                    && let Some(fill) = session.transcript().fill
                {
                    options.window =
                        Some(assumed_window(session.meta().model.as_deref(), fill.tokens));
                    session = claude::Session::open(&place.path, &options)?;
                }
                Read::Claude(Box::new(session))
            }
            Agent::Codex => Read::Codex(Box::new(codex::Thread::open(
                &place.codex_store(),
                &place.path,
            )?)),
        };
        Ok(Conversation {
            place: place.clone(),
            read,
        })
    }

    /// Where it is.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// The messages.
    pub(crate) fn transcript(&self) -> &Transcript {
        match &self.read {
            Read::Claude(session) => session.transcript(),
            Read::Codex(thread) => thread.transcript(),
        }
    }

    /// What is known beside them.
    pub(crate) fn about(&self) -> About {
        match &self.read {
            Read::Claude(session) => {
                let meta = session.meta();
                About {
                    id: meta.id.clone(),
                    title: meta.title.clone().or_else(|| meta.last_prompt.clone()),
                    model: meta.model.clone(),
                    file_bytes: meta.stamp.len,
                    compacted_ms: meta.compacted_ms,
                }
            }
            Read::Codex(thread) => {
                let meta = thread.meta();
                About {
                    id: meta.id.clone(),
                    title: meta.last_prompt.clone(),
                    model: meta.model.clone(),
                    file_bytes: meta.stamp.len,
                    compacted_ms: meta.compacted_ms,
                }
            }
        }
    }

    /// The part of the identifier that people type.
    pub(crate) fn short_id(&self) -> String {
        let id = self.about().id;
        match self.place.agent {
            Agent::Claude => short(&id).to_owned(),
            Agent::Codex => codex_short(&id).to_owned(),
        }
    }

    /// What was found wrong while reading, one line each.
    pub(crate) fn findings(&self) -> Vec<String> {
        match &self.read {
            Read::Claude(session) => session.findings().iter().map(ToString::to_string).collect(),
            Read::Codex(thread) => thread
                .findings()
                .iter()
                .map(|f| format!("{}: {}", f.code, f.message))
                .collect(),
        }
    }

    /// Whether a running client has the conversation.
    pub(crate) fn is_live(&self, env: &Env) -> CommandResult<bool> {
        match &self.read {
            Read::Claude(_) => Ok(live_pid(env, &self.place, &self.about().id)?.is_some()),
            Read::Codex(thread) => Ok(thread.is_live(env.now_ms())),
        }
    }

    /// Refuses when a running client has the conversation, or when it cannot be written for another
    /// reason that is known before a plan is made.
    pub(crate) fn refuse_live(&self, env: &Env) -> CommandResult {
        if let Read::Codex(thread) = &self.read {
            return Ok(thread.writable(env.now_ms())?);
        }
        let Some(pid) = live_pid(env, &self.place, &self.about().id)? else {
            return Ok(());
        };
        Err(CommandError::refused(format!(
            "process {pid} has the session {} open; it would not see the change before the next resume",
            self.short_id()
        ))
        .hint("end it first, or add --live: the compaction then holds from the next resume on"))
    }

    /// Turns a plan into rows. `project` brings Codex's projection forward with the write.
    pub(crate) fn prepare(&self, env: &Env, plan: &Plan, project: bool) -> CommandResult<Ready> {
        Ok(match &self.read {
            Read::Claude(session) => {
                let stamp = claude::Stamp::new(env.now_ms(), env::random);
                Ready::Claude(session.prepare(plan, &stamp)?)
            }
            Read::Codex(thread) => {
                let stamp = codex::Stamp::new(env.now_ms(), env::random);
                Ready::Codex(thread.prepare(plan, &stamp)?, project)
            }
        })
    }

    /// Makes the rows that undo the newest compaction.
    pub(crate) fn prepare_undo(&self, env: &Env) -> CommandResult<Ready> {
        Ok(match &self.read {
            Read::Claude(session) => {
                let stamp = claude::Stamp::new(env.now_ms(), env::random);
                Ready::Claude(session.prepare_undo(&stamp)?)
            }
            Read::Codex(thread) => {
                let stamp = codex::Stamp::new(env.now_ms(), env::random);
                Ready::Codex(thread.prepare_undo(&stamp)?, false)
            }
        })
    }
}

impl Conversation {
    /// Makes the rows that repair a damaged session.
    pub(crate) fn prepare_repair(&self, env: &Env) -> CommandResult<Ready> {
        match &self.read {
            Read::Claude(session) => {
                let stamp = claude::Stamp::new(env.now_ms(), env::random);
                Ok(Ready::Claude(session.prepare_repair(&stamp)?))
            }
            Read::Codex(_) => Err(
                CommandError::refused("threads of Codex are not repaired here")
                    .hint("resume the thread in Codex: it brings its own store up to date"),
            ),
        }
    }
}

impl Ready {
    /// Bytes that will be appended.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Ready::Claude(append) => append.bytes(),
            Ready::Codex(append, _) => append.bytes(),
        }
    }

    /// Length of the file as it must still be.
    pub(crate) fn len_before(&self) -> u64 {
        match self {
            Ready::Claude(append) => append.expected().len,
            Ready::Codex(append, _) => append.expected().len,
        }
    }

    /// Appends.
    pub(crate) fn commit(self) -> CommandResult<Written> {
        match self {
            Ready::Claude(append) => {
                let options = claude::CommitOptions::default().keep_mtime(true);
                let receipt = append.commit(&options)?;
                Ok(Written {
                    len_before: receipt.len_before,
                    len_after: receipt.len_after,
                    sha256: receipt.sha256,
                    repaired: receipt.repaired,
                })
            }
            Ready::Codex(append, project) => {
                let options = codex::CommitOptions::default().project(project);
                let receipt = append.commit(&options)?;
                Ok(Written {
                    len_before: receipt.len_before,
                    len_after: receipt.len_after,
                    sha256: receipt.sha256,
                    repaired: false,
                })
            }
        }
    }

    /// Writes a copy and leaves the file alone.
    pub(crate) fn write_copy(&self, out: &Path) -> CommandResult<Written> {
        match self {
            Ready::Claude(append) => {
                let receipt = append.write_copy(out)?;
                Ok(Written {
                    len_before: receipt.len_before,
                    len_after: receipt.len_after,
                    sha256: receipt.sha256,
                    repaired: receipt.repaired,
                })
            }
            Ready::Codex(..) => Err(CommandError::usage("--out is for sessions of Claude Code")
                .hint("forks and reverts of Codex point into a rollout by byte; a copy would be another thread")),
        }
    }
}

/// The process that has a session of Claude Code open. Codex's lease is tried at the append.
pub(crate) fn live_pid(env: &Env, place: &Place, id: &str) -> CommandResult<Option<u32>> {
    match place.agent {
        Agent::Claude => {
            // The client knows a session by the identifier it was started with, which is the file's
            // name; a copied or forked file may hold rows of another.
            let stem = place.path.file_stem().unwrap_or_default().to_string_lossy();
            let live = claude::Store::new(&env.claude_root).live(&claude::SystemProcesses)?;
            let found = live
                .into_iter()
                .find(|s| s.session == id || s.session == stem);
            Ok(found.map(|s| s.pid))
        }
        Agent::Codex => Ok(None),
    }
}

/// The window of a model that the file does not tell: a million where its name says so or where
/// more than the usual window was used already, else 200,000 tokens.
pub(crate) fn assumed_window(model: Option<&str>, fill: u64) -> u64 {
    let model = model.unwrap_or_default().to_ascii_lowercase();
    let is_large = model.contains("[1m]") || model.contains("opus-5") || model.contains("sonnet-5");
    if is_large || fill > 200_000 {
        1_000_000
    } else {
        200_000
    }
}

/// The beginning of an identifier, as people write it.
pub(crate) fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

/// The end of a thread's identifier: it begins with its time, so only the end tells threads apart.
pub(crate) fn codex_short(id: &str) -> &str {
    id.len()
        .checked_sub(8)
        .and_then(|at| id.get(at..))
        .unwrap_or(id)
}
