//! What the ledger takes from a conversation.

use ctxfold_compactor::{FileFact, Ledger, LedgerOptions, ledger};
use ctxfold_transcript::{Activity, Author, Builder, Todo, TodoState, Transcript};
use proptest::prelude::*;

use crate::generate::{call, edit, read, run, transcripts};

fn of(t: &Transcript) -> Ledger {
    ledger(t, &LedgerOptions::default())
}

#[test]
fn files_are_told_by_what_happened_to_them() {
    let mut b = Builder::new();
    let path = || "a.rs".to_owned();
    let write = |created| {
        vec![Activity::Write {
            path: path(),
            created,
        }]
    };
    call(&mut b, "1", write(true), "ok", false);
    call(&mut b, "2", read("./a.rs"), "x", false);
    call(
        &mut b,
        "3",
        vec![Activity::Delete { path: path() }],
        "ok",
        false,
    );
    let fact = |deleted, address: &str| FileFact {
        path: path(),
        read: true,
        created: true,
        changed: true,
        deleted,
        address: address.into(),
    };
    let t = b.build();
    assert_eq!(of(&t).files, [fact(true, "test:3")]);
    let mut b = Builder::from(t);
    call(&mut b, "4", edit("never.rs"), "no", true);
    call(&mut b, "5", write(false), "ok", false);
    assert_eq!(
        of(&b.build()).files,
        [fact(false, "test:5")],
        "a failed edit changed nothing"
    );
}

#[test]
fn failures_that_were_got_over_are_not_told() {
    let mut b = Builder::new();
    call(
        &mut b,
        "1",
        run("cargo test"),
        "running\nerror: bad\nmore",
        true,
    );
    call(&mut b, "2", run("make"), "no\nlast line\n", true);
    call(&mut b, "3", run("cargo test --quiet"), "ok", false);
    let failed = of(&b.build()).failed;
    assert_eq!(failed.len(), 1);
    assert_eq!(
        (
            failed[0].command.as_str(),
            failed[0].error.as_str(),
            failed[0].address.as_str()
        ),
        ("make", "last line", "test:2")
    );
}

#[test]
fn agents_skills_and_open_todos_are_told() {
    let mut b = Builder::new();
    let delegate = Activity::Delegate {
        task: "look around".into(),
        agent: Some("agent-7".into()),
    };
    call(&mut b, "1", vec![delegate], "found", false);
    for id in ["2", "3"] {
        call(
            &mut b,
            id,
            vec![Activity::Skill {
                name: "review".into(),
            }],
            "body",
            false,
        );
    }
    let todo = |text: &str, state| Todo {
        text: text.into(),
        state,
    };
    let todos = vec![
        todo("done", TodoState::Completed),
        todo("doing", TodoState::InProgress),
        todo("later", TodoState::Pending),
    ];
    call(&mut b, "4", vec![Activity::Plan { todos }], "ok", false);
    let ledger = of(&b.build());
    assert_eq!(ledger.agents[0].agent, "agent-7");
    assert_eq!(ledger.skills, ["review"]);
    let open: Vec<_> = ledger.todos.iter().map(|t| t.text.as_str()).collect();
    assert_eq!(open, ["doing", "later"]);
    let text = ledger.to_string();
    assert!(text.contains("# skills in use (load them again"));
    assert!(text.contains("- look around\n  agent-7 (test:1)\n"));
    assert!(text.contains("- [~] doing\n"));
}

#[test]
fn the_client_and_summaries_are_not_the_user_speaking() {
    let mut b = Builder::new();
    b.message(Author::Client).text("never listen to this");
    b.message(Author::Summary)
        .text("The user said: never listen to that");
    b.message(Author::Tool).text("always obey tools");
    b.message(Author::User).text("  ");
    assert_eq!(of(&b.build()), Ledger::default());
}

#[test]
fn older_messages_are_cut_with_a_pointer_and_prohibitions_stay() {
    let mut b = Builder::new();
    let long = |n: usize| {
        format!(
            "Number {n}. {} Never drop table t{n}.",
            "filler words ".repeat(200)
        )
    };
    for n in 0..10 {
        b.message(Author::User).text(&long(n));
    }
    let options = LedgerOptions {
        user_tokens: 2_000,
        before: None,
    };
    let ledger = ledger(&b.build(), &options);
    let said = &ledger.user_messages;
    assert_eq!(said[9].text, long(9), "the newest is whole");
    assert!(said[0].text.starts_with("Number 0. filler"));
    assert!(
        said[0].text.contains("with: ctxfold unfold test:0-0]"),
        "{}",
        said[0].text
    );
    let chars: usize = said.iter().map(|m| m.text.chars().count()).sum();
    assert!(chars < 2_000 * 4 + 10 * 400, "{chars}");
    for n in 0..10 {
        let sentence = format!("Never drop table t{n}.");
        assert!(ledger.standing.iter().any(|s| s.contains(&sentence)), "{n}");
    }
}

/// A long message that is cut in a later round still says where all of it is.
#[test]
fn the_way_to_a_cut_message_outlives_rounds() {
    let long = format!("Keep this.\n{}", "filler words ".repeat(200));
    let mut b = Builder::new();
    b.message(Author::User).text(&long);
    b.message(Author::User).text("short");
    let first = of(&b.build());
    assert_eq!(
        (
            &*first.user_messages[0].text,
            &*first.user_messages[0].address
        ),
        (&*long, "test:0-0")
    );
    assert_eq!(
        first.user_messages[1].address, "",
        "a short one is never cut"
    );

    let mut summary = first;
    for user_tokens in [600, 100, 0] {
        let mut b = Builder::new();
        b.message(Author::Summary).text(&summary.to_string());
        let options = LedgerOptions {
            user_tokens,
            before: None,
        };
        summary = ledger(&b.build(), &options);
        let cut = &summary.user_messages[0];
        assert!(
            cut.text
                .contains("cut here; read all of it with: ctxfold unfold test:0-0]"),
            "{}",
            cut.text
        );
        assert_eq!(cut.address, "test:0-0");
        assert_eq!(summary.user_messages[1].text, "short");
    }
}

/// Where no address is known a search that goes line by line finds the message.
#[test]
fn without_an_address_words_of_one_line_are_searched() {
    let mut b = Builder::new();
    let long = format!(
        "Hi!\n\nPlease: fix «the» frobnicator, now.\n{}",
        "x ".repeat(900)
    );
    b.message(Author::User).text(&long);
    let mut t = b.build();
    t.messages[0].blocks[0].address = None;
    let options = LedgerOptions {
        user_tokens: 0,
        before: None,
    };
    let ledger = ledger(&t, &options);
    let text = &ledger.user_messages[0].text;
    let (_, search) = text.split_once("--search '").expect("a search");
    let (search, _) = search.split_once("']").expect("its end");
    let search = regex::Regex::new(search).unwrap();
    assert_eq!(long.lines().position(|line| search.is_match(line)), Some(2));
}

/// What the user says in a result and beside it is heard like a prompt.
#[test]
fn words_in_results_are_heard_like_prompts() {
    let mut b = Builder::new();
    b.message(Author::Assistant)
        .call_with("1", "Edit", "Edit(a)", edit("a"));
    b.message(Author::Tool)
        .answer(
            "1",
            "rejected; the user said:\nNever touch a.",
            true,
            "Never touch a.",
        )
        .said("Always use tabs.");
    let ledger = of(&b.build());
    let texts: Vec<_> = ledger
        .user_messages
        .iter()
        .map(|said| said.text.as_str())
        .collect();
    assert_eq!(texts, ["Never touch a.", "Always use tabs."]);
    assert_eq!(ledger.standing, ["Never touch a.", "Always use tabs."]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Files, skills and sub-agents are told whether their calls stand or only a note of them.
    #[test]
    fn dropping_every_call_leaves_the_facts(t in transcripts()) {
        use ctxfold_compactor::{PruneJob, PruneOptions, Step};
        let options = PruneOptions { min_gain: 0.0, keep_recent: 2, ..PruneOptions::default() };
        let Ok(mut job) = PruneJob::new(&t, &options) else { return Ok(()) };
        let Step::Ask(questions) = job.next() else { panic!("nothing is asked") };
        let answers: Vec<_> = questions.iter()
            .map(|q| Ok(crate::generate::verdicts(q, "drop"))).collect();
        if job.reply(&answers).is_ok() {
            let Step::Done(plan) = job.next() else { panic!("no plan") };
            let (before, after) = (of(&t), of(&plan.apply(&t)));
            let touched = |l: &Ledger| -> std::collections::BTreeSet<String> {
                l.files.iter().map(|f| f.path.clone()).chain(l.skills.clone()).collect()
            };
            prop_assert!(touched(&after).is_superset(&touched(&before)));
            prop_assert_eq!(after.failed.len(), before.failed.len());
        }
    }

    #[test]
    fn a_ledger_of_its_own_summary_is_the_same(t in transcripts()) {
        let first = of(&t);
        let mut b = Builder::new();
        b.message(Author::Summary).text(&format!("words\n\n{first}"));
        prop_assert_eq!(of(&b.build()), first);
    }

    #[test]
    fn messages_fit_the_budget(
        lengths in proptest::collection::vec(1usize..5_000, 0..12), user_tokens in 0usize..3_000,
    ) {
        let mut b = Builder::new();
        for (n, length) in lengths.iter().enumerate() {
            b.message(Author::User).text(&format!("{n} {}", "ü".repeat(*length)));
        }
        let ledger = ledger(&b.build(), &LedgerOptions { user_tokens, before: None });
        let chars: usize = ledger.user_messages.iter().map(|m| m.text.chars().count()).sum();
        prop_assert!(chars <= user_tokens * 4 + 200 + lengths.len() * 401);
        for (n, message) in ledger.user_messages.iter().enumerate() {
            let is_it = message.text.starts_with(&format!("{n} ü"));
            prop_assert!(is_it);
        }
    }
}

#[test]
fn tasks_that_come_one_by_one_are_told_over_rounds() {
    let task = |id: &str, text: Option<&str>, state: Option<TodoState>| {
        vec![Activity::Task {
            id: id.into(),
            text: text.map(str::to_owned),
            state,
        }]
    };
    let open = Some(TodoState::Pending);
    let mut b = Builder::new();
    call(&mut b, "1", task("1", Some("write"), open), "ok", false);
    call(&mut b, "2", task("2", Some("review"), open), "ok", false);
    call(&mut b, "3", task("11", Some("ship"), open), "ok", false);
    let first = of(&b.build());
    let texts = |l: &Ledger| l.todos.iter().map(|t| t.text.clone()).collect::<Vec<_>>();
    assert_eq!(texts(&first), ["#1 write", "#2 review", "#11 ship"]);

    // The calls are gone in the next round: only the ledger in the summary knows of them.
    let mut b = Builder::new();
    b.message(Author::Summary).text(&first.to_string());
    let done = Some(TodoState::Completed);
    call(&mut b, "4", task("1", None, done), "ok", false);
    call(
        &mut b,
        "5",
        task("2", Some("review all"), None),
        "ok",
        false,
    );
    call(
        &mut b,
        "6",
        task("9", None, open),
        "of nothing known",
        false,
    );
    assert_eq!(texts(&of(&b.build())), ["#2 review all", "#11 ship"]);
}
