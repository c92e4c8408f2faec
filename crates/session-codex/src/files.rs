//! Opening what lies in a client's home. Somebody else may have put anything there: a pipe would
//! hang a reader, and a link leads where nobody said.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file for reading. Anything else is an error, and never waited for.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().read(true), path, OFlags::NONBLOCK)
}

/// As [`open`], with these options, and without following a link in the last place.
pub(crate) fn open_own(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    open_with(options, path, OFlags::NONBLOCK | OFlags::NOFOLLOW)
}

fn open_with(options: &mut OpenOptions, path: &Path, flags: OFlags) -> io::Result<File> {
    let file = options
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "not a regular file",
    ))
}

/// The text of a regular file of at most `most` bytes.
pub(crate) fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.take(most).read_to_string(&mut text)?;
    Ok(text)
}
