//! The Gemini API, for our own client and for Gemini CLI, answering from a script.
//!
//! Turns added with [`MockGemini::next`] are given out first, in order. Then the newest user text
//! that contains the key of a script decides; the step is the number of model contents after it.
//! Otherwise a request for JSON gets an object with every property that its schema names, and any
//! other request gets `MOCK-REPLY`.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};

use crate::http::{Part, Request, Response, Server};
use crate::log::{Recorded, RequestLog};
use crate::wait::Gate;

/// Properties by which Gemini CLI's own questions about a turn are known.
const ROUTING: [&str; 3] = ["complexity_score", "model_choice", "next_speaker"];

/// One answer of the Gemini API.
#[derive(Debug, Clone)]
pub struct GeminiTurn {
    status: u16,
    body: Body,
    finish: &'static str,
    gate: Option<Gate>,
    cut: bool,
    headers: Vec<(&'static str, String)>,
}

#[derive(Debug, Clone)]
enum Body {
    /// Parts of the only candidate.
    Parts(Vec<Value>),
    /// The whole document, as it is.
    Raw(Value),
}

impl GeminiTurn {
    /// A candidate with one text part.
    pub fn text(text: &str) -> Self {
        Self::parts(vec![json!({"text": text})])
    }

    /// A candidate that calls a function.
    pub fn function(name: &str, args: &Value) -> Self {
        Self::parts(vec![json!({"functionCall": {"name": name, "args": args}})])
    }

    /// An error in the API's own form, such as 503 and `UNAVAILABLE`.
    pub fn error(status: u16, kind: &str, message: &str) -> Self {
        let error = json!({"error": {"code": status, "message": message, "status": kind}});
        Self {
            status,
            ..Self::raw(error)
        }
    }

    /// A document with status 200 that is sent as it is, however broken.
    pub fn raw(document: Value) -> Self {
        Self {
            body: Body::Raw(document),
            ..Self::parts(Vec::new())
        }
    }

    /// Another reason to finish than `STOP`: `MAX_TOKENS`, `SAFETY`.
    #[must_use]
    pub fn with_finish_reason(mut self, reason: &'static str) -> Self {
        self.finish = reason;
        self
    }

    /// One more header on the answer, such as `retry-after`.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Holds a streamed answer back until the gate opens; a whole answer waits before its body.
    #[must_use]
    pub fn held_by(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// Breaks the connection in place of sending the body.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.cut = true;
        self
    }

    fn parts(parts: Vec<Value>) -> Self {
        Self {
            status: 200,
            body: Body::Parts(parts),
            finish: "STOP",
            gate: None,
            cut: false,
            headers: Vec::new(),
        }
    }
}

#[derive(Debug, Default)]
struct Script {
    next: VecDeque<GeminiTurn>,
    rules: Vec<(String, Vec<GeminiTurn>)>,
    models: Vec<Value>,
}

/// A Gemini API on a free loopback port.
///
/// It answers `GET .../models`, `POST .../models/NAME:generateContent`, `:streamGenerateContent`
/// and `:countTokens`, under any version prefix.
#[derive(Debug)]
pub struct MockGemini {
    server: Server,
    script: Arc<Mutex<Script>>,
    log: RequestLog,
}

impl MockGemini {
    /// Starts a mock that knows no script.
    pub fn start() -> Self {
        let script = Arc::new(Mutex::new(Script {
            models: vec![model("gemini-3.5-flash-lite"), model("gemini-3.8-flash")],
            ..Script::default()
        }));
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

    /// The base address, without a version and without a slash at the end.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// What the mock was asked so far. Requests for content are of the kind `conversation`.
    pub fn log(&self) -> &RequestLog {
        &self.log
    }

    /// Gives this answer to the next request for content that no earlier `next` claims.
    pub fn next(&self, turn: GeminiTurn) {
        self.edit(|script| script.next.push_back(turn));
    }

    /// Answers user texts that contain `key` with these turns, one a request.
    pub fn on(&self, key: &str, turns: impl IntoIterator<Item = GeminiTurn>) {
        let rule = (key.to_owned(), turns.into_iter().collect());
        self.edit(|script| script.rules.push(rule));
    }

    /// Lists these models in place of two of ours, each an object of the API.
    pub fn set_models(&self, models: Vec<Value>) {
        self.edit(|script| script.models = models);
    }

    fn edit(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.script.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn model(name: &str) -> Value {
    json!({
        "name": format!("models/{name}"), "displayName": name, "version": "001",
        "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536, "thinking": true,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    })
}

fn answer(request: &Request, script: &mut Script, log: &RequestLog) -> Response {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
    let verb = request.path.rsplit_once(':').map_or("", |(_, verb)| verb);
    match (request.method.as_str(), verb) {
        ("GET", _) if request.path.ends_with("/models") => {
            log.push(Recorded::new(request, body, "models"));
            Response::json(200, &json!({"models": script.models}))
        }
        ("POST", "countTokens") => {
            log.push(Recorded::new(request, body, "count"));
            Response::json(200, &json!({"totalTokens": request.body.len() / 4}))
        }
        ("POST", "generateContent" | "streamGenerateContent") => {
            let turn = choose(&body, script);
            log.push(Recorded::new(request, body, "conversation"));
            reply(request, turn, verb == "streamGenerateContent")
        }
        _ => {
            log.push(Recorded::new(request, body, "other"));
            let error = GeminiTurn::error(404, "NOT_FOUND", "the mock has no such path");
            reply(request, error, false)
        }
    }
}

fn choose(body: &Value, script: &mut Script) -> GeminiTurn {
    let config = &body["generationConfig"];
    let wants_json = config["responseMimeType"] == "application/json";
    // Gemini CLI asks a small model first, in JSON, how hard the turn is: that isn't the turn.
    let schema = &config["responseJsonSchema"]["properties"];
    let is_routing = ROUTING.iter().any(|property| schema[property].is_object());
    if !is_routing {
        if let Some(turn) = script.next.pop_front() {
            return turn;
        }
        if let Some(turn) = scripted(body, &script.rules) {
            return turn;
        }
    }
    if wants_json {
        let schema = ["responseJsonSchema", "responseSchema"]
            .into_iter()
            .map(|key| &config[key])
            .find(|schema| schema.is_object());
        return GeminiTurn::text(&schema.map_or(json!({}), example).to_string());
    }
    GeminiTurn::text("MOCK-REPLY")
}

fn scripted(body: &Value, rules: &[(String, Vec<GeminiTurn>)]) -> Option<GeminiTurn> {
    let contents = body["contents"].as_array()?;
    for (at, content) in contents
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, c)| c["role"] != "model")
    {
        let parts = content["parts"].as_array().map_or(&[][..], Vec::as_slice);
        let holds = |key: &str| {
            parts
                .iter()
                .any(|part| part["text"].as_str().is_some_and(|text| text.contains(key)))
        };
        if let Some((_, turns)) = rules.iter().find(|(key, _)| holds(key)) {
            let done = contents[at..]
                .iter()
                .filter(|c| c["role"] == "model")
                .count();
            return turns.get(done).cloned();
        }
    }
    None
}

/// A value that a JSON schema accepts, as plain as possible.
fn example(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    let kind = schema["type"]
        .as_str()
        .unwrap_or("object")
        .to_ascii_lowercase();
    match kind.as_str() {
        "string" => json!("mock"),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or(json!(1)),
        "boolean" => json!(false),
        "array" => json!([]),
        _ => {
            let none = Map::new();
            let properties = schema["properties"].as_object().unwrap_or(&none);
            properties
                .iter()
                .map(|(key, schema)| (key.clone(), example(schema)))
                .collect()
        }
    }
}

fn reply(request: &Request, turn: GeminiTurn, streamed: bool) -> Response {
    let GeminiTurn {
        status,
        body,
        finish,
        gate,
        cut,
        headers,
    } = turn;
    let document = match body {
        Body::Raw(document) => document,
        Body::Parts(parts) => {
            let (input, output) = (request.body.len() / 4, parts.len() * 5);
            json!({
                "candidates": [{
                    "content": {"role": "model", "parts": parts}, "finishReason": finish, "index": 0,
                }],
                "usageMetadata": {
                    "promptTokenCount": input, "candidatesTokenCount": output,
                    "totalTokenCount": input + output,
                },
                "modelVersion": "mock",
                "responseId": "mock",
            })
        }
    };
    let mut response = if streamed && status == 200 {
        Response::events(vec![Response::event(None, &document)])
    } else {
        Response::json(status, &document)
    };
    if cut {
        response.body_instead(vec![Part::Cut]);
    }
    if let Some(gate) = gate {
        response.wait_first(gate);
    }
    for (name, value) in headers {
        response = response.with_header(name, value);
    }
    response
}
