//! The Messages API of Claude, as far as Claude Code uses it, answering from a script.
//!
//! An answer is chosen from the request alone, so that retries, parallel sub-agents and several
//! client processes can share one mock:
//!
//! 1. A request for a summary of the conversation gets the summary.
//! 2. Otherwise the newest user message whose text contains the key of a script
//!    ([`MockAnthropic::on`]) decides. The step taken is the number of assistant messages after it,
//!    so a script goes on by itself after each tool result. Where a text contains several keys, the
//!    script that was added first wins.
//! 3. With no script, or at its end, the reply is `MOCK-REPLY to: ` and the end of the newest prompt.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::http::{Part, Request, Response, Server};
use crate::log::{Recorded, RequestLog};
use crate::wait::Gate;

/// Text that the client's own request for a summary contains, in every version that we drive.
const SUMMARY_REQUESTS: [&str; 2] = [
    "create a detailed summary",
    "detailed summary of the conversation",
];

/// Ids stay unique over all the mocks of a process: a session may see several of them.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// One answer of the model: content blocks in order, or an error.
#[derive(Debug, Clone, Default)]
pub struct Turn {
    blocks: Vec<Value>,
    usage: Option<Value>,
    stop_reason: Option<&'static str>,
    error: Option<(u16, String, String)>,
    gate: Option<Gate>,
    cut: bool,
}

impl Turn {
    /// An answer with nothing in it yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// An answer of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new().and_text(text)
    }

    /// An answer that calls one tool.
    pub fn tool(name: &str, input: Value) -> Self {
        Self::new().and_tool(name, input)
    }

    /// An HTTP error in the API's own form, for example 529 and `overloaded_error`.
    pub fn error(status: u16, kind: &str, message: &str) -> Self {
        Self {
            error: Some((status, kind.to_owned(), message.to_owned())),
            ..Self::default()
        }
    }

    /// Adds a text block.
    #[must_use]
    pub fn and_text(mut self, text: impl Into<String>) -> Self {
        self.blocks
            .push(json!({"type": "text", "text": text.into()}));
        self
    }

    /// Adds a thinking block with a signature that is derived from its text.
    #[must_use]
    pub fn and_thinking(mut self, thinking: &str) -> Self {
        let sum = thinking
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        self.blocks.push(json!({
            "type": "thinking", "thinking": thinking, "signature": format!("MOCKSIG{sum:016x}"),
        }));
        self
    }

    /// Adds a redacted thinking block.
    #[must_use]
    pub fn and_redacted(mut self, data: &str) -> Self {
        self.blocks
            .push(json!({"type": "redacted_thinking", "data": data}));
        self
    }

    /// Adds a tool call; several make parallel calls. The mock gives it a fresh id.
    #[must_use]
    pub fn and_tool(mut self, name: &str, input: Value) -> Self {
        let mut block = json!({"type": "tool_use", "name": name});
        block["input"] = input;
        self.blocks.push(block);
        self
    }

    /// Reports this usage. Keys that are missing keep the mock's defaults.
    #[must_use]
    pub fn with_usage(mut self, usage: Value) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Ends with this reason in place of `end_turn` or `tool_use`.
    #[must_use]
    pub fn with_stop_reason(mut self, reason: &'static str) -> Self {
        self.stop_reason = Some(reason);
        self
    }

    /// Holds the answer back, after its first event, until the gate opens.
    #[must_use]
    pub fn held_by(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// Breaks the connection after the content, before the answer is complete.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.cut = true;
        self
    }

    fn calls_a_tool(&self) -> bool {
        self.blocks.iter().any(|block| block["type"] == "tool_use")
    }

    /// The blocks as sent, with fresh ids for the calls.
    fn blocks_with_ids(&self) -> Vec<Value> {
        let mut blocks = self.blocks.clone();
        for block in blocks
            .iter_mut()
            .filter(|block| block["type"] == "tool_use")
        {
            block["id"] = json!(fresh_id("toolu"));
        }
        blocks
    }
}

fn fresh_id(prefix: &str) -> String {
    format!(
        "{prefix}_mock{:020}",
        NEXT_ID.fetch_add(1, Ordering::Relaxed)
    )
}

#[derive(Debug, Default)]
struct Script {
    rules: Vec<(String, Vec<Turn>)>,
    usage: Option<Value>,
    summary: Option<Turn>,
    count_tokens: Option<u64>,
    failures: Vec<Turn>,
}

/// A Messages API on a free loopback port.
///
/// It answers `/v1/messages` (streamed and whole) and `/v1/messages/count_tokens`; any other
/// request, such as the `HEAD` by which a client probes the network, gets 404 and is logged too.
#[derive(Debug)]
pub struct MockAnthropic {
    server: Server,
    script: Arc<Mutex<Script>>,
    log: RequestLog,
}

impl MockAnthropic {
    /// Starts a mock that knows no script.
    pub fn start() -> Self {
        let script = Arc::new(Mutex::new(Script::default()));
        let log = RequestLog::default();
        let (shared, requests) = (Arc::clone(&script), log.clone());
        let server = Server::start(move |request| {
            let script = &mut *shared.lock().unwrap_or_else(PoisonError::into_inner);
            answer(request, script, &requests)
        });
        Self {
            server,
            script,
            log,
        }
    }

    /// The base address for `ANTHROPIC_BASE_URL`.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// What the mock was asked so far.
    pub fn log(&self) -> &RequestLog {
        &self.log
    }

    /// Answers prompts that contain `key` with these turns, one a request.
    ///
    /// The prompt that a sub-agent is started with counts as a prompt, so its turns are scripted
    /// the same way.
    pub fn on(&self, key: &str, turns: impl IntoIterator<Item = Turn>) {
        let rule = (key.to_owned(), turns.into_iter().collect());
        self.edit(|script| script.rules.push(rule));
    }

    /// Reports this usage in every answer that names none of its own.
    ///
    /// By default the input counts as read from the cache, one token for four bytes of the request.
    pub fn set_usage(&self, usage: Value) {
        self.edit(|script| script.usage = Some(usage));
    }

    /// Answers requests for a summary with this text inside `<summary>`.
    pub fn set_summary(&self, summary: &str) {
        let text =
            format!("<analysis>MOCK-ANALYSIS</analysis>\n\n<summary>\n{summary}\n</summary>");
        self.edit(|script| script.summary = Some(Turn::text(text)));
    }

    /// Answers `count_tokens` with this number, in place of a quarter of the request's bytes.
    pub fn set_count_tokens(&self, tokens: u64) {
        self.edit(|script| script.count_tokens = Some(tokens));
    }

    /// Gives this answer to the very next request for the model, whatever it says.
    pub fn next(&self, turn: Turn) {
        self.edit(|script| script.failures.push(turn));
    }

    fn edit(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.script.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn answer(request: &Request, script: &mut Script, log: &RequestLog) -> Response {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
    let is_post = request.method == "POST";
    if is_post && request.path.ends_with("/count_tokens") {
        log.push(Recorded::new(request, body, "count"));
        let tokens = script.count_tokens.unwrap_or(request.body.len() as u64 / 4);
        return Response::json(200, &json!({"input_tokens": tokens.max(1)}));
    }
    if !is_post || !request.path.ends_with("/v1/messages") {
        log.push(Recorded::new(
            request,
            body,
            if is_post { "other" } else { "probe" },
        ));
        return Response::json(
            404,
            &error_body("not_found_error", "the mock has no such path"),
        );
    }
    let (kind, turn) = choose(&body, script);
    let usage = usage(&turn, script, request.body.len());
    log.push(Recorded::new(request, body.clone(), kind));
    reply(&body, &turn, &usage)
}

/// The kind of a request and the turn that answers it.
fn choose(body: &Value, script: &mut Script) -> (&'static str, Turn) {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let compaction = messages
        .iter()
        .rfind(|message| message["role"] == "user")
        .map(text_of)
        .is_some_and(|text| {
            SUMMARY_REQUESTS
                .iter()
                .any(|request| text.contains(request))
        });
    let kind = if compaction {
        "compaction"
    } else {
        "conversation"
    };
    if !script.failures.is_empty() {
        return (kind, script.failures.remove(0));
    }
    if compaction {
        let default = || {
            Turn::text(format!(
                "<analysis>MOCK-ANALYSIS</analysis>\n\n<summary>\nMOCK-SUMMARY of {} messages.\n\
                 </summary>",
                messages.len()
            ))
        };
        return (kind, script.summary.clone().unwrap_or_else(default));
    }
    if let Some(turn) = scripted(messages, &script.rules) {
        return (kind, turn);
    }
    // Side requests (titles, classifiers) name the shape of their answer.
    if let Some(properties) = body["output_config"]["format"]["schema"]["properties"].as_object() {
        let answer: serde_json::Map<_, _> = properties
            .keys()
            .map(|key| (key.clone(), json!(format!("mock {key}"))))
            .collect();
        return ("other", Turn::text(Value::Object(answer).to_string()));
    }
    let last = messages
        .iter()
        .rfind(|m| m["role"] == "user")
        .map(prompt_of)
        .unwrap_or_default();
    let skip = last.trim().chars().count().saturating_sub(60);
    let tail: String = last.trim().chars().skip(skip).collect();
    (kind, Turn::text(format!("MOCK-REPLY to: {tail}")))
}

/// The step of the script that the newest matching prompt is at.
fn scripted(messages: &[Value], rules: &[(String, Vec<Turn>)]) -> Option<Turn> {
    for (at, message) in messages
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, m)| m["role"] == "user")
    {
        let text = text_of(message);
        if let Some((_, turns)) = rules.iter().find(|(key, _)| text.contains(key)) {
            let done = messages[at..]
                .iter()
                .filter(|m| m["role"] == "assistant")
                .count();
            return turns.get(done).cloned();
        }
    }
    None
}

/// The text blocks of a message; tool results are not text.
fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks
                .iter()
                .filter_map(|block| block["text"].as_str())
                .collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

/// What the user typed: the last text block that the client did not put in itself.
fn prompt_of(message: &Value) -> String {
    let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
    let mut texts = blocks.iter().filter_map(|block| block["text"].as_str());
    match texts.rfind(|text| !text.starts_with("<system-reminder>")) {
        Some(text) => text.to_owned(),
        None => text_of(message),
    }
}

fn usage(turn: &Turn, script: &Script, bytes: usize) -> Value {
    let output: usize = turn
        .blocks
        .iter()
        .map(|block| block.to_string().len())
        .sum();
    let mut usage = json!({
        "input_tokens": 12,
        "cache_creation_input_tokens": 100,
        "cache_read_input_tokens": (bytes / 4).max(1),
        "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 0},
        "output_tokens": (output / 4).max(1),
        "service_tier": "standard",
    });
    for over in [&script.usage, &turn.usage]
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
    {
        for (key, value) in over {
            usage[key] = value.clone();
        }
    }
    usage
}

fn error_body(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

fn reply(body: &Value, turn: &Turn, usage: &Value) -> Response {
    if let Some((status, kind, message)) = &turn.error {
        return Response::json(*status, &error_body(kind, message));
    }
    let default = if turn.calls_a_tool() {
        "tool_use"
    } else {
        "end_turn"
    };
    let stop_reason = turn.stop_reason.unwrap_or(default);
    let blocks = turn.blocks_with_ids();
    let mut first_usage = usage.clone();
    first_usage["output_tokens"] = json!(1);
    let mut message = json!({
        "id": fresh_id("msg"),
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": first_usage,
    });
    let response = if body["stream"] == true {
        let mut parts = vec![event(&json!({"type": "message_start", "message": message}))];
        parts.extend(turn.gate.clone().map(Part::Wait));
        for (index, block) in blocks.iter().enumerate() {
            parts.extend(block_events(index, block));
        }
        if turn.cut {
            parts.push(Part::Cut);
        }
        parts.push(event(&json!({
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason, "stop_sequence": null},
            "usage": usage,
        })));
        parts.push(event(&json!({"type": "message_stop"})));
        Response::events(parts)
    } else {
        message["content"] = Value::Array(blocks);
        message["stop_reason"] = json!(stop_reason);
        message["usage"] = usage.clone();
        Response::json(200, &message)
    };
    response.with_header("request-id", fresh_id("req"))
}

fn event(data: &Value) -> Part {
    let name = data["type"].as_str().map(str::to_owned);
    Response::event(name.as_deref(), data)
}

/// The events that stream one content block.
fn block_events(index: usize, block: &Value) -> Vec<Part> {
    let delta = |delta: Value| {
        event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
    };
    let (start, deltas) = match block["type"].as_str() {
        Some("text") => (
            json!({"type": "text", "text": ""}),
            vec![delta(json!({"type": "text_delta", "text": block["text"]}))],
        ),
        Some("thinking") => (
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            vec![
                delta(json!({"type": "thinking_delta", "thinking": block["thinking"]})),
                delta(json!({"type": "signature_delta", "signature": block["signature"]})),
            ],
        ),
        Some("tool_use") => {
            let mut start = block.clone();
            start["input"] = json!({});
            let input = block["input"].to_string();
            (
                start,
                vec![delta(
                    json!({"type": "input_json_delta", "partial_json": input}),
                )],
            )
        }
        _ => (block.clone(), Vec::new()),
    };
    let mut parts = vec![event(&json!({
        "type": "content_block_start", "index": index, "content_block": start,
    }))];
    parts.extend(deltas);
    parts.push(event(
        &json!({"type": "content_block_stop", "index": index}),
    ));
    parts
}
