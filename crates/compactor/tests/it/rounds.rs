//! Five rounds of compaction over a conversation with forty planted facts. Prints what each mode
//! retains, by kind, and the bytes.

use std::collections::BTreeMap;

use ctxfold_compactor::{
    Ledger, MaskOptions, PruneJob, PruneOptions, Step, SummaryJob, SummaryOptions, idle, mask,
};
use ctxfold_transcript::{Author, Builder, Mode, Plan, Transcript};

use crate::generate::{call, dull_summary, edit, plan, read, run, shown, talk, verdicts};

const ROUNDS: usize = 5;

type Fact = fn(usize) -> String;

/// The planted facts of a round, by kind; eight of each kind over five rounds.
fn facts(round: usize) -> Vec<(&'static str, String)> {
    let kinds: [(&str, Fact); 5] = [
        ("user message", |n| {
            format!("please look into matter {n} of the build")
        }),
        ("prohibition", |n| {
            format!("never touch the table customers_{n}")
        }),
        ("changed path", |n| format!("src/module_{n}/changed_{n}.rs")),
        ("open todo", |n| format!("write the test for case {n}")),
        ("failed command", |n| format!("make target-{n}")),
    ];
    (0..8)
        .filter(|n| n % ROUNDS == round)
        .flat_map(|n| kinds.map(|(kind, fact)| (kind, fact(n))))
        .collect()
}

/// What happens in one round: the planted facts among noise, then a few words.
fn go_on(b: &mut Builder, round: usize, todos: &mut Vec<String>) {
    for (n, (kind, fact)) in facts(round).into_iter().enumerate() {
        let id = |what: &str| format!("{round}.{n}.{what}");
        match kind {
            "user message" | "prohibition" => {
                b.message(Author::User).text(&fact);
            }
            "changed path" => call(b, &id("e"), edit(&fact), &"diff\n".repeat(300), false),
            "open todo" => {
                todos.push(fact);
                call(b, &id("t"), plan(todos), "noted", false);
            }
            _ => call(
                b,
                &id("f"),
                run(&fact),
                &"error: no rule\n".repeat(40),
                true,
            ),
        }
        let noise = format!("{round} {n} noise\n").repeat(400);
        call(b, &id("n"), run("cargo build"), &noise, false);
        call(b, &id("r"), read("src/lib.rs"), &noise, false);
    }
    talk(b, 6);
}

fn summary(t: &Transcript) -> Option<Plan> {
    let mut job = SummaryJob::new(t, &SummaryOptions::default()).ok()?;
    job.reply(&[Ok(dull_summary())]).ok()?;
    done(job.next())
}

fn prune(t: &Transcript) -> Option<Plan> {
    let mut job = PruneJob::new(t, &PruneOptions::default()).ok()?;
    let Step::Ask(questions) = job.next() else {
        return None;
    };
    let answers: Vec<_> = questions.iter().map(|q| Ok(verdicts(q, "drop"))).collect();
    job.reply(&answers).ok()?;
    done(job.next())
}

fn masked(t: &Transcript) -> Option<Plan> {
    mask(t, &MaskOptions::default()).ok()
}

fn shortened(t: &Transcript) -> Option<Plan> {
    idle::shorten(t, 6, 0.0).ok()
}

fn done(step: Step<Plan>) -> Option<Plan> {
    match step {
        Step::Done(plan) => Some(plan),
        Step::Ask(_) => None,
    }
}

type Way = fn(&Transcript) -> Option<Plan>;

fn five_rounds(ways: &[Way]) -> (Transcript, u64) {
    let (mut t, mut todos, mut bytes) = (Builder::new().build(), Vec::new(), 0);
    for round in 0..ROUNDS {
        let before = t.bytes();
        let mut b = Builder::from(t);
        if round == 0 {
            b.message(Author::User).text("Begin.");
        }
        go_on(&mut b, round, &mut todos);
        t = b.build();
        bytes += t.bytes() - before;
        let plan = ways[round % ways.len()](&t).expect("each round has something to gain");
        assert_eq!(plan.validate(&t), Ok(()));
        assert!(plan.after.bytes < plan.before.bytes);
        t = plan.apply(&t);
    }
    (t, bytes)
}

fn in_context(t: &Transcript, kind: &str, fact: &str) -> bool {
    let activity = |a: &ctxfold_transcript::Activity| match a {
        ctxfold_transcript::Activity::Plan { todos } => todos.iter().any(|t| t.text == fact),
        ctxfold_transcript::Activity::Run { command, .. } => command == fact,
        _ => a.path() == Some(fact),
    };
    // A call that is still there shows its input, which the builder keeps as activities.
    let by_call = kind != "user message"
        && kind != "prohibition"
        && t.calls
            .iter()
            .any(|call| call.activities.iter().any(activity));
    by_call || shown(t).contains(fact)
}

#[test]
fn forty_facts_survive_five_rounds_in_every_mode() {
    let modes: [(&str, &[Way]); 5] = [
        ("summary", &[summary]),
        ("prune", &[prune]),
        ("mask", &[masked]),
        ("idle rules", &[shortened]),
        ("mixed", &[masked, summary, prune, summary, shortened]),
    ];
    let planted: Vec<_> = (0..ROUNDS).flat_map(facts).collect();
    assert_eq!(planted.len(), 40);
    println!("facts retained after {ROUNDS} rounds, the model being useless or ill-meaning:");
    for (name, ways) in modes {
        let (t, bytes) = five_rounds(ways);
        let mut kept: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (kind, fact) in &planted {
            let count = kept.entry(kind).or_default();
            count.1 += 1;
            count.0 += usize::from(in_context(&t, kind, fact));
        }
        let told: Vec<_> = kept
            .iter()
            .map(|(kind, (kept, all))| format!("{kind} {kept}/{all}"))
            .collect();
        println!(
            "  {name:<10} {} · {bytes} → {} bytes",
            told.join(", "),
            t.bytes()
        );
        assert!(
            kept.values().all(|(kept, all)| kept == all),
            "{name}: {kept:?}"
        );
        assert!(t.bytes() * 2 < bytes, "{name}");
    }
}

#[test]
fn the_ledger_itself_holds_every_fact_after_five_summaries() {
    let (t, _) = five_rounds(&[summary]);
    assert_eq!(
        t.messages
            .iter()
            .filter(|m| m.author == Author::Summary)
            .count(),
        1
    );
    let ledger = Ledger::parse(&t.messages[0].text()).expect("a ledger");
    for (kind, fact) in (0..ROUNDS).flat_map(facts) {
        let holds = match kind {
            "user message" => ledger.user_messages.iter().any(|said| said.text == fact),
            "prohibition" => ledger.standing.contains(&fact),
            "changed path" => ledger
                .files
                .iter()
                .any(|file| file.changed && file.path == fact),
            "open todo" => ledger.todos.iter().any(|todo| todo.text == fact),
            _ => ledger.failed.iter().any(|failed| {
                failed.command == fact
                    && failed.error == "error: no rule"
                    && !failed.address.is_empty()
            }),
        };
        assert!(holds, "{kind}: {fact}");
    }
    assert_eq!(ledger.user_messages.len(), 1 + 16, "nothing is told twice");
    assert_eq!(ledger.standing.len(), 8);
}

#[test]
fn what_a_later_round_got_over_leaves_the_ledger() {
    let (t, _) = five_rounds(&[summary]);
    let mut b = Builder::from(t);
    call(
        &mut b,
        "fix",
        run("make target-3"),
        &"ok\n".repeat(2_000),
        false,
    );
    call(
        &mut b,
        "todo",
        plan(&["the last one".into()]),
        "noted",
        false,
    );
    talk(&mut b, 6);
    let t = b.build();
    let plan = summary(&t).expect("something to gain");
    assert_eq!(plan.mode, Mode::Summary);
    let ledger = Ledger::parse(&plan.summary.unwrap_or_default()).expect("a ledger");
    let failed: Vec<_> = ledger.failed.iter().map(|f| f.command.as_str()).collect();
    assert_eq!(failed.len(), 7);
    assert!(!failed.contains(&"make target-3"));
    assert_eq!(ledger.todos.len(), 1);
}
