//! Prune mode: what is asked, what is refused, what verdicts do.

use ctxfold_compactor::{Failure, PruneJob, PruneOptions, Refusal, Rejected, Schema, Step};
use ctxfold_transcript::{Action, Author, Builder, Message, Plan, Target, Transcript};

use crate::generate::{asked_ids, call, edit, plan, run, shown, talk, verdicts};

fn calls(n: usize) -> Transcript {
    let mut b = Builder::new();
    b.message(Author::User).text("go");
    for n in 0..n {
        b.message(Author::Assistant)
            .text(&format!("step {n}"))
            .call_with(&format!("k{n}"), "Bash", &format!("Bash(x {n})"), run("x"));
        b.message(Author::Tool)
            .result(&format!("k{n}"), &format!("out {n} ").repeat(200), false);
    }
    talk(&mut b, 6);
    b.build()
}

fn asked(job: &PruneJob<'_>) -> Vec<ctxfold_compactor::ModelRequest> {
    match job.next() {
        Step::Ask(questions) => questions,
        Step::Done(_) => panic!("nothing is asked"),
    }
}

fn done(job: &PruneJob<'_>) -> Plan {
    match job.next() {
        Step::Done(plan) => plan,
        Step::Ask(_) => panic!("not done"),
    }
}

#[test]
fn three_hundred_calls_come_in_chunks_without_an_enum_of_ids() {
    let t = calls(300);
    let job = PruneJob::new(&t, &PruneOptions::default()).unwrap();
    let questions = asked(&job);
    let ids: Vec<_> = questions.iter().flat_map(asked_ids).collect();
    let all: Vec<_> = (1..=300).map(|n| format!("c{n}")).collect();
    assert_eq!(ids, all);
    assert!(questions.len() >= 3);
    for question in &questions {
        assert!(asked_ids(question).len() <= 100);
        assert!(question.text.chars().count() < 405_000);
        let Some(Schema::Object(fields)) = &question.schema else {
            panic!("an object");
        };
        let Schema::List(decision) = &fields[0].1 else {
            panic!("a list");
        };
        let Schema::Object(fields) = decision.as_ref() else {
            panic!("an object");
        };
        assert!(fields.iter().all(|(_, s)| matches!(s, Schema::Text { .. })));
    }
}

#[test]
fn big_calls_make_more_and_smaller_requests() {
    let t = calls(60);
    let options = PruneOptions {
        input_limit: 20_000,
        ..PruneOptions::default()
    };
    let job = PruneJob::new(&t, &options).unwrap();
    let questions = asked(&job);
    assert!(questions.len() > 3);
    assert!(questions.iter().all(|q| q.text.chars().count() < 25_000));
    assert_eq!(
        questions.iter().map(|q| asked_ids(q).len()).sum::<usize>(),
        60
    );
}

#[test]
fn drop_and_truncate_do_what_they_say() {
    let t = calls(4);
    let mut job = PruneJob::new(&t, &PruneOptions::default()).unwrap();
    let answer = r#"{"decisions":[{"id":"c4","action":"keep"},{"id":"c2","action":"truncate"},
        {"id":"c1","action":"truncate"},{"id":"c3","action":"truncate"}]}"#;
    job.reply(&[Ok(answer.into())]).unwrap();
    let plan = done(&job);
    assert_eq!(plan.counts(), (3, 0));
    let Action::Truncate(text) = plan.action(Target::Call(1)) else {
        panic!("truncated");
    };
    let output = "out 1 ".repeat(200);
    assert!(text.starts_with(&output[..300]));
    assert_eq!(
        &text[300..],
        "\n[cut by ctxfold: Bash(x 1) ran without an error; the first 300 of 1200 characters are \
         above; read it back with: ctxfold unfold test:k1]"
    );
    assert_eq!(plan.action(Target::Call(3)), &Action::Keep);
    assert!(plan.notes.iter().any(|n| n.text.contains("really made")));
}

#[test]
fn a_dropped_call_is_named_and_no_two_answers_become_neighbours() {
    let mut b = Builder::new();
    b.message(Author::User).text("go");
    b.message(Author::Assistant)
        .text("three at once")
        .call_with("a", "Bash", "Bash(a)", run("a"))
        .call_with(
            "b",
            "Edit",
            "Edit(…)",
            edit("src/long/path/that/the/label/lost.rs"),
        )
        .call_with("c", "Bash", "Bash(c)", run("c"));
    b.message(Author::Tool)
        .result("a", &"a ".repeat(900), false)
        .result("b", &"b ".repeat(900), false)
        .result("c", &"c ".repeat(900), false);
    talk(&mut b, 7);
    let t = b.build();
    let mut job = PruneJob::new(&t, &PruneOptions::default()).unwrap();
    let answer = verdicts(&asked(&job)[0], "drop");
    job.reply(&[Ok(answer)]).unwrap();
    let plan = done(&job);
    assert_eq!(plan.counts(), (1, 2), "one result stays as a line");
    let after = shown(&plan.apply(&t));
    assert!(after.contains("Bash(c): test:c"));
    assert!(after.contains("Edit(…): test:b\n    changed src/long/path/that/the/label/lost.rs\n"));
    assert!(after.contains("[folded by ctxfold: Bash(a) ran"));
    let texts: Vec<_> = t.messages[3..].iter().map(Message::text).collect();
    let kept: Vec<_> = plan.apply(&t).messages[3..]
        .iter()
        .map(Message::text)
        .collect();
    assert!(kept[0].starts_with(&texts[0]) && kept[1..] == texts[1..]);
}

#[test]
fn a_success_that_got_over_a_failure_is_not_dropped() {
    let mut b = Builder::new();
    b.message(Author::User).text("go");
    call(&mut b, "no", run("make"), &"bad ".repeat(400), true);
    call(&mut b, "yes", run("make"), &"good ".repeat(400), false);
    talk(&mut b, 6);
    let t = b.build();
    let mut job = PruneJob::new(&t, &PruneOptions::default()).unwrap();
    let answer = r#"{"decisions":[{"id":"c1","action":"truncate"},{"id":"c2","action":"drop"}]}"#;
    job.reply(&[Ok(answer.into())]).unwrap();
    let after = done(&job).apply(&t);
    let ledger = ctxfold_compactor::ledger(&after, &ctxfold_compactor::LedgerOptions::default());
    assert!(ledger.failed.is_empty());
}

#[test]
fn pinned_calls_are_shown_as_fixed() {
    let mut b = Builder::new();
    b.message(Author::User).text("go");
    call(&mut b, "bad", run("make"), &"no ".repeat(400), true);
    call(&mut b, "list", plan(&["todo".into()]), "ok", false);
    b.message(Author::Assistant)
        .call_with("lost", "T", "T(lost)", run("z"));
    b.message(Author::User).text("go on");
    call(&mut b, "free", run("x"), &"yes ".repeat(400), false);
    b.message(Author::Assistant)
        .call_with("said", "Ask", "Ask(said)", run("ask"));
    b.message(Author::Tool)
        .answer("said", &"answer ".repeat(400), false, "never postgres");
    talk(&mut b, 6);
    let t = b.build();
    let job = PruneJob::new(&t, &PruneOptions::default()).unwrap();
    let question = &asked(&job)[0];
    assert_eq!(asked_ids(question), ["c1"]);
    assert!(
        question
            .text
            .contains("\n## the user said\nnever postgres\n")
    );
    assert!(
        question.text.contains("\n- never postgres\n"),
        "it is a wish"
    );
    assert!(question.text.contains("## call c1: Tool(free)"));
    for name in ["Tool(bad)", "Tool(list)", "T(lost)", "Ask(said)"] {
        let line = format!("## fixed call (always kept): {name}");
        assert!(question.text.contains(&line), "{line}");
    }
}

#[test]
fn wrong_answers_are_refused_and_the_question_stays() {
    let t = calls(3);
    let mut job = PruneJob::new(&t, &PruneOptions::default()).unwrap();
    let before = job.next();
    let one = |id: &str, action: &str| format!(r#"{{"id":"{id}","action":"{action}"}}"#);
    let all = |list: &[String]| Ok(format!(r#"{{"decisions":[{}]}}"#, list.join(",")));
    let (c1, c2, c3) = (one("c1", "drop"), one("c2", "drop"), one("c3", "drop"));
    let keep = ["c1", "c2", "c3"].map(|id| one(id, "keep"));
    let table = [
        (all(&[c1.clone(), c2.clone()]), "leaves out call c3"),
        (
            all(&[c1.clone(), c2.clone(), c3.clone(), c1.clone()]),
            "twice over call c1",
        ),
        (
            all(&[c1.clone(), c2.clone(), one("c4", "drop")]),
            "\"c4\", which was not asked",
        ),
        (
            all(&[c1.clone(), c2.clone(), one("c3", "delete")]),
            "unknown action \"delete\"",
        ),
        (all(&keep), "would not become smaller"),
        (
            Ok("{\"decisions\": [{\"id\": \"c1\"".into()),
            "not in the form",
        ),
        (Ok("[]".into()), "no list \"decisions\""),
        (Ok("{\"decisions\":[{\"id\":1}]}".into()), "without \"id\""),
        (Ok("I would drop them all".into()), "not in the form"),
        (Ok(" ".repeat(10) + &"x".repeat(10_000_000)), "too long"),
        (Err(Failure::CutAtLimit), "cut at the output limit"),
        (Err(Failure::Other("HTTP 429".into())), "HTTP 429"),
    ];
    for (answer, reason) in table {
        let options = PruneOptions {
            min_gain: 0.0,
            ..PruneOptions::default()
        };
        let mut strict = PruneJob::new(&t, &options).unwrap();
        let rejected = strict.reply(std::slice::from_ref(&answer)).unwrap_err();
        assert!(
            rejected.to_string().contains(reason),
            "{rejected} / {reason}"
        );
        assert!(job.reply(&[answer]).is_err());
        assert_eq!(job.next(), before);
    }
    let little = all(&[keep[0].clone(), keep[1].clone(), one("c3", "truncate")]);
    assert!(
        matches!(job.reply(&[little]), Err(Rejected::TooLittle { needed, .. }) if needed > 0.24)
    );
}

#[test]
fn without_a_free_call_nothing_is_asked() {
    let mut b = Builder::new();
    b.message(Author::User).text("go");
    talk(&mut b, 9);
    let t = b.build();
    let refusal = PruneJob::new(&t, &PruneOptions::default()).unwrap_err();
    assert!(matches!(refusal, Refusal::NothingToGain { .. }));
}

#[test]
fn secrets_are_replaced_in_the_question() {
    let mut b = Builder::new();
    b.message(Author::User).text("password: see env");
    call(
        &mut b,
        "x",
        run("env"),
        "GITHUB_TOKEN=ghp_0123456789abcdefghij0123456789abcdef",
        false,
    );
    talk(&mut b, 6);
    let t = b.build();
    let options = PruneOptions {
        instructions: Some("keep what has to do with API_KEY=a1b2c3d4e5f6".to_owned()),
        ..PruneOptions::default()
    };
    let job = PruneJob::new(&t, &options).unwrap();
    for request in asked(&job) {
        assert!(!request.text.contains("ghp_0123"));
        assert!(
            request
                .text
                .contains("to do with API_KEY=[REDACTED:env-secret]")
        );
    }
    assert_eq!(job.secrets()["github-token"], 1);
    assert_eq!(job.secrets()["env-secret"], 1);
}
