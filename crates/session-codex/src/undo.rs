//! The conversation before the last compaction, to be appended as a new one.

use std::path::Path;

use ctxfold_transcript::{Author, Content};

use crate::item::Item;
use crate::live::{Entry, Live};
use crate::write::never_carried;
use crate::{Error, ErrorKind};

/// The former history with all that was said since, and the tokens it last took.
pub(crate) fn former(home: &Path, live: &Live) -> Result<(Vec<String>, Option<u64>), Error> {
    let path = &live.chain[0].path;
    let Some(begin) = &live.begin else {
        return Err(
            Error::new(ErrorKind::NothingToGain, "the thread was never compacted").at(path),
        );
    };
    let rollout = &live.chain[begin.place.depth].path;
    let before = Live::read(home, rollout, Some(begin.place.start))?;
    let mut history = Vec::new();
    for entry in &before.entries {
        if !never_carried(&entry.item) && !is_answer(entry, begin.summary.as_deref()) {
            history.push(before.raw(entry)?);
        }
    }
    // The entries of the compaction itself all stand in its one line.
    for entry in live.entries.iter().filter(|e| e.place != begin.place) {
        if !never_carried(&entry.item) {
            history.push(live.raw(entry)?);
        }
    }
    Ok((history, before.tokens.filter(|t| !t.stale).map(|t| t.total)))
}

/// Whether an entry is the model's answer to the client's request for the summary.
fn is_answer(entry: &Entry, summary: Option<&str>) -> bool {
    if entry.summary_answer {
        return true;
    }
    let Item::Message { author, blocks, .. } = &entry.item else {
        return false;
    };
    *author == Author::Assistant
        && summary.is_some_and(|summary| {
            blocks
                .iter()
                .any(|(_, content)| matches!(content, Content::Text(text) if text == summary))
        })
}
