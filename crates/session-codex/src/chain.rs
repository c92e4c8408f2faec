//! Rollout files and how they hang together: a fork or a reverted thread begins at a byte of
//! another rollout.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::wire::{Line, SessionMeta};
use crate::{Error, ErrorKind};

/// The longest first line that is read.
const FIRST_LINE: u64 = 64 * 1024 * 1024;

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
        let io = |e| Error::io(path, "failed to read the rollout", e);
        let file = File::open(path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        if !metadata.is_file() {
            return Err(Error::new(ErrorKind::NotAThread, "not a regular file").at(path));
        }
        let compressed = path.extension().is_some_and(|e| e == "zst");
        let mut first = Vec::new();
        let plain = File::open(path).map_err(io)?;
        let mut take: Box<dyn BufRead> = if compressed {
            let decoder = zstd::Decoder::new(plain).map_err(io)?;
            Box::new(BufReader::new(decoder.take(FIRST_LINE)))
        } else {
            Box::new(BufReader::new(plain.take(FIRST_LINE)))
        };
        take.read_until(b'\n', &mut first).map_err(io)?;
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
            len: metadata.len(),
            meta,
            compressed,
        })
    }

    /// Whether every line carries an ordinal.
    pub(crate) fn is_paginated(&self) -> bool {
        self.meta.history_mode.as_deref() == Some("paginated")
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
        if is_rollout {
            found.push(path);
        } else if depth < 4 && entry.file_type().is_ok_and(|t| t.is_dir()) {
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
