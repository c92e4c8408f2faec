//! Every status that says no, with and without details, with one key and with three.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use serde_json::json;
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request as Received, Respond, ResponseTemplate};

use super::support::{VirtualClock, error, key_of, question};
use crate::transport::Transport;
use crate::{Client, Keys};

const KEYS: [&str; 3] = [
    "AIzaPlanted-first-0001",
    "AQ.planted-second-0002",
    "plainplanted-third-0003",
];

/// Answers by the path `/<status>/<details>/…` and plants the key in the body, in every way that
/// was seen.
#[derive(Clone, Default)]
struct ByPath(Arc<Mutex<Vec<String>>>);

impl Respond for ByPath {
    fn respond(&self, request: &Received) -> ResponseTemplate {
        let key = key_of(request);
        let mut path = request.url.path().split('/').skip(1);
        let status: u16 = path.next().unwrap().parse().unwrap();
        let detailed = path.next() == Some("details");
        self.0.lock().unwrap().push(key.clone());
        if !detailed {
            return error(
                status,
                &format!("Refused for {key} at https://h/?key={key}."),
                &json!(null),
            );
        }
        let reason = if status == 400 {
            "API_KEY_INVALID"
        } else {
            "SOME_REASON"
        };
        let details = json!([
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": reason,
                "metadata": { "consumer": format!("api_key:{key}") },
            },
            {
                "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                "violations": [{ "quotaId": "PerMinute" }],
            },
            { "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "26.5s" },
            {
                "@type": "type.googleapis.com/google.rpc.LocalizedMessage",
                "message": format!("Bearer {key}"),
            },
        ]);
        error(
            status,
            &format!("Consumer 'api_key:{key}' is refused. Write to support with {key}."),
            &details,
        )
    }
}

#[tokio::test]
async fn every_status_is_handled_as_the_table_says() {
    let seen = ByPath::default();
    let server = MockServer::start().await;
    Mock::given(any())
        .respond_with(seen.clone())
        .mount(&server)
        .await;

    let transport = Transport::new(Client::builder(Keys::parse("k").unwrap()).settings()).unwrap();
    let mut table = String::new();
    for details in ["plain", "details"] {
        for count in [1, 3] {
            let mut rows: Vec<(u16, u16, String)> = Vec::new();
            for status in 400..=599 {
                let row = row(
                    &transport.moved(&format!("{}/{status}/{details}", server.uri())),
                    &seen,
                    status,
                    count,
                )
                .await
                .replace(&status.to_string(), "N");
                match rows.last_mut() {
                    Some((_, last, same)) if *same == row => *last = status,
                    _ => rows.push((status, status, row)),
                }
            }
            writeln!(table, "# {details}, keys: {count}").unwrap();
            for (first, last, row) in rows {
                let range = if first == last {
                    first.to_string()
                } else {
                    format!("{first}-{last}")
                };
                writeln!(table, "{range:7} {row}").unwrap();
            }
        }
    }
    for planted in ["planted", "Planted", "AIza", "AQ."] {
        assert!(!table.contains(planted), "{planted} leaked:\n{table}");
    }
    insta::assert_snapshot!(table);
}

/// One call's story: keys in the order in which they were sent, waits in seconds, the error.
async fn row(transport: &Transport, seen: &ByPath, status: u16, count: usize) -> String {
    seen.0.lock().unwrap().clear();
    let clock = VirtualClock::default();
    let keys = Keys::parse(&KEYS[..count].join(",")).unwrap();
    let client = Client::builder(keys).build_with(transport.clone(), Arc::new(clock.clone()));
    let error = client.generate(&question()).await.unwrap_err();
    assert_eq!(error.status(), Some(status));
    assert!(
        !format!("{error:?}{client:?}")
            .to_lowercase()
            .contains("planted"),
        "{error:?}"
    );

    let place =
        |key: &String| (1 + KEYS.iter().position(|known| known == key).unwrap()).to_string();
    let sent: Vec<_> = seen.0.lock().unwrap().iter().map(place).collect();
    let waits: Vec<_> = clock
        .waits()
        .iter()
        .map(|wait| wait.as_secs_f64().to_string())
        .collect();
    let waits = if waits.is_empty() {
        "-".to_owned()
    } else {
        waits.join(",")
    };
    format!(
        "sent to {:8} waits {:15} {:?}: {error}",
        sent.join(","),
        waits,
        error.kind()
    )
}
