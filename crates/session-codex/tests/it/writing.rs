//! What is appended: its lines, its numbers, and that reading it again agrees with the plan.

use std::fs;

use ctxfold_session_codex::{CommitOptions, ErrorKind, Receipt, Thread, check, folded, unfold};
use ctxfold_transcript::{Author, Content, Mode, Plan, Transcript};
use proptest::prelude::*;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::common::{
    ALL, FOLDED, Home, bare, line, lines, mask, meta_line, prune, push, rest, stamp, summary,
};

const WRITABLE: fn(&&&str) -> bool =
    |name| !name.starts_with("archived") && !name.starts_with("compressed");

fn commit(thread: &Thread, plan: &Plan) -> Receipt {
    thread
        .prepare(plan, &stamp())
        .unwrap()
        .commit(&CommitOptions::default())
        .unwrap()
}

/// Authors and words, without what the client writes anew and without reasoning.
fn words(transcript: &Transcript) -> Vec<(Author, String)> {
    let mut out = Vec::new();
    for message in transcript
        .messages
        .iter()
        .filter(|m| m.author != Author::Client)
    {
        for block in &message.blocks {
            match &block.content {
                Content::Text(text) => out.push((message.author, text.clone())),
                Content::ToolCall(call) => {
                    out.push((message.author, transcript.calls[*call].id.clone()));
                }
                Content::ToolResult { .. } => {
                    out.push((message.author, block.content.result_text().unwrap()));
                }
                _ => {}
            }
        }
    }
    out
}

/// The oracle is the plan's own account of what it leaves.
#[test]
fn what_is_read_again_is_what_the_plan_said() {
    for name in ALL.iter().filter(WRITABLE) {
        for mode in [Mode::Summary, Mode::Prune, Mode::Mask] {
            let home = Home::new(name);
            let thread = home.open();
            let plan = match mode {
                Mode::Summary => summary(thread.transcript(), "THE SUMMARY\nof two lines"),
                Mode::Prune => prune(thread.transcript()),
                Mode::Mask => mask(thread.transcript()),
            };
            let before = fs::read(thread.path()).unwrap();
            let append = match thread.prepare(&plan, &stamp()) {
                Ok(append) => append,
                // Threads that were compacted already have no calls left to fold.
                Err(e) if e.kind() == ErrorKind::NothingToGain && mode != Mode::Summary => {
                    assert!(plan.decisions.is_empty() || plan.after.bytes >= plan.before.bytes);
                    continue;
                }
                // The two homes in which a summary is longer than what it replaces.
                Err(e) if e.kind() == ErrorKind::NothingToGain => {
                    assert!(
                        name.contains("compacted") || name.contains("hand"),
                        "{name}"
                    );
                    continue;
                }
                Err(e) => panic!("{name} {mode:?}: {e}"),
            };
            let receipt = append.commit(&CommitOptions::default()).unwrap();
            let after = fs::read(thread.path()).unwrap();
            assert_eq!(after[..before.len()], before[..], "{name}: append only");
            assert_eq!(receipt.len_after, after.len() as u64);
            let again = home.open();
            let expected = words(&plan.apply(thread.transcript()));
            assert_eq!(words(again.transcript()), expected, "{name} {mode:?}");
            let bad: Vec<_> = check(&home.store(), again.path())
                .unwrap()
                .into_iter()
                .filter(|f| f.code != "projection-behind" && f.code != "store-wal")
                .collect();
            assert!(bad.is_empty(), "{name}: {bad:?}");
            assert!(
                !fs::read_dir(home.path.join("thread-writer-locks"))
                    .unwrap()
                    .any(|e| { e.unwrap().file_name().to_string_lossy().starts_with("01a") })
            );
        }
    }
}

#[test]
fn a_turn_is_five_lines_in_the_threads_own_kind() {
    for (name, ordinal) in [("paginated-0.150.1", true), ("legacy-0.144.6", false)] {
        let home = Home::new(name);
        let thread = home.open();
        let last = lines(&fs::read(thread.path()).unwrap()).pop().unwrap();
        let append = thread
            .prepare(&summary(thread.transcript(), "S"), &stamp())
            .unwrap();
        let rows = lines(append.bytes());
        let kinds: Vec<&str> = rows
            .iter()
            .map(|r| {
                r["payload"]["type"]
                    .as_str()
                    .or(r["type"].as_str())
                    .unwrap()
            })
            .collect();
        let marker = if ordinal {
            "item_completed"
        } else {
            "context_compacted"
        };
        assert_eq!(
            kinds,
            [
                "task_started",
                "compacted",
                "token_count",
                marker,
                "task_complete"
            ]
        );
        let first = last["ordinal"].as_u64().map(|n| n + 1);
        for (index, row) in rows.iter().enumerate() {
            assert_eq!(row["ordinal"].as_u64(), first.map(|n| n + index as u64));
        }
        let compacted = &rows[1]["payload"];
        assert_eq!(compacted["window_number"], 1);
        let usage = &rows[2]["payload"]["info"]["last_token_usage"];
        assert_eq!(usage["input_tokens"], 0);
        let tokens = usage["total_tokens"].as_u64().unwrap();
        assert!((1..2_000).contains(&tokens), "{tokens}");
    }
}

#[test]
fn windows_are_numbered_on() {
    let home = Home::new("paginated-0.171.0-compacted2");
    let thread = home.open();
    let rows = lines(&fs::read(thread.path()).unwrap());
    let old = rows.iter().rfind(|r| r["type"] == "compacted").unwrap()["payload"].clone();
    let append = thread.prepare_undo(&stamp()).unwrap();
    let new = lines(append.bytes())[1]["payload"].clone();
    assert_eq!(
        new["window_number"],
        old["window_number"].as_u64().unwrap() + 1
    );
    // An undo goes on from the window before the compaction that it takes back.
    assert_eq!(new["previous_window_id"], old["previous_window_id"]);
    assert_eq!(new["first_window_id"], old["first_window_id"]);
    assert_ne!(new["window_id"], old["window_id"]);
    let home = Home::new("paginated-0.171.0-compacted1");
    let thread = home.open();
    let rows = lines(&fs::read(thread.path()).unwrap());
    let old = rows.iter().rfind(|r| r["type"] == "compacted").unwrap()["payload"].clone();
    let append = thread
        .prepare(&summary(thread.transcript(), "S"), &stamp())
        .unwrap();
    let new = lines(append.bytes())[1]["payload"].clone();
    assert_eq!(new["previous_window_id"], old["window_id"]);
}

#[test]
fn reasoning_goes_with_the_calls_of_its_turn_and_stays_otherwise() {
    let home = Home::new("paginated-0.171.0");
    let thread = home.open();
    let count = |bytes: &[u8]| {
        let history = lines(bytes)[1]["payload"]["replacement_history"].clone();
        let items = history.as_array().unwrap();
        items.iter().filter(|i| i["type"] == "reasoning").count()
    };
    let masked = thread
        .prepare(&mask(thread.transcript()), &stamp())
        .unwrap();
    assert_eq!(count(masked.bytes()), 2);
    let mut plan = mask(thread.transcript());
    for call in 2..4 {
        plan.decide_call(call, ctxfold_transcript::Action::Drop, "test");
    }
    // Both answers of the turn would meet; one call has to stay for the plan to be valid.
    if plan.validate(thread.transcript()).is_err() {
        plan.decide_call(
            3,
            ctxfold_transcript::Action::Truncate(FOLDED.into()),
            "test",
        );
    }
    let pruned = thread.prepare(&plan, &stamp()).unwrap();
    assert_eq!(count(pruned.bytes()), 0);
}

#[test]
fn undo_brings_the_former_conversation_back() {
    for name in [
        "paginated-0.171.0",
        "legacy-0.144.6",
        "forked-0.171.0",
        "reverted-0.171.0",
    ] {
        let home = Home::new(name);
        let before = words(home.open().transcript());
        let thread = home.open();
        commit(&thread, &summary(thread.transcript(), "S"));
        let shorter = home.open();
        assert_ne!(words(shorter.transcript()), before);
        let undo = shorter.prepare_undo(&stamp()).unwrap();
        undo.commit(&CommitOptions::default()).unwrap();
        assert_eq!(words(home.open().transcript()), before, "{name}");
    }
    // The client's own compaction, its request for a summary left out.
    for name in ["paginated-0.171.0-compacted1", "legacy-0.144.6-compacted"] {
        let home = Home::new(name);
        home.open()
            .prepare_undo(&stamp())
            .unwrap()
            .commit(&CommitOptions::default())
            .unwrap();
        let text = format!("{:?}", words(home.open().transcript()));
        assert!(
            text.contains("call_") && !text.contains("MOCK-SUMMARY"),
            "{name}: {text}"
        );
    }
    let never = Home::new("paginated-0.171.0")
        .open()
        .prepare_undo(&stamp())
        .unwrap_err();
    assert_eq!(never.kind(), ErrorKind::NothingToGain);
}

/// A user's word and an answer, as the client would append them.
fn say(home: &Home, text: &str) {
    let path = home.rollout();
    let rows = lines(&fs::read(&path).unwrap());
    let mut ordinal = rows.last().unwrap()["ordinal"].as_u64();
    for (role, kind) in [("user", "input_text"), ("assistant", "output_text")] {
        let mut row = serde_json::json!({"timestamp": "2026-12-01T02:00:00.000Z",
            "type": "response_item", "payload": {"type": "message", "role": role,
            "content": [{"type": kind, "text": format!("{text} of the {role}")}]}});
        if let Some(last) = &mut ordinal {
            *last += 1;
            row["ordinal"] = (*last).into();
        }
        push(&path, format!("{row}\n").as_bytes());
    }
    let sql = "DELETE FROM thread_history_projection_state";
    if home.path.join("thread_history_1.sqlite").exists() {
        home.history().execute(sql, []).unwrap();
    }
    rest(&path);
}

/// Each undo takes back one more compaction, with everything that was said since, and the last one
/// has nothing to take back. What ctxfold remembers elsewhere plays no part.
#[test]
fn undo_walks_back_through_every_level() {
    for name in [
        "paginated-0.171.0",
        "legacy-0.144.6",
        "forked-0.171.0",
        "reverted-0.171.0",
    ] {
        let home = Home::new(name);
        let undo = || {
            let undo = home.open().prepare_undo(&stamp())?;
            undo.commit(&CommitOptions::default())
        };
        let words = || words(home.open().transcript());
        let mut levels = vec![words()];
        for level in ["one", "two", "three"] {
            let thread = home.open();
            let long = format!("summary {level}");
            commit(&thread, &summary(thread.transcript(), &long));
            say(&home, &format!("word {level}{}", ".".repeat(4000)));
            levels.push(words());
        }
        // What was said since stays, whichever level comes back.
        let said = |from: usize, levels: &[Vec<(Author, String)>]| -> Vec<(Author, String)> {
            levels[from..]
                .iter()
                .flat_map(|l| l[l.len() - 2..].to_vec())
                .collect()
        };
        for level in [2, 1, 0] {
            undo().unwrap();
            let mut expected = levels[level].clone();
            expected.extend(said(level + 1, &levels));
            assert_eq!(words(), expected, "{name} {level}");
        }
        let error = undo().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NothingToGain, "{error}");

        // A compaction after that is taken back alone, also after more was said.
        let before = words();
        let thread = home.open();
        commit(&thread, &summary(thread.transcript(), "once more"));
        say(&home, "later");
        undo().unwrap();
        let mut expected = before;
        expected.extend(["user", "assistant"].map(|role| {
            let author = if role == "user" {
                Author::User
            } else {
                Author::Assistant
            };
            (author, format!("later of the {role}"))
        }));
        assert_eq!(words(), expected, "{name}");
        assert_eq!(undo().unwrap_err().kind(), ErrorKind::NothingToGain);
    }
    // The client's own compactions are levels too.
    let home = Home::new("paginated-0.171.0-compacted2");
    for text in ["MOCK-SUMMARY", "call_"] {
        let undo = home.open().prepare_undo(&stamp()).unwrap();
        undo.commit(&CommitOptions::default()).unwrap();
        let words = format!("{:?}", words(home.open().transcript()));
        assert!(words.contains(text), "{text}: {words}");
    }
    let error = home.open().prepare_undo(&stamp()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NothingToGain);
}

#[test]
fn folded_outputs_stay_within_reach() {
    let home = Home::new("paginated-0.171.0");
    let thread = home.open();
    let originals: Vec<String> = (0..4)
        .map(|i| {
            thread
                .transcript()
                .result(i)
                .unwrap()
                .content
                .result_text()
                .unwrap()
        })
        .collect();
    let none = |home: &Home| {
        let mut found = Vec::new();
        folded(&home.store(), &home.rollout(), &mut |f| {
            found.push(f.text());
            true
        })
        .unwrap();
        found
    };
    assert_eq!(none(&home), Vec::<String>::new());
    commit(&thread, &mask(thread.transcript()));
    assert_eq!(none(&home), originals);
    for call in &home.open().transcript().calls {
        let text = unfold(
            &home.store(),
            &home.rollout(),
            &call.address.parse().unwrap(),
        )
        .unwrap();
        assert!(originals.contains(&text.text()) && text.text() != FOLDED);
    }
}

/// Every prompt and answer that a summary takes away is found, and read back by the address that
/// the transcript gave it, whether it is folded then or not.
#[test]
fn messages_that_a_summary_drops_stay_within_reach() {
    for name in ["paginated-0.171.0", "legacy-0.144.6", "forked-0.171.0"] {
        let home = Home::new(name);
        let thread = home.open();
        let before = thread.transcript();
        let read = |address: &str| {
            unfold(&home.store(), &home.rollout(), &address.parse().unwrap())
                .unwrap()
                .text()
        };
        let plan = summary(before, "S");
        let spoken = |messages: &[ctxfold_transcript::Message]| -> Vec<(String, String)> {
            let spoken = [Author::User, Author::Assistant];
            let messages = messages.iter().filter(|m| spoken.contains(&m.author));
            let blocks = messages.flat_map(|message| &message.blocks);
            let words = blocks.filter_map(|block| match &block.content {
                Content::Text(text) => Some((block.address.clone().unwrap(), text.clone())),
                _ => None,
            });
            words.collect()
        };
        let gone = spoken(&before.messages[..plan.tail]);
        let kept = spoken(&before.messages[plan.tail..]);
        assert!(gone.len() > 2, "{name}: {gone:?}");
        for (address, text) in &gone {
            assert_eq!(read(address), *text, "{name}");
        }
        commit(&thread, &plan);
        let mut found = Vec::new();
        folded(&home.store(), &home.rollout(), &mut |part| {
            assert_eq!(read(&part.address), part.text(), "{name}: {}", part.label);
            found.push((part.address.clone(), part.text()));
            true
        })
        .unwrap();
        for words in &gone {
            assert!(
                found.contains(words) || kept.contains(words),
                "{name}: {words:?}"
            );
            assert_eq!(read(&words.0), words.1, "{name}");
        }
        assert!(kept.iter().all(|words| !found.contains(words)), "{name}");
    }
}

/// The answers to a tool's question are the user's words.
#[test]
fn answers_to_questions_are_heard() {
    let item = |ordinal, payload: &Value| line(ordinal, "response_item", payload);
    let asked = r#"{"questions":[{"id":"db","question":"Which database?"}]}"#;
    let answered = r#"{"answers":{"db":{"answers":["postgres, never sqlite"]}}}"#;
    let (_dir, store, path) = bare(&[
        meta_line(),
        item(
            1,
            &json!({"type": "message", "role": "user",
            "content": [{"type": "input_text", "text": "ask me"}]}),
        ),
        item(
            2,
            &json!({"type": "function_call", "name": "request_user_input",
            "arguments": asked, "call_id": "call_1"}),
        ),
        item(
            3,
            &json!({"type": "function_call_output", "call_id": "call_1", "output": answered}),
        ),
        item(
            4,
            &json!({"type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": "done"}]}),
        ),
    ]);
    let thread = Thread::open(&store, &path).unwrap();
    let transcript = thread.transcript();
    let said = (0..transcript.messages.len()).flat_map(|message| transcript.said(message));
    let said: Vec<_> = said.map(|words| words.text.into_owned()).collect();
    assert_eq!(said, ["ask me", "Which database? postgres, never sqlite"]);
    let mut plan = Plan::keep_all(transcript, Mode::Mask);
    plan.decide_call(0, ctxfold_transcript::Action::Drop, "test");
    assert!(plan.validate(transcript).is_err());
}

#[test]
fn the_projection_is_brought_forward_in_each_schema() {
    for name in [
        "paginated-0.150.1",
        "paginated-0.171.0",
        "reverted-0.171.0",
        "forked-0.171.0",
    ] {
        let home = Home::new(name);
        let thread = home.open();
        let append = thread
            .prepare(&summary(thread.transcript(), "S"), &stamp())
            .unwrap();
        let receipt = append
            .commit(&CommitOptions::default().project(true))
            .unwrap();
        assert!(receipt.projected, "{name}");
        let bad = check(&home.store(), thread.path()).unwrap();
        let bad: Vec<_> = bad.iter().filter(|f| f.code != "store-wal").collect();
        assert!(bad.is_empty(), "{name}: {bad:?}");
        let rows: i64 = home
            .history()
            .query_row(
                "SELECT count(*) FROM thread_items i JOIN thread_turns t USING (thread_id, turn_id)
                 WHERE i.item_type = 'contextCompaction' AND t.rollout_end_byte_offset = ?1",
                [receipt.len_after.cast_signed()],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(rows, 1, "{name}");
    }
    let legacy = Home::new("legacy-0.144.6");
    let thread = legacy.open();
    let append = thread
        .prepare(&summary(thread.transcript(), "S"), &stamp())
        .unwrap();
    assert!(
        !append
            .commit(&CommitOptions::default().project(true))
            .unwrap()
            .projected
    );
}

#[test]
fn the_time_of_change_can_be_kept() {
    let home = Home::new("paginated-0.171.0");
    let thread = home.open();
    let before = fs::metadata(thread.path()).unwrap().modified().unwrap();
    let append = thread
        .prepare(&mask(thread.transcript()), &stamp())
        .unwrap();
    append
        .commit(&CommitOptions::default().keep_mtime(true))
        .unwrap();
    assert_eq!(
        fs::metadata(thread.path()).unwrap().modified().unwrap(),
        before
    );
}

#[test]
fn an_unfinished_last_line_is_ended_first() {
    for torn in [
        &b"{\"timestamp\":\"2026-12-01T00:00:00.000Z\",\"ordinal\":55,\"type\":\"event_m"[..],
        b"\0\0",
    ] {
        let home = Home::new("paginated-0.171.0");
        push(&home.rollout(), torn);
        let thread = home.open();
        assert!(thread.findings().iter().any(|f| f.code == "torn-tail"));
        let receipt = commit(&thread, &summary(thread.transcript(), "S"));
        let bytes = fs::read(thread.path()).unwrap();
        let ours = &bytes[receipt.offset as usize..];
        assert_eq!(ours[0], b'\n');
        assert_eq!(lines(ours)[0]["ordinal"], 55);
    }
    // A whole line that only lacks its end.
    let home = Home::new("paginated-0.171.0");
    let path = home.rollout();
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    Connection::open(home.path.join("thread_history_1.sqlite"))
        .unwrap()
        .execute("DELETE FROM thread_history_projection_state", [])
        .unwrap();
    let thread = home.open();
    let receipt = commit(&thread, &summary(thread.transcript(), "S"));
    let after = fs::read(&path).unwrap();
    assert_eq!(lines(&after).len(), lines(&bytes).len() + 5);
    assert_eq!(lines(&after[receipt.offset as usize..])[0]["ordinal"], 55);
}

#[test]
fn items_are_carried_byte_for_byte() {
    let home = Home::new("paginated-0.171.0");
    let thread = home.open();
    let text = fs::read_to_string(thread.path()).unwrap();
    let append = thread
        .prepare(&mask(thread.transcript()), &stamp())
        .unwrap();
    let ours = std::str::from_utf8(append.bytes()).unwrap();
    let mut carried = 0;
    for row in text.lines() {
        let value: Value = serde_json::from_str(row).unwrap();
        let kind = value["payload"]["type"].as_str().unwrap_or_default();
        if value["type"] != "response_item" || kind == "function_call_output" {
            continue;
        }
        let start = row.find("\"payload\":").unwrap() + 10;
        let item = value["payload"].to_string();
        assert!(
            row[start..].starts_with(&item),
            "the fixture is compact JSON"
        );
        if !item.contains("<environment_context>") {
            assert!(ours.contains(&item), "{item}");
            carried += 1;
        }
    }
    assert!(carried > 9);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever stands in a rollout behind its first line: it is read, never panics, and what can
    /// be appended leaves every earlier byte as it was.
    #[test]
    fn any_bytes_are_read(parts in proptest::collection::vec(
        prop_oneof![
            Just("{\"timestamp\":\"t\",\"ordinal\":7,\"type\":\"compacted\",\"payload\":{\"message\":\"m\",\"replacement_history\":[{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"hello\"}]}]}}\n".to_owned()),
            Just("{\"ordinal\":8,\"type\":\"response_item\",\"payload\":{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"shell\",\"arguments\":\"{}\"}}\n".to_owned()),
            Just("{\"ordinal\":9,\"type\":\"response_item\",\"payload\":{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":[{\"type\":\"x\"}]}}\n".to_owned()),
            Just("{\"ordinal\":9,\"type\":\"event_msg\",\"payload\":{\"type\":\"thread_rolled_back\",\"num_turns\":1}}\n".to_owned()),
            Just("{\"type\":\"future_line\",\"payload\":{}}\n".to_owned()),
            "[\\x00-\\x7f]{0,40}",
            "\\PC{0,20}\n",
        ], 0..12)) {
        let home = Home::new("paginated-0.171.0");
        let path = home.rollout();
        for part in &parts {
            push(&path, part.as_bytes());
        }
        let before = fs::read(&path).unwrap();
        let thread = home.open();
        let _ = check(&home.store(), &path).unwrap();
        let _ = ctxfold_session_codex::scan(&path).unwrap();
        let _ = ctxfold_session_codex::fill(&path).unwrap();
        if let Ok(append) = thread.prepare(&mask_if_any(thread.transcript()), &stamp()) {
            append.commit(&CommitOptions::default()).unwrap();
            let after = fs::read(&path).unwrap();
            prop_assert_eq!(&after[..before.len()], &before[..]);
        }
    }
}

fn mask_if_any(transcript: &Transcript) -> Plan {
    if transcript.messages.iter().any(|m| m.author == Author::User) {
        mask(transcript)
    } else {
        Plan::keep_all(transcript, Mode::Mask)
    }
}
