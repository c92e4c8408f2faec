//! What was found wrong, with stable codes and what to do about each.

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Something is damaged, the conversation is not.
    Warning,
    /// The conversation or what the client shows of it is damaged.
    Error,
}

/// Something found wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Stable code; [`explain`] says what it means.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// Line in the file, from 1, where it is known.
    pub line: Option<u64>,
    /// Offset in bytes.
    pub offset: Option<u64>,
    /// What was found.
    pub message: String,
}

impl Finding {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Finding {
        let severity = CODES
            .iter()
            .find(|(name, ..)| *name == code)
            .map_or(Severity::Warning, |(_, severity, _)| *severity);
        Finding {
            code,
            severity,
            line: None,
            offset: None,
            message: message.into(),
        }
    }

    pub(crate) fn at(mut self, offset: u64) -> Finding {
        self.offset = Some(offset);
        self
    }

    pub(crate) fn on_line(mut self, line: u64) -> Finding {
        self.line = Some(line);
        self
    }
}

/// What a code means and what to do, or `None` for a code that this crate does not give.
pub fn explain(code: &str) -> Option<&'static str> {
    CODES
        .iter()
        .find(|(name, ..)| *name == code)
        .map(|(.., text)| *text)
}

/// Every code that this crate gives.
pub fn codes() -> impl Iterator<Item = &'static str> {
    CODES.iter().map(|(name, ..)| *name)
}

const REBUILD: &str = "Close Codex and move thread_history_1.sqlite with its -wal and -shm away: Codex rebuilds it from the rollouts when it resumes.";

const CODES: &[(&str, Severity, &str)] = &[
    (
        "torn-tail",
        Severity::Warning,
        "The last line has no line break and is no whole JSON: a write was cut short. Codex ignores it. The next append begins on a new line.",
    ),
    (
        "bad-line",
        Severity::Warning,
        "A line is no JSON object with a type. Codex skips it, and so does every reader here.",
    ),
    (
        "line-too-long",
        Severity::Error,
        "A line is longer than 256 MB, more than is held of one. It is passed over, and where it is part of the conversation nothing is written.",
    ),
    (
        "thread-mismatch",
        Severity::Error,
        "The file's name, its first line and the store do not name the same thread. Nothing is written: a lock is taken by that name.",
    ),
    (
        "unknown-line",
        Severity::Info,
        "A line of a type that this version does not know, probably from a newer Codex. It is kept and left alone.",
    ),
    (
        "unknown-item",
        Severity::Info,
        "A conversation item of a type that this version does not know. It stays in the rollout, and is not carried into a replacement history, because Codex would send it as an empty item.",
    ),
    (
        "ordinal-missing",
        Severity::Error,
        "A line of a paginated rollout has no ordinal that another could follow. Where it is the last line, Codex cannot resume the thread.",
    ),
    (
        "ordinal-gap",
        Severity::Error,
        "Ordinals jump. Codex 0.148 to 0.153 stop showing new turns behind the gap; 0.155 and later step over it.",
    ),
    (
        "ordinal-duplicate",
        Severity::Error,
        "An ordinal occurs twice, as when two writers were at work. Codex 0.148 to 0.153 stop showing new turns behind it.",
    ),
    (
        "rolled-back",
        Severity::Info,
        "The client rolled turns back; they are not part of the conversation any more.",
    ),
    (
        "base-missing",
        Severity::Error,
        "The thread was forked from or reverted to a place in another rollout that is not there. What came before it cannot be read, so nothing is written unless the thread was compacted since.",
    ),
    (
        "client-untested",
        Severity::Info,
        "The thread was written by a newer Codex than this version was tested with.",
    ),
    (
        "projection-missing",
        Severity::Info,
        "The store has no projection of this thread. Codex makes it when it resumes.",
    ),
    (
        "projection-behind",
        Severity::Info,
        "The projection has not caught up with the rollout. Codex does that when it resumes.",
    ),
    ("projection-past-end", Severity::Error, REBUILD),
    ("projection-mid-line", Severity::Error, REBUILD),
    ("projection-ordinal", Severity::Error, REBUILD),
    ("projection-rows", Severity::Error, REBUILD),
    (
        "schema-unknown",
        Severity::Warning,
        "The store has migrations or columns that this version does not know. Nothing is written to it; compact without --project.",
    ),
    ("store-malformed", Severity::Error, REBUILD),
    (
        "store-null-time",
        Severity::Warning,
        "A thread has no time of change in milliseconds in the store, which hides it in some lists of Codex. Resuming the thread by its id fills it in.",
    ),
    (
        "store-wal",
        Severity::Info,
        "The store has changes in its write-ahead log. That is normal; copying the main file alone would lose them.",
    ),
    (
        "rollout-missing",
        Severity::Error,
        "The store names a rollout that is not there. Put the file back where the store expects it.",
    ),
    (
        "lease-held",
        Severity::Info,
        "A running client holds the thread. Close Codex and wait a minute, or run `codex app-server daemon stop`.",
    ),
    (
        "archived",
        Severity::Info,
        "The thread is archived. `codex unarchive` brings it back.",
    ),
    (
        "compressed",
        Severity::Info,
        "The rollout is compressed. Resuming the thread in Codex unpacks it.",
    ),
    (
        "images-duplicated",
        Severity::Warning,
        "The same images are stored many times, because each of the client's compactions copied them. They take up the disk, not the context.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_explained_once() {
        let mut seen = std::collections::BTreeSet::new();
        for code in codes() {
            assert!(seen.insert(code), "{code} stands twice");
            assert!(explain(code).is_some_and(|text| text.len() > 40), "{code}");
        }
        assert_eq!(explain("no-such-code"), None);
    }
}
