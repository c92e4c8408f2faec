//! Tells a coding agent that its context runs low, while there is still room to act.
//!
//! The monitor is a state machine over readings of the context's fill. [`step`] is pure: state,
//! event, configuration and time in, state and effects out. What surrounds it:
//!
//! - [`Reading`]: how full the context is, from the session's own file (by the caller) or from the
//!   bridge file that a statusline writes;
//! - [`Scale`]: what the fill is measured against, that is the point where the client compacts by
//!   itself;
//! - [`Store`]: the state between two calls, in files that survive hostile neighbours, one lock a
//!   session;
//! - [`judge`]: why a warning comes or does not, for people who ask;
//! - [`advise`]: the words for the agent; [`statusline`]: the line for the user.
//!
//! ```
//! use ctxfold_monitor::{Config, Effect, Event, Happening, Level, Reading, Source, State, step};
//!
//! let now = 1_800_000_000;
//! let event = Event {
//!     happening: Happening::ToolCall,
//!     reading: Some(Reading::of_tokens(130_000, 167_000, Source::Transcript, Some(now))),
//! };
//! let (state, effects) = step(State::default(), &event, &Config::default(), now);
//! assert!(matches!(effects[..], [Effect::Warn(Level::Critical, _), Effect::Record(_)]));
//!
//! // The next call is too soon for another warning.
//! let (_, effects) = step(state, &event, &Config::default(), now + 1);
//! assert!(effects.is_empty());
//! ```

mod advice;
mod bridge;
mod config;
mod error;
mod files;
mod git;
mod id;
mod json;
mod machine;
mod meter;
mod reading;
mod scale;
mod settings;
pub mod statusline;
mod store;
mod verdict;
mod wire;

pub use advice::{Wording, advise};
pub use bridge::Bridge;
pub use config::{Config, Planning, Show, Thresholds, find_planning, is_tracked};
pub use error::{Error, ErrorKind};
pub use files::{exists, read_settings};
pub use git::{branch, branch_with_marks};
pub use id::SessionId;
pub use machine::{Breadcrumb, Cycle, Effect, Event, Happening, Level, State, Warned, step};
pub use meter::Fill;
pub use reading::{Reading, Source, Tokens, Unusable};
pub use scale::{Limit, Overrides, Scale, Why, assumed_window};
pub use settings::Settings;
pub use store::{Places, Store};
pub use verdict::{Verdict, judge};
