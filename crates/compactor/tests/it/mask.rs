//! The masking rules, one by one.

use ctxfold_compactor::Rule::{
    Base64, FixedError, LargeOutput, Listing, PassingRun, RepeatedOutput, Search, SupersededRead,
};
use ctxfold_compactor::{FoldedLine, Goal, MaskOptions, Refusal, Rule, RuleSet, mask};
use ctxfold_transcript::{
    Action, Activity, Author, Builder, Content, Fill, Image, Outcome, Part, Target, Transcript,
};

use crate::generate::{call, edit, read, run, shown, talk};

const LONG: &str = "a line of output that says a little about what ran and how it went\n";

fn output(mark: &str) -> String {
    format!("{mark}\n{}", LONG.repeat(20))
}

/// The rule that folds each call of a conversation, with all but the rules named off.
fn folded(t: &Transcript, options: &MaskOptions) -> Vec<Option<String>> {
    let plan = mask(t, options);
    (0..t.calls.len())
        .map(|index| {
            let plan = plan.as_ref().ok()?;
            let of_call = |d: &&ctxfold_transcript::Decision| d.target == Target::Call(index);
            plan.decisions
                .iter()
                .find(of_call)
                .map(|d| d.reason.clone())
        })
        .collect()
}

fn only(rule: Rule) -> MaskOptions {
    MaskOptions {
        rules: RuleSet::none().with(rule),
        min_gain: 0.0,
        ..MaskOptions::default()
    }
}

fn conversation(calls: &[(Vec<Activity>, String, bool)]) -> Transcript {
    let mut b = Builder::new();
    b.message(Author::User).text("go");
    for (n, (what, output, failed)) in calls.iter().enumerate() {
        call(&mut b, &format!("c{n}"), what.clone(), output, *failed);
    }
    talk(&mut b, 6);
    b.build()
}

fn names(rules: &[Option<Rule>]) -> Vec<Option<String>> {
    rules
        .iter()
        .map(|r| r.map(|r| r.name().to_owned()))
        .collect()
}

#[test]
fn of_six_reads_the_newest_stays() {
    let reads: Vec<_> = (0..6)
        .map(|n| (read("a.rs"), output(&n.to_string()), false))
        .collect();
    let t = conversation(&reads);
    let rule = Some(SupersededRead);
    assert_eq!(
        folded(&t, &only(SupersededRead)),
        names(&[rule, rule, rule, rule, rule, None])
    );
}

#[test]
fn a_read_is_superseded_by_an_edit_and_not_by_a_pointer_back() {
    let t = conversation(&[
        (read("a.rs"), output("1"), false),
        (read("b.rs"), output("2"), false),
        (edit("./a.rs"), "ok".into(), false),
        (read("b.rs"), "unchanged since the last read".into(), false),
    ]);
    assert_eq!(
        folded(&t, &only(SupersededRead)),
        names(&[Some(SupersededRead), None, None, None])
    );
}

#[test]
fn each_rule_folds_its_kind_and_nothing_else() {
    let list = vec![Activity::List { path: ".".into() }];
    let search = vec![Activity::Search {
        pattern: "x".into(),
    }];
    let base64 = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0NTY3".repeat(30);
    let t = conversation(&[
        (vec![Activity::Other], output("same"), false),
        (vec![Activity::Other], output("same"), false),
        (read("a.rs"), output("1"), false),
        (read("a.rs"), output("2"), false),
        (vec![Activity::Other], base64, false),
        (list, output("3"), false),
        (search, output("4"), false),
        (run("cargo build"), output("5"), false),
        (run("cargo test"), output("6"), true),
        (run("cargo test"), "ok".into(), false),
        (vec![Activity::Other], LONG.repeat(300), false),
        (run("make"), output("7"), true),
        (read("b.rs"), output("8"), false),
    ]);
    let expected = [
        Some(RepeatedOutput),
        None,
        Some(SupersededRead),
        None,
        Some(Base64),
        Some(Listing),
        Some(Search),
        Some(PassingRun),
        Some(FixedError),
        None,
        Some(LargeOutput),
        None,
        None,
    ];
    assert_eq!(folded(&t, &MaskOptions::default()), names(&expected));
    for rule in Rule::ALL {
        let alone = folded(&t, &only(rule));
        let off = MaskOptions {
            rules: RuleSet::default().without(rule),
            min_gain: 0.0,
            ..MaskOptions::default()
        };
        let without = folded(&t, &off);
        for (index, expected) in expected.iter().enumerate() {
            if *expected == Some(rule) {
                assert_eq!(alone[index].as_deref(), Some(rule.name()), "{rule} {index}");
                assert_ne!(
                    without[index].as_deref(),
                    Some(rule.name()),
                    "{rule} {index}"
                );
            }
        }
    }
    let aggressive = MaskOptions {
        aggressive: true,
        ..MaskOptions::default()
    };
    let all = folded(&t, &aggressive);
    assert_eq!(all[12].as_deref(), Some("any-output"));
    assert_eq!(
        all[11], None,
        "a failure that nothing got over is never folded"
    );
}

/// A refusal with the user's reason stays, whatever came after it and whatever is asked for.
#[test]
fn a_result_in_which_the_user_speaks_is_never_folded() {
    let words = "Never touch the vault.";
    let refusal = format!("refused; the user said: {words} {}", LONG.repeat(300));
    let mut b = Builder::new();
    b.message(Author::User).text("go");
    b.message(Author::Assistant)
        .call_with("1", "Edit", "Edit(a.rs)", edit("a.rs"));
    b.message(Author::Tool).answer("1", &refusal, true, words);
    call(&mut b, "2", edit("a.rs"), &LONG.repeat(300), false);
    talk(&mut b, 6);
    let t = b.build();
    let plan = mask(
        &t,
        &MaskOptions {
            aggressive: true,
            ..MaskOptions::default()
        },
    )
    .unwrap();
    let targets: Vec<_> = plan.decisions.iter().map(|d| d.target).collect();
    assert_eq!(targets, [Target::Call(1)]);
    assert!(shown(&plan.apply(&t)).contains(words));
}

#[test]
fn an_output_with_an_image_is_folded_and_says_so() {
    let mut t = conversation(&[(vec![Activity::Other], "look".into(), false)]);
    let at = t.calls[0].result.unwrap();
    let block = &mut t.messages[at.message].blocks[at.block];
    block.bytes += 90_000;
    let Content::ToolResult { parts, .. } = &mut block.content else {
        panic!("a result");
    };
    parts.push(Part::Image(Image {
        media_type: "image/png".into(),
        bytes: 90_000,
        pixels: None,
    }));
    let plan = mask(&t, &only(Rule::Image)).unwrap();
    let Action::Truncate(line) = &plan.decisions[0].action else {
        panic!("folded");
    };
    let line = FoldedLine::parse(line).unwrap();
    assert_eq!((line.images, line.lines), (1, 1));
    assert_eq!(line.bytes, 90_000);
}

#[test]
fn an_attachment_is_folded_once_its_file_was_read_again() {
    let mut b = Builder::new();
    b.message(Author::User).text("go");
    b.message(Author::Client)
        .attachment("file", "a.rs", &output("old"));
    b.message(Author::Client)
        .attachment("file", "b.rs", &output("new"));
    call(&mut b, "c0", read("a.rs"), &output("newer"), false);
    talk(&mut b, 6);
    let t = b.build();
    let plan = mask(&t, &only(SupersededRead)).unwrap();
    let targets: Vec<_> = plan.decisions.iter().map(|d| d.target).collect();
    let at = ctxfold_transcript::BlockRef {
        message: 1,
        block: 0,
    };
    assert_eq!(targets, [Target::Attachment(at)]);
}

#[test]
fn the_first_message_the_tail_and_pending_calls_stay() {
    let mut b = Builder::new();
    b.message(Author::Client)
        .attachment("file", "big", &LONG.repeat(900));
    b.message(Author::User).text("go");
    call(&mut b, "old", run("a"), &output("1"), false);
    b.message(Author::Assistant)
        .call_with("lost", "Tool", "Tool(lost)", run("b"));
    b.message(Author::User).text("stop");
    call(&mut b, "new", run("c"), &output("2"), false);
    talk(&mut b, 4);
    let t = b.build();
    assert_eq!(t.calls[1].outcome, Outcome::Pending);
    let options = MaskOptions {
        aggressive: true,
        min_gain: 0.0,
        ..MaskOptions::default()
    };
    let plan = mask(&t, &options).unwrap();
    let targets: Vec<_> = plan.decisions.iter().map(|d| d.target).collect();
    assert_eq!(targets, [Target::Call(0)]);
    assert_eq!(plan.tail, 6);
}

#[test]
fn the_note_is_there_once_over_several_rounds() {
    let calls: Vec<_> = (0..4)
        .map(|n| (run("x"), output(&n.to_string()), false))
        .collect();
    let first = mask(&conversation(&calls), &MaskOptions::default()).unwrap();
    assert_eq!(first.notes.len(), 1);
    let mut b = Builder::from(first.apply(&conversation(&calls)));
    for n in 0..9 {
        call(&mut b, &format!("d{n}"), run("y"), &LONG.repeat(99), false);
    }
    talk(&mut b, 6);
    let t = b.build();
    let second = mask(&t, &MaskOptions::default()).unwrap();
    assert!(second.notes.is_empty());
    assert_eq!(
        second.counts(),
        (9, 0),
        "what was folded is not folded again"
    );
}

#[test]
fn rounds_that_save_little_are_refused_with_the_reason() {
    let mut t = conversation(&[(run("x"), LONG.repeat(50), false)]);
    t = mask(&t, &MaskOptions::default()).unwrap().apply(&t);
    for _ in 0..3 {
        let mut b = Builder::from(t);
        talk(&mut b, 6);
        t = b.build();
        let refusal = mask(&t, &MaskOptions::default()).unwrap_err();
        assert!(
            matches!(refusal, Refusal::NothingToGain { .. }),
            "{refusal}"
        );
        assert!(refusal.to_string().contains("too little to gain"));
    }
}

#[test]
fn a_goal_takes_the_cheapest_information_first() {
    let mut t = conversation(&[
        (run("x"), LONG.repeat(100), false),
        (read("a.rs"), LONG.repeat(50), false),
        (read("a.rs"), LONG.repeat(60), false),
    ]);
    t.fill = Some(Fill {
        tokens: 10_000,
        window: Some(200_000),
        stale: false,
    });
    let to = |goal| {
        let options = MaskOptions {
            goal: Some(goal),
            ..MaskOptions::default()
        };
        mask(&t, &options)
    };
    let reasons = |goal| -> Vec<String> {
        let plan = to(goal).unwrap();
        plan.decisions.into_iter().map(|d| d.reason).collect()
    };
    assert_eq!(reasons(Goal::ShareOfNow(0.9)), ["superseded-read"]);
    assert_eq!(reasons(Goal::Tokens(8_900)), ["superseded-read"]);
    assert_eq!(
        reasons(Goal::Tokens(100)),
        ["superseded-read", "passing-run"]
    );
    assert_eq!(
        reasons(Goal::ShareOfWindow(0.03)),
        ["superseded-read", "passing-run"]
    );
    assert_eq!(
        to(Goal::Tokens(10_000)),
        Err(Refusal::GoalReached {
            tokens: 10_000,
            goal: 10_000
        })
    );
    t.fill = None;
    assert_eq!(
        mask(
            &t,
            &MaskOptions {
                goal: Some(Goal::ShareOfWindow(0.4)),
                ..MaskOptions::default()
            }
        ),
        Err(Refusal::WindowUnknown)
    );
}

#[test]
fn a_short_conversation_is_refused() {
    let t = Builder::new().build();
    let refusal = mask(&t, &MaskOptions::default()).unwrap_err();
    assert!(matches!(refusal, Refusal::TooShort { messages: 0, .. }));
}
