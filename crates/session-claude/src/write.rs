//! From a plan to the rows that carry it out: overrides, then one boundary that lists every row
//! that stays, then the summary where there is one. Pure: the append itself is in
//! [`crate::append`].

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;

use ctxfold_transcript::{Action, BlockRef, Content, Mode, Plan, PlanError, Target, Transcript};

use crate::blocks::attached;
use crate::edit::{Edit, block_count, edited, note_row};
use crate::live::Live;
use crate::row::{Kind, Row};
use crate::session::Session;
use crate::wire::{Object, quote};
use crate::{Error, ErrorKind, Stamp};

/// Rows that are ready, one a line without line breaks, and what they say.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) rows: Vec<String>,
    pub(crate) boundary: BoundaryRow,
    /// The rows on which they are to be read, where those are not the live part.
    pub(crate) ground: Option<Live>,
}

/// A compaction's boundary before it is printed.
#[derive(Debug, Clone)]
pub(crate) struct BoundaryRow {
    pub(crate) uuid: String,
    /// The row behind which the list is linked; the boundary itself without a summary.
    pub(crate) anchor: String,
    pub(crate) list: Vec<String>,
    pub(crate) leaf: String,
    pub(crate) timestamp: String,
    pub(crate) pre_tokens: u64,
    pub(crate) post_tokens: u64,
    /// `"key":value` members that every row of the session has, each with a comma before it.
    pub(crate) common: String,
    pub(crate) mark: Mark,
}

/// Our own mark in a boundary, by which `undo` finds where an append began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) mode: &'static str,
    /// Length of the file before the append.
    pub(crate) from: u64,
}

impl BoundaryRow {
    pub(crate) fn print(&self) -> String {
        let list = self
            .list
            .iter()
            .map(|uuid| quote(uuid))
            .collect::<Vec<_>>()
            .join(",");
        let empty = String::new();
        let (head, tail) = (
            self.list.first().unwrap_or(&empty),
            self.list.last().unwrap_or(&empty),
        );
        let (uuid, anchor) = (quote(&self.uuid), quote(&self.anchor));
        format!(
            concat!(
                r#"{{"parentUuid":null,"logicalParentUuid":{},"isSidechain":false,"type":"system","#,
                r#""subtype":"compact_boundary","content":"Conversation compacted","isMeta":false,"#,
                r#""timestamp":{},"uuid":{},"level":"info","compactMetadata":{{"trigger":"manual","#,
                r#""preTokens":{},"postTokens":{},"preservedSegment":{{"headUuid":{},"anchorUuid":{},"#,
                r#""tailUuid":{}}},"preservedMessages":{{"anchorUuid":{},"uuids":[{}],"allUuids":[{}]}},"#,
                r#""ctxfold":{{"mode":{},"from":{}}}}}{}}}"#
            ),
            quote(&self.leaf),
            quote(&self.timestamp),
            uuid,
            self.pre_tokens,
            self.post_tokens,
            quote(head),
            anchor,
            quote(tail),
            anchor,
            list,
            list,
            quote(self.mark.mode),
            self.mark.from,
            self.common
        )
    }
}

/// Members that every row of a session has, as the newest row spells them.
pub(crate) fn common(row: &str) -> String {
    let mut out = String::new();
    let Some(object) = Object::parse(row) else {
        return out;
    };
    for key in [
        "userType",
        "entrypoint",
        "cwd",
        "sessionId",
        "version",
        "gitBranch",
        "slug",
    ] {
        if let Some(value) = object.get(key) {
            let _ = write!(out, ",{}:{value}", quote(key));
        }
    }
    out
}

/// The summary's row.
fn summary_row(boundary: &BoundaryRow, text: &str) -> String {
    format!(
        concat!(
            r#"{{"parentUuid":{},"isSidechain":false,"type":"user","message":{{"role":"user","#,
            r#""content":{}}},"isVisibleInTranscriptOnly":true,"isCompactSummary":true,"#,
            r#""uuid":{},"timestamp":{}{}}}"#
        ),
        quote(&boundary.uuid),
        quote(text),
        quote(&boundary.anchor),
        quote(&boundary.timestamp),
        boundary.common
    )
}

/// A plan that does not fit becomes a refusal where pairs would break.
fn refused(error: &PlanError) -> Error {
    let kind = match error {
        PlanError::SplitPair { .. } | PlanError::PendingCall(_) | PlanError::AdjacentAnswers(_) => {
            ErrorKind::BrokenPairs
        }
        _ => ErrorKind::BadPlan,
    };
    Error::new(kind, error.to_string())
}

/// Turns a plan into rows.
pub(crate) fn write(session: &Session, plan: &Plan, stamp: &Stamp) -> Result<Written, Error> {
    let transcript = session.transcript();
    plan.validate(transcript).map_err(|e| refused(&e))?;
    let mut measured = plan.clone();
    measured.measure(transcript);
    if measured.after.bytes >= measured.before.bytes {
        let message = "the conversation would not become shorter";
        return Err(Error::new(ErrorKind::NothingToGain, message));
    }
    let mut writer = Writer {
        session,
        edits: BTreeMap::new(),
        dropped: HashSet::new(),
        fresh: HashMap::new(),
        rows: Vec::new(),
    };
    if plan.mode != Mode::Summary {
        for decision in &plan.decisions {
            writer.decide(decision.target, &decision.action)?;
        }
        for note in &plan.notes {
            writer.note(note.message, &note.text, stamp)?;
        }
    }
    writer.finish(plan, &measured, stamp)
}

struct Writer<'a> {
    session: &'a Session,
    edits: BTreeMap<usize, Edit>,
    dropped: HashSet<usize>,
    /// New rows, by the row beside which each one goes: whether behind it, and the new uuid.
    fresh: HashMap<usize, (bool, String)>,
    rows: Vec<String>,
}

impl Writer<'_> {
    fn transcript(&self) -> &Transcript {
        self.session.transcript()
    }

    fn live(&self) -> &[Row] {
        &self.session.live.rows
    }

    fn row_of(&self, at: BlockRef) -> Result<usize, Error> {
        self.transcript()
            .block(at)
            .map(|b| b.row.0 as usize)
            .filter(|&row| row < self.live().len())
            .ok_or_else(|| Error::new(ErrorKind::BadPlan, "the plan names a block without a row"))
    }

    fn decide(&mut self, target: Target, action: &Action) -> Result<(), Error> {
        match (target, action) {
            (_, Action::Keep) => {}
            (Target::Call(index), action) => {
                let call = &self.transcript().calls[index];
                let place = self.session.places[index];
                let (at, result) = (call.at, call.result);
                let Some(result) = result else {
                    return Err(refused(&PlanError::PendingCall(index)));
                };
                let (call_row, result_row) = (self.row_of(at)?, self.row_of(result)?);
                if let Action::Truncate(text) = action {
                    let edit = self.edits.entry(result_row).or_default();
                    edit.outputs.push((place.result, text.clone()));
                } else {
                    for (row, place) in [(call_row, place.call), (result_row, place.result)] {
                        self.edits.entry(row).or_default().gone.push(place);
                    }
                }
            }
            (Target::Attachment(at), action) => {
                let row = self.row_of(at)?;
                match action {
                    Action::Truncate(text) => {
                        self.edits.entry(row).or_default().attachment = Some(text.clone());
                    }
                    _ => {
                        self.dropped.insert(row);
                    }
                }
            }
        }
        Ok(())
    }

    /// Puts a note behind the message's last text, or into a text row of its own before the calls.
    fn note(&mut self, message: usize, text: &str, stamp: &Stamp) -> Result<(), Error> {
        let message = &self.transcript().messages[message];
        let last_text = message
            .blocks
            .iter()
            .rposition(|b| matches!(b.content, Content::Text(_)));
        if let Some(block) = last_text {
            let row = message.blocks[block].row;
            let first = message.blocks.iter().position(|b| b.row == row);
            let place = block - first.unwrap_or(block);
            let edit = self.edits.entry(row.0 as usize).or_default();
            edit.note = Some((place, text.to_owned()));
            return Ok(());
        }
        // Thinking stands first in a message; the note goes behind it.
        let thinking = message
            .blocks
            .iter()
            .take_while(|b| matches!(b.content, Content::Thinking))
            .last();
        let beside = thinking
            .or(message.blocks.first())
            .map(|b| b.row.0 as usize)
            .ok_or_else(|| Error::new(ErrorKind::BadPlan, "a note on an empty message"))?;
        let uuid = stamp.uuid();
        let behind = thinking.is_some();
        let model = &self.session.live.rows[beside];
        let row = note_row(&model.text, &uuid, &model.uuid, text)
            .ok_or_else(|| Error::new(ErrorKind::BadPlan, "a note on a row without a message"))?;
        self.rows.push(row);
        self.fresh.insert(beside, (behind, uuid));
        Ok(())
    }

    /// Carries the edits out; rows of which nothing stays are dropped.
    fn overrides(&mut self) -> Result<(), Error> {
        for (row, edit) in std::mem::take(&mut self.edits) {
            let text = &self.session.live.rows[row].text;
            if !edit.gone.is_empty() && edit.gone.len() >= block_count(text) {
                self.dropped.insert(row);
                continue;
            }
            let edited = edited(text, &edit).ok_or_else(|| {
                let message = "a row does not have the block that the plan changes";
                Error::new(ErrorKind::BadPlan, message)
            })?;
            self.rows.push(edited);
        }
        Ok(())
    }

    fn finish(mut self, plan: &Plan, measured: &Plan, stamp: &Stamp) -> Result<Written, Error> {
        self.overrides()?;
        let session = self.session;
        let chain = &session.chain.rows;
        let Some(&leaf) = chain.last() else {
            return Err(Error::new(ErrorKind::BadPlan, "there is no conversation"));
        };
        let mut list = Vec::with_capacity(chain.len());
        for (row, stays) in self.fates(plan)? {
            let uuid = &self.live()[row].uuid;
            let fresh = self.fresh.get(&row).cloned();
            if let Some((false, fresh)) = &fresh {
                list.push(fresh.clone());
            }
            if stays {
                list.push(uuid.to_string());
                let edited = |r: &String| {
                    Object::parse(r).and_then(|o| o.str("uuid")).as_deref() == Some(&**uuid)
                };
                if session.live.salvaged.contains(uuid) && !self.rows.iter().any(edited) {
                    // The client may not find this row where it stands.
                    self.rows.insert(0, self.live()[row].text.to_string());
                }
            }
            if let Some((true, fresh)) = fresh {
                list.push(fresh);
            }
        }
        if list.is_empty() {
            return Err(Error::new(ErrorKind::BadPlan, "no row would stay"));
        }
        let uuid = stamp.uuid();
        let anchor = match plan.summary {
            Some(_) => stamp.uuid(),
            None => uuid.clone(),
        };
        let saved = measured.before.tokens.saturating_sub(measured.after.tokens);
        let pre_tokens = self
            .transcript()
            .fill
            .map_or(measured.before.tokens, |fill| fill.tokens);
        let boundary = BoundaryRow {
            uuid,
            anchor,
            list,
            leaf: self.live()[leaf].uuid.to_string(),
            timestamp: stamp.timestamp(),
            pre_tokens,
            post_tokens: pre_tokens.saturating_sub(saved).max(1),
            common: common(&self.live()[leaf].text),
            mark: Mark {
                mode: plan.mode.name(),
                from: session.meta().stamp.len,
            },
        };
        let mut rows = self.rows;
        rows.push(boundary.print());
        if let Some(summary) = &plan.summary {
            rows.push(summary_row(&boundary, summary));
        }
        Ok(Written {
            rows,
            boundary,
            ground: None,
        })
    }

    /// The rows of the branch in sending order, and whether each one stays. Boundaries never do:
    /// the new one replaces them.
    fn fates(&self, plan: &Plan) -> Result<Vec<(usize, bool)>, Error> {
        let chain = &self.session.chain.rows;
        let cut = match plan.mode {
            Mode::Summary => self
                .transcript()
                .messages
                .get(plan.tail)
                .and_then(|m| chain.iter().position(|&row| row == m.rows[0].0 as usize))
                .ok_or_else(|| Error::new(ErrorKind::BadPlan, "no message would stay verbatim"))?,
            _ => 0,
        };
        let fate = |(place, &row): (usize, &usize)| {
            let it = &self.live()[row];
            let stays = it.boundary.is_none()
                && !self.dropped.contains(&row)
                && (place >= cut || is_announced(it));
            (row, stays)
        };
        Ok(chain.iter().enumerate().map(fate).collect())
    }
}

/// Whether the client would announce a row anew if it were gone.
fn is_announced(row: &Row) -> bool {
    row.kind == Kind::Attachment
        && Object::parse(&row.text).is_some_and(|object| {
            let attached = attached(&object);
            !attached.foldable && !attached.typed
        })
}
