//! The fill from a file's end, in bounded time, for hooks and status lines.

use std::path::Path;

use ctxfold_transcript::Fill;

use crate::lines::{self, Backward};
use crate::live::token_count;
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
    if path.extension().is_some_and(|e| e == "zst") {
        return Err(Error::new(ErrorKind::Compressed, "the rollout is compressed").at(path));
    }
    let io = |e| Error::io(path, "failed to read the rollout", e);
    let file = files::open(path).map_err(io)?;
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

/// When a line was written, by its beginning: a compaction's line may be long.
fn written_ms(head: &[u8]) -> Option<i64> {
    const KEY: &[u8] = b"\"timestamp\":\"";
    let start = memchr::memmem::find(head, KEY)? + KEY.len();
    let len = memchr::memchr(b'"', &head[start..])?;
    parse_timestamp(std::str::from_utf8(&head[start..start + len]).ok()?)
}
