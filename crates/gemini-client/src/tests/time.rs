//! Waits, the deadline and the idle limit, by the crate's own clock.

use std::sync::Arc;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;

use super::support::*;
use crate::{Client, ErrorKind, Keys, Phase};

#[tokio::test]
async fn an_overloaded_model_is_asked_four_times_after_1_2_and_3_seconds() {
    let stage = Stage::new(
        "k1,k2",
        [error(
            503,
            "The model is overloaded. Please try again.",
            &json!(null),
        )],
    )
    .await;
    let error = stage.fail().await;
    assert_eq!(stage.clock.waits(), [secs(1), secs(2), secs(3)]);
    assert_eq!(stage.script.keys(), ["k1"; 4]);
    assert_eq!(error.kind(), ErrorKind::Overloaded);
    assert_eq!(
        error.to_string(),
        "Gemini HTTP 503: The model is overloaded (after 4 attempts)"
    );
}

#[tokio::test]
async fn an_overload_that_passes_is_forgotten() {
    let busy = || error(503, "busy", &json!(null));
    let stage = Stage::new("k1", [busy(), busy(), busy(), text("at last")]).await;
    assert_eq!(stage.ask().await.unwrap().text, "at last");
    assert_eq!(stage.clock.waits(), [secs(1), secs(2), secs(3)]);
}

#[tokio::test]
async fn no_attempt_begins_past_the_deadline() {
    let script = [error(503, "busy", &json!(null))];
    let stage = Stage::new("k1", script).await;
    for (deadline, attempts) in [(1, 1), (2, 2), (3, 2), (4, 3), (6, 3), (7, 4)] {
        let before = stage.script.keys().len();
        let clock = VirtualClock::default();
        let builder = Client::builder(Keys::parse("k1").unwrap())
            .base_url(stage.url())
            .deadline(secs(deadline));
        let error = build(builder, &clock)
            .generate(&question())
            .await
            .unwrap_err();
        assert_eq!(
            stage.script.keys().len() - before,
            attempts,
            "deadline {deadline} s"
        );
        let expected = if attempts == 4 {
            ErrorKind::Overloaded
        } else {
            ErrorKind::Deadline
        };
        assert_eq!(error.kind(), expected);
        if deadline == 3 {
            let text = "Gemini HTTP 503: busy; no time for another attempt within 3 s";
            assert_eq!(error.to_string(), text);
        }
    }
}

#[tokio::test]
async fn a_hint_that_fits_is_obeyed_on_the_last_key_and_waited_out_exactly() {
    let limited = || error(429, "slow down", &retry_info("26s"));
    let stage = Stage::new("k1,k2", [limited(), limited(), text("ok")]).await;
    let answer = stage.ask().await.unwrap();
    assert_eq!(stage.script.keys(), ["k1", "k2", "k2"]);
    assert_eq!(stage.clock.waits(), [secs(26)]);
    assert_eq!(answer.key_place, 2);
}

#[tokio::test]
async fn a_hint_past_the_deadline_is_told_and_not_waited_for() {
    let stage = Stage::new("k1", [error(429, "slow down", &retry_info("61s"))]).await;
    let error = stage.fail().await;
    assert_eq!(stage.clock.waits(), []);
    assert_eq!(error.retry_after(), Some(secs(61)));
    assert_eq!(error.to_string(), "Gemini HTTP 429: quota");
}

#[tokio::test]
async fn a_daily_quota_is_not_waited_for() {
    let details = json!([
        { "violations": [{ "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier" }] },
        { "retryDelay": "5s" },
    ]);
    let stage = Stage::new("k1", [error(429, "quota", &details)]).await;
    assert_eq!(
        stage.fail().await.to_string(),
        "Gemini HTTP 429: daily quota"
    );
    assert_eq!(stage.clock.waits(), []);
}

#[tokio::test]
async fn a_retry_after_header_is_as_good_as_a_retry_info() {
    let limited = error(429, "slow down", &json!(null)).insert_header("retry-after", "7");
    let stage = Stage::new("k1", [limited, text("ok")]).await;
    assert_eq!(stage.ask().await.unwrap().text, "ok");
    assert_eq!(stage.clock.waits(), [secs(7)]);
}

#[tokio::test]
async fn a_silent_server_is_cut_off_at_the_deadline() {
    let clock = VirtualClock::default();
    let server_clock = clock.clone();
    let url = raw(move |mut stream| {
        let clock = server_clock.clone();
        async move {
            read_request(&mut stream).await;
            clock.advance(secs(60));
            std::future::pending::<()>().await;
        }
    })
    .await;
    let client = build(
        Client::builder(Keys::parse("k1").unwrap()).base_url(url),
        &clock,
    );
    let error = client.generate(&question()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Deadline);
    assert_eq!(error.to_string(), "no answer from Gemini within 60 s");
}

#[tokio::test]
async fn a_stream_that_falls_silent_is_cut_off_by_the_idle_limit_and_not_repeated() {
    let clock = VirtualClock::default();
    let begun = Arc::new(Notify::new());
    let server_begun = Arc::clone(&begun);
    let server_clock = clock.clone();
    let url = raw(move |mut stream| {
        let clock = server_clock.clone();
        let begun = Arc::clone(&server_begun);
        async move {
            read_request(&mut stream).await;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            stream
                .write_all(format!("{head}{}", event(&part("half "))).as_bytes())
                .await
                .unwrap();
            begun.notified().await;
            clock.advance(secs(19));
            tokio::task::yield_now().await;
            clock.advance(secs(1));
            std::future::pending::<()>().await;
        }
    })
    .await;
    let builder = Client::builder(Keys::parse("k1").unwrap())
        .base_url(url)
        .deadline(secs(600));
    let client = build(builder.idle_timeout(secs(20)), &clock);
    let mut seen = Vec::new();
    let mut tell = |progress: crate::Progress| {
        if progress.phase == Phase::Receiving {
            // The server goes on when the client waits for more: both share one thread.
            begun.notify_one();
        }
        seen.push((progress.attempt, progress.text_bytes));
    };
    let error = client
        .generate_stream(&question(), &mut tell)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Network);
    assert_eq!(error.to_string(), "127.0.0.1 sent nothing for 20 s");
    assert_eq!(seen, [(1, 0), (1, 5)]);
    assert_eq!(clock.waits(), []);
}
