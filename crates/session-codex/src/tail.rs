//! The fill and the pause from a file's end, in bounded time, for hooks and status lines.

use std::fs::File;
use std::path::Path;

use ctxfold_transcript::{Author, Fill};

use crate::item::{self, Item};
use crate::lines::{self, Backward};
use crate::live::token_count;
use crate::prefix::SUMMARY_PREFIX;
use crate::stamp::parse_timestamp;
use crate::wire::Line;
use crate::{Error, ErrorKind, files};

/// How far from the end is looked.
const LIMIT: u64 = 8 * 1024 * 1024;

/// A fill, and since when the rollout says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counted {
    /// The newest count.
    pub fill: Fill,
    /// When the client wrote it, or the compaction that made it stale, in milliseconds since the
    /// Unix epoch.
    pub at_ms: Option<i64>,
}

/// The fill of a thread, read from its rollout's end: at most 8 MiB of it are looked at, whatever
/// its length. `None` where no count is found there.
///
/// # Errors
/// When the file cannot be read, or is compressed.
pub fn fill(path: &Path) -> Result<Option<Fill>, Error> {
    Ok(counted(path)?.map(|counted| counted.fill))
}

/// The same with its time.
///
/// # Errors
/// As [`fill`].
pub fn counted(path: &Path) -> Result<Option<Counted>, Error> {
    let io = |e| Error::io(path, "failed to read the rollout", e);
    let file = open(path)?;
    let len = file.metadata().map_err(io)?.len();
    let mut backward = Backward::limited(&file, len, LIMIT);
    let (mut stale, mut at_ms) = (false, None);
    while let Some(extent) = backward.next().map_err(io)? {
        let head = lines::head(&file, extent).map_err(io)?;
        match lines::kind(&head) {
            Some(b"compacted") => {
                at_ms = if stale { at_ms } else { written_ms(&head) };
                stale = true;
            }
            Some(b"event_msg") if memchr::memmem::find(&head, b"\"token_count\"").is_some() => {
                let bytes = lines::read(&file, extent).map_err(io)?;
                if let Some(count) = Line::parse(&bytes).as_ref().and_then(token_count) {
                    let fill = Fill {
                        tokens: count.total,
                        window: count.window,
                        stale,
                    };
                    let at_ms = if stale { at_ms } else { written_ms(&head) };
                    return Ok(Some(Counted { fill, at_ms }));
                }
            }
            _ => {}
        }
    }
    Ok(None)
}

/// What a rollout's end says of a pause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pause {
    /// When user, model or tool last said something, in milliseconds since the Unix epoch; `None`
    /// where nobody did since the newest compaction, or not within the part that is looked at.
    pub active_ms: Option<i64>,
    /// The same of model and tools alone.
    pub answered_ms: Option<i64>,
    /// When the newest compaction was written, where nobody said anything since.
    pub compacted_ms: Option<i64>,
}

/// How long a thread has paused, read from its rollout's end as [`fill`] is.
///
/// # Errors
/// As [`fill`].
pub fn pause(path: &Path) -> Result<Pause, Error> {
    let mut pause = Pause::default();
    let io = |e| Error::io(path, "failed to read the rollout", e);
    let file = open(path)?;
    let len = file.metadata().map_err(io)?.len();
    let mut backward = Backward::limited(&file, len, LIMIT);
    while let Some(extent) = backward.next().map_err(io)? {
        let head = lines::head(&file, extent).map_err(io)?;
        match lines::kind(&head) {
            Some(b"compacted") => {
                if pause.active_ms.is_none() {
                    pause.compacted_ms = written_ms(&head);
                }
                break;
            }
            Some(b"response_item") => {}
            _ => continue,
        }
        let bytes = lines::read(&file, extent).map_err(io)?;
        let at_ms = written_ms(&head);
        let item = Line::parse(&bytes).and_then(|l| item::parse(l.payload.get(), SUMMARY_PREFIX));
        let by_user = match item {
            Some(
                Item::Message {
                    reinjected: true, ..
                }
                | Item::Unknown(_)
                | Item::Compaction,
            )
            | None => continue,
            Some(Item::Message { author, .. }) => match author {
                Author::User => true,
                Author::Assistant | Author::Tool => false,
                _ => continue,
            },
            Some(_) => false,
        };
        pause.active_ms = pause.active_ms.or(at_ms);
        if !by_user {
            pause.answered_ms = at_ms;
            break;
        }
    }
    Ok(pause)
}

fn open(path: &Path) -> Result<File, Error> {
    if path.extension().is_some_and(|e| e == "zst") {
        return Err(Error::new(ErrorKind::Compressed, "the rollout is compressed").at(path));
    }
    files::open(path).map_err(|e| Error::io(path, "failed to read the rollout", e))
}

/// When a line was written, by its beginning: a compaction's line may be long.
fn written_ms(head: &[u8]) -> Option<i64> {
    const KEY: &[u8] = b"\"timestamp\":\"";
    let start = memchr::memmem::find(head, KEY)? + KEY.len();
    let len = memchr::memchr(b'"', &head[start..])?;
    parse_timestamp(std::str::from_utf8(&head[start..start + len]).ok()?)
}
