//! Keys are planted wherever a server, a proxy or a caller can put them, and looked for wherever
//! the crate says something.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ctxfold_gemini_client::{Answer, Client, ClientBuilder, Error, Keys, Request};
use serde_json::{Value, json};
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request as Received, Respond, ResponseTemplate};

use crate::support::*;

/// The client's own keys, in Google's forms and in none, and one of somebody else.
const PLANTED: [&str; 4] = [
    "AIzaSyPlanted-first_0001",
    "AQ.Ab8-planted_second.0002",
    "plainplantedthird",
    "AIzaSyOf-Somebody-Planted-Else",
];

fn keys() -> Keys {
    Keys::parse(&PLANTED[..3].join(",")).unwrap()
}

/// Everything that a value says.
fn said(value: &impl Debug) -> [String; 2] {
    [format!("{value:?}"), format!("{value:#?}")]
}

/// What a program says that panics over a value.
fn panicked(value: impl Debug) -> String {
    let fails = || -> Result<(), _> { Err(value) };
    let panic = catch_unwind(AssertUnwindSafe(|| fails().unwrap())).unwrap_err();
    panic.downcast_ref::<String>().unwrap().clone()
}

fn said_by(error: &Error) -> Vec<String> {
    let mut all = said(error).to_vec();
    all.push(error.to_string());
    all.extend(error.reason().map(str::to_owned));
    all.extend(error.suggestions().iter().cloned());
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        all.extend(said(&error));
        all.push(error.to_string());
        source = error.source();
    }
    all
}

/// Fails also on a part of a key that is long enough to be of use.
fn check(texts: impl IntoIterator<Item = String>, what: &str) {
    for text in texts {
        for key in PLANTED {
            let parts = key
                .as_bytes()
                .windows(8)
                .map(|part| str::from_utf8(part).unwrap());
            for part in parts {
                assert!(!text.contains(part), "{part} leaked from {what}:\n{text}");
            }
        }
    }
}

/// Bodies that quote the keys in every place that is read.
fn bodies() -> Vec<String> {
    let [first, second, third, other] = PLANTED;
    let texts = [
        format!("Consumer 'api_key:{first}' has been suspended"),
        format!("{other}{third}{second}{first}"),
        format!("at https://h/v1beta/models?key={third}&x={second}"),
        format!("Authorization: Bearer {third}; x-goog-api-key: {other}"),
        format!("{}{third} and {first}", "x".repeat(195)),
        format!("two\nlines\u{1b}[31m {first}\0{third}"),
    ];
    let mut bodies = Vec::new();
    for text in &texts {
        let error = json!({ "error": {
            "code": 400, "message": text, "status": text,
            "details": [{ "reason": text, "message": text, "retryDelay": text }],
        } });
        bodies.extend([
            error.to_string(),
            json!([error]).to_string(),
            json!(error.to_string()).to_string(),
            json!({ "error": { "code": text, "message": text } }).to_string(),
            json!({ "error": text }).to_string(),
            json!({ "error": { "message": error.to_string() } }).to_string(),
            json!({ "promptFeedback": { "blockReason": text } }).to_string(),
            format!("{error}{text}"),
            format!("{{\"candidates\": {text}"),
            format!("<html>{text}</html>"),
            text.clone(),
        ]);
        for finish in [text.as_str(), "MAX_TOKENS", "SAFETY"] {
            let mut document = json!({ "candidates": [{ "finishReason": finish }] });
            document["modelVersion"] = text.as_str().into();
            bodies.push(document.to_string());
        }
    }
    // Only the beginning of a long text is read, and its end goes through a key.
    let long = format!("{}{third}", " ".repeat(64 * 1024 - 8));
    bodies.push(json!({ "error": { "message": long } }).to_string());
    bodies
}

/// Answers carry the model's text, which is the caller's own, and words of the server.
fn said_by_answer(answer: &Answer) -> Vec<String> {
    let mut all = vec![answer.finish.to_string()];
    all.extend(answer.model_version.clone());
    all
}

/// Gives everybody the reply that is set, with keys in its headers too.
#[derive(Clone, Default)]
struct Set(Arc<Mutex<(u16, String)>>);

impl Respond for Set {
    fn respond(&self, _: &Received) -> ResponseTemplate {
        let (status, body) = self.0.lock().unwrap().clone();
        ResponseTemplate::new(status)
            .insert_header("location", format!("https://h/?key={}", PLANTED[0]))
            .insert_header("www-authenticate", format!("Key {}", PLANTED[1]))
            .insert_header("retry-after", PLANTED[2])
            .set_body_string(body)
    }
}

#[tokio::test]
async fn no_reply_brings_a_key_into_anything_that_is_said() {
    let reply = Set::default();
    let server = MockServer::start().await;
    Mock::given(any())
        .respond_with(reply.clone())
        .mount(&server)
        .await;
    let client = hasty(&server.uri()).build().unwrap();
    let mut said_in_all = 0;
    for body in bodies() {
        for status in [200, 307, 403] {
            *reply.0.lock().unwrap() = (status, body.clone());
            let what = format!("HTTP {status} with {body}");
            let mut texts = Vec::new();
            let mut listen = |progress| texts.extend(said(&progress));
            match client.generate_stream(&question(), &mut listen).await {
                Err(error) => texts.extend(said_by(&error)),
                Ok(answer) => texts.extend(said_by_answer(&answer)),
            }
            let errors = [
                client.check_model("m").await.err(),
                client.count_tokens(&question()).await.err(),
            ];
            texts.extend(errors.iter().flatten().flat_map(said_by));
            texts.extend(said(&client));
            said_in_all += texts.len();
            check(texts, &what);
        }
    }
    assert!(said_in_all > 3_000, "{said_in_all}");
}

fn builder_of(url: &str) -> ClientBuilder {
    Client::builder(keys()).base_url(url)
}

/// The deadline is too short for the wait before a second attempt, so that no test waits.
fn hasty(url: &str) -> ClientBuilder {
    builder_of(url).deadline(Duration::from_millis(900))
}

#[tokio::test]
async fn words_of_the_server_in_an_answer_are_without_keys() {
    let document: Value = json!({
        "candidates": [{
            "content": { "parts": [{ "text": "ok" }] },
            "finishReason": format!("NEW_{}", PLANTED[0]),
        }],
        "modelVersion": PLANTED[2],
    });
    let server = always(ResponseTemplate::new(200).set_body_json(document)).await;
    let client = builder_of(&server.uri()).build().unwrap();
    let answer = client.generate(&question()).await.unwrap();
    assert_eq!(answer.finish.to_string(), "NEW_[key]");
    assert_eq!(answer.model_version.as_deref(), Some("[key]"));
    check(said(&answer), "an answer");
}

#[tokio::test]
async fn no_key_in_a_wrong_place_is_repeated() {
    let dead = nobody().await;
    for key in PLANTED {
        let wrong = [
            builder_of(&format!("https://gemini.example/?key={key}")),
            builder_of(&format!("https://user:{key}@gemini.example")),
            builder_of(&format!("{key}://gemini.example")),
            builder_of(key),
            builder_of(&dead).proxy(format!("http://user:{key}@")),
            builder_of(&dead).proxy(format!("gopher://{key}")),
            builder_of(&dead).user_agent(format!("{key}\n")),
        ];
        for builder in wrong {
            check(said(&builder), "a builder");
            let error = builder.build().expect_err(key);
            check(said_by(&error), "a set-up");
        }
        let error = Keys::parse(&format!("a,{key}\u{e9}")).unwrap_err();
        check(said_by(&error), "keys that are none");

        // A proxy and a path that hold a key, and a server that is not there.
        let proxy = dead.replace("http://", &format!("http://{key}:{key}@"));
        for builder in [
            hasty(&format!("{dead}/{key}")),
            hasty(&dead.replace("http", "https")).proxy(&proxy),
            hasty(&dead).proxy(&proxy),
        ] {
            check(said(&builder), "a builder");
            let client = builder.build().unwrap();
            for model in [MODEL, key, &format!("m?key={key}")] {
                let request = Request::new(model, key);
                for error in [
                    client.generate(&request).await.unwrap_err(),
                    client.check_model(model).await.unwrap_err(),
                ] {
                    check(said_by(&error), "a dead network");
                }
            }
            check(said(&client), "a client");
        }
    }
    for key in keys().iter() {
        check(said(&key), "a key");
        check([key.to_string()], "a key");
    }
    check(said(&keys()), "keys");
}

/// The list is there, and the id that is not on it is a key.
#[tokio::test]
async fn a_key_in_place_of_a_model_is_not_repeated() {
    let methods = json!(["generateContent"]);
    let list = json!({ "models": [
        { "name": "models/m-1", "supportedGenerationMethods": methods },
    ] });
    let server = always(ResponseTemplate::new(200).set_body_json(list)).await;
    let client = builder_of(&server.uri()).build().unwrap();
    for key in PLANTED {
        let error = client.check_model(key).await.unwrap_err();
        assert_eq!(error.to_string(), "unknown model [key]; the closest is m-1");
        check(said_by(&error), "an unknown model");
    }
}

/// Rust programs that fail print `Debug`, and so does a panic.
#[tokio::test]
async fn a_panic_shows_no_key() {
    let message = format!("api_key:{} is suspended. {}", PLANTED[0], PLANTED[2]);
    let body = json!({ "error": { "message": message } });
    let server = always(ResponseTemplate::new(403).set_body_json(body)).await;
    let builder = builder_of(&server.uri());
    let client = builder.clone().build().unwrap();
    let error = client.generate(&question()).await.unwrap_err();
    let text = panicked(error);
    assert!(text.contains("api_key:[key] is suspended"), "{text}");
    let texts = [text, panicked(client), panicked(builder), panicked(keys())];
    check(texts, "a panic");
}
