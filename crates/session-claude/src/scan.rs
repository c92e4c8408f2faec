//! A whole file, read forwards once: what fills it, and how its context grew.
//!
//! Nothing is built from a row; its parts are looked at where they lie. The file is cut into
//! chunks at line ends, several threads look at them, and what they saw is put together in order.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{channel, sync_channel};

use memchr::{memchr, memrchr};

use crate::glance::{Block, Glance, Inside, Usage, glance_inside};
use crate::json;
use crate::keys::{call_keys, session_part};
use crate::lines::{PieceKind, Place, is_object, split_line};
use crate::probe::{Probe, key};
use crate::{Error, Finding};

/// Bytes of a chunk, unless a line is longer.
const CHUNK: usize = 2 << 20;
/// More threads than this wait for the disk.
const THREADS: usize = 4;
/// Findings of one code that are kept from the lines; a destroyed file has no end of them.
pub(crate) const MOST_FINDINGS: usize = 200;

/// Kinds of rows that clients are known to write.
const KNOWN: &[&str] = &[
    "user",
    "assistant",
    "attachment",
    "system",
    "queue-operation",
    "last-prompt",
    "mode",
    "permission-mode",
    "file-history-snapshot",
    "file-history-delta",
    "tools-used",
    "cost-state",
    "atis-latch",
    "custom-title",
    "ai-title",
    "agent-name",
    "agent-color",
    "agent-setting",
    "tag",
    "pr-link",
    "summary",
    "progress",
    "api-request",
    "api-request-shape",
    "api-request-blob",
];

/// What a scan may do.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ScanOptions {
    /// How many of the largest outputs are named.
    pub largest: usize,
    /// Threads that look at chunks; `None` for as many as the machine has, up to four.
    pub threads: Option<usize>,
}

impl Default for ScanOptions {
    fn default() -> ScanOptions {
        ScanOptions {
            largest: 20,
            threads: None,
        }
    }
}

/// What is in a file.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Scan {
    /// The session's identifier, as the rows have it.
    pub session: Option<String>,
    /// Bytes of the file.
    pub bytes: u64,
    /// Lines, whatever is on them.
    pub lines: u64,
    /// Rows that could be read.
    pub rows: u64,
    /// Rows by kind, the most bytes first.
    pub kinds: Vec<KindTotal>,
    /// Calls by tool, the most output first. Those of sub-agents are not in it.
    pub tools: Vec<ToolTotal>,
    /// The largest outputs, the largest first.
    pub largest: Vec<Output>,
    /// One entry an answer of the model, in file order.
    pub turns: Vec<Turn>,
    /// The compactions, in file order.
    pub compactions: Vec<Compaction>,
    /// Time of the first and the last row, in milliseconds since the Unix epoch.
    pub span_ms: Option<(i64, i64)>,
    /// What was damaged.
    pub findings: Vec<Finding>,
}

/// Rows of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindTotal {
    /// The kind, with a slash and the kind within it where there is one: `attachment/file`.
    pub kind: String,
    /// Whether clients are known to write it.
    pub known: bool,
    /// How many.
    pub rows: u64,
    /// Their bytes, without line ends.
    pub bytes: u64,
}

/// Calls of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolTotal {
    /// The tool's name; `?` for results without a call.
    pub tool: String,
    /// How many calls.
    pub calls: u64,
    /// Bytes of their inputs, as JSON.
    pub input_bytes: u64,
    /// Bytes of their newest outputs, as JSON.
    pub output_bytes: u64,
}

/// One output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Output {
    /// The address that reads it back; `None` where its call's identifier is not unique.
    pub address: Option<String>,
    /// The tool's name.
    pub tool: String,
    /// Its bytes, as JSON.
    pub bytes: u64,
    /// Line in the file, from 1.
    pub line: u64,
    /// Offset of its row in the file.
    pub offset: u64,
}

/// One answer of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Turn {
    /// Line in the file, from 1, of its first row.
    pub line: u64,
    /// Its time in milliseconds since the Unix epoch.
    pub at_ms: Option<i64>,
    /// Tokens in the context.
    pub context: u64,
    /// Tokens of the answer.
    pub output: u64,
}

/// One compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compaction {
    /// Line in the file, from 1.
    pub line: u64,
    /// Offset in bytes.
    pub offset: u64,
    /// Its time in milliseconds since the Unix epoch.
    pub at_ms: Option<i64>,
    /// `manual` or `auto`.
    pub trigger: Option<String>,
    /// Tokens before, as recorded.
    pub before: Option<u64>,
    /// Tokens after, as recorded.
    pub after: Option<u64>,
}

/// Reads a whole file. `progress` is told how many bytes are done, and of how many.
///
/// # Errors
/// When the file cannot be read. Damage inside it is no error.
pub fn scan(
    path: &Path,
    options: &ScanOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Scan, Error> {
    Ok(run(path, options, false, progress)?.0)
}

/// A tool call as the scan saw it.
#[derive(Debug)]
struct Call {
    tool: Box<str>,
    id: Box<str>,
    input: u64,
}

#[derive(Debug)]
struct Answer {
    id: Box<str>,
    bytes: u64,
    place: Place,
}

/// What was seen in one chunk. Lines are counted from 0.
#[derive(Default)]
struct Part {
    bytes: u64,
    lines: u64,
    rows: u64,
    session: Option<String>,
    kinds: HashMap<String, (u64, u64)>,
    label: String,
    calls: Vec<Call>,
    results: Vec<Answer>,
    turns: Vec<(u128, Turn)>,
    compactions: Vec<Compaction>,
    first_ms: Option<i64>,
    /// The newest timestamp's text, so that only one a chunk is parsed.
    last_time: Vec<u8>,
    findings: Vec<Finding>,
    probe: Option<Probe>,
}

/// Runs the scan, with a probe over the rows where `deep`.
pub(crate) fn run(
    path: &Path,
    options: &ScanOptions,
    deep: bool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(Scan, Probe), Error> {
    let io = |e| Error::io(path, "cannot read the session", e);
    let file = File::open(path).map_err(io)?;
    let total = file.metadata().map_err(io)?.len();
    let threads = options.threads.map_or_else(
        || std::thread::available_parallelism().map_or(1, |n| n.get().min(THREADS)),
        |n| n.clamp(1, THREADS),
    );
    let mut whole = Whole::new(options.largest);
    if total <= CHUNK as u64 / 4 {
        // Threads cost more than they save.
        let mut bytes = Vec::new();
        (&file).read_to_end(&mut bytes).map_err(io)?;
        whole.add(look(&bytes, 0, deep));
        progress(total, total);
        return Ok(whole.finish());
    }
    let mut chunks = Chunks {
        file,
        rest: Vec::new(),
        offset: 0,
        done: false,
    };
    let (to_workers, work) = sync_channel::<(usize, u64, Vec<u8>)>(threads);
    let work = Mutex::new(work);
    let (results, done) = channel::<(usize, Part, Vec<u8>)>();
    std::thread::scope(|scope| -> io::Result<()> {
        for _ in 0..threads {
            let results = results.clone();
            let work = &work;
            scope.spawn(move || {
                loop {
                    // A poisoned lock means that another worker panicked, which the scope reports.
                    let next = match work.lock() {
                        Ok(receiver) => receiver.recv(),
                        Err(_) => return,
                    };
                    let Ok((index, offset, bytes)) = next else {
                        return;
                    };
                    let part = look(&bytes, offset, deep);
                    if results.send((index, part, bytes)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(results);
        let mut spare: Vec<Vec<u8>> = Vec::new();
        let mut waiting: HashMap<usize, Part> = HashMap::new();
        let (mut sent, mut added) = (0, 0);
        let mut take = |(index, part, bytes): (usize, Part, Vec<u8>), spare: &mut Vec<Vec<u8>>| {
            waiting.insert(index, part);
            if bytes.capacity() <= 2 * CHUNK {
                spare.push(bytes);
            }
            while let Some(part) = waiting.remove(&added) {
                whole.add(part);
                added += 1;
            }
            progress(whole.scan.bytes, total.max(whole.scan.bytes));
        };
        let read = loop {
            match chunks.next(spare.pop().unwrap_or_default()) {
                Ok(None) => break Ok(()),
                Err(e) => break Err(e),
                Ok(Some((offset, bytes))) => {
                    if to_workers.send((sent, offset, bytes)).is_err() {
                        break Ok(());
                    }
                    sent += 1;
                }
            }
            while let Ok(result) = done.try_recv() {
                take(result, &mut spare);
            }
        };
        drop(to_workers);
        for result in &done {
            take(result, &mut spare);
        }
        read
    })
    .map_err(io)?;
    Ok(whole.finish())
}

/// Cuts a file into chunks that end at line ends.
struct Chunks {
    file: File,
    /// The beginning of the next chunk: what came after the last line end.
    rest: Vec<u8>,
    offset: u64,
    done: bool,
}

impl Chunks {
    fn next(&mut self, mut buffer: Vec<u8>) -> io::Result<Option<(u64, Vec<u8>)>> {
        buffer.clear();
        buffer.append(&mut self.rest);
        let mut searched = 0;
        while !self.done {
            let want = CHUNK.max(buffer.len() / 4);
            buffer.reserve_exact(want);
            let n = (&self.file).take(want as u64).read_to_end(&mut buffer)?;
            self.done = n < want;
            if let Some(end) = memrchr(b'\n', &buffer[searched..]) {
                let end = searched + end + 1;
                self.rest.extend_from_slice(&buffer[end..]);
                buffer.truncate(end);
                break;
            }
            searched = buffer.len();
        }
        if buffer.is_empty() {
            // At the end, what is left has no line end.
            std::mem::swap(&mut buffer, &mut self.rest);
        }
        if buffer.is_empty() {
            return Ok(None);
        }
        let offset = self.offset;
        self.offset += buffer.len() as u64;
        Ok(Some((offset, buffer)))
    }
}

/// Looks at the lines of a chunk.
fn look(bytes: &[u8], offset: u64, deep: bool) -> Part {
    let mut part = Part {
        bytes: bytes.len() as u64,
        probe: deep.then(Probe::default),
        ..Part::default()
    };
    let mut inside = Inside::default();
    let mut start = 0;
    while start < bytes.len() {
        let end = memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |n| start + n + 1);
        let place = Place {
            offset: offset + start as u64,
            line: Some(part.lines),
        };
        part.line(&bytes[start..end], place, &mut inside);
        part.lines += 1;
        start = end;
    }
    part
}

impl Part {
    fn line<'a>(&mut self, line: &'a [u8], place: Place, inside: &mut Inside<'a>) {
        let body = line.strip_suffix(b"\n").unwrap_or(line);
        let body = body.strip_suffix(b"\r").unwrap_or(body);
        if let Some(probe) = &mut self.probe {
            probe.line(line, body, place);
        }
        if is_object(body) {
            self.row(body, place, inside);
            return;
        }
        let mut rows = Vec::new();
        split_line(
            line,
            place,
            &mut |piece| {
                if piece.kind == PieceKind::Row {
                    rows.push((piece.bytes, piece.offset));
                }
            },
            &mut self.findings,
        );
        for (row, offset) in rows {
            self.row(row, Place { offset, ..place }, inside);
        }
    }

    fn row<'a>(&mut self, row: &'a [u8], place: Place, inside: &mut Inside<'a>) {
        let look = glance_inside(row, inside);
        self.rows += 1;
        self.count(&look, row.len() as u64);
        if self.session.is_none() && !look.session.is_empty() {
            self.session = Some(String::from_utf8_lossy(look.session).into_owned());
        }
        if !look.timestamp.is_empty() {
            if self.first_ms.is_none() {
                self.first_ms = look.at_ms();
            }
            self.last_time.clear();
            self.last_time.extend_from_slice(look.timestamp);
        }
        if let Some(probe) = &mut self.probe {
            probe.row(&look, row, place);
        }
        if look.is_boundary() {
            self.compaction(&look, place);
        }
        if !look.sidechain {
            self.message(&look, inside, place);
        }
    }

    fn count(&mut self, look: &Glance<'_>, bytes: u64) {
        self.label.clear();
        let kind = if look.kind.is_empty() {
            b"?"
        } else {
            look.kind
        };
        self.label.push_str(&String::from_utf8_lossy(kind));
        let within = match look.kind {
            b"system" => Some(look.subtype),
            b"attachment" => look
                .attachment
                .and_then(|a| json::field(a, "type"))
                .and_then(json::raw_text),
            _ => None,
        };
        if let Some(within) = within.filter(|w| !w.is_empty()) {
            self.label.push('/');
            self.label.push_str(&String::from_utf8_lossy(within));
        }
        if let Some(total) = self.kinds.get_mut(&self.label) {
            total.0 += 1;
            total.1 += bytes;
        } else {
            self.kinds.insert(self.label.clone(), (1, bytes));
        }
    }

    fn compaction(&mut self, look: &Glance<'_>, place: Place) {
        let field = |name| look.compact.and_then(|c| json::field(c, name));
        self.compactions.push(Compaction {
            line: place.line.unwrap_or(0),
            offset: place.offset,
            at_ms: look.at_ms(),
            trigger: field("trigger")
                .and_then(json::text)
                .map(std::borrow::Cow::into_owned),
            before: field("preTokens").and_then(json::number),
            after: field("postTokens").and_then(json::number),
        });
    }

    fn message(&mut self, look: &Glance<'_>, inside: &Inside<'_>, place: Place) {
        for block in &inside.blocks {
            self.block(block, look, place);
        }
        if look.kind == b"assistant"
            && let Some(used) = inside.usage.filter(|u| *u != Usage::default())
        {
            // Rows without a message's identifier are messages of their own.
            let id = key(inside.id.unwrap_or(look.uuid));
            let turn = Turn {
                line: place.line.unwrap_or(0),
                at_ms: look.at_ms(),
                context: used.context,
                output: used.output,
            };
            merge_turn(&mut self.turns, id, turn);
        }
    }

    fn block(&mut self, block: &Block<'_>, look: &Glance<'_>, place: Place) {
        let Some(id) = block.id.and_then(json::text) else {
            return;
        };
        let body = block.body.unwrap_or_default();
        match (look.kind, block.kind) {
            (b"assistant", b"\"tool_use\"") => self.calls.push(Call {
                tool: block.name.and_then(json::text).unwrap_or_default().into(),
                id: id.into(),
                input: body.len() as u64,
            }),
            (b"user", b"\"tool_result\"") => self.results.push(Answer {
                id: id.into(),
                bytes: json::raw_text(body).unwrap_or(body).len() as u64,
                place,
            }),
            _ => {}
        }
    }
}

/// The rows of a message repeat its usage while it is written: only the last is final, so the
/// larger counts.
fn merge_turn(turns: &mut Vec<(u128, Turn)>, id: u128, turn: Turn) {
    match turns.last_mut() {
        Some((last, old)) if *last == id => {
            old.context = old.context.max(turn.context);
            old.output = old.output.max(turn.output);
        }
        _ => turns.push((id, turn)),
    }
}

#[derive(Debug, Default)]
struct Pair {
    tool: Option<Box<str>>,
    input: u64,
    /// The newest result.
    result: Option<(u64, Place)>,
}

/// The chunks put together.
struct Whole {
    scan: Scan,
    largest: usize,
    kinds: HashMap<String, (u64, u64)>,
    pairs: HashMap<Box<str>, Pair>,
    turns: HashMap<u128, usize>,
    per_code: HashMap<crate::Code, usize>,
    probe: Probe,
}

impl Whole {
    fn new(largest: usize) -> Whole {
        Whole {
            scan: Scan::default(),
            largest,
            kinds: HashMap::new(),
            pairs: HashMap::new(),
            turns: HashMap::new(),
            per_code: HashMap::new(),
            probe: Probe::default(),
        }
    }

    fn add(&mut self, mut part: Part) {
        // Line numbers begin with 1.
        let before = self.scan.lines + 1;
        let scan = &mut self.scan;
        scan.bytes += part.bytes;
        scan.lines += part.lines;
        scan.rows += part.rows;
        scan.session = scan.session.take().or(part.session.take());
        let last = std::str::from_utf8(&part.last_time)
            .ok()
            .and_then(crate::stamp::parse_timestamp);
        if let Some(last) = last.or(part.first_ms) {
            let first = scan.span_ms.map_or(part.first_ms.unwrap_or(last), |s| s.0);
            scan.span_ms = Some((first, last));
        }
        for (kind, (rows, bytes)) in part.kinds {
            let total = self.kinds.entry(kind).or_default();
            total.0 += rows;
            total.1 += bytes;
        }
        for call in part.calls {
            let pair = self.pairs.entry(call.id).or_default();
            pair.tool = Some(call.tool);
            pair.input = call.input;
        }
        for mut answer in part.results {
            answer.place.line = answer.place.line.map(|n| n + before);
            let pair = self.pairs.entry(answer.id).or_default();
            pair.result = Some((answer.bytes, answer.place));
        }
        for (id, mut turn) in part.turns {
            turn.line += before;
            if let Some(known) = self.turns.get(&id) {
                let old = &mut scan.turns[*known];
                old.context = old.context.max(turn.context);
                old.output = old.output.max(turn.output);
            } else {
                self.turns.insert(id, scan.turns.len());
                scan.turns.push(turn);
            }
        }
        for mut compaction in part.compactions {
            compaction.line += before;
            scan.compactions.push(compaction);
        }
        for mut finding in part.findings {
            let count = self.per_code.entry(finding.code).or_default();
            *count += 1;
            if *count <= MOST_FINDINGS {
                finding.line = finding.line.map(|n| n + before);
                scan.findings.push(finding);
            }
        }
        if let Some(probe) = part.probe {
            self.probe.append(probe, before);
        }
    }

    fn finish(mut self) -> (Scan, Probe) {
        self.finish_tools();
        let mut scan = self.scan;
        for (code, count) in self.per_code {
            if count > MOST_FINDINGS {
                let more = count - MOST_FINDINGS;
                scan.findings
                    .push(Finding::new(code, format!("{more} more of these")));
            }
        }
        scan.kinds = self
            .kinds
            .into_iter()
            .map(|(kind, (rows, bytes))| {
                let outer = kind.split('/').next().unwrap_or_default();
                KindTotal {
                    known: KNOWN.contains(&outer),
                    kind,
                    rows,
                    bytes,
                }
            })
            .collect();
        scan.kinds
            .sort_by(|a, b| (b.bytes, &a.kind).cmp(&(a.bytes, &b.kind)));
        (scan, self.probe)
    }

    fn finish_tools(&mut self) {
        let mut tools: HashMap<&str, ToolTotal> = HashMap::new();
        let mut outputs: Vec<(u64, Place, usize)> = Vec::new();
        let pairs: Vec<(&str, &Pair)> = self.pairs.iter().map(|(id, p)| (&**id, p)).collect();
        for (i, (_, pair)) in pairs.iter().enumerate() {
            let tool = pair.tool.as_deref().unwrap_or("?");
            let total = tools.entry(tool).or_insert_with(|| ToolTotal {
                tool: tool.to_owned(),
                calls: 0,
                input_bytes: 0,
                output_bytes: 0,
            });
            total.calls += u64::from(pair.tool.is_some());
            total.input_bytes += pair.input;
            if let Some((bytes, place)) = pair.result {
                total.output_bytes += bytes;
                outputs.push((bytes, place, i));
            }
        }
        outputs.sort_by_key(|(bytes, place, _)| (std::cmp::Reverse(*bytes), place.offset));
        outputs.truncate(self.largest);
        let ids: Vec<&str> = pairs.iter().map(|(id, _)| *id).collect();
        let keys = call_keys(&ids);
        let session = self.scan.session.as_deref().map(session_part);
        self.scan.largest = outputs
            .into_iter()
            .map(|(bytes, place, i)| Output {
                address: session
                    .as_ref()
                    .zip(keys[i].as_ref())
                    .map(|(session, key)| format!("{session}:{key}")),
                tool: pairs[i].1.tool.as_deref().unwrap_or("?").to_owned(),
                bytes,
                line: place.line.unwrap_or(0),
                offset: place.offset,
            })
            .collect();
        self.scan.tools = tools.into_values().collect();
        self.scan
            .tools
            .sort_by(|a, b| (b.output_bytes, &a.tool).cmp(&(a.output_bytes, &b.tool)));
    }
}
