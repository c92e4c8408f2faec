//! What a file's end says, read in bounded time and memory: fill, model, last activity.
//!
//! This is for hooks, status lines and listings, which run often. It takes the newest rows in file
//! order and does not choose a branch; [`Session`](crate::Session) does.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use ctxfold_transcript::Fill;

use crate::backward::{Backward, Found};
use crate::glance::{self, Glance, glance};
use crate::json;
use crate::{Error, ErrorKind};

/// Most bytes that are read from the end before giving up. An ordinary file needs one block.
const MOST: u64 = 32 << 20;

/// Most bytes that are read on, behind a compaction, for the model: what it wrote again stands there.
const MOST_FOR_MODEL: u64 = 1 << 20;

/// What the end of a session file says.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Tail {
    /// Tokens in the context: the newest usage that is not zero. Directly after a compaction there
    /// is none yet; then it is the size that the compaction recorded, marked as stale. The window
    /// is unknown here.
    pub fill: Option<Fill>,
    /// The model of the newest answer.
    pub model: Option<String>,
    /// How long the provider keeps the cache that the newest answers wrote.
    pub cache_ttl: Option<Duration>,
    /// Time of the newest row, in milliseconds since the Unix epoch.
    pub active_ms: Option<i64>,
    /// Time of the newest answer of the model since the last compaction, in milliseconds since the
    /// Unix epoch.
    pub answered_ms: Option<i64>,
    /// Time of the last compaction, in milliseconds since the Unix epoch, where no answer came
    /// after it.
    pub compacted_ms: Option<i64>,
    /// Working directory of the newest row.
    pub cwd: Option<String>,
    /// Client version of the newest row.
    pub version: Option<String>,
    /// Title that the user gave, where the end of the file holds one.
    pub title: Option<String>,
    /// Title that the client made, where the end of the file holds one.
    pub client_title: Option<String>,
    /// The newest prompt, where the end of the file holds it; cut short by the client.
    pub last_prompt: Option<String>,
    /// Whether usage or a compaction was found, or the whole file was read without one.
    pub complete: bool,
}

/// Reads the end of a session file.
///
/// # Errors
/// When the file cannot be opened or read. Damage inside it is passed over.
pub fn read_tail(path: &Path) -> Result<Tail, Error> {
    read_tail_and(path, 0)
}

/// Reads the end of a session file, and at least `enough` bytes of it.
pub(crate) fn read_tail_and(path: &Path, enough: u64) -> Result<Tail, Error> {
    let io = |e| Error::io(path, "cannot read the session", e);
    let file = File::open(path).map_err(io)?;
    let meta = file.metadata().map_err(io)?;
    if !meta.is_file() {
        return Err(Error::new(ErrorKind::NotASession, "not a file").at(path));
    }
    // In a sub-agent's own file all rows are marked as its own.
    let agent = path
        .file_name()
        .is_some_and(|n| n.to_string_lossy().starts_with("agent-"));
    from_reader(file, meta.len(), enough, agent).map_err(io)
}

/// The fill of a session, cheaply: `None` when its end does not say it, or it cannot be read.
pub fn fill(path: &Path) -> Option<Fill> {
    read_tail(path).ok()?.fill
}

fn from_reader<R: Read + Seek>(reader: R, len: u64, enough: u64, agent: bool) -> io::Result<Tail> {
    let until = len.saturating_sub(enough);
    let mut lines = Backward::new(
        Budget {
            inner: reader,
            left: MOST,
        },
        len,
    );
    let mut tail = Tail::default();
    let mut complete_at = None;
    loop {
        match lines.line() {
            Ok(Some((extent, Found::Bytes(line)))) => {
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                // A torn line is passed over: what is left of it is not to be trusted.
                if line.first() == Some(&b'{') && line.last() == Some(&b'}') {
                    tail.take(&glance(line), agent);
                }
                if tail.complete && complete_at.is_none() {
                    complete_at = Some(extent.offset);
                }
                let enough = complete_at
                    .is_some_and(|at| tail.model.is_some() || at - extent.offset > MOST_FOR_MODEL);
                if enough && extent.offset <= until {
                    return Ok(tail);
                }
            }
            Ok(Some((_, Found::Long))) => {}
            Ok(None) => {
                tail.complete = true;
                return Ok(tail);
            }
            Err(e) if e.kind() == io::ErrorKind::FileTooLarge => return Ok(tail),
            Err(e) => return Err(e),
        }
    }
}

impl Tail {
    /// Takes what a row says and no newer row said.
    fn take(&mut self, row: &Glance<'_>, agent: bool) {
        match row.kind {
            b"custom-title" => keep_text(&mut self.title, row.words),
            b"ai-title" | b"summary" => keep_text(&mut self.client_title, row.words),
            b"last-prompt" => keep_text(&mut self.last_prompt, row.words),
            b"user" if self.last_prompt.is_none() => self.last_prompt = prompt(row),
            b"user" | b"assistant" | b"attachment" | b"system" => {}
            _ => return,
        }
        if row.sidechain && !agent {
            return;
        }
        keep_text(&mut self.cwd, row.cwd);
        keep_text(&mut self.version, row.version);
        if self.active_ms.is_none() {
            self.active_ms = row.at_ms();
        }
        if row.is_boundary() && !self.complete {
            let tokens = row
                .compact
                .and_then(|c| json::field(c, "postTokens"))
                .and_then(glance::tokens);
            self.fill = self.fill.or(tokens.map(|tokens| Fill {
                tokens,
                window: None,
                stale: true,
            }));
            self.compacted_ms = row.at_ms();
            self.complete = true;
        }
        if row.kind == b"assistant" {
            self.take_answer(row);
        }
    }

    fn take_answer(&mut self, row: &Glance<'_>) {
        let model = row.message.and_then(|m| json::field(m, "model"));
        // The client writes such rows itself, for errors and interruptions.
        if model == Some(b"\"<synthetic>\"") {
            return;
        }
        keep_text(&mut self.model, model);
        if self.answered_ms.is_none() && !self.complete {
            self.answered_ms = row.at_ms();
        }
        let Some(usage) = row.usage() else { return };
        if self.cache_ttl.is_none() {
            if usage.hour > 0 {
                self.cache_ttl = Some(Duration::from_hours(1));
            } else if usage.minutes > 0 {
                self.cache_ttl = Some(Duration::from_mins(5));
            }
        }
        if usage.context > 0 && !self.complete {
            self.fill = Some(Fill {
                tokens: usage.context,
                window: None,
                stale: false,
            });
            self.complete = true;
        }
    }
}

/// The words of a row that the user typed: no tool result, no command, nothing that the client put
/// there.
pub(crate) fn prompt(row: &Glance<'_>) -> Option<String> {
    if row.kind != b"user" || row.meta || row.summary || row.sidechain {
        return None;
    }
    let content = row.content()?;
    let text = json::text(content).or_else(|| {
        let block =
            json::Array::new(content).find(|b| json::field(b, "type") == Some(b"\"text\""))?;
        json::text(json::field(block, "text")?)
    })?;
    let text = text.trim();
    let made = [
        "<command-",
        "<local-command-",
        "<bash-",
        "<task-notification",
        "[Request interrupted",
        "Caveat:",
    ];
    if text.is_empty() || made.iter().any(|m| text.starts_with(m)) {
        return None;
    }
    Some(one_line(text))
}

/// At most 200 characters of a text, without line breaks.
pub(crate) fn one_line(text: &str) -> String {
    let mut out = String::new();
    let mut count = 0;
    for word in text.split_whitespace() {
        count += word.chars().count() + 1;
        if count > 200 {
            out.push('…');
            return out;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

fn keep_text(slot: &mut Option<String>, value: Option<&[u8]>) {
    if slot.is_none() {
        *slot = value.and_then(json::text).map(std::borrow::Cow::into_owned);
    }
}

/// A reader that refuses to read more than a number of bytes.
struct Budget<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Budget<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let most = buf
            .len()
            .min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let n = self.inner.read(&mut buf[..most])?;
        self.left -= n as u64;
        Ok(n)
    }
}

impl<R: Seek> Seek for Budget<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}
