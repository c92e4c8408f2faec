//! Codex's threads: read them, make the next request shorter by one append under the client's own
//! writer lease, undo that, and read folded outputs back.
//!
//! A thread is a rollout, a JSONL file under `<home>/sessions`. A store in SQLite says which
//! rollout is the active one, and a second one holds a projection of it for display. The rollout is
//! the truth: this crate appends to it and never changes a byte that is there; the client brings
//! the projection forward by itself when it resumes the thread, and [`CommitOptions::project`] does
//! so at once. Stores are otherwise opened for reading only. Nothing here knows the environment, a
//! clock or a model: paths, time and randomness are passed in.
//!
//! What is read: threads of Codex 0.144.6 to 0.171.0, paginated and legacy, forked, reverted,
//! archived and compressed. What is written: the turn that those versions read as a compaction.
//! The client's makers promise nothing about these files, so every write checks the version of what
//! it finds and refuses what was not measured.
//!
//! ```
//! use ctxfold_session_codex::{CommitOptions, Stamp, Store, Thread, unfold};
//! use ctxfold_transcript::{Action, Mode, Plan};
//!
//! # let home = tempfile::tempdir()?;
//! # let folder = home.path().join("sessions/2026/12/01");
//! # std::fs::create_dir_all(&folder)?;
//! # let id = "01a22eb2-072d-76f3-a271-8cf7acd69144";
//! # let path = folder.join(format!("rollout-2026-12-01T00-00-00-{id}.jsonl"));
//! # let output = "x".repeat(4000);
//! # let lines = [
//! #     format!(r#""type":"session_meta","payload":{{"id":"{id}","cwd":"/home/dev","cli_version":"0.171.0","history_mode":"paginated"}}"#),
//! #     r#""type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"list it"}]}"#.to_owned(),
//! #     r#""type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"ls\"}","call_id":"call_GQ7wK2"}"#.to_owned(),
//! #     format!(r#""type":"response_item","payload":{{"type":"function_call_output","call_id":"call_GQ7wK2","output":"{output}"}}"#),
//! #     r#""type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}"#.to_owned(),
//! # ];
//! # let text: String = lines.iter().enumerate().map(|(n, line)| format!("{{\"timestamp\":\"2026-12-01T00:00:00.000Z\",\"ordinal\":{n},{line}}}\n")).collect();
//! # std::fs::write(&path, text)?;
//! # let home = home.path();
//! let store = Store::new(home);
//! let thread = Thread::open(&store, &path)?;
//! let transcript = thread.transcript();
//! let mut plan = Plan::keep_all(transcript, Mode::Mask);
//! plan.decide_call(0, Action::Truncate("[folded: exec_command(ls)]".into()), "size");
//! plan.measure(transcript);
//!
//! let stamp = Stamp::new(1_796_083_200_000, || 0x1234_5678);
//! let receipt = thread.prepare(&plan, &stamp)?.commit(&CommitOptions::default())?;
//! assert!(receipt.len_after > receipt.len_before);
//!
//! let address = transcript.calls[0].address.parse()?;
//! assert_eq!(unfold(&store, &path, &address)?.text(), output);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod activity;
mod address;
mod append;
mod begin;
mod chain;
mod effects;
mod error;
mod files;
mod findings;
mod health;
mod item;
mod lease;
mod lines;
mod live;
mod prefix;
mod project;
mod scan;
mod stamp;
mod store;
mod tail;
mod thread;
mod transcript;
mod undo;
mod unfold;
mod wire;
mod write;

pub use address::Address;
pub use append::{Append, CommitOptions, FileStamp, Receipt};
#[doc(hidden)]
pub use effects::{Effects, Step};
pub use error::{Error, ErrorKind};
pub use findings::{Finding, Severity, codes, explain};
pub use health::{check, glance};
pub use scan::{Large, Scan, Sum, scan};
pub use stamp::Stamp;
pub use store::{Entry, Query, Store};
pub use tail::{Counted, Pause, counted, fill, pause};
pub use thread::{Meta, Thread};
pub use unfold::{Folded, FoldedPart, folded, unfold};
