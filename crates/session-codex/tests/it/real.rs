//! The real clients as judges: one request, what the plan kept in it and nothing that it dropped,
//! the projection exact, the marker in the history, and a later compaction of the client's own that
//! lets our summary go.

use std::fs;
use std::path::PathBuf;

use ctxfold_session_codex::{CommitOptions, ErrorKind, Store, Thread, check};
use ctxfold_test_support::{
    Client, CodexHome, MockResponses, Recorded, ResponsesTurn, clients, require_client,
};
use ctxfold_transcript::{Mode, Plan};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::common::{FOLDED, install, mask, prune, stamp, summary};
use crate::crash::places;

struct Lab {
    mock: MockResponses,
    home: CodexHome,
    thread: String,
}

impl Lab {
    /// A thread made by the client: a tool call, reasoning with two parallel calls, plain answers.
    fn new(client: &Client) -> Lab {
        let mock = MockResponses::start();
        mock.on(
            "FIRST",
            [
                ResponsesTurn::shell("echo OLD-$((40+1)); seq 1 400"),
                ResponsesTurn::text("first done"),
            ],
        );
        mock.on(
            "SECOND",
            [
                ResponsesTurn::new()
                    .and_reasoning("think")
                    .and_shell("echo PAR-$((1+1)); seq 1 200")
                    .and_shell("echo PAR-$((2+2)); seq 1 200"),
                ResponsesTurn::text("second done"),
            ],
        );
        let home = CodexHome::new(client, &mock);
        let run = home.prompt("FIRST: run it").run().success();
        let thread = run.thread_id().to_owned();
        let lab = Lab { mock, home, thread };
        lab.turn("SECOND: run both");
        lab.turn("THIRD: just say so");
        lab
    }

    /// A fixture home for this client.
    fn of_fixture(client: &Client, name: &str) -> Lab {
        let mock = MockResponses::start();
        let home = CodexHome::new(client, &mock);
        let config = fs::read(home.codex_home().join("config.toml")).unwrap();
        install(name, &home.codex_home());
        fs::write(home.codex_home().join("config.toml"), config).unwrap();
        let thread = Store::new(home.codex_home()).entries().0.remove(0).id;
        Lab { mock, home, thread }
    }

    /// One more turn of the real client; returns the requests that it sent.
    #[track_caller]
    fn turn(&self, text: &str) -> Vec<Recorded> {
        self.mock.log().take();
        self.home.prompt(text).resume(&self.thread).run().success();
        let requests = self.mock.log().take();
        requests
            .into_iter()
            .filter(|r| r.path.contains("responses"))
            .collect()
    }

    fn store(&self) -> Store {
        Store::new(self.home.codex_home())
    }

    fn path(&self) -> PathBuf {
        let entries = self.store().entries().0;
        entries
            .into_iter()
            .find(|e| e.id == self.thread)
            .unwrap()
            .path
    }

    fn open(&self) -> Thread {
        Thread::open(&self.store(), &self.path()).unwrap()
    }

    #[track_caller]
    fn compact(&self, plan: impl Fn(&Thread) -> Plan, options: &CommitOptions) {
        let thread = self.open();
        let append = thread.prepare(&plan(&thread), &stamp()).unwrap();
        append.commit(options).unwrap();
    }

    /// That rollout and projection agree.
    #[track_caller]
    fn assert_exact(&self) {
        let findings = check(&self.store(), &self.path()).unwrap();
        let bad: Vec<_> = findings
            .iter()
            .filter(|f| {
                let legacy = self.open().meta().history_mode == "legacy";
                f.code != "store-wal" && !(legacy && f.code.starts_with("projection"))
            })
            .collect();
        assert!(bad.is_empty(), "{bad:?}");
    }

    fn projection(&self) -> Connection {
        Connection::open(self.store().history().unwrap()).unwrap()
    }

    /// Every column of the rows that show our compaction.
    fn marker_rows(&self) -> Vec<String> {
        let store = self.projection();
        let mut rows = Vec::new();
        for sql in [
            "SELECT * FROM thread_items WHERE item_type = 'contextCompaction'",
            "SELECT * FROM thread_turns WHERE turn_id IN
                 (SELECT turn_id FROM thread_items WHERE item_type = 'contextCompaction')",
        ] {
            let mut statement = store.prepare(sql).unwrap();
            let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
            let mut found = statement.query([]).unwrap();
            while let Some(row) = found.next().unwrap() {
                let value = |at: usize| row.get::<_, rusqlite::types::Value>(at).unwrap();
                for (at, name) in names.iter().enumerate() {
                    rows.push(format!("{name}: {:?}", value(at)));
                }
            }
        }
        assert!(rows.len() > 15, "{rows:?}");
        rows
    }

    fn forget_projection(&self) {
        let tables = [
            "thread_turns",
            "thread_items",
            "thread_history_projection_state",
        ];
        for table in tables {
            let sql = format!("DELETE FROM {table}");
            assert!(self.projection().execute(&sql, []).unwrap() > 0);
        }
    }

    /// What the client shows of the thread's history.
    fn history(&self, resume: bool) -> String {
        let mut server = self.home.app_server();
        if resume {
            server
                .request("thread/resume", json!({"threadId": self.thread}))
                .unwrap();
        }
        let read = json!({"threadId": self.thread, "includeTurns": true});
        let turns: Value = server.request("thread/read", read).unwrap()["thread"]["turns"].take();
        turns.to_string()
    }
}

#[track_caller]
fn assert_one(requests: &[Recorded], held: &[&str], gone: &[&str]) {
    assert_eq!(requests.len(), 1, "one request");
    for text in held {
        assert!(
            requests[0].holds(text),
            "{text} is missing: {:?}",
            requests[0].input()
        );
    }
    for text in gone {
        assert!(!requests[0].holds(text), "{text} is still there");
    }
}

fn a_summary_is_taken_up(version: &str) {
    let client = require_client!(codex, version);
    let lab = Lab::new(&client);
    lab.compact(
        |t| summary(t.transcript(), "OUR-SUMMARY of it"),
        &CommitOptions::default(),
    );
    let held = ["OUR-SUMMARY of it", "THIRD"];
    let gone = ["OLD-41", "PAR-2", "SECOND: run both"];
    assert_one(&lab.turn("FOURTH"), &held, &gone);
    assert_one(&lab.turn("FIFTH"), &held, &gone);
    lab.assert_exact();
    let history = lab.history(true);
    assert!(history.contains("contextCompaction"), "{history}");
    // A later compaction of the client's own takes our summary for one and lets it go.
    lab.mock.set_summary("THE-CLIENTS-OWN");
    let mut server = lab.home.app_server();
    server
        .request("thread/resume", json!({"threadId": lab.thread}))
        .unwrap();
    server.compact(&lab.thread);
    drop(server);
    assert_one(
        &lab.turn("SIXTH"),
        &["THE-CLIENTS-OWN"],
        &["OUR-SUMMARY of it"],
    );
    lab.assert_exact();
}

fn prune_and_mask_are_taken_up(version: &str) {
    let client = require_client!(codex, version);
    for mode in [Mode::Mask, Mode::Prune] {
        let lab = Lab::new(&client);
        let plan = |t: &Thread| match mode {
            Mode::Mask => mask(t.transcript()),
            _ => prune(t.transcript()),
        };
        lab.compact(plan, &CommitOptions::default());
        let held = [
            FOLDED,
            "FIRST",
            "first done",
            "SECOND",
            "second done",
            "THIRD",
        ];
        let gone = ["OLD-41", "PAR-2", "PAR-4"];
        for prompt in ["FOURTH", "FIFTH"] {
            let requests = lab.turn(prompt);
            assert_one(&requests, &held, &gone);
            let count = |kind: &str| {
                requests[0]
                    .input()
                    .iter()
                    .filter(|i| i["type"] == kind)
                    .count()
            };
            assert_eq!(count("function_call"), count("function_call_output"));
            let environment = requests[0]
                .input()
                .iter()
                .filter(|i| i.to_string().contains("<environment_context>") && i["role"] == "user");
            assert_eq!(environment.count(), 1, "{mode:?}");
        }
        lab.assert_exact();
        assert!(lab.history(true).contains("contextCompaction"));
        // And back.
        let undo = lab.open().prepare_undo(&stamp()).unwrap();
        undo.commit(&CommitOptions::default()).unwrap();
        assert_one(
            &lab.turn("SIXTH"),
            &["OLD-41", "PAR-2", "PAR-4", "FIFTH"],
            &[],
        );
        lab.assert_exact();
    }
}

fn a_tail_may_begin_at_an_answer(version: &str) {
    let client = require_client!(codex, version);
    let lab = Lab::new(&client);
    let plan = |t: &Thread| {
        let mut plan = summary(t.transcript(), "OUR-SUMMARY of it");
        plan.tail = t.transcript().calls[1].at.message;
        plan
    };
    lab.compact(plan, &CommitOptions::default());
    let held = ["OUR-SUMMARY of it", "PAR-2", "PAR-4", "second done"];
    assert_one(&lab.turn("FOURTH"), &held, &["OLD-41", "SECOND: run both"]);
    lab.assert_exact();
}

fn a_nearly_full_thread_is_not_compacted_again(version: &str) {
    let client = require_client!(codex, version);
    let lab = Lab::new(&client);
    lab.mock
        .next(ResponsesTurn::text("full").with_input_tokens(250_000));
    lab.turn("FILL");
    assert!(lab.open().transcript().fill.unwrap().tokens >= 250_000);
    lab.compact(
        |t| summary(t.transcript(), "OUR-SUMMARY of it"),
        &CommitOptions::default(),
    );
    assert_one(&lab.turn("NEXT"), &["OUR-SUMMARY of it"], &["OLD-41"]);
    lab.assert_exact();
}

fn a_running_client_is_refused(version: &str) {
    let client = require_client!(codex, version);
    let lab = Lab::new(&client);
    let mut server = lab.home.app_server();
    server
        .request("thread/resume", json!({"threadId": lab.thread}))
        .unwrap();
    server.turn(&lab.thread, "hold it");
    let thread = lab.open();
    let before = fs::read(thread.path()).unwrap();
    // Without a lease it is known before a plan is carried out, else at the append.
    let append = thread.prepare(&mask(thread.transcript()), &stamp());
    let refused = append.and_then(|append| append.commit(&CommitOptions::default()));
    let kind = refused.unwrap_err().kind();
    assert!(thread.is_live(stamp().now_ms()));
    assert!(
        matches!(kind, ErrorKind::LeaseHeld | ErrorKind::Live),
        "{kind:?}"
    );
    assert!(fs::read(thread.path()).unwrap() == before);
    drop(server);
    let append = thread.prepare(&mask(thread.transcript()), &stamp());
    append.unwrap().commit(&CommitOptions::default()).unwrap();
}

fn a_crash_leaves_a_thread_that_resumes(version: &str) {
    let client = require_client!(codex, version);
    let lab = Lab::new(&client);
    for project in [false, true] {
        for place in 0..places(100).len() {
            let thread = lab.open();
            let plan = summary(thread.transcript(), "OUR-SUMMARY of it");
            let Ok(append) = thread.prepare(&plan, &stamp()) else {
                // What is left is shorter than the summary: give it something to fold.
                lab.turn(&format!("LONG {}", "word ".repeat(400)));
                continue;
            };
            let mut crash = places(append.bytes().len()).remove(place);
            let options = CommitOptions::default().project(project);
            drop(append.commit_with(&options, &mut crash));
            let requests = lab.turn(&format!("GO {place} {}", "word ".repeat(300)));
            assert_eq!(requests.len(), 1, "place {place}");
        }
    }
    let codes: Vec<_> = check(&lab.store(), &lab.path())
        .unwrap()
        .into_iter()
        .map(|f| f.code)
        .filter(|code| !matches!(*code, "bad-line" | "store-wal"))
        .collect();
    assert!(codes.is_empty(), "{codes:?}");
}

/// One test for each pinned version.
macro_rules! on_each_version {
    ($($scene:ident),* $(,)?) => {
        mod newest { $( #[test] fn $scene() { super::$scene(super::clients::CODEX[0]); } )* }
        mod middle { $( #[test] fn $scene() { super::$scene(super::clients::CODEX[1]); } )* }
        mod oldest { $( #[test] fn $scene() { super::$scene(super::clients::CODEX[2]); } )* }
    };
}

on_each_version!(
    a_summary_is_taken_up,
    prune_and_mask_are_taken_up,
    a_tail_may_begin_at_an_answer,
    a_nearly_full_thread_is_not_compacted_again,
    a_running_client_is_refused,
);

#[test]
fn the_newest_client_resumes_after_every_crash() {
    a_crash_leaves_a_thread_that_resumes(clients::CODEX[0]);
}

#[test]
fn the_middle_client_resumes_after_every_crash() {
    a_crash_leaves_a_thread_that_resumes(clients::CODEX[1]);
}

#[test]
fn the_oldest_client_resumes_after_every_crash() {
    a_crash_leaves_a_thread_that_resumes(clients::CODEX[2]);
}

/// Readers that look at the store without resuming see the marker.
fn the_projection_can_be_brought_forward(version: &str) {
    let client = require_client!(codex, version);
    let lab = Lab::new(&client);
    let options = CommitOptions::default().project(true);
    lab.compact(|t| summary(t.transcript(), "OUR-SUMMARY of it"), &options);
    lab.assert_exact();
    let history = lab.history(false);
    assert!(history.contains("contextCompaction"), "{history}");
    // The client's own projection of the same lines is the oracle for our rows.
    let ours = lab.marker_rows();
    lab.forget_projection();
    lab.history(true);
    assert_eq!(lab.marker_rows(), ours);
    lab.mock.log().take();
    let run = lab.home.prompt("NEXT").resume(&lab.thread).run().success();
    assert!(
        !run.output.stderr.contains(" WARN "),
        "{}",
        run.output.stderr
    );
    assert_one(
        &lab.mock.log().conversations(),
        &["OUR-SUMMARY of it"],
        &["OLD-41"],
    );
    lab.assert_exact();
}

#[test]
fn the_newest_client_reads_our_projection() {
    the_projection_can_be_brought_forward(clients::CODEX[0]);
}

#[test]
fn the_middle_client_reads_our_projection() {
    the_projection_can_be_brought_forward(clients::CODEX[1]);
}

/// Homes with a history of their own.
#[test]
fn fixtures_with_a_past_are_taken_up() {
    for (name, version) in [
        ("forked-0.171.0", 0),
        ("reverted-0.171.0", 0),
        ("killed-mid-turn-0.171.0", 0),
        ("paginated-0.171.0-compacted2", 0),
        ("nearly-full-0.150.1", 1),
        ("paginated-0.150.1", 0),
        ("legacy-0.144.6-compacted", 2),
        ("legacy-0.171.0", 0),
    ] {
        let client = require_client!(codex, clients::CODEX[version]);
        let lab = Lab::of_fixture(&client, name);
        // Something to fold, whatever the home holds.
        lab.turn(&format!("LONG {}", "word ".repeat(600)));
        lab.turn("SHORT");
        lab.compact(
            |t| summary(t.transcript(), "OUR-SUMMARY of it"),
            &CommitOptions::default(),
        );
        let held = ["OUR-SUMMARY of it", "SHORT"];
        assert_one(&lab.turn("NEXT"), &held, &["word word", "List the numbers"]);
        assert_one(
            &lab.turn("AND NEXT"),
            &held,
            &["word word", "List the numbers"],
        );
        lab.assert_exact();
    }
}

/// A legacy thread that the client converts keeps our compaction.
#[test]
fn a_converted_thread_is_taken_up() {
    let client = require_client!(codex, clients::CODEX[0]);
    let lab = Lab::of_fixture(&client, "legacy-0.171.0");
    let run = lab
        .home
        .run(&["migrate-rollouts", "--apply", "--thread", &lab.thread]);
    assert!(run.status.success(), "{}", run.stderr);
    let thread = lab.open();
    assert_eq!(thread.meta().history_mode, "paginated");
    lab.turn(&format!("LONG {}", "word ".repeat(600)));
    lab.turn("SHORT");
    lab.compact(
        |t| summary(t.transcript(), "OUR-SUMMARY of it"),
        &CommitOptions::default(),
    );
    assert_one(&lab.turn("NEXT"), &["OUR-SUMMARY of it"], &["word word"]);
    lab.assert_exact();
}
