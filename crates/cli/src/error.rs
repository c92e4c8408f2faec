//! The one error of the command line: what, where, why, what to do next, and the exit code.

use std::fmt;
use std::path::Path;

use crate::exit;

/// An error as the user sees it.
#[derive(Debug)]
pub(crate) struct CommandError {
    code: u8,
    message: String,
    hints: Vec<String>,
    /// Whether text went to a model before.
    sent: bool,
}

/// What an interruption says.
const INTERRUPTED: &str = "interrupted; nothing was written";

/// What a command returns.
pub(crate) type CommandResult<T = ()> = Result<T, CommandError>;

impl CommandError {
    fn new(code: u8, message: impl Into<String>) -> CommandError {
        CommandError {
            code,
            message: message.into(),
            hints: Vec::new(),
            sent: false,
        }
    }

    /// The same, after text went to a model.
    #[must_use]
    pub(crate) fn after_sending(self) -> CommandError {
        CommandError { sent: true, ..self }
    }

    /// Whether text went to a model before it.
    pub(crate) fn was_sent(&self) -> bool {
        self.sent
    }

    /// The user or the input is at fault.
    pub(crate) fn input(message: impl Into<String>) -> CommandError {
        CommandError::new(exit::INPUT, message)
    }

    /// The command line is wrong in a way that the parser cannot see.
    pub(crate) fn usage(message: impl Into<String>) -> CommandError {
        CommandError::new(exit::USAGE, message)
    }

    /// Refused; nothing was changed.
    pub(crate) fn refused(message: impl Into<String>) -> CommandError {
        CommandError::new(exit::REFUSED, message)
    }

    /// The model or the network failed; nothing was written.
    pub(crate) fn model(message: impl Into<String>) -> CommandError {
        CommandError::new(exit::MODEL, message)
    }

    /// Cut short by the user; nothing was written.
    pub(crate) fn interrupted() -> CommandError {
        CommandError::model(INTERRUPTED)
    }

    /// Whether the user cut it short.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.message == INTERRUPTED
    }

    /// A system error over a path.
    pub(crate) fn io(doing: &str, path: &Path, source: &std::io::Error) -> CommandError {
        CommandError::input(format!("failed to {doing} {}: {source}", path.display()))
    }

    /// The same as a refusal: it came before anything was changed.
    #[must_use]
    pub(crate) fn into_refusal(self) -> CommandError {
        CommandError {
            code: exit::REFUSED,
            ..self
        }
    }

    /// Adds what to do next.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> CommandError {
        self.hints.push(hint.into());
        self
    }

    /// Message and hints in one line.
    pub(crate) fn line(&self) -> String {
        let hints = self.hints.iter().map(|hint| format!("; {hint}"));
        self.message.clone() + &hints.collect::<String>()
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for hint in &self.hints {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

/// A message with its chain of causes, each once.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut out = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !out.contains(&text) {
            out.push_str(": ");
            out.push_str(&text);
        }
        next = cause.source();
    }
    out
}

impl From<ctxfold_session_claude::Error> for CommandError {
    fn from(error: ctxfold_session_claude::Error) -> CommandError {
        use ctxfold_session_claude::ErrorKind as K;
        let code = if error.is_refusal() {
            exit::REFUSED
        } else {
            exit::INPUT
        };
        let new = CommandError::new(code, chain(&error));
        match error.kind() {
            K::Changed => new.hint("the session is in use: run the command again when it rests"),
            K::DiskFull => new.hint("make room on the disk; the session is as it was"),
            K::NotFound | K::Ambiguous => {
                new.hint("`ctxfold list --all` shows the sessions there are")
            }
            K::BrokenPairs => new.hint("`ctxfold check` shows what is damaged"),
            _ => new,
        }
    }
}

impl From<ctxfold_session_codex::Error> for CommandError {
    fn from(error: ctxfold_session_codex::Error) -> CommandError {
        let code = if error.is_refusal() {
            exit::REFUSED
        } else {
            exit::INPUT
        };
        let new = CommandError::new(code, chain(&error));
        match error.hint() {
            Some(hint) => new.hint(hint),
            None => new,
        }
    }
}

impl From<ctxfold_compactor::Refusal> for CommandError {
    fn from(refusal: ctxfold_compactor::Refusal) -> CommandError {
        CommandError::refused(refusal.to_string())
    }
}

impl From<ctxfold_gemini_client::Error> for CommandError {
    fn from(error: ctxfold_gemini_client::Error) -> CommandError {
        use ctxfold_gemini_client::ErrorKind as K;
        match error.kind() {
            K::NoKey => CommandError::input("no Gemini API key")
                .hint("set CTXFOLD_GEMINI_API_KEY, or `ctxfold config keys add` to keep one"),
            K::Config => CommandError::input(error.to_string()),
            _ => CommandError::model(error.to_string()),
        }
    }
}

/// Data that could not be written: a closed pipe is no error of anybody.
impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> CommandError {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return CommandError::new(exit::DONE, "");
        }
        CommandError::input(format!("failed to write the output: {error}"))
    }
}

impl CommandError {
    /// Whether there is nothing to say: the reader of a pipe went away.
    pub(crate) fn is_silent(&self) -> bool {
        self.code == exit::DONE && self.message.is_empty()
    }
}
