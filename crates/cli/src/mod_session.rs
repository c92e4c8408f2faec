//! The third reader and writer of a [`Transcript`](ctxfold_transcript::Transcript): a conversation
//! as a Claude Code mod hands it over, and the messages that it takes back. The engine is the same
//! as for files.

mod halves;
mod read;
mod wire;
mod write;

pub(crate) use halves::well_formed;
pub(crate) use read::{Handed, read};
pub(crate) use wire::Reply;
pub(crate) use write::write;

#[cfg(test)]
mod tests;
