//! Codex's app server: JSON-RPC, one message a line, over the child's standard streams.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::process::kill_group;
use crate::wait::poll;

/// How long an answer or an awaited event may take.
const LIMIT: Duration = Duration::from_mins(2);
/// How long a server gets to end by itself once its input is closed.
const GRACE: Duration = Duration::from_secs(10);

/// A running app server. Dropping it closes its input, waits, and kills it where that fails.
#[derive(Debug)]
pub struct AppServer {
    child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    /// Events that came while an answer was awaited.
    events: VecDeque<Value>,
    next_id: u64,
}

impl AppServer {
    /// Starts the server and shakes hands, with the experimental methods switched on.
    pub(crate) fn start(command: &mut Command) -> Self {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("failed to start {command:?}: {error}"));
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let (sender, messages) = mpsc::channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or(Value::Null);
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let mut server = Self {
            child,
            stdin,
            messages,
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
        server.send(&json!({"method": "initialized"}));
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
        self.send(&request);
        let end = Instant::now() + LIMIT;
        loop {
            let mut message = self.receive(end, method);
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
                None => self.receive(end, method),
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

    /// Kills the server at once, as a crash would.
    pub fn kill(mut self) {
        kill_group(self.child.id());
        drop(self.child.wait());
    }

    fn send(&mut self, message: &Value) {
        let stdin = self
            .stdin
            .as_mut()
            .expect("the input is open until the server is dropped");
        writeln!(stdin, "{message}").expect("the app server takes requests");
    }

    fn receive(&self, end: Instant, awaited: &str) -> Value {
        let left = end.saturating_duration_since(Instant::now());
        self.messages
            .recv_timeout(left)
            .unwrap_or_else(|error| panic!("the app server never answered {awaited}: {error}"))
    }
}

impl Drop for AppServer {
    fn drop(&mut self) {
        self.stdin = None;
        let ended = poll(GRACE, || self.child.try_wait().ok().flatten());
        if ended.is_none() {
            kill_group(self.child.id());
            drop(self.child.wait());
        }
    }
}
