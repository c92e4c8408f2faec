//! A child that speaks JSON, one document a line, over its standard streams.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::process::kill_group;
use crate::wait::poll;

/// How long a child gets to end by itself once its input is closed.
const GRACE: Duration = Duration::from_secs(10);

/// The running child. Dropping it closes its input, waits, and kills it where that fails.
#[derive(Debug)]
pub(crate) struct JsonLines {
    child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
}

impl JsonLines {
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
        Self {
            child,
            stdin,
            messages,
        }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let stdin = self
            .stdin
            .as_mut()
            .expect("the input is open until the child is dropped");
        writeln!(stdin, "{message}").expect("the child takes input");
    }

    /// The next message; panics, saying what was awaited, where none comes in time.
    pub(crate) fn receive(&self, end: Instant, awaited: &str) -> Value {
        let left = end.saturating_duration_since(Instant::now());
        self.messages
            .recv_timeout(left)
            .unwrap_or_else(|error| panic!("the client never answered {awaited}: {error}"))
    }

    /// The id of the process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the child and its group at once, as a crash would.
    pub(crate) fn kill(mut self) {
        kill_group(self.child.id());
        drop(self.child.wait());
    }
}

impl Drop for JsonLines {
    fn drop(&mut self) {
        self.stdin = None;
        let ended = poll(GRACE, || self.child.try_wait().ok().flatten());
        if ended.is_none() {
            kill_group(self.child.id());
            drop(self.child.wait());
        }
    }
}
