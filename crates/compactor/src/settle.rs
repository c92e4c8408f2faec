//! Makes decisions of others safe to carry out: no two answers in a row, and a note that names
//! the dropped calls on the nearest answer that stays.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ctxfold_transcript::{Action, Author, Call, Note, Plan, Target, Transcript, text_bytes};

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

/// Names the dropped calls; paths that they changed are named in full, however many they are.
fn drop_note(transcript: &Transcript, calls: &[usize]) -> String {
    let mut text = String::from(
        "[ctxfold: these tool calls were really made and are left out here to save context; \
         what they did stands. Read one back with: ctxfold unfold ADDRESS.",
    );
    let mut unnamed = 0;
    for (place, index) in calls.iter().enumerate() {
        let call = &transcript.calls[*index];
        let changed: Vec<&str> = call
            .activities
            .iter()
            .filter(|activity| activity.changes_file())
            .filter_map(ctxfold_transcript::Activity::path)
            .filter(|path| !call.label.contains(path))
            .collect();
        let changes = call
            .activities
            .iter()
            .any(ctxfold_transcript::Activity::changes_file);
        if place >= NAMED && !changes {
            unnamed += 1;
            continue;
        }
        text.push_str("\n  ");
        text.push_str(&one_line(&call.label));
        for path in changed {
            text.push(' ');
            text.push_str(&one_line(path));
        }
        text.push_str(": ");
        text.push_str(&one_line(&call.address));
    }
    if unnamed > 0 {
        let _ = write!(text, "\n  and {unnamed} more");
    }
    text.push(']');
    text
}
