//! Connections that break, streams that do not end, and tunnels that are refused.

use serde_json::json;
use tokio::io::AsyncWriteExt;
use wiremock::ResponseTemplate;

use super::support::*;
use crate::{Client, ErrorKind, Keys};

/// A whole answer, as an event.
fn whole() -> String {
    event(&json!({ "candidates": [{
        "content": { "parts": [{ "text": "looks whole" }] }, "finishReason": "STOP",
    }] }))
}

#[tokio::test]
async fn a_connection_that_breaks_half_way_gives_no_half_answer() {
    let url = raw(|mut stream| async move {
        read_request(&mut stream).await;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999";
        let half = format!("{head}\r\n\r\n{}", whole());
        stream.write_all(half.as_bytes()).await.unwrap();
    })
    .await;
    let clock = VirtualClock::default();
    let builder = Client::builder(Keys::parse("k1,k2").unwrap()).base_url(url);
    let client = build(builder, &clock);
    let error = client.generate_stream(&question(), &mut |_| {}).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Network);
    let text = error.to_string();
    assert!(
        text.starts_with("the connection broke to 127.0.0.1: "),
        "{text}"
    );
    assert!(text.ends_with(" (after 2 attempts)"), "{text}");
    assert_eq!(clock.waits(), [secs(1)]);
}

#[tokio::test]
async fn a_stream_that_ends_without_a_reason_gives_no_half_answer() {
    let part = event(&part("looks whole."));
    for body in [part.clone(), format!("{part}data: {{\"cand"), String::new()] {
        let reply = ResponseTemplate::new(200).set_body_raw(body.clone(), "text/event-stream");
        let stage = Stage::new("k1,k2", [reply]).await;
        let error = stage.stream().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Network, "{body:?}");
        let expected = "the stream of 127.0.0.1 ended before the answer did (after 2 attempts)";
        assert_eq!(error.to_string(), expected, "{body:?}");
        let good = ResponseTemplate::new(200).set_body_raw(whole(), "text/event-stream");
        let bad = ResponseTemplate::new(200).set_body_raw(body, "text/event-stream");
        let stage = Stage::new("k1,k2", [bad, good]).await;
        assert_eq!(stage.stream().await.unwrap().text, "looks whole");
        assert_eq!(stage.script.keys(), ["k1", "k1"]);
    }
}

/// TLS goes through a tunnel, in which the proxy sees neither path nor key.
#[tokio::test]
async fn a_proxy_is_asked_for_a_tunnel_where_there_is_tls() {
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let url = raw(move |mut stream| {
        let tell = tell.clone();
        async move {
            let request = read_request(&mut stream).await;
            let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(refusal.as_bytes()).await.unwrap();
            tell.send(request).unwrap();
        }
    })
    .await;
    let builder = Client::builder(Keys::parse("AIzaPlanted-0001").unwrap());
    let builder = builder.base_url("https://gemini.invalid").proxy(url);
    let client = build(builder, &VirtualClock::default());
    let error = client.generate(&question()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Network);
    let text = error.to_string();
    assert!(
        text.starts_with("cannot connect to gemini.invalid: "),
        "{text}"
    );
    let request = told.recv().await.unwrap();
    let expected = "CONNECT gemini.invalid:443 HTTP/1.1\r\n";
    assert!(request.starts_with(expected), "{request}");
    assert!(!request.contains("Planted"), "{request}");
}
