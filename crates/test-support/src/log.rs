//! What a mock was asked: every request in order, with its body parsed.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::http::Request;

/// One request as a mock received it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Recorded {
    /// `GET`, `HEAD`, `POST`.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// What followed the question mark in the address.
    pub query: String,
    /// Header names in lower case, with their values.
    pub headers: Vec<(String, String)>,
    /// The body as JSON, or null where it is none.
    pub body: Value,
    /// The size of the body, in bytes.
    pub bytes: usize,
    /// What the mock took the request for: `conversation`, `compaction`, `count`, `probe`, `other`.
    pub kind: &'static str,
}

impl Recorded {
    pub(crate) fn new(request: &Request, body: Value, kind: &'static str) -> Self {
        Self {
            method: request.method.clone(),
            path: request.path.clone(),
            query: request.query.clone(),
            headers: request.headers.clone(),
            body,
            bytes: request.body.len(),
            kind,
        }
    }

    /// The value of a header, by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// The items of an array at the top of the body, or none: `messages`, `input`, `contents`.
    pub fn array(&self, key: &str) -> &[Value] {
        self.body
            .get(key)
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }

    /// The `messages` array of a Messages API request.
    pub fn messages(&self) -> &[Value] {
        self.array("messages")
    }

    /// The `input` array of a Responses API request.
    pub fn input(&self) -> &[Value] {
        self.array("input")
    }

    /// The `contents` array of a Gemini API request.
    pub fn contents(&self) -> &[Value] {
        self.array("contents")
    }

    /// Whether the body holds this text anywhere inside a string value or key.
    pub fn holds(&self, text: &str) -> bool {
        holds(&self.body, text)
    }
}

/// Whether any string inside `value` holds `text`; escapes don't get in the way.
pub(crate) fn holds(value: &Value, text: &str) -> bool {
    match value {
        Value::String(string) => string.contains(text),
        Value::Array(items) => items.iter().any(|item| holds(item, text)),
        Value::Object(map) => map.iter().any(|(k, v)| k.contains(text) || holds(v, text)),
        _ => false,
    }
}

/// The requests of one mock, in the order in which they came. Clones share the same log.
#[derive(Debug, Clone, Default)]
pub struct RequestLog {
    inner: Arc<(Mutex<Vec<Recorded>>, Condvar)>,
}

impl RequestLog {
    pub(crate) fn push(&self, recorded: Recorded) {
        let (requests, changed) = &*self.inner;
        requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(recorded);
        changed.notify_all();
    }

    /// Every request so far.
    pub fn all(&self) -> Vec<Recorded> {
        self.inner
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Requests that ask for an answer of the model, without those that ask for a summary.
    pub fn conversations(&self) -> Vec<Recorded> {
        self.of_kind("conversation")
    }

    /// Requests by which a client compacts its own conversation.
    pub fn compactions(&self) -> Vec<Recorded> {
        self.of_kind("compaction")
    }

    /// The newest request that asks for an answer of the model.
    ///
    /// # Panics
    ///
    /// When there was none.
    pub fn last(&self) -> Recorded {
        self.conversations()
            .pop()
            .expect("the client sent no request to the model")
    }

    /// Forgets the requests so far, and returns them.
    pub fn take(&self) -> Vec<Recorded> {
        std::mem::take(&mut *self.inner.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until a request satisfies `test` and returns the first that does.
    pub fn wait_for(&self, limit: Duration, test: impl Fn(&Recorded) -> bool) -> Option<Recorded> {
        let (requests, changed) = &*self.inner;
        let guard = requests.lock().unwrap_or_else(PoisonError::into_inner);
        let (guard, _) = changed
            .wait_timeout_while(guard, limit, |requests| !requests.iter().any(&test))
            .unwrap_or_else(PoisonError::into_inner);
        guard.iter().find(|recorded| test(recorded)).cloned()
    }

    fn of_kind(&self, kind: &str) -> Vec<Recorded> {
        self.all()
            .into_iter()
            .filter(|recorded| recorded.kind == kind)
            .collect()
    }
}
