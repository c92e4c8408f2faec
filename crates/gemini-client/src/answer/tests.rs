use serde_json::{Value, json};

use super::*;
use crate::key::Keys;
use crate::request::Property;

/// Judges these documents, as the ones of a stream.
fn judged(documents: &[Value], schema: Option<&Schema>) -> Result<Draft, Failure> {
    let scrub = Scrubber::new(&Keys::parse("AIzaPlanted-0001").unwrap());
    judge(documents.iter().map(Chunk::read), schema, &scrub)
}

fn refused(document: Value, schema: Option<&Schema>) -> Failure {
    judged(&[document], schema).unwrap_err()
}

/// One candidate with these parts.
fn candidate(parts: &Value, finish: &str) -> Value {
    json!({ "candidates": [{ "content": { "parts": parts }, "finishReason": finish }] })
}

#[test]
fn every_finish_reason_has_its_meaning() {
    use ErrorKind::{Blocked, Stopped, Truncated};
    let table = [
        ("STOP", Ok(FinishReason::Stop)),
        ("FINISH_REASON_UNSPECIFIED", Ok(FinishReason::Unspecified)),
        ("", Ok(FinishReason::Unspecified)),
        ("MAX_TOKENS", Err(Truncated)),
        ("SAFETY", Err(Blocked)),
        ("RECITATION", Err(Blocked)),
        ("LANGUAGE", Err(Blocked)),
        ("OTHER", Err(Stopped)),
        ("BLOCKLIST", Err(Blocked)),
        ("PROHIBITED_CONTENT", Err(Blocked)),
        ("SPII", Err(Blocked)),
        ("MALFORMED_FUNCTION_CALL", Err(Stopped)),
        ("IMAGE_SAFETY", Err(Blocked)),
        ("UNEXPECTED_TOOL_CALL", Err(Stopped)),
        ("TOO_MANY_TOOL_CALLS", Err(Stopped)),
        ("IMAGE_PROHIBITED_CONTENT", Err(Blocked)),
        ("NO_IMAGE", Err(Blocked)),
        ("IMAGE_RECITATION", Err(Blocked)),
        ("IMAGE_OTHER", Err(Blocked)),
        ("NEW_ONE", Ok(FinishReason::Unknown("NEW_ONE".into()))),
    ];
    for (name, expected) in table {
        // A text beside it changes nothing: half a text is none.
        let judged = judged(&[candidate(&json!([{ "text": "some text" }]), name)], None);
        match expected {
            Ok(finish) => {
                let draft = judged.unwrap();
                assert_eq!((draft.text.as_str(), draft.finish), ("some text", finish));
            }
            Err(kind) => {
                let failure = judged.unwrap_err();
                assert_eq!(failure.kind, kind, "{name}");
                assert_eq!(failure.reason.as_deref(), Some(name));
                assert_eq!(failure.cause, crate::retry::Cause::Final, "{name}");
                if kind != Truncated {
                    assert!(failure.text.ends_with(name), "{}", failure.text);
                }
            }
        }
    }
}

#[test]
fn a_reason_that_is_missing_is_unspecified() {
    let document = json!({ "candidates": [{ "content": { "parts": [{ "text": "t" }] } }] });
    assert_eq!(
        judged(&[document], None).unwrap().finish,
        FinishReason::Unspecified
    );
}

#[test]
fn text_parts_are_joined_over_a_stream_and_thoughts_left_out() {
    let usage = json!({
        "promptTokenCount": 10, "candidatesTokenCount": 4, "thoughtsTokenCount": 90,
        "cachedContentTokenCount": 3, "totalTokenCount": 104,
    });
    let documents = [
        json!({
            "candidates": [{ "content": { "parts": [
                { "text": "hidden", "thought": true }, { "text": "a" }, { "text": " b" },
            ] } }],
            "usageMetadata": { "promptTokenCount": 10 },
            "modelVersion": "gemini-x-001",
        }),
        candidate(
            &json!([{ "text": " c" }, { "thoughtSignature": "sig" }]),
            "STOP",
        ),
        // The last frame of a stream may hold nothing but the final count.
        json!({ "usageMetadata": usage }),
    ];
    let draft = judged(&documents, None).unwrap();
    assert_eq!(draft.text, "a b c");
    assert_eq!(draft.finish, FinishReason::Stop);
    assert_eq!(draft.model_version.as_deref(), Some("gemini-x-001"));
    let expected = Usage {
        prompt: 10,
        output: 4,
        thoughts: 90,
        cached: 3,
        total: 104,
    };
    assert_eq!(draft.usage, expected);
    let answer = draft.answer(3, true);
    assert_eq!((answer.text.as_str(), answer.usage), ("a b c", expected));
    assert_eq!((answer.key_place, answer.thinking_dropped), (3, true));
}

#[test]
fn an_answer_without_text_says_what_there_is_instead() {
    let table = [
        (
            json!({ "candidates": [] }),
            "Gemini gave no answer: no candidates",
        ),
        (json!({}), "Gemini gave no answer: no candidates"),
        (
            json!({ "candidates": [{ "finishReason": "STOP" }] }),
            "Gemini gave no text",
        ),
        (
            candidate(&json!([{ "text": " \n" }]), "STOP"),
            "Gemini gave no text",
        ),
        (
            candidate(
                &json!([{ "text": "only thoughts", "thought": true }]),
                "STOP",
            ),
            "Gemini gave no text",
        ),
        (
            candidate(&json!([{ "functionCall": { "name": "f" } }]), "STOP"),
            "Gemini gave no text but a tool call",
        ),
        (
            candidate(&json!([]), "NEW_ONE"),
            "Gemini gave no text: NEW_ONE",
        ),
    ];
    for (document, text) in table {
        let failure = refused(document, None);
        assert_eq!(
            (failure.kind, failure.text.as_str()),
            (ErrorKind::Empty, text)
        );
    }
    assert_eq!(judged(&[], None).unwrap_err().kind, ErrorKind::Empty);
}

#[test]
fn a_blocked_prompt_keeps_the_server_s_word() {
    for reason in ["SAFETY", "PROHIBITED_CONTENT", "JAILBREAK_9000"] {
        let failure = refused(json!({ "promptFeedback": { "blockReason": reason } }), None);
        assert_eq!(failure.kind, ErrorKind::Blocked);
        assert_eq!(failure.reason.as_deref(), Some(reason));
        assert_eq!(failure.text, format!("Gemini blocked the prompt: {reason}"));
    }
}

#[test]
fn a_cut_answer_tells_what_thoughts_took_of_it() {
    let mut document = candidate(&json!([{ "text": "" }]), "MAX_TOKENS");
    document["usageMetadata"] = json!({ "thoughtsTokenCount": 4090, "candidatesTokenCount": 6 });
    let failure = refused(document.clone(), None);
    let text = "Gemini's answer was cut at the output limit \
                (4090 tokens went to thoughts, 6 to the answer)";
    assert_eq!(
        (failure.kind, failure.text.as_str()),
        (ErrorKind::Truncated, text)
    );
    assert_eq!(failure.usage.unwrap().thoughts, 4090);
    document["usageMetadata"] = json!({ "candidatesTokenCount": 4096 });
    let text = "Gemini's answer was cut at the output limit";
    assert_eq!(refused(document, None).text, text);
}

#[test]
fn an_answer_must_be_one_document_of_the_schema_s_type() {
    let ids = || Schema::Array {
        items: Box::new(Schema::String),
        max_items: None,
    };
    let object = Schema::Object(vec![Property::required("drop", ids())]);
    let answered = |text: &str, schema: &Schema| {
        judged(
            &[candidate(&json!([{ "text": text }]), "STOP")],
            Some(schema),
        )
        .map_err(|failure| (failure.kind, failure.text))
    };
    for (text, schema) in [
        (" {\"drop\": []}\n", &object),
        ("[\"c1\"]", &ids()),
        ("\"x\"", &Schema::String),
        ("\"keep\"", &Schema::Enum(vec!["keep".into()])),
        ("true", &Schema::Boolean),
    ] {
        assert_eq!(
            answered(text, schema).unwrap().text,
            text,
            "left as it came"
        );
    }
    let table = [
        ("{\"drop\": [", &object, "broken at line 1, column 10"),
        ("{}{}", &object, "broken at line 1, column 3"),
        ("```json\n{}\n```", &object, "broken at line 1, column 1"),
        ("[]", &object, "no object"),
        ("{}", &ids(), "no array"),
        ("1", &Schema::String, "no string"),
        ("null", &Schema::Enum(vec![]), "no string"),
        ("0", &Schema::Boolean, "no boolean"),
    ];
    for (text, schema, problem) in table {
        let expected = format!("Gemini's answer is not the JSON that was asked for: {problem}");
        let refused = answered(text, schema).unwrap_err();
        assert_eq!(refused, (ErrorKind::Malformed, expected), "{text:?}");
    }
    let deep = "[".repeat(100_000);
    assert_eq!(answered(&deep, &ids()).unwrap_err().0, ErrorKind::Malformed);
}

#[test]
fn words_of_the_server_are_scrubbed_and_the_text_is_not_touched() {
    let planted = "NEW AIzaPlanted-0001";
    let mut document = candidate(
        &json!([{ "text": "an example: AIzaPlanted-0001" }]),
        planted,
    );
    document["modelVersion"] = planted.into();
    let draft = judged(&[document], None).unwrap();
    assert_eq!(
        draft.text, "an example: AIzaPlanted-0001",
        "the caller's own"
    );
    assert_eq!(draft.finish, FinishReason::Unknown("NEW [key]".into()));
    assert_eq!(draft.finish.to_string(), "NEW [key]");
    assert_eq!(draft.model_version.as_deref(), Some("NEW [key]"));
    let failure = refused(
        json!({ "promptFeedback": { "blockReason": planted } }),
        None,
    );
    assert_eq!(failure.reason.as_deref(), Some("NEW [key]"));
    assert_eq!(failure.text, "Gemini blocked the prompt: NEW [key]");
}
