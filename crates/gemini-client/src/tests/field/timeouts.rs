//! Servers that are slow, silent or not there, and the one deadline over all of it.
//!
//! Where Tokio's own clock is meant, it is paused: it jumps to the next timer instead of waiting.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use crate::tests::support::*;
use crate::{Client, ErrorKind, Keys};

fn keys() -> Keys {
    Keys::parse("k1,k2").unwrap()
}

/// A server that takes connections and never says a word.
async fn mute() -> String {
    raw(|stream| async move {
        std::future::pending::<()>().await;
        drop(stream);
    })
    .await
}

/// js-genai#1277, gpt-load#9, python-genai#1411: limits that were fixed, or none.
#[tokio::test(start_paused = true)]
async fn a_server_that_sleeps_is_left_at_the_deadline() {
    let url = mute().await;
    for (deadline, text) in [(None, "60 s"), (Some(secs(960)), "960 s")] {
        let builder = Client::builder(keys()).base_url(&url);
        let builder = match deadline {
            None => builder,
            Some(deadline) => builder.deadline(deadline),
        };
        let client = builder.build().unwrap();
        let begin = Instant::now();
        let error = client.generate(&question()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Deadline);
        assert_eq!(
            error.to_string(),
            format!("no answer from Gemini within {text}")
        );
        assert!(error.is_temporary());
        assert_eq!(
            begin.elapsed().as_secs(),
            deadline.unwrap_or(secs(60)).as_secs()
        );
    }
}

/// omi#9583: a model that thinks for minutes before its first word is not dead.
#[tokio::test]
async fn the_first_word_of_a_stream_may_take_longer_than_the_idle_limit() {
    let clock = VirtualClock::default();
    let server_clock = clock.clone();
    let url = raw(move |mut stream| {
        let clock = server_clock.clone();
        async move {
            read_request(&mut stream).await;
            clock.advance(secs(90));
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                        connection: close\r\n\r\n";
            let whole = json!({ "candidates": [{
                "content": { "parts": [{ "text": "at last" }] }, "finishReason": "STOP",
            }] });
            let reply = format!("{head}{}", event(&whole));
            stream.write_all(reply.as_bytes()).await.unwrap();
        }
    })
    .await;
    let builder = Client::builder(keys()).base_url(url).deadline(secs(300));
    let client = build(builder.idle_timeout(secs(60)), &clock);
    let answer = client.generate_stream(&question(), &mut |_| {}).await;
    assert_eq!(answer.unwrap().text, "at last");
}

/// The peer takes the connection and says nothing to the TLS greeting.
#[tokio::test(start_paused = true)]
async fn a_connection_that_does_not_come_about_has_a_limit_of_its_own() {
    let url = mute().await.replace("http://", "https://");
    let builder = Client::builder(keys()).base_url(url);
    for (builder, limit) in [(builder.clone(), 10), (builder.connect_timeout(secs(5)), 5)] {
        let client = builder.build().unwrap();
        let begin = Instant::now();
        let error = client.generate(&question()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Network);
        let expected = format!("no connection to 127.0.0.1 within {limit} s (after 2 attempts)");
        assert_eq!(error.to_string(), expected);
        // Twice the limit, and the wait between.
        assert_eq!(begin.elapsed().as_secs(), 2 * limit + 1);
    }
}

/// Every attempt takes 25 s, and so the third is cut off: attempts have no time of their own.
#[tokio::test]
async fn one_deadline_holds_for_all_attempts_together() {
    let clock = VirtualClock::default();
    let attempts = Arc::new(AtomicU32::new(0));
    let begun = Arc::new(Mutex::new(Vec::new()));
    let url = {
        let (clock, attempts, begun) = (clock.clone(), attempts.clone(), begun.clone());
        raw(move |mut stream| {
            let (clock, attempts, begun) = (clock.clone(), attempts.clone(), begun.clone());
            async move {
                read_request(&mut stream).await;
                begun.lock().unwrap().push(clock.time().as_secs());
                clock.advance(secs(25));
                if attempts.fetch_add(1, Ordering::Relaxed) == 2 {
                    std::future::pending::<()>().await;
                }
                let body = error_body(503, "busy", &json!(null)).to_string();
                let head = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n";
                let reply = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
                stream.write_all(reply.as_bytes()).await.unwrap();
            }
        })
        .await
    };
    let client = build(Client::builder(keys()).base_url(url), &clock);
    let error = client.generate(&question()).await.unwrap_err();
    assert_eq!(*begun.lock().unwrap(), [0, 26, 53]);
    assert_eq!(error.kind(), ErrorKind::Deadline);
    let expected = "no answer from Gemini within 60 s; before that: Gemini HTTP 503: busy";
    assert_eq!(error.to_string(), expected);
    assert_eq!(error.status(), Some(503));
}

/// letta#2861: the server gave up itself; the same request would take as long again.
#[tokio::test]
async fn a_504_is_not_repeated() {
    let late = error(
        504,
        "Deadline expired before operation could complete.",
        &json!(null),
    );
    let stage = Stage::new("k1,k2", [late]).await;
    let error = stage.fail().await;
    assert_eq!(error.kind(), ErrorKind::Server);
    assert_eq!(stage.script.keys(), ["k1"]);
    assert_eq!(stage.clock.waits(), []);
}
