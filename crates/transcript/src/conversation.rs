//! The conversation: messages, their blocks, and where each came from. What a call did stands in
//! [`crate::call`]; how much things weigh in [`crate::size`].

use std::borrow::Cow;

use crate::{Call, Fill, Measure, Scale};

/// A row of the file that a message came from, as the reader numbered it. Opaque to all but the
/// reader that made the transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(pub u32);

impl RowId {
    /// The row of what is not in the file yet.
    pub const NEW: RowId = RowId(u32::MAX);
}

/// One conversation: what would reach the model with the next request, in sending order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Transcript {
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// Every tool call of the messages, in the order in which the calls were made.
    pub calls: Vec<Call>,
    /// How full the context is, where the agent recorded it.
    pub fill: Option<Fill>,
}

/// One message as the model's interface counts it: all rows of one answer, or all results that
/// answer it.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub author: Author,
    /// The parts, in order.
    pub blocks: Vec<Block>,
    /// The rows it came from, in file order.
    pub rows: Vec<RowId>,
    /// When it was written, in milliseconds since the Unix epoch, where the file says so.
    pub at_ms: Option<i64>,
}

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Author {
    /// The person who uses the agent.
    User,
    /// The model.
    Assistant,
    /// Results of tool calls.
    Tool,
    /// The client itself: environment, reminders, attachments, output of its own commands.
    Client,
    /// The summary that an earlier compaction left. Never to be read as the user speaking.
    Summary,
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// The row it came from.
    pub row: RowId,
    /// Bytes of this block in the request, in the wire form (escaped, with its envelope).
    pub bytes: u64,
    /// What it holds.
    pub content: Content,
    /// For words: the address that reads them back once they no longer reach the model.
    pub address: Option<String>,
}

/// What a block holds.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// Words.
    Text(String),
    /// Words of the user in a message that is not theirs, beside results for example. No plan
    /// touches them.
    Said(String),
    /// The model's thinking, readable or not. Never edited in a kept message.
    Thinking,
    /// A tool call: an index into [`Transcript::calls`].
    ToolCall(usize),
    /// The result of a tool call.
    ToolResult {
        /// The call it answers, as an index into [`Transcript::calls`]; `None` for an orphan.
        call: Option<usize>,
        /// The output.
        parts: Vec<Part>,
        /// Whether the agent marked it as an error.
        is_error: bool,
        /// What the user says in it: the answer to a question, or why they refused the call. A
        /// plan that touches such a result is not valid.
        said: Option<String>,
    },
    /// An image that the user or the client put in.
    Image(Image),
    /// Something that the client attached by itself.
    Attachment {
        /// The client's own name of its kind.
        kind: String,
        /// Path or title, where it has one.
        name: Option<String>,
        /// What the model sees of it.
        text: String,
        /// Whether a plan may fold it: true for re-read files and the like, false for what the
        /// client would announce anew if it were gone.
        foldable: bool,
        /// The address that reads it back once it is folded.
        address: String,
    },
    /// A kind that the reader does not know; kept as it is.
    Other {
        /// The client's own name of its kind.
        kind: String,
    },
}

/// A part of a tool's output.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Part {
    /// Words.
    Text(String),
    /// An image.
    Image(Image),
    /// Anything else, by the client's own name.
    Other {
        /// The client's own name of its kind.
        kind: String,
        /// Its size in bytes in the wire form.
        bytes: u64,
    },
}

/// An image, without its pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Media type, for example `image/png`.
    pub media_type: String,
    /// Size in bytes as it is sent (base64).
    pub bytes: u64,
    /// Width and height in pixels, where the header tells them.
    pub pixels: Option<(u32, u32)>,
}

/// Words of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words<'a> {
    /// The words.
    pub text: Cow<'a, str>,
    /// The address that reads them back once they no longer reach the model.
    pub address: Option<&'a str>,
}

/// Where a block stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockRef {
    /// Index into [`Transcript::messages`].
    pub message: usize,
    /// Index into [`Message::blocks`].
    pub block: usize,
}

impl Message {
    /// Bytes of the message's blocks in the request.
    pub fn bytes(&self) -> u64 {
        self.blocks.iter().map(|b| b.bytes).sum()
    }

    /// The text blocks, joined by an empty line.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for block in &self.blocks {
            if let Content::Text(text) = &block.content {
                if !out.is_empty() {
                    out.push_str("\n\n");
                }
                out.push_str(text);
            }
        }
        out
    }

    /// The indices of the calls that this message makes.
    pub fn calls(&self) -> impl Iterator<Item = usize> + '_ {
        self.blocks.iter().filter_map(|b| match b.content {
            Content::ToolCall(call) => Some(call),
            _ => None,
        })
    }
}

impl Content {
    /// What the user says in a tool result.
    pub fn said(&self) -> Option<&str> {
        match self {
            Content::ToolResult { said, .. } => said.as_deref(),
            _ => None,
        }
    }

    /// The words of a tool result, without its images.
    pub fn result_text(&self) -> Option<String> {
        let Content::ToolResult { parts, .. } = self else {
            return None;
        };
        let texts: Vec<&str> = parts
            .iter()
            .filter_map(|p| match p {
                Part::Text(t) => Some(t.as_str()),
                _ => None,
            })
            .collect();
        Some(texts.join("\n"))
    }
}

impl Transcript {
    /// The block at `at`, if there is one.
    pub fn block(&self, at: BlockRef) -> Option<&Block> {
        self.messages.get(at.message)?.blocks.get(at.block)
    }

    /// What the user says in a message: all of their own message, and of others the words in and
    /// beside results.
    pub fn said(&self, message: usize) -> Vec<Words<'_>> {
        let Some(message) = self.messages.get(message) else {
            return Vec::new();
        };
        if message.author == Author::User {
            let is_text = |b: &&Block| matches!(b.content, Content::Text(_));
            let first = message.blocks.iter().find(is_text);
            return vec![Words {
                text: Cow::Owned(message.text()),
                address: first.and_then(|block| block.address.as_deref()),
            }];
        }
        let words = message.blocks.iter().filter_map(|block| {
            let (text, address) = match &block.content {
                Content::Said(text) => (text, block.address.as_deref()),
                Content::ToolResult {
                    call,
                    said: Some(text),
                    ..
                } => {
                    let call = call.and_then(|call| self.calls.get(call));
                    (text, call.map(|call| call.address.as_str()))
                }
                _ => return None,
            };
            Some(Words {
                text: Cow::Borrowed(text),
                address,
            })
        });
        words.collect()
    }

    /// The result block of a call, if it has come.
    pub fn result(&self, call: usize) -> Option<&Block> {
        self.block(self.calls.get(call)?.result?)
    }

    /// Whether a call may still get its result: it has none, and the model has not spoken again.
    /// A call that was left behind without a result, by an interruption say, is not open.
    pub fn is_open(&self, call: usize) -> bool {
        let Some(call) = self.calls.get(call) else {
            return false;
        };
        let later = self.messages.get(call.at.message + 1..).unwrap_or_default();
        call.result.is_none() && !later.iter().any(|m| m.author == Author::Assistant)
    }

    /// Bytes of all messages in the request.
    pub fn bytes(&self) -> u64 {
        self.messages.iter().map(Message::bytes).sum()
    }

    /// What outlives a summary of the messages before `tail`: attachments that may not be folded,
    /// because the client would announce them anew. Each in its message, without what else is in
    /// it.
    pub fn standing(&self, tail: usize) -> Vec<Message> {
        let before = self.messages.get(..tail).unwrap_or(&self.messages);
        let stands = |b: &&Block| {
            matches!(
                b.content,
                Content::Attachment {
                    foldable: false,
                    ..
                }
            )
        };
        before
            .iter()
            .map(|message| Message {
                blocks: message.blocks.iter().filter(stands).cloned().collect(),
                ..message.clone()
            })
            .filter(|message| !message.blocks.is_empty())
            .collect()
    }

    /// The scale that turns bytes of this transcript into tokens.
    pub fn scale(&self) -> Scale {
        Scale::new(
            self.bytes(),
            self.fill.as_ref().filter(|f| !f.stale).map(|f| f.tokens),
        )
    }

    /// Messages, bytes and tokens of the whole transcript.
    pub fn measure(&self) -> Measure {
        let bytes = self.bytes();
        Measure {
            messages: self.messages.len(),
            bytes,
            tokens: self.scale().tokens(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Author, Builder, Content, Mode, Plan};

    /// The user speaks in their own messages, beside results and in them; nobody else does.
    #[test]
    fn the_user_is_heard_wherever_they_speak() {
        let mut b = Builder::new();
        b.message(Author::User).text("one").text("two");
        b.message(Author::Assistant)
            .text("three")
            .call("a", "Ask", "Ask");
        b.message(Author::Tool)
            .answer("a", "The user said: four", false, "four")
            .said("five")
            .text("six");
        b.message(Author::Client).text("seven");
        b.message(Author::Summary).text("eight");
        let t = b.build();
        let heard: Vec<_> = (0..t.messages.len()).flat_map(|m| t.said(m)).collect();
        let texts: Vec<&str> = heard.iter().map(|w| &*w.text).collect();
        assert_eq!(texts, ["one\n\ntwo", "four", "five"]);
        let addresses: Vec<_> = heard.iter().map(|w| w.address.unwrap()).collect();
        assert_eq!(addresses, ["test:0-0", "test:a", "test:2-1"]);
        assert!(t.said(9).is_empty());
    }

    /// What the client would announce anew outlives a summary, alone and in its size.
    #[test]
    fn announcements_outlive_a_summary() {
        let mut b = Builder::new();
        b.message(Author::User).text("one");
        b.message(Author::Client)
            .attachment("skills", "skills", "a list of skills")
            .attachment("file", "a.rs", "fn main() {}");
        b.message(Author::User).text("two");
        let mut transcript = b.build();
        if let Content::Attachment { foldable, .. } = &mut transcript.messages[1].blocks[0].content
        {
            *foldable = false;
        }
        let standing = transcript.standing(2);
        assert_eq!(standing.len(), 1);
        assert_eq!(standing[0].blocks, transcript.messages[1].blocks[..1]);

        let mut plan = Plan::keep_all(&transcript, Mode::Summary);
        plan.tail = 2;
        plan.summary = Some("s".repeat(10));
        plan.measure(&transcript);
        let kept = transcript.messages[1].blocks[0].bytes + transcript.messages[2].bytes();
        assert_eq!(plan.after.bytes, kept + 10);
        assert_eq!(plan.after.messages, plan.apply(&transcript).messages.len());
    }
}
