//! Reads folded parts back, byte for byte as they were first written. All of them, one after the
//! other, are in [`crate::folded`].

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::str::FromStr;

use crate::blocks::attached;
use crate::keys::names_row;
use crate::lines::{PieceKind, split};
use crate::row::{Kind, Line, Row, understand};
use crate::tools::{label, one_line};
use crate::wire::{Object, elements, string};
use crate::words::is_client_text;
use crate::{Error, ErrorKind};

/// Where a folded part is found: the session's first eight digits and a key, as in
/// `3f2a91c0:GQ7wK2`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    session: String,
    key: String,
}

/// One part of a folded output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FoldedPart {
    /// Words.
    Text(String),
    /// An image, as base64.
    Image {
        /// Media type, for example `image/png`.
        media_type: String,
        /// The image in base64.
        base64: String,
    },
    /// Anything else, as JSON.
    Json(String),
}

/// A folded output, attachment or text, as it was first written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Folded {
    /// The address that reads it back.
    pub address: String,
    /// The tool's name, or the attachment's kind; of a text who speaks: `user`, `assistant`,
    /// `client` or `summary`.
    pub tool: String,
    /// One line for people, for example `Bash(cargo test)`.
    pub label: String,
    /// When it was written, in milliseconds since the Unix epoch.
    pub at_ms: Option<i64>,
    /// Offset in bytes of its row in the file.
    pub offset: u64,
    /// What it holds.
    pub parts: Vec<FoldedPart>,
}

impl Address {
    /// The first eight digits of the session's identifier.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The key within the session.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.session, self.key)
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Address, Error> {
        let bad = || Error::new(ErrorKind::BadAddress, format!("not an address: {text:?}"));
        let (session, key) = text.trim().split_once(':').ok_or_else(bad)?;
        let word = |s: &str| {
            !s.is_empty()
                && s.bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        };
        if !word(session) || !word(key) {
            return Err(bad());
        }
        Ok(Address {
            session: session.to_owned(),
            key: key.to_owned(),
        })
    }
}

impl Folded {
    /// Its words, parts joined by a line break; images are left out.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self
            .parts
            .iter()
            .filter_map(|p| match p {
                FoldedPart::Text(t) => Some(t.as_str()),
                _ => None,
            })
            .collect();
        texts.join("\n")
    }
}

/// A call, as far as an output needs it.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) label: String,
    /// The row that holds it, and its place there.
    pub(crate) row: Box<str>,
    pub(crate) place: usize,
}

/// Reads one output, attachment or text back as it was first written, whether it is folded now or
/// not.
///
/// # Errors
/// When the file cannot be read, or when the address names nothing or several things in it.
pub fn unfold(path: &Path, address: &Address) -> Result<Folded, Error> {
    let mut finder = Finder::new(address);
    let marks = finder.marks();
    let named = |line: &[u8]| {
        let has = |mark: &String| memchr::memmem::find(line, mark.as_bytes()).is_some();
        marks.iter().all(has)
    };
    scan(path, &named, &mut |text, offset| {
        finder.look(text, offset);
        true
    })?;
    finder.answer().map_err(|e| e.at(path))
}

/// Calls `visit` for each whole row on a line that `matters`, in order, until it returns `false`.
pub(crate) fn scan(
    path: &Path,
    matters: &dyn Fn(&[u8]) -> bool,
    visit: &mut dyn FnMut(&str, u64) -> bool,
) -> Result<(), Error> {
    let fail = |e| Error::io(path, "failed to read the session", e);
    let file = File::open(path).map_err(fail)?;
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let (mut line, mut offset) = (Vec::new(), 0);
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line).map_err(fail)? as u64;
        if read == 0 {
            return Ok(());
        }
        if matters(&line) {
            let (pieces, _) = split(&line, offset, None);
            for piece in pieces.iter().filter(|p| p.kind == PieceKind::Row) {
                if !visit(&String::from_utf8_lossy(piece.bytes), piece.offset) {
                    return Ok(());
                }
            }
        }
        offset += read;
    }
}

/// What of a row an output can come from.
pub(crate) enum Source<'a> {
    Calls(Vec<Made>),
    Results(Vec<(String, Option<&'a str>)>),
    Attachment,
}

pub(crate) fn source<'a>(row: &Row, object: &Object<'a>) -> Option<Source<'a>> {
    if row.kind == Kind::Attachment {
        return Some(Source::Attachment);
    }
    let blocks = elements(object.object("message")?.get("content")?)?;
    let parsed = blocks.into_iter().map(Object::parse);
    if row.kind == Kind::Assistant {
        let calls = parsed.enumerate().filter_map(|(place, block)| {
            let block = block?;
            if block.str("type")? != "tool_use" {
                return None;
            }
            let tool = block.str("name").unwrap_or_default();
            Some(Made {
                id: block.str("id").unwrap_or_default(),
                label: label(&tool, block.get("input").unwrap_or("{}")),
                tool,
                row: row.uuid.clone(),
                place,
            })
        });
        return Some(Source::Calls(calls.collect()));
    }
    let results = parsed.filter_map(|block| {
        let block = block?;
        if block.str("type")? != "tool_result" {
            return None;
        }
        let id = block.str("tool_use_id").unwrap_or_default();
        Some((id, block.get("content")))
    });
    Some(Source::Results(results.collect()))
}

/// The parts of an output as they were written.
pub(crate) fn folded_parts(content: Option<&str>) -> Vec<FoldedPart> {
    let Some(content) = content else {
        return Vec::new();
    };
    if let Some(text) = string(content) {
        return vec![FoldedPart::Text(text)];
    }
    let part = |raw: &str| {
        let block = Object::parse(raw)?;
        match block.str("type")?.as_str() {
            "text" => Some(FoldedPart::Text(block.str("text")?)),
            "image" => {
                let source = block.object("source")?;
                Some(FoldedPart::Image {
                    media_type: source.str("media_type")?,
                    base64: source.str("data")?,
                })
            }
            _ => None,
        }
    };
    elements(content)
        .unwrap_or_default()
        .into_iter()
        .map(|raw| part(raw).unwrap_or_else(|| FoldedPart::Json(raw.to_owned())))
        .collect()
}

/// What an attachment row holds, to be found at this address.
pub(crate) fn folded_attachment(address: String, row: &Row, object: &Object<'_>) -> Folded {
    let attached = attached(object);
    let (tool, label) = if attached.typed {
        ("user".to_owned(), text_label("user", &attached.text))
    } else {
        let name = attached.name.unwrap_or_default();
        let label = one_line(&format!("{}({name})", attached.kind));
        (attached.kind, label)
    };
    Folded {
        address,
        tool,
        label,
        at_ms: row.at_ms,
        offset: row.offset,
        parts: vec![FoldedPart::Text(attached.text)],
    }
}

/// A text of a row: its place among the blocks, and all that is read back with it. Beside results
/// each text stands for itself; else those of a row belong together.
pub(crate) fn texts(row: &Row, object: &Object<'_>) -> Vec<(usize, Vec<String>)> {
    if !matches!(row.kind, Kind::User | Kind::Assistant) {
        return Vec::new();
    }
    let message = object.object("message");
    let Some(content) = message.as_ref().and_then(|message| message.get("content")) else {
        return Vec::new();
    };
    if let Some(text) = string(content) {
        return vec![(0, vec![text])];
    }
    let blocks = elements(content).unwrap_or_default().into_iter();
    let mut found: Vec<(usize, Vec<String>)> = Vec::new();
    for (place, block) in blocks.enumerate() {
        let block = Object::parse(block).filter(|b| b.str("type").as_deref() == Some("text"));
        let Some(text) = block.and_then(|block| block.str("text")) else {
            continue;
        };
        match found.first_mut() {
            Some((_, texts)) if !row.results => texts.push(text),
            _ => found.push((place, vec![text])),
        }
    }
    found
}

/// Texts of a row, to be found at this address.
pub(crate) fn folded_text(address: String, row: &Row, texts: Vec<String>) -> Folded {
    let first = texts.first().map_or("", String::as_str);
    let tool = match row.kind {
        Kind::Assistant => "assistant",
        _ if row.summary => "summary",
        _ if row.meta || is_client_text(first) => "client",
        _ => "user",
    };
    Folded {
        address,
        label: text_label(tool, first),
        tool: tool.to_owned(),
        at_ms: row.at_ms,
        offset: row.offset,
        parts: texts.into_iter().map(FoldedPart::Text).collect(),
    }
}

fn text_label(who: &str, text: &str) -> String {
    const SHOWN: usize = 200;
    let head: String = text.chars().take(SHOWN).collect();
    one_line(&format!("{who}({head})"))
}

/// Looks for what one address names.
struct Finder<'a> {
    address: &'a Address,
    text: String,
    calls: Vec<Made>,
    /// First version of each result: identifier, row that it hangs on, output.
    results: Vec<(String, Option<Box<str>>, Folded)>,
    /// What a row named by the address holds: texts, or an attachment.
    held: Vec<Folded>,
    seen: HashSet<Box<str>>,
    /// Identifiers whose newer version names the address itself.
    named: HashSet<String>,
}

impl Finder<'_> {
    fn new(address: &Address) -> Finder<'_> {
        Finder {
            text: address.to_string(),
            address,
            calls: Vec::new(),
            results: Vec::new(),
            held: Vec::new(),
            seen: HashSet::new(),
            named: HashSet::new(),
        }
    }

    /// Whether a key made of a row's uuid: its digits, and the place of the block.
    fn by_row(&self) -> Option<(&str, usize)> {
        let rest = self.address.key.strip_prefix("u-")?;
        match rest.split_once('-') {
            None => Some((rest, 0)),
            Some((digits, place)) => Some((digits, place.parse().ok()?)),
        }
    }

    /// What every line holds that has to do with the address.
    fn marks(&self) -> Vec<String> {
        match self.by_row() {
            None => vec![self.address.key.clone()],
            // The uuid as it is spelled: a dash after the eighth digit.
            Some((digits, _)) => match digits.split_at_checked(8) {
                Some((head, tail)) => vec![head.to_owned(), tail.to_owned()],
                None => vec![digits.to_owned()],
            },
        }
    }

    fn look(&mut self, text: &str, offset: u64) {
        let Some(Line::Row(row)) = understand(text, offset) else {
            return;
        };
        let Some(object) = Object::parse(text) else {
            return;
        };
        let by_row = self.by_row().map(|(d, p)| (d.to_owned(), p));
        let is_row = |uuid: &str| {
            by_row
                .as_ref()
                .is_some_and(|(digits, _)| names_row(digits, uuid))
        };
        let newer = !self.seen.insert(row.uuid.clone());
        if let Some((_, wanted)) = &by_row
            && !newer
            && is_row(&row.uuid)
        {
            let found = texts(&row, &object).into_iter();
            let found = found.filter(|(place, _)| place == wanted);
            let address = || self.text.clone();
            self.held
                .extend(found.map(|(_, texts)| folded_text(address(), &row, texts)));
            if row.kind == Kind::Attachment {
                self.held.push(folded_attachment(address(), &row, &object));
            }
        }
        match source(&row, &object) {
            Some(Source::Calls(calls)) if !newer => {
                self.calls
                    .extend(calls.into_iter().filter(|made| match &by_row {
                        Some((_, place)) => is_row(&made.row) && made.place == *place,
                        None => made.id.ends_with(&self.address.key),
                    }));
            }
            Some(Source::Results(results)) => {
                for (id, content) in results {
                    if newer {
                        if text.contains(&self.text) {
                            self.named.insert(id);
                        }
                        continue;
                    }
                    let answers = self.calls.iter().any(|made| made.id == id);
                    if answers {
                        let folded = Folded {
                            address: self.text.clone(),
                            tool: String::new(),
                            label: String::new(),
                            at_ms: row.at_ms,
                            offset,
                            parts: folded_parts(content),
                        };
                        self.results.push((id, row.parent.clone(), folded));
                    }
                }
            }
            _ => {}
        }
    }

    fn answer(mut self) -> Result<Folded, Error> {
        let several = || {
            let message = format!("several parts have the address {}", self.text);
            Error::new(ErrorKind::Ambiguous, message)
        };
        if self.held.len() > 1 || (self.held.len() == 1 && !self.calls.is_empty()) {
            return Err(several());
        }
        if let Some(found) = self.held.pop() {
            return Ok(found);
        }
        let mut ids: Vec<&str> = self.calls.iter().map(|made| &*made.id).collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.len() > 1 {
            self.calls.retain(|made| self.named.contains(&made.id));
        }
        let Some(made) = self.calls.first() else {
            let message = format!("nothing has the address {}", self.text);
            return Err(Error::new(ErrorKind::NotFound, message));
        };
        if self.calls.iter().any(|other| other.id != made.id) {
            return Err(several());
        }
        let of_id = || self.results.iter().filter(|(id, ..)| *id == made.id);
        let found = of_id()
            .find(|(_, parent, _)| parent.as_deref() == Some(&*made.row))
            .or_else(|| of_id().next());
        let Some((_, _, found)) = found else {
            let message = format!("the call {} has no output", made.label);
            return Err(Error::new(ErrorKind::NotFound, message));
        };
        Ok(Folded {
            tool: made.tool.clone(),
            label: made.label.clone(),
            ..found.clone()
        })
    }
}
