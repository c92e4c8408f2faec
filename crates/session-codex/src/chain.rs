//! Rollout files and how they hang together: a fork or a reverted thread begins at a byte of
//! another rollout.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::lines::{self, At, Extent};
use crate::wire::{HistoryBase, Line, SessionMeta};
use crate::{Error, ErrorKind, Finding, files};

/// The longest first line that is read.
const FIRST_LINE: u64 = 64 * 1024 * 1024;
/// Rollouts that may hang on one another.
const DEEPEST: usize = 64;

/// One rollout file, opened for reading.
#[derive(Debug)]
pub(crate) struct Rollout {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    pub(crate) len: u64,
    pub(crate) meta: SessionMeta,
    /// Whether it is compressed; `len` is the compressed length then.
    pub(crate) compressed: bool,
}

impl Rollout {
    /// Opens a rollout and reads its first line.
    pub(crate) fn open(path: &Path) -> Result<Rollout, Error> {
        let io = |e: io::Error| match e.kind() {
            io::ErrorKind::InvalidInput => {
                Error::new(ErrorKind::NotAThread, "not a regular file").at(path)
            }
            _ => Error::io(path, "failed to read the rollout", e),
        };
        let file = files::open(path).map_err(io)?;
        let len = file.metadata().map_err(io)?.len();
        let compressed = path.extension().is_some_and(|e| e == "zst");
        let mut first = Vec::new();
        let plain = At { file: &file, at: 0 };
        let mut take: Box<dyn BufRead> = if compressed {
            let decoder = zstd::Decoder::new(plain).map_err(io)?;
            Box::new(BufReader::new(decoder.take(FIRST_LINE)))
        } else {
            Box::new(BufReader::new(plain.take(FIRST_LINE)))
        };
        take.read_until(b'\n', &mut first).map_err(io)?;
        drop(take);
        let first = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&first);
        let meta = Line::parse(first)
            .filter(|line| line.kind == "session_meta")
            .and_then(|line| line.payload::<SessionMeta>())
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::NotAThread,
                    "the first line is no session_meta of Codex",
                )
                .at(path)
            })?;
        Ok(Rollout {
            path: path.to_owned(),
            file,
            len,
            meta,
            compressed,
        })
    }

    /// Whether every line carries an ordinal.
    pub(crate) fn is_paginated(&self) -> bool {
        self.meta.history_mode.as_deref() == Some("paginated")
    }

    /// Calls `visit` with each line from `start` to `end` until it returns `false`. A compressed
    /// rollout is unpacked and gone through as a whole, whatever the two are.
    pub(crate) fn lines(
        &self,
        start: u64,
        end: u64,
        visit: &mut dyn FnMut(Extent, &[u8]) -> bool,
    ) -> Result<(), Error> {
        if !self.compressed {
            return lines::forward(&self.file, start, end, visit)
                .map_err(|e| Error::io(&self.path, "failed to read the rollout", e));
        }
        let packed = At {
            file: &self.file,
            at: 0,
        };
        zstd::Decoder::new(packed)
            .and_then(|decoder| lines::stream(decoder, 0, visit))
            .map_err(|e| Error::io(&self.path, "failed to unpack the rollout", e))
    }

    /// What is wrong with the thread's identifier, if anything is: a lock is named by it.
    pub(crate) fn id_problem(&self) -> Option<String> {
        let id = &self.meta.id;
        if !is_uuid(id) {
            return Some(format!("the first line's identifier {id:?} is no UUID"));
        }
        match id_in_name(&self.path) {
            Some(named) if named.eq_ignore_ascii_case(id) => None,
            _ => Some(format!(
                "the first line names the thread {id}, the file's name does not"
            )),
        }
    }

    /// The key of this file's rows in the projection: the rollout id, which is the thread's id
    /// but for files that a revert made.
    pub(crate) fn projection_key(&self) -> String {
        let name = file_name(&self.path);
        let stem = name.split(".jsonl").next().unwrap_or_default();
        match stem.rsplit_once('_') {
            Some((_, rollout)) if is_uuid(rollout) => rollout.to_owned(),
            _ => self.meta.id.clone(),
        }
    }
}

/// The rollout that the last one of a chain hangs on. `Ok(None)` where it hangs on none; the error
/// is a finding.
pub(crate) fn parent(home: &Path, chain: &[Rollout]) -> Result<Option<Rollout>, Finding> {
    let Some(base) = chain.last().and_then(|r| r.meta.history_base.as_ref()) else {
        return Ok(None);
    };
    let why = |text: String| Err(Finding::new("base-missing", text));
    let id = &base.thread_id;
    if !is_uuid(id) {
        return why(format!(
            "the thread hangs on {id:?}, which names no rollout"
        ));
    }
    if chain.len() > DEEPEST {
        return why(format!("the thread hangs on more than {DEEPEST} rollouts"));
    }
    let Some(path) = find_rollout(home, id) else {
        return why(format!("the rollout {id} is missing"));
    };
    if chain.iter().any(|rollout| is_same(&rollout.path, &path)) {
        return why(format!("the rollout {id} hangs on itself"));
    }
    let parent = match Rollout::open(&path) {
        Ok(parent) => parent,
        Err(error) => return why(format!("the rollout {id} cannot be read: {error}")),
    };
    match end_problem(&parent, base) {
        Some(text) => why(text),
        None => Ok(Some(parent)),
    }
}

/// What is wrong with the place at which a base ends. In a compressed rollout it is looked at when
/// its lines are read.
fn end_problem(parent: &Rollout, base: &HistoryBase) -> Option<String> {
    let (id, end) = (&base.thread_id, base.end_byte_offset);
    if parent.compressed || end == 0 {
        return None;
    }
    if parent.len < end {
        return Some(format!("the rollout {id} is shorter than {end} bytes"));
    }
    let mut last = [0];
    let read = parent.file.read_exact_at(&mut last, end - 1);
    (read.is_err() || last != *b"\n").then(|| mid_line(id, end))
}

/// Says that a base ends inside a line.
pub(crate) fn mid_line(id: &str, end: u64) -> String {
    format!("byte {end} of the rollout {id}, where the thread begins, is inside a line")
}

fn is_same(a: &Path, b: &Path) -> bool {
    a == b || matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}

/// Finds the rollout file with this rollout id, plain before compressed.
pub(crate) fn find_rollout(home: &Path, id: &str) -> Option<PathBuf> {
    let ends = [
        format!("-{id}.jsonl"),
        format!("_{id}.jsonl"),
        format!("-{id}.jsonl.zst"),
        format!("_{id}.jsonl.zst"),
    ];
    let mut found = Vec::new();
    for path in rollouts(home) {
        let name = file_name(&path);
        if let Some(rank) = ends.iter().position(|end| name.ends_with(end.as_str())) {
            found.push((rank, path));
        }
    }
    found.sort();
    found.into_iter().next().map(|(_, path)| path)
}

/// Every rollout of a home, archived and compressed ones too, in no order.
pub(crate) fn rollouts(home: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["sessions", "archived_sessions"] {
        collect(&home.join(folder), 0, &mut found);
    }
    found
}

fn collect(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        let name = file_name(&path);
        let stem = name.strip_suffix(".zst").unwrap_or(&name);
        let is_rollout = stem.starts_with("rollout-") && stem.strip_suffix(".jsonl").is_some();
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if is_rollout && kind.is_file() {
            found.push(path);
        } else if depth < 4 && kind.is_dir() {
            collect(&path, depth + 1, found);
        }
    }
}

pub(crate) fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The thread's id in a rollout's file name.
pub(crate) fn id_in_name(path: &Path) -> Option<String> {
    let name = file_name(path);
    let stem = name.split(".jsonl").next()?;
    let stem = stem.split('_').next()?;
    let id = stem.get(stem.len().checked_sub(36)?..)?;
    is_uuid(id).then(|| id.to_owned())
}

pub(crate) fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(i, b)| match i {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}
