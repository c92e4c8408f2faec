//! Builds small transcripts by hand: for tests, examples and readers of simple formats.

use crate::plan::ENVELOPE;
use crate::{
    Activity, Author, Block, BlockRef, Call, Content, Message, Outcome, Part, RowId, Transcript,
    text_bytes,
};

/// Builds a transcript message by message.
#[derive(Debug, Default)]
pub struct Builder {
    transcript: Transcript,
}

/// Adds blocks to the message that was begun last.
#[derive(Debug)]
pub struct MessageBuilder<'a> {
    transcript: &'a mut Transcript,
}

impl From<Transcript> for Builder {
    /// Goes on with a conversation.
    fn from(transcript: Transcript) -> Builder {
        Builder { transcript }
    }
}

impl Builder {
    /// An empty transcript.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Begins a message.
    pub fn message(&mut self, author: Author) -> MessageBuilder<'_> {
        let row = RowId(u32::try_from(self.transcript.messages.len()).unwrap_or(u32::MAX));
        self.transcript.messages.push(Message {
            author,
            blocks: Vec::new(),
            rows: vec![row],
            at_ms: None,
        });
        MessageBuilder {
            transcript: &mut self.transcript,
        }
    }

    /// The finished transcript.
    pub fn build(self) -> Transcript {
        self.transcript
    }
}

impl MessageBuilder<'_> {
    fn push(&mut self, bytes: u64, content: Content) -> BlockRef {
        let message = self.transcript.messages.len() - 1;
        let target = &mut self.transcript.messages[message];
        let row = target.rows[0];
        let block = target.blocks.len();
        let is_words = matches!(content, Content::Text(_) | Content::Said(_));
        target.blocks.push(Block {
            row,
            bytes: bytes + ENVELOPE,
            content,
            address: is_words.then(|| format!("test:{message}-{block}")),
        });
        BlockRef { message, block }
    }

    /// Adds words.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.push(text_bytes(text), Content::Text(text.to_owned()));
        self
    }

    /// Adds words of the user to a message that is not theirs.
    pub fn said(&mut self, text: &str) -> &mut Self {
        self.push(text_bytes(text), Content::Said(text.to_owned()));
        self
    }

    /// Adds thinking of a size in bytes.
    pub fn thinking(&mut self, bytes: u64) -> &mut Self {
        self.push(bytes, Content::Thinking);
        self
    }

    /// Adds a call that did nothing in particular.
    pub fn call(&mut self, id: &str, tool: &str, label: &str) -> &mut Self {
        self.call_with(id, tool, label, vec![Activity::Other])
    }

    /// Adds a call and what it did.
    pub fn call_with(
        &mut self,
        id: &str,
        tool: &str,
        label: &str,
        activities: Vec<Activity>,
    ) -> &mut Self {
        let index = self.transcript.calls.len();
        let at = self.push(text_bytes(label), Content::ToolCall(index));
        self.transcript.calls.push(Call {
            id: id.to_owned(),
            tool: tool.to_owned(),
            label: label.to_owned(),
            input: label.to_owned(),
            activities,
            outcome: Outcome::Pending,
            address: format!("test:{id}"),
            at,
            result: None,
        });
        self
    }

    /// Adds the result of the newest unanswered call with this identifier.
    pub fn result(&mut self, id: &str, output: &str, is_error: bool) -> &mut Self {
        self.ended(id, output, is_error, None)
    }

    /// The same for a result in which the user says something.
    pub fn answer(&mut self, id: &str, output: &str, is_error: bool, said: &str) -> &mut Self {
        self.ended(id, output, is_error, Some(said.to_owned()))
    }

    fn ended(&mut self, id: &str, output: &str, is_error: bool, said: Option<String>) -> &mut Self {
        let call = self
            .transcript
            .calls
            .iter()
            .rposition(|c| c.id == id && c.result.is_none());
        let content = Content::ToolResult {
            call,
            parts: vec![Part::Text(output.to_owned())],
            is_error,
            said,
        };
        let at = self.push(text_bytes(output), content);
        if let Some(call) = call.and_then(|i| self.transcript.calls.get_mut(i)) {
            call.result = Some(at);
            call.outcome = if is_error {
                Outcome::Failure
            } else {
                Outcome::Success
            };
        }
        self
    }

    /// Adds an attachment that may be folded.
    pub fn attachment(&mut self, kind: &str, name: &str, text: &str) -> &mut Self {
        let content = Content::Attachment {
            kind: kind.to_owned(),
            name: Some(name.to_owned()),
            text: text.to_owned(),
            foldable: true,
            address: format!("test:{name}"),
        };
        self.push(text_bytes(text), content);
        self
    }
}
