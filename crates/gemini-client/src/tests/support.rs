//! A clock that stands still, and servers that answer by script.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request as Received, Respond, ResponseTemplate};

use crate::builder::ClientBuilder;
use crate::clock::{Clock, Sleep};
use crate::transport::Transport;
use crate::{Answer, Client, Error, Keys, Request};

/// Time passes only by `advance` and in waits, which are over at once unless the clock holds them.
#[derive(Clone, Debug, Default)]
pub(super) struct VirtualClock(Arc<Mutex<Time>>);

#[derive(Debug, Default)]
struct Time {
    now: Duration,
    waits: Vec<Duration>,
    alarms: Vec<Waker>,
    holds_waits: bool,
}

impl VirtualClock {
    /// A clock whose waits end by `advance` only.
    pub(super) fn holding() -> Self {
        let clock = Self::default();
        clock.0.lock().unwrap().holds_waits = true;
        clock
    }

    pub(super) fn advance(&self, by: Duration) {
        let mut time = self.0.lock().unwrap();
        time.now += by;
        time.alarms.drain(..).for_each(Waker::wake);
    }

    /// What time it is.
    pub(super) fn time(&self) -> Duration {
        self.0.lock().unwrap().now
    }

    /// The waits that were made, in order.
    pub(super) fn waits(&self) -> Vec<Duration> {
        self.0.lock().unwrap().waits.clone()
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Duration {
        self.0.lock().unwrap().now
    }

    fn wait(&self, delay: Duration) -> Sleep {
        let clock = self.clone();
        Box::pin(async move {
            let (until, held) = {
                let mut time = clock.0.lock().unwrap();
                time.waits.push(delay);
                (time.now + delay, time.holds_waits)
            };
            if !held {
                clock.advance(delay);
            }
            clock.alarm(until).await;
        })
    }

    fn alarm(&self, at: Duration) -> Sleep {
        let clock = self.clone();
        Box::pin(std::future::poll_fn(move |context| {
            let mut time = clock.0.lock().unwrap();
            if time.now >= at {
                return Poll::Ready(());
            }
            time.alarms.push(context.waker().clone());
            Poll::Pending
        }))
    }
}

pub(super) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Answers in the order given and repeats the last; remembers the keys and bodies that came.
#[derive(Clone)]
pub(super) struct Script(Arc<Mutex<Played>>);

struct Played {
    left: VecDeque<ResponseTemplate>,
    keys: Vec<String>,
    bodies: Vec<Value>,
}

impl Script {
    fn new(answers: impl IntoIterator<Item = ResponseTemplate>) -> Self {
        let left = answers.into_iter().collect();
        Self(Arc::new(Mutex::new(Played {
            left,
            keys: Vec::new(),
            bodies: Vec::new(),
        })))
    }

    /// The bodies that were sent, in order.
    pub(super) fn bodies(&self) -> Vec<Value> {
        self.0.lock().unwrap().bodies.clone()
    }

    /// The keys that were sent, in order.
    pub(super) fn keys(&self) -> Vec<String> {
        self.0.lock().unwrap().keys.clone()
    }
}

impl Respond for Script {
    fn respond(&self, request: &Received) -> ResponseTemplate {
        let mut played = self.0.lock().unwrap();
        played.keys.push(key_of(request));
        played.bodies.push(request.body_json().unwrap());
        if played.left.len() > 1 {
            played.left.pop_front().unwrap()
        } else {
            played.left[0].clone()
        }
    }
}

/// The key of a request, after a look that it is nowhere else.
pub(super) fn key_of(request: &Received) -> String {
    let key = request
        .headers
        .get("x-goog-api-key")
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    assert!(
        !request.url.as_str().contains(&key),
        "the key is in the URL"
    );
    assert!(!request.headers.contains_key("authorization"));
    key
}

/// A client, its clock, and the server it talks to.
pub(super) struct Stage {
    pub(super) client: Client,
    pub(super) clock: VirtualClock,
    pub(super) script: Script,
    server: MockServer,
}

impl Stage {
    pub(super) async fn new(
        keys: &str,
        answers: impl IntoIterator<Item = ResponseTemplate>,
    ) -> Self {
        let script = Script::new(answers);
        let server = MockServer::start().await;
        Mock::given(any())
            .respond_with(script.clone())
            .mount(&server)
            .await;
        let clock = VirtualClock::default();
        let client = build(
            Client::builder(Keys::parse(keys).unwrap()).base_url(server.uri()),
            &clock,
        );
        Self {
            client,
            clock,
            script,
            server,
        }
    }

    pub(super) fn url(&self) -> String {
        self.server.uri()
    }

    pub(super) async fn ask(&self) -> Result<Answer, Error> {
        self.client.generate(&question()).await
    }

    pub(super) async fn fail(&self) -> Error {
        self.ask().await.unwrap_err()
    }

    pub(super) async fn stream(&self) -> Result<Answer, Error> {
        self.client.generate_stream(&question(), &mut |_| {}).await
    }
}

pub(super) fn build(builder: ClientBuilder, clock: &VirtualClock) -> Client {
    let transport = Transport::new(builder.settings()).unwrap();
    builder.build_with(transport, Arc::new(clock.clone()))
}

pub(super) fn question() -> Request {
    Request::new("gemini-3.5-flash-lite", "why?")
}

/// A good answer.
pub(super) fn text(text: &str) -> ResponseTemplate {
    answer(&json!({ "candidates": [{
            "content": { "parts": [{ "text": text }] }, "finishReason": "STOP",
        }] }))
}

pub(super) fn answer(document: &Value) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_json(document)
}

/// An error in the API's usual form.
pub(super) fn error(status: u16, message: &str, details: &Value) -> ResponseTemplate {
    ResponseTemplate::new(status).set_body_json(error_body(status, message, details))
}

pub(super) fn error_body(status: u16, message: &str, details: &Value) -> Value {
    json!({ "error": {
        "code": status, "message": message, "status": "SOME_STATUS", "details": details,
    } })
}

pub(super) fn retry_info(delay: &str) -> Value {
    json!([{ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay }])
}

pub(super) fn event(document: &Value) -> String {
    format!("data: {document}\r\n\r\n")
}

pub(super) fn part(text: &str) -> Value {
    json!({ "candidates": [{ "content": { "parts": [{ "text": text }] } }] })
}

/// Lets everybody else run until it is so.
pub(super) async fn until(what: impl Fn() -> bool) {
    for _ in 0..200_000 {
        if what() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("it did not come to it");
}

/// A server whose every connection is in the hands of the test; its base URL comes back.
pub(super) async fn raw<F: Future<Output = ()> + Send + 'static>(
    mut serve: impl FnMut(TcpStream) -> F + Send + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    url
}

/// Reads one request, head and body.
pub(super) async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return text;
            }
        }
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).await.unwrap();
        assert!(count > 0, "the client went away");
        bytes.extend_from_slice(&piece[..count]);
    }
}
