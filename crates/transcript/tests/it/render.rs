//! A plan as people read it.

use ctxfold_transcript::{Action, Author, BlockRef, Builder, Mode, Note, Plan, Target};

#[test]
fn a_plan_says_what_it_does_line_by_line() {
    let mut b = Builder::new();
    b.message(Author::User).text("do it");
    b.message(Author::Client)
        .attachment("file", "a.rs", "0123456789");
    b.message(Author::Assistant)
        .text("running")
        .call("a", "Bash", "Bash(cargo test)")
        .call("b", "Read", "Read(a.rs)");
    b.message(Author::Tool)
        .result("a", &"x".repeat(1_000), false)
        .result("b", &"y".repeat(500), false);
    b.message(Author::Assistant).text("done");
    let t = b.build();
    let mut plan = Plan::keep_all(&t, Mode::Prune);
    plan.decide_call(0, Action::Truncate("cut".into()), "model");
    plan.decide_call(1, Action::Drop, "model");
    let attachment = BlockRef {
        message: 1,
        block: 0,
    };
    plan.decide(Target::Attachment(attachment), Action::Keep, "pinned");
    plan.notes.push(Note {
        message: 2,
        text: "one call is gone".into(),
    });
    plan.measure(&t);
    assert_eq!(
        plan.render(&t),
        format!(
            "prune: 5 → 5 messages · {} → {} bytes · 87% smaller · 1 truncated, 1 dropped\n  \
             truncate Bash(cargo test)  (model)\n  \
             drop     Read(a.rs)  (model)\n  \
             keep     a.rs  (pinned)\n  \
             note     on message 2: one call is gone\n",
            plan.before.bytes, plan.after.bytes
        )
    );
    assert_eq!(plan.counts(), (1, 1));
    assert_eq!(plan.action(Target::Call(1)), &Action::Drop);
    assert_eq!(plan.action(Target::Call(7)), &Action::Keep);
}

#[test]
fn what_is_not_there_is_rendered_as_unknown() {
    let t = Builder::new().build();
    let mut plan = Plan::keep_all(&t, Mode::Mask);
    plan.decide_call(3, Action::Drop, "odd");
    assert!(plan.render(&t).contains("drop     ?  (odd)"));
}
