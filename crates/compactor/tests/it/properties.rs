//! What holds for every conversation and every plan.

use ctxfold_compactor::{
    FoldedLine, Goal, MaskOptions, PruneJob, PruneOptions, Rule, Step, SummaryJob, SummaryOptions,
    idle, mask,
};
use ctxfold_transcript::{Action, Author, Content, Message, Outcome, Plan, Target, Transcript};
use proptest::prelude::*;

use crate::generate::{asked_ids, dull_summary, shown, transcripts};

/// Checks that hold in every mode that keeps all messages.
fn check(t: &Transcript, plan: &Plan) {
    assert_eq!(plan.validate(t), Ok(()));
    assert!(plan.after.bytes < plan.before.bytes);
    let after = plan.apply(t);
    assert_eq!(after.bytes(), plan.after.bytes);
    let said = |t: &Transcript| -> Vec<String> {
        let words = (0..t.messages.len()).flat_map(|message| t.said(message));
        words.map(|words| words.text.into_owned()).collect()
    };
    assert_eq!(said(&after), said(t));
    let thoughts = |t: &Transcript| {
        let blocks = t.messages.iter().flat_map(|m| &m.blocks);
        blocks.filter(|b| b.content == Content::Thinking).count()
    };
    assert_eq!(thoughts(&after), thoughts(t));
    let tail = t.messages.len() - plan.tail;
    assert_eq!(
        after.messages[after.messages.len() - tail..]
            .iter()
            .map(Message::bytes)
            .collect::<Vec<_>>(),
        t.messages[plan.tail..]
            .iter()
            .map(Message::bytes)
            .collect::<Vec<_>>(),
    );
    for decision in &plan.decisions {
        let Target::Call(index) = decision.target else {
            continue;
        };
        let call = &t.calls[index];
        assert_ne!(call.outcome, Outcome::Pending);
        // The oracle for "not got over": the same key never succeeded after it. A success of the
        // very same activities always gets over it, so a failure that was folded has a success
        // somewhere behind it.
        if call.outcome == Outcome::Failure {
            let later = &t.calls[index + 1..];
            assert!(later.iter().any(|c| c.outcome == Outcome::Success));
        }
        let bytes = t.result(index).map_or(0, |b| b.content.payload_bytes());
        if let Action::Truncate(text) = &decision.action {
            assert!(ctxfold_transcript::text_bytes(text) < bytes);
        }
    }
    for path in t
        .calls
        .iter()
        .flat_map(|c| &c.activities)
        .filter(|a| a.changes_file())
        .filter_map(ctxfold_transcript::Activity::path)
    {
        // Labels of the generator do not name paths: a dropped change must be named by its note.
        let is_named = plan.counts().1 == 0 || shown(&after).contains(path) || {
            after
                .calls
                .iter()
                .any(|c| c.activities.iter().any(|a| a.path() == Some(path)))
        };
        assert!(is_named, "{path}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn masking_keeps_what_it_must(
        t in transcripts(), keep_recent in 0usize..8, aggressive: bool,
        share in proptest::option::of(0.0f64..1.0),
    ) {
        let options = MaskOptions {
            keep_recent, aggressive, goal: share.map(Goal::ShareOfNow), min_gain: 0.0,
            ..MaskOptions::default()
        };
        if let Ok(plan) = mask(&t, &options) {
            check(&t, &plan);
            for decision in &plan.decisions {
                let Action::Truncate(line) = &decision.action else { panic!("masking drops nothing") };
                let folded = FoldedLine::parse(line).expect("a folded line reads back");
                if let Target::Call(index) = decision.target {
                    prop_assert_eq!(&folded.address, &t.calls[index].address);
                }
                prop_assert!(Rule::by_name(&decision.reason).is_some());
            }
            // Masking again with the same options finds nothing.
            let again = MaskOptions { goal: None, ..options.clone() };
            if share.is_none() {
                prop_assert!(mask(&plan.apply(&t), &again).is_err());
            }
        }
    }

    #[test]
    fn a_goal_is_reached_or_everything_was_folded(t in transcripts(), share in 0.0f64..1.0) {
        let goal = Goal::ShareOfNow(share);
        let all = MaskOptions { aggressive: true, min_gain: 0.0, ..MaskOptions::default() };
        let some = MaskOptions { goal: Some(goal), ..all.clone() };
        if let Ok(plan) = mask(&t, &some) {
            let most = mask(&t, &all).unwrap();
            prop_assert!(goal.is_reached(&plan, &t).unwrap()
                || plan.decisions.len() == most.decisions.len());
            let rules: Vec<_> = plan.decisions.iter().map(|d| Rule::by_name(&d.reason)).collect();
            prop_assert!(rules.is_sorted());
        }
    }

    #[test]
    fn any_verdicts_make_a_sound_plan(t in transcripts(), seed in any::<u64>()) {
        let options = PruneOptions { min_gain: 0.0, chunk_calls: 3, ..PruneOptions::default() };
        let Ok(mut job) = PruneJob::new(&t, &options) else { return Ok(()) };
        let Step::Ask(questions) = job.next() else { panic!("nothing was asked") };
        let mut dice = seed;
        let answers: Vec<_> = questions.iter().map(|q| {
            let decisions: Vec<_> = asked_ids(q).iter().map(|id| {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let action = ["keep", "truncate", "drop", "drop"][(dice >> 62) as usize];
                format!(r#"{{"id":"{id}","action":"{action}"}}"#)
            }).collect();
            prop_assert!(decisions.len() <= 3);
            Ok(Ok(format!(r#"{{"decisions":[{}]}}"#, decisions.join(","))))
        }).collect::<Result<_, TestCaseError>>()?;
        if job.reply(&answers).is_ok() {
            let Step::Done(plan) = job.next() else { panic!("no plan") };
            check(&t, &plan);
        }
    }

    #[test]
    fn a_summary_keeps_the_tail_and_the_ledger(t in transcripts(), keep_recent in 0usize..8) {
        let options = SummaryOptions { keep_recent, ..SummaryOptions::default() };
        let Ok(mut job) = SummaryJob::new(&t, &options) else { return Ok(()) };
        if job.reply(&[Ok(dull_summary())]).is_ok() {
            let Step::Done(plan) = job.next() else { panic!("no plan") };
            prop_assert_eq!(plan.validate(&t), Ok(()));
            let after = plan.apply(&t);
            prop_assert_eq!(after.bytes(), plan.after.bytes);
            prop_assert_eq!(after.messages.len(), plan.after.messages);
            prop_assert!(plan.after.bytes < plan.before.bytes);
            for message in t.messages.iter().filter(|m| m.author == Author::User) {
                prop_assert!(shown(&after).contains(&message.text()));
            }
            let newest = t.messages.len().saturating_sub(keep_recent);
            prop_assert!(plan.tail <= newest);
        }
    }

    #[test]
    fn shortening_keeps_words(t in transcripts(), keep_recent in 0usize..8) {
        if let Ok(plan) = idle::shorten(&t, keep_recent, 0.0) {
            check(&t, &plan);
        }
    }
}
