//! Whether the projection agrees with the rollout, and what else may stand in the way.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rusqlite::Connection;

use crate::chain::{self, Rollout};
use crate::lines::{self, Backward, Extent};
use crate::project::{self, Cursor, Schema};
use crate::store::open_read_only;
use crate::wire::Line;
use crate::{Error, Finding, Store, lease};

/// What the store tells about one rollout, compared with the rollout.
pub(crate) fn projection(
    store: &Store,
    rollout: &Rollout,
    next_ordinal: Option<u64>,
    torn_at: Option<u64>,
) -> Vec<Finding> {
    if !rollout.is_paginated() || rollout.compressed {
        return Vec::new();
    }
    let Some(path) = store.history() else {
        return vec![Finding::new(
            "projection-missing",
            "this home has no history store",
        )];
    };
    let mut findings = Vec::new();
    let result = open_read_only(&path)
        .and_then(|history| compare(&history, rollout, next_ordinal, torn_at, &mut findings));
    if let Err(error) = result {
        let message = format!("{}: {error}", path.display());
        findings.push(Finding::new("store-malformed", message));
    }
    findings
}

fn compare(
    history: &Connection,
    rollout: &Rollout,
    next_ordinal: Option<u64>,
    torn_at: Option<u64>,
    findings: &mut Vec<Finding>,
) -> rusqlite::Result<()> {
    // One snapshot of the store: a running client moves cursor and rows together.
    let history = history.unchecked_transaction()?;
    if let Schema::Unknown(why) = project::schema(&history)? {
        findings.push(Finding::new("schema-unknown", why));
    }
    let key = rollout.projection_key();
    let Some(cursor) = project::cursor(&history, &key)? else {
        findings.push(Finding::new(
            "projection-missing",
            format!("no projection of {key}"),
        ));
        return Ok(());
    };
    if let Some(finding) = judge(&rollout.file, rollout.len, cursor, next_ordinal, torn_at) {
        findings.push(finding);
    }
    let (items, newest): (i64, Option<i64>) = history.query_row(
        "SELECT count(*), max(rollout_ordinal) FROM thread_turns WHERE thread_id = ?1",
        [&key],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    if newest.is_some_and(|newest| newest >= cursor.ordinal) {
        let text = format!(
            "{items} turns up to ordinal {}, but the cursor stands at {}",
            newest.unwrap_or(0),
            cursor.ordinal
        );
        findings.push(Finding::new("projection-rows", text));
    }
    Ok(())
}

/// What is wrong with a cursor, if anything is, where the rollout was `len` bytes long.
fn judge(
    file: &File,
    len: u64,
    cursor: Cursor,
    next_ordinal: Option<u64>,
    torn_at: Option<u64>,
) -> Option<Finding> {
    let offset = cursor.offset.max(0) as u64;
    if offset > len {
        // The rollout was looked at before the store: a running client may have moved both since.
        if file.metadata().is_ok_and(|now| offset <= now.len()) {
            return None;
        }
        let text = format!("the projection has read {offset} bytes of {len}");
        return Some(Finding::new("projection-past-end", text).at(offset));
    }
    if offset == len || Some(offset) == torn_at {
        let wrong = next_ordinal.is_some_and(|next| next.cast_signed() != cursor.ordinal);
        return wrong.then(|| {
            let text = format!(
                "the projection expects ordinal {}, the next one is {}",
                cursor.ordinal,
                next_ordinal.unwrap_or(0)
            );
            Finding::new("projection-ordinal", text).at(offset)
        });
    }
    let mut before = [0];
    if offset > 0 && (file.read_exact_at(&mut before, offset - 1).is_err() || before[0] != b'\n') {
        let text = format!("byte {offset}, where the projection goes on, is inside a line");
        return Some(Finding::new("projection-mid-line", text).at(offset));
    }
    let mut ordinal = None;
    let read = lines::forward(file, offset, len, &mut |_: Extent, bytes| {
        ordinal = Line::parse(bytes).map(|line| line.ordinal);
        false
    });
    if read.is_ok()
        && let Some(Some(ordinal)) = ordinal
        && ordinal.cast_signed() != cursor.ordinal
    {
        let text = format!(
            "the projection expects ordinal {}, the line there has {ordinal}",
            cursor.ordinal
        );
        return Some(Finding::new("projection-ordinal", text).at(offset));
    }
    let text = format!("the projection has read {offset} of {len} bytes");
    Some(Finding::new("projection-behind", text).at(offset))
}

/// Goes through a whole rollout and its store and tells what is wrong. Memory is bounded by the
/// longest line.
///
/// # Errors
/// When the rollout cannot be read or is none.
pub fn check(store: &Store, path: &Path) -> Result<Vec<Finding>, Error> {
    let rollout = Rollout::open(path)?;
    let mut findings = Vec::new();
    let mut checker = Checker {
        paginated: rollout.is_paginated(),
        next: rollout
            .meta
            .history_base
            .as_ref()
            .map(|b| b.end_ordinal_exclusive),
        line: 0,
        turns: 0,
        torn_at: None,
        findings: &mut findings,
    };
    rollout.lines(0, rollout.len, &mut |e, b| checker.line(e, b))?;
    let (next, torn_at, turns) = (checker.next, checker.torn_at, checker.turns);
    findings.extend(state(store, &rollout));
    let of_store = projection(store, &rollout, next, torn_at);
    let exact = !of_store.iter().any(|f| f.code.starts_with("projection"));
    findings.extend(of_store);
    if exact && rollout.is_paginated() {
        findings.extend(missing_rows(store, &rollout, turns));
    }
    findings.extend(write_ahead_log(store));
    Ok(findings)
}

/// What the ends of a rollout and its store tell of it, without going through it: whether it is
/// archived, compressed or held by a running client, and whether the projection is in step. Cheap
/// enough to ask for every thread of a home.
///
/// # Errors
/// When the rollout cannot be read or is none.
pub fn glance(store: &Store, path: &Path) -> Result<Vec<Finding>, Error> {
    let rollout = Rollout::open(path)?;
    let mut findings = state(store, &rollout);
    if rollout.compressed {
        return Ok(findings);
    }
    let io = |e| Error::io(path, "failed to read the rollout", e);
    let mut backward = Backward::new(&rollout.file, rollout.len);
    let mut torn_at = None;
    let mut last = None;
    while let Some(extent) = backward.next().map_err(io)? {
        let bytes = lines::read(&rollout.file, extent).map_err(io)?;
        if let Some(line) = Line::parse(&bytes) {
            last = line.ordinal;
            break;
        }
        if !extent.terminated {
            torn_at = Some(extent.start);
        }
    }
    if torn_at.is_some() {
        findings.push(Finding::new("torn-tail", "the last line is not whole"));
    }
    if rollout.is_paginated() && last.is_none() {
        findings.push(Finding::new(
            "ordinal-missing",
            "the last line has no ordinal",
        ));
    }
    findings.extend(projection(
        store,
        &rollout,
        last.and_then(|n| n.checked_add(1)),
        torn_at,
    ));
    Ok(findings)
}

/// Where the rollout lies, how, and who has it.
fn state(store: &Store, rollout: &Rollout) -> Vec<Finding> {
    let mut findings = Vec::new();
    if rollout.compressed {
        findings.push(Finding::new("compressed", "the rollout is compressed"));
    }
    if rollout
        .path
        .starts_with(store.home().join("archived_sessions"))
    {
        findings.push(Finding::new("archived", "the thread is archived"));
    }
    findings.extend(rollout.id_problem().map(mismatch));
    findings.extend(base_problem(store, rollout));
    if lease::is_held(store.home(), &rollout.meta.id) {
        let text = "a running client has the thread";
        findings.push(Finding::new("lease-held", text));
    }
    findings
}

/// That the names of a thread do not agree.
pub(crate) fn mismatch(why: String) -> Finding {
    Finding::new("thread-mismatch", why)
}

/// What is wrong with the rollouts that a thread hangs on.
fn base_problem(store: &Store, rollout: &Rollout) -> Option<Finding> {
    rollout.meta.history_base.as_ref()?;
    let mut chain = vec![Rollout::open(&rollout.path).ok()?];
    loop {
        match chain::parent(store.home(), &chain) {
            Ok(Some(parent)) => chain.push(parent),
            Ok(None) => return None,
            Err(finding) => return Some(finding),
        }
    }
}

/// What of the store of projections stands in its write-ahead log alone.
fn write_ahead_log(store: &Store) -> Option<Finding> {
    let len = store.logged_bytes();
    (len > 0).then(|| {
        let text = format!("{len} bytes in the write-ahead log");
        Finding::new("store-wal", text)
    })
}

/// Turns of the rollout that the projection does not have although it has read them.
fn missing_rows(store: &Store, rollout: &Rollout, turns: u64) -> Option<Finding> {
    let history = open_read_only(&store.history()?).ok()?;
    let rows: i64 = history
        .query_row(
            "SELECT count(*) FROM thread_turns WHERE thread_id = ?1",
            [rollout.projection_key()],
            |row| row.get(0),
        )
        .ok()?;
    ((rows.max(0) as u64) < turns).then(|| {
        Finding::new(
            "projection-rows",
            format!("the rollout has {turns} turns, the projection {rows}"),
        )
    })
}

struct Checker<'f> {
    paginated: bool,
    next: Option<u64>,
    line: u64,
    turns: u64,
    torn_at: Option<u64>,
    findings: &'f mut Vec<Finding>,
}

impl Checker<'_> {
    fn line(&mut self, extent: Extent, bytes: &[u8]) -> bool {
        self.line += 1;
        if bytes.is_empty() {
            return true;
        }
        let number = self.line;
        let mut find = |code, text: String| {
            let finding = Finding::new(code, text).at(extent.start).on_line(number);
            self.findings.push(finding);
        };
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        if extent.is_too_long() {
            find("line-too-long", format!("a line of {} bytes", extent.len()));
            return true;
        }
        let Some(line) = Line::parse(bytes) else {
            if extent.terminated {
                find("bad-line", "the line cannot be read".to_owned());
            } else {
                self.torn_at = Some(extent.start);
                find("torn-tail", "the last line is not whole".to_owned());
            }
            return true;
        };
        if line.kind == "event_msg"
            && memchr::memmem::find(line.payload.get().as_bytes(), b"\"task_started\"").is_some()
            && line
                .payload::<crate::wire::Event<'_>>()
                .is_some_and(|e| e.kind == "task_started")
        {
            self.turns += 1;
        }
        if !self.paginated {
            return true;
        }
        match (line.ordinal, self.next) {
            (None, _) => find("ordinal-missing", "the line has no ordinal".to_owned()),
            (Some(n), Some(next)) if n > next => {
                find("ordinal-gap", format!("ordinal {n} where {next} should be"));
            }
            (Some(n), Some(next)) if n < next => {
                find("ordinal-duplicate", format!("ordinal {n} comes again"));
            }
            _ => {}
        }
        if let Some(ordinal) = line.ordinal {
            self.next = ordinal.checked_add(1);
            if self.next.is_none() {
                find(
                    "ordinal-missing",
                    format!("nothing can follow ordinal {ordinal}"),
                );
            }
        }
        true
    }
}

/// Start of the last line where it is not whole JSON.
pub(crate) fn torn_at(rollout: &Rollout) -> Option<u64> {
    let last = Backward::new(&rollout.file, rollout.len).next().ok()??;
    (!last.terminated).then_some(last.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rollout looked at, client appends and projects, store looked at.
    #[test]
    fn a_rollout_that_grew_before_the_store_was_read_is_no_broken_projection() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(b"{}\n{}\n", 0).unwrap();
        let judged = |offset| {
            let cursor = Cursor { offset, ordinal: 2 };
            judge(&file, 3, cursor, Some(1), None).map(|finding| finding.code)
        };
        assert_eq!(judged(6), None);
        assert_eq!(judged(7), Some("projection-past-end"));
    }
}
