//! A whole file, read forwards once: what fills it, and how its context grew.
//!
//! Nothing is built from a row; its parts are looked at where they lie. The file is cut into
//! chunks at line ends, several threads look at them ([`part`]), and what they saw is put together
//! in order ([`whole`]).

mod part;
mod whole;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{channel, sync_channel};

use memchr::memrchr;

use self::part::{Part, look};
use self::whole::Whole;
use crate::probe::Probe;
use crate::{Error, Finding};

/// Bytes of a chunk, unless a line is longer.
const CHUNK: usize = 2 << 20;
/// More threads than this wait for the disk.
const THREADS: usize = 4;
/// Findings of one code that are kept from the lines; a destroyed file has no end of them.
pub(crate) const MOST_FINDINGS: usize = 200;

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
