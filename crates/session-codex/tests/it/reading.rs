//! Reading: every fixture home, and what the transcript says of it.

use std::fs;

use ctxfold_session_codex::{
    CommitOptions, ErrorKind, Query, Store, Thread, check, counted, fill, pause, scan, unfold,
};
use ctxfold_transcript::Author::{self, Assistant, Client, Tool, User};
use ctxfold_transcript::{Activity, Content, Outcome};
use serde_json::Value;

use crate::common::{ALL, Home, NOW_MS, mask, stamp};

#[test]
fn every_home_is_read_without_a_complaint() {
    for name in ALL {
        let home = Home::new(name);
        let (entries, findings) = home.store().entries();
        assert!(findings.is_empty(), "{name}: {findings:?}");
        for entry in entries {
            let thread = Thread::open(&home.store(), &entry.path).unwrap();
            let transcript = thread.transcript();
            assert_eq!(thread.meta().id, entry.id, "{name}");
            assert!(transcript.messages.len() > 3, "{name}");
            assert!(thread.meta().last_prompt.is_some(), "{name}");
            let findings: Vec<_> = thread.findings().iter().map(|f| f.code).collect();
            assert!(findings.is_empty(), "{name}: {findings:?}");
            let bad: Vec<_> = check(&home.store(), &entry.path)
                .unwrap()
                .into_iter()
                .filter(|f| !matches!(f.code, "archived" | "compressed"))
                .collect();
            assert!(bad.is_empty(), "{name}: {bad:?}");
        }
    }
}

#[test]
fn the_conversation_is_told_as_the_request_holds_it() {
    let home = Home::new("paginated-0.171.0");
    let thread = home.open();
    let transcript = thread.transcript();
    let authors: Vec<Author> = transcript.messages.iter().map(|m| m.author).collect();
    assert_eq!(
        authors,
        [
            Client, User, Assistant, Tool, Assistant, Tool, Assistant, User, Assistant, Tool,
            Assistant, User, Assistant
        ]
    );
    assert_eq!(
        transcript.messages[1].text().lines().next(),
        Some("List the numbers.")
    );
    let calls = &transcript.calls;
    assert_eq!(calls.len(), 4);
    assert_eq!(calls[0].label, "exec_command(echo alpha; seq 1 200)");
    assert_eq!(
        calls[0].activities,
        [Activity::Run {
            command: "echo alpha; seq 1 200".into(),
            exit: Some(0)
        }]
    );
    assert_eq!(
        calls[1].activities,
        [Activity::Read {
            path: "README.md".into(),
            span: None
        }]
    );
    assert!(calls.iter().all(|c| c.outcome == Outcome::Success));
    // Two parallel calls with their reasoning are one message, their outputs another.
    let parallel = &transcript.messages[8];
    assert!(matches!(parallel.blocks[0].content, Content::Thinking));
    assert_eq!(parallel.calls().collect::<Vec<_>>(), [2, 3]);
    let fill = transcript.fill.unwrap();
    assert_eq!(
        (fill.tokens, fill.window, fill.stale),
        (1138, Some(258_400), false)
    );
}

#[test]
fn forks_and_reverts_go_on_where_they_hang() {
    for name in ["forked-0.171.0", "reverted-0.171.0"] {
        let home = Home::new(name);
        let thread = home.open();
        let texts: Vec<String> = thread
            .transcript()
            .messages
            .iter()
            .filter(|m| m.author == User)
            .map(|m| m.text().lines().next().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(
            texts[..2],
            ["List the numbers.", "Now two at once."],
            "{name}"
        );
        let plain = texts.iter().any(|t| t == "And a plain answer, please.");
        assert_eq!(plain, name.starts_with("forked"), "{name}: {texts:?}");
        assert_eq!(thread.transcript().calls.len(), 4, "{name}");
    }
}

#[test]
fn a_compaction_hides_what_was_before_and_its_summary_is_known() {
    let home = Home::new("paginated-0.171.0-compacted2");
    let thread = home.open();
    let summaries: Vec<_> = thread
        .transcript()
        .messages
        .iter()
        .filter(|m| m.author == Author::Summary)
        .collect();
    assert_eq!(summaries.len(), 1);
    assert!(summaries[0].text().starts_with("MOCK-SUMMARY-"));
    assert!(thread.transcript().calls.is_empty());
    assert_eq!(thread.meta().compactions, 2);
    let whole = fs::metadata(thread.path()).unwrap().len();
    assert!(
        thread.meta().live_bytes < whole / 3,
        "{}",
        thread.meta().live_bytes
    );
}

#[test]
fn compressed_and_plain_rollouts_say_the_same() {
    let packed = Home::new("compressed-0.171.0").open();
    let plain = Home::new("paginated-0.171.0").open();
    let texts = |t: &Thread| -> Vec<String> {
        t.transcript()
            .messages
            .iter()
            .map(ctxfold_transcript::Message::text)
            .collect()
    };
    assert_eq!(texts(&packed), texts(&plain));
    let home = Home::new("compressed-0.171.0");
    assert!(scan(&home.rollout()).unwrap().lines.count > 50);
}

#[test]
fn threads_are_found_by_id_ends_title_folder_and_newest() {
    let home = Home::new("forked-0.171.0");
    let store = home.store();
    let find = |text: &str| store.find(&Query::Text(text.to_owned()));
    let child = "01a22eb2-1423-7d41-a915-93942c8a0215";
    assert_eq!(find(child).unwrap().id, child);
    assert_eq!(find("01a22eb2-14").unwrap().id, child);
    assert_eq!(find("2c8a0215").unwrap().id, child);
    assert_eq!(find("01a22eb2").unwrap_err().kind(), ErrorKind::Ambiguous);
    assert!(find("no such thread").unwrap_err().is_not_found());
    let newest = store.find(&Query::Newest(None)).unwrap();
    assert_eq!(newest.id, child);
    assert_eq!(
        store.find(&Query::Newest(newest.cwd.clone())).unwrap(),
        newest
    );
    assert!(
        store
            .find(&Query::Newest(Some("/nowhere".into())))
            .unwrap_err()
            .is_not_found()
    );
    assert_eq!(find(&newest.path.to_string_lossy()).unwrap(), newest);
    let title = Home::new("paginated-0.171.0");
    let found = title
        .store()
        .find(&Query::Text("list the NUMBERS".into()))
        .unwrap();
    assert!(found.title.unwrap().starts_with("List the numbers."));
}

#[test]
fn without_a_store_the_rollouts_are_gone_through() {
    for name in ALL {
        let home = Home::new(name);
        let (with, _) = home.store().entries();
        fs::remove_file(home.path.join("state_5.sqlite")).unwrap();
        let (without, findings) = home.store().entries();
        assert!(findings.is_empty());
        let ids = |entries: &[ctxfold_session_codex::Entry]| {
            let mut ids: Vec<_> = entries
                .iter()
                .map(|e| (e.id.clone(), e.path.clone(), e.archived))
                .collect();
            ids.sort();
            ids
        };
        assert_eq!(ids(&with), ids(&without), "{name}");
        assert!(!home.path.join("state_5.sqlite").exists(), "never made");
    }
}

/// The oracle is the transcript, which is read from the whole live part.
#[test]
fn the_pause_is_read_from_the_end() {
    for name in ALL {
        let home = Home::new(name);
        let path = home.rollout();
        if path.extension().is_some_and(|e| e == "zst") {
            assert!(pause(&path).is_err());
            continue;
        }
        let thread = home.open();
        let since = thread.meta().compacted_ms;
        let newest = |authors: &[Author]| {
            let messages = thread.transcript().messages.iter();
            let spoken = messages.filter(|m| authors.contains(&m.author));
            spoken
                .filter_map(|m| m.at_ms)
                .filter(|at| Some(*at) > since)
                .max()
        };
        let pause = pause(&path).unwrap();
        let active = newest(&[User, Assistant, Tool]);
        // A message is dated by its first row, the pause by the last one.
        assert_eq!(pause.active_ms.is_some(), active.is_some(), "{name}");
        assert!(pause.active_ms >= active, "{name}");
        assert!(pause.answered_ms >= newest(&[Assistant, Tool]), "{name}");
        let compacted = since.filter(|_| active.is_none());
        assert_eq!(pause.compacted_ms, compacted, "{name}");
    }
    // Our own compaction ends the activity, and an undo too.
    let home = Home::new("paginated-0.171.0");
    let thread = home.open();
    let append = thread
        .prepare(&mask(thread.transcript()), &stamp())
        .unwrap();
    append.commit(&CommitOptions::default()).unwrap();
    let now = pause(&home.rollout()).unwrap();
    assert_eq!(now.compacted_ms, Some(NOW_MS));
    assert_eq!((now.active_ms, now.answered_ms), (None, None));
}

#[test]
fn the_stores_may_lie_elsewhere() {
    let home = Home::new("paginated-0.171.0");
    let elsewhere = home.path.join("db");
    fs::create_dir(&elsewhere).unwrap();
    for name in ["state_5.sqlite", "thread_history_1.sqlite"] {
        fs::rename(home.path.join(name), elsewhere.join(name)).unwrap();
    }
    let config = format!("sqlite_home = {:?}\n", elsewhere.to_string_lossy());
    fs::write(home.path.join("config.toml"), config).unwrap();
    assert_eq!(home.store().state(), Some(elsewhere.join("state_5.sqlite")));
    // The highest number wins, as a number.
    fs::copy(
        elsewhere.join("state_5.sqlite"),
        elsewhere.join("state_10.sqlite"),
    )
    .unwrap();
    assert_eq!(
        home.store().state(),
        Some(elsewhere.join("state_10.sqlite"))
    );
    assert!(home.open().findings().is_empty());
}

#[test]
fn the_fill_is_read_from_the_end_with_its_time() {
    for name in ALL {
        let home = Home::new(name);
        let path = home.rollout();
        if name.starts_with("compressed") {
            assert_eq!(fill(&path).unwrap_err().kind(), ErrorKind::Compressed);
            continue;
        }
        assert_eq!(
            fill(&path).unwrap(),
            home.open().transcript().fill,
            "{name}"
        );
        let Some(counted) = counted(&path).unwrap() else {
            continue;
        };
        // The newest line that counts or compacts, by a reading of the whole file.
        let text = fs::read_to_string(&path).unwrap();
        let mut lines = text.lines().filter_map(|line| {
            let line: Value = serde_json::from_str(line).ok()?;
            let counts = line["payload"]["type"] == "token_count"
                && !line["payload"]["info"]["last_token_usage"].is_null();
            (counts || line["type"] == "compacted").then(|| line["timestamp"].clone())
        });
        let newest = lines.next_back().and_then(|at| {
            let at: jiff::Timestamp = at.as_str()?.parse().ok()?;
            Some(at.as_millisecond())
        });
        assert_eq!(counted.at_ms, newest, "{name}");
    }
}

#[test]
fn outputs_are_read_back_byte_for_byte() {
    for name in [
        "paginated-0.171.0",
        "forked-0.171.0",
        "reverted-0.171.0",
        "compressed-0.171.0",
    ] {
        let home = Home::new(name);
        let thread = home.open();
        let store = Store::new(&home.path);
        for (index, call) in thread.transcript().calls.iter().enumerate() {
            let folded = unfold(&store, thread.path(), &call.address.parse().unwrap()).unwrap();
            let text = thread
                .transcript()
                .result(index)
                .unwrap()
                .content
                .result_text()
                .unwrap();
            assert_eq!(folded.text(), text, "{name}");
            assert_eq!(folded.label, call.label);
        }
        let wrong = "00000000:003700".parse().unwrap();
        assert!(
            unfold(&store, thread.path(), &wrong)
                .unwrap_err()
                .is_not_found()
        );
    }
}

/// Codex does not fold its write-ahead log back when it ends: what is only there counts.
#[test]
fn what_stands_in_the_write_ahead_log_is_seen() {
    let home = Home::new("paginated-0.171.0");
    let path = home.path.join("state_5.sqlite");
    let state = rusqlite::Connection::open(&path).unwrap();
    let mode: String = state
        .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
        .unwrap();
    assert_eq!(mode, "wal");
    state
        .execute_batch(
            "PRAGMA wal_autocheckpoint = 0; UPDATE threads SET title = 'only in the log'",
        )
        .unwrap();
    let main = fs::read(&path).unwrap();
    assert!(memchr::memmem::find(&main, b"only in the log").is_none());
    let found = home.store().find(&Query::Text("only in the log".into()));
    assert!(found.is_ok(), "{found:?}");
    assert!(fs::read(&path).unwrap() == main, "reading changes nothing");
}
