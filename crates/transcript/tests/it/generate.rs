//! Conversations and plans of every shape.

use ctxfold_transcript::{Action, Author, Builder, Content, Mode, Note, Plan, Target, Transcript};
use proptest::prelude::*;

/// One step of a generated conversation.
#[derive(Debug, Clone)]
enum Turn {
    User(String),
    Client(String),
    /// Thinking, text, and the calls: whether each has its result.
    Answer(bool, Option<String>, Vec<bool>),
}

fn turn() -> impl Strategy<Value = Turn> {
    let words = "[a-z\"\n]{0,20}";
    prop_oneof![
        words.prop_map(Turn::User),
        words.prop_map(Turn::Client),
        (
            any::<bool>(),
            proptest::option::of(words),
            proptest::collection::vec(proptest::bool::weighted(0.8), 0..4),
        )
            .prop_map(|(thinking, text, calls)| Turn::Answer(thinking, text, calls)),
    ]
}

pub(crate) fn transcripts() -> impl Strategy<Value = Transcript> {
    proptest::collection::vec(turn(), 0..10).prop_map(|turns| {
        let mut b = Builder::new();
        for (place, turn) in turns.iter().enumerate() {
            match turn {
                Turn::User(text) => {
                    b.message(Author::User).text(text);
                }
                Turn::Client(text) => {
                    b.message(Author::Client).attachment("file", "f", text);
                }
                Turn::Answer(thinking, text, calls) => {
                    let mut m = b.message(Author::Assistant);
                    if *thinking {
                        m.thinking(7);
                    }
                    if let Some(text) = text {
                        m.text(text);
                    }
                    for call in 0..calls.len() {
                        m.call(&format!("{place}-{call}"), "Bash", "Bash(\"x\")");
                    }
                    if calls.iter().any(|answered| *answered) {
                        let mut m = b.message(Author::Tool);
                        for (call, _) in calls.iter().enumerate().filter(|(_, answered)| **answered)
                        {
                            let id = format!("{place}-{call}");
                            if call == 2 {
                                m.answer(&id, "said: \"no\"", true, "\"no\"");
                            } else {
                                m.result(&id, "out\nput", call == 1);
                            }
                        }
                        if calls.len() == 2 {
                            m.said("and \"by the way\"");
                        }
                    }
                }
            }
        }
        b.build()
    })
}

/// A plan that names things of the transcript and beyond it, valid or not.
pub(crate) fn plans(transcript: &Transcript) -> impl Strategy<Value = Plan> + use<> {
    let calls = transcript.calls.len() + 1;
    let messages = transcript.messages.len() + 1;
    let attachments: Vec<_> = transcript
        .messages
        .iter()
        .enumerate()
        .filter(|(_, m)| {
            m.blocks
                .iter()
                .any(|b| matches!(b.content, Content::Attachment { .. }))
        })
        .map(|(message, _)| ctxfold_transcript::BlockRef { message, block: 0 })
        .collect();
    let action = prop_oneof![
        Just(Action::Keep),
        "[a-z\"]{0,9}".prop_map(Action::Truncate),
        Just(Action::Drop),
    ];
    let base = Plan::keep_all(transcript, Mode::Prune);
    (
        proptest::option::weighted(0.2, "[a-z]{1,9}"),
        0..messages,
        proptest::collection::vec((0..calls, action.clone()), 0..6),
        proptest::collection::vec((any::<prop::sample::Index>(), action), 0..3),
        proptest::collection::vec((0..messages, "[a-z\"]{0,9}"), 0..3),
    )
        .prop_map(
            move |(summary, tail, over_calls, over_attachments, notes)| {
                let mut plan = base.clone();
                plan.mode = if summary.is_some() {
                    Mode::Summary
                } else {
                    Mode::Prune
                };
                plan.tail = if summary.is_some() || tail % 2 == 0 {
                    tail
                } else {
                    messages - 1
                };
                plan.summary = summary;
                for (call, action) in over_calls {
                    plan.decide_call(call, action, "test");
                }
                for (place, action) in over_attachments {
                    if !attachments.is_empty() {
                        plan.decide(Target::Attachment(*place.get(&attachments)), action, "test");
                    }
                }
                plan.notes = notes
                    .into_iter()
                    .map(|(message, text)| Note { message, text })
                    .collect();
                plan
            },
        )
}
