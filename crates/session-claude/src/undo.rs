//! Taking a compaction back: the rows that it changed as they were, and a boundary that lists the
//! branch as it was, followed by everything that was said since.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use crate::chain::{Chain, chain};
use crate::lines::{PieceKind, split};
use crate::live::{Live, read};
use crate::row::{Line, Row, understand};
use crate::session::Session;
use crate::write::{BoundaryRow, Mark, Written, common};
use crate::{Error, ErrorKind, Stamp};

/// The name of an undo in our mark.
pub(crate) const MODE: &str = "undo";

/// The rows that take the last compaction back that is still in force.
pub(crate) fn undo(session: &Session, stamp: &Stamp) -> Result<Written, Error> {
    let path = session.path();
    let fail = |e| Error::io(path, "failed to read the session", e);
    let mut file = File::open(path).map_err(fail)?;
    let len = session.meta().stamp.len;
    let Last {
        from,
        tokens,
        is_ours,
    } = last_compaction(&file, session)?;
    let mut old = read(&file, from).map_err(fail)?;
    let old_chain = chain(&old, from);
    let gone = |message: &str| Error::new(ErrorKind::BrokenPairs, message).at(path);
    if old.rows.is_empty() || old_chain.rows.is_empty() || old_chain.lost_tail {
        return Err(gone(
            "the conversation before the last compaction cannot be read any more",
        ));
    }
    // Of ours the gaps were there before, and come back as they were. Where the client compacted,
    // its summary may be all that is left of the rows that are gone.
    if !is_ours && !old_chain.gaps.is_empty() {
        return Err(gone(
            "rows from before the client's own compaction are gone; only its summary tells of them",
        ));
    }
    file.seek(SeekFrom::Start(from)).map_err(fail)?;
    let mut since = Vec::new();
    (&mut file)
        .take(len - from)
        .read_to_end(&mut since)
        .map_err(fail)?;
    let since = rows_since(&since, from);
    let (list, rows) = restored(&old, &old_chain, &since, from, session);
    old.extend(since);
    let leaf = list.last().cloned().unwrap_or_default();
    let uuid = stamp.uuid();
    let newest = session
        .chain
        .rows
        .last()
        .map(|&row| &session.live.rows[row]);
    let boundary = BoundaryRow {
        anchor: uuid.clone(),
        uuid,
        list,
        leaf,
        timestamp: stamp.timestamp(),
        pre_tokens: session.transcript().fill.map_or(0, |fill| fill.tokens),
        post_tokens: tokens.unwrap_or(0).max(1),
        common: newest.map(|row| common(&row.text)).unwrap_or_default(),
        mark: Mark { mode: MODE, from },
    };
    let mut rows = rows;
    rows.push(boundary.print());
    Ok(Written {
        rows,
        boundary,
        ground: Some(old),
    })
}

/// The newest compaction that was not taken back.
struct Last {
    /// Where its append began.
    from: u64,
    /// Tokens before it.
    tokens: Option<u64>,
    /// Whether it is ours, and not the client's.
    is_ours: bool,
}

/// Finds the newest compaction that was not taken back.
fn last_compaction(file: &File, session: &Session) -> Result<Last, Error> {
    let path = session.path();
    let nothing = || {
        let message = "there is no compaction to take back";
        Error::new(ErrorKind::NothingToGain, message).at(path)
    };
    let mut live: Option<Live> = None;
    loop {
        let here = live.as_ref().unwrap_or(&session.live);
        let row = &here.rows[here.boundary.ok_or_else(nothing)?];
        let boundary = row.boundary.as_ref().ok_or_else(nothing)?;
        let from = match &boundary.mark {
            // An undo's mark names the place where what it took back began.
            Some((mode, from)) if **mode == *MODE && *from < row.offset => {
                let fail = |e| Error::io(path, "failed to read the session", e);
                live = Some(read(file, *from).map_err(fail)?);
                continue;
            }
            Some((_, from)) if *from <= row.offset => *from,
            _ => row.offset,
        };
        return Ok(Last {
            from,
            tokens: boundary.pre_tokens,
            is_ours: boundary.mark.is_some(),
        });
    }
}

/// The rows that were written since, in file order.
fn rows_since(since: &[u8], from: u64) -> Vec<Row> {
    let (pieces, _) = split(since, from, None);
    let rows = pieces.iter().filter(|piece| piece.kind == PieceKind::Row);
    rows.filter_map(|piece| {
        match understand(&String::from_utf8_lossy(piece.bytes), piece.offset)? {
            Line::Row(row) => Some(*row),
            _ => None,
        }
    })
    .collect()
}

/// The list of the restored branch, and the rows that must be written again.
fn restored(
    old: &Live,
    old_chain: &Chain,
    since: &[Row],
    from: u64,
    session: &Session,
) -> (Vec<String>, Vec<String>) {
    // The newest version of each row counts: later ones replace earlier ones.
    let changed: HashMap<&str, &str> = since.iter().map(|r| (&*r.uuid, &*r.text)).collect();
    let mut list = Vec::new();
    let mut rows = Vec::new();
    let mut known: HashSet<&str> = HashSet::new();
    for row in old_chain.rows.iter().map(|&row| &old.rows[row]) {
        if row.boundary.is_some() {
            continue;
        }
        known.insert(&row.uuid);
        list.push(row.uuid.to_string());
        let differs = changed
            .get(&*row.uuid)
            .is_some_and(|text| *text != &*row.text);
        if differs || old.salvaged.contains(&row.uuid) {
            rows.push(row.text.to_string());
        }
    }
    // What we wrote ourselves lies before our boundaries: changed rows, which are known, and notes,
    // which are rows of old messages.
    let ours: Vec<Range<u64>> = since
        .iter()
        .filter_map(|row| Some(row.boundary.as_ref()?.mark.as_ref()?.1..row.offset))
        .collect();
    let answers: HashSet<&str> = old_chain
        .rows
        .iter()
        .filter_map(|&row| old.rows[row].message_id.as_deref())
        .collect();
    let is_note = |row: &Row| {
        row.message_id
            .as_deref()
            .is_some_and(|id| answers.contains(id))
            && ours.iter().any(|range| range.contains(&row.offset))
    };
    let said_since = |row: &&Row| {
        row.offset >= from
            && row.boundary.is_none()
            && !row.summary
            && !known.contains(&*row.uuid)
            && !is_note(row)
    };
    let current = session
        .chain
        .rows
        .iter()
        .map(|&row| &session.live.rows[row]);
    list.extend(current.filter(said_since).map(|row| row.uuid.to_string()));
    (list, rows)
}
