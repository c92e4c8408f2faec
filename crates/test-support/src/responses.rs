//! The Responses API of OpenAI, as far as Codex uses it, answering from a script.
//!
//! An answer is chosen from the request alone. The newest prompt of the user is looked up among the
//! keys of the scripts; the step taken follows from how many tool outputs came after that prompt.
//! With no script, or at its end, the reply is `MOCK-REPLY to: ` and the prompt's end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::http::{Part, Request, Response, Server};
use crate::log::{Recorded, RequestLog};
use crate::wait::Gate;

/// Text of the prompt by which Codex asks for a summary of its thread.
const SUMMARY_REQUEST: &str = "CONTEXT CHECKPOINT COMPACTION";

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// One item that the model answers with.
#[derive(Debug, Clone)]
enum Item {
    Message(String),
    Reasoning(String),
    Shell(String),
    Patch(String),
    Function { name: String, arguments: Value },
}

impl Item {
    fn is_call(&self) -> bool {
        !matches!(self, Self::Message(_) | Self::Reasoning(_))
    }
}

/// One answer of the model to Codex: items in order, or an error.
#[derive(Debug, Clone, Default)]
pub struct ResponsesTurn {
    items: Vec<Item>,
    input_tokens: Option<u64>,
    error: Option<(u16, String)>,
    gate: Option<Gate>,
    cut: bool,
}

impl ResponsesTurn {
    /// An answer with nothing in it yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// An answer of one message.
    pub fn text(text: &str) -> Self {
        Self::new().and_text(text)
    }

    /// An answer that runs one shell command.
    pub fn shell(command: &str) -> Self {
        Self::new().and_shell(command)
    }

    /// An HTTP error.
    pub fn error(status: u16, message: &str) -> Self {
        Self {
            error: Some((status, message.to_owned())),
            ..Self::default()
        }
    }

    /// Adds a message.
    #[must_use]
    pub fn and_text(self, text: &str) -> Self {
        self.and(Item::Message(text.to_owned()))
    }

    /// Adds a reasoning item with this summary and an opaque encrypted part.
    #[must_use]
    pub fn and_reasoning(self, summary: &str) -> Self {
        self.and(Item::Reasoning(summary.to_owned()))
    }

    /// Adds a call of whatever shell tool the request offers; several make parallel calls.
    #[must_use]
    pub fn and_shell(self, command: &str) -> Self {
        self.and(Item::Shell(command.to_owned()))
    }

    /// Adds a call of the `apply_patch` tool.
    #[must_use]
    pub fn and_patch(self, patch: &str) -> Self {
        self.and(Item::Patch(patch.to_owned()))
    }

    /// Adds a call of a function tool.
    #[must_use]
    pub fn and_function(self, name: &str, arguments: Value) -> Self {
        self.and(Item::Function {
            name: name.to_owned(),
            arguments,
        })
    }

    /// Reports this many input tokens, in place of a quarter of the request's bytes.
    #[must_use]
    pub fn with_input_tokens(mut self, tokens: u64) -> Self {
        self.input_tokens = Some(tokens);
        self
    }

    /// Holds the end of the answer back until the gate opens.
    #[must_use]
    pub fn held_by(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// Breaks the connection before the answer is complete.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.cut = true;
        self
    }

    fn and(mut self, item: Item) -> Self {
        self.items.push(item);
        self
    }

    fn calls(&self) -> usize {
        self.items.iter().filter(|item| item.is_call()).count()
    }
}

#[derive(Debug, Default)]
struct Script {
    rules: Vec<(String, Vec<ResponsesTurn>)>,
    summary: Option<String>,
    next: Vec<ResponsesTurn>,
}

/// A Responses API on a free loopback port.
///
/// It answers `POST /v1/responses` with a stream, `POST /v1/responses/compact`, and `GET
/// /v1/models`; an attempt to open a web socket is answered with 426, so that Codex falls back.
#[derive(Debug)]
pub struct MockResponses {
    server: Server,
    script: Arc<Mutex<Script>>,
    log: RequestLog,
}

impl MockResponses {
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

    /// The base address of the provider, with `/v1`.
    pub fn url(&self) -> String {
        format!("{}/v1", self.server.url())
    }

    /// What the mock was asked so far.
    pub fn log(&self) -> &RequestLog {
        &self.log
    }

    /// Answers prompts that contain `key` with these turns, one a request.
    pub fn on(&self, key: &str, turns: impl IntoIterator<Item = ResponsesTurn>) {
        let rule = (key.to_owned(), turns.into_iter().collect());
        self.edit(|script| script.rules.push(rule));
    }

    /// Answers requests for a summary with this text.
    pub fn set_summary(&self, summary: &str) {
        self.edit(|script| script.summary = Some(summary.to_owned()));
    }

    /// Gives this answer to the very next request for the model, whatever it says.
    pub fn next(&self, turn: ResponsesTurn) {
        self.edit(|script| script.next.push(turn));
    }

    fn edit(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.script.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn answer(request: &Request, script: &mut Script, log: &RequestLog) -> Response {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
    let is_post = request.method == "POST";
    if !is_post {
        log.push(Recorded::new(request, body, "probe"));
        if request.header("upgrade").is_some() {
            return Response::json(426, &error_body("the mock speaks no web sockets"));
        }
        if request.path.ends_with("/models") {
            let none = json!({"object": "list", "data": [], "models": []});
            return Response::json(200, &none);
        }
        return Response::json(404, &error_body("the mock has no such path"));
    }
    if request.path.ends_with("/responses/compact") {
        log.push(Recorded::new(request, body, "compaction"));
        return Response::json(200, &json!({"output": [encrypted_compaction()]}));
    }
    if !request.path.ends_with("/responses") {
        log.push(Recorded::new(request, body, "other"));
        return Response::json(404, &error_body("the mock has no such path"));
    }
    let input = body["input"].as_array().map_or(&[][..], Vec::as_slice);
    let prompt = newest_prompt(input);
    let triggered = input
        .last()
        .is_some_and(|item| item["type"] == "compaction_trigger");
    let compaction = triggered
        || prompt
            .as_ref()
            .is_some_and(|(text, _)| text.contains(SUMMARY_REQUEST));
    log.push(Recorded::new(
        request,
        body.clone(),
        if compaction {
            "compaction"
        } else {
            "conversation"
        },
    ));
    let next = (!script.next.is_empty()).then(|| script.next.remove(0));
    let turn = match next {
        Some(turn) => turn,
        None if compaction && triggered => {
            return stream(
                &ResponsesTurn::new(),
                &[encrypted_compaction()],
                request.body.len(),
            );
        }
        None if compaction => ResponsesTurn::text(
            script
                .summary
                .as_deref()
                .unwrap_or("MOCK-SUMMARY of the thread"),
        ),
        None => choose(prompt, &script.rules),
    };
    let items: Vec<Value> = turn
        .items
        .iter()
        .map(|item| item_json(item, &body["tools"]))
        .collect();
    stream(&turn, &items, request.body.len())
}

/// The newest thing that the user said, and how many tool outputs came after it.
fn newest_prompt(input: &[Value]) -> Option<(String, usize)> {
    let said_by_user = |item: &Value| {
        let text = text_of(item);
        let is_context = text.starts_with('<') || text.starts_with("# AGENTS.md");
        item["role"] == "user" && !is_context
    };
    let at = input.iter().rposition(said_by_user)?;
    let is_output = |item: &&Value| {
        item["type"]
            .as_str()
            .is_some_and(|t| t.ends_with("_output"))
    };
    Some((
        text_of(&input[at]),
        input[at..].iter().filter(is_output).count(),
    ))
}

/// The step of the script that the prompt is at, or the default reply.
fn choose(
    prompt: Option<(String, usize)>,
    rules: &[(String, Vec<ResponsesTurn>)],
) -> ResponsesTurn {
    let (text, mut outputs) = prompt.unwrap_or_default();
    let rule = rules.iter().find(|(key, _)| text.contains(key));
    for turn in rule.map_or(&[][..], |(_, turns)| turns) {
        match turn.calls() {
            calls if calls == 0 || outputs < calls => return turn.clone(),
            calls => outputs -= calls,
        }
    }
    let skip = text.chars().count().saturating_sub(60);
    let tail: String = text.chars().skip(skip).collect();
    ResponsesTurn::text(&format!("MOCK-REPLY to: {tail}"))
}

fn text_of(item: &Value) -> String {
    match &item["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts
                .iter()
                .filter_map(|part| part["text"].as_str())
                .collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

fn fresh_id(prefix: &str) -> String {
    format!(
        "{prefix}_mock{:012}",
        NEXT_ID.fetch_add(1, Ordering::Relaxed)
    )
}

fn error_body(message: &str) -> Value {
    json!({"error": {"message": message, "type": "mock_error", "code": null}})
}

fn encrypted_compaction() -> Value {
    let id = fresh_id("cmp");
    json!({"type": "compaction", "id": id, "encrypted_content": format!("MOCK-ENCRYPTED-{id}")})
}

/// An item as the API sends it; `tools` is what the request offered.
fn item_json(item: &Item, tools: &Value) -> Value {
    let call = |name: &str, arguments: &Value| {
        json!({
            "type": "function_call", "id": fresh_id("fc"), "name": name,
            "arguments": arguments.to_string(), "call_id": fresh_id("call"),
        })
    };
    match item {
        Item::Message(text) => json!({
            "type": "message", "role": "assistant", "id": fresh_id("msg"),
            "content": [{"type": "output_text", "text": text}],
        }),
        Item::Reasoning(summary) => {
            let id = fresh_id("rs");
            json!({
                "type": "reasoning", "id": id, "content": null,
                "summary": [{"type": "summary_text", "text": summary}],
                "encrypted_content": format!("MOCK-ENCRYPTED-REASONING-{id}"),
            })
        }
        Item::Shell(command) if offers(tools, "exec_command") => {
            call("exec_command", &json!({"cmd": command}))
        }
        Item::Shell(command) if offers(tools, "shell_command") => {
            call("shell_command", &json!({"command": command}))
        }
        Item::Shell(command) => call("shell", &json!({"command": ["bash", "-lc", command]})),
        Item::Patch(patch) => json!({
            "type": "custom_tool_call", "id": fresh_id("ctc"), "name": "apply_patch",
            "call_id": fresh_id("call"), "status": "completed", "input": patch,
        }),
        Item::Function { name, arguments } => call(name, arguments),
    }
}

/// Whether a tool of that name is offered, also inside a namespace.
fn offers(tools: &Value, name: &str) -> bool {
    tools.as_array().into_iter().flatten().any(|tool| {
        tool["name"] == name || (tool["type"] == "namespace" && offers(&tool["tools"], name))
    })
}

fn stream(turn: &ResponsesTurn, items: &[Value], bytes: usize) -> Response {
    if let Some((status, message)) = &turn.error {
        return Response::json(*status, &error_body(message));
    }
    let id = fresh_id("resp");
    let mut parts = vec![event(
        &json!({"type": "response.created", "response": {"id": id}}),
    )];
    for (index, item) in items.iter().enumerate() {
        for kind in ["response.output_item.added", "response.output_item.done"] {
            parts.push(event(
                &json!({"type": kind, "output_index": index, "item": item}),
            ));
        }
    }
    parts.extend(turn.gate.clone().map(Part::Wait));
    if turn.cut {
        parts.push(Part::Cut);
    }
    let input = turn.input_tokens.unwrap_or(bytes as u64 / 4);
    let output = items
        .iter()
        .map(|item| item.to_string().len() as u64)
        .sum::<u64>()
        / 4;
    parts.push(event(&json!({"type": "response.completed", "response": {
        "id": id,
        "output": items,
        "usage": {
            "input_tokens": input, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": output, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": input + output,
        },
    }})));
    Response::events(parts)
}

fn event(data: &Value) -> Part {
    Response::event(data["type"].as_str(), data)
}
