//! Prune and summary with a mock Gemini, judged by the requests of the real client that follow.

use ctxfold_test_support::{GeminiTurn, Recorded, require_client};
use serde_json::{Value, json};

use crate::lab::{KEY, Lab, SESSION};
use crate::on_each_version;
use crate::wire::{Wire, assert_same};

/// What every request must hold, whatever a model does.
const PROMPTS: [&str; 7] = [
    "FIRST: numbers",
    "SECOND: more numbers",
    "THIRD: never touch the vault",
    "FOURTH: ask",
    "talk one",
    "talk two",
    "talk three",
];

pub(crate) fn summary(mark: &str) -> GeminiTurn {
    let section = |title: &&str| {
        format!("## {title}\n{mark}: what there is to say about it, in one plain sentence.\n")
    };
    GeminiTurn::text(
        &ctxfold_compactor::SECTIONS
            .iter()
            .map(section)
            .collect::<String>(),
    )
}

/// The identifiers that a prune request gives to calls, found by a part of their label.
fn id_of(request: &Value, part: &str) -> String {
    let text = request["text"].as_str().unwrap();
    let line = text
        .lines()
        .find(|l| {
            l.starts_with("call c") && l.contains(part) || l.contains("call c") && l.contains(part)
        })
        .unwrap_or_else(|| panic!("{part} is not asked about in:\n{text}"));
    let id = line.split("call ").nth(1).unwrap();
    id.split(':').next().unwrap().to_owned()
}

fn prune_is_sent_as_planned(version: &str) {
    let client = require_client!(claude, version);
    let lab = Lab::new(&client);
    let before = lab.probe();
    let dry = lab
        .ctxfold(&["compact", SESSION, "--mode", "prune", "--dry-run", "--json"])
        .json();
    assert_eq!(lab.gemini.log().all().len(), 0, "a dry run sends nothing");
    let request = &dry["requests"][0];
    let said = request["text"].as_str().unwrap();
    let ids = said
        .lines()
        .find_map(|l| l.split_once("each once: "))
        .unwrap()
        .1;
    let drops = ["PAR-B", "notes.txt"].map(|part| id_of(request, part));
    let cuts = ["ALONE", "PAR-A"].map(|part| id_of(request, part));
    let decisions: Vec<_> = ids
        .split(", ")
        .map(|id| {
            let has = |list: &[String]| list.iter().any(|i| i == id);
            let action = if has(&drops) {
                "drop"
            } else if has(&cuts) {
                "truncate"
            } else {
                "keep"
            };
            json!({"id": id, "action": action})
        })
        .collect();
    lab.gemini.next(GeminiTurn::text(
        &json!({ "decisions": decisions }).to_string(),
    ));
    let plan = lab.compact(&["--mode", "prune"]);
    let of = |action: &str| {
        plan["decisions"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|d| d["action"] == action)
            .count()
    };
    // The Read is the only call of its message: without its result two answers would follow each
    // other, so it is cut and not dropped.
    assert_eq!((of("drop"), of("truncate")), (1, 3), "{plan:#}");
    let asked = lab.gemini.log().conversations();
    assert_eq!(asked.len(), 1);
    assert!(asked[0].holds("PAR-B") && !asked[0].query.contains(KEY));

    let first = Wire::of(lab.resume("PROBE").messages());
    first.assert_planned(&before, &plan);
    let (predicted, real) = (shrink(&plan), (before.bytes - first.bytes) as f64);
    assert!(
        (predicted / real - 1.0).abs() <= 0.1,
        "predicted {predicted}, really {real}"
    );
    assert_eq!(first.prompts()[..7], PROMPTS);
    // A truncated output keeps its head.
    assert_eq!(first.holds("1\n2\n3\n4\n5"), 3);

    let second = Wire::of(lab.resume("once more").messages());
    assert_same(&second.pieces[..first.pieces.len()], &first.pieces);
    assert_eq!(second.pieces.len(), first.pieces.len() + 2);

    // The dropped output can be read back, byte for byte as the client sent it.
    let dropped = plan["decisions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|d| d["action"] == "drop");
    let address = dropped.unwrap()["address"].as_str().unwrap();
    let key = address.rsplit(':').next().unwrap();
    let original = before.pieces.iter().find(|p| {
        p.block["tool_use_id"]
            .as_str()
            .is_some_and(|id| id.ends_with(key))
    });
    let original = crate::wire::text_of(&original.unwrap().block);
    assert_eq!(lab.ctxfold(&["unfold", address]).done().stdout, original);

    lab.ctxfold(&["undo", SESSION]).done();
    let back = lab.probe();
    assert_same(&back.pieces[..before.pieces.len()], &before.pieces);
}

/// Prunes the session: calls whose label has one of these parts are dropped, all others stay.
#[track_caller]
fn prune(lab: &Lab, drops: &[&str], arguments: &[&str]) -> Value {
    let dry = ["compact", SESSION, "--mode", "prune", "--dry-run", "--json"];
    let dry = lab.ctxfold(&[&dry, arguments].concat()).json();
    let request = &dry["requests"][0];
    let drops: Vec<String> = drops.iter().map(|part| id_of(request, part)).collect();
    let text = request["text"].as_str().unwrap();
    let (_, ids) = text.rsplit_once("each once: ").unwrap();
    let ids = ids.lines().next().unwrap();
    let decisions: Vec<_> = ids
        .split(", ")
        .map(|id| {
            let is_dropped = drops.iter().any(|drop| drop == id);
            json!({"id": id, "action": if is_dropped { "drop" } else { "keep" }})
        })
        .collect();
    let answer = json!({ "decisions": decisions }).to_string();
    lab.gemini.next(GeminiTurn::text(&answer));
    lab.compact(&[&["--mode", "prune"], arguments].concat())
}

/// The dropped calls stand beside thinking, which stays; the live client's next turn hangs on the
/// old end; and a second prune takes from what the first one left.
fn a_prune_survives_a_live_writer_and_a_second_prune(version: &str) {
    let client = require_client!(claude, version);
    let lab = Lab::empty(&client);
    let mut live = lab.live_session();
    let before = lab.probe();
    let thinking = |wire: &Wire| wire.pieces.iter().filter(|p| p.is("thinking")).count();
    let plan = prune(&lab, &["PAR-A", "PAR-B"], &["--live"]);
    live.say("LIVE: go on");
    lab.wait_for_text("to: LIVE: go on");
    drop(live);
    let mut sent = Wire::of(lab.resume("PROBE").messages());
    let end = sent.pieces.len();
    let turn: Vec<String> = sent.pieces[end - 3..]
        .iter()
        .map(|piece| piece.text().to_owned())
        .collect();
    assert_eq!(
        (turn[0].as_str(), turn[2].as_str()),
        ("LIVE: go on", "PROBE")
    );
    assert!(turn[1].contains("to: LIVE: go on"), "{turn:?}");
    sent.pieces.drain(end - 3..end - 1);
    sent.assert_planned(&before, &plan);
    assert_eq!(thinking(&sent), thinking(&before));

    let before = lab.probe();
    let plan = prune(&lab, &["PAR-C", "ALONE", "notes.txt"], &[]);
    let sent = Wire::of(lab.resume("PROBE").messages());
    sent.assert_planned(&before, &plan);
    assert_eq!(thinking(&sent), thinking(&before));
    for mark in ["PAR-A-42", "PAR-B-42", "PAR-C-42"] {
        assert_eq!(sent.holds(mark), 0, "{mark}");
    }
    assert_eq!(sent.prompts()[..7], PROMPTS);
}

/// Bytes that a plan says it saves.
fn shrink(plan: &Value) -> f64 {
    plan["before"]["bytes"].as_f64().unwrap() - plan["after"]["bytes"].as_f64().unwrap()
}

/// Checks that a request is the summary of a plan and then the end of the request before.
#[track_caller]
fn assert_summarised(sent: &Recorded, before: &Wire, plan: &Value) -> Wire {
    let wire = Wire::of(sent.messages());
    let text = plan["summary"].as_str().unwrap();
    assert_eq!(wire.holds(text), 1, "the summary stands once");
    assert!(wire.pieces[0].text().contains(text), "{:?}", wire.pieces[0]);
    let tail = &wire.pieces[1..];
    assert!(tail.len() > 1, "messages were kept");
    assert_same(tail, &before.pieces[before.pieces.len() - tail.len()..]);
    wire
}

fn a_summary_is_sent_as_planned_and_merged_and_survives_a_live_writer(version: &str) {
    let client = require_client!(claude, version);
    let lab = Lab::new(&client);
    let before = lab.probe();
    lab.gemini.next(summary("MODEL-ONE"));
    let plan = lab.compact(&["--mode", "summary"]);
    let asked = lab.gemini.log().take();
    assert!(
        asked
            .iter()
            .all(|r| !r.query.contains(KEY) && !r.body.to_string().contains(KEY))
    );
    let first = assert_summarised(&lab.resume("PROBE"), &before, &plan);
    assert!(first.holds("MODEL-ONE") > 0 && first.holds("PAR-B-42") == 0);
    // The ledger is made by code: the model said nothing of these.
    for fact in ["never touch the vault", "made.txt", "SECOND: more numbers"] {
        assert_eq!(first.holds(fact), 1, "{fact}");
    }
    let second = Wire::of(lab.resume("after one").messages());
    assert_same(&second.pieces[..first.pieces.len()], &first.pieces);

    // A second summary is told of the first, as one, and takes its place.
    for prompt in ["talk four", "talk five", "talk six"] {
        lab.resume(prompt);
    }
    let before = lab.probe();
    lab.gemini.next(summary("MODEL-TWO"));
    let plan = lab.compact(&["--mode", "summary"]);
    let asked = lab.gemini.log().take();
    assert!(
        asked.last().unwrap().holds("MODEL-ONE"),
        "the first summary is merged"
    );
    let merged = assert_summarised(&lab.resume("PROBE"), &before, &plan);
    assert!(merged.holds("MODEL-TWO") == 1 && merged.holds("## Next step\nMODEL-ONE") == 0);
    for fact in ["never touch the vault", "made.txt", "SECOND: more numbers"] {
        assert!(merged.holds(fact) >= 1, "{fact}");
    }

    // A client that has the session open goes on with what it remembers, behind our rows.
    let mut live = lab.home.live(&["--resume", SESSION]);
    live.say("LIVE-BEFORE");
    lab.wait_for_text("to: LIVE-BEFORE");
    for n in 0..3 {
        live.say(&format!("live talk {n}"));
    }
    lab.wait_for_text("to: live talk 2");
    lab.gemini.next(summary("MODEL-THREE"));
    let plan = lab.compact(&["--mode", "summary", "--live"]);
    live.say("LIVE-AFTER");
    lab.wait_for_text("to: LIVE-AFTER");
    drop(live);
    let last = Wire::of(lab.resume("the end").messages());
    assert_eq!(last.holds(plan["summary"].as_str().unwrap()), 1);
    let prompts = last.prompts();
    assert!(prompts.ends_with(&["LIVE-AFTER", "the end"]), "{prompts:?}");
    assert_eq!(last.holds("MODEL-THREE"), 1);
}

/// Answers of models that are useless or hostile, each with the mode that it is tried in.
fn hostile() -> Vec<(&'static str, GeminiTurn)> {
    let ids = |ids: &[&str]| {
        let decisions: Vec<_> = ids
            .iter()
            .map(|id| json!({"id": id, "action": "drop"}))
            .collect();
        GeminiTurn::text(&json!({ "decisions": decisions }).to_string())
    };
    vec![
        ("prune", GeminiTurn::text("I would rather not.")),
        ("prune", ids(&["c1", "c2", "c77"])),
        ("prune", ids(&["c1", "c1"])),
        ("prune", ids(&[])),
        (
            "prune",
            GeminiTurn::text("{\"decisions\": [{\"id\": \"c1\", \"act"),
        ),
        ("summary", GeminiTurn::text("Sure, the number is 42.")),
        ("summary", GeminiTurn::text(&"y".repeat(10 << 20))),
        (
            "summary",
            GeminiTurn::function("Bash", &json!({"command": "rm -rf /"})),
        ),
        ("summary", summary("HALF").with_finish_reason("MAX_TOKENS")),
        ("summary", summary("UNSAFE").with_finish_reason("SAFETY")),
        ("summary", summary("CUT").cut()),
        ("summary", GeminiTurn::raw(json!({"candidates": []}))),
    ]
}

fn a_hostile_model_changes_nothing_and_masking_loses_nothing(version: &str) {
    let client = require_client!(claude, version);
    let lab = Lab::new(&client);
    let before = lab.probe();
    for (mode, turn) in hostile() {
        // The same answer for as often as the client tries again.
        for _ in 0..4 {
            lab.gemini.next(turn.clone());
        }
        let arguments = ["compact", SESSION, "--mode", mode, "--fallback", "none"];
        let ran = lab.fails(4, &arguments, "nothing was written");
        assert!(ran.stdout.is_empty(), "{ran:?}");
        // Answers that were not asked for again must not answer the next question.
        drain(&lab);
    }
    lab.gemini.next(GeminiTurn::text("no"));
    let ran = lab.ctxfold(&["compact", SESSION, "--mode", "prune"]).done();
    assert!(ran.stderr.contains("masked instead: "), "{ran:?}");
    let after = lab.probe();
    assert_eq!(after.prompts(), before.prompts());
    assert_eq!(after.holds("made.txt"), before.holds("made.txt"));
    assert!(after.bytes < before.bytes / 2);
}

/// Takes what is left of the answers that were put up.
fn drain(lab: &Lab) {
    let url = format!("{}/v1beta/models/m:generateContent", lab.gemini.url());
    loop {
        let reply = ctxfold_test_support::post_json(&url, &json!({"contents": []}));
        if reply.is_ok_and(|r| r["candidates"][0]["content"]["parts"][0]["text"] == "MOCK-REPLY") {
            lab.gemini.log().take();
            return;
        }
    }
}

on_each_version!(
    prune_is_sent_as_planned,
    a_prune_survives_a_live_writer_and_a_second_prune,
    a_summary_is_sent_as_planned_and_merged_and_survives_a_live_writer,
    a_hostile_model_changes_nothing_and_masking_loses_nothing,
);
