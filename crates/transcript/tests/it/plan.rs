//! `validate`, `measure` and `apply` against each other: each is written on its own.

use std::collections::BTreeSet;

use ctxfold_transcript::{
    Action, Activity, Author, Builder, Content, Fill, Mode, Note, Outcome, Plan, PlanError, Target,
    Transcript,
};
use proptest::prelude::*;

use crate::generate::{plans, transcripts};

/// A conversation and a valid plan: of a generated plan, what is valid together.
fn transcript_and_plan() -> impl Strategy<Value = (Transcript, Plan)> {
    transcripts()
        .prop_flat_map(|t| (plans(&t), Just(t)).prop_map(|(p, t)| (valid_part(&t, p), t)))
        .prop_map(|(p, t)| (t, p))
}

fn valid_part(t: &Transcript, wanted: Plan) -> Plan {
    let mut plan = Plan {
        decisions: Vec::new(),
        notes: Vec::new(),
        ..wanted.clone()
    };
    if plan.validate(t).is_err() {
        plan = Plan::keep_all(t, Mode::Prune);
    }
    for decision in wanted.decisions {
        plan.decisions.push(decision);
        if plan.validate(t).is_err() {
            plan.decisions.pop();
        }
    }
    for note in wanted.notes {
        plan.notes.push(note);
        if plan.validate(t).is_err() {
            plan.notes.pop();
        }
    }
    plan
}

/// Whether calls and results point at each other.
fn is_whole(t: &Transcript) -> bool {
    let calls = t.calls.iter().enumerate().all(|(index, call)| {
        let at = t.block(call.at).map(|b| &b.content);
        let made = matches!(at, Some(Content::ToolCall(i)) if *i == index);
        let answered = call.result.is_none_or(|at| {
            matches!(t.block(at).map(|b| &b.content),
                     Some(Content::ToolResult { call: Some(i), .. }) if *i == index)
        });
        made && answered
    });
    let blocks = t.messages.iter().flat_map(|m| &m.blocks);
    calls
        && blocks
            .filter(|b| matches!(b.content, Content::ToolCall(_)))
            .count()
            == t.calls.len()
}

/// What the user says, wherever it stands.
fn said(t: &Transcript) -> Vec<String> {
    (0..t.messages.len())
        .flat_map(|message| t.said(message))
        .map(|words| words.text.into_owned())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn generated_conversations_are_whole(t in transcripts()) {
        prop_assert!(is_whole(&t));
        prop_assert_eq!(Plan::keep_all(&t, Mode::Mask).validate(&t), Ok(()));
        prop_assert_eq!(Plan::keep_all(&t, Mode::Mask).apply(&t), t);
    }

    #[test]
    fn a_valid_plan_weighs_what_it_leaves((t, mut plan) in transcript_and_plan()) {
        prop_assert_eq!(plan.validate(&t), Ok(()));
        plan.measure(&t);
        let after = plan.apply(&t);
        prop_assert_eq!(plan.before, t.measure());
        prop_assert_eq!(plan.after.bytes, after.bytes());
        prop_assert_eq!(plan.after.messages, after.messages.len());
    }

    #[test]
    fn a_valid_plan_keeps_pairs_users_thinking_and_the_tail((t, plan) in transcript_and_plan()) {
        prop_assert_eq!(plan.validate(&t), Ok(()));
        let after = plan.apply(&t);
        prop_assert!(is_whole(&after));
        let thoughts = |t: &Transcript| t.messages.iter().flat_map(|m| &m.blocks)
            .filter(|b| b.content == Content::Thinking).count();
        if plan.summary.is_none() {
            prop_assert_eq!(said(&after), said(&t));
            prop_assert_eq!(thoughts(&after), thoughts(&t));
        } else {
            prop_assert_eq!(after.messages.len(), 1 + t.messages.len() - plan.tail);
        }
        let tail = t.messages.len() - plan.tail.min(t.messages.len());
        let bytes = |m: &[ctxfold_transcript::Message]| m.iter().map(ctxfold_transcript::Message::bytes).collect::<Vec<_>>();
        prop_assert_eq!(
            bytes(&after.messages[after.messages.len() - tail..]),
            bytes(&t.messages[t.messages.len() - tail..])
        );
        for (index, call) in t.calls.iter().enumerate() {
            if call.outcome == Outcome::Pending && plan.summary.is_none() {
                prop_assert!(after.calls.iter().any(|c| c.id == t.calls[index].id));
            }
        }
    }

    /// The oracle looks at the authors that are left, without any index.
    #[test]
    fn no_valid_plan_makes_two_answers_neighbours((t, plan) in transcript_and_plan()) {
        prop_assume!(plan.summary.is_none());
        let neighbours = |t: &Transcript| t.messages.windows(2).filter(|w| {
            w.iter().all(|m| m.author == Author::Assistant)
        }).count();
        prop_assert!(neighbours(&plan.apply(&t)) <= neighbours(&t));
    }
}

/// A user, an answer with two calls, their results, an answer, a user.
fn small() -> Transcript {
    let mut b = Builder::new();
    b.message(Author::User).text("do it");
    b.message(Author::Assistant)
        .text("running")
        .call("a", "Bash", "Bash(a)")
        .call("b", "Bash", "Bash(b)");
    b.message(Author::Tool)
        .result("a", "aaaa", false)
        .result("b", "bbbb", true);
    b.message(Author::Assistant).text("done");
    b.message(Author::User).text("more");
    b.message(Author::Assistant).call("c", "Bash", "Bash(c)");
    b.build()
}

#[test]
fn each_rule_names_what_breaks_it() {
    let t = small();
    let plan = |change: &dyn Fn(&mut Plan)| {
        let mut plan = Plan::keep_all(&t, Mode::Prune);
        change(&mut plan);
        plan.validate(&t)
    };
    let note = |message| Note {
        message,
        text: "n".into(),
    };
    let summary = |p: &mut Plan, tail| {
        p.mode = Mode::Summary;
        p.summary = Some("s".into());
        p.tail = tail;
    };
    assert_eq!(plan(&|_| {}), Ok(()));
    assert_eq!(
        plan(&|p| p.decide_call(9, Action::Drop, "")),
        Err(PlanError::UnknownTarget("Call(9)".into()))
    );
    assert_eq!(
        plan(&|p| {
            p.decide_call(0, Action::Drop, "");
            p.decisions.push(p.decisions[0].clone());
        }),
        Err(PlanError::DecidedTwice(Target::Call(0)))
    );
    assert_eq!(
        plan(&|p| p.decide_call(2, Action::Drop, "")),
        Err(PlanError::PendingCall(2))
    );
    let mut refused = small();
    if let Content::ToolResult { said, .. } = &mut refused.messages[2].blocks[1].content {
        *said = Some("use tabs".into());
    }
    for action in [Action::Drop, Action::Truncate("x".into()), Action::Keep] {
        let is_kept = action == Action::Keep;
        let mut plan = Plan::keep_all(&refused, Mode::Prune);
        plan.decide_call(1, action, "");
        let expected = if is_kept {
            Ok(())
        } else {
            Err(PlanError::UsersWords(1))
        };
        assert_eq!(plan.validate(&refused), expected);
    }
    assert_eq!(
        plan(&|p| {
            p.tail = 1;
            p.decide_call(0, Action::Drop, "");
        }),
        Err(PlanError::InTail(Target::Call(0)))
    );
    assert_eq!(
        plan(&|p| p.notes.push(note(0))),
        Err(PlanError::NoteOnOther(0))
    );
    assert_eq!(
        plan(&|p| p.notes.push(note(9))),
        Err(PlanError::UnknownTarget("message 9".into()))
    );
    assert_eq!(
        plan(&|p| p.notes.extend([note(1), note(1)])),
        Err(PlanError::NotedTwice(1))
    );
    assert_eq!(
        plan(&|p| p.mode = Mode::Summary),
        Err(PlanError::SummaryMismatch)
    );
    assert_eq!(
        plan(&|p| p.summary = Some("s".into())),
        Err(PlanError::SummaryMismatch)
    );
    assert_eq!(plan(&|p| summary(p, 2)), Err(PlanError::BadCut(2)));
    assert_eq!(plan(&|p| summary(p, 7)), Err(PlanError::BadCut(7)));
    assert_eq!(plan(&|p| summary(p, 6)), Err(PlanError::PendingCall(2)));
    assert_eq!(plan(&|p| summary(p, 4)), Ok(()));
    assert_eq!(
        plan(&|p| {
            p.decide_call(0, Action::Drop, "");
            p.decide_call(1, Action::Drop, "");
        }),
        Err(PlanError::AdjacentAnswers(1))
    );
    assert_eq!(plan(&|p| p.decide_call(0, Action::Drop, "")), Ok(()));
}

#[test]
fn a_note_cannot_stand_on_a_message_that_goes() {
    let mut b = Builder::new();
    b.message(Author::User).text("do it");
    b.message(Author::Assistant).call("a", "Bash", "Bash(a)");
    b.message(Author::Tool).result("a", "aaaa", false);
    b.message(Author::Assistant).text("done");
    let t = b.build();
    let mut plan = Plan::keep_all(&t, Mode::Prune);
    plan.decide_call(0, Action::Drop, "");
    assert_eq!(plan.validate(&t), Ok(()));
    plan.notes = vec![Note {
        message: 1,
        text: "gone".into(),
    }];
    assert_eq!(plan.validate(&t), Err(PlanError::NoteOnDropped(1)));
}

#[test]
fn a_split_pair_is_refused_and_a_call_left_behind_is_not() {
    let mut b = Builder::new();
    b.message(Author::User).text("do it");
    b.message(Author::Assistant).call("a", "Bash", "Bash(a)");
    b.message(Author::Assistant).text("meanwhile");
    b.message(Author::Tool).result("a", "aaaa", false);
    b.message(Author::Assistant)
        .call("lost", "Bash", "Bash(lost)");
    b.message(Author::User).text("stop that");
    b.message(Author::Assistant).text("stopped");
    let t = b.build();
    let cut = |tail| {
        let mut plan = Plan::keep_all(&t, Mode::Summary);
        plan.summary = Some("s".into());
        plan.tail = tail;
        plan.validate(&t)
    };
    assert_eq!(cut(2), Err(PlanError::SplitPair { call: 0 }));
    assert!(!t.is_open(1));
    assert_eq!(cut(5), Ok(()));
    assert_eq!(cut(6), Ok(()));
}

#[test]
fn an_attachment_that_must_stay_is_not_folded() {
    let mut b = Builder::new();
    b.message(Author::Client).attachment("file", "a.rs", "text");
    b.message(Author::Assistant).text("ok");
    let mut t = b.build();
    let target = Target::Attachment(ctxfold_transcript::BlockRef {
        message: 0,
        block: 0,
    });
    let mut plan = Plan::keep_all(&t, Mode::Mask);
    plan.decide(target, Action::Truncate("short".into()), "");
    assert_eq!(plan.validate(&t), Ok(()));
    let Content::Attachment { foldable, .. } = &mut t.messages[0].blocks[0].content else {
        panic!("an attachment");
    };
    *foldable = false;
    assert_eq!(plan.validate(&t), Err(PlanError::NotFoldable(target)));
}

#[test]
fn a_summary_takes_the_place_of_what_it_sums_up() {
    let mut t = small();
    t.fill = Some(Fill {
        tokens: 1_000,
        window: Some(200_000),
        stale: false,
    });
    let mut plan = Plan::keep_all(&t, Mode::Summary);
    plan.summary = Some("what happened".into());
    plan.tail = 4;
    let after = plan.apply(&t);
    assert_eq!(after.messages[0].author, Author::Summary);
    assert_eq!(after.messages[0].text(), "what happened");
    assert_eq!(said(&after), ["more"]);
    assert_eq!(after.calls.len(), 1);
    assert!(is_whole(&after));
    assert!(
        after
            .fill
            .is_some_and(|fill| fill.stale && fill.tokens == 1_000)
    );
}

#[test]
fn a_note_goes_behind_the_text_or_before_the_first_call() {
    let mut b = Builder::new();
    b.message(Author::Assistant).thinking(5).call_with(
        "a",
        "Edit",
        "Edit(x)",
        vec![Activity::Edit { path: "x".into() }],
    );
    b.message(Author::Tool).result("a", "aaaa", false);
    b.message(Author::Assistant)
        .text("one")
        .call("b", "Bash", "Bash(b)");
    b.message(Author::Tool).result("b", "bbbb", false);
    let t = b.build();
    let mut plan = Plan::keep_all(&t, Mode::Mask);
    plan.notes = [0, 2]
        .map(|message| Note {
            message,
            text: "NOTE".into(),
        })
        .into();
    assert_eq!(plan.validate(&t), Ok(()));
    let after = plan.apply(&t);
    assert_eq!(
        after.messages[0].blocks[1].content,
        Content::Text("NOTE".into())
    );
    assert_eq!(after.messages[2].text(), "one\n\nNOTE");
    assert!(is_whole(&after));
    let rows: BTreeSet<_> = after.messages[0].blocks.iter().map(|b| b.row).collect();
    assert_eq!(rows.len(), 1);
}
