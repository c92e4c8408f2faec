//! Requests, answers, and servers whose connections are in the hands of a test.

use ctxfold_gemini_client::{Client, ClientBuilder, Keys, Request};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, ResponseTemplate};

pub(crate) const MODEL: &str = "gemini-3.5-flash-lite";

pub(crate) fn builder(keys: &str, url: &str) -> ClientBuilder {
    Client::builder(Keys::parse(keys).unwrap()).base_url(url)
}

pub(crate) fn client(url: &str) -> Client {
    builder("k1", url).build().unwrap()
}

pub(crate) fn question() -> Request {
    Request::new(MODEL, "why?")
}

/// A whole answer.
pub(crate) fn whole(text: &str) -> Value {
    json!({ "candidates": [{
        "content": { "parts": [{ "text": text }] }, "finishReason": "STOP",
    }] })
}

pub(crate) fn answer(text: &str) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_json(whole(text))
}

/// A server that answers everything in one way.
pub(crate) async fn always(answer: ResponseTemplate) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(any()).respond_with(answer).mount(&server).await;
    server
}

/// A server whose every connection is handed to `serve`, in turn; its base URL comes back.
pub(crate) async fn raw<F: Future<Output = ()> + Send + 'static>(
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

/// A base URL on which nobody listens.
pub(crate) async fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

/// Reads one request, head and body.
pub(crate) async fn read_request(stream: &mut TcpStream) -> String {
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
