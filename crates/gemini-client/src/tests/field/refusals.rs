//! Refused keys, quotas with a hint, and errors in odd wrappings.

use std::time::Duration;

use serde_json::{Value, json};
use wiremock::ResponseTemplate;

use crate::tests::support::*;
use crate::{Client, ErrorKind, Keys};

/// A reason as Google's services give it.
fn error_info(reason: &str) -> Value {
    json!([{
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": "googleapis.com",
    }])
}

fn quota(delay: &str) -> ResponseTemplate {
    error(429, "Resource has been exhausted", &retry_info(delay))
}

/// OmniRoute#7940: the hint was ignored, and the key locked out for 19 hours.
#[tokio::test]
async fn a_hint_of_26_seconds_costs_26_seconds() {
    let stage = Stage::new("k1", [quota("26s"), text("ok"), text("again")]).await;
    assert_eq!(stage.ask().await.unwrap().text, "ok");
    assert_eq!(stage.clock.waits(), [secs(26)]);
    assert_eq!(stage.ask().await.unwrap().text, "again");
    assert_eq!(
        stage.clock.waits(),
        [secs(26)],
        "the key is as good as before"
    );
}

/// python-genai#1875, dcdpr/jp#1061: fractional seconds.
#[tokio::test]
async fn hints_are_read_to_the_nanosecond_and_odd_ones_are_none() {
    let table = [
        ("58.934310785s", Some(Duration::new(58, 934_310_785))),
        ("45.837906927s", Some(Duration::new(45, 837_906_927))),
        ("0s", Some(Duration::ZERO)),
        ("-1s", None),
        ("abc", None),
        // It would end at the deadline: too late to begin again.
        ("60s", None),
        ("99999999999999999s", None),
    ];
    for (delay, expected) in table {
        let stage = Stage::new("k1", [quota(delay), text("ok")]).await;
        let result = stage.ask().await;
        assert_eq!(stage.clock.waits(), Vec::from_iter(expected), "{delay}");
        match expected {
            Some(_) => assert_eq!(result.unwrap().text, "ok"),
            None => assert_eq!(result.unwrap_err().kind(), ErrorKind::Quota),
        }
    }
}

/// jan#8406, sub2api#1709: an invalid key comes as 400, and nobody tried the next one.
#[tokio::test]
async fn an_invalid_key_comes_as_400_and_is_left_for_good() {
    for (message, details) in [
        (
            "API key not valid. Please pass a valid API key.",
            json!(null),
        ),
        ("API key expired. Please renew the API key.", json!(null)),
        ("Bad request", error_info("API_KEY_INVALID")),
        ("Bad request", error_info("API_KEY_EXPIRED")),
    ] {
        let answers = [error(400, message, &details), text("ok"), text("ok")];
        let stage = Stage::new("k1,k2,k3", answers).await;
        assert_eq!(stage.ask().await.unwrap().key_place, 2, "{message}");
        assert_eq!(stage.ask().await.unwrap().key_place, 2);
        assert_eq!(stage.script.keys(), ["k1", "k2", "k2"]);
    }
}

#[tokio::test]
async fn another_400_is_the_same_with_every_key() {
    for (message, details) in [
        ("Invalid JSON payload received.", json!(null)),
        ("User location is not supported", error_info("LOCATION")),
    ] {
        let stage = Stage::new("k1,k2", [error(400, message, &details)]).await;
        assert_eq!(stage.fail().await.kind(), ErrorKind::InvalidRequest);
        assert_eq!(stage.script.keys(), ["k1"]);
    }
}

#[tokio::test]
async fn the_ring_wraps_around_from_the_last_good_key() {
    let refused = || error(403, "Permission denied.", &json!(null));
    let answers = [refused(), refused(), text("a"), refused(), text("b")];
    let stage = Stage::new("k1,k2,k3", answers).await;
    assert_eq!(stage.ask().await.unwrap().key_place, 3);
    assert_eq!(stage.ask().await.unwrap().key_place, 1);
    assert_eq!(stage.script.keys(), ["k1", "k2", "k3", "k3", "k1"]);
}

/// continue#10902: the text of a suspension echoes the key.
#[tokio::test]
async fn a_suspension_that_echoes_the_key_is_told_without_it() {
    let key = "AIzaTEST-planted-000000000000000000000";
    let message = format!(
        "Permission denied: Consumer 'api_key:{key}' has been suspended. Appeal with {key}."
    );
    let stage = Stage::new(
        key,
        [error(403, &message, &error_info("CONSUMER_SUSPENDED"))],
    )
    .await;
    let error = stage.fail().await;
    assert_eq!(error.kind(), ErrorKind::Forbidden);
    let expected =
        "Gemini HTTP 403: Permission denied: Consumer 'api_key:[key]' has been suspended";
    assert_eq!(error.to_string(), expected);
    assert!(!format!("{error:?}").contains("planted"), "{error:?}");
}

/// gemini-balance#382, poenl#8: the project of one key was denied.
#[tokio::test]
async fn a_denied_project_leaves_the_other_keys() {
    let denied = "Your project has been denied access. Please contact support.";
    let stage = Stage::new("k1,k2", [error(403, denied, &json!(null)), text("ok")]).await;
    assert_eq!(stage.ask().await.unwrap().key_place, 2);
}

/// koda#389, DFIR#516: the key was part of the URL, and the URL of the error.
#[tokio::test]
async fn a_connection_that_is_refused_shows_no_key() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let clock = VirtualClock::default();
    let keys = Keys::parse("AIzaPlanted-0001").unwrap();
    let client = build(
        Client::builder(keys).base_url(format!("http://{address}")),
        &clock,
    );
    let error = client.generate(&question()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Network);
    assert_eq!(
        clock.waits(),
        [secs(1)],
        "once more, for a server that restarts"
    );
    let text = error.to_string();
    assert!(text.starts_with("cannot connect to 127.0.0.1: "), "{text}");
    assert!(text.ends_with("(after 2 attempts)"), "{text}");
    for text in [text, format!("{error:?}"), format!("{client:?}")] {
        assert!(
            !text.contains("Planted") && !text.contains("?key="),
            "{text}"
        );
    }
}

/// gemini-cli#15745, gemini-cli#7227: errors in errors, and errors in arrays.
#[tokio::test]
async fn an_error_is_found_in_every_wrapping() {
    let plain = error_body(429, "slow down", &retry_info("26s"));
    let doubled = json!({ "error": {
        "message": format!("{plain:#}"), "code": 429, "status": "Too Many Requests",
    } });
    let bodies = [
        plain.to_string(),
        doubled.to_string(),
        json!([plain]).to_string(),
        json!([doubled]).to_string(),
        json!(plain.to_string()).to_string(),
    ];
    for body in &bodies {
        let wrapped = ResponseTemplate::new(429).set_body_string(body.as_str());
        let stage = Stage::new("k1", [wrapped, text("ok")]).await;
        assert_eq!(stage.stream().await.unwrap().text, "ok", "{body}");
        assert_eq!(stage.clock.waits(), [secs(26)], "{body}");
        // The same inside a reply that began well.
        let hidden = ResponseTemplate::new(200).set_body_string(body.as_str());
        let stage = Stage::new("k1", [hidden, text("ok")]).await;
        assert_eq!(stage.ask().await.unwrap().text, "ok", "{body}");
        assert_eq!(stage.clock.waits(), [secs(26)], "{body}");
    }
}

#[tokio::test]
async fn an_error_in_the_middle_of_a_stream_ends_the_attempt_and_its_text() {
    let busy = error_body(503, "The model is overloaded.", &json!(null));
    let events = |documents: &[Value]| {
        let body: String = documents.iter().map(event).collect();
        ResponseTemplate::new(200).set_body_raw(body, "text/event-stream")
    };
    let good = json!({ "candidates": [{
        "content": { "parts": [{ "text": "whole" }] }, "finishReason": "STOP",
    }] });
    let answers = [events(&[part("half"), busy]), events(&[good])];
    let stage = Stage::new("k1", answers).await;
    assert_eq!(stage.stream().await.unwrap().text, "whole");
    assert_eq!(stage.clock.waits(), [secs(1)]);
}

/// The newer interface writes a word where the older one writes a number.
#[tokio::test]
async fn a_code_that_is_a_word_means_the_same() {
    let table = [
        ("invalid_request", ErrorKind::InvalidRequest),
        ("RESOURCE_EXHAUSTED", ErrorKind::Quota),
        ("PERMISSION_DENIED", ErrorKind::Forbidden),
        ("NOT_FOUND", ErrorKind::ModelUnknown),
        ("never_heard_of", ErrorKind::Malformed),
    ];
    for (code, kind) in table {
        let hidden = json!({ "error": { "code": code, "message": "no" } });
        let stage = Stage::new("k1", [answer(&hidden)]).await;
        assert_eq!(stage.fail().await.kind(), kind, "{code}");
    }
}

/// Proxies answer for themselves, with success and without.
#[tokio::test]
async fn a_page_of_a_proxy_is_called_one() {
    let page = "<html><head><title>Sign in</title></head></html>";
    let html = |status| ResponseTemplate::new(status).set_body_raw(page, "text/html");
    let table = [
        (200, ErrorKind::Malformed, ""),
        (403, ErrorKind::Forbidden, ""),
        (502, ErrorKind::Server, " (after 2 attempts)"),
    ];
    for (status, kind, after) in table {
        let stage = Stage::new("k1", [html(status)]).await;
        let expected = format!("Gemini HTTP {status}: an HTML page instead of JSON{after}");
        for error in [stage.fail().await, stage.stream().await.unwrap_err()] {
            assert_eq!((error.kind(), error.to_string()), (kind, expected.clone()));
        }
    }
}

#[tokio::test]
async fn bodies_that_are_not_the_promised_json_are_told_apart() {
    let table = [
        ("", "an empty body"),
        ("{\"candidates\": [", "broken JSON at line 1, column 16"),
        ("{}{}", "two JSON documents in one body"),
    ];
    for (body, problem) in table {
        let stage = Stage::new("k1", [ResponseTemplate::new(200).set_body_string(body)]).await;
        let error = stage.fail().await;
        assert_eq!(error.kind(), ErrorKind::Malformed);
        assert_eq!(error.to_string(), format!("Gemini HTTP 200: {problem}"));
        assert_eq!(stage.script.keys().len(), 1, "paid once");
    }
}
