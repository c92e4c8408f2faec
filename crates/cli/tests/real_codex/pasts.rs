//! Threads with a past, in every mode: forked, reverted, killed in the middle of a turn, compacted
//! twice, nearly full, and converted by the client from the older kind.

use std::path::Path;

use ctxfold_test_support::{Recorded, clients, require_client};

use crate::lab::{Lab, OURS, assert_one};

const MODES: [&str; 3] = ["mask", "prune", "summary"];

/// What the past of a thread holds.
struct Past {
    /// Words that mask and prune leave in the request, the first of them an answer's, which a
    /// summary takes the place of.
    words: &'static [&'static str],
    /// Words that no request may hold, before or after: not part of the active history.
    never: &'static [&'static str],
}

fn pairs_are_whole(request: &Recorded) {
    let ids = |kind: &str| -> Vec<String> {
        let items = request.input().iter().filter(|i| i["type"] == kind);
        let mut ids: Vec<String> = items.map(|i| i["call_id"].to_string()).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids("function_call"), ids("function_call_output"));
}

/// Gives the thread something to fold, compacts it, and resumes it twice.
#[track_caller]
fn taken_up(lab: &Lab, mode: &str, past: &Past) {
    lab.turn("FIRST: run it");
    lab.turn("SHORT");
    let shown = lab.markers();
    lab.compact(mode);
    let said = ["FIRST: run it", "first done"];
    for prompt in ["NEXT", "AND NEXT"] {
        let requests = lab.turn(prompt);
        assert_one(&requests, &["SHORT"], &["OLD-41"]);
        assert_one(&requests, &[], past.never);
        if mode == "summary" {
            assert_one(&requests, &[OURS], &past.words[..1]);
        } else {
            assert_one(&requests, &said, &[OURS]);
            assert_one(&requests, past.words, &[]);
        }
        pairs_are_whole(&requests[0]);
    }
    lab.assert_exact();
    assert_eq!(lab.markers(), shown + 1, "{mode}");
}

fn each_mode(fixture: &str, past: &Past) {
    let client = require_client!(codex, clients::CODEX[0]);
    for mode in MODES {
        taken_up(&Lab::of_fixture(&client, fixture), mode, past);
    }
}

#[test]
fn forked() {
    let words = &["ANSWER 375 to", "A turn in the fork."];
    each_mode("forked-0.171.0", &Past { words, never: &[] });
}

#[test]
fn reverted() {
    let words = &["ANSWER 374 to", "A turn after the revert."];
    let never = &["And a plain answer, please."];
    each_mode("reverted-0.171.0", &Past { words, never });
}

#[test]
fn killed_in_the_middle_of_a_turn() {
    let words = &["ANSWER 375 to", "A turn that dies."];
    each_mode("killed-mid-turn-0.171.0", &Past { words, never: &[] });
}

#[test]
fn compacted_twice() {
    let words = &["MOCK-SUMMARY-379", "A turn after the second compaction."];
    let never = &["MOCK-SUMMARY-376", "echo again\\\""];
    each_mode("paginated-0.171.0-compacted2", &Past { words, never });
}

/// Converted before we compact it, and after.
#[test]
fn converted_by_the_client() {
    let client = require_client!(codex, clients::CODEX[0]);
    let words = &["ANSWER 362 to: one", "ANSWER 363 to: two"];
    for mode in MODES {
        let lab = Lab::of_fixture(&client, "legacy-0.171.0");
        migrate(&lab);
        taken_up(&lab, mode, &Past { words, never: &[] });
    }
    let lab = Lab::of_fixture(&client, "legacy-0.171.0");
    taken_up(&lab, "mask", &Past { words, never: &[] });
    migrate(&lab);
    assert_one(&lab.turn("CONVERTED"), &["FIRST: run it"], &["OLD-41"]);
    lab.assert_exact();
}

fn migrate(lab: &Lab) {
    let arguments = ["migrate-rollouts", "--apply", "--thread", &lab.thread];
    let run = lab.home.run(&arguments);
    assert!(run.status.success(), "{}", run.stderr);
    assert!(is_paginated(&lab.rollout()));
}

fn is_paginated(rollout: &Path) -> bool {
    let text = std::fs::read_to_string(rollout).unwrap();
    let first = text.lines().next().unwrap();
    first.contains("\"history_mode\":\"paginated\"")
}

/// The version that compacts again where the count of tokens is stale, and the newest.
#[test]
fn nearly_full() {
    for version in [clients::CODEX[0], clients::CODEX[1]] {
        let client = require_client!(codex, version);
        for mode in MODES {
            let mut lab = Lab::of_fixture(&client, "nearly-full-0.150.1");
            // One call and two answers: a note about the call wants an answer to stand in.
            lab.keep = "1";
            lab.compact_with(mode, &["--aggressive"]);
            for prompt in ["NEXT", "AND NEXT"] {
                let requests = lab.turn(prompt);
                assert_one(&requests, &["ANSWER 387 to"], &["\n101\n102\n"]);
                pairs_are_whole(&requests[0]);
            }
            lab.assert_exact();
            assert_eq!(lab.markers(), 1);
        }
    }
}
