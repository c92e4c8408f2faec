//! The client's home: which threads there are, and where their rollouts and stores lie. Stores are
//! read through SQLite, read-only, and never made.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rusqlite::{Connection, OpenFlags};

use crate::chain::{self, file_name, id_in_name};
use crate::project::columns;
use crate::wire::{Item, Line, SessionMeta};
use crate::{Error, ErrorKind, Finding, files};

const PATIENCE: Duration = Duration::from_millis(500);
/// How much of a rollout's beginning is looked at for a title, where the store gives none.
const BEGINNING: u64 = 256 * 1024;
/// The most of a `config.toml` that is read, in bytes.
const CONFIG: u64 = 4 * 1024 * 1024;
/// The last millisecond of the year 9999: a later time is none.
const LAST_MS: i64 = 253_402_300_799_999;

/// A home of Codex.
#[derive(Debug, Clone)]
pub struct Store {
    home: PathBuf,
    sqlite_home: PathBuf,
}

/// One thread, as the store or its rollout's beginning tells.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The thread's identifier.
    pub id: String,
    /// Its active rollout. Where that was compressed this names the compressed file.
    pub path: PathBuf,
    /// Title, or the beginning of the first prompt.
    pub title: Option<String>,
    /// Working directory.
    pub cwd: Option<PathBuf>,
    /// Last change, in milliseconds since the Unix epoch.
    pub updated_ms: i64,
    /// Length of the rollout in bytes; 0 where it is missing.
    pub bytes: u64,
    /// Whether it is archived.
    pub archived: bool,
    /// Whether the rollout is compressed.
    pub compressed: bool,
    /// Whether the rollout is where the store says.
    pub missing: bool,
    /// The client that made it.
    pub version: Option<String>,
    /// `paginated` or `legacy`, where it is known.
    pub history_mode: Option<String>,
}

/// How a thread is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Query {
    /// By path, identifier, unique beginning or end of the identifier, or title.
    Text(String),
    /// The newest that is not archived, of a working directory or of all.
    Newest(Option<PathBuf>),
}

impl Store {
    /// The home at this folder, which is `$CODEX_HOME` or `~/.codex`. Its `config.toml` is read for
    /// `sqlite_home`; one that cannot be read counts as empty.
    pub fn new(home: impl Into<PathBuf>) -> Store {
        let home = home.into();
        let sqlite_home = files::read_text(&home.join("config.toml"), CONFIG)
            .ok()
            .and_then(|text| text.parse::<toml::Table>().ok())
            .and_then(|table| table.get("sqlite_home")?.as_str().map(PathBuf::from))
            .map_or_else(|| home.clone(), |path| home.join(path));
        Store { home, sqlite_home }
    }

    /// The home.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The newest store of threads, `state_<N>.sqlite`, where there is one.
    pub fn state(&self) -> Option<PathBuf> {
        self.highest("state_")
    }

    /// The newest store of projections, `thread_history_<N>.sqlite`, where there is one.
    pub fn history(&self) -> Option<PathBuf> {
        self.highest("thread_history_")
    }

    /// Bytes of the store of projections that stand in its write-ahead log alone: copying the main
    /// file would lose them.
    pub fn logged_bytes(&self) -> u64 {
        let log = self.history().map(|path| {
            let mut path = path.into_os_string();
            path.push("-wal");
            path
        });
        log.and_then(|path| fs::metadata(path).ok())
            .map_or(0, |metadata| metadata.len())
    }

    fn highest(&self, base: &str) -> Option<PathBuf> {
        let entries = fs::read_dir(&self.sqlite_home).ok()?;
        entries
            .filter_map(Result::ok)
            // A pipe of that name would hang SQLite.
            .filter(|entry| fs::metadata(entry.path()).is_ok_and(|m| m.is_file()))
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let number = name.strip_prefix(base)?.strip_suffix(".sqlite")?;
                Some((number.parse::<u32>().ok()?, entry.path()))
            })
            .max()
            .map(|(_, path)| path)
    }

    /// Every thread, the newest first, and what was found wrong. What the store does not list, the
    /// client still resumes: the rollouts of other threads are added, as they tell of themselves.
    pub fn entries(&self) -> (Vec<Entry>, Vec<Finding>) {
        let mut findings = Vec::new();
        let mut entries = Vec::new();
        if let Some(path) = self.state() {
            match read_state(&path, &mut findings) {
                Ok(found) => entries = found,
                Err(error) => {
                    let message = format!("{}: {}", path.display(), chain_of(&error));
                    findings.push(Finding::new("store-malformed", message));
                }
            }
        }
        let listed: HashSet<String> = entries.iter().map(|e| e.id.clone()).collect();
        self.add_rollouts(&listed, &mut entries);
        entries.sort_by(|a, b| (b.updated_ms, &b.id).cmp(&(a.updated_ms, &a.id)));
        (entries, findings)
    }

    /// Adds the threads that are not listed, from their rollouts.
    fn add_rollouts(&self, listed: &HashSet<String>, entries: &mut Vec<Entry>) {
        let mut places: HashMap<String, usize> = HashMap::new();
        for path in chain::rollouts(&self.home) {
            if id_in_name(&path).is_some_and(|id| listed.contains(&id)) {
                continue;
            }
            let Some(entry) = self.read_rollout(&path) else {
                continue;
            };
            if listed.contains(&entry.id) {
                continue;
            }
            // A reverted thread owns several rollouts: the newest is the active one. A plain file
            // wins over its compressed twin.
            match places.get(&entry.id) {
                Some(&at) if rank(&entry) > rank(&entries[at]) => entries[at] = entry,
                Some(_) => {}
                None => {
                    places.insert(entry.id.clone(), entries.len());
                    entries.push(entry);
                }
            }
        }
    }

    fn read_rollout(&self, path: &Path) -> Option<Entry> {
        let metadata = fs::metadata(path).ok()?;
        let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let (meta, title) = beginning(path)?;
        Some(Entry {
            id: meta.id,
            path: path.to_owned(),
            title,
            cwd: meta.cwd.map(PathBuf::from),
            updated_ms: modified.as_millis() as i64,
            bytes: metadata.len(),
            archived: path.starts_with(self.home.join("archived_sessions")),
            compressed: is_compressed(path),
            missing: false,
            version: meta.cli_version,
            history_mode: meta.history_mode,
        })
    }

    /// The thread that a query names.
    ///
    /// # Errors
    /// When nothing is found, or more than one thread ([`ErrorKind::Ambiguous`]).
    pub fn find(&self, query: &Query) -> Result<Entry, Error> {
        let (entries, _) = self.entries();
        let found = match query {
            Query::Newest(cwd) => entries
                .into_iter()
                .find(|e| !e.archived && cwd.as_ref().is_none_or(|c| e.cwd.as_ref() == Some(c)))
                .ok_or_else(|| Error::new(ErrorKind::NotFound, "no thread of Codex is here")),
            Query::Text(text) => self.find_text(text, entries),
        }?;
        // What lies at the path may be another thread's.
        match beginning(&found.path) {
            Some((meta, _)) if meta.id != found.id => {
                let text = format!(
                    "the store says that the thread {} is here, the file is of the thread {}",
                    found.id, meta.id
                );
                Err(Error::new(ErrorKind::WrongThread, text).at(&found.path))
            }
            _ => Ok(found),
        }
    }

    fn find_text(&self, text: &str, entries: Vec<Entry>) -> Result<Entry, Error> {
        let path = Path::new(text);
        if path.is_file() {
            let id = id_in_name(path);
            let known = entries
                .into_iter()
                .find(|e| same_file(&e.path, path) && Some(&e.id) == id.as_ref());
            return known
                .or_else(|| self.read_rollout(path))
                .ok_or_else(|| Error::new(ErrorKind::NotAThread, "no rollout of Codex").at(path));
        }
        let matching = |test: &dyn Fn(&Entry) -> bool| -> Vec<Entry> {
            entries.iter().filter(|e| test(e)).cloned().collect()
        };
        let tests: [&dyn Fn(&Entry) -> bool; 4] = [
            &|e| e.id == text,
            &|e| text.len() >= 4 && (e.id.starts_with(text) || e.id.ends_with(text)),
            &|e| e.title.as_deref() == Some(text),
            &|e| {
                let title = e.title.as_deref().unwrap_or_default().to_lowercase();
                !text.is_empty() && title.contains(&text.to_lowercase())
            },
        ];
        for test in tests {
            let mut found = matching(test);
            match found.len() {
                0 => {}
                1 => return Ok(found.remove(0)),
                n => {
                    let ids: Vec<&str> = found.iter().take(5).map(|e| e.id.as_str()).collect();
                    return Err(Error::new(
                        ErrorKind::Ambiguous,
                        format!("{text:?} names {n} threads: {}", ids.join(", ")),
                    ));
                }
            }
        }
        Err(Error::new(
            ErrorKind::NotFound,
            format!("no thread of Codex is named {text:?}"),
        ))
    }
}

/// The threads that a store lists.
fn read_state(path: &Path, findings: &mut Vec<Finding>) -> Result<Vec<Entry>, rusqlite::Error> {
    let store = open_read_only(path)?;
    let has = columns(&store, "threads")?;
    let column = |name: &str, otherwise: &str| {
        if has.iter().any(|c| c == name) {
            name.to_owned()
        } else {
            otherwise.to_owned()
        }
    };
    let sql = format!(
        "SELECT id, rollout_path, {}, {}, {}, updated_at, {}, archived, {}, {} FROM threads",
        column("title", "''"),
        column("preview", "''"),
        column("cwd", "NULL"),
        column("updated_at_ms", "NULL"),
        column("cli_version", "NULL"),
        column("history_mode", "NULL"),
    );
    let mut statement = store.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        let text = |at: usize| -> Option<String> {
            row.get::<_, Option<String>>(at)
                .ok()
                .flatten()
                .filter(|t| !t.is_empty())
        };
        let millis: Option<i64> = row.get(6)?;
        if millis.is_none() {
            findings.push(Finding::new(
                "store-null-time",
                format!("thread {id} has no time in milliseconds"),
            ));
        }
        let updated_ms = millis.unwrap_or(row.get::<_, i64>(5)?.saturating_mul(1000));
        let updated_ms = updated_ms.clamp(0, LAST_MS);
        let named = PathBuf::from(row.get::<_, String>(1)?);
        let (path, compressed, bytes) = on_disk(&named);
        let other = id_in_name(&path).filter(|named| !named.eq_ignore_ascii_case(&id));
        let is_missing = bytes.is_none() || other.is_some();
        if let Some(other) = other {
            findings.push(Finding::new(
                "thread-mismatch",
                format!("the store says that the thread {id} is in the file of {other}"),
            ));
        }
        if bytes.is_none() {
            findings.push(Finding::new(
                "rollout-missing",
                format!("thread {id}: {}", named.display()),
            ));
        }
        entries.push(Entry {
            id,
            path,
            title: text(2).or_else(|| text(3)),
            cwd: text(4).map(PathBuf::from),
            updated_ms,
            bytes: bytes.unwrap_or(0),
            archived: row.get(7)?,
            compressed,
            missing: is_missing,
            version: text(8),
            history_mode: text(9),
        });
    }
    Ok(entries)
}

/// Opens a store for reading, with its write-ahead log. Never makes one.
pub(crate) fn open_read_only(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let store = Connection::open_with_flags(path, flags)?;
    store.busy_timeout(PATIENCE)?;
    Ok(store)
}

/// The file that is really there for a path in the store: the plain one wins over the compressed.
fn on_disk(named: &Path) -> (PathBuf, bool, Option<u64>) {
    let file = |path: &Path| fs::metadata(path).ok().filter(fs::Metadata::is_file);
    let len = |path: &Path| file(path).map(|m| m.len());
    if let Some(len) = len(named) {
        return (named.to_owned(), is_compressed(named), Some(len));
    }
    let mut packed = named.as_os_str().to_owned();
    packed.push(".zst");
    let packed = PathBuf::from(packed);
    match len(&packed) {
        Some(len) => (packed, true, Some(len)),
        None => (named.to_owned(), false, None),
    }
}

fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "zst")
}

fn rank(entry: &Entry) -> (bool, String) {
    let name = file_name(&entry.path);
    (!entry.compressed, name)
}

fn same_file(a: &Path, b: &Path) -> bool {
    a == b || matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}

/// First line and first prompt of a rollout.
fn beginning(path: &Path) -> Option<(SessionMeta, Option<String>)> {
    let file = files::open(path).ok()?;
    let source: Box<dyn Read> = if is_compressed(path) {
        Box::new(zstd::Decoder::new(file).ok()?)
    } else {
        Box::new(file)
    };
    let mut reader = BufReader::new(source.take(BEGINNING));
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line).ok()?;
    let meta = Line::parse(&line)
        .filter(|l| l.kind == "session_meta")?
        .payload::<SessionMeta>()?;
    loop {
        line.clear();
        match reader.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return Some((meta, None)),
            Ok(_) => {}
        }
        let title = Line::parse(&line)
            .filter(|l| l.kind == "response_item")
            .and_then(|l| prompt(l.payload.get()));
        if title.is_some() {
            return Some((meta, title));
        }
    }
}

fn prompt(raw: &str) -> Option<String> {
    let probe: Item<'_> = serde_json::from_str(raw).ok()?;
    if probe.kind != "message" {
        return None;
    }
    match crate::item::parse(raw, crate::prefix::SUMMARY_PREFIX)? {
        crate::item::Item::Message {
            author: ctxfold_transcript::Author::User,
            blocks,
            ..
        } => blocks.into_iter().find_map(|(_, content)| match content {
            ctxfold_transcript::Content::Text(text) => Some(text),
            _ => None,
        }),
        _ => None,
    }
}

fn chain_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    text
}
