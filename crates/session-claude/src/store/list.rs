//! A listing of sessions, from the head and the end of each file.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ctxfold_transcript::Fill;
use memchr::memchr_iter;

use super::{AgentFile, Entry, LiveSession, Processes, Store};
use crate::Error;
use crate::glance::glance;
use crate::json;
use crate::tail::{prompt, read_tail_and};

/// Bytes read from a file's head.
const HEAD: u64 = 64 << 10;
/// Bytes read from its end, at least.
const END: u64 = 64 << 10;

/// Which sessions to list.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Filter {
    /// Only those of a working directory.
    pub cwd: Option<PathBuf>,
    /// Only those of at least this many bytes.
    pub min_size: u64,
    /// Only those that did not change for this long before `now`.
    pub idle: Option<Duration>,
    /// The time; needed for `idle`.
    pub now: Option<SystemTime>,
}

/// One session of a listing.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Listed {
    /// The session's identifier.
    pub id: String,
    /// The file.
    pub path: PathBuf,
    /// Name of the project's folder.
    pub project: String,
    /// Working directory.
    pub cwd: Option<String>,
    /// The user's title, else the client's, else the first prompt: as far as the file's head and
    /// end hold them.
    pub title: Option<String>,
    /// The first prompt, at most 200 characters.
    pub first_prompt: Option<String>,
    /// The newest prompt, cut short.
    pub last_prompt: Option<String>,
    /// Time of the first row, in milliseconds since the Unix epoch.
    pub started_ms: Option<i64>,
    /// Time of the newest row, in milliseconds since the Unix epoch.
    pub active_ms: Option<i64>,
    /// Time of the file's last change.
    pub modified: Option<SystemTime>,
    /// Size in bytes.
    pub size: u64,
    /// How full the context is.
    pub fill: Option<Fill>,
    /// The model of the newest answer.
    pub model: Option<String>,
    /// Client version of the newest row.
    pub version: Option<String>,
    /// The process that has the session.
    pub live: Option<LiveSession>,
}

/// What the head of a file says.
#[derive(Debug, Default)]
struct Head {
    title: Option<String>,
    client_title: Option<String>,
    first_prompt: Option<String>,
    started_ms: Option<i64>,
    cwd: Option<String>,
}

impl Store {
    /// Lists sessions, the newest first. Of each file only the head and the end are read.
    ///
    /// # Errors
    /// When a folder cannot be read. A session that cannot be read is listed with what is known.
    pub fn list(&self, filter: &Filter, processes: &dyn Processes) -> Result<Vec<Listed>, Error> {
        let mut entries = match &filter.cwd {
            Some(dir) => self.entries_in(dir)?,
            None => self.entries()?,
        };
        entries.retain(|e| e.size >= filter.min_size && filter.is_idle(e));
        entries.sort_by(|a, b| (b.modified, &b.id).cmp(&(a.modified, &a.id)));
        let live = self.live(processes)?;
        Ok(entries.into_iter().map(|e| listed(e, &live)).collect())
    }
}

impl Filter {
    fn is_idle(&self, entry: &Entry) -> bool {
        let (Some(idle), Some(now)) = (self.idle, self.now) else {
            return true;
        };
        let Some(modified) = entry.modified else {
            return false;
        };
        // A change in the future is no pause.
        now.duration_since(modified)
            .is_ok_and(|pause| pause >= idle)
    }
}

fn listed(entry: Entry, live: &[LiveSession]) -> Listed {
    let tail = read_tail_and(&entry.path, END).unwrap_or_default();
    let head = head(&entry.path).unwrap_or_default();
    Listed {
        title: tail
            .title
            .or(head.title)
            .or(tail.client_title)
            .or(head.client_title)
            .or_else(|| head.first_prompt.clone()),
        first_prompt: head.first_prompt,
        last_prompt: tail.last_prompt,
        cwd: tail.cwd.or(head.cwd),
        started_ms: head.started_ms,
        active_ms: tail.active_ms,
        modified: entry.modified,
        size: entry.size,
        fill: tail.fill,
        model: tail.model,
        version: tail.version,
        live: live.iter().find(|l| l.session == entry.id).cloned(),
        id: entry.id,
        path: entry.path,
        project: entry.project,
    }
}

/// The working directory of a file's first rows.
pub(super) fn first_cwd(path: &Path) -> Option<String> {
    head(path).ok()?.cwd
}

fn head(path: &Path) -> std::io::Result<Head> {
    let mut bytes = Vec::new();
    File::open(path)?.take(HEAD).read_to_end(&mut bytes)?;
    let mut head = Head::default();
    let mut start = 0;
    let ends = memchr_iter(b'\n', &bytes).chain([bytes.len()]);
    for end in ends {
        let line = &bytes[start..end.max(start)];
        start = end + 1;
        let row = glance(line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line));
        let words = || {
            row.words
                .and_then(json::text)
                .map(std::borrow::Cow::into_owned)
        };
        match row.kind {
            b"custom-title" => head.title = words().or(head.title),
            b"ai-title" => head.client_title = words().or(head.client_title),
            b"summary" if head.client_title.is_none() => head.client_title = words(),
            _ => {}
        }
        if head.started_ms.is_none() {
            head.started_ms = row.at_ms();
        }
        if head.cwd.is_none() {
            head.cwd = row
                .cwd
                .and_then(json::text)
                .map(std::borrow::Cow::into_owned);
        }
        if head.first_prompt.is_none() {
            head.first_prompt = prompt(&row);
        }
    }
    Ok(head)
}

pub(super) fn agent_file(id: &str, path: PathBuf, size: u64) -> AgentFile {
    let meta = fs::read(path.with_extension("meta.json")).unwrap_or_default();
    let text = |name: &str| {
        json::field(&meta, name)
            .and_then(json::text)
            .map(std::borrow::Cow::into_owned)
    };
    AgentFile {
        id: id.to_owned(),
        size,
        kind: text("agentType"),
        description: text("description"),
        call: text("toolUseId"),
        path,
    }
}
