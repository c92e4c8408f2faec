//! Mask, prune and summary of a nearly full thread: one request a turn afterwards, what was folded
//! out of it and the rest in it, the projection exact, the marker shown; then back.

use std::fs;

use ctxfold_test_support::{Recorded, require_client};
use serde_json::Value;

use crate::lab::{Lab, OURS, assert_one, on_each_version};

/// What was said, which mask and prune leave alone.
const WORDS: [&str; 6] = [
    "FIRST: run it",
    "first done",
    "SECOND: run both",
    "second done",
    "THIRD: just say so",
    "third done",
];
/// From the middle of each output.
const OUTPUTS: [&str; 3] = ["OLD-41", "PAR-2", "PAR-4"];

fn count(request: &Recorded, kind: &str) -> usize {
    let input = request.input();
    input.iter().filter(|item| item["type"] == kind).count()
}

/// Two turns after a compaction, the second after another resume.
#[track_caller]
fn go_on(lab: &Lab, held: &[&str], gone: &[&str]) -> Recorded {
    let mut last = None;
    for prompt in ["FOURTH", "FIFTH"] {
        let requests = lab.turn(prompt);
        assert_one(&requests, held, gone);
        let calls = count(&requests[0], "function_call");
        assert_eq!(calls, count(&requests[0], "function_call_output"));
        let environment = requests[0].input().iter().filter(|item| {
            item["role"] == "user" && item.to_string().contains("<environment_context>")
        });
        assert_eq!(environment.count(), 1);
        last = Some(requests[0].clone());
    }
    lab.assert_exact();
    last.unwrap()
}

/// The outputs in a request, as text.
fn outputs(request: &Recorded) -> Vec<String> {
    let items = request.input().iter();
    items
        .filter(|item| item["type"] == "function_call_output")
        .map(|item| match &item["output"] {
            Value::String(text) => text.clone(),
            other => other[0]["text"].as_str().unwrap().to_owned(),
        })
        .collect()
}

/// The addresses that a request's folded outputs name, in order.
fn addresses(request: &Recorded) -> Vec<String> {
    let folded = outputs(request);
    let addresses = folded.iter().filter_map(|text| {
        let (_, rest) = text.split_once("ctxfold unfold ")?;
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || ":-_".contains(c)));
        Some(rest[..end.unwrap_or(rest.len())].to_owned())
    });
    addresses.collect()
}

/// Nearly full: a client that took the old count for the new one would compact a second time.
const FULL: u64 = 250_000;
const HALF_FULL: u64 = 120_000;

fn mask_folds_outputs_and_reads_them_back(version: &str) {
    let client = require_client!(codex, version);
    let lab = Lab::new(&client, FULL);
    let before = fs::read(lab.rollout()).unwrap();
    let whole = outputs(&lab.mock.log().last());
    assert_eq!(whole.len(), 3);
    let ran = lab.compact("mask");
    assert!(ran.stderr.contains("ctxfold undo "), "{}", ran.stderr);
    assert!(fs::read(lab.rollout()).unwrap().starts_with(&before));
    let request = go_on(&lab, &WORDS, &OUTPUTS);
    assert_eq!(lab.markers(), 1);

    // What the client itself sent before is the oracle.
    let addresses = addresses(&request);
    assert_eq!(addresses.len(), 3, "{:?}", outputs(&request));
    for ((address, output), text) in addresses.iter().zip(&whole).zip(OUTPUTS) {
        assert!(output.contains(&format!("950\n{text}\n951")), "{output}");
        assert_eq!(&lab.fold(&["unfold", address]).done().stdout, output);
    }
    let search = [
        "unfold",
        "--search",
        "^PAR-[0-9]$",
        "--session",
        &lab.thread,
    ];
    let found = lab.fold(&search).done().stdout;
    assert_eq!(found.lines().count(), 2, "{found}");
    for address in &addresses[1..] {
        assert!(found.contains(address.as_str()), "{found}");
    }
    assert!(lab.gemini.log().all().is_empty(), "masking asks nobody");
}

fn prune_drops_calls_and_undo_brings_them_back(version: &str) {
    let client = require_client!(codex, version);
    let lab = Lab::new(&client, HALF_FULL);
    let whole = outputs(&lab.mock.log().last());
    let ran = lab.compact("prune");
    // The model was asked once, and saw the thread.
    assert_eq!(lab.gemini.log().conversations().len(), 1);
    assert!(lab.gemini.log().last().holds("FIRST: run it"));
    let request = go_on(&lab, &WORDS, &OUTPUTS);
    assert!(
        count(&request, "function_call") <= 1,
        "{:?}",
        request.input()
    );
    assert_eq!(lab.markers(), 1);
    let (_, address) = ran.stderr.split_once("ctxfold unfold ").unwrap();
    let address = address.lines().next().unwrap();
    let unfolded = lab.fold(&["unfold", address]).done().stdout;
    assert!(whole.contains(&unfolded), "{unfolded}");

    let undo = ["undo", "--agent", "codex", "--json", &lab.thread];
    assert_eq!(lab.fold(&undo).json()["undone"], true);
    let requests = lab.turn("SIXTH");
    assert_one(&requests, &WORDS, &["ctxfold unfold"]);
    assert_one(&requests, &["FOURTH", "FIFTH"], &[]);
    assert_eq!(outputs(&requests[0]), whole);
    lab.assert_exact();
    assert_eq!(lab.markers(), 2);
}

fn a_summary_takes_the_place_of_what_was_before(version: &str) {
    let client = require_client!(codex, version);
    let lab = Lab::new(&client, FULL);
    lab.compact("summary");
    let asked = lab.gemini.log().last();
    assert!(asked.holds("SECOND: run both") && asked.holds("PAR-4"));
    let gone = ["OLD-41", "PAR-2", "PAR-4", "first done"];
    go_on(&lab, &[OURS, "THIRD: just say so", "third done"], &gone);
    assert_eq!(lab.markers(), 1);
    let search = ["unfold", "--search", "^OLD-41$", "--session", &lab.thread];
    let found = lab.fold(&search).done().stdout;
    assert_eq!(found.lines().count(), 1, "{found}");

    // A later compaction of the client's own takes our summary for one and lets it go.
    lab.compact_by_client("THE-CLIENTS-OWN");
    assert_one(&lab.turn("SIXTH"), &["THE-CLIENTS-OWN"], &[OURS]);
    lab.assert_exact();
    assert_eq!(lab.markers(), 2);
}

on_each_version!(
    mask_folds_outputs_and_reads_them_back,
    prune_drops_calls_and_undo_brings_them_back,
    a_summary_takes_the_place_of_what_was_before,
);
