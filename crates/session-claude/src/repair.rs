//! Making a damaged conversation whole for the client: rows that stand on damaged lines are
//! written again, and a boundary lists the branch, so that gaps, cycles and a kept row that is
//! gone no longer part it. Results without a call are left out. Append only, like everything else.

use std::collections::{HashMap, HashSet};

use ctxfold_transcript::Content;

use crate::session::Session;
use crate::write::{BoundaryRow, Mark, Written, common};
use crate::{Error, ErrorKind, Stamp};

/// The name of a repair in our mark.
const MODE: &str = "repair";

/// The rows that repair the live part.
pub(crate) fn repair(session: &Session, stamp: &Stamp) -> Result<Written, Error> {
    let (live, chain) = (&session.live, &session.chain);
    let orphans = orphans(session);
    let salvaged = |row: &usize| live.salvaged.contains(&live.rows[*row].uuid);
    let is_whole = chain.gaps.is_empty() && !chain.lost_tail && orphans.is_empty();
    if is_whole && !chain.rows.iter().any(salvaged) {
        let message = "the conversation needs no repair";
        return Err(Error::new(ErrorKind::NothingToGain, message).at(session.path()));
    }
    let kept: Vec<usize> = branch(session)
        .into_iter()
        .filter(|row| live.rows[*row].boundary.is_none() && !orphans.contains(row))
        .collect();
    let list: Vec<String> = kept
        .iter()
        .map(|&row| live.rows[row].uuid.to_string())
        .collect();
    let Some(leaf) = list.last().cloned() else {
        let message = "nothing of the conversation is left to repair";
        return Err(Error::new(ErrorKind::BrokenPairs, message).at(session.path()));
    };
    let mut rows: Vec<String> = kept
        .iter()
        .filter(|row| salvaged(row))
        .map(|&row| live.rows[row].text.to_string())
        .collect();
    let uuid = stamp.uuid();
    let tokens = session
        .transcript()
        .fill
        .map_or(1, |fill| fill.tokens.max(1));
    let boundary = BoundaryRow {
        anchor: uuid.clone(),
        uuid,
        list,
        leaf,
        timestamp: stamp.timestamp(),
        pre_tokens: tokens,
        post_tokens: tokens,
        common: kept
            .last()
            .map(|&row| common(&live.rows[row].text))
            .unwrap_or_default(),
        mark: Mark {
            mode: MODE,
            from: session.meta().stamp.len,
        },
    };
    rows.push(boundary.print());
    Ok(Written {
        rows,
        boundary,
        ground: None,
    })
}

/// Rows that hold nothing but results whose call is gone.
fn orphans(session: &Session) -> HashSet<usize> {
    let mut by_row: HashMap<usize, bool> = HashMap::new();
    for block in session.transcript().messages.iter().flat_map(|m| &m.blocks) {
        let is_orphan = matches!(block.content, Content::ToolResult { call: None, .. });
        *by_row.entry(block.row.0 as usize).or_insert(true) &= is_orphan;
    }
    by_row
        .into_iter()
        .filter_map(|(row, only)| only.then_some(row))
        .collect()
}

/// The branch, with the rows that the last compaction keeps where one of them is gone: the client
/// then sends none of them.
fn branch(session: &Session) -> Vec<usize> {
    let (live, chain) = (&session.live, &session.chain);
    let boundary = live.boundary.and_then(|at| live.rows[at].boundary.as_ref());
    let Some(boundary) = boundary.filter(|_| chain.lost_tail) else {
        return chain.rows.clone();
    };
    let place: HashMap<&str, usize> = live
        .rows
        .iter()
        .enumerate()
        .map(|(at, row)| (&*row.uuid, at))
        .collect();
    let listed = boundary
        .list
        .iter()
        .flatten()
        .filter_map(|uuid| place.get(&**uuid).copied());
    let preserved: Vec<usize> = listed.filter(|row| !chain.rows.contains(row)).collect();
    let anchor = boundary
        .anchor
        .as_deref()
        .and_then(|uuid| place.get(uuid).copied());
    let behind = anchor
        .and_then(|a| chain.rows.iter().position(|row| *row == a))
        .map_or(0, |at| at + 1);
    let mut rows = chain.rows.clone();
    rows.splice(behind..behind, preserved);
    rows
}
