//! Rows of the mod → transcript. The client hands over one row a content block; thinking comes as
//! an empty row, images not at all.

use std::collections::HashMap;

use ctxfold_session_claude::{
    Ended, ResultWords, activities, is_client_text, is_local_output, label, said_in_result,
    typed_command,
};
use ctxfold_transcript::{
    Author, Block, BlockRef, Call, Content, Message, Outcome, Part, RowId, Transcript, text_bytes,
};
use serde_json::value::RawValue;

use super::wire::{Options, Request, Row, VERSION};
use crate::error::{CommandError, CommandResult};

/// Bytes around a block's content in the request, about.
const ENVELOPE: u64 = 30;

/// What was handed over, read.
#[derive(Debug)]
pub(crate) struct Handed<'a> {
    pub(crate) instructions: Option<String>,
    pub(crate) options: Options,
    /// The rows as they came; [`RowId`]s of the transcript are indices into them.
    pub(crate) raw: Vec<&'a RawValue>,
    pub(crate) rows: Vec<Row<'a>>,
    pub(crate) transcript: Transcript,
}

/// Reads a request. `session` is the identifier of the session that the rows are of, so that
/// addresses find the outputs in its file.
pub(crate) fn read<'a>(text: &'a str, session: &str) -> CommandResult<Handed<'a>> {
    let bad =
        |e: serde_json::Error| CommandError::input(format!("failed to read the conversation: {e}"));
    let request: Request<'a> = serde_json::from_str(text).map_err(bad)?;
    if request.v != VERSION {
        return Err(CommandError::input(format!(
            "the plugin speaks version {} and this binary version {VERSION}",
            request.v
        ))
        .hint("update the ctxfold plugins together"));
    }
    let mut rows = Vec::with_capacity(request.messages.len());
    for raw in &request.messages {
        rows.push(serde_json::from_str::<Row<'a>>(raw.get()).map_err(bad)?);
    }
    let transcript = Reader::new(session).transcript(&rows);
    Ok(Handed {
        instructions: request.instructions.filter(|i| !i.trim().is_empty()),
        options: request.options,
        raw: request.messages,
        rows,
        transcript,
    })
}

struct Reader {
    session: String,
    transcript: Transcript,
    /// The newest call of an identifier.
    calls: HashMap<String, usize>,
}

impl Reader {
    fn new(session: &str) -> Reader {
        let session: String = session
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .take(8)
            .collect();
        Reader {
            session,
            transcript: Transcript::default(),
            calls: HashMap::new(),
        }
    }

    fn transcript(mut self, rows: &[Row<'_>]) -> Transcript {
        for (index, row) in rows.iter().enumerate() {
            let id = RowId(u32::try_from(index).unwrap_or(u32::MAX));
            let next = rows.get(index + 1);
            let typed = typed_command(&row.text).filter(|_| {
                row.role == "user" && !next.is_some_and(|next| is_local_output(&next.text))
            });
            let author = match typed {
                Some(_) => Author::User,
                None => author(row),
            };
            self.begin(author, id);
            if let Some(results) = &row.tool_results {
                for result in results {
                    self.result(id, result);
                }
            }
            if author == Author::Assistant && row.text.is_empty() && row.tool_uses.is_empty() {
                self.push(id, 0, Content::Thinking);
            }
            if !row.text.is_empty() {
                let is_said = author == Author::Tool && !is_client_text(&row.text);
                let text = typed.unwrap_or_else(|| row.text.clone());
                let bytes = text_bytes(&row.text);
                let content = if is_said {
                    Content::Said(text)
                } else {
                    Content::Text(text)
                };
                self.push(id, bytes, content);
            }
            for call in &row.tool_uses {
                self.call(id, call);
            }
        }
        self.transcript
    }

    /// Rows of one author in a row are one message; prompts are one each.
    fn begin(&mut self, author: Author, row: RowId) {
        match self.transcript.messages.last_mut() {
            Some(last)
                if last.author == author && matches!(author, Author::Assistant | Author::Tool) =>
            {
                last.rows.push(row);
            }
            _ => self.transcript.messages.push(Message {
                author,
                blocks: Vec::new(),
                rows: vec![row],
                at_ms: None,
            }),
        }
    }

    fn push(&mut self, row: RowId, bytes: u64, content: Content) -> BlockRef {
        let message = self.transcript.messages.len() - 1;
        let blocks = &mut self.transcript.messages[message].blocks;
        blocks.push(Block {
            row,
            bytes: bytes + ENVELOPE,
            content,
            address: None,
        });
        BlockRef {
            message,
            block: blocks.len() - 1,
        }
    }

    fn call(&mut self, row: RowId, call: &super::wire::ToolUse<'_>) {
        let input = call.input.get();
        let index = self.transcript.calls.len();
        let at = self.push(
            row,
            input.len() as u64 + call.tool.len() as u64,
            Content::ToolCall(index),
        );
        self.transcript.calls.push(Call {
            id: call.id.clone(),
            tool: call.tool.clone(),
            label: label(&call.tool, input),
            input: input.to_owned(),
            activities: activities(&call.tool, input, None),
            outcome: Outcome::Pending,
            address: self.address(&call.id),
            at,
            result: None,
        });
        self.calls.insert(call.id.clone(), index);
    }

    /// The end of an identifier is enough to find it in the session's file.
    fn address(&self, id: &str) -> String {
        let skip = id.chars().count().saturating_sub(10);
        format!(
            "{}:{}",
            self.session,
            id.chars().skip(skip).collect::<String>()
        )
    }

    fn result(&mut self, row: RowId, result: &super::wire::ToolResult<'_>) {
        let call = self.calls.get(&result.tool_use_id).copied();
        let call = call.filter(|i| self.transcript.calls[*i].result.is_none());
        let tool = call.map_or("", |index| &self.transcript.calls[index].tool);
        let said = said_in_result(&ResultWords::new(tool, &result.text, result.is_error));
        let at = self.push(
            row,
            text_bytes(&result.text),
            Content::ToolResult {
                call,
                parts: vec![Part::Text(result.text.clone())],
                is_error: result.is_error,
                said,
            },
        );
        let Some(index) = call else { return };
        let ended = Ended {
            is_error: result.is_error,
            text: result.text.clone(),
            detail: result.result.map(|r| r.get().to_owned()),
        };
        let call = &mut self.transcript.calls[index];
        call.activities = activities(&call.tool, &call.input, Some(&ended));
        call.outcome = if result.is_error {
            Outcome::Failure
        } else {
            Outcome::Success
        };
        call.result = Some(at);
    }
}

/// Who speaks. The client's own rows come as the user's; an earlier summary too.
fn author(row: &Row<'_>) -> Author {
    if row.role == "assistant" {
        return Author::Assistant;
    }
    if row.tool_results.is_some() {
        return Author::Tool;
    }
    let text = row.text.trim_start();
    let is_summary = text.contains("<ctxfold-ledger version=")
        || text.starts_with("This session is being continued from a previous conversation");
    let is_client = [
        "<system-reminder>",
        "<command-name>",
        "<local-command-",
        "Caveat: ",
    ]
    .iter()
    .any(|mark| text.starts_with(mark));
    match (is_summary, is_client) {
        (true, _) => Author::Summary,
        (_, true) => Author::Client,
        _ => Author::User,
    }
}
