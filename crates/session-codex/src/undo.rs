//! The conversation before the newest compaction that still holds, to be appended as a new one.
//!
//! An undo looks like a compaction, and the rollout itself tells the two apart: each compaction
//! names the window before it, and an undo names the window before the compaction that it takes
//! back. So a second undo finds the compaction before, whoever made it.

use std::path::Path;

use ctxfold_transcript::{Author, Content};

use crate::begin::Begin;
use crate::chain::{self, Rollout};
use crate::item::Item;
use crate::lines;
use crate::live::{Entry, Live, Place};
use crate::stamp::uuid_of;
use crate::write::{Carried, never_carried};
use crate::{Error, ErrorKind};

/// The conversation as it would be without the newest compaction that holds.
#[derive(Debug)]
pub(crate) struct Former {
    /// Its items, one JSON text an item.
    pub(crate) history: Vec<String>,
    /// The tokens it takes, as far as they can be told.
    pub(crate) tokens: u64,
    /// The window before the compaction.
    pub(crate) window: String,
}

impl Former {
    /// What the turn carries that brings it back.
    pub(crate) fn carried(&self) -> Carried<'_> {
        Carried {
            history: &self.history,
            message: "",
            tokens: self.tokens,
            previous: Some(&self.window),
        }
    }
}

/// The former conversation with all that was said since.
pub(crate) fn former(home: &Path, live: &Live) -> Result<Former, Error> {
    let path = &live.chain[0].path;
    let nothing = |text: &str| Error::new(ErrorKind::NothingToGain, text).at(path);
    if live.begin.is_none() {
        return Err(nothing("the thread was never compacted"));
    }
    let compactions = compactions(home, path)?;
    let holding = newest_that_holds(&compactions)
        .ok_or_else(|| nothing("every compaction of the thread was taken back already"))?;
    without(home, live, &compactions[holding])
}

/// The conversation as it would be without a compaction and those behind it.
pub(crate) fn without(home: &Path, live: &Live, begin: &Begin) -> Result<Former, Error> {
    let path = &live.chain[0].path;
    let former = Live::read_without(home, path, Some(begin.place))?;
    if let Some(error) = former.unreadable() {
        return Err(error);
    }
    let mut history = Vec::new();
    let (mut all, mut since) = (0, 0);
    for entry in &former.entries {
        let is_answer = former
            .passed
            .iter()
            .any(|passed| is_answer(entry, passed.summary.as_deref()));
        if never_carried(&entry.item) || is_answer {
            continue;
        }
        all += entry.len();
        if begin.place.is_before(entry.place) {
            since += entry.len();
        }
        history.push(former.raw(entry)?);
    }
    let counted = former.tokens_before.as_ref().map(|count| count.total);
    Ok(Former {
        history,
        tokens: counted.map_or(all / 4, |tokens| tokens.saturating_add(since / 4)),
        window: window_before(begin),
    })
}

/// Every compaction that the thread goes back to, the oldest first.
fn compactions(home: &Path, path: &Path) -> Result<Vec<Begin>, Error> {
    let mut chain = vec![Rollout::open(path)?];
    // What a missing one holds cannot be brought back anyway.
    while let Ok(Some(parent)) = chain::parent(home, &chain) {
        chain.push(parent);
    }
    let mut found = Vec::new();
    for (depth, rollout) in chain.iter().enumerate().rev() {
        let child = depth.checked_sub(1).map(|child| &chain[child].meta);
        let base = child.and_then(|meta| meta.history_base.as_ref());
        let end = base.map_or(u64::MAX, |base| base.end_byte_offset);
        rollout.lines(0, end.min(rollout.len), &mut |extent, bytes| {
            let inside = extent.start < end;
            let head = &bytes[..bytes.len().min(512)];
            if inside && lines::kind(head).is_none_or(|kind| kind == b"compacted") {
                let place = Place {
                    depth,
                    start: extent.start,
                };
                found.extend(Begin::of(bytes, place));
            }
            inside
        })?;
    }
    Ok(found)
}

/// The newest compaction that was not taken back.
fn newest_that_holds(compactions: &[Begin]) -> Option<usize> {
    let mut holding: Vec<usize> = Vec::new();
    for (index, compaction) in compactions.iter().enumerate() {
        let window = window_before(compaction);
        let taken_back = holding
            .iter()
            .rposition(|&held| window_before(&compactions[held]) == window);
        match taken_back {
            Some(at) => holding.truncate(at),
            None => holding.push(index),
        }
    }
    holding.last().copied()
}

/// The window before a compaction; where the client named none, one of the compaction's own.
fn window_before(begin: &Begin) -> String {
    begin
        .previous_window_id
        .clone()
        .unwrap_or_else(|| uuid_of(begin.at_ms.unwrap_or(0), u128::from(begin.place.start)))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn compaction(start: u64, previous: &str, own: &str) -> Begin {
        Begin {
            place: Place { depth: 0, start },
            at_ms: None,
            window_number: None,
            window_id: Some(own.to_owned()),
            previous_window_id: (!previous.is_empty()).then(|| previous.to_owned()),
            first_window_id: None,
            summary: None,
        }
    }

    #[test]
    fn an_undo_takes_its_compaction_away_and_is_none_itself() {
        let all = [
            compaction(1, "a", "b"),
            compaction(2, "b", "c"),
            compaction(3, "c", "d"),
            // Takes back 3, then 2.
            compaction(4, "c", "e"),
            compaction(5, "b", "f"),
            // One more compaction behind that, taken back too, and then the first one.
            compaction(6, "f", "g"),
            compaction(7, "f", "h"),
            compaction(8, "a", "i"),
            compaction(9, "i", "j"),
        ];
        let expected = [0, 1, 2, 1, 0, 5, 0];
        for (len, newest) in expected.into_iter().enumerate() {
            assert_eq!(newest_that_holds(&all[..=len]), Some(newest), "{len}");
        }
        assert_eq!(newest_that_holds(&all[..8]), None);
        assert_eq!(newest_that_holds(&all), Some(8));
    }

    #[test]
    fn compactions_that_name_no_window_are_told_apart() {
        let first = compaction(1, "", "");
        let second = compaction(2, "", "");
        let undo = compaction(3, &window_before(&second), "");
        let all = [first, second, undo];
        assert_eq!(newest_that_holds(&all[..2]), Some(1));
        assert_eq!(newest_that_holds(&all), Some(0));
    }
}
