//! What users of Codex reported, one input each.

use std::fs;

use ctxfold_session_codex::{CommitOptions, Query, Thread, check, explain, glance, scan, unfold};
use ctxfold_transcript::{Content, Mode, Plan};
use serde_json::json;

use crate::common::{ALL, Home, bare, line, lines, meta_line, push, stamp, summary};

/// openai/codex#43744: the offset of a replaced rollout lands inside a line.
#[test]
fn an_offset_inside_a_line_is_found_by_the_byte_before_it() {
    let home = Home::new("paginated-0.171.0");
    home.history()
        .execute(
            "UPDATE thread_history_projection_state SET next_rollout_byte_offset = 700",
            [],
        )
        .unwrap();
    let findings = check(&home.store(), &home.rollout()).unwrap();
    let found = findings
        .iter()
        .find(|f| f.code == "projection-mid-line")
        .unwrap();
    assert_eq!(found.offset, Some(700));
    assert!(
        explain(found.code)
            .unwrap()
            .contains("thread_history_1.sqlite")
    );
    let at_a_glance = glance(&home.store(), &home.rollout()).unwrap();
    assert!(at_a_glance.contains(found), "{at_a_glance:?}");
}

/// The ends of a rollout tell what the whole of it tells, wherever the damage is there.
#[test]
fn a_glance_agrees_with_the_whole() {
    let about = |f: &&ctxfold_session_codex::Finding| !matches!(f.code, "bad-line" | "store-wal");
    for name in ALL {
        for tail in [
            "",
            "{\"torn",
            "{\"torn\n",
            "{\"type\":\"event_msg\",\"payload\":{}}\n",
        ] {
            let home = Home::new(name);
            let path = home.rollout();
            if path.extension().is_some_and(|e| e == "zst") && !tail.is_empty() {
                continue;
            }
            push(&path, tail.as_bytes());
            let codes = |findings: Vec<_>| -> Vec<&str> {
                let mut codes: Vec<_> = findings.iter().filter(about).map(|f| f.code).collect();
                codes.sort_unstable();
                codes
            };
            let whole = codes(check(&home.store(), &path).unwrap());
            let ends = codes(glance(&home.store(), &path).unwrap());
            assert_eq!(ends, whole, "{name} and {tail:?}");
        }
    }
}

/// openai/codex#35091: a damaged store.
#[test]
fn a_damaged_store_is_told_and_left_alone() {
    for damage in [&b"SQLite format 3\0 and then nothing"[..], b"", b"\0\0\0\0"] {
        let home = Home::new("paginated-0.171.0");
        for name in ["state_5.sqlite", "thread_history_1.sqlite"] {
            fs::write(home.path.join(name), damage).unwrap();
        }
        let before = home.bytes();
        let (entries, findings) = home.store().entries();
        assert_eq!(entries.len(), 1);
        assert!(
            findings.iter().any(|f| f.code == "store-malformed"),
            "{findings:?}"
        );
        let findings = check(&home.store(), &entries[0].path).unwrap();
        assert!(
            findings.iter().any(|f| f.code == "store-malformed"),
            "{findings:?}"
        );
        assert!(home.bytes() == before);
    }
}

/// openai/codex#28689: a migration that this version does not know, or that is missing.
#[test]
fn an_unknown_migration_is_told() {
    let home = Home::new("paginated-0.150.1");
    home.history()
        .execute("DELETE FROM _sqlx_migrations WHERE version = 6", [])
        .unwrap();
    let findings = check(&home.store(), &home.rollout()).unwrap();
    assert!(
        findings.iter().any(|f| f.code == "schema-unknown"),
        "{findings:?}"
    );
}

/// openai/codex#21734: a time that is missing hides a thread.
#[test]
fn a_missing_time_hides_no_thread_here() {
    let home = Home::new("paginated-0.171.0");
    let state = rusqlite::Connection::open(home.path.join("state_5.sqlite")).unwrap();
    state
        .execute("UPDATE threads SET updated_at_ms = NULL", [])
        .unwrap();
    let (entries, findings) = home.store().entries();
    assert_eq!(entries[0].updated_ms, 1_796_079_750_000);
    assert!(findings.iter().any(|f| f.code == "store-null-time"));
    assert!(home.store().find(&Query::Newest(None)).is_ok());
}

/// openai/codex#40323 and #37346: compactions that store the same images again and again.
#[test]
fn images_are_not_stored_again() {
    let image = format!("data:image/png;base64,{}", "iVBORw0KGgo".repeat(900));
    let user = json!({"type": "message", "role": "user", "content": [
        {"type": "input_text", "text": "look"}, {"type": "input_image", "image_url": image}]});
    let prompt = |text: &str| {
        json!({"type": "message", "role": "user",
            "content": [{"type": "input_text", "text": text}]})
    };
    let history: Vec<_> = (0..20)
        .map(|_| user.clone())
        .chain([prompt("and now?")])
        .collect();
    let rollout = [
        meta_line(),
        line(
            1,
            "compacted",
            &json!({"message": "m", "replacement_history": history}),
        ),
        line(
            2,
            "response_item",
            &json!({"type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": "done"}]}),
        ),
    ];
    let (_folder, store, path) = bare(&rollout);
    let found = scan(&path).unwrap();
    assert_eq!((found.images.count, found.unique_images.count), (20, 1));
    assert_eq!(found.findings()[0].code, "images-duplicated");

    let thread = Thread::open(&store, &path).unwrap();
    let images = thread.transcript().messages[0]
        .blocks
        .iter()
        .filter(|b| matches!(&b.content, Content::Image(i) if i.bytes == image.len() as u64));
    assert_eq!(images.count(), 1);
    let mut plan = Plan::keep_all(thread.transcript(), Mode::Mask);
    plan.tail = 20;
    let append = thread.prepare(&plan, &stamp()).unwrap();
    let text = std::str::from_utf8(append.bytes()).unwrap().to_owned();
    assert!(!text.contains("base64,") && text.matches("look").count() == 20);
    append.commit(&CommitOptions::default()).unwrap();
    let address = text
        .split("ctxfold unfold ")
        .nth(1)
        .unwrap()
        .split(']')
        .next()
        .unwrap();
    let folded = unfold(&store, &path, &address.parse().unwrap()).unwrap();
    let expected = ctxfold_session_codex::FoldedPart::Image {
        media_type: "image/png".into(),
        base64: image.split(',').nth(1).unwrap().into(),
    };
    assert_eq!(folded.parts, [expected]);
    // An image in the tail stays as it is.
    let thread = Thread::open(&store, &path).unwrap();
    assert!(thread.transcript().bytes() < 20 * image.len() as u64);
}

/// An image that the user put in last is part of the tail, and is read again from the file.
#[test]
fn an_image_in_the_tail_stays() {
    let image = format!("data:image/png;base64,{}", "iVBORw0KGgo".repeat(900));
    let rollout = [
        meta_line(),
        line(
            1,
            "response_item",
            &json!({"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "x".repeat(5000)}]}),
        ),
        line(
            2,
            "response_item",
            &json!({"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "look"}, {"type": "input_image", "image_url": image}]}),
        ),
    ];
    let (_folder, store, path) = bare(&rollout);
    let thread = Thread::open(&store, &path).unwrap();
    let append = thread
        .prepare(&summary(thread.transcript(), "S"), &stamp())
        .unwrap();
    let history = lines(append.bytes())[1]["payload"]["replacement_history"].clone();
    assert_eq!(history[1]["content"][1]["image_url"], image);
}

/// openai/codex#18629: one line of 54 MB.
#[test]
fn a_line_of_54_megabytes_is_survived() {
    let output = "y".repeat(54_000_000);
    let rollout = [
        meta_line(),
        line(
            1,
            "response_item",
            &json!({"type": "message", "role": "user",
            "content": [{"type": "input_text", "text": "go"}]}),
        ),
        line(
            2,
            "response_item",
            &json!({"type": "function_call", "name": "exec_command",
            "arguments": "{\"cmd\":\"yes\"}", "call_id": "call_big"}),
        ),
        line(
            3,
            "response_item",
            &json!({"type": "function_call_output", "call_id": "call_big", "output": output}),
        ),
        line(
            4,
            "response_item",
            &json!({"type": "message", "role": "user",
            "content": [{"type": "input_text", "text": "and now?"}]}),
        ),
    ];
    let (_folder, store, path) = bare(&rollout);
    let thread = Thread::open(&store, &path).unwrap();
    let append = thread
        .prepare(&crate::common::mask(thread.transcript()), &stamp())
        .unwrap();
    append.commit(&CommitOptions::default()).unwrap();
    let address = thread.transcript().calls[0].address.parse().unwrap();
    assert_eq!(
        unfold(&store, &path, &address).unwrap().text().len(),
        output.len()
    );
    assert_eq!(
        scan(&path).unwrap().largest[0].bytes,
        rollout[3].len() as u64
    );
}

/// openai/codex#26573: a kind from a newer client.
#[test]
fn unknown_kinds_are_kept_and_never_carried() {
    let home = Home::new("paginated-0.171.0");
    let path = home.rollout();
    let item = line(
        55,
        "response_item",
        &json!({"type": "future_item", "secret": 1}),
    );
    push(&path, item.as_bytes());
    push(&path, line(56, "future_line", &json!({"a": 1})).as_bytes());
    let thread = home.open();
    let codes: Vec<_> = thread.findings().iter().map(|f| f.code).collect();
    assert!(
        codes.contains(&"unknown-item") && codes.contains(&"unknown-line"),
        "{codes:?}"
    );
    let other = |b: &ctxfold_transcript::Block| matches!(&b.content, Content::Other { kind } if kind == "future_item");
    assert!(
        thread
            .transcript()
            .messages
            .iter()
            .flat_map(|m| &m.blocks)
            .any(other)
    );
    let append = thread
        .prepare(&summary(thread.transcript(), "S"), &stamp())
        .unwrap();
    assert!(
        !std::str::from_utf8(append.bytes())
            .unwrap()
            .contains("future_item")
    );
    append.commit(&CommitOptions::default()).unwrap();
    assert!(fs::read_to_string(&path).unwrap().contains(&item));
}

/// The provider's own compacted history is carried over: nobody else can read it.
#[test]
fn an_encrypted_compaction_is_carried_over() {
    let rollout = [
        meta_line(),
        line(
            1,
            "compacted",
            &json!({"message": "", "window_number": 3, "replacement_history": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x".repeat(3000)}]},
            {"type": "compaction", "encrypted_content": "SEALED"}]}),
        ),
        line(
            2,
            "response_item",
            &json!({"type": "message", "role": "user",
            "content": [{"type": "input_text", "text": "go on"}]}),
        ),
    ];
    let (_folder, store, path) = bare(&rollout);
    let thread = Thread::open(&store, &path).unwrap();
    let append = thread
        .prepare(&summary(thread.transcript(), "S"), &stamp())
        .unwrap();
    let payload = lines(append.bytes())[1]["payload"].clone();
    assert_eq!(
        payload["replacement_history"][0]["encrypted_content"],
        "SEALED"
    );
    assert_eq!(payload["window_number"], 4);
}
