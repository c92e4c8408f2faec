//! Codex's app server: JSON-RPC over the child's standard streams.

use std::collections::VecDeque;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::json_lines::JsonLines;

/// How long an answer or an awaited event may take.
const LIMIT: Duration = Duration::from_mins(2);

/// A running app server. Dropping it closes its input, waits, and kills it where that fails.
#[derive(Debug)]
pub struct AppServer {
    lines: JsonLines,
    /// Events that came while an answer was awaited.
    events: VecDeque<Value>,
    next_id: u64,
}

impl AppServer {
    /// Starts the server and shakes hands, with the experimental methods switched on.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut server = Self {
            lines: JsonLines::start(command),
            events: VecDeque::new(),
            next_id: 1,
        };
        let hello = json!({
            "clientInfo": {"name": "ctxfold-tests", "title": null, "version": "0"},
            "capabilities": {"experimentalApi": true},
        });
        server
            .request("initialize", hello)
            .expect("the app server shakes hands");
        server.lines.send(&json!({"method": "initialized"}));
        server
    }

    /// Calls a method and waits for its result.
    ///
    /// # Errors
    ///
    /// The `error` object that the server answers with.
    ///
    /// # Panics
    ///
    /// When the server ends or answers nothing within two minutes.
    pub fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.next_id;
        self.next_id += 1;
        let mut request = json!({"id": id, "method": method});
        request["params"] = params;
        self.lines.send(&request);
        let end = Instant::now() + LIMIT;
        loop {
            let mut message = self.lines.receive(end, method);
            if message["id"] == id && message.get("method").is_none() {
                return match message.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(message["result"].take()),
                };
            }
            self.events.push_back(message);
        }
    }

    /// Waits for an event of that method whose parameters satisfy `test`, and returns them. Events
    /// that came before it are forgotten.
    ///
    /// # Panics
    ///
    /// When the server ends, or no such event comes within two minutes.
    pub fn wait_for(&mut self, method: &str, test: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + LIMIT;
        loop {
            let mut event = match self.events.pop_front() {
                Some(event) => event,
                None => self.lines.receive(end, method),
            };
            if event["method"] == method && test(&event["params"]) {
                return event["params"].take();
            }
        }
    }

    /// Starts a turn and waits until it has ended; returns the ended turn.
    ///
    /// # Panics
    ///
    /// When the server refuses it or does not end it.
    pub fn turn(&mut self, thread: &str, text: &str) -> Value {
        let input = json!([{"type": "text", "text": text}]);
        let params = json!({"threadId": thread, "input": input});
        self.request("turn/start", params).expect("the turn starts");
        let mut ended = self.wait_for("turn/completed", |params| params["threadId"] == thread);
        ended["turn"].take()
    }

    /// Compacts a thread as `/compact` does, and waits until that is done.
    ///
    /// # Panics
    ///
    /// When the server refuses it or does not end it.
    pub fn compact(&mut self, thread: &str) {
        let params = json!({"threadId": thread});
        self.request("thread/compact/start", params)
            .expect("the compaction starts");
        self.wait_for("turn/completed", |params| params["threadId"] == thread);
    }

    /// The id of the server's process.
    pub fn pid(&self) -> u32 {
        self.lines.pid()
    }

    /// Kills the server at once, as a crash would.
    pub fn kill(self) {
        self.lines.kill();
    }
}
