//! `--project`: the store says what the client itself would say, before anything resumes the
//! thread.

use std::fs;

use ctxfold_test_support::{clients, require_client};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::lab::{Lab, OURS, assert_one, markers};

/// What readers of the store get without resuming: the thread with its turns, and the turns page by
/// page.
fn read(lab: &Lab) -> (Value, Vec<Value>) {
    let whole = lab.history(false);
    let mut server = lab.home.app_server();
    let mut pages = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let params =
            json!({"threadId": lab.thread, "limit": 2, "cursor": cursor, "sortDirection": "asc"});
        let mut page = server.request("thread/turns/list", params).unwrap();
        pages.extend(page["data"].as_array().unwrap().clone());
        cursor = page["nextCursor"].take();
        if cursor.is_null() {
            return (whole, pages);
        }
    }
}

fn the_store_tells_the_compaction_at_once(version: &str) {
    let client = require_client!(codex, version);
    for mode in ["mask", "summary"] {
        let lab = Lab::new(&client, 120_000);
        // Without the option the store stays as it was until the client resumes.
        let (before, _) = read(&lab);
        lab.compact_with(mode, &["--project"]);
        lab.assert_exact();
        let (whole, turns) = read(&lab);
        let shown = |turns: &Value| turns.as_array().unwrap().len();
        assert_eq!((markers(&before), markers(&whole)), (0, 1));
        assert_eq!(shown(&whole), shown(&before) + 1);
        assert_eq!(turns.len(), shown(&whole));
        let last = turns.last().unwrap();
        assert_eq!(last["status"], "completed", "{last}");
        assert_eq!(last["id"], whole[shown(&whole) - 1]["id"]);
        lab.assert_exact();

        // The client goes on from there, and has nothing to say about it.
        lab.mock.log().take();
        let run = lab.home.prompt("NEXT").resume(&lab.thread).run().success();
        let talk = &run.output.stderr;
        assert!(
            !talk.contains(" WARN ") && !talk.contains(" ERROR "),
            "{talk}"
        );
        let requests = lab.mock.log().conversations();
        assert_one(&requests, &["THIRD"], &["OLD-41", "PAR-2"]);
        assert_eq!(requests[0].holds(OURS), mode == "summary");
        lab.assert_exact();
        assert_eq!(lab.markers(), 1);
    }
}

#[test]
fn the_newest_client_reads_it() {
    the_store_tells_the_compaction_at_once(clients::CODEX[0]);
}

#[test]
fn the_middle_client_reads_it() {
    the_store_tells_the_compaction_at_once(clients::CODEX[1]);
}

/// A legacy thread has no projection: the option changes nothing, and is no error.
#[test]
fn a_legacy_thread_has_none() {
    let client = require_client!(codex, clients::CODEX[2]);
    let lab = Lab::new(&client, 120_000);
    lab.compact_with("mask", &["--project"]);
    assert_one(&lab.turn("NEXT"), &["THIRD"], &["OLD-41"]);
    lab.assert_exact();
    assert!(
        !lab.home
            .codex_home()
            .join("thread_history_1.sqlite")
            .exists()
    );
}

/// Refused where the schema is unknown; without the option the same thread is compacted.
#[test]
fn an_unknown_schema_is_refused() {
    let client = require_client!(codex, clients::CODEX[0]);
    let lab = Lab::new(&client, 120_000);
    let history = lab.home.codex_home().join("thread_history_1.sqlite");
    Connection::open(history)
        .unwrap()
        .execute("ALTER TABLE thread_items ADD COLUMN future TEXT", [])
        .unwrap();
    let mut arguments = lab.compact_arguments("mask");
    arguments.push("--project");
    lab.assert_refused(&arguments, "other columns", "without the projection");
    let before = fs::read(lab.rollout()).unwrap();
    lab.compact("mask");
    assert!(fs::read(lab.rollout()).unwrap().len() > before.len());
    assert_one(&lab.turn("NEXT"), &["THIRD"], &["OLD-41"]);
}
