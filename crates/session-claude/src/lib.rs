//! Claude Code's session files: read them, choose the branch that the client would take, make the
//! next request shorter by one append, undo that, and read folded parts back.
//!
//! A session is a JSONL file under `<config>/projects/<folder>/<session id>.jsonl`. This crate
//! reads its *live* part (backwards from the end to the last compaction and what that preserves),
//! gives it as a [`Transcript`](ctxfold_transcript::Transcript), and carries out any
//! [`Plan`](ctxfold_transcript::Plan) by appending rows. It never changes a byte that is there.
//! It knows no environment, home folder, clock or model: paths, time and randomness are passed in.
//!
//! ```
//! use ctxfold_session_claude::{CommitOptions, Options, Session, Stamp};
//! use ctxfold_transcript::{Action, Mode, Plan};
//!
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("3f2a91c0-0000-4000-8000-000000000001.jsonl");
//! # let output = "x".repeat(4000);
//! # std::fs::write(&path, format!(concat!(
//! #   r#"{{"parentUuid":null,"type":"user","uuid":"a1","timestamp":"2026-12-01T00:00:00.000Z","sessionId":"3f2a91c0-0000-4000-8000-000000000001","message":{{"role":"user","content":"list it"}}}}"#, "\n",
//! #   r#"{{"parentUuid":"a1","type":"assistant","uuid":"a2","timestamp":"2026-12-01T00:00:01.000Z","message":{{"id":"m1","role":"assistant","content":[{{"type":"tool_use","id":"toolu_01GQ7wK2","name":"Bash","input":{{"command":"ls"}}}}]}}}}"#, "\n",
//! #   r#"{{"parentUuid":"a2","type":"user","uuid":"a3","timestamp":"2026-12-01T00:00:02.000Z","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_01GQ7wK2","content":"{}"}}]}}}}"#, "\n",
//! #   r#"{{"parentUuid":"a3","type":"assistant","uuid":"a4","timestamp":"2026-12-01T00:00:03.000Z","message":{{"id":"m2","role":"assistant","content":[{{"type":"text","text":"done"}}]}}}}"#, "\n"), output))?;
//! let session = Session::open(&path, &Options::default())?;
//! let transcript = session.transcript();
//! let mut plan = Plan::keep_all(transcript, Mode::Mask);
//! plan.decide_call(0, Action::Truncate("[folded: Bash(ls)]".into()), "size");
//! plan.measure(transcript);
//!
//! let stamp = Stamp::new(1_796_083_200_000, || 0x1234_5678);
//! let receipt = session.prepare(&plan, &stamp)?.commit(&CommitOptions::default())?;
//! assert!(receipt.len_after > receipt.len_before);
//!
//! let address = transcript.calls[0].address.parse()?;
//! let folded = ctxfold_session_claude::unfold(&path, &address)?;
//! assert_eq!(folded.text(), output);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod append;
mod backward;
mod blocks;
mod chain;
mod check;
mod edit;
mod error;
mod explain;
mod findings;
mod folded;
mod glance;
mod image;
mod json;
mod keys;
mod lines;
mod live;
mod probe;
mod repair;
mod row;
mod scan;
mod secret;
mod session;
mod stamp;
mod store;
mod tail;
mod tools;
mod transcript;
mod undo;
mod unfold;
mod wire;
mod words;
mod write;

pub use append::{Append, CommitOptions, Receipt};
pub use check::{Report, check};
pub use error::{Error, ErrorKind};
pub use explain::explain;
pub use findings::{Code, Finding, Severity};
pub use folded::folded;
pub use lines::{Piece, PieceKind, split};
pub use scan::{Compaction, KindTotal, Output, Scan, ScanOptions, ToolTotal, Turn, scan};
pub use session::{FileStamp, Meta, Options, Session};
pub use stamp::Stamp;
pub use store::{
    AgentFile, Entry, Filter, Listed, LiveSession, Presence, Processes, Store, SystemProcesses,
    project_folder,
};
pub use tail::{Tail, fill, read_tail};
pub use tools::{Ended, activities, label};
pub use unfold::{Address, Folded, FoldedPart, unfold};
pub use words::{ResultWords, is_client_text, is_local_output, said_in_result, typed_command};
