//! The hosts, that is the programs that run hooks.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorKind};

/// A program that runs hooks, and so the dialect that it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Host {
    /// Claude Code. Its output schema ignores unknown keys inside `hookSpecificOutput`.
    Claude,
    /// Codex. Its output schemas are closed: one unknown key and the whole output is dropped.
    Codex,
    /// Gemini CLI. Event names of its own; any key is let through.
    Gemini,
    /// Antigravity, which takes Gemini's envelope. Its table is small and was not checked
    /// against the program.
    Antigravity,
}

impl Host {
    /// All hosts, in the order of their declaration.
    pub const ALL: [Self; 4] = [Self::Claude, Self::Codex, Self::Gemini, Self::Antigravity];

    /// The name used on command lines: `claude`, `codex`, `gemini` or `antigravity`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Antigravity => "antigravity",
        }
    }

    /// The host whose event this name is, for a hook that was not told: Gemini CLI for the names
    /// that only it uses, else Claude Code.
    ///
    /// Codex uses Claude Code's names and cannot be told apart by them, and what Codex refuses
    /// Claude Code may accept. A hook that runs on Codex must be told so.
    pub fn guess(event: &str) -> Self {
        match event {
            "BeforeAgent"
            | "AfterAgent"
            | "BeforeModel"
            | "AfterModel"
            | "BeforeTool"
            | "AfterTool"
            | "BeforeToolSelection"
            | "PreCompress" => Self::Gemini,
            _ => Self::Claude,
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Host {
    type Err = Error;

    /// The host of a name as [`Host::name`] gives it.
    ///
    /// # Errors
    /// [`ErrorKind::NotAccepted`] for any other name.
    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|h| h.name() == name)
            .ok_or_else(|| {
                let known = Self::ALL.map(Self::name).join(", ");
                Error::new(
                    ErrorKind::NotAccepted,
                    format!("unknown host {name:?}, known are {known}"),
                )
            })
    }
}
