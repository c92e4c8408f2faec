//! The steps of an append, so that a test can stop between any two of them.

use std::fs::File;
use std::io::{self, Write};

/// A step of an append, in order. Before it, nothing of it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Step {
    /// The writer lease is taken.
    Lease,
    /// The file is compared with what was read.
    Compare,
    /// The store's transaction begins.
    Begin,
    /// The projection's rows are put into the transaction.
    Project,
    /// The lines are appended.
    Append,
    /// The lines are brought to the disk.
    Sync,
    /// The store's transaction is committed.
    Commit,
    /// The writer lease is given back.
    Release,
}

impl Step {
    /// Every step, in order.
    pub const ALL: [Step; 8] = [
        Step::Lease,
        Step::Compare,
        Step::Begin,
        Step::Project,
        Step::Append,
        Step::Sync,
        Step::Commit,
        Step::Release,
    ];
}

/// What an append does to the world beside opening files.
pub trait Effects {
    /// Called before each step. `false` ends the append there as a crash would: nothing is tidied
    /// up.
    fn before(&mut self, step: Step) -> bool;

    /// Appends the bytes.
    ///
    /// # Errors
    /// What the system says.
    fn append(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()>;
}

/// The world as it is.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Real;

impl Effects for Real {
    fn before(&mut self, _step: Step) -> bool {
        true
    }

    fn append(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }
}
