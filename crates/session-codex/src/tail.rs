//! The fill from a file's end, in bounded time, for hooks and status lines.

use std::path::Path;

use ctxfold_transcript::Fill;

use crate::lines::{self, Backward};
use crate::live::token_count;
use crate::wire::Line;
use crate::{Error, ErrorKind};

/// How far from the end is looked.
const LIMIT: u64 = 8 * 1024 * 1024;

/// The fill of a thread, read from its rollout's end: at most 8 MiB of it are looked at, whatever
/// its length. `None` where no count is found there.
///
/// # Errors
/// When the file cannot be read, or is compressed.
pub fn fill(path: &Path) -> Result<Option<Fill>, Error> {
    if path.extension().is_some_and(|e| e == "zst") {
        return Err(Error::new(ErrorKind::Compressed, "the rollout is compressed").at(path));
    }
    let io = |e| Error::io(path, "failed to read the rollout", e);
    let file = std::fs::File::open(path).map_err(io)?;
    let len = file.metadata().map_err(io)?.len();
    let mut backward = Backward::limited(&file, len, LIMIT);
    let mut stale = false;
    while let Some(extent) = backward.next().map_err(io)? {
        let head = lines::head(&file, extent).map_err(io)?;
        match lines::kind(&head) {
            Some(b"compacted") => stale = true,
            Some(b"event_msg") if memchr::memmem::find(&head, b"\"token_count\"").is_some() => {
                let bytes = lines::read(&file, extent).map_err(io)?;
                if let Some(count) = Line::parse(&bytes).as_ref().and_then(token_count) {
                    return Ok(Some(Fill {
                        tokens: count.total,
                        window: count.window,
                        stale,
                    }));
                }
            }
            _ => {}
        }
    }
    Ok(None)
}
