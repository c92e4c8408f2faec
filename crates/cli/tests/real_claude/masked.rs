//! Masking, judged by the requests of the real client that follow.

use std::fs;

use ctxfold_test_support::{Turn, clients, require_client};
use serde_json::{Value, json};

use crate::lab::{Lab, SESSION};
use crate::on_each_version;
use crate::wire::{Piece, Wire, assert_same, text_of};

/// The size that a plan predicts must be within a tenth of what the messages shrank by.
#[track_caller]
fn assert_predicted(plan: &Value, before: &Wire, after: &Wire) {
    let of = |side: &str| plan[side]["bytes"].as_f64().unwrap();
    let (predicted, real) = (
        of("before") - of("after"),
        (before.bytes - after.bytes) as f64,
    );
    assert!(
        (predicted / real - 1.0).abs() <= 0.1,
        "predicted {predicted}, really {real}"
    );
}

fn the_request_is_what_the_plan_says_and_everything_comes_back(version: &str) {
    let client = require_client!(claude, version);
    let lab = Lab::new(&client);
    let before = lab.probe();
    let mut dry = lab
        .ctxfold(&["compact", SESSION, "--dry-run", "--json"])
        .json();
    let plan = lab.compact(&[]);
    dry["executed"] = json!(true);
    assert_eq!(dry, plan, "what a dry run prints is what a real run does");
    assert_eq!(plan["decisions"].as_array().unwrap().len(), 5, "{plan:#}");

    let first = Wire::of(lab.resume("PROBE").messages());
    first.assert_planned(&before, &plan);
    assert_predicted(&plan, &before, &first);
    let second = Wire::of(lab.resume("once more").messages());
    assert_same(&second.pieces[..first.pieces.len()], &first.pieces);
    assert_eq!(second.pieces.len(), first.pieces.len() + 2);

    for decision in plan["decisions"].as_array().unwrap() {
        let address = decision["address"].as_str().unwrap();
        let key = address.rsplit(':').next().unwrap();
        let is = |id: &Value| id.as_str().is_some_and(|id| id.ends_with(key));
        let sent = before
            .pieces
            .iter()
            .find(|p| is(&p.block["tool_use_id"]))
            .unwrap();
        let read = lab.ctxfold(&["unfold", address]).done().stdout;
        assert_eq!(read, text_of(&sent.block), "byte for byte");
    }
    let hits = lab
        .ctxfold(&["unfold", "--search", "^PAR-[AB]-42$", "--session", SESSION])
        .done();
    assert_eq!(hits.stdout.lines().count(), 2, "{hits:?}");

    lab.ctxfold(&["undo", SESSION]).done();
    let back = lab.probe();
    assert_same(&back.pieces[..before.pieces.len()], &before.pieces);
    assert_eq!(
        back.prompts()[before.prompts().len()..],
        ["once more", "PROBE"]
    );
}

/// More to fold, said after a compaction.
fn more(lab: &Lab) {
    for prompt in ["FIRST: again", "talk four", "talk five", "talk six"] {
        for request in lab.say(prompt) {
            assert_ne!(request.kind, "compaction");
        }
    }
}

fn the_clients_own_compaction_before_and_after_ours(version: &str) {
    let client = require_client!(claude, version);
    let lab = Lab::new(&client);
    lab.mock.set_summary("NATIVE-SUMMARY");
    lab.say("/compact");
    more(&lab);
    let before = lab.probe();
    let plan = lab.compact(&[]);
    let call = plan["decisions"][0]["what"].as_str().unwrap();
    assert!(call.contains("ALONE"), "{plan:#}");
    let sent = lab.resume("PROBE");
    let mut after = Wire::of(sent.messages());
    after
        .pieces
        .retain(|p| !p.text().contains("was attached, "));
    // Files that the client read again after its compaction are attachments: they fold too, and
    // are no blocks of the conversation.
    let mut calls = plan.clone();
    calls["decisions"].as_array_mut().unwrap().truncate(1);
    after.assert_planned(&before, &calls);
    for attachment in &plan["decisions"].as_array().unwrap()[1..] {
        let address = attachment["address"].as_str().unwrap();
        assert!(
            sent.holds(address),
            "{address} stands in the place of its attachment"
        );
        let read = lab.ctxfold(&["unfold", address]).done().stdout;
        assert!(read.contains("a line of the notes"), "{read}");
    }
    // The newer client sends what stands there as it is. Nobody may take it for the user's words.
    if version == clients::CLAUDE[0] {
        assert!(sent.holds("<system-reminder>\n[folded by ctxfold"));
    }
    assert!(
        !sent.holds("a line of the notes\n2"),
        "the attachment is folded"
    );
    assert_eq!(after.holds("NATIVE-SUMMARY"), 1);

    // The client's own reads our lines, and not what they stand for.
    lab.mock.set_summary("NEWER-SUMMARY");
    let asked = lab.say("/compact");
    let asked: Vec<_> = asked.iter().filter(|r| r.kind == "compaction").collect();
    assert_eq!(asked.len(), 1);
    assert!(asked[0].holds("[folded by ctxfold:") && !asked[0].holds("ALONE-42\n"));
    let next = Wire::of(lab.resume("and now?").messages());
    assert_eq!(
        (
            next.holds("NEWER-SUMMARY"),
            next.holds("[folded by ctxfold:")
        ),
        (1, 0)
    );
    lab.ctxfold(&["check", SESSION]).done();
}

fn an_earlier_mask_in_a_file_above_five_mebibytes(version: &str) {
    let client = require_client!(claude, version);
    let lab = Lab::new(&client);
    // Asked while the file is small: without a compaction, 2.1.197 loses some of the parallel
    // calls of a large file. With ours they are listed, and sent.
    let before = lab.probe();
    // What clients write beside a conversation, until they skip what they take for old.
    let row = json!({"type": "progress", "data": "x".repeat(60_000)}).to_string() + "\n";
    let text = row.repeat(100) + &fs::read_to_string(lab.file()).unwrap();
    fs::write(lab.file(), text).unwrap();
    assert!(lab.bytes().len() > 5 << 20);
    let first = lab.compact(&[]);
    let sent = Wire::of(lab.resume("PROBE").messages());
    sent.assert_planned(&before, &first);
    assert_predicted(&first, &before, &sent);

    more(&lab);
    let before = lab.probe();
    let second = lab.compact(&[]);
    assert_eq!(
        second["decisions"].as_array().unwrap().len(),
        1,
        "{second:#}"
    );
    let sent = Wire::of(lab.resume("PROBE").messages());
    // The note has moved or stands again: it is looked at without.
    assert_eq!(sent.holds("[folded by ctxfold:"), 6);
    assert_eq!(sent.prompts(), before.prompts());
    assert_eq!(sent.holds("FIRST: again"), 1);
    lab.ctxfold(&["undo", SESSION]).done();
    let back = lab.probe();
    assert_same(&back.pieces[..before.pieces.len()], &before.pieces);
}

fn a_live_writer_goes_on_at_the_old_leaf(version: &str) {
    let client = require_client!(claude, version);
    let lab = Lab::empty(&client);
    let mut live = lab.live_session();
    let before = lab.probe();
    let plan = lab.compact(&["--live"]);
    lab.mock.on("LIVE", [Turn::text("LIVE-ANSWER")]);
    live.say("LIVE: go on");
    assert!(
        lab.mock.log().last().holds("PAR-A-42"),
        "it remembers what it had"
    );
    lab.wait_for_text("LIVE-ANSWER");
    drop(live);
    let mut sent = Wire::of(lab.resume("PROBE").messages());
    // The turn of the live process stands between the old end and the newest prompt.
    let turn = sent
        .pieces
        .split_off(before.pieces.len() + plan["notes"].as_array().unwrap().len() - 1);
    let texts: Vec<_> = turn.iter().map(Piece::text).collect();
    assert_eq!(texts, ["LIVE: go on", "LIVE-ANSWER", "PROBE"]);
    sent.pieces.push(turn[2].clone());
    sent.assert_planned(&before, &plan);
}

on_each_version!(
    the_request_is_what_the_plan_says_and_everything_comes_back,
    the_clients_own_compaction_before_and_after_ours,
    an_earlier_mask_in_a_file_above_five_mebibytes,
    a_live_writer_goes_on_at_the_old_leaf,
);
