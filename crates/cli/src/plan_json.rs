//! A plan as JSON, format version 1: what `compact --json` prints. Documented in docs/json.md.

use std::path::Path;

use ctxfold_transcript::{Action, Content, Measure, Plan, Target, Transcript};
use serde::Serialize;

/// A plan.
#[derive(Debug, Serialize)]
pub(crate) struct PlanJson<'a> {
    v: u32,
    mode: &'static str,
    /// Whether the plan was carried out.
    pub(crate) executed: bool,
    /// Why a real run would be refused, where a dry run knows.
    pub(crate) refused: Option<String>,
    /// The copy that was written instead.
    pub(crate) out: Option<&'a Path>,
    before: MeasureJson,
    after: MeasureJson,
    /// Share of bytes saved, 0 to 1.
    gain: f64,
    tail: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a str>,
    decisions: Vec<DecisionJson<'a>>,
    notes: Vec<NoteJson<'a>>,
}

#[derive(Debug, Serialize)]
struct MeasureJson {
    messages: usize,
    bytes: u64,
    tokens: u64,
}

#[derive(Debug, Serialize)]
struct DecisionJson<'a> {
    what: &'a str,
    address: &'a str,
    action: &'static str,
    reason: &'a str,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct NoteJson<'a> {
    message: usize,
    text: &'a str,
}

impl From<Measure> for MeasureJson {
    fn from(m: Measure) -> MeasureJson {
        MeasureJson {
            messages: m.messages,
            bytes: m.bytes,
            tokens: m.tokens,
        }
    }
}

impl<'a> PlanJson<'a> {
    /// The plan for the transcript it was made for.
    pub(crate) fn new(plan: &'a Plan, transcript: &'a Transcript) -> PlanJson<'a> {
        let decisions = plan.decisions.iter().map(|d| {
            let (what, address, bytes) = match d.target {
                Target::Call(i) => transcript.calls.get(i).map_or(("?", "", 0), |c| {
                    let bytes = transcript.result(i).map_or(0, |b| b.bytes);
                    (c.label.as_str(), c.address.as_str(), bytes)
                }),
                Target::Attachment(at) => match transcript.block(at).map(|b| (&b.content, b.bytes))
                {
                    Some((
                        Content::Attachment {
                            kind,
                            name,
                            address,
                            ..
                        },
                        bytes,
                    )) => (name.as_deref().unwrap_or(kind), address.as_str(), bytes),
                    _ => ("?", "", 0),
                },
            };
            let action = match d.action {
                Action::Keep => "keep",
                Action::Truncate(_) => "truncate",
                Action::Drop => "drop",
            };
            DecisionJson {
                what,
                address,
                action,
                reason: &d.reason,
                bytes,
            }
        });
        PlanJson {
            v: 1,
            mode: plan.mode.name(),
            executed: false,
            refused: None,
            out: None,
            before: plan.before.into(),
            after: plan.after.into(),
            gain: plan.before.gain(&plan.after),
            tail: plan.tail,
            summary: plan.summary.as_deref(),
            decisions: decisions.collect(),
            notes: plan
                .notes
                .iter()
                .map(|n| NoteJson {
                    message: n.message,
                    text: &n.text,
                })
                .collect(),
        }
    }
}
