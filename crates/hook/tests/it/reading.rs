//! Reading from pipes that stay open, dribble, or hold more than anybody wants.

use std::io::{Read, Write, pipe};
use std::time::{Duration, Instant};

use ctxfold_hook::{ErrorKind, Host, Input, Limits, Sieve, Status, Until, read_document};
use proptest::prelude::*;

const DOCUMENT: &str = r#"{"session_id":"s","hook_event_name":"PostToolUse"}"#;

fn soon() -> Limits {
    Limits {
        time: Duration::from_millis(200),
        ..Limits::default()
    }
}

#[test]
fn a_pipe_that_stays_open_does_not_hang() {
    let (reader, mut writer) = pipe().unwrap();
    writer.write_all(DOCUMENT.as_bytes()).unwrap();
    let document = read_document(reader, Limits::default()).unwrap();
    assert_eq!(document.text, DOCUMENT);
    drop(writer);
}

#[test]
fn a_pipe_that_says_nothing_is_left_in_time() {
    let start = Instant::now();
    let (reader, writer) = pipe().unwrap();
    assert_eq!(
        read_document(reader, soon()).unwrap_err().kind(),
        ErrorKind::TimedOut
    );
    assert!(start.elapsed() < Duration::from_secs(5));
    drop(writer);
}

#[test]
fn the_end_of_the_input_can_be_asked_for() {
    let limits = Limits {
        until: Until::EndOfInput,
        ..soon()
    };
    let (reader, mut writer) = pipe().unwrap();
    writer.write_all(DOCUMENT.as_bytes()).unwrap();
    assert_eq!(
        read_document(reader, limits).unwrap_err().kind(),
        ErrorKind::TimedOut
    );
    drop(writer);
    let (reader, mut writer) = pipe().unwrap();
    writer.write_all(DOCUMENT.as_bytes()).unwrap();
    drop(writer);
    assert_eq!(read_document(reader, limits).unwrap().text, DOCUMENT);
}

#[test]
fn what_follows_a_huge_result_is_still_read() {
    let head = br#"{"tool_response":{"stdout":""#.to_vec();
    let body = std::io::repeat(b'x').take(50 << 20);
    let tail = br#""},"session_id":"s","hook_event_name":"Stop"}"#.to_vec();
    let stream = std::io::Cursor::new(head)
        .chain(body)
        .chain(std::io::Cursor::new(tail));
    let document = read_document(
        stream,
        Limits {
            time: Duration::from_mins(1),
            ..Limits::default()
        },
    )
    .unwrap();
    assert!(document.text.len() < 1 << 20);
    assert_eq!(document.dropped, 1);
    let input = Input::parse(Host::Claude, &document.text).unwrap();
    assert_eq!(input.session_id.as_deref(), Some("s"));
    assert_eq!(input.event_name(), Some("Stop"));
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        "[\\PC\"\\\\{}\\[\\],:\u{0}-\u{1f}]{0,12}".prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(serde_json::Value::from),
            prop::collection::btree_map("[a-z\"{]{0,4}", inner, 0..5)
                .prop_map(|m| serde_json::Value::Object(m.into_iter().collect())),
        ]
    })
}

proptest! {
    /// The oracle is a full parser: the sieve ends exactly where it does, however the text is cut.
    #[test]
    fn the_sieve_ends_where_a_parser_does(
        members in prop::collection::btree_map("[a-z]{1,4}", json(), 0..5),
        cut in 1usize..9,
    ) {
        let text = serde_json::Value::Object(members.into_iter().collect()).to_string();
        let mut sieve = Sieve::new(1 << 20);
        let bytes = text.as_bytes();
        for (i, piece) in bytes.chunks(cut).enumerate() {
            let status = sieve.push(piece).unwrap();
            let last = (i + 1) * cut >= bytes.len();
            prop_assert_eq!(status == Status::Complete, last);
        }
        prop_assert_eq!(sieve.finish().unwrap(), text);
    }

    /// Under any limit the kept text is JSON with the same keys, each value whole or null.
    #[test]
    fn the_sieve_keeps_whole_members_or_null(
        members in prop::collection::btree_map("[a-z]{1,4}", json(), 0..6),
        limit in 80usize..200,
    ) {
        let whole = serde_json::Value::Object(members.clone().into_iter().collect());
        let mut sieve = Sieve::new(limit);
        sieve.push(whole.to_string().as_bytes()).unwrap();
        let kept = sieve.finish().unwrap();
        prop_assert!(kept.len() <= limit);
        let kept: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&kept).unwrap();
        prop_assert_eq!(kept.len(), members.len());
        for (key, value) in kept {
            prop_assert!(value == members[&key] || value.is_null());
        }
    }

    /// Nothing that a host could write makes the reader panic.
    #[test]
    fn no_input_panics(text in "[\\PC{}\\[\\]\":,\\\\]{0,64}") {
        let mut sieve = Sieve::new(64);
        if sieve.push(text.as_bytes()).is_ok() && let Ok(kept) = sieve.finish() {
            let _ = Input::parse(Host::Codex, &kept);
        }
        let _ = Input::parse(Host::Gemini, &text);
    }
}
