//! Gemini CLI, driven for real.

use std::fs;

use ctxfold_test_support::{GeminiHome, GeminiTurn, MockGemini, clients, require_client};
use serde_json::json;

#[test]
fn a_turn_with_a_tool_call() {
    let client = require_client!(gemini, clients::GEMINI[0]);
    let mock = MockGemini::start();
    mock.on(
        "FIRST",
        [
            GeminiTurn::function("read_file", &json!({"file_path": "note.txt"})),
            GeminiTurn::text("I read the note"),
        ],
    );
    let home = GeminiHome::new(&client, &mock);
    fs::write(home.project().join("note.txt"), "MARK-42\n").unwrap();
    let run = home.prompt("FIRST: read the note", &[]).success();
    assert_eq!(run.text(), "I read the note");
    let last = mock.log().last();
    assert!(last.holds("MARK-42") && last.path.ends_with(":streamGenerateContent"));
    assert_eq!(last.header("x-goog-api-key"), Some("mock"));
}
