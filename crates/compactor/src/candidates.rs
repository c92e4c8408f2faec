//! Which rule folds which output.

use std::collections::{HashMap, HashSet};

use ctxfold_transcript::{
    Action, Activity, Call, Content, Outcome, Part, Span, Target, Transcript, text_bytes,
};

use crate::fold::{FoldedLine, is_folded};
use crate::pins::{last_touch, open_failures, plain_path};
use crate::{MaskOptions, Rule, RuleSet};

/// An output that a rule would fold.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) target: Target,
    pub(crate) rule: Rule,
    pub(crate) line: String,
    /// Bytes that folding saves.
    pub(crate) saves: u64,
}

impl Candidate {
    pub(crate) fn action(&self) -> Action {
        Action::Truncate(self.line.clone())
    }
}

/// Outputs shorter than this are never told as repeated: "ok" says something each time.
const REPEATED_BYTES: u64 = 200;

/// Everything before the tail that a rule folds, cheapest information first, older first.
pub(crate) fn candidates(
    transcript: &Transcript,
    tail: usize,
    options: &MaskOptions,
) -> Vec<Candidate> {
    let rules = if options.aggressive {
        options.rules.with(Rule::AnyOutput)
    } else {
        options.rules
    };
    let facts = Facts::new(transcript);
    let mut found = Vec::new();
    for (index, call) in transcript.calls.iter().enumerate() {
        let Some(result) = call.result else { continue };
        let in_head = |message: usize| message > 0 && message < tail;
        if !in_head(call.at.message)
            || !in_head(result.message)
            || call.outcome == Outcome::Pending
            || facts.open_failures[index]
        {
            continue;
        }
        let Some(content) = transcript.block(result).map(|b| &b.content) else {
            continue;
        };
        if is_folded(content) || content.said().is_some() {
            continue;
        }
        let rule = rules
            .iter()
            .find(|rule| facts.call_matches(*rule, index, call, content, options.max_output));
        if let Some(rule) = rule {
            let line = FoldedLine::of_call(call, content).to_string();
            push(&mut found, Target::Call(index), rule, content, line);
        }
    }
    attachments(transcript, tail, rules, options.max_output, &mut found);
    found.sort_by_key(|candidate| candidate.rule);
    found
}

fn push(found: &mut Vec<Candidate>, target: Target, rule: Rule, content: &Content, line: String) {
    let saves = content.payload_bytes().saturating_sub(text_bytes(&line));
    if saves > 0 {
        found.push(Candidate {
            target,
            rule,
            line,
            saves,
        });
    }
}

fn attachments(
    transcript: &Transcript,
    tail: usize,
    rules: RuleSet,
    max_output: u64,
    found: &mut Vec<Candidate>,
) {
    let touched = last_touch(transcript);
    let head = transcript.messages.iter().enumerate().take(tail).skip(1);
    for (message, blocks) in head {
        for (block, content) in blocks.blocks.iter().map(|b| &b.content).enumerate() {
            let Content::Attachment {
                name,
                text,
                foldable: true,
                ..
            } = content
            else {
                continue;
            };
            if is_folded(content) {
                continue;
            }
            let is_superseded = name
                .as_deref()
                .and_then(|name| touched.get(plain_path(name)))
                .is_some_and(|touch| *touch > message);
            let rule = rules.iter().find(|rule| match rule {
                Rule::SupersededRead => is_superseded,
                Rule::Base64 => holds_base64(text),
                Rule::LargeOutput => content.payload_bytes() > max_output,
                Rule::AnyOutput => true,
                _ => false,
            });
            if let (Some(rule), Some(line)) = (rule, FoldedLine::of_attachment(content)) {
                let at = ctxfold_transcript::BlockRef { message, block };
                push(
                    found,
                    Target::Attachment(at),
                    rule,
                    content,
                    line.to_string(),
                );
            }
        }
    }
}

/// What the rules need to know of the whole conversation.
struct Facts {
    open_failures: Vec<bool>,
    superseded: Vec<bool>,
    repeated: Vec<bool>,
    /// Bytes of each call's output.
    bytes: Vec<u64>,
}

impl Facts {
    fn new(transcript: &Transcript) -> Facts {
        let bytes: Vec<u64> = (0..transcript.calls.len())
            .map(|call| {
                let block = transcript.result(call);
                block.map_or(0, |block| block.content.payload_bytes())
            })
            .collect();
        Facts {
            open_failures: open_failures(transcript),
            superseded: superseded(transcript, &bytes),
            repeated: repeated(transcript, &bytes),
            bytes,
        }
    }

    fn call_matches(
        &self,
        rule: Rule,
        index: usize,
        call: &Call,
        content: &Content,
        max_output: u64,
    ) -> bool {
        let is_success = call.outcome == Outcome::Success;
        let is_skill = call
            .activities
            .iter()
            .any(|a| matches!(a, Activity::Skill { .. }));
        let all_any = |all: fn(&Activity) -> bool, any: fn(&Activity) -> bool| {
            is_success && call.activities.iter().all(all) && call.activities.iter().any(any)
        };
        match rule {
            Rule::RepeatedOutput => self.repeated[index],
            Rule::SupersededRead => is_success && self.superseded[index],
            Rule::Base64 => texts(content).any(holds_base64),
            Rule::Listing => all_any(
                |a| matches!(a, Activity::List { .. } | Activity::Run { .. }),
                |a| matches!(a, Activity::List { .. }),
            ),
            Rule::Search => all_any(
                |a| {
                    matches!(
                        a,
                        Activity::Search { .. } | Activity::List { .. } | Activity::Run { .. }
                    )
                },
                |a| matches!(a, Activity::Search { .. }),
            ),
            Rule::PassingRun => all_any(
                |a| matches!(a, Activity::Run { .. }) || a.changes_file(),
                |a| matches!(a, Activity::Run { .. }),
            ),
            Rule::Image => images(content),
            Rule::FixedError => call.outcome == Outcome::Failure,
            Rule::LargeOutput => !is_skill && self.bytes[index] > max_output,
            Rule::AnyOutput => !is_skill,
        }
    }
}

fn texts(content: &Content) -> impl Iterator<Item = &str> {
    let parts = match content {
        Content::ToolResult { parts, .. } => parts.as_slice(),
        _ => &[],
    };
    parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    })
}

fn images(content: &Content) -> bool {
    matches!(content, Content::ToolResult { parts, .. }
        if parts.iter().any(|part| matches!(part, Part::Image(_))))
}

/// For each call, whether everything it read was read or changed again later.
fn superseded(transcript: &Transcript, sizes: &[u64]) -> Vec<bool> {
    let mut changed: HashSet<&str> = HashSet::new();
    let mut read: HashMap<&str, Vec<(Option<Span>, u64)>> = HashMap::new();
    let mut out = vec![false; transcript.calls.len()];
    for (index, call) in transcript.calls.iter().enumerate().rev() {
        let bytes = sizes[index];
        // A later read that tells much less than this one points back at it ("unchanged").
        let is_covered = |path: &str, span: &Option<Span>| {
            changed.contains(path)
                || read.get(path).is_some_and(|later| {
                    later.iter().any(|(other, other_bytes)| {
                        other_bytes.saturating_mul(2) >= bytes
                            && match (other, span) {
                                (None, _) => true,
                                (Some(_), None) => false,
                                (Some(other), Some(span)) => other.covers(span),
                            }
                    })
                })
        };
        let mut reads = 0;
        out[index] = call.activities.iter().all(|activity| match activity {
            Activity::Read { path, span } => {
                reads += 1;
                is_covered(plain_path(path), span)
            }
            Activity::Run { .. } => true,
            _ => false,
        }) && reads > 0;
        if call.outcome != Outcome::Success {
            continue;
        }
        for activity in &call.activities {
            match activity {
                Activity::Read { path, span } => {
                    let known = read.entry(plain_path(path)).or_default();
                    if !known.contains(&(*span, bytes)) {
                        known.push((*span, bytes));
                    }
                }
                _ if activity.changes_file() => {
                    changed.extend(activity.path().map(plain_path));
                }
                _ => {}
            }
        }
    }
    out
}

/// For each call, whether its output comes again later, word for word.
fn repeated(transcript: &Transcript, sizes: &[u64]) -> Vec<bool> {
    let mut seen: HashSet<Vec<&str>> = HashSet::new();
    let mut out = vec![false; transcript.calls.len()];
    for index in (0..transcript.calls.len()).rev() {
        let Some(block) = transcript.result(index) else {
            continue;
        };
        let is_text = matches!(&block.content, Content::ToolResult { parts, .. }
            if parts.iter().all(|part| matches!(part, Part::Text(_))));
        if is_text && sizes[index] >= REPEATED_BYTES {
            out[index] = !seen.insert(texts(&block.content).collect());
        }
    }
    out
}

/// Whether a text holds base64: one long run, or a block of lines of the same length.
pub(crate) fn holds_base64(text: &str) -> bool {
    const RUN: usize = 512;
    const LINE: usize = 60;
    const LINES: usize = 8;
    let is_base64 =
        |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'-' | b'_');
    let is_mixed = |run: &[u8]| {
        run.iter().any(u8::is_ascii_uppercase)
            && run.iter().any(u8::is_ascii_lowercase)
            && run.iter().any(u8::is_ascii_digit)
    };
    let bytes = text.as_bytes();
    if bytes.len() < RUN.min(LINE * LINES) {
        return false;
    }
    if bytes
        .split(|b| !is_base64(*b))
        .any(|run| run.len() >= RUN && is_mixed(run))
    {
        return true;
    }
    let (mut length, mut count) = (0, 0);
    for line in bytes.split(|b| *b == b'\n') {
        let line = line.trim_ascii();
        if line.len() >= LINE && line.iter().all(|b| is_base64(*b)) && is_mixed(line) {
            count = if line.len() == length { count + 1 } else { 1 };
            length = line.len();
            if count >= LINES {
                return true;
            }
        } else {
            count = 0;
        }
    }
    false
}
