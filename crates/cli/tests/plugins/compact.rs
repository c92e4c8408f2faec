//! `/compact` in the three modes: who was asked, and what the client sends afterwards.

use ctxfold_test_support::{GeminiTurn, Recorded, require_client};
use serde_json::json;

use crate::lab::{Lab, OURS, THEIRS, dist};

/// How many texts of a request are just this one.
fn count(request: &Recorded, text: &str) -> usize {
    let whole = serde_json::to_string(request.messages()).unwrap();
    whole.matches(&format!("\"text\":\"{text}\"")).count()
}

/// Compacts, and goes on twice, each time in a new process; the requests of those two turns.
fn compact_and_go_on(lab: &Lab, id: &str) -> [Recorded; 2] {
    let printed = lab.stream(id, "/compact keep the numbers");
    assert!(printed.contains("compact_boundary"), "{printed}");
    assert!(
        lab.mock.log().all().is_empty(),
        "nothing went to the client's model"
    );
    ["SEVENTH", "EIGHTH"].map(|prompt| {
        lab.home.prompt(prompt).resume(id).run().success();
        let requests = lab.mock.log().take();
        let conversations: Vec<&Recorded> = requests
            .iter()
            .filter(|r| r.kind == "conversation")
            .collect();
        assert_eq!(conversations.len(), 1);
        assert!(!requests.iter().any(|r| r.kind == "compaction"));
        conversations[0].clone()
    })
}

#[test]
fn summary_asks_gemini_once_and_the_tail_follows_it() {
    let client = require_client!(claude, "2.1.332");
    let lab = Lab::with(&client, dist());
    let id = lab.conversation();
    lab.expect_summary();
    for request in compact_and_go_on(&lab, &id) {
        let whole = serde_json::to_string(request.messages()).unwrap();
        assert_eq!(whole.matches(OURS).count(), 1, "{whole}");
        for kept in ["FIFTH: go on", "SIXTH: go on", "SEVENTH"] {
            assert_eq!(count(&request, kept), 1, "{kept}: {whole}");
        }
        assert!(
            !request.holds("FIRST-41") && !request.holds(THEIRS),
            "{whole}"
        );
    }
    let asked = lab.gemini.log().conversations();
    assert_eq!(asked.len(), 1);
    assert!(asked[0].holds("FIRST: go on") && asked[0].holds("keep the numbers"));
    assert_eq!(asked[0].header("x-goog-api-key"), Some("KEY-OF-A-TEST"));
}

#[test]
fn prune_asks_gemini_once_and_keeps_what_was_said() {
    folds_outputs_only("prune", 1);
}

#[test]
fn mask_asks_nobody_and_keeps_what_was_said() {
    folds_outputs_only("mask", 0);
}

fn folds_outputs_only(mode: &str, asked: usize) {
    let client = require_client!(claude, "2.1.332");
    let lab = Lab::with(&client, dist());
    let set = lab
        .home
        .prompt(&format!("/ctxfold mode {mode}"))
        .run()
        .success();
    assert!(
        set.text().contains(&format!("mode       {mode}")),
        "{}",
        set.text()
    );
    let id = lab.conversation();
    if asked > 0 {
        let drop = |id: &str| json!({"id": id, "action": "drop"});
        let decisions = json!({"decisions": [drop("c1"), drop("c2")]});
        lab.gemini.next(GeminiTurn::text(&decisions.to_string()));
    }
    for request in compact_and_go_on(&lab, &id) {
        let said = ["FIRST", "SECOND", "THIRD", "FOURTH", "FIFTH", "SIXTH"];
        for said in said.map(|name| format!("{name}: go on")) {
            assert_eq!(
                count(&request, &said),
                1,
                "{said}: {:#?}",
                request.messages()
            );
        }
        assert!(request.holds("FIRST done") && request.holds("SECOND done"));
        assert!(!request.holds("FIRST-41"), "{:#?}", request.messages());
        assert!(!request.holds(THEIRS));
    }
    assert_eq!(lab.gemini.log().conversations().len(), asked);
}
