//! Each call against a server that answers as the API does.

use std::fmt::Write;

use ctxfold_gemini_client::{
    Content, ErrorKind, FinishReason, Phase, Progress, Property, Request, Schema, Thinking,
};
use serde_json::{Value, json};
use wiremock::matchers::{body_json, header, method, path, query_param, query_param_is_missing};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::support::*;

const OWN_AGENT: &str = concat!("ctxfold-gemini-client/", env!("CARGO_PKG_VERSION"));

fn listed(name: &str, methods: &[&str]) -> Value {
    json!({ "name": name, "supportedGenerationMethods": methods })
}

/// Two pages, of which each may be asked for once.
async fn two_pages() -> MockServer {
    let server = MockServer::start().await;
    let generate: &[&str] = &["generateContent", "countTokens"];
    let first = json!({ "models": [
        {
            "name": "models/gemini-3.5-flash", "displayName": "Gemini 3.5 Flash",
            "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536, "thinking": true,
            "supportedGenerationMethods": generate,
        },
        listed("models/gemini-embedding-001", &["embedContent"]),
        listed("models/gemini-2.5-flash-image", generate),
    ], "nextPageToken": "page two/=" });
    let second = json!({ "models": [
        listed("models/gemini-2.5-flash-preview-tts", generate),
        listed("models/gemini-3.5-flash-lite", generate),
        listed("models/gemini-3.6-flash", generate),
        listed("models/gemma-3-27b-it", generate),
    ] });
    let page = || Mock::given(method("GET")).and(path("/v1beta/models"));
    page()
        .and(query_param_is_missing("pageToken"))
        .and(query_param("pageSize", "1000"))
        .respond_with(ResponseTemplate::new(200).set_body_json(first))
        .expect(1)
        .mount(&server)
        .await;
    page()
        .and(query_param("pageToken", "page two/="))
        .respond_with(ResponseTemplate::new(200).set_body_json(second))
        .expect(1)
        .mount(&server)
        .await;
    server
}

#[tokio::test]
async fn models_are_read_from_all_pages_filtered_and_kept() {
    let server = two_pages().await;
    let client = client(&server.uri());
    let models = client.models().await.unwrap();
    let ids: Vec<_> = models.iter().map(|model| model.id.as_str()).collect();
    let expected = [
        "gemini-3.5-flash",
        "gemini-3.5-flash-lite",
        "gemini-3.6-flash",
        "gemma-3-27b-it",
    ];
    assert_eq!(ids, expected);
    assert_eq!(models[0].display_name.as_deref(), Some("Gemini 3.5 Flash"));
    assert_eq!(models[0].input_token_limit, Some(1_048_576));
    assert_eq!(models[0].output_token_limit, Some(65_536));
    assert_eq!(models[0].thinking, Some(true));
    assert_eq!(models[1].thinking, None);
    // From here on the server would count too many requests.
    assert_eq!(client.clone().models().await.unwrap(), models);
    let found = client.check_model("models/gemini-3.5-flash").await.unwrap();
    assert_eq!(found, models[0]);
    server.verify().await;
}

#[tokio::test]
async fn a_model_that_is_not_listed_is_refused_with_the_three_closest() {
    let server = two_pages().await;
    let client = client(&server.uri());
    let error = client.check_model("gemini-3.5-flahs").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ModelUnknown);
    let closest = [
        "gemini-3.5-flash",
        "gemini-3.6-flash",
        "gemini-3.5-flash-lite",
    ];
    assert_eq!(error.suggestions(), closest);
    let expected = "unknown model gemini-3.5-flahs; the closest are gemini-3.5-flash, \
                    gemini-3.6-flash and gemini-3.5-flash-lite";
    assert_eq!(error.to_string(), expected);
    // It makes images, and so it is no model for a text.
    let error = client.check_model("gemini-2.5-flash-image").await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::ModelUnknown);
}

#[tokio::test]
async fn parallel_calls_fetch_the_list_once() {
    let server = two_pages().await;
    let client = client(&server.uri());
    let (one, two) = tokio::join!(client.models(), client.models());
    assert_eq!(one.unwrap(), two.unwrap());
    server.verify().await;
}

#[tokio::test]
async fn a_list_that_failed_is_asked_for_again() {
    let server = MockServer::start().await;
    let once = ResponseTemplate::new(403);
    Mock::given(method("GET"))
        .respond_with(once)
        .up_to_n_times(1)
        .mount(&server)
        .await;
    let list = json!({ "models": [listed("models/m-1", &["generateContent"])] });
    Mock::given(method("GET"))
        .respond_with(ResponseTemplate::new(200).set_body_json(list))
        .mount(&server)
        .await;
    let client = client(&server.uri());
    assert_eq!(
        client.models().await.unwrap_err().kind(),
        ErrorKind::Forbidden
    );
    assert_eq!(client.models().await.unwrap()[0].id, "m-1");
}

#[tokio::test]
async fn a_list_without_an_end_is_refused() {
    let page = json!({ "models": [], "nextPageToken": "again" });
    let server = always(ResponseTemplate::new(200).set_body_json(page)).await;
    let error = client(&server.uri()).models().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
    assert_eq!(error.to_string(), "Gemini's list of models does not end");
    assert_eq!(server.received_requests().await.unwrap().len(), 50);
}

#[tokio::test]
async fn a_reply_that_is_no_list_is_refused() {
    let server = always(answer("hello")).await;
    let error = client(&server.uri()).models().await.unwrap_err();
    assert_eq!(error.to_string(), "Gemini's reply is no list of models");
}

#[tokio::test]
async fn tokens_are_counted_for_the_whole_request() {
    let server = MockServer::start().await;
    let sent = json!({ "generateContentRequest": {
        "contents": [{ "role": "user", "parts": [{ "text": "why?" }] }],
        "systemInstruction": { "parts": [{ "text": "be brief" }] },
        "model": format!("models/{MODEL}"),
    } });
    Mock::given(method("POST"))
        .and(path(format!("/v1beta/models/{MODEL}:countTokens")))
        .and(body_json(sent))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!({ "totalTokens": 11 })))
        .mount(&server)
        .await;
    let request = Request {
        system: Some("be brief".to_owned()),
        ..question()
    };
    assert_eq!(
        client(&server.uri()).count_tokens(&request).await.unwrap(),
        11
    );

    let server = always(answer("eleven")).await;
    let error = client(&server.uri())
        .count_tokens(&request)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
}

#[tokio::test]
async fn a_whole_request_gets_a_whole_answer() {
    let server = MockServer::start().await;
    let mut reply = whole("[\"c1\"]");
    reply["usageMetadata"] = json!({ "promptTokenCount": 5, "totalTokenCount": 9 });
    reply["modelVersion"] = "gemini-3.5-flash-lite-002".into();
    let sent = json!({
        "contents": [
            { "role": "user", "parts": [{ "text": "a" }] },
            { "role": "model", "parts": [{ "text": "b" }] },
        ],
        "systemInstruction": { "parts": [{ "text": "be brief" }] },
        "generationConfig": {
            "maxOutputTokens": 100,
            "responseMimeType": "application/json",
            "responseSchema": { "type": "ARRAY", "items": { "type": "STRING" }, "maxItems": 9 },
            "thinkingConfig": { "thinkingLevel": "MINIMAL" },
        },
    });
    Mock::given(method("POST"))
        .and(path(format!("/v1beta/models/{MODEL}:generateContent")))
        .and(header("x-goog-api-key", "k1"))
        .and(header("content-type", "application/json"))
        .and(header("user-agent", OWN_AGENT))
        .and(body_json(sent))
        .respond_with(ResponseTemplate::new(200).set_body_json(reply))
        .mount(&server)
        .await;
    let request = Request {
        model: format!("models/{MODEL}"),
        system: Some("be brief".to_owned()),
        contents: vec![Content::user("a"), Content::model("b")],
        schema: Some(Schema::Array {
            items: Box::new(Schema::String),
            max_items: Some(9),
        }),
        thinking: Thinking::Budget(0),
        max_output_tokens: Some(100),
    };
    let answer = client(&server.uri()).generate(&request).await.unwrap();
    assert_eq!(answer.text, "[\"c1\"]");
    assert_eq!(answer.finish, FinishReason::Stop);
    assert_eq!((answer.usage.prompt, answer.usage.total), (5, 9));
    let version = answer.model_version.as_deref();
    assert_eq!(version, Some("gemini-3.5-flash-lite-002"));
    assert_eq!((answer.key_place, answer.thinking_dropped), (1, false));
}

#[tokio::test]
async fn an_own_base_url_and_user_agent_are_used() {
    let server = MockServer::start().await;
    Mock::given(path(format!("/gemini/v1/models/{MODEL}:generateContent")))
        .and(header("user-agent", "somebody/7"))
        .respond_with(answer("ok"))
        .mount(&server)
        .await;
    let url = format!("{}/gemini/v1/", server.uri());
    let client = builder("k1", &url)
        .user_agent("somebody/7")
        .build()
        .unwrap();
    assert_eq!(client.generate(&question()).await.unwrap().text, "ok");
}

fn step(phase: Phase, text_bytes: u64, thought_bytes: u64) -> (Phase, u32, usize, u64, u64) {
    (phase, 1, 1, text_bytes, thought_bytes)
}

#[tokio::test]
async fn a_stream_tells_how_far_it_is() {
    let part = |part: Value| json!({ "candidates": [{ "content": { "parts": [part] } }] });
    let mut last = whole("é!");
    last["usageMetadata"] = json!({ "candidatesTokenCount": 3, "thoughtsTokenCount": 8 });
    let mut body = String::new();
    for document in [
        part(json!({ "text": "let me think", "thought": true })),
        part(json!({ "text": "{\"k\": \"" })),
        part(json!({ "text": "caf" })),
    ] {
        write!(body, "data: {document}\r\n\r\n").unwrap();
    }
    last["candidates"][0]["content"]["parts"][0]["text"] = "é\"}".into();
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path(format!(
            "/v1beta/models/{MODEL}:streamGenerateContent"
        )))
        .and(query_param("alt", "sse"))
        .respond_with(
            // The last event has no blank line behind it.
            ResponseTemplate::new(200).set_body_raw(
                format!("{body}data: {last}"),
                "text/event-stream;charset=utf-8",
            ),
        )
        .mount(&server)
        .await;
    let request = Request {
        schema: Some(Schema::Object(vec![Property::required(
            "k",
            Schema::String,
        )])),
        ..question()
    };
    let mut seen = Vec::new();
    let mut tell = |now: Progress| {
        seen.push((
            now.phase,
            now.attempt,
            now.key_place,
            now.text_bytes,
            now.thought_bytes,
        ));
    };
    let client = client(&server.uri());
    let answer = client.generate_stream(&request, &mut tell).await.unwrap();
    assert_eq!(answer.text, "{\"k\": \"café\"}");
    assert_eq!((answer.usage.output, answer.usage.thoughts), (3, 8));
    let expected = [
        step(Phase::Asking, 0, 0),
        step(Phase::Receiving, 0, 12),
        step(Phase::Receiving, 7, 12),
        step(Phase::Receiving, 10, 12),
        step(Phase::Receiving, 14, 12),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_new_key_is_a_new_attempt_that_begins_at_nothing() {
    let server = MockServer::start().await;
    Mock::given(header("x-goog-api-key", "k1"))
        .respond_with(ResponseTemplate::new(429))
        .mount(&server)
        .await;
    Mock::given(header("x-goog-api-key", "k2"))
        .respond_with(answer("ok"))
        .mount(&server)
        .await;
    let client = builder("k1,k2", &server.uri()).build().unwrap();
    let mut seen = Vec::new();
    let mut tell = |now: Progress| seen.push((now.phase, now.attempt, now.key_place));
    client
        .generate_stream(&question(), &mut tell)
        .await
        .unwrap();
    let expected = [
        (Phase::Asking, 1, 1),
        (Phase::Asking, 2, 2),
        (Phase::Receiving, 2, 2),
    ];
    assert_eq!(seen, expected);
}

/// What a proxy that does not know streams makes of one.
#[tokio::test]
async fn a_stream_that_comes_as_an_array_is_read_as_well() {
    let part = json!({ "candidates": [{ "content": { "parts": [{ "text": "a" }] } }] });
    let array = json!([part, whole("b")]);
    let server = always(ResponseTemplate::new(200).set_body_json(array)).await;
    let answer = client(&server.uri())
        .generate_stream(&question(), &mut |_| {})
        .await;
    assert_eq!(answer.unwrap().text, "ab");
}
