//! Reading and writing single files among neighbours that may be hostile. All system calls on
//! files go through here; which files there are is known by `store.rs`.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FileType, Mode, OFlags, Stat};

use crate::error::Error;

/// The largest settings file that is read, in bytes.
const SETTINGS_LIMIT: u64 = 1 << 20;

/// Reads a small file of our own: a regular file, no link, ours, at most `limit` bytes.
/// `None` for anything else.
pub(crate) fn read_own(path: &Path, limit: u64) -> Option<String> {
    let file = open(path, OFlags::NOFOLLOW)?;
    let stat = rustix::fs::fstat(&file).ok()?;
    is_ours(&stat).then_some(())?;
    read_regular(file, &stat, limit)
}

/// Reads a settings file, which may be a link and may belong to somebody else, but must be a
/// regular file of at most 1 MiB. A byte-order mark is dropped, broken UTF-8 replaced.
///
/// `None` when there is no such file. Never blocks, whatever lies at the path.
pub fn read_settings(path: &Path) -> Option<String> {
    let file = open(path, OFlags::empty())?;
    let stat = rustix::fs::fstat(&file).ok()?;
    let text = read_regular(file, &stat, SETTINGS_LIMIT)?;
    Some(
        text.strip_prefix('\u{feff}')
            .map(str::to_owned)
            .unwrap_or(text),
    )
}

/// Whether a path leads to something; a link that leads nowhere does not.
pub fn exists(path: &Path) -> bool {
    rustix::fs::stat(path).is_ok()
}

/// The metadata at a path itself; a link is not followed.
pub(crate) fn lstat(path: &Path) -> Option<Stat> {
    rustix::fs::lstat(path).ok()
}

pub(crate) fn is_ours(stat: &Stat) -> bool {
    stat.st_uid == rustix::process::geteuid().as_raw()
}

pub(crate) fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Opens for reading without waiting: a FIFO without a writer would block for ever.
fn open(path: &Path, extra: OFlags) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | extra;
    rustix::fs::open(path, flags, Mode::empty())
        .ok()
        .map(File::from)
}

fn read_regular(file: File, stat: &Stat, limit: u64) -> Option<String> {
    let size = u64::try_from(stat.st_size).ok()?;
    if file_type(stat) != FileType::RegularFile || size > limit {
        return None;
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).ok()?);
    // One byte more than allowed shows a file that grew meanwhile.
    file.take(limit + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= limit).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// Writes a file so that readers see the old text or the new one, never a part. The file is ours,
/// 0600, and replaces whatever lay at the path unless that is a folder.
pub(crate) fn write_atomic(path: &Path, text: &str) -> Result<(), Error> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let temporary = path.with_file_name(format!("{name}.{}-{count}.tmp", std::process::id()));
    let written = write_new(&temporary, text)
        .and_then(|()| put(&temporary, path).map_err(|e| Error::io("failed to replace", path, e)));
    if written.is_err() {
        // It may never have been there; the error that counts is the first one.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// Puts a file in the place of another. A plain rename over a file makes some file systems write it
/// out at once, which takes longer than everything else that a hook does; a swap does not.
#[cfg(target_os = "linux")]
fn put(new: &Path, path: &Path) -> std::io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let is_file = |stat: Stat| file_type(&stat) == FileType::RegularFile;
    if lstat(path).is_some_and(is_file)
        && renameat_with(CWD, new, CWD, path, RenameFlags::EXCHANGE).is_ok()
    {
        return std::fs::remove_file(new);
    }
    std::fs::rename(new, path)
}

#[cfg(not(target_os = "linux"))]
fn put(new: &Path, path: &Path) -> std::io::Result<()> {
    std::fs::rename(new, path)
}

fn write_new(path: &Path, text: &str) -> Result<(), Error> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|e| Error::io("failed to create", path, e))?;
    File::from(file)
        .write_all(text.as_bytes())
        .map_err(|e| Error::io("failed to write", path, e))
}

/// Deletes what lies at a path; a link is deleted itself. Nothing there is fine.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("failed to delete", path, e))
        }
        _ => Ok(()),
    }
}
