//! The crate's one effect: reading the host's document in bounded time.
//!
//! A blocking read cannot be given a deadline, so a thread reads and the caller waits for it. On
//! a time-out the thread is left behind; a hook exits right after.

use std::io::{ErrorKind as Io, Read};
use std::sync::mpsc;
use std::time::Duration;

use crate::error::{Error, ErrorKind};
use crate::sieve::{Sieve, Status};

/// Where the input ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Until {
    /// At the end of the JSON document, even when the pipe stays open.
    #[default]
    DocumentEnd,
    /// At the end of the input. A pipe that stays open is a time-out.
    EndOfInput,
}

/// Bounds of one reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many bytes are kept. Larger top-level members are replaced by `null`.
    pub bytes: usize,
    /// How long to wait for the whole document.
    pub time: Duration,
    /// Where the input ends.
    pub until: Until,
}

impl Default for Limits {
    /// 1 MiB, 5 seconds, the end of the document.
    fn default() -> Self {
        Self {
            bytes: 1 << 20,
            time: Duration::from_secs(5),
            until: Until::DocumentEnd,
        }
    }
}

/// A document as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The text of one JSON object.
    pub text: String,
    /// How many top-level members were too large and are `null` in `text`.
    pub dropped: usize,
}

/// Reads one JSON object from a stream.
///
/// # Errors
/// [`ErrorKind::TimedOut`], [`ErrorKind::Io`], or what [`Sieve`] refuses.
pub fn read_document(
    reader: impl Read + Send + 'static,
    limits: Limits,
) -> Result<Document, Error> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let spawned = std::thread::Builder::new()
        .name("hook-input".into())
        .spawn(move || {
            // The receiver may have given up: then nobody wants the answer.
            let _ = sender.send(read_document_blocking(reader, limits));
        });
    spawned.map_err(|e| Error::io("failed to start the reading thread", e))?;
    receiver.recv_timeout(limits.time).unwrap_or_else(|_| {
        Err(Error::new(
            ErrorKind::TimedOut,
            "the input did not end in time",
        ))
    })
}

/// The same on the caller's own thread, for a program that has a deadline of its own:
/// [`Limits::time`] is not looked at.
///
/// # Errors
/// [`ErrorKind::Io`], or what [`Sieve`] refuses.
pub fn read_document_blocking(mut reader: impl Read, limits: Limits) -> Result<Document, Error> {
    let mut sieve = Sieve::new(limits.bytes);
    let mut piece = vec![0; 64 << 10];
    loop {
        match reader.read(&mut piece) {
            Ok(0) => break,
            Ok(n) => {
                let status = sieve.push(&piece[..n])?;
                if status == Status::Complete && limits.until == Until::DocumentEnd {
                    break;
                }
            }
            Err(e) if e.kind() == Io::Interrupted => {}
            Err(e) => return Err(Error::io("failed to read the input", e)),
        }
    }
    let dropped = sieve.dropped();
    Ok(Document {
        text: sieve.finish()?,
        dropped,
    })
}
