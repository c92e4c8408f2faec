//! Everything of a session that no longer reaches the model, one part after the other. Reading one
//! part back is in [`crate::unfold`].

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use crate::blocks::attached;
use crate::keys::{call_keys, row_key, session_part};
use crate::row::{Kind, Line, Row, understand};
use crate::unfold::{
    Folded, Made, Source, folded_attachment, folded_parts, folded_text, scan, source, texts,
};
use crate::wire::Object;
use crate::{Error, Options, Session};

/// Whether a line may hold a call.
fn may_call(line: &[u8]) -> bool {
    memchr::memmem::find(line, b"\"tool_use\"").is_some()
}

/// Whether a line may hold a message or an attachment.
fn may_speak(line: &[u8]) -> bool {
    [&b"\"user\""[..], b"\"assistant\"", b"\"attachment\""]
        .iter()
        .any(|mark| memchr::memmem::find(line, mark).is_some())
}

/// The calls of a session, by their identifiers.
#[derive(Default)]
struct Calls {
    made: Vec<Made>,
    keys: Vec<Option<String>>,
    by_id: HashMap<String, Vec<usize>>,
}

impl Calls {
    fn read(path: &Path) -> Result<Calls, Error> {
        let mut calls: Vec<Made> = Vec::new();
        scan(path, &may_call, &mut |text, offset| {
            if let (Some(Line::Row(row)), Some(object)) =
                (understand(text, offset), Object::parse(text))
                && let (false, Some(Source::Calls(made))) = (row.sidechain, source(&row, &object))
            {
                calls.extend(made);
            }
            true
        })?;
        let mut seen = HashSet::new();
        calls.retain(|made| seen.insert((made.row.clone(), made.place)));
        let ids: Vec<&str> = calls.iter().map(|made| &*made.id).collect();
        let keys = call_keys(&ids);
        let mut by_id: HashMap<String, Vec<usize>> = HashMap::new();
        for (i, id) in ids.iter().enumerate() {
            by_id.entry((*id).to_owned()).or_default().push(i);
        }
        Ok(Calls {
            made: calls,
            keys,
            by_id,
        })
    }

    /// The call that a result in a row answers, and its key.
    fn answered(&self, id: &str, row: &Row) -> Option<(&Made, String)> {
        let owners = self.by_id.get(id)?;
        let hangs = |i: &usize| Some(&*self.made[*i].row) == row.parent.as_deref();
        let index = owners.iter().copied().find(hangs);
        let index = index.or(owners.first().copied())?;
        let made = &self.made[index];
        let key = self.keys[index].clone();
        Some((made, key.unwrap_or_else(|| row_key(&made.row, made.place))))
    }
}

/// Calls `visit` with everything of the file that no longer reaches the model, in file order, until
/// it returns `false`: outputs, attached files, and texts of the user, the assistant and the
/// client. Summaries are passed over: what they tell of is there itself. Memory is bounded by the
/// live part, one row, a note for each call, and a number for each row.
///
/// # Errors
/// When the file cannot be read.
pub fn folded(path: &Path, visit: &mut dyn FnMut(Folded) -> bool) -> Result<(), Error> {
    let session = Session::open(path, &Options::default())?;
    let sent: HashMap<&str, &str> = session
        .chain
        .rows
        .iter()
        .map(|&row| &session.live.rows[row])
        .map(|row| (&*row.uuid, &*row.text))
        .collect();
    let compacted = session
        .live
        .boundary
        .map_or(0, |at| session.live.rows[at].offset);
    let calls = Calls::read(path)?;
    let prefix = session_part(&session.meta().id);
    let hasher = RandomState::new();
    let mut seen: HashSet<u64> = HashSet::new();
    scan(path, &may_speak, &mut |text, offset| {
        let Some(Line::Row(row)) = understand(text, offset) else {
            return true;
        };
        if row.sidechain || !seen.insert(hasher.hash_one(&row.uuid)) {
            return true;
        }
        let now = sent.get(&*row.uuid);
        if now.is_none() && offset >= compacted {
            return true;
        }
        // An answer's words are only ever added to.
        if now.is_some() && row.kind == Kind::Assistant {
            return true;
        }
        let Some(object) = Object::parse(text) else {
            return true;
        };
        if row.kind == Kind::Attachment {
            let then = attached(&object);
            let is_shown = now
                .and_then(|text| Object::parse(text))
                .is_some_and(|now| attached(&now).text == then.text);
            if is_shown || !(then.foldable || (then.typed && now.is_none())) {
                return true;
            }
            let address = format!("{prefix}:{}", row_key(&row.uuid, 0));
            return visit(folded_attachment(address, &row, &object));
        }
        if now.is_none() && !row.summary {
            for (place, texts) in texts(&row, &object) {
                let address = format!("{prefix}:{}", row_key(&row.uuid, place));
                if !visit(folded_text(address, &row, texts)) {
                    return false;
                }
            }
        }
        outputs(&row, &object, now.copied(), &mut |id, content| {
            let Some((made, key)) = calls.answered(id, &row) else {
                return true;
            };
            visit(Folded {
                address: format!("{prefix}:{key}"),
                tool: made.tool.clone(),
                label: made.label.clone(),
                at_ms: row.at_ms,
                offset,
                parts: folded_parts(content),
            })
        })
    })
}

/// Calls `visit` with each output of a row that is not sent as it stands there, until it returns
/// `false`, and says whether it never did.
fn outputs(
    row: &Row,
    object: &Object<'_>,
    now: Option<&str>,
    visit: &mut dyn FnMut(&str, Option<&str>) -> bool,
) -> bool {
    let Some(Source::Results(results)) = source(row, object) else {
        return true;
    };
    let now = now.and_then(Object::parse);
    let now = match now.as_ref().and_then(|now| source(row, now)) {
        Some(Source::Results(now)) => now,
        _ => Vec::new(),
    };
    results
        .iter()
        .filter(|(id, content)| !now.iter().any(|(other, c)| other == id && c == content))
        .all(|(id, content)| visit(id, *content))
}
