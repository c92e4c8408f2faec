//! Makes decisions of others safe to carry out: no two answers in a row, and a note that names
//! the dropped calls on the nearest answer that stays.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ctxfold_transcript::{
    Action, Activity, Author, Call, Note, Plan, Target, Transcript, text_bytes,
};

use crate::fold::{FoldedLine, one_line};

/// Dropped calls that a note names; the others are counted.
const NAMED: usize = 20;

/// Turns drops that would leave two answers in a row into folded lines, and notes the others.
pub(crate) fn settle(transcript: &Transcript, plan: &mut Plan) {
    soften(transcript, plan);
    note_drops(transcript, plan);
}

fn soften(transcript: &Transcript, plan: &mut Plan) {
    loop {
        let adjacent = plan.adjacent_answers(transcript);
        if adjacent.is_empty() {
            return;
        }
        let stays = plan.stays(transcript);
        for before in adjacent {
            let next = (before + 1..stays.len())
                .find(|m| stays[*m])
                .unwrap_or(stays.len());
            let between = |call: &Call| {
                [Some(call.at), call.result]
                    .into_iter()
                    .flatten()
                    .any(|at| at.message > before && at.message < next)
            };
            let softened = plan.decisions.iter_mut().find(|decision| {
                decision.action == Action::Drop
                    && matches!(decision.target, Target::Call(i) if between(&transcript.calls[i]))
            });
            let Some(decision) = softened else { return };
            let Target::Call(index) = decision.target else {
                return;
            };
            decision.action = folded(transcript, index);
        }
    }
}

/// A folded line in the place of a call's output, or nothing where it would not be shorter.
pub(crate) fn folded(transcript: &Transcript, index: usize) -> Action {
    let Some(block) = transcript.result(index) else {
        return Action::Keep;
    };
    let line = FoldedLine::of_call(&transcript.calls[index], &block.content).to_string();
    if text_bytes(&line) < block.content.payload_bytes() {
        Action::Truncate(line)
    } else {
        Action::Keep
    }
}

fn note_drops(transcript: &Transcript, plan: &mut Plan) {
    let stays = plan.stays(transcript);
    let tail = plan.tail.min(transcript.messages.len());
    let can_note = |m: &usize| stays[*m] && transcript.messages[*m].author == Author::Assistant;
    let mut dropped: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut homeless = Vec::new();
    for decision in &plan.decisions {
        let (Action::Drop, Target::Call(index)) = (&decision.action, decision.target) else {
            continue;
        };
        let at = transcript.calls[index].at.message;
        let home = (0..=at)
            .rev()
            .find(can_note)
            .or_else(|| (at + 1..tail).find(can_note));
        match home {
            Some(home) => dropped.entry(home).or_default().push(index),
            None => homeless.push(decision.target),
        }
    }
    // Without an answer to carry the note the call stays: nothing goes silently.
    plan.decisions
        .retain(|decision| !homeless.contains(&decision.target));
    for (message, mut calls) in dropped {
        calls.sort_unstable();
        let text = drop_note(transcript, &calls);
        match plan.notes.iter_mut().find(|note| note.message == message) {
            Some(note) => {
                note.text.push('\n');
                note.text.push_str(&text);
            }
            None => plan.notes.push(Note { message, text }),
        }
    }
    plan.notes.sort_by_key(|note| note.message);
}

const DROP_NOTE: &str = "[ctxfold: these tool calls were really made and are left out here to save \
context; what they did stands. Read one back with: ctxfold unfold ADDRESS.";

/// Names the dropped calls and what they touched. What a ledger tells is named in full, however
/// many calls there are: the calls are gone, and the next summary reads it from here.
fn drop_note(transcript: &Transcript, calls: &[usize]) -> String {
    let mut text = String::from(DROP_NOTE);
    let mut unnamed = 0;
    for (place, index) in calls.iter().enumerate() {
        let call = &transcript.calls[*index];
        let facts: Vec<String> = call.activities.iter().filter_map(fact).collect();
        if place >= NAMED && facts.is_empty() {
            unnamed += 1;
            continue;
        }
        let (label, address) = (one_line(&call.label), one_line(&call.address));
        let _ = write!(text, "\n  {label}: {address}");
        for fact in facts {
            let _ = write!(text, "\n    {fact}");
        }
    }
    if unnamed > 0 {
        let _ = write!(text, "\n  and {unnamed} more");
    }
    text.push_str("\n]");
    text
}

fn fact(activity: &Activity) -> Option<String> {
    let (verb, what) = match activity {
        Activity::Read { path, .. } => ("read", path.clone()),
        Activity::Write {
            path,
            created: true,
        } => ("created", path.clone()),
        Activity::Write { path, .. } | Activity::Edit { path } => ("changed", path.clone()),
        Activity::Delete { path } => ("deleted", path.clone()),
        Activity::Skill { name } => ("skill", name.clone()),
        Activity::Delegate { task, agent } => (
            "agent",
            format!("{} {task}", agent.as_deref().unwrap_or("-")),
        ),
        _ => return None,
    };
    Some(format!("{verb} {}", one_line(&what)))
}

/// What dropped calls did, read back from the notes in an answer's text, with their addresses.
pub(crate) fn noted_drops(text: &str) -> Vec<(Activity, String)> {
    let mut found = Vec::new();
    for note in text.split(DROP_NOTE).skip(1) {
        let mut address = String::new();
        for line in note.lines().take_while(|line| *line != "]") {
            let Some((verb, what)) = line.strip_prefix("    ").and_then(|l| l.split_once(' '))
            else {
                if let Some((_, at)) = line.rsplit_once(": ") {
                    at.clone_into(&mut address);
                }
                continue;
            };
            let path = what.to_owned();
            let activity = match verb {
                "read" => Activity::Read { path, span: None },
                "created" => Activity::Write {
                    path,
                    created: true,
                },
                "changed" => Activity::Edit { path },
                "deleted" => Activity::Delete { path },
                "skill" => Activity::Skill { name: path },
                "agent" => match what.split_once(' ') {
                    Some((agent, task)) => Activity::Delegate {
                        task: task.to_owned(),
                        agent: (agent != "-").then(|| agent.to_owned()),
                    },
                    None => continue,
                },
                _ => continue,
            };
            found.push((activity, address.clone()));
        }
    }
    found
}
