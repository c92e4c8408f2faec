//! Rows that are ready to be appended, and the append itself: the one place that writes to a
//! session file.

use std::fmt::Write as _;
use std::fs::{File, FileTimes, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::lines::{PieceKind, split};
use crate::row::{Line, understand};
use crate::session::FileStamp;
use crate::write::BoundaryRow;
use crate::{Error, ErrorKind};

/// Rows that are ready to be appended to the file they were made for.
#[derive(Debug)]
pub struct Append {
    pub(crate) path: PathBuf,
    pub(crate) expected: FileStamp,
    pub(crate) bytes: Vec<u8>,
    pub(crate) line_end: &'static str,
    pub(crate) boundary: BoundaryRow,
    /// Identifier of the second boundary, should one be needed.
    pub(crate) spare: String,
}

/// How an append is done.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CommitOptions {
    /// Whether the file's time of change is set back afterwards, so that `claude --continue` does
    /// not take this session for the newest one.
    pub keep_mtime: bool,
}

impl CommitOptions {
    /// The same options with [`CommitOptions::keep_mtime`] set.
    #[must_use]
    pub fn keep_mtime(mut self, keep: bool) -> CommitOptions {
        self.keep_mtime = keep;
        self
    }
}

/// What an append did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receipt {
    /// Length of the file before, in bytes.
    pub len_before: u64,
    /// Length of the file after, in bytes.
    pub len_after: u64,
    /// Offset at which our bytes begin.
    pub offset: u64,
    /// SHA-256 of the appended bytes, in hexadecimal; the repair boundary is not in it.
    pub sha256: String,
    /// Whether rows arrived while we wrote, so that a second boundary had to follow.
    pub repaired: bool,
}

/// What an append needs of a file.
trait Target: Write {
    fn len(&mut self) -> io::Result<u64>;
    fn cut(&mut self, len: u64) -> io::Result<()>;
}

impl Target for File {
    fn len(&mut self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }
}

/// Why an append failed, and whether the file is as it was.
#[derive(Debug)]
struct Torn {
    cause: io::Error,
    /// Bytes of ours that could not be taken back.
    left: u64,
}

/// Appends in one write. When only a part fits, that part is taken back; when the file grew
/// meanwhile, it stays and its line is ended, so that it harms no other row.
fn append_once(target: &mut impl Target, bytes: &[u8]) -> Result<(), Torn> {
    let before = target.len().map_err(|cause| Torn { cause, left: 0 })?;
    let written = loop {
        match target.write(bytes) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => break other,
        }
    };
    let (done, cause) = match written {
        Ok(n) if n == bytes.len() => return Ok(()),
        Ok(n) => (n as u64, io::Error::from(io::ErrorKind::StorageFull)),
        Err(cause) => (0, cause),
    };
    if done == 0 {
        return Err(Torn { cause, left: 0 });
    }
    let alone = target.len().is_ok_and(|len| len == before + done);
    if alone && target.cut(before).is_ok() {
        return Err(Torn { cause, left: 0 });
    }
    let _ = target.write(b"\n");
    Err(Torn { cause, left: done })
}

impl Append {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes that will be appended.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The file as it must still be when the append is done.
    pub fn expected(&self) -> FileStamp {
        self.expected
    }

    /// Appends, after checking that the file is as it was when read.
    ///
    /// # Errors
    /// Refuses when the file changed or may not be written. When the disk is full the file is as
    /// it was before, or the error says what is left and where.
    pub fn commit(self, options: &CommitOptions) -> Result<Receipt, Error> {
        let path = &self.path;
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .open(path)
            .map_err(|e| unwritable(path, e))?;
        self.check(&file)?;
        append_once(&mut file, &self.bytes).map_err(|torn| {
            let what = match torn.left {
                0 => "failed to append to the session, which is as it was before".to_owned(),
                n => format!("failed to append to the session; {n} bytes of an unfinished row are left near byte {}, which readers pass over", self.expected.len),
            };
            Error::io(path, what, torn.cause)
        })?;
        let fail = |what: &'static str| move |e| Error::io(path, what, e);
        let end = file
            .stream_position()
            .map_err(fail("failed to look at the session after the append"))?;
        let offset = end.saturating_sub(self.bytes.len() as u64);
        file.sync_data()
            .map_err(fail("failed to flush the session after the append"))?;
        let repaired = self.repair(&mut file, offset).map_err(fail(
            "appended, but failed to include the rows that arrived meanwhile",
        ))?;
        if let (true, Some(modified)) = (options.keep_mtime, self.expected.modified) {
            // Only the order of `--continue` depends on it; the append is done.
            let _ = file.set_times(FileTimes::new().set_modified(modified));
        }
        let len_after = file
            .metadata()
            .map_err(fail("failed to look at the session after the append"))?
            .len();
        Ok(Receipt {
            len_before: self.expected.len,
            len_after,
            offset,
            sha256: sha256(&self.bytes),
            repaired,
        })
    }

    fn check(&self, file: &File) -> Result<(), Error> {
        let path = &self.path;
        let now =
            FileStamp::of(file).map_err(|e| Error::io(path, "failed to look at the session", e))?;
        if now != self.expected {
            let message = "the session changed since it was read";
            return Err(Error::new(ErrorKind::Changed, message).at(path));
        }
        Ok(())
    }

    /// Rows that arrived between the check and the append are in no list, so the client would drop
    /// them: a second boundary includes them.
    fn repair(&self, file: &mut File, offset: u64) -> io::Result<bool> {
        if offset <= self.expected.len {
            return Ok(false);
        }
        let mut between = Vec::new();
        file.seek(SeekFrom::Start(self.expected.len))?;
        Read::by_ref(file)
            .take(offset - self.expected.len)
            .read_to_end(&mut between)?;
        let Some(boundary) = self.with_rows(&between) else {
            return Ok(false);
        };
        let line = format!("{}{}", boundary.print(), self.line_end);
        append_once(file, line.as_bytes()).map_err(|torn| torn.cause)?;
        file.sync_data()?;
        Ok(true)
    }

    /// The boundary again, with the rows of `between` at the end of its list.
    fn with_rows(&self, between: &[u8]) -> Option<BoundaryRow> {
        let mut boundary = self.boundary.clone();
        let (pieces, _) = split(between, self.expected.len, None);
        let known: std::collections::HashSet<String> = boundary.list.iter().cloned().collect();
        let mut arrived = Vec::new();
        for piece in pieces.iter().filter(|p| p.kind == PieceKind::Row) {
            let text = String::from_utf8_lossy(piece.bytes);
            if let Some(Line::Row(row)) = understand(&text, piece.offset) {
                let uuid = row.uuid.to_string();
                if !row.sidechain && !known.contains(&uuid) && !arrived.contains(&uuid) {
                    arrived.push(uuid);
                }
            }
        }
        let newest = arrived.last()?.clone();
        if boundary.anchor != boundary.uuid {
            // The summary is a row like any other to a boundary that is anchored at itself.
            boundary.list.insert(0, boundary.anchor.clone());
        }
        boundary.list.extend(arrived);
        boundary.leaf = newest;
        boundary.uuid.clone_from(&self.spare);
        boundary.anchor.clone_from(&self.spare);
        Some(boundary)
    }

    /// Writes a copy of the file with the rows appended, and leaves the file itself alone.
    ///
    /// # Errors
    /// When `out` exists already or cannot be written, or when the file changed.
    pub fn write_copy(&self, out: &Path) -> Result<Receipt, Error> {
        let path = &self.path;
        let mut file =
            File::open(path).map_err(|e| Error::io(path, "failed to open the session", e))?;
        self.check(&file)?;
        let mut create = OpenOptions::new();
        create.write(true).create_new(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            create.mode(0o600);
        }
        let mut copy = create
            .open(out)
            .map_err(|e| Error::io(out, "failed to create the copy", e))?;
        let written = io::copy(
            &mut Read::by_ref(&mut file).take(self.expected.len),
            &mut copy,
        )
        .and_then(|n| copy.write_all(&self.bytes).map(|()| n))
        .and_then(|n| copy.sync_all().map(|()| n));
        let copied = match written {
            Ok(copied) => copied,
            Err(e) => {
                // Half a copy is worth nothing, and it is ours.
                let _ = std::fs::remove_file(out);
                return Err(Error::io(out, "failed to write the copy", e));
            }
        };
        Ok(Receipt {
            len_before: copied,
            len_after: copied + self.bytes.len() as u64,
            offset: copied,
            sha256: sha256(&self.bytes),
            repaired: false,
        })
    }
}

fn unwritable(path: &Path, source: io::Error) -> Error {
    let error = Error::io(path, "failed to open the session for appending", source);
    if error.kind() == ErrorKind::Io {
        return error;
    }
    error.with_kind(ErrorKind::Unwritable)
}

fn sha256(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file on a disk with room for `room` bytes, to which another writer may append.
    struct Disk {
        data: Vec<u8>,
        room: usize,
        other: Option<&'static [u8]>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let n = bytes.len().min(self.room);
            if n == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.data.extend_from_slice(&bytes[..n]);
            self.room -= n;
            if let Some(other) = self.other.take() {
                self.data.extend_from_slice(other);
                self.room += 1;
            }
            Ok(n)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Target for Disk {
        fn len(&mut self) -> io::Result<u64> {
            Ok(self.data.len() as u64)
        }

        fn cut(&mut self, len: u64) -> io::Result<()> {
            self.data.truncate(len as usize);
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_leaves_the_file_as_it_was() {
        for room in 0..6 {
            let mut disk = Disk {
                data: b"old\n".to_vec(),
                room,
                other: None,
            };
            let torn = append_once(&mut disk, b"row\nrow\n").unwrap_err();
            assert_eq!(torn.cause.kind(), io::ErrorKind::StorageFull);
            assert_eq!((torn.left, &disk.data[..]), (0, &b"old\n"[..]));
        }
    }

    #[test]
    fn a_part_that_cannot_be_taken_back_is_ended_and_told() {
        let mut disk = Disk {
            data: b"old\n".to_vec(),
            room: 5,
            other: Some(b"{\"theirs\":1}\n"),
        };
        let torn = append_once(&mut disk, b"row\nrow\n").unwrap_err();
        assert_eq!(torn.left, 5);
        assert_eq!(disk.data, b"old\nrow\nr{\"theirs\":1}\n\n");
    }

    /// Rows that a live client appended between our check and our write are in the list of a second
    /// boundary.
    #[test]
    fn rows_that_arrive_meanwhile_are_included() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir
            .path()
            .join("11111111-0000-4000-8000-000000000001.jsonl");
        let row = |uuid: &str, parent: &str, kind: &str, content: &str| {
            format!(
                r#"{{"parentUuid":{parent},"type":"{kind}","uuid":"{uuid}","timestamp":"2026-12-01T00:00:00.000Z","message":{{"id":"m-{uuid}","role":"{kind}","content":{content}}}}}"#
            ) + "\n"
        };
        let output = format!(
            r#"[{{"type":"tool_result","tool_use_id":"toolu_1","content":"{}"}}]"#,
            "x".repeat(5000)
        );
        let call = r#"[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"ls"}}]"#;
        let file = row("a", "null", "user", "\"hi\"")
            + &row("b", "\"a\"", "assistant", call)
            + &row("c", "\"b\"", "user", &output)
            + &row(
                "d",
                "\"c\"",
                "assistant",
                r#"[{"type":"text","text":"done"}]"#,
            );
        std::fs::write(&path, &file).unwrap();
        let session = crate::Session::open(&path, &crate::Options::default()).unwrap();
        let mut plan = ctxfold_transcript::Plan::keep_all(
            session.transcript(),
            ctxfold_transcript::Mode::Mask,
        );
        plan.decide_call(
            0,
            ctxfold_transcript::Action::Truncate("cut".into()),
            "test",
        );
        let next = std::cell::Cell::new(0);
        let stamp = crate::Stamp::new(1_796_100_000_000, move || {
            next.set(next.get() + 1);
            next.get()
        });
        let append = session.prepare(&plan, &stamp).unwrap();
        let theirs = row("e", "\"d\"", "user", "\"and now?\"");
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .open(&path)
            .unwrap();
        file.write_all(theirs.as_bytes()).unwrap();
        append_once(&mut file, append.bytes()).unwrap();
        let texts = |path: &Path| {
            let session = crate::Session::open(path, &crate::Options::default()).unwrap();
            let texts: Vec<String> = session
                .transcript()
                .messages
                .iter()
                .map(ctxfold_transcript::Message::text)
                .collect();
            texts
        };
        assert!(
            !texts(&path).contains(&"and now?".to_owned()),
            "the trap is gone"
        );
        let offset = append.expected.len + theirs.len() as u64;
        assert!(append.repair(&mut file, offset).unwrap());
        assert_eq!(texts(&path), ["hi", "", "", "done", "and now?"]);
        assert!(!append.repair(&mut file, append.expected.len).unwrap());
    }

    #[test]
    fn a_hash_is_lower_case_hexadecimal() {
        assert_eq!(
            sha256(b""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
