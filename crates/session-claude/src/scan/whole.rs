//! The chunks of a scan put together, in order: totals, pairs of calls and results, turns.

use std::collections::HashMap;

use super::part::Part;
use super::{KindTotal, MOST_FINDINGS, Output, Scan, ToolTotal};
use crate::Finding;
use crate::keys::{call_keys, session_part};
use crate::lines::Place;
use crate::probe::Probe;

/// Kinds of rows that clients are known to write.
const KNOWN: &[&str] = &[
    "user",
    "assistant",
    "attachment",
    "system",
    "queue-operation",
    "last-prompt",
    "mode",
    "permission-mode",
    "file-history-snapshot",
    "file-history-delta",
    "tools-used",
    "cost-state",
    "atis-latch",
    "custom-title",
    "ai-title",
    "agent-name",
    "agent-color",
    "agent-setting",
    "tag",
    "pr-link",
    "summary",
    "progress",
    "api-request",
    "api-request-shape",
    "api-request-blob",
];

#[derive(Debug, Default)]
struct Pair {
    tool: Option<Box<str>>,
    input: u64,
    /// The newest result.
    result: Option<(u64, Place)>,
}

/// The chunks put together.
pub(super) struct Whole {
    pub(super) scan: Scan,
    largest: usize,
    kinds: HashMap<String, (u64, u64)>,
    pairs: HashMap<Box<str>, Pair>,
    turns: HashMap<u128, usize>,
    per_code: HashMap<crate::Code, usize>,
    probe: Probe,
}

impl Whole {
    pub(super) fn new(largest: usize) -> Whole {
        Whole {
            scan: Scan::default(),
            largest,
            kinds: HashMap::new(),
            pairs: HashMap::new(),
            turns: HashMap::new(),
            per_code: HashMap::new(),
            probe: Probe::default(),
        }
    }

    pub(super) fn add(&mut self, mut part: Part) {
        // Line numbers begin with 1.
        let before = self.scan.lines + 1;
        let scan = &mut self.scan;
        scan.bytes += part.bytes;
        scan.lines += part.lines;
        scan.rows += part.rows;
        scan.session = scan.session.take().or(part.session.take());
        let last = std::str::from_utf8(&part.last_time)
            .ok()
            .and_then(crate::stamp::parse_timestamp);
        if let Some(last) = last.or(part.first_ms) {
            let first = scan.span_ms.map_or(part.first_ms.unwrap_or(last), |s| s.0);
            scan.span_ms = Some((first, last));
        }
        for (kind, (rows, bytes)) in part.kinds {
            let total = self.kinds.entry(kind).or_default();
            total.0 += rows;
            total.1 += bytes;
        }
        for call in part.calls {
            let pair = self.pairs.entry(call.id).or_default();
            pair.tool = Some(call.tool);
            pair.input = call.input;
        }
        for mut answer in part.results {
            answer.place.line = answer.place.line.map(|n| n + before);
            let pair = self.pairs.entry(answer.id).or_default();
            pair.result = Some((answer.bytes, answer.place));
        }
        for (id, mut turn) in part.turns {
            turn.line += before;
            if let Some(known) = self.turns.get(&id) {
                let old = &mut scan.turns[*known];
                old.context = old.context.max(turn.context);
                old.output = old.output.max(turn.output);
            } else {
                self.turns.insert(id, scan.turns.len());
                scan.turns.push(turn);
            }
        }
        for mut compaction in part.compactions {
            compaction.line += before;
            scan.compactions.push(compaction);
        }
        for mut finding in part.findings {
            let count = self.per_code.entry(finding.code).or_default();
            *count += 1;
            if *count <= MOST_FINDINGS {
                finding.line = finding.line.map(|n| n + before);
                scan.findings.push(finding);
            }
        }
        if let Some(probe) = part.probe {
            self.probe.append(probe, before);
        }
    }

    pub(super) fn finish(mut self) -> (Scan, Probe) {
        self.finish_tools();
        let mut scan = self.scan;
        for (code, count) in self.per_code {
            if count > MOST_FINDINGS {
                let more = count - MOST_FINDINGS;
                scan.findings
                    .push(Finding::new(code, format!("{more} more of these")));
            }
        }
        scan.kinds = self
            .kinds
            .into_iter()
            .map(|(kind, (rows, bytes))| {
                let outer = kind.split('/').next().unwrap_or_default();
                KindTotal {
                    known: KNOWN.contains(&outer),
                    kind,
                    rows,
                    bytes,
                }
            })
            .collect();
        scan.kinds
            .sort_by(|a, b| (b.bytes, &a.kind).cmp(&(a.bytes, &b.kind)));
        (scan, self.probe)
    }

    fn finish_tools(&mut self) {
        let mut tools: HashMap<&str, ToolTotal> = HashMap::new();
        let mut outputs: Vec<(u64, Place, usize)> = Vec::new();
        let pairs: Vec<(&str, &Pair)> = self.pairs.iter().map(|(id, p)| (&**id, p)).collect();
        for (i, (_, pair)) in pairs.iter().enumerate() {
            let tool = pair.tool.as_deref().unwrap_or("?");
            let total = tools.entry(tool).or_insert_with(|| ToolTotal {
                tool: tool.to_owned(),
                calls: 0,
                input_bytes: 0,
                output_bytes: 0,
            });
            total.calls += u64::from(pair.tool.is_some());
            total.input_bytes += pair.input;
            if let Some((bytes, place)) = pair.result {
                total.output_bytes += bytes;
                outputs.push((bytes, place, i));
            }
        }
        outputs.sort_by_key(|(bytes, place, _)| (std::cmp::Reverse(*bytes), place.offset));
        outputs.truncate(self.largest);
        let ids: Vec<&str> = pairs.iter().map(|(id, _)| *id).collect();
        let keys = call_keys(&ids);
        let session = self.scan.session.as_deref().map(session_part);
        self.scan.largest = outputs
            .into_iter()
            .map(|(bytes, place, i)| Output {
                address: session
                    .as_ref()
                    .zip(keys[i].as_ref())
                    .map(|(session, key)| format!("{session}:{key}")),
                tool: pairs[i].1.tool.as_deref().unwrap_or("?").to_owned(),
                bytes,
                line: place.line.unwrap_or(0),
                offset: place.offset,
            })
            .collect();
        self.scan.tools = tools.into_values().collect();
        self.scan
            .tools
            .sort_by(|a, b| (b.output_bytes, &a.tool).cmp(&(a.output_bytes, &b.tool)));
    }
}
