//! Conversations for the tests, and models that answer.

use std::fmt::Write as _;

use ctxfold_compactor::{ModelRequest, SECTIONS};
use ctxfold_transcript::{
    Activity, Author, Builder, Content, Part, Span, Todo, TodoState, Transcript,
};
use proptest::prelude::*;

pub(crate) fn run(command: &str) -> Vec<Activity> {
    vec![Activity::Run {
        command: command.into(),
        exit: None,
    }]
}

pub(crate) fn read(path: &str) -> Vec<Activity> {
    vec![Activity::Read {
        path: path.into(),
        span: None,
    }]
}

pub(crate) fn edit(path: &str) -> Vec<Activity> {
    vec![Activity::Edit { path: path.into() }]
}

pub(crate) fn plan(todos: &[String]) -> Vec<Activity> {
    let todos = todos.iter().map(|text| Todo {
        text: text.clone(),
        state: TodoState::Pending,
    });
    vec![Activity::Plan {
        todos: todos.collect(),
    }]
}

/// One answer with one call, and its result.
pub(crate) fn call(b: &mut Builder, id: &str, what: Vec<Activity>, output: &str, failed: bool) {
    let label = format!("Tool({id})");
    b.message(Author::Assistant)
        .call_with(id, "Tool", &label, what);
    b.message(Author::Tool).result(id, output, failed);
}

/// Answers without calls, so that what is before them is old.
pub(crate) fn talk(b: &mut Builder, messages: usize) {
    for n in 0..messages {
        b.message(Author::Assistant).text(&format!("talk {n}"));
    }
}

/// Everything that the next request would show the model.
pub(crate) fn shown(t: &Transcript) -> String {
    let mut out = String::new();
    for block in t.messages.iter().flat_map(|m| &m.blocks) {
        match &block.content {
            Content::Text(text) | Content::Said(text) | Content::Attachment { text, .. } => {
                out.push_str(text);
            }
            Content::ToolCall(call) => {
                let call = &t.calls[*call];
                out.push_str(&call.label);
                out.push_str(&call.input);
            }
            Content::ToolResult { parts, .. } => {
                for part in parts {
                    if let Part::Text(text) = part {
                        out.push_str(text);
                    }
                }
            }
            _ => {}
        }
        out.push('\n');
    }
    out
}

/// A summary with every section and little in it.
pub(crate) fn dull_summary() -> String {
    let mut out = String::new();
    for (n, title) in SECTIONS.iter().enumerate() {
        let _ = writeln!(out, "## {}. {title}", n + 1);
        out.push_str("Nothing worth a word was found here.\n");
    }
    out
}

/// The ids that a prune request asks about.
pub(crate) fn asked_ids(request: &ModelRequest) -> Vec<String> {
    let (_, ids) = request
        .text
        .rsplit_once("each once: ")
        .expect("a prune request");
    let ids = ids.lines().next().unwrap_or_default();
    ids.split(", ").map(str::to_owned).collect()
}

/// A prune answer that gives every call the same verdict.
pub(crate) fn verdicts(request: &ModelRequest, action: &str) -> String {
    let decisions: Vec<String> = asked_ids(request)
        .iter()
        .map(|id| format!(r#"{{"id":"{id}","action":"{action}"}}"#))
        .collect();
    format!(r#"{{"decisions":[{}]}}"#, decisions.join(","))
}

fn activity() -> impl Strategy<Value = Activity> {
    let path = "[ab]\\.rs";
    prop_oneof![
        (path, proptest::option::of((1u64..9, 1u64..9))).prop_map(|(path, span)| Activity::Read {
            path,
            span: span.map(|(start, lines)| Span {
                start,
                lines: Some(lines)
            }),
        }),
        path.prop_map(|path| Activity::Edit { path }),
        path.prop_map(|path| Activity::Write {
            path,
            created: true
        }),
        path.prop_map(|path| Activity::Delete { path }),
        Just(Activity::List { path: ".".into() }),
        Just(Activity::Search {
            pattern: "x".into()
        }),
        "cargo (test|build)( \\| tail)?".prop_map(|command| Activity::Run {
            command,
            exit: None
        }),
        Just(Activity::Skill { name: "s".into() }),
        Just(Activity::Other),
    ]
}

type Answered = (Vec<Activity>, Option<(bool, usize)>);

#[derive(Debug, Clone)]
enum Turn {
    User(String),
    Attachment(usize),
    Answer(bool, Option<String>, Vec<Answered>),
}

fn turn() -> impl Strategy<Value = Turn> {
    let calls = (
        proptest::collection::vec(activity(), 1..3),
        proptest::option::weighted(0.95, (any::<bool>(), 0usize..3_000)),
    );
    prop_oneof![
        1 => "(fix|never push|look) [a-z]{1,9}".prop_map(Turn::User),
        1 => (0usize..2_000).prop_map(Turn::Attachment),
        5 => (
            any::<bool>(),
            proptest::option::of("[a-z ]{1,30}"),
            proptest::collection::vec(calls, 0..4),
        )
            .prop_map(|(thinking, text, calls)| Turn::Answer(thinking, text, calls)),
    ]
}

/// Conversations of every shape, parallel and pending calls among them.
pub(crate) fn transcripts() -> impl Strategy<Value = Transcript> {
    proptest::collection::vec(turn(), 0..16).prop_map(|turns| {
        let mut b = Builder::new();
        b.message(Author::User).text("begin");
        for (place, turn) in turns.iter().enumerate() {
            match turn {
                Turn::User(text) => {
                    b.message(Author::User).text(text);
                }
                Turn::Attachment(size) => {
                    let text = "a ".repeat(*size);
                    b.message(Author::Client).attachment("file", "a.rs", &text);
                }
                Turn::Answer(thinking, text, calls) => {
                    answer(&mut b, place, *thinking, text.as_deref(), calls);
                }
            }
        }
        b.build()
    })
}

fn answer(b: &mut Builder, place: usize, thinking: bool, text: Option<&str>, calls: &[Answered]) {
    let mut m = b.message(Author::Assistant);
    if thinking {
        m.thinking(11);
    }
    if let Some(text) = text {
        m.text(text);
    }
    for (n, (activities, _)) in calls.iter().enumerate() {
        let label = format!("Tool({place}.{n})");
        m.call_with(&format!("{place}.{n}"), "Tool", &label, activities.clone());
    }
    if calls.iter().any(|(_, result)| result.is_some()) {
        let mut m = b.message(Author::Tool);
        for (n, (_, result)) in calls.iter().enumerate() {
            if let Some((failed, size)) = result {
                let (id, output) = (format!("{place}.{n}"), "o ".repeat(*size));
                match size % 8 {
                    0 => m.answer(&id, &output, *failed, &format!("never {id}")),
                    _ => m.result(&id, &output, *failed),
                };
            }
        }
        if calls.len() == 3 {
            m.said(&format!("beside {place}, always"));
        }
    }
}
