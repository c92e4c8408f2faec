//! The mock servers by themselves, spoken to over a socket.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use ctxfold_test_support::{Gate, MockAnthropic, Turn, post_json};
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
