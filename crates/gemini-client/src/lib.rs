//! A small client for the Gemini API that is careful with keys, money and time.
//!
//! - **Several keys, for fail-over.** A key that is refused or out of quota is followed by the next
//!   one, each once a request; the last good one is where the next request begins. Quotas are the
//!   project's, not the key's: more keys are no way to add them up.
//! - **Keys do not leak.** They travel in the `x-goog-api-key` header alone, print as `key 3`, and
//!   are removed from every text that a server sends, together with whatever else looks like a key.
//!   Redirects are not followed.
//! - **Bounded retries, one deadline.** An overloaded model is asked again after 1, 2 and 3 s; a
//!   server's hint is obeyed when it fits; nothing begins past the deadline. What costs tokens
//!   twice without need is not repeated.
//! - **Only whole answers.** Cut, blocked, empty, malformed: a typed [`Error`] each, never half a
//!   text.
//! - **Nothing hidden.** No environment, no files, no logs, no telemetry, no background work.
//!   Dropping a call's future ends it.
//!
//! ```no_run
//! use std::time::Duration;
//! use ctxfold_gemini_client::{Client, ErrorKind, Keys, Progress, Request};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let keys = Keys::parse("first-key,second-key")?;
//! let client = Client::builder(keys).deadline(Duration::from_secs(120)).build()?;
//!
//! let request = Request {
//!     system: Some("Answer in one sentence.".to_owned()),
//!     max_output_tokens: Some(2_000),
//!     ..Request::new("gemini-3.5-flash-lite", "Why is the sky blue?")
//! };
//! let mut show = |progress: Progress| eprint!("\r{} bytes", progress.text_bytes);
//! match client.generate_stream(&request, &mut show).await {
//!     Ok(answer) => println!("{} ({} tokens)", answer.text, answer.usage.total),
//!     Err(error) if error.kind() == ErrorKind::Truncated => eprintln!("ask for less: {error}"),
//!     Err(error) => eprintln!("{error}"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What is tried again
//!
//! | failure | what follows |
//! |---|---|
//! | 429, 401, 403, 400 with an invalid or expired key | the next key at once |
//! | 429 on the last key, with a delay that fits the deadline, no daily quota | that delay, same key |
//! | 503 | 1, 2, 3 s, same key, at most four attempts |
//! | 408, 500, 502, a connection that failed or broke | 1 s, same key, once |
//! | 504, a stream that falls silent | nothing: it would take as long again, at the same price |
//! | 400 that names the thinking setting | once without it, remembered for the model |
//! | everything else, unusable answers included | nothing |
//!
//! A 500 is often over in a second. But it is also the reply to an input that the model cannot
//! digest, so one repetition is worth its cost and four are not.
//!
//! # Trust
//!
//! TLS is rustls with ring. Certificates are judged by the machine's own trust store, or by
//! Mozilla's roots where a machine has none.

mod answer;
mod builder;
mod client;
mod clock;
mod course;
mod error;
mod exchange;
mod failure;
mod key;
mod model;
mod progress;
mod request;
mod retry;
mod ring;
mod scrub;
mod sse;
mod thinking;
mod transport;
mod wire;

#[cfg(test)]
mod tests;

pub use answer::{Answer, FinishReason, Usage};
pub use builder::ClientBuilder;
pub use client::Client;
pub use error::{Error, ErrorKind};
pub use key::{Key, Keys};
pub use model::Model;
pub use progress::{Phase, Progress};
pub use request::{Content, Level, Property, Request, Role, Schema, Thinking};

/// The README's example is compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
