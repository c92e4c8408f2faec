//! Where the live part of a thread begins: its newest compaction, found from the end.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::chain::Rollout;
use crate::lines::{self, At, Backward, Extent};
use crate::live::Place;
use crate::prefix::{self, SUMMARY_PREFIX};
use crate::stamp::parse_timestamp;
use crate::wire::{BeginProbe, Compacted, Line};
use crate::{Error, ErrorKind};

/// The most bytes that a compressed rollout is unpacked to in memory.
const UNPACKED: u64 = 512 * 1024 * 1024;

/// The compaction at which the live part begins.
#[derive(Debug, Clone)]
pub(crate) struct Begin {
    pub(crate) place: Place,
    pub(crate) at_ms: Option<i64>,
    pub(crate) window_number: Option<u64>,
    pub(crate) window_id: Option<String>,
    pub(crate) previous_window_id: Option<String>,
    pub(crate) first_window_id: Option<String>,
    /// The summary in its `message`, without the prefix.
    pub(crate) summary: Option<String>,
}

impl Begin {
    pub(crate) fn new(of: &Compacted<'_>, prefix: &str, place: Place, at_ms: Option<i64>) -> Begin {
        Begin {
            place,
            at_ms,
            window_number: of.window_number,
            window_id: of.window_id.clone(),
            previous_window_id: of.previous_window_id.clone(),
            first_window_id: of.first_window_id.clone(),
            summary: prefix::strip(&of.message, prefix).map(str::to_owned),
        }
    }

    /// The compaction in a line, where it is one.
    pub(crate) fn of(bytes: &[u8], place: Place) -> Option<Begin> {
        let line = Line::parse(bytes).filter(|line| line.kind == "compacted")?;
        let of = line.payload::<Compacted<'_>>()?;
        let prefix = prefix::derive(&of.message).unwrap_or(SUMMARY_PREFIX);
        let at_ms = line.timestamp.as_deref().and_then(parse_timestamp);
        Some(Begin::new(&of, prefix, place, at_ms))
    }
}

/// Where the live part begins in one rollout, and whether at a compaction.
pub(crate) fn find_begin(rollout: &Rollout, end: u64) -> Result<(u64, bool), Error> {
    let io = |e| Error::io(&rollout.path, "failed to read the rollout", e);
    let mut backward = Backward::new(&rollout.file, end);
    while let Some(extent) = backward.next().map_err(io)? {
        let head = lines::head(&rollout.file, extent).map_err(io)?;
        let maybe = match lines::kind(&head) {
            Some(kind) => kind == b"compacted",
            // The payload stands before the type, or this is no line at all.
            None => true,
        };
        if !maybe {
            continue;
        }
        // What cannot be held is found again, and told, when the live part is read.
        if extent.is_too_long() {
            return Ok((extent.start, true));
        }
        let bytes = lines::read(&rollout.file, extent).map_err(io)?;
        if is_begin(&bytes) {
            return Ok((extent.start, true));
        }
    }
    Ok((0, false))
}

/// Whether a line is a compaction with a replacement history. The history is not built up.
fn is_begin(bytes: &[u8]) -> bool {
    Line::parse(bytes).is_some_and(|line| {
        line.kind == "compacted"
            && line
                .payload::<BeginProbe<'_>>()
                .is_some_and(|p| p.replacement_history.is_some_and(|h| h.get() != "null"))
    })
}

pub(crate) fn compressed_has_begin(rollout: &Rollout, end: u64) -> Result<bool, Error> {
    let mut found = false;
    unpack(&rollout.path, &rollout.file, &mut |extent, bytes| {
        found |= extent.start < end && lines::kind(bytes) == Some(b"compacted") && is_begin(bytes);
        !found
    })?;
    Ok(found)
}

/// Goes through a compressed rollout that unpacks to no more than can be held.
pub(crate) fn unpack(
    path: &Path,
    file: &File,
    visit: &mut dyn FnMut(Extent, &[u8]) -> bool,
) -> Result<(), Error> {
    let io = |e| Error::io(path, "failed to unpack the rollout", e);
    let decoder = zstd::Decoder::new(At { file, at: 0 }).map_err(io)?;
    let mut too_long = false;
    lines::stream(decoder.take(UNPACKED + 1), 0, &mut |extent, bytes| {
        too_long = extent.end > UNPACKED;
        !too_long && visit(extent, bytes)
    })
    .map_err(io)?;
    if too_long {
        let text = format!("the rollout unpacks to more than {UNPACKED} bytes");
        return Err(Error::new(ErrorKind::TooLong, text).at(path));
    }
    Ok(())
}
