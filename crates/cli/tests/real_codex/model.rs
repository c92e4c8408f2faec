//! What the model answers wrongly, or cannot be asked at all: the thread stays as it is, or is
//! masked where that was wanted.

use std::fs;

use ctxfold_test_support::{GeminiTurn, clients, require_client};

use crate::lab::{Lab, OURS, assert_one};

/// An answer of nothing, of a few words, of another kind, and an error: no compaction.
#[test]
fn an_answer_that_is_no_summary_leaves_the_thread_alone() {
    let client = require_client!(codex, clients::CODEX[0]);
    let lab = Lab::new(&client, 120_000);
    let before = fs::read(lab.rollout()).unwrap();
    let answers = [
        GeminiTurn::text(""),
        GeminiTurn::text("Sure, I will go on."),
        GeminiTurn::text("{\"decisions\": []}"),
        GeminiTurn::text(crate::lab::SUMMARY).with_finish_reason("MAX_TOKENS"),
        GeminiTurn::error(400, "INVALID_ARGUMENT", "the input is too long"),
    ];
    for answer in answers {
        lab.gemini.next(answer);
        let ran = lab.fold(&lab.compact_arguments("summary"));
        assert_eq!(ran.code, 4, "{ran:?}");
        assert!(ran.stderr.contains("nothing was written"), "{ran:?}");
        assert!(fs::read(lab.rollout()).unwrap() == before);
    }
    // The same where masking may take the summary's place: said, and done.
    lab.gemini.next(GeminiTurn::text(""));
    let id = lab.thread.as_str();
    let line = "compact --agent codex --keep 2 --fallback mask --mode summary";
    let words: Vec<&str> = line.split(' ').chain([id]).collect();
    let ran = lab.fold(&words).done();
    assert!(ran.stderr.contains("mask"), "{ran:?}");
    assert_one(
        &lab.turn("NEXT"),
        &["first done", "THIRD"],
        &["OLD-41", OURS],
    );
    lab.assert_exact();
}

/// A thread three times as long as what one request may hold is summed up in parts, and the parts
/// become one summary.
#[test]
fn a_thread_that_fits_no_request_is_summed_up_in_parts() {
    let client = require_client!(codex, clients::CODEX[0]);
    let lab = Lab::new(&client, 120_000);
    grow(&lab, 6_000_000);
    for _ in 0..20 {
        lab.gemini.next(GeminiTurn::text(crate::lab::SUMMARY));
    }
    lab.compact_with("summary", &[]);
    let asked = lab.gemini.log().conversations();
    assert!(asked.len() > 2, "{} requests", asked.len());
    for request in &asked {
        assert!(request.bytes < 2_600_000, "{} bytes", request.bytes);
    }
    let requests = lab.turn("NEXT");
    assert_one(&requests, &[OURS, "LAST WORD"], &["OLD-41", "LONG WORDS"]);
    assert!(requests[0].bytes < 400_000, "{} bytes", requests[0].bytes);
    lab.assert_exact();
}

/// Many turns, as the client writes them.
fn grow(lab: &Lab, bytes: usize) {
    let path = lab.rollout();
    let mut text = fs::read_to_string(&path).unwrap();
    let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let mut ordinal = last["ordinal"].as_u64().unwrap();
    let mut say = |role: &str, kind: &str, words: &str| {
        ordinal += 1;
        let line = serde_json::json!({
            "timestamp": "2026-12-01T00:00:00.000Z", "ordinal": ordinal, "type": "response_item",
            "payload": {"type": "message", "role": role, "content": [{"type": kind, "text": words}]},
        });
        text.push_str(&format!("{line}\n"));
    };
    let piece = "LONG WORDS and more of them. ".repeat(100);
    for number in 0..bytes / piece.len() {
        say("user", "input_text", &format!("go on with {number}"));
        say("assistant", "output_text", &format!("{number}: {piece}"));
    }
    say("user", "input_text", "is that all?");
    say("assistant", "output_text", "it is");
    say("user", "input_text", "LAST WORD");
    say("assistant", "output_text", "so be it");
    fs::write(&path, text).unwrap();
}
