//! What was found wrong in a file: stable codes, how bad each is, and where it was found.
//!
//! The long texts that explain a code are in `explain.rs`.

use std::fmt;
use std::str::FromStr;

use crate::{Error, ErrorKind};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Something is damaged, the conversation is not.
    Warning,
    /// The conversation is damaged.
    Error,
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:literal, $severity:ident;)+) => {
        /// A stable code for one kind of fault. Codes are never renamed; new ones may come.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Code {
            /// All codes.
            pub const ALL: &'static [Code] = &[$(Code::$name),+];

            /// The code as it is printed, for example `claude/torn-line`.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $code,)+ }
            }

            /// How bad a fault of this kind is.
            pub fn severity(self) -> Severity {
                match self { $(Code::$name => Severity::$severity,)+ }
            }
        }
    };
}

codes! {
    /// A line in the middle of the file that ends before its object does.
    TornLine = "claude/torn-line", Error;
    /// The last line ends before its object does.
    TornTail = "claude/torn-tail", Warning;
    /// A line that began inside another one: the first is lost, the second was read.
    SplicedLine = "claude/spliced-line", Error;
    /// Several objects on one line.
    GluedLines = "claude/glued-lines", Warning;
    /// A run of NUL bytes.
    NulRun = "claude/nul-run", Warning;
    /// Bytes that are no JSON object.
    Garbage = "claude/garbage", Warning;
    /// One or more byte order marks.
    ByteOrderMark = "claude/byte-order-mark", Info;
    /// Bytes that are no UTF-8 inside a row that could be read.
    InvalidUtf8 = "claude/invalid-utf8", Warning;
    /// An escaped half of a surrogate pair without its other half.
    LoneSurrogate = "claude/lone-surrogate", Info;
    /// Lines end with a carriage return.
    CarriageReturns = "claude/carriage-returns", Info;
    /// The last line is whole but has no line end.
    NoFinalNewline = "claude/no-final-newline", Info;
    /// Rows of kinds that this version does not know.
    UnknownKind = "claude/unknown-kind", Info;
    /// Rows whose parent is not in the file.
    DanglingParent = "claude/dangling-parent", Warning;
    /// Rows that are their own ancestor.
    ParentCycle = "claude/parent-cycle", Error;
    /// A uuid that stands for two different rows.
    DuplicateUuid = "claude/duplicate-uuid", Warning;
    /// A tool call's identifier that is used by another call too.
    DuplicateToolId = "claude/duplicate-tool-id", Error;
    /// A tool call or a result with an empty identifier.
    EmptyToolId = "claude/empty-tool-id", Error;
    /// A tool result without its call.
    OrphanResult = "claude/orphan-result", Error;
    /// A tool call without a result, although the conversation went on.
    MissingResult = "claude/missing-result", Warning;
    /// A tool call without a result at the end of the conversation.
    PendingCall = "claude/pending-call", Info;
    /// A compaction keeps rows that are not in the file.
    PreservedMissing = "claude/preserved-missing", Error;
    /// A compaction's anchor is not in the file.
    AnchorMissing = "claude/anchor-missing", Error;
    /// The conversation goes on from a row before the last compaction.
    CompactionBypassed = "claude/compaction-bypassed", Warning;
    /// A message of the model stands before a compaction and, in other rows, behind it.
    RepeatedMessage = "claude/repeated-message", Warning;
    /// The row from which the client would resume is a sub-agent's.
    SidechainLeaf = "claude/sidechain-leaf", Error;
    /// The row from which the client would resume has no timestamp.
    LeafWithoutTimestamp = "claude/leaf-without-timestamp", Error;
    /// An image with a side of more than 8000 pixels.
    ImageTooLarge = "claude/image-too-large", Warning;
    /// The conversation is larger than one request may be.
    RequestTooLarge = "claude/request-too-large", Error;
    /// Text that looks like a credential.
    Credential = "claude/credential", Warning;
    /// A file without a single row of a conversation.
    NoConversation = "claude/no-conversation", Error;
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Code {
    type Err = Error;

    /// Reads a code as it is printed; the part before the slash may be left out.
    fn from_str(text: &str) -> Result<Code, Error> {
        let matches = |code: &&Code| {
            let full = code.as_str();
            full == text || full.split_once('/').is_some_and(|(_, name)| name == text)
        };
        Code::ALL.iter().find(matches).copied().ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                format!("no finding has the code {text:?}"),
            )
        })
    }
}

/// Something found wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What kind of fault it is.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// Line in the file, from 1, where it is known. A finding about many rows names the first.
    pub line: Option<u64>,
    /// Offset in bytes, of the same place.
    pub offset: Option<u64>,
    /// What was found.
    pub message: String,
}

impl Finding {
    /// A finding about the whole file.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Finding {
        Finding {
            code,
            severity: code.severity(),
            line: None,
            offset: None,
            message: message.into(),
        }
    }

    /// The same finding, naming a place.
    pub(crate) fn at(mut self, line: Option<u64>, offset: u64) -> Finding {
        self.line = line;
        self.offset = Some(offset);
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        } else if let Some(offset) = self.offset {
            write!(f, "byte {offset}: ")?;
        }
        write!(f, "{} [{}]", self.message, self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_comes_back_from_its_text() {
        for code in Code::ALL {
            assert_eq!(code.as_str().parse::<Code>().unwrap(), *code);
            let (_, short) = code.as_str().split_once('/').unwrap();
            assert_eq!(short.parse::<Code>().unwrap(), *code);
        }
        assert!("claude/nothing".parse::<Code>().unwrap_err().is_not_found());
    }
}
