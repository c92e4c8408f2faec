//! What calls of one client learn from each other: thinking settings, cool-downs, turns.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::tests::support::*;
use crate::{Client, ErrorKind, Keys, Level, Request, Thinking};

fn thinking(model: &str, level: Level) -> Request {
    Request {
        thinking: Thinking::Level(level),
        ..Request::new(model, "why?")
    }
}

/// The level that each body asked for.
fn levels(bodies: &[Value]) -> Vec<Option<&str>> {
    bodies
        .iter()
        .map(|body| body.pointer("/generationConfig/thinkingConfig/thinkingLevel"))
        .map(|level| level.and_then(Value::as_str))
        .collect()
}

/// Some models have no level MINIMAL, and only the refusal tells.
#[tokio::test]
async fn a_refused_thinking_setting_is_dropped_and_remembered_for_the_model() {
    let refusal = "Thinking level MINIMAL is not supported for this model. Please retry with \
                   other thinking level.";
    let refused = error(400, refusal, &json!(null));
    let stage = Stage::new("k1,k2", [refused, text("ok")]).await;
    let ask = async |model, level| {
        let answer = stage
            .client
            .generate(&thinking(model, level))
            .await
            .unwrap();
        assert_eq!(answer.key_place, 1);
        answer.thinking_dropped
    };
    assert!(ask("gemini-3.8-flash", Level::Minimal).await);
    assert!(ask("gemini-3.8-flash", Level::Minimal).await);
    assert!(ask("models/gemini-3.8-flash", Level::Minimal).await);
    assert!(!ask("gemini-3.8-flash", Level::Low).await);
    assert!(!ask("gemini-3.5-flash", Level::Minimal).await);
    let minimal = Some("MINIMAL");
    let expected = [minimal, None, None, None, Some("LOW"), minimal];
    assert_eq!(levels(&stage.script.bodies()), expected);
    assert_eq!(stage.clock.waits(), [], "there is nothing to wait for");
}

#[tokio::test]
async fn a_refusal_that_goes_on_without_the_setting_is_final() {
    let refused = error(400, "thinking is not for you", &json!(null));
    let stage = Stage::new("k1,k2", [refused]).await;
    let request = thinking("gemini-3.8-flash", Level::High);
    let error = stage.client.generate(&request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    assert_eq!(levels(&stage.script.bodies()), [Some("HIGH"), None]);
}

/// Answers on one thread with the clients, and counts how many requests it has at once.
#[derive(Clone, Default)]
struct Counter(Arc<Counts>);

#[derive(Default)]
struct Counts {
    now: AtomicU32,
    most: AtomicU32,
    keys: Mutex<Vec<String>>,
}

impl Counter {
    /// `limited` requests are told to come again after 26 s, the others get their answer.
    async fn serve(&self, limited: usize) -> String {
        let counter = self.clone();
        raw(move |mut stream| {
            let Counter(counts) = counter.clone();
            async move {
                let request = read_request(&mut stream).await.to_ascii_lowercase();
                let now = counts.now.fetch_add(1, Ordering::SeqCst) + 1;
                counts.most.fetch_max(now, Ordering::SeqCst);
                let number = {
                    let mut keys = counts.keys.lock().unwrap();
                    let key = request
                        .lines()
                        .find_map(|l| l.strip_prefix("x-goog-api-key: "));
                    keys.push(key.unwrap().to_owned());
                    keys.len()
                };
                // Whoever may come meanwhile comes now.
                for _ in 0..50 {
                    tokio::task::yield_now().await;
                }
                let (status, body) = if number <= limited {
                    (429, error_body(429, "slow down", &retry_info("26s")))
                } else {
                    let parts = json!([{ "text": "ok" }]);
                    let candidate =
                        json!({ "content": { "parts": parts }, "finishReason": "STOP" });
                    (200, json!({ "candidates": [candidate] }))
                };
                let body = body.to_string();
                let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\n");
                let reply = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
                counts.now.fetch_sub(1, Ordering::SeqCst);
                stream.write_all(reply.as_bytes()).await.unwrap();
            }
        })
        .await
    }

    fn most(&self) -> u32 {
        self.0.most.load(Ordering::SeqCst)
    }

    fn keys(&self) -> Vec<String> {
        self.0.keys.lock().unwrap().clone()
    }
}

/// claude-mem#4147: ten workers ran into the limit of one key, each by itself and all again.
#[tokio::test]
async fn ten_calls_share_a_key_one_at_a_time_and_its_cool_down() {
    let counter = Counter::default();
    let url = counter.serve(1).await;
    let clock = VirtualClock::holding();
    let client = build(
        Client::builder(Keys::parse("k1").unwrap()).base_url(url),
        &clock,
    );
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.generate(&question()).await })
        })
        .collect();
    until(|| clock.waits().len() == 10).await;
    assert_eq!(counter.keys().len(), 1, "one request found it out for all");
    assert_eq!(clock.waits(), [secs(26); 10]);
    clock.advance(secs(25));
    tokio::task::yield_now().await;
    assert_eq!(counter.keys().len(), 1, "not before it is over");
    clock.advance(secs(1));
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().text, "ok");
    }
    assert_eq!(counter.keys().len(), 11);
    assert_eq!(counter.most(), 1, "requests at once");
    assert_eq!(clock.waits().len(), 10, "nobody ran into it again");
}

/// The other keys are for fail-over; a call that waits for its turn does not take one.
#[tokio::test]
async fn parallel_calls_do_not_spread_over_the_keys() {
    let counter = Counter::default();
    let url = counter.serve(0).await;
    let clock = VirtualClock::default();
    let client = build(
        Client::builder(Keys::parse("k1,k2").unwrap()).base_url(url),
        &clock,
    );
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.generate(&question()).await.unwrap() })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().key_place, 1);
    }
    assert_eq!(counter.keys(), ["k1"; 10]);
    assert_eq!(counter.most(), 1);
}

/// A limited key is passed over without asking, until its hint is over.
#[tokio::test]
async fn a_limited_key_is_left_alone_by_the_next_calls_too() {
    let counter = Counter::default();
    let url = counter.serve(1).await;
    let clock = VirtualClock::default();
    let client = build(
        Client::builder(Keys::parse("k1,k2").unwrap()).base_url(url),
        &clock,
    );
    for _ in 0..3 {
        assert_eq!(client.generate(&question()).await.unwrap().key_place, 2);
    }
    assert_eq!(counter.keys(), ["k1", "k2", "k2", "k2"]);
    assert_eq!(clock.waits(), []);
}
