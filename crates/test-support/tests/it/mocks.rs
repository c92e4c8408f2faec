//! The mock servers by themselves, spoken to over a socket.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use ctxfold_test_support::{
    Gate, GeminiTurn, MockAnthropic, MockGemini, MockResponses, Turn, post_json,
};
use serde_json::json;

/// Sends bytes as they are and reads the answer to its end.
fn raw(url: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_script_goes_on_with_each_assistant_message() {
    let mock = MockAnthropic::start();
    mock.on(
        "KEY",
        [
            Turn::tool("Bash", json!({"command": "true"})),
            Turn::text("done"),
        ],
    );
    let url = format!("{}/v1/messages", mock.url());
    let user = json!({"role": "user", "content": [{"type": "text", "text": "KEY"}]});

    let first = post_json(&url, &json!({"model": "m", "messages": [user]})).unwrap();
    assert_eq!(first["content"][0]["name"], "Bash");
    assert_eq!(first["stop_reason"], "tool_use");

    let result = json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": first["content"][0]["id"], "content": "KEY?"},
    ]});
    let assistant = json!({"role": "assistant", "content": first["content"]});
    let messages = json!([user, assistant, result]);
    let second = post_json(&url, &json!({"model": "m", "messages": messages})).unwrap();
    assert_eq!(second["content"][0]["text"], "done");
    assert_eq!(second["stop_reason"], "end_turn");

    let messages = json!([user, assistant, result, assistant, {"role": "user", "content": "x"}]);
    let third = post_json(&url, &json!({"model": "m", "messages": messages})).unwrap();
    assert_eq!(third["content"][0]["text"], "MOCK-REPLY to: x");
    assert_eq!(mock.log().last().messages().len(), 5);
    assert_ne!(first["id"], second["id"]);
}

#[test]
fn usage_of_a_turn_beats_the_mocks_and_the_mocks_beats_the_estimate() {
    let mock = MockAnthropic::start();
    mock.set_usage(json!({"input_tokens": 7, "cache_read_input_tokens": 8}));
    mock.on(
        "KEY",
        [Turn::text("x").with_usage(json!({"input_tokens": 9}))],
    );
    let url = format!("{}/v1/messages", mock.url());
    let messages = json!([{"role": "user", "content": "KEY"}]);
    let reply = post_json(&url, &json!({"model": "m", "messages": messages})).unwrap();
    assert_eq!(reply["usage"]["input_tokens"], 9);
    assert_eq!(reply["usage"]["cache_read_input_tokens"], 8);
    assert_eq!(reply["usage"]["cache_creation_input_tokens"], 100);
}

#[test]
fn errors_summaries_and_probes_are_told_apart_in_the_log() {
    let mock = MockAnthropic::start();
    mock.set_summary("SHORT");
    mock.next(Turn::error(529, "overloaded_error", "busy"));
    let url = format!("{}/v1/messages", mock.url());
    let ask = json!([{"role": "user", "content": "create a detailed summary"}]);
    let failed = post_json(&url, &json!({"model": "m", "messages": ask})).unwrap();
    assert_eq!(failed["error"]["type"], "overloaded_error");
    let summary = post_json(&url, &json!({"model": "m", "messages": ask})).unwrap();
    assert!(
        summary["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("<summary>\nSHORT")
    );
    mock.set_count_tokens(321);
    let count = post_json(&format!("{url}/count_tokens"), &json!({})).unwrap();
    assert_eq!(count["input_tokens"], 321);
    let probe = raw(&mock.url(), "HEAD / HTTP/1.1\r\nconnection: close\r\n\r\n");
    assert!(probe.starts_with("HTTP/1.1 404 "), "{probe}");
    let kinds: Vec<_> = mock
        .log()
        .all()
        .iter()
        .map(|recorded| recorded.kind)
        .collect();
    assert_eq!(kinds, ["compaction", "compaction", "count", "probe"]);
}

#[test]
fn a_stream_is_held_by_its_gate_and_can_be_cut() {
    let mock = MockAnthropic::start();
    let gate = Gate::closed();
    mock.on("HELD", [Turn::text("late").held_by(&gate)]);
    mock.on("CUT", [Turn::text("torn").cut()]);
    let request = |key: &str| {
        let body = format!(
            r#"{{"model":"m","stream":true,"messages":[{{"role":"user","content":"{key}"}}]}}"#
        );
        let length = body.len();
        format!("POST /v1/messages HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{body}")
    };
    std::thread::scope(|scope| {
        let held = scope.spawn(|| raw(&mock.url(), &request("HELD")));
        let asked = |recorded: &ctxfold_test_support::Recorded| recorded.holds("HELD");
        assert!(
            mock.log()
                .wait_for(Duration::from_secs(10), asked)
                .is_some()
        );
        assert!(!held.is_finished(), "the gate is still closed");
        gate.open();
        let answer = held.join().unwrap();
        assert!(answer.contains(r#""text":"late""#) && answer.contains("message_stop"));
    });
    let cut = raw(&mock.url(), &request("CUT"));
    assert!(cut.contains(r#""text":"torn""#) && !cut.contains("message_stop"));
}

#[test]
fn chunked_bodies_are_read() {
    let mock = MockAnthropic::start();
    let body = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
    let (first, second) = body.split_at(10);
    let request = format!(
        "POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n\
         {:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
        first.len(),
        second.len()
    );
    assert!(raw(&mock.url(), &request).contains("MOCK-REPLY to: hi"));
}

#[test]
fn gemini_answers_in_order_then_by_script_then_by_schema() {
    let mock = MockGemini::start();
    mock.next(GeminiTurn::error(503, "UNAVAILABLE", "busy"));
    mock.next(GeminiTurn::text("half").with_finish_reason("MAX_TOKENS"));
    mock.on("KEY", [GeminiTurn::text("by script")]);
    let url = format!("{}/v1beta/models/m:generateContent", mock.url());
    let text = |text: &str| json!([{"role": "user", "parts": [{"text": text}]}]);
    let ask = |body: &serde_json::Value| post_json(&url, body).unwrap();
    let answer = |reply: &serde_json::Value| {
        reply["candidates"][0]["content"]["parts"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };

    assert_eq!(
        ask(&json!({"contents": text("KEY")}))["error"]["status"],
        "UNAVAILABLE"
    );
    let half = ask(&json!({"contents": text("KEY")}));
    assert_eq!(half["candidates"][0]["finishReason"], "MAX_TOKENS");
    assert_eq!(
        answer(&ask(&json!({"contents": text("a KEY b")}))),
        "by script"
    );
    let schema = json!({"type": "OBJECT", "properties": {
        "calls": {"type": "ARRAY"}, "verdict": {"type": "STRING", "enum": ["keep", "drop"]},
    }});
    let config = json!({"responseMimeType": "application/json", "responseJsonSchema": schema});
    let typed = ask(&json!({"contents": text("other"), "generationConfig": config}));
    assert_eq!(answer(&typed), r#"{"calls":[],"verdict":"keep"}"#);
    assert_eq!(mock.log().conversations().len(), 4);
    let models = raw(
        &mock.url(),
        "GET /v1beta/models HTTP/1.1\r\nconnection: close\r\n\r\n",
    );
    assert!(models.contains("models/gemini-3.5-flash-lite"), "{models}");
}

#[test]
fn a_cut_answer_is_shorter_than_it_promised() {
    let mock = MockGemini::start();
    mock.next(GeminiTurn::text("never seen").cut());
    let request = "POST /v1/models/m:generateContent HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}";
    let answer = raw(&mock.url(), request);
    assert!(answer.contains("content-length: 1\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
}

#[test]
fn a_web_socket_is_refused_and_compaction_answered() {
    let mock = MockResponses::start();
    let base = mock.url().replace("/v1", "");
    let upgrade = "GET /v1/responses HTTP/1.1\r\nupgrade: websocket\r\nconnection: close\r\n\r\n";
    assert!(raw(&base, upgrade).starts_with("HTTP/1.1 426 "));
    let compacted = post_json(&format!("{}/responses/compact", mock.url()), &json!({})).unwrap();
    assert_eq!(compacted["output"][0]["type"], "compaction");
    let kinds: Vec<_> = mock
        .log()
        .all()
        .iter()
        .map(|recorded| recorded.kind)
        .collect();
    assert_eq!(kinds, ["probe", "compaction"]);
}
