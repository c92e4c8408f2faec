//! The branch as a neutral conversation: rows become messages, calls meet their results, and sizes
//! are those of the request. What a tool does is decided in [`crate::tools`].

use std::collections::HashMap;

use ctxfold_transcript::{
    Activity, Author, Block, BlockRef, Call, Content, Fill, Message, Outcome, Part, RowId,
    Transcript,
};

use crate::blocks::{Parsed, What, attached, blocks};
use crate::findings::{Code, Finding};
use crate::keys::{call_keys, row_key, session_part};
use crate::row::{Kind, Row};
use crate::tools::{Ended, activities, label};
use crate::wire::{Object, string};
use crate::words::{ResultWords, is_client_text, is_local_output, said, typed_command};

/// The conversation, and what stands beside it in the same rows.
#[derive(Debug, Default)]
pub(crate) struct Built {
    pub(crate) transcript: Transcript,
    pub(crate) findings: Vec<Finding>,
    pub(crate) model: Option<String>,
    /// For each call its place among the blocks of its row.
    pub(crate) places: Vec<Place>,
}

/// Where a call and its result stand in their rows.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place {
    /// Index of the call's block in its row's content.
    pub(crate) call: usize,
    /// Index of the result's block in its row's content.
    pub(crate) result: usize,
}

struct Builder<'a> {
    rows: &'a [Row],
    built: Built,
    /// Message of an assistant's message id.
    answers: HashMap<&'a str, usize>,
    /// Calls by identifier, in order.
    by_id: HashMap<String, Vec<usize>>,
    session: String,
    usage: Option<(u64, u64)>,
}

/// Builds the conversation of a branch. `boundary` is the row of the last compaction.
pub(crate) fn build(
    rows: &[Row],
    chain: &[usize],
    boundary: Option<&Row>,
    session: &str,
    window: Option<u64>,
) -> Built {
    let mut builder = Builder {
        rows,
        built: Built::default(),
        answers: HashMap::new(),
        by_id: HashMap::new(),
        session: session_part(session),
        usage: None,
    };
    for (place, &row) in chain.iter().enumerate() {
        builder.row(row, chain.get(place + 1).map(|&next| &rows[next]));
    }
    builder.address();
    builder.built.transcript.fill = builder.fill(boundary, window);
    builder.built
}

impl Builder<'_> {
    fn row(&mut self, at: usize, next: Option<&Row>) {
        let row = &self.rows[at];
        if row.kind == Kind::System {
            return;
        }
        let Some(object) = Object::parse(&row.text) else {
            return;
        };
        if row.kind == Kind::Attachment {
            self.attachment(at, &object);
            return;
        }
        let message = object.object("message");
        let content = message.as_ref().and_then(|m| m.get("content"));
        let mut blocks = content.map(blocks).unwrap_or_default();
        let typed = blocks.first_mut().filter(|_| !row.results && !row.meta);
        if let Some(Parsed {
            what: What::Done(Content::Text(text)),
            ..
        }) = typed
            && let Some(command) = typed_command(text)
            && !next.is_some_and(is_output)
        {
            *text = command;
        }
        let target = if row.kind == Kind::Assistant {
            self.usage(row, message.as_ref());
            self.answer(at)
        } else if row.results {
            self.results(at, &blocks)
        } else {
            let by_client = row.meta
                || object.get("origin").is_some_and(|o| {
                    Object::parse(o).and_then(|o| o.str("kind")).as_deref()
                        == Some("task-notification")
                })
                || blocks
                    .iter()
                    .all(|b| matches!(&b.what, What::Done(Content::Text(t)) if is_client_text(t)));
            self.begin(
                at,
                match (row.summary, by_client) {
                    (true, _) => Author::Summary,
                    (_, true) => Author::Client,
                    _ => Author::User,
                },
            )
        };
        let author = self.built.transcript.messages[target].author;
        for (place, block) in blocks.into_iter().enumerate() {
            let here = BlockRef {
                message: target,
                block: self.built.transcript.messages[target].blocks.len(),
            };
            let content = match block.what {
                What::Done(Content::Text(text))
                    if author == Author::Tool && !row.meta && !is_client_text(&text) =>
                {
                    Content::Said(text)
                }
                What::Done(content) => content,
                What::Call { id, tool, input } => {
                    Content::ToolCall(self.call(here, place, id, tool, input))
                }
                What::Result {
                    id,
                    parts,
                    is_error,
                } => self.result(at, here, place, &id, parts, is_error, &object),
            };
            let is_words = matches!(content, Content::Text(_) | Content::Said(_));
            let address = is_words.then(|| self.address_of(&row.uuid, place));
            self.built.transcript.messages[target].blocks.push(Block {
                row: row_id(at),
                bytes: block.bytes,
                content,
                address,
            });
        }
    }

    /// The address of a block that no call names.
    fn address_of(&self, uuid: &str, place: usize) -> String {
        format!("{}:{}", self.session, row_key(uuid, place))
    }

    /// A new message.
    fn begin(&mut self, at: usize, author: Author) -> usize {
        self.built.transcript.messages.push(Message {
            author,
            blocks: Vec::new(),
            rows: vec![row_id(at)],
            at_ms: self.rows[at].at_ms,
        });
        self.built.transcript.messages.len() - 1
    }

    /// The message of an assistant's row: all rows with one message id are one message.
    fn answer(&mut self, at: usize) -> usize {
        let rows = self.rows;
        let Some(id) = rows[at].message_id.as_deref() else {
            return self.begin(at, Author::Assistant);
        };
        if let Some(&known) = self.answers.get(id) {
            self.built.transcript.messages[known].rows.push(row_id(at));
            return known;
        }
        let new = self.begin(at, Author::Assistant);
        self.answers.insert(id, new);
        new
    }

    /// The message of a row with results: all results that answer one message are one message.
    fn results(&mut self, at: usize, blocks: &[Parsed]) -> usize {
        let asked = |builder: &Self| {
            blocks.iter().find_map(|b| match &b.what {
                What::Result { id, .. } => builder
                    .find_call(at, id)
                    .map(|c| builder.built.transcript.calls[c].at.message),
                _ => None,
            })
        };
        let transcript = &self.built.transcript;
        if let Some(last) = transcript.messages.last() {
            let answers_same = last.author == Author::Tool
                && last.blocks.iter().any(|b| match b.content {
                    Content::ToolResult {
                        call: Some(call), ..
                    } => Some(transcript.calls[call].at.message) == asked(self),
                    _ => false,
                });
            if answers_same {
                let index = transcript.messages.len() - 1;
                self.built.transcript.messages[index].rows.push(row_id(at));
                return index;
            }
        }
        self.begin(at, Author::Tool)
    }

    fn attachment(&mut self, at: usize, object: &Object<'_>) {
        let attached = attached(object);
        if attached.bytes == 0 && attached.text.is_empty() {
            return;
        }
        let address = self.address_of(&self.rows[at].uuid, 0);
        let (author, content, of_words) = if attached.typed {
            (Author::User, Content::Text(attached.text), Some(address))
        } else {
            let content = Content::Attachment {
                kind: attached.kind,
                name: attached.name,
                text: attached.text,
                foldable: attached.foldable,
                address,
            };
            (Author::Client, content, None)
        };
        let joins = self.built.transcript.messages.last().is_some_and(|last| {
            author == Author::Client
                && last.author == Author::Client
                && last
                    .blocks
                    .iter()
                    .all(|b| matches!(b.content, Content::Attachment { .. }))
        });
        let target = if joins {
            let last = self.built.transcript.messages.len() - 1;
            self.built.transcript.messages[last].rows.push(row_id(at));
            last
        } else {
            self.begin(at, author)
        };
        self.built.transcript.messages[target].blocks.push(Block {
            row: row_id(at),
            bytes: attached.bytes,
            content,
            address: of_words,
        });
    }

    fn call(
        &mut self,
        at: BlockRef,
        place: usize,
        id: String,
        tool: String,
        input: String,
    ) -> usize {
        let index = self.built.transcript.calls.len();
        self.by_id.entry(id.clone()).or_default().push(index);
        self.built.places.push(Place {
            call: place,
            result: 0,
        });
        self.built.transcript.calls.push(Call {
            label: label(&tool, &input),
            activities: activities(&tool, &input, None),
            id,
            tool,
            input,
            outcome: Outcome::Pending,
            address: String::new(),
            at,
            result: None,
        });
        index
    }

    /// The call that a result answers. Where an identifier stands twice, the row that the result
    /// hangs on decides; else the newest call without a result.
    fn find_call(&self, row: usize, id: &str) -> Option<usize> {
        let calls = self.by_id.get(id)?;
        let transcript = &self.built.transcript;
        let open = |c: &usize| transcript.calls[*c].result.is_none();
        let row_of = |c: usize| transcript.block(transcript.calls[c].at).map(|b| b.row);
        let parent = self.rows[row].parent.as_deref();
        let by_row =
            calls.iter().rev().copied().find(|&c| {
                row_of(c).is_some_and(|r| Some(&*self.rows[r.0 as usize].uuid) == parent)
            });
        match calls[..] {
            [only] if !id.is_empty() => Some(only),
            _ => by_row.filter(|c| open(c)).or_else(|| {
                calls
                    .iter()
                    .rev()
                    .copied()
                    .find(open)
                    .filter(|_| !id.is_empty())
            }),
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one result is described by all of these"
    )]
    fn result(
        &mut self,
        row: usize,
        at: BlockRef,
        place: usize,
        id: &str,
        parts: Vec<Part>,
        is_error: bool,
        object: &Object<'_>,
    ) -> Content {
        let call = self
            .find_call(row, id)
            .filter(|&c| self.built.transcript.calls[c].result.is_none());
        let text = parts.iter().find_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let text = text.unwrap_or_default();
        let tool = call.map_or("", |index| &self.built.transcript.calls[index].tool);
        let said = said(&ResultWords::new(tool, text, is_error), Some(object));
        if let Some(index) = call {
            let ended = Ended {
                is_error,
                text: text.to_owned(),
                detail: object.get("toolUseResult").map(str::to_owned),
            };
            let call = &mut self.built.transcript.calls[index];
            call.activities = activities(&call.tool, &call.input, Some(&ended));
            let failed = is_error
                || call
                    .activities
                    .iter()
                    .any(|a| matches!(a, Activity::Run { exit: Some(code), .. } if *code != 0));
            call.outcome = if failed {
                Outcome::Failure
            } else {
                Outcome::Success
            };
            call.result = Some(at);
            self.built.places[index].result = place;
        } else {
            let found = Finding::new(
                Code::OrphanResult,
                format!("a result answers no call: {id:?}"),
            );
            self.built
                .findings
                .push(found.at(None, self.rows[row].offset));
        }
        Content::ToolResult {
            call,
            parts,
            is_error,
            said,
        }
    }

    /// Gives every call its address.
    fn address(&mut self) {
        let transcript = &mut self.built.transcript;
        let ids: Vec<&str> = transcript.calls.iter().map(|c| c.id.as_str()).collect();
        let keys = call_keys(&ids);
        for (index, key) in keys.into_iter().enumerate() {
            let at = transcript.calls[index].at;
            let row = transcript.block(at).map_or(0, |b| b.row.0 as usize);
            if self.by_id[&transcript.calls[index].id].len() > 1 {
                let found = Finding::new(
                    Code::DuplicateToolId,
                    format!(
                        "several calls have the identifier {:?}",
                        transcript.calls[index].id
                    ),
                );
                self.built
                    .findings
                    .push(found.at(None, self.rows[row].offset));
            }
            let key =
                key.unwrap_or_else(|| row_key(&self.rows[row].uuid, self.built.places[index].call));
            transcript.calls[index].address = format!("{}:{key}", self.session);
        }
    }

    /// Notes the tokens of the context, once a message: all its rows repeat them.
    fn usage(&mut self, row: &Row, message: Option<&Object<'_>>) {
        let Some(message) = message else { return };
        if let Some(model) = message.get("model").and_then(string)
            && model != "<synthetic>"
        {
            self.built.model = Some(model);
        }
        let Some(usage) = message.object("usage") else {
            return;
        };
        let tokens = [
            "input_tokens",
            "cache_creation_input_tokens",
            "cache_read_input_tokens",
        ]
        .iter()
        .filter_map(|key| usage.u64(key))
        .fold(0, u64::saturating_add)
        .min(Fill::MOST_TOKENS);
        if tokens > 0 {
            self.usage = Some((tokens, row.offset));
        }
    }

    fn fill(&self, boundary: Option<&Row>, window: Option<u64>) -> Option<Fill> {
        let last = boundary.and_then(|row| Some((row.offset, row.boundary.as_ref()?)));
        match (self.usage, last) {
            (Some((tokens, offset)), Some((compacted, _))) if offset > compacted => Some(Fill {
                tokens,
                window,
                stale: false,
            }),
            (usage, Some((_, boundary))) => {
                // What the compaction recorded is the size of what it left. Writers that know no
                // size put down next to nothing.
                let left = boundary.post_tokens.filter(|&tokens| tokens > 1);
                Some(Fill {
                    tokens: left.or(usage.map(|(tokens, _)| tokens))?,
                    window,
                    stale: left.is_none(),
                })
            }
            (Some((tokens, _)), None) => Some(Fill {
                tokens,
                window,
                stale: false,
            }),
            (None, None) => None,
        }
    }
}

/// Whether a row is what a command of the client's own put out.
fn is_output(row: &Row) -> bool {
    let content = || {
        let message = Object::parse(&row.text)?.object("message")?;
        string(message.get("content")?)
    };
    row.kind == Kind::User && content().is_some_and(|text| is_local_output(&text))
}

fn row_id(at: usize) -> RowId {
    RowId(u32::try_from(at).unwrap_or(u32::MAX - 1))
}
