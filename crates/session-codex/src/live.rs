//! The live part of a thread: from the last compaction with a replacement history to the end,
//! across the rollouts that a fork or a revert hangs on. What lies before is not read.

use std::collections::HashMap;
use std::os::unix::fs::FileExt;
use std::path::Path;

use ctxfold_transcript::Fill;

use crate::begin::{Begin, compressed_has_begin, find_begin, unpack};
use crate::chain::{self, Rollout};
use crate::item::{self, Item};
use crate::lines::{self, Backward, Extent};
use crate::prefix::{self, SUMMARY_PREFIX};
use crate::stamp::parse_timestamp;
use crate::wire::{Compacted, Event, FinishedItem, Line, TurnContext};
use crate::{Error, ErrorKind, Finding};

/// Items above this size that hold an image are read again from the file when they are needed.
const HELD: usize = 4096;
/// How far before the live part a count of tokens is looked for.
const LOOK_BEHIND_LINES: usize = 200;
const LOOK_BEHIND_BYTES: u64 = 4 * 1024 * 1024;
/// The JSON of an item.
#[derive(Debug, Clone)]
pub(crate) enum Raw {
    Held(Box<str>),
    InFile { depth: usize, start: u64, len: u64 },
}

/// An item of the conversation and where it came from.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) raw: Raw,
    pub(crate) item: Item,
    pub(crate) at_ms: Option<i64>,
    /// The rollout and the line in it.
    pub(crate) place: Place,
    /// Whether it is the answer to the client's own request for a summary.
    pub(crate) summary_answer: bool,
}

/// Where a line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// 0 for the thread's own rollout, 1 for the one it hangs on, and so on.
    pub(crate) depth: usize,
    pub(crate) start: u64,
}

impl Place {
    /// Whether it stands in the thread before another.
    pub(crate) fn is_before(self, other: Place) -> bool {
        self.depth > other.depth || (self.depth == other.depth && self.start < other.start)
    }
}

/// The last count of tokens.
#[derive(Debug, Clone)]
pub(crate) struct TokenCount {
    /// The payload as it stands in the file.
    pub(crate) payload: String,
    pub(crate) total: u64,
    pub(crate) window: Option<u64>,
    pub(crate) stale: bool,
}

/// How the last line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With a line break.
    Whole,
    /// Whole JSON without a line break.
    Unterminated,
    /// Not whole.
    Torn,
}

/// The live part.
#[derive(Debug)]
pub(crate) struct Live {
    /// The thread's own rollout first, then what it hangs on.
    pub(crate) chain: Vec<Rollout>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) tokens: Option<TokenCount>,
    pub(crate) begin: Option<Begin>,
    pub(crate) prefix: String,
    pub(crate) window: Option<u64>,
    pub(crate) cwd: Option<String>,
    pub(crate) model: Option<String>,
    /// Exit codes by call.
    pub(crate) exits: HashMap<String, i32>,
    /// Ordinal of the last line that could be read, where it has one.
    pub(crate) last_ordinal: Option<u64>,
    pub(crate) ending: Ending,
    pub(crate) bytes: u64,
    pub(crate) rows: usize,
    /// From this place on compactions are passed over, as if nobody had compacted.
    without: Option<Place>,
    /// What was passed over.
    pub(crate) passed: Vec<Begin>,
    /// The count of tokens at the first one.
    pub(crate) tokens_before: Option<TokenCount>,
}

impl Live {
    /// Reads the live part of a thread.
    pub(crate) fn read(home: &Path, path: &Path) -> Result<Live, Error> {
        Live::read_without(home, path, None)
    }

    /// Reads the live part as it would be without the compactions from a place on.
    pub(crate) fn read_without(
        home: &Path,
        path: &Path,
        without: Option<Place>,
    ) -> Result<Live, Error> {
        let rollout = Rollout::open(path)?;
        let end = rollout.len;
        let mut live = Live {
            chain: vec![rollout],
            entries: Vec::new(),
            findings: Vec::new(),
            tokens: None,
            begin: None,
            prefix: SUMMARY_PREFIX.to_owned(),
            window: None,
            cwd: None,
            model: None,
            exits: HashMap::new(),
            last_ordinal: None,
            ending: Ending::Whole,
            bytes: 0,
            rows: 0,
            without,
            passed: Vec::new(),
            tokens_before: None,
        };
        live.cwd.clone_from(&live.chain[0].meta.cwd);
        let ranges = live.find_ranges(home, end)?;
        if let Some(&(depth, start, _)) = ranges.last()
            && !live.chain[depth].compressed
        {
            live.look_behind(depth, start)?;
        }
        for &(depth, start, end) in ranges.iter().rev() {
            live.fold(depth, start, end)?;
        }
        Ok(live)
    }

    /// The parts of the chain that are live, the thread's own first.
    fn find_ranges(&mut self, home: &Path, end: u64) -> Result<Vec<(usize, u64, u64)>, Error> {
        let mut ranges = Vec::new();
        let mut end = end;
        let mut depth = 0;
        loop {
            let rollout = &self.chain[depth];
            // A compaction that is passed over begins nothing.
            let behind = match self.without {
                Some(without) if depth < without.depth => 0,
                Some(without) if depth == without.depth => without.start,
                _ => end,
            };
            let (start, found) = if rollout.compressed {
                let behind = if behind == rollout.len {
                    u64::MAX
                } else {
                    behind
                };
                (0, compressed_has_begin(rollout, behind)?)
            } else {
                find_begin(rollout, behind.min(end))?
            };
            // The length on the disk says nothing of the lines in a compressed file.
            if rollout.compressed && depth == 0 {
                end = u64::MAX;
            }
            ranges.push((depth, start, end));
            if found {
                return Ok(ranges);
            }
            let parent = match chain::parent(home, &self.chain) {
                Ok(Some(parent)) => parent,
                Ok(None) => return Ok(ranges),
                Err(finding) => {
                    self.findings.push(finding);
                    return Ok(ranges);
                }
            };
            let base = self.chain[depth].meta.history_base.as_ref();
            end = base.map_or(0, |base| base.end_byte_offset);
            self.chain.push(parent);
            depth += 1;
        }
    }

    /// Why the live part is not the whole conversation, where it is not: what would be written
    /// would leave out the rest.
    pub(crate) fn unreadable(&self) -> Option<Error> {
        let kind = |code| match code {
            "base-missing" => Some(ErrorKind::BaseMissing),
            "line-too-long" => Some(ErrorKind::TooLong),
            _ => None,
        };
        self.findings.iter().find_map(|finding| {
            let kind = kind(finding.code)?;
            Some(Error::new(kind, finding.message.clone()).at(&self.chain[0].path))
        })
    }

    /// Looks for a count of tokens before the live part.
    fn look_behind(&mut self, depth: usize, start: u64) -> Result<(), Error> {
        let rollout = &self.chain[depth];
        let io = |e| Error::io(&rollout.path, "failed to read the rollout", e);
        let mut backward = Backward::limited(&rollout.file, start, LOOK_BEHIND_BYTES);
        let mut found = None;
        for _ in 0..LOOK_BEHIND_LINES {
            let Some(extent) = backward.next().map_err(io)? else {
                break;
            };
            let head = lines::head(&rollout.file, extent).map_err(io)?;
            if memchr::memmem::find(&head, b"\"token_count\"").is_none() {
                continue;
            }
            let bytes = lines::read(&rollout.file, extent).map_err(io)?;
            if let Some(count) = Line::parse(&bytes).as_ref().and_then(token_count) {
                found = Some(count);
                break;
            }
        }
        self.tokens = found;
        Ok(())
    }

    fn fold(&mut self, depth: usize, start: u64, end: u64) -> Result<(), Error> {
        self.ending = Ending::Whole;
        let path = self.chain[depth].path.clone();
        let io = |e| Error::io(&path, "failed to read the rollout", e);
        let file = self.chain[depth].file.try_clone().map_err(io)?;
        let compressed = self.chain[depth].compressed;
        let mut reached = (start, true);
        let mut visit = |extent: Extent, bytes: &[u8]| {
            let inside = extent.start < end;
            if inside {
                reached = (extent.end, extent.terminated);
                self.line(depth, extent, bytes);
            }
            inside
        };
        if compressed {
            unpack(&path, &file, &mut visit)?;
        } else {
            lines::forward(&file, start, end, &mut visit).map_err(io)?;
        }
        // What hangs on this rollout begins between two lines of it.
        if let Some(child) = depth.checked_sub(1)
            && reached != (end, true)
            && let Some(base) = &self.chain[child].meta.history_base
        {
            let text = chain::mid_line(&base.thread_id, end);
            self.findings.push(Finding::new("base-missing", text));
        }
        Ok(())
    }

    fn line(&mut self, depth: usize, extent: Extent, bytes: &[u8]) {
        self.bytes += extent.len();
        if bytes.is_empty() {
            return;
        }
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let place = Place {
            depth,
            start: extent.start,
        };
        if extent.is_too_long() {
            let text = format!("a line of {} bytes", extent.len());
            let finding = Finding::new("line-too-long", text);
            self.findings.push(finding.at(extent.start));
            return;
        }
        let Some(line) = Line::parse(bytes) else {
            if extent.terminated {
                let finding = Finding::new("bad-line", "a line cannot be read");
                self.findings.push(finding.at(extent.start));
            } else {
                self.ending = Ending::Torn;
                let finding = Finding::new("torn-tail", "the last line is not whole");
                self.findings.push(finding.at(extent.start));
            }
            return;
        };
        self.rows += 1;
        self.ending = if extent.terminated {
            Ending::Whole
        } else {
            Ending::Unterminated
        };
        self.last_ordinal = line.ordinal;
        match &*line.kind {
            "response_item" => {
                let answer = line.metadata.as_ref().and_then(|m| m.compaction_output);
                self.add(
                    line.payload.get(),
                    bytes,
                    place,
                    line.timestamp.as_deref().and_then(parse_timestamp),
                    answer == Some(true),
                );
            }
            "compacted" => self.compacted(&line, bytes, place),
            "event_msg" => self.event(&line),
            "turn_context" => {
                if let Some(context) = line.payload::<TurnContext>() {
                    self.cwd = context.cwd.or(self.cwd.take());
                    self.model = context.model.or(self.model.take());
                }
            }
            "session_meta"
            | "world_state"
            | "token_usage_record"
            | "inter_agent_communication"
            | "inter_agent_communication_metadata" => {}
            other => {
                let text = format!("a line of the unknown type {other:?}");
                let finding = Finding::new("unknown-line", text).at(extent.start);
                self.findings.push(finding);
            }
        }
    }

    fn add(
        &mut self,
        raw: &str,
        line: &[u8],
        place: Place,
        at_ms: Option<i64>,
        summary_answer: bool,
    ) {
        let Some(item) = item::parse(raw, &self.prefix) else {
            let finding = Finding::new("bad-line", "an item cannot be read");
            self.findings.push(finding.at(place.start));
            return;
        };
        if let Item::Unknown(kind) = &item {
            let text = format!("an item of the unknown type {kind:?}");
            self.findings
                .push(Finding::new("unknown-item", text).at(place.start));
        }
        let has_image = raw.len() > HELD
            && memchr::memmem::find(raw.as_bytes(), b"data:image/").is_some()
            && !self.chain[place.depth].compressed;
        let raw = if has_image {
            // Both are parts of one buffer.
            let inside = raw.as_ptr() as usize - line.as_ptr() as usize;
            Raw::InFile {
                depth: place.depth,
                start: place.start + inside as u64,
                len: raw.len() as u64,
            }
        } else {
            Raw::Held(raw.into())
        };
        self.entries.push(Entry {
            raw,
            item,
            at_ms,
            place,
            summary_answer,
        });
    }

    fn compacted(&mut self, line: &Line<'_>, bytes: &[u8], place: Place) {
        let Some(compacted) = line.payload::<Compacted<'_>>() else {
            let finding = Finding::new("bad-line", "a compacted line cannot be read");
            self.findings.push(finding.at(place.start));
            return;
        };
        if let Some(own) = prefix::derive(&compacted.message) {
            own.clone_into(&mut self.prefix);
        }
        let at_ms = line.timestamp.as_deref().and_then(parse_timestamp);
        let begin = Begin::new(&compacted, &self.prefix, place, at_ms);
        if self
            .without
            .is_some_and(|without| !place.is_before(without))
        {
            if self.passed.is_empty() {
                self.tokens_before = self.tokens.clone().filter(|count| !count.stale);
            }
            self.passed.push(begin);
            return;
        }
        self.begin = Some(begin);
        if let Some(history) = compacted.replacement_history {
            self.entries.clear();
            for raw in history {
                self.add(raw.get(), bytes, place, at_ms, false);
            }
        } else {
            // The oldest form: the user's messages stay, and the message follows them.
            self.entries.retain(Entry::author_is_user);
            let item = serde_json::json!({"type": "message", "role": "user",
                "content": [{"type": "input_text", "text": compacted.message}]});
            let raw = item.to_string();
            if let Some(item) = item::parse(&raw, &self.prefix) {
                self.entries.push(Entry {
                    raw: Raw::Held(raw.into()),
                    item,
                    at_ms,
                    place,
                    summary_answer: false,
                });
            }
        }
        if let Some(tokens) = &mut self.tokens {
            tokens.stale = true;
        }
    }

    fn event(&mut self, line: &Line<'_>) {
        let Some(event) = line.payload::<Event<'_>>() else {
            return;
        };
        match &*event.kind {
            "token_count" => {
                if let Some(count) = token_count(line) {
                    self.window = count.window.or(self.window);
                    self.tokens = Some(count);
                }
            }
            "task_started" => {
                self.window = event.model_context_window.and_then(window).or(self.window);
            }
            "thread_rolled_back" => self.roll_back(event.num_turns.unwrap_or(0)),
            "item_completed" => {
                let item = event
                    .item
                    .and_then(|raw| serde_json::from_str::<FinishedItem>(raw.get()).ok());
                if let Some(FinishedItem {
                    kind,
                    id: Some(id),
                    exit_code: Some(code),
                }) = item
                    && kind == "CommandExecution"
                {
                    self.exits.insert(id, code);
                }
            }
            _ => {}
        }
    }

    fn roll_back(&mut self, turns: u32) {
        let mut left = turns;
        while left > 0 {
            let Some(at) = self.entries.iter().rposition(Entry::author_is_user) else {
                self.entries.clear();
                break;
            };
            self.entries.truncate(at);
            left -= 1;
        }
        if turns > 0 {
            self.findings
                .push(Finding::new("rolled-back", format!("{turns} turns")));
        }
    }

    /// The JSON of an item, read again where it is not held.
    pub(crate) fn raw(&self, entry: &Entry) -> Result<String, Error> {
        match &entry.raw {
            Raw::Held(text) => Ok(text.to_string()),
            Raw::InFile { depth, start, len } => {
                let rollout = &self.chain[*depth];
                let mut bytes = vec![0; *len as usize];
                rollout
                    .file
                    .read_exact_at(&mut bytes, *start)
                    .map_err(|e| Error::io(&rollout.path, "failed to read the rollout", e))?;
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
        }
    }
}

impl Entry {
    pub(crate) fn author_is_user(&self) -> bool {
        matches!(
            &self.item,
            Item::Message { author, .. } if *author == ctxfold_transcript::Author::User
        )
    }
}

/// A window in tokens; none is empty.
fn window(tokens: u64) -> Option<u64> {
    (tokens > 0).then_some(tokens.min(Fill::MOST_TOKENS))
}

pub(crate) fn token_count(line: &Line<'_>) -> Option<TokenCount> {
    if line.kind != "event_msg" {
        return None;
    }
    let event = line.payload::<Event<'_>>()?;
    if event.kind != "token_count" {
        return None;
    }
    let info = event.info?;
    Some(TokenCount {
        payload: line.payload.get().to_owned(),
        total: info.last_token_usage?.total_tokens.min(Fill::MOST_TOKENS),
        window: info.model_context_window.and_then(window),
        stale: false,
    })
}

impl Entry {
    /// Bytes of the item in the request.
    pub(crate) fn len(&self) -> u64 {
        match &self.raw {
            Raw::Held(text) => text.len() as u64,
            Raw::InFile { len, .. } => *len,
        }
    }
}
