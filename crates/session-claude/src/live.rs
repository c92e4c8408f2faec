//! The live part of a session file: everything from the last compaction to the end, and the rows
//! that this compaction preserves. Read backwards, so that cost follows the live conversation and
//! not the file; lines that are no part of it are passed over without being kept. Which of the
//! rows the client would send is decided in [`crate::chain`].

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufReader};

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::backward::{Backward, Extent, Found};
use crate::findings::{Code, Finding};
use crate::lines::{Piece, PieceKind, Place, split_line};
use crate::row::{Boundary, LastPrompt, Line, Row, understand};

/// From this size on the client skips everything before the last compaction that it does not
/// preserve; below it, a row that hangs on something older still finds its parent.
pub(crate) const SKIPS_OLD_ROWS: u64 = 5 * 1024 * 1024;

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Live {
    /// Rows of the tree, each in its newest version, in file order of their first version.
    pub(crate) rows: Vec<Row>,
    /// Index of the last compaction's row.
    pub(crate) boundary: Option<usize>,
    /// The client's notes of its leaf after the last compaction, in file order.
    pub(crate) prompts: Vec<LastPrompt>,
    pub(crate) title: Option<String>,
    /// Preserved rows that are nowhere in the file.
    pub(crate) missing: Vec<Box<str>>,
    pub(crate) findings: Vec<Finding>,
    /// Uuids of rows that the client may not be able to read where they stand, because their line
    /// is damaged. They are written again when they stay.
    pub(crate) salvaged: HashSet<Box<str>>,
    /// Offset of the first byte that was read.
    pub(crate) start: u64,
    /// Bytes of the rows that were kept.
    pub(crate) bytes: u64,
    /// Whether the file's last byte is a line break (or the file is empty).
    pub(crate) ends_with_newline: bool,
    /// Whether the newest line ends with CR LF.
    pub(crate) crlf: bool,
}

/// What of a long line is looked at before it is loaded.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    uuid: Option<String>,
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default, rename = "message")]
    _message: IgnoredAny,
}

impl Live {
    /// The rows and the client's notes, without what was found on the way.
    pub(crate) fn clone_rows(&self) -> Live {
        Live {
            rows: self.rows.clone(),
            boundary: self.boundary,
            prompts: self.prompts.clone(),
            ..Live::default()
        }
    }

    /// Takes in rows that are appended. A newer version keeps its first version's place.
    pub(crate) fn extend(&mut self, rows: impl IntoIterator<Item = Row>) {
        let mut index: HashMap<Box<str>, usize> = HashMap::new();
        for (at, row) in self.rows.iter().enumerate() {
            index.insert(row.uuid.clone(), at);
        }
        for mut row in rows {
            if let Some(&at) = index.get(&row.uuid) {
                row.order = self.rows[at].order;
                self.rows[at] = row;
                continue;
            }
            if row.boundary.is_some() && !row.sidechain {
                self.boundary = Some(self.rows.len());
            }
            index.insert(row.uuid.clone(), self.rows.len());
            self.rows.push(row);
        }
    }
}

struct Reader {
    live: Live,
    index: HashMap<Box<str>, usize>,
    /// Parents that are not read yet, with the rows that ask for them.
    asked: HashMap<Box<str>, Vec<Box<str>>>,
    /// Preserved rows that are not read yet; `Some` once the last compaction was found.
    wanted: Option<HashSet<Box<str>>>,
    /// Where the walk over a preserved segment ends.
    segment_head: Option<Box<str>>,
    whole: bool,
    has_own_title: bool,
}

/// Reads the live part of the first `len` bytes of a file.
pub(crate) fn read(file: &File, len: u64) -> io::Result<Live> {
    let mut lines = Backward::new(file, len);
    let mut reader = Reader {
        live: Live {
            start: len,
            ends_with_newline: true,
            ..Live::default()
        },
        index: HashMap::new(),
        asked: HashMap::new(),
        wanted: None,
        segment_head: None,
        whole: len < SKIPS_OLD_ROWS,
        has_own_title: false,
    };
    let mut first = true;
    while let Some((extent, piece)) = lines.line()? {
        if first {
            reader.live.ends_with_newline = extent.len == 0;
        }
        reader.live.start = extent.offset;
        match piece {
            Found::Bytes(bytes) => {
                if !first && reader.live.rows.len() < 2 {
                    reader.live.crlf = bytes.ends_with(b"\r");
                }
                reader.bytes(bytes, extent, first);
            }
            Found::Long => {
                let head: Result<Head, _> = serde_json::from_reader(BufReader::with_capacity(
                    1 << 16,
                    lines.stream(extent)?,
                ));
                // A long line that is no JSON is damage; it is loaded so that it can be salvaged.
                let load = match head {
                    Ok(head) => reader.wants(&head),
                    Err(_) => true,
                };
                if load {
                    let bytes = lines.load(extent)?;
                    reader.bytes(&bytes, extent, first);
                }
            }
        }
        first = false;
        if reader.is_done() {
            break;
        }
    }
    Ok(reader.finish())
}

impl Reader {
    fn is_done(&self) -> bool {
        self.wanted.as_ref().is_some_and(HashSet::is_empty)
    }

    fn wants(&self, head: &Head) -> bool {
        let Some(uuid) = head.uuid.as_deref() else {
            return false;
        };
        let known = matches!(
            head.kind.as_deref(),
            Some("user" | "assistant" | "attachment" | "system")
        );
        match &self.wanted {
            Some(wanted) => wanted.contains(uuid),
            None => known || self.asked.contains_key(uuid),
        }
    }

    /// Takes one line in.
    fn bytes(&mut self, bytes: &[u8], extent: Extent, newest: bool) {
        if let Some(wanted) = &self.wanted
            && !mentions(bytes, wanted)
        {
            return;
        }
        let text = String::from_utf8_lossy(bytes);
        let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace());
        if trimmed.is_empty() {
            return;
        }
        if let Some(line) = understand(trimmed, extent.offset) {
            if matches!(text, Cow::Owned(_)) {
                let found = Finding::new(Code::InvalidUtf8, "bytes that are no UTF-8 in a row");
                self.live.findings.push(found.at(None, extent.offset));
            }
            self.take(line, false);
            return;
        }
        let mut line = bytes.to_vec();
        if !newest {
            line.push(b'\n');
        }
        let place = Place {
            offset: extent.offset,
            line: None,
        };
        let mut records = Vec::new();
        let mut keep = |piece: Piece<'_>| {
            if piece.kind == PieceKind::Row {
                let text = String::from_utf8_lossy(piece.bytes).into_owned();
                records.push((piece.offset, text));
            }
        };
        let mut findings = Vec::new();
        split_line(&line, place, &mut keep, &mut findings);
        self.live.findings.extend(findings.into_iter().rev());
        for (offset, record) in records.into_iter().rev() {
            if let Some(line) = understand(&record, offset) {
                self.take(line, true);
            }
        }
    }

    fn take(&mut self, line: Line, salvaged: bool) {
        match line {
            Line::Row(row) => self.take_row(*row, salvaged),
            Line::Through { uuid, parent } => self.look_through(&uuid, parent),
            Line::LastPrompt(prompt) if self.wanted.is_none() => self.live.prompts.push(prompt),
            Line::Title { own, title } if !self.has_own_title => {
                if own || self.live.title.is_none() {
                    self.live.title = Some(title);
                }
                self.has_own_title = own;
            }
            _ => {}
        }
    }

    fn take_row(&mut self, row: Row, salvaged: bool) {
        if let Some(wanted) = &mut self.wanted {
            if !wanted.remove(&row.uuid) {
                return;
            }
            if let (Some(head), Some(parent)) = (&self.segment_head, &row.parent)
                && *head != row.uuid
                && !self.index.contains_key(parent)
            {
                wanted.insert(parent.clone());
            }
        }
        if let Some(&newer) = self.index.get(&row.uuid) {
            // The newest version counts, at the place of the first one.
            self.live.rows[newer].order = row.order;
            return;
        }
        let uuid = row.uuid.clone();
        self.asked.remove(&uuid);
        if let Some(parent) = &row.parent
            && !self.index.contains_key(parent)
        {
            self.asked
                .entry(parent.clone())
                .or_default()
                .push(uuid.clone());
        }
        if salvaged {
            self.live.salvaged.insert(uuid.clone());
        }
        self.live.bytes += row.text.len() as u64;
        let at = self.live.rows.len();
        let boundary = row.boundary.clone().filter(|_| !row.sidechain);
        self.index.insert(uuid, at);
        self.live.rows.push(row);
        if let (Some(boundary), None, None) = (boundary, &self.wanted, self.live.boundary) {
            self.live.boundary = Some(at);
            self.begin_preserved(&boundary);
        }
    }

    /// The last compaction was found: from here on only what it preserves is wanted.
    fn begin_preserved(&mut self, boundary: &Boundary) {
        if !boundary.preserves() && self.whole {
            return;
        }
        let mut wanted = HashSet::new();
        if let Some(list) = &boundary.list {
            wanted.extend(list.iter().cloned());
        } else if let Some((head, tail)) = &boundary.segment {
            self.segment_head = Some(head.clone());
            wanted.insert(tail.clone());
        }
        wanted.retain(|uuid| !self.index.contains_key(uuid));
        self.wanted = Some(wanted);
    }

    /// Lets the rows that ask for `uuid` ask for its parent instead.
    fn look_through(&mut self, uuid: &str, parent: Option<Box<str>>) {
        let Some(rows) = self.asked.remove(uuid) else {
            return;
        };
        for row in &rows {
            if let Some(&at) = self.index.get(row) {
                self.live.rows[at].parent.clone_from(&parent);
            }
        }
        if let Some(parent) = parent
            && !self.index.contains_key(&parent)
        {
            self.asked.entry(parent).or_default().extend(rows);
        }
    }

    fn finish(mut self) -> Live {
        if let Some(wanted) = self.wanted.take() {
            let mut missing: Vec<_> = wanted.into_iter().collect();
            missing.sort();
            self.live.missing = missing;
        }
        let mut live = self.live;
        let boundary = live.boundary.map(|at| live.rows[at].uuid.clone());
        live.rows.sort_by_key(|row| row.order);
        live.boundary = boundary.and_then(|uuid| live.rows.iter().position(|row| row.uuid == uuid));
        live.prompts.reverse();
        live.findings.reverse();
        live
    }
}

/// Whether a line may be one of the wanted rows: whether one of its `"uuid"` values is wanted.
fn mentions(bytes: &[u8], wanted: &HashSet<Box<str>>) -> bool {
    memchr::memmem::find_iter(bytes, b"\"uuid\"").any(|at| {
        let rest = &bytes[at + 6..];
        let Some(open) = rest.iter().position(|b| *b == b'"') else {
            return false;
        };
        let value = &rest[open + 1..];
        let Some(close) = memchr::memchr(b'"', value) else {
            return false;
        };
        // An escaped value cannot be compared here; let the parser do it.
        let value = &value[..close];
        value.contains(&b'\\')
            || std::str::from_utf8(value).is_ok_and(|value| wanted.contains(value))
    })
}
