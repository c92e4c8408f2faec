//! Answers that are not whole, and what is sent for a schema.

use serde_json::{Value, json};

use crate::tests::support::*;
use crate::{ErrorKind, FinishReason, Property, Request, Schema};

fn finished(text: &str, finish: &str) -> Value {
    json!({ "candidates": [{
        "content": { "parts": [{ "text": text }] }, "finishReason": finish,
    }] })
}

fn object() -> Schema {
    Schema::Object(vec![Property::required("k", Schema::String)])
}

/// hermes#87208: thoughts took the whole output.
#[tokio::test]
async fn thoughts_that_eat_the_output_are_named() {
    let mut document = finished("", "MAX_TOKENS");
    document["usageMetadata"] = json!({
        "promptTokenCount": 900, "thoughtsTokenCount": 4090, "totalTokenCount": 4990,
    });
    let stage = Stage::new("k1,k2", [answer(&document)]).await;
    let error = stage.fail().await;
    assert_eq!(error.kind(), ErrorKind::Truncated);
    let expected = "Gemini's answer was cut at the output limit \
                    (4090 tokens went to thoughts, 0 to the answer)";
    assert_eq!(error.to_string(), expected);
    let usage = error.usage().unwrap();
    assert_eq!(
        (usage.prompt, usage.thoughts, usage.total),
        (900, 4090, 4990)
    );
    assert_eq!(stage.script.keys(), ["k1"], "not paid twice");
}

/// instructor#2210: repetitions carried the broken answer along, and the cost multiplied.
#[tokio::test]
async fn a_repetition_sends_the_same_request_and_a_cut_answer_gets_none() {
    let stage = Stage::new("k1", [answer(&finished("half an ans", "MAX_TOKENS"))]).await;
    assert_eq!(stage.fail().await.kind(), ErrorKind::Truncated);
    assert_eq!(
        stage.stream().await.unwrap_err().kind(),
        ErrorKind::Truncated
    );
    assert_eq!(stage.script.bodies().len(), 2, "one a call");

    let failed = || error(500, "internal error", &json!(null));
    let stage = Stage::new("k1,k2", [failed(), text("ok")]).await;
    assert_eq!(stage.ask().await.unwrap().text, "ok");
    let bodies = stage.script.bodies();
    assert_eq!(bodies.len(), 2);
    assert_eq!(bodies[0], bodies[1]);
}

/// cookbook#1288: a number repeats its digits up to the limit.
#[tokio::test]
async fn a_number_without_end_is_cut_and_not_malformed() {
    let endless = format!("{{\"k\":1.{}", "0".repeat(5_000));
    let stage = Stage::new("k1", [answer(&finished(&endless, "MAX_TOKENS"))]).await;
    let request = Request {
        schema: Some(object()),
        ..question()
    };
    let error = stage.client.generate(&request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Truncated);
    assert!(error.is_answer());
    assert!(!error.to_string().contains("000"), "the text is not quoted");
}

/// generative-ai-docs#257, generative-ai-go#72.
#[tokio::test]
async fn a_recitation_and_an_empty_candidate_are_errors_of_their_own() {
    let recited = json!({ "candidates": [{ "finishReason": "RECITATION" }] });
    let stage = Stage::new("k1,k2", [answer(&recited)]).await;
    let error = stage.fail().await;
    assert_eq!(error.kind(), ErrorKind::Blocked);
    assert_eq!(error.reason(), Some("RECITATION"));
    assert_eq!(error.to_string(), "Gemini blocked the answer: RECITATION");

    for empty in [
        json!({ "candidates": [{}] }),
        json!({ "candidates": [{ "content": { "role": "model" }, "finishReason": "STOP" }] }),
        json!({ "candidates": [] }),
        json!({ "usageMetadata": { "promptTokenCount": 5 } }),
    ] {
        let stage = Stage::new("k1,k2", [answer(&empty)]).await;
        assert_eq!(stage.fail().await.kind(), ErrorKind::Empty, "{empty}");
        assert_eq!(stage.script.keys(), ["k1"], "paid once");
    }
}

/// flutterfire#17834: a finish reason that came later than the program.
#[tokio::test]
async fn an_unknown_finish_reason_is_kept_as_it_is_spelled() {
    let stage = Stage::new("k1", [answer(&finished("fine", "NEW_ONE"))]).await;
    for answer in [stage.ask().await.unwrap(), stage.stream().await.unwrap()] {
        assert_eq!(answer.text, "fine");
        assert_eq!(answer.finish, FinishReason::Unknown("NEW_ONE".into()));
        assert_eq!(answer.finish.to_string(), "NEW_ONE");
    }
}

/// python-genai#660, python-genai#950: a schema with an enum of a few hundred values is refused.
#[tokio::test]
async fn a_schema_with_too_many_states_is_an_error_of_its_own() {
    let message = "The specified schema produces a constraint that has too many states for \
                   serving. Typical causes are long names, long arrays and many enum values.";
    let stage = Stage::new("k1,k2", [error(400, message, &json!(null))]).await;
    let error = stage.fail().await;
    assert_eq!(error.kind(), ErrorKind::SchemaTooComplex);
    assert_eq!(stage.script.keys(), ["k1"]);
}

/// Three hundred ids fit, because they are strings and not values of an enum.
#[tokio::test]
async fn ids_in_plain_strings_are_the_caller_s_to_check() {
    let ids: Vec<_> = (1..=300).map(|number| format!("c{number}")).collect();
    let chosen = json!({ "drop": ids }).to_string();
    let stage = Stage::new("k1", [text(&chosen)]).await;
    let list = Schema::Array {
        items: Box::new(Schema::String),
        max_items: None,
    };
    let request = Request {
        schema: Some(Schema::Object(vec![Property::required("drop", list)])),
        ..question()
    };
    let answer = stage.client.generate(&request).await.unwrap();
    assert_eq!(answer.text, chosen);
    let sent = &stage.script.bodies()[0]["generationConfig"]["responseSchema"];
    assert!(sent.to_string().len() < 200, "{sent}");
    assert!(!sent.to_string().contains("enum"), "{sent}");
}

/// Kiln#398, superteam#463: integer enums, ranges and `additionalProperties` are refused.
#[tokio::test]
async fn a_schema_has_only_what_the_api_takes() {
    let every = Schema::Object(vec![
        Property::required(
            "list",
            Schema::Array {
                items: Box::new(object()),
                max_items: Some(7),
            },
        ),
        Property::required("choice", Schema::Enum(vec!["a".into(), "b".into()])),
        Property::optional("flag", Schema::Boolean).describe("additionalProperties is a word here"),
    ]);
    let stage = Stage::new("k1", [text("{}")]).await;
    let request = Request {
        schema: Some(every),
        ..question()
    };
    stage.client.generate(&request).await.unwrap();
    let config = &stage.script.bodies()[0]["generationConfig"];
    assert_eq!(config["responseMimeType"], "application/json");
    check_schema(&config["responseSchema"]);
}

fn check_schema(schema: &Value) {
    for (name, value) in schema.as_object().unwrap() {
        match name.as_str() {
            "type" => assert!(
                ["OBJECT", "ARRAY", "STRING", "BOOLEAN"].contains(&value.as_str().unwrap()),
                "{value}"
            ),
            "enum" | "required" | "propertyOrdering" => {
                assert!(
                    value.as_array().unwrap().iter().all(Value::is_string),
                    "{value}"
                );
            }
            "properties" => value.as_object().unwrap().values().for_each(check_schema),
            "items" => check_schema(value),
            "maxItems" => assert!(value.is_u64()),
            "description" | "format" => assert!(value.is_string()),
            other => panic!("{other} is not in the API's subset"),
        }
    }
}
