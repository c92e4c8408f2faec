//! The journal: one line for each thing that ctxfold did or was asked to remember, appended to
//! `journal.jsonl` in the state folder. A write is announced before it is done and completed
//! afterwards, so that a crash between the two can be told from a write that never began.
//!
//! Format version 1, see docs/formats/journal.md. Readers pass over lines they do not understand;
//! a line of a newer version makes writers refuse.

use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use ctxfold_transcript::{Measure, Plan};
use serde::{Deserialize, Serialize};

use crate::error::{CommandError, CommandResult};
use crate::files;

/// The version that is written.
pub(crate) const VERSION: u32 = 1;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Line {
    /// Format version.
    pub(crate) v: u32,
    /// Milliseconds since the Unix epoch.
    pub(crate) at_ms: i64,
    /// What it says.
    #[serde(flatten)]
    pub(crate) entry: Entry,
}

/// What a line says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Entry {
    /// A write is about to be done.
    Begin(Begin),
    /// The write was done.
    Done(Done),
    /// The write failed or was refused; the file is as it was.
    Failed { id: String, error: String },
    /// The monitor saw a context that is nearly full.
    Critical(Critical),
    /// Whatever a later version writes.
    #[serde(other)]
    Unknown,
}

/// A write that is about to be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Begin {
    /// Identifier of the write; its other lines carry it too.
    pub(crate) id: String,
    /// `claude` or `codex`.
    pub(crate) agent: String,
    /// Identifier of the session or thread.
    pub(crate) session: String,
    /// The file.
    pub(crate) path: PathBuf,
    /// `summary`, `prune`, `mask` or `undo`.
    pub(crate) mode: String,
    /// Length of the file before, in bytes.
    pub(crate) len_before: u64,
    /// Bytes to be appended.
    pub(crate) bytes: u64,
    /// SHA-256 of them.
    #[serde(default)]
    pub(crate) sha256: String,
}

/// A write that was done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Done {
    /// Identifier of the write.
    pub(crate) id: String,
    /// Length of the file afterwards, in bytes.
    pub(crate) len_after: u64,
    /// SHA-256 of what was appended.
    pub(crate) sha256: String,
    /// The conversation before.
    pub(crate) before: Size,
    /// The conversation afterwards.
    pub(crate) after: Size,
    /// Outputs that were cut or folded.
    #[serde(default)]
    pub(crate) truncated: usize,
    /// Calls that were dropped.
    #[serde(default)]
    pub(crate) dropped: usize,
    /// The model that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// Tokens sent to the model.
    #[serde(default)]
    pub(crate) model_in: u64,
    /// Tokens that the model answered.
    #[serde(default)]
    pub(crate) model_out: u64,
}

/// A conversation's size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Size {
    /// Messages.
    pub(crate) messages: usize,
    /// Bytes in the request.
    pub(crate) bytes: u64,
    /// Tokens, estimated.
    pub(crate) tokens: u64,
}

/// A context that was nearly full.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Critical {
    /// Identifier of the session.
    pub(crate) session: String,
    /// Percent used.
    pub(crate) used_percent: f64,
    /// The folder in which the agent worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cwd: Option<PathBuf>,
}

impl From<Measure> for Size {
    fn from(m: Measure) -> Size {
        Size {
            messages: m.messages,
            bytes: m.bytes,
            tokens: m.tokens,
        }
    }
}

impl Done {
    /// The completion of a write that made nothing smaller.
    pub(crate) fn unmeasured(id: &str, len_after: u64, sha256: &str, size: Size) -> Done {
        Done {
            id: id.to_owned(),
            len_after,
            sha256: sha256.to_owned(),
            before: size,
            after: size,
            truncated: 0,
            dropped: 0,
            model: None,
            model_in: 0,
            model_out: 0,
        }
    }

    /// The completion of a write that carried a plan out.
    pub(crate) fn of(id: &str, len_after: u64, sha256: &str, plan: &Plan) -> Done {
        let (truncated, dropped) = plan.counts();
        Done {
            id: id.to_owned(),
            len_after,
            sha256: sha256.to_owned(),
            before: plan.before.into(),
            after: plan.after.into(),
            truncated,
            dropped,
            model: None,
            model_in: 0,
            model_out: 0,
        }
    }
}

/// SHA-256 in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    use std::fmt::Write as _;
    let mut out = String::new();
    for byte in sha2::Sha256::digest(bytes) {
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// What became of a write that was announced and never completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The file ends before it; nothing of it was written.
    NotWritten,
    /// It stands in the file, whole.
    Written,
    /// Something else stands in its place: a part of it, or rows of the client.
    Other,
    /// The file is gone.
    Gone,
}

impl Begin {
    /// Looks at the file.
    pub(crate) fn fate(&self) -> Fate {
        let read = || -> std::io::Result<Option<Vec<u8>>> {
            let mut file = files::options().read(true).open(&self.path)?;
            if file.metadata()?.len() <= self.len_before {
                return Ok(None);
            }
            file.seek(SeekFrom::Start(self.len_before))?;
            let mut bytes = Vec::new();
            file.take(self.bytes).read_to_end(&mut bytes)?;
            Ok(Some(bytes))
        };
        match read() {
            Err(_) => Fate::Gone,
            Ok(None) => Fate::NotWritten,
            Ok(Some(bytes)) if sha256(&bytes) == self.sha256 => Fate::Written,
            Ok(Some(_)) => Fate::Other,
        }
    }
}

/// The journal of one state folder.
#[derive(Debug, Clone)]
pub(crate) struct Journal {
    path: PathBuf,
}

impl Journal {
    /// The journal of a state folder, which need not exist.
    pub(crate) fn new(state_dir: &Path) -> Journal {
        Journal {
            path: state_dir.join("journal.jsonl"),
        }
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line, under a lock, behind a line end.
    pub(crate) fn append(&self, at_ms: i64, entry: Entry) -> CommandResult {
        files::private_dir(self.path.parent().unwrap_or(Path::new(".")))?;
        let io = |e: std::io::Error| CommandError::io("write the journal", &self.path, &e);
        let mut file = files::options()
            .read(true)
            .append(true)
            .create(true)
            .open(&self.path)
            .map_err(io)?;
        #[cfg(unix)]
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)
            .map_err(|e| io(e.into()))?;
        let len = file.metadata().map_err(io)?.len();
        let mut text = String::new();
        if len > 0 {
            file.seek(SeekFrom::Start(len - 1)).map_err(io)?;
            let mut last = [0];
            file.read_exact(&mut last).map_err(io)?;
            if last != *b"\n" {
                text.push('\n');
            }
        }
        let line = Line {
            v: VERSION,
            at_ms,
            entry,
        };
        let json = serde_json::to_string(&line)
            .map_err(|e| CommandError::input(format!("failed to write the journal: {e}")))?;
        text.push_str(&json);
        text.push('\n');
        file.write_all(text.as_bytes()).map_err(io)?;
        file.sync_data().map_err(io)
    }

    /// Refuses when a newer version wrote here: its lines may mean what this one does not know.
    pub(crate) fn check_version(&self) -> CommandResult {
        #[derive(Deserialize)]
        struct Version {
            v: u32,
        }
        let mut newer = None;
        self.each_line(|text| {
            if let Ok(line) = serde_json::from_str::<Version>(text)
                && line.v > VERSION
            {
                newer = Some(line.v);
            }
        })?;
        match newer {
            Some(v) => Err(CommandError::refused(format!(
                "the journal {} was written by a newer ctxfold (format {v}, this one writes {VERSION})",
                self.path.display()
            ))
            .hint("update ctxfold")),
            None => Ok(()),
        }
    }

    /// The lines that can be read, oldest first.
    pub(crate) fn read(&self) -> CommandResult<Vec<Line>> {
        let mut lines = Vec::new();
        self.each_line(|text| {
            if let Ok(line) = serde_json::from_str::<Line>(text) {
                lines.push(line);
            }
        })?;
        Ok(lines)
    }

    fn each_line(&self, mut visit: impl FnMut(&str)) -> CommandResult {
        let file = match files::options().read(true).open(&self.path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(CommandError::io("read the journal", &self.path, &e)),
        };
        let mut reader = BufReader::new(file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader
                .read_until(b'\n', &mut line)
                .map_err(|e| CommandError::io("read the journal", &self.path, &e))?;
            if read == 0 {
                return Ok(());
            }
            visit(String::from_utf8_lossy(&line).trim());
        }
    }

    /// Writes that were announced and neither done nor failed: a crash came between.
    pub(crate) fn unfinished(&self) -> CommandResult<Vec<Begin>> {
        let mut open: Vec<Begin> = Vec::new();
        for line in self.read()? {
            match line.entry {
                Entry::Begin(begin) => open.push(begin),
                Entry::Done(Done { id, .. }) | Entry::Failed { id, .. } => {
                    open.retain(|b| b.id != id);
                }
                Entry::Critical(_) | Entry::Unknown => {}
            }
        }
        Ok(open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(id: &str) -> Entry {
        Entry::Begin(Begin {
            id: id.into(),
            agent: "claude".into(),
            session: "s".into(),
            path: "/home/dev/s.jsonl".into(),
            mode: "mask".into(),
            len_before: 10,
            bytes: 5,
            sha256: String::new(),
        })
    }

    #[test]
    fn a_write_without_an_end_is_unfinished() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::new(dir.path());
        assert_eq!(journal.unfinished().unwrap(), []);
        journal.append(1, begin("a")).unwrap();
        journal.append(2, begin("b")).unwrap();
        journal
            .append(
                3,
                Entry::Failed {
                    id: "a".into(),
                    error: "full".into(),
                },
            )
            .unwrap();
        let open = journal.unfinished().unwrap();
        assert_eq!(
            open.iter().map(|b| b.id.as_str()).collect::<Vec<_>>(),
            ["b"]
        );
    }

    #[test]
    fn the_file_tells_what_became_of_an_unfinished_write() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let Entry::Begin(mut begin) = begin("a") else {
            unreachable!()
        };
        begin.path = path.clone();
        begin.sha256 = sha256(b"abcde");
        assert_eq!(begin.fate(), Fate::Gone);
        for (text, fate) in [
            ("0123456789", Fate::NotWritten),
            ("0123456789abcde", Fate::Written),
            ("0123456789abcde and more", Fate::Written),
            ("0123456789abc", Fate::Other),
            ("0123456789other rows", Fate::Other),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(begin.fate(), fate, "{text}");
        }
    }

    #[test]
    fn a_torn_line_harms_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::new(dir.path());
        journal.append(1, begin("a")).unwrap();
        let mut text = std::fs::read_to_string(journal.path()).unwrap();
        text.push_str(r#"{"v":1,"at_ms":2,"kind":"beg"#);
        std::fs::write(journal.path(), text).unwrap();
        journal.append(3, begin("b")).unwrap();
        assert_eq!(journal.read().unwrap().len(), 2);
    }

    #[test]
    fn readers_pass_over_a_newer_line_and_writers_refuse() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::new(dir.path());
        journal.append(1, begin("a")).unwrap();
        assert!(journal.check_version().is_ok());
        let mut text = std::fs::read_to_string(journal.path()).unwrap();
        text.push_str("{\"v\":2,\"at_ms\":2,\"kind\":\"telepathy\",\"x\":1}\n");
        std::fs::write(journal.path(), text).unwrap();
        assert_eq!(journal.read().unwrap().len(), 2);
        assert!(journal.check_version().is_err());
    }

    #[cfg(unix)]
    #[test]
    fn others_can_neither_read_the_journal_nor_plant_a_link() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let journal = Journal::new(&state);
        journal.append(1, begin("a")).unwrap();
        let mode = |p: &Path| std::fs::metadata(p).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&state), mode(journal.path())), (0o700, 0o600));

        let target = dir.path().join("target");
        std::fs::write(&target, "").unwrap();
        std::fs::remove_file(journal.path()).unwrap();
        std::os::unix::fs::symlink(&target, journal.path()).unwrap();
        assert!(journal.append(2, begin("b")).is_err());
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "");
    }
}
