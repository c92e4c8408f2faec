//! Networks that are dead, redirect, or lead through a proxy.

use ctxfold_gemini_client::{Client, ErrorKind, Keys};
use tokio::io::AsyncWriteExt;
use wiremock::matchers::{any, header};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::support::*;

/// The clock is paused: it jumps over the wait between the attempts.
#[tokio::test(start_paused = true)]
async fn a_dead_network_is_an_error_that_names_the_host() {
    let client = builder("k1,k2", &nobody().await).build().unwrap();
    let calls = [
        client.generate(&question()).await.unwrap_err(),
        client.count_tokens(&question()).await.unwrap_err(),
        client.models().await.unwrap_err(),
        client.check_model(MODEL).await.unwrap_err(),
    ];
    for error in calls {
        assert_eq!(error.kind(), ErrorKind::Network);
        assert!(error.is_temporary());
        let text = error.to_string();
        assert!(text.starts_with("cannot connect to 127.0.0.1: "), "{text}");
        assert!(text.ends_with(" (after 2 attempts)"), "{text}");
    }
}

#[tokio::test]
async fn a_reply_without_an_end_is_refused_at_32_mb() {
    let part = serde_json::json!({ "candidates": [{
        "content": { "parts": [{ "text": "x".repeat(1 << 20) }] },
    }] });
    let event = format!("data: {part}\n\n");
    let url = raw(move |mut stream| {
        let event = event.clone();
        async move {
            read_request(&mut stream).await;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            stream.write_all(head.as_bytes()).await.unwrap();
            // Until the client has enough.
            while stream.write_all(event.as_bytes()).await.is_ok() {}
        }
    })
    .await;
    let client = client(&url);
    let error = client
        .generate_stream(&question(), &mut |_| {})
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert_eq!(
        error.to_string(),
        "the reply of 127.0.0.1 is larger than 32 MB"
    );
}

#[tokio::test]
async fn a_redirect_is_not_followed_because_the_key_would_go_along() {
    let other = always(answer("stolen")).await;
    for status in [301, 302, 303, 307, 308] {
        let reply = ResponseTemplate::new(status).insert_header("location", other.uri());
        let server = always(reply).await;
        let error = client(&server.uri())
            .generate(&question())
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed);
        let expected = format!("Gemini HTTP {status}: an unexpected redirect");
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.status(), Some(status));
    }
    assert_eq!(other.received_requests().await.unwrap().len(), 0);
}

#[tokio::test]
async fn all_requests_go_through_the_proxy() {
    let proxy = MockServer::start().await;
    // user:pass
    Mock::given(header("proxy-authorization", "Basic dXNlcjpwYXNz"))
        .respond_with(answer("through the proxy"))
        .mount(&proxy)
        .await;
    let url = proxy.uri().replace("http://", "http://user:pass@");
    // The name is the proxy's to look up; here it leads nowhere.
    let client = builder("k1", "http://gemini.invalid")
        .proxy(url)
        .build()
        .unwrap();
    let answer = client.generate(&question()).await.unwrap();
    assert_eq!(answer.text, "through the proxy");
    let received = proxy.received_requests().await.unwrap();
    assert_eq!(received[0].headers["host"], "gemini.invalid");
}

#[tokio::test]
async fn hosts_that_are_excepted_are_reached_without_the_proxy() {
    let proxy = always(answer("through the proxy")).await;
    let server = MockServer::start().await;
    Mock::given(any())
        .respond_with(answer("directly"))
        .mount(&server)
        .await;
    let builder = builder("k1", &server.uri()).proxy(proxy.uri());
    let client = builder
        .clone()
        .no_proxy("example.org,127.0.0.1")
        .build()
        .unwrap();
    assert_eq!(client.generate(&question()).await.unwrap().text, "directly");
    let client = builder.clone().no_proxy("example.org").build().unwrap();
    assert_eq!(
        client.generate(&question()).await.unwrap().text,
        "through the proxy"
    );
    // Without a scheme, as the environment's variables often are.
    let bare = proxy.address().to_string();
    let client = builder.proxy(bare).build().unwrap();
    assert_eq!(
        client.generate(&question()).await.unwrap().text,
        "through the proxy"
    );
}

#[tokio::test]
async fn what_cannot_be_used_is_refused_before_anything_is_sent() {
    let builder = || Client::builder(Keys::parse("k1").unwrap());
    for (wrong, expected) in [
        (
            builder().base_url("gemini.example"),
            "the base URL cannot be used: relative URL without a base",
        ),
        (
            builder().base_url("ftp://gemini.example"),
            "the base URL must begin with https:// or http://",
        ),
        (
            builder().proxy("gopher://127.0.0.1:70"),
            "the proxy URL cannot be used",
        ),
        (builder().proxy(""), "the proxy URL cannot be used"),
        (
            builder().proxy("http://user:hunter2@"),
            "the proxy URL cannot be used",
        ),
        (
            builder().user_agent("two\nlines"),
            "the user agent cannot be used",
        ),
    ] {
        let error = wrong.build().unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::Config, expected)
        );
    }
}
