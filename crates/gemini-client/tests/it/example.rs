//! The example program, run as a user runs it.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::json;
use wiremock::matchers::{body_partial_json, header, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::support::{MODEL, always, answer};

/// The program, which cargo builds beside this test.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().unwrap().parent().unwrap();
    let path = profile
        .join("examples")
        .join(format!("ask{}", std::env::consts::EXE_SUFFIX));
    assert!(
        path.exists(),
        "{} is missing: cargo build --examples",
        path.display()
    );
    path
}

fn ask(arguments: &[&str], keys: &str) -> Output {
    let mut child = Command::new(program())
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(keys.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

#[tokio::test]
async fn a_question_gets_its_answer() {
    let server = MockServer::start().await;
    let question = json!({ "contents": [{ "parts": [{ "text": "why?" }] }] });
    Mock::given(path(format!("/v1beta/models/{MODEL}:generateContent")))
        .and(header("x-goog-api-key", "k1"))
        .and(body_partial_json(question))
        .respond_with(answer("because"))
        .mount(&server)
        .await;
    let output = ask(&["why?", &server.uri()], "k1\nk2\n");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "because\n");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
}

/// A program that ends with an error prints its `Debug`.
#[tokio::test]
async fn what_a_failed_program_prints_holds_no_key() {
    let message = "Consumer 'api_key:AIzaSyPlanted-0001' has been suspended. plainplanted";
    let body = json!({ "error": { "code": 403, "message": message } });
    let server = always(ResponseTemplate::new(403).set_body_json(body)).await;
    let output = ask(&["why?", &server.uri()], "AIzaSyPlanted-0001,plainplanted");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("Consumer 'api_key:[key]' has been suspended (keys 1-2)"),
        "{said}"
    );
    assert!(!said.to_lowercase().contains("planted"), "{said}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "");
    assert_eq!(output.status.code(), Some(1));
}
