//! A turn that is ready to be appended, and the append itself: lease, comparison, one write, and
//! the projection where it was asked for.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use crate::effects::{Effects, Real, Step};
use crate::lease::{self, Lease};
use crate::live::Live;
use crate::project::Projection;
use crate::write::{self, Turn, hex};
use crate::{Error, ErrorKind, Stamp, files, undo};

/// A thread without leases is left alone for this long after its last change.
const RECENT: Duration = Duration::from_mins(1);

/// The state of a file when it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    /// Length in bytes.
    pub len: u64,
    /// Time of the last change.
    pub modified: Option<SystemTime>,
}

impl FileStamp {
    pub(crate) fn of(path: &Path) -> Result<FileStamp, Error> {
        let metadata = std::fs::metadata(path)
            .map_err(|e| Error::io(path, "failed to look at the rollout", e))?;
        Ok(FileStamp {
            len: metadata.len(),
            modified: metadata.modified().ok(),
        })
    }
}

/// A synthetic turn that is ready to be appended to the rollout it was made for.
#[derive(Debug)]
pub struct Append {
    pub(crate) home: PathBuf,
    pub(crate) path: PathBuf,
    pub(crate) thread: String,
    pub(crate) expected: FileStamp,
    pub(crate) turn: Turn,
    /// Whether clients without leases may have the thread.
    pub(crate) leaseless: bool,
    pub(crate) now_ms: i64,
    /// For a turn that takes this one back.
    pub(crate) spare: Stamp,
    pub(crate) projection: Projection,
}

/// How an append is done.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CommitOptions {
    /// Whether the file's time of change is set back afterwards.
    pub keep_mtime: bool,
    /// Whether the store's projection is brought forward too, for readers that look at the store
    /// without resuming the thread. A legacy thread has no projection, so nothing is done for it.
    pub project: bool,
}

impl CommitOptions {
    /// Sets [`CommitOptions::keep_mtime`].
    #[must_use]
    pub fn keep_mtime(mut self, keep: bool) -> CommitOptions {
        self.keep_mtime = keep;
        self
    }

    /// Sets [`CommitOptions::project`].
    #[must_use]
    pub fn project(mut self, project: bool) -> CommitOptions {
        self.project = project;
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
    /// SHA-256 of the appended bytes, in hexadecimal.
    pub sha256: String,
    /// Whether the projection was brought forward.
    pub projected: bool,
}

impl Append {
    /// The rollout.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes that will be appended.
    pub fn bytes(&self) -> &[u8] {
        &self.turn.bytes
    }

    /// The file as it must still be when the append is done.
    pub fn expected(&self) -> FileStamp {
        self.expected
    }

    /// Appends under the client's writer lease, after checking that the file is as it was when
    /// read.
    ///
    /// # Errors
    /// Refuses when a client holds the thread, when the file changed or may not be written, and
    /// when the projection was asked for and cannot be brought forward. The rollout is as it was
    /// before then. [`ErrorKind::Overtaken`] is no refusal: somebody wrote at the same moment, and
    /// the message says what stands in the file.
    pub fn commit(self, options: &CommitOptions) -> Result<Receipt, Error> {
        self.commit_with(options, &mut Real)
    }

    /// As [`Append::commit`], with the effects in the caller's hands.
    ///
    /// # Errors
    /// As [`Append::commit`], and when the effects stop it.
    #[doc(hidden)]
    pub fn commit_with(
        self,
        options: &CommitOptions,
        effects: &mut dyn Effects,
    ) -> Result<Receipt, Error> {
        step(effects, Step::Lease)?;
        let lease = Lease::take(&self.home, &self.thread)?;
        let result = self.under_lease(options, effects);
        if matches!(&result, Err(e) if is_stop(e)) {
            drop(lease);
            return result;
        }
        step(effects, Step::Release)?;
        lease.release();
        result
    }

    fn under_lease(
        &self,
        options: &CommitOptions,
        effects: &mut dyn Effects,
    ) -> Result<Receipt, Error> {
        step(effects, Step::Compare)?;
        self.compare()?;
        let mut open = OpenOptions::new();
        let mut file = files::open_own(open.read(true).append(true), &self.path)
            .map_err(|e| Error::io(&self.path, "failed to open the rollout for writing", e))?;
        let layout = self.turn.layout.as_ref().filter(|_| options.project);
        let len_after = self.expected.len + self.turn.bytes.len() as u64;
        step(effects, Step::Begin)?;
        let mut store = match layout {
            Some(layout) => Some((self.projection.open()?, layout)),
            None => None,
        };
        let transaction = match &mut store {
            Some((store, layout)) => {
                let next = layout.first_ordinal;
                Some((
                    self.projection.begin(store, self.expected.len, next)?,
                    layout,
                ))
            }
            None => None,
        };
        if let Some((transaction, layout)) = &transaction {
            step(effects, Step::Project)?;
            let start = self.expected.len + self.turn.lead;
            self.projection
                .insert(transaction, layout, start, len_after)?;
        }
        step(effects, Step::Append)?;
        self.append(&mut file, &self.turn.bytes, effects)?;
        step(effects, Step::Sync)?;
        if let Err(source) = file.sync_data() {
            let error = Error::io(&self.path, "failed to bring the lines to the disk", source);
            return Err(self.take_back(&mut file, &self.turn.bytes, error));
        }
        if self.is_overtaken(&file)? {
            drop(transaction);
            return Err(self.give_back(&mut file, effects));
        }
        // A client without leases is known by the time of its last change: ours is none.
        if (options.keep_mtime || self.leaseless)
            && let Some(modified) = self.expected.modified
        {
            // The time is a convenience; the append stands without it.
            drop(file.set_modified(modified));
        }
        let mut projected = false;
        if let Some((transaction, _)) = transaction {
            step(effects, Step::Commit)?;
            // The append stands; without the commit Codex brings the projection forward itself.
            projected = transaction.commit().is_ok();
        }
        Ok(Receipt {
            len_before: self.expected.len,
            len_after,
            offset: self.expected.len,
            sha256: hex(&Sha256::digest(&self.turn.bytes)),
            projected,
        })
    }

    fn compare(&self) -> Result<(), Error> {
        if self.leaseless {
            refuse_leaseless(&self.path, self.expected, self.now_ms)?;
        }
        if FileStamp::of(&self.path)? != self.expected {
            return Err(
                Error::new(ErrorKind::Changed, "the rollout changed since it was read")
                    .at(&self.path),
            );
        }
        Ok(())
    }

    fn append(
        &self,
        file: &mut File,
        bytes: &[u8],
        effects: &mut dyn Effects,
    ) -> Result<(), Error> {
        match effects.append(file, bytes) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => Err(stopped(Step::Append)),
            Err(source) => {
                let error = Error::io(&self.path, "failed to append to the rollout", source);
                Err(self.take_back(file, bytes, error))
            }
        }
    }

    /// Cuts off what was written of an append that failed, where nothing else stands there.
    fn take_back(&self, file: &mut File, bytes: &[u8], error: Error) -> Error {
        let len_before = self.expected.len;
        let left = |text: String| Error::new(ErrorKind::Overtaken, text).at(&self.path);
        match behind(file, len_before) {
            Ok(found) if bytes.starts_with(&found) => match file.set_len(len_before) {
                Ok(()) => error,
                Err(e) => left(format!(
                    "{error}; what was appended behind byte {len_before} could not be taken back: {e}"
                )),
            },
            Ok(_) => left(format!(
                "{error}; somebody else wrote behind byte {len_before} meanwhile, so everything                  there was left as it is"
            )),
            Err(e) => left(format!(
                "{error}; what stands behind byte {len_before} cannot be read, so it was left: {e}"
            )),
        }
    }

    /// Whether lines of somebody else came between the comparison and ours: the client would pass
    /// over them, because they stand before our history.
    fn is_overtaken(&self, file: &File) -> Result<bool, Error> {
        let found = behind(file, self.expected.len).map_err(|e| {
            let text = format!("the turn was appended, but cannot be read again: {e}");
            Error::new(ErrorKind::Overtaken, text).at(&self.path)
        })?;
        Ok(!found.starts_with(&self.turn.bytes))
    }

    /// Takes the turn back by another one, which holds the whole conversation with the lines that
    /// came between. Returns what to say.
    fn give_back(&self, file: &mut File, effects: &mut dyn Effects) -> Error {
        let text = "a client wrote to the thread at the same moment";
        let error = |more: String| {
            Error::new(ErrorKind::Overtaken, format!("{text}; {more}")).at(&self.path)
        };
        let hidden = |e: Error| {
            error(format!(
                "what it wrote behind byte {} is not part of the next request until you run \
                 `ctxfold undo`: {e}",
                self.expected.len
            ))
        };
        let bytes = match self.turn_back() {
            Ok(bytes) => bytes,
            Err(e) => return hidden(e),
        };
        match self.append(file, &bytes, effects) {
            Ok(()) => error(
                "the compaction was taken back, and the next request holds everything".to_owned(),
            ),
            Err(e) => hidden(e),
        }
    }

    fn turn_back(&self) -> Result<Vec<u8>, Error> {
        let live = Live::read(&self.home, &self.path)?;
        let ours = live.begin.as_ref().filter(|begin| begin.place.depth == 0);
        let ours = ours.filter(|begin| begin.place.start >= self.expected.len);
        let ours = ours.ok_or_else(|| {
            Error::new(ErrorKind::Changed, "the turn is not found again").at(&self.path)
        })?;
        let former = undo::without(&self.home, &live, ours)?;
        Ok(write::turn(&live, &former.carried(), &self.spare).bytes)
    }
}

/// What stands in a file behind a byte.
fn behind(file: &File, from: u64) -> std::io::Result<Vec<u8>> {
    let len = file.metadata()?.len();
    let mut bytes = vec![0; usize::try_from(len.saturating_sub(from)).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut bytes, from)?;
    Ok(bytes)
}

/// Refuses where a client without leases may have the rollout: somebody has it open for writing,
/// or changed it a moment ago. The system does not show every process.
pub(crate) fn refuse_leaseless(path: &Path, stamp: FileStamp, now_ms: i64) -> Result<(), Error> {
    let refuse = |text: &str| Err(Error::new(ErrorKind::Live, text).at(path));
    if lease::has_writer(path) == Some(true) {
        return refuse("a client without leases has this thread open");
    }
    let now = SystemTime::UNIX_EPOCH + Duration::from_millis(now_ms.max(0).cast_unsigned());
    // A time that lies ahead says nothing.
    let age = stamp.modified.map(|at| now.duration_since(at));
    if age.is_none_or(|age| age.is_ok_and(|age| age < RECENT)) {
        return refuse(
            "a client without leases may have this thread open: it changed a moment ago",
        );
    }
    Ok(())
}

fn step(effects: &mut dyn Effects, step: Step) -> Result<(), Error> {
    if effects.before(step) {
        Ok(())
    } else {
        Err(stopped(step))
    }
}

const STOPPED: &str = "stopped before the step";

fn stopped(step: Step) -> Error {
    Error::new(ErrorKind::Io, format!("{STOPPED} {step:?}"))
}

fn is_stop(error: &Error) -> bool {
    error.kind() == ErrorKind::Io && error.to_string().starts_with(STOPPED)
}
