//! `ctxfold inspect`: a picture of a context, or of a whole file.

use std::collections::BTreeMap;

use ctxfold_session_claude as claude;
use ctxfold_session_codex as codex;
use ctxfold_transcript::{Author, Content, Part, Transcript};
use serde::Serialize;

use super::{Context, Which};
use crate::agent::{self, About, Agent};
use crate::config::Size;
use crate::error::CommandResult;
use crate::{env, output};

/// Show what fills a context
///
/// Bars by kind and by tool, the largest outputs with the addresses that read them, and how the
/// fill grew. Sizes in tokens are estimates, scaled so that all parts add up to the fill that the
/// provider counted.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,

    /// Scan the whole file, what was compacted included
    #[arg(long, short)]
    all: bool,

    /// How many of the largest outputs to name
    #[arg(long, default_value_t = 10)]
    largest: usize,

    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// What a context holds. Format version 1.
#[derive(Debug, Serialize)]
struct Picture {
    v: u32,
    id: String,
    #[serde(skip)]
    short: String,
    title: Option<String>,
    model: Option<String>,
    file_bytes: u64,
    messages: usize,
    bytes: u64,
    fill_tokens: Option<u64>,
    fill_is_stale: bool,
    window_tokens: Option<u64>,
    /// Tokens outside the conversation: system prompt and tool definitions.
    outside_tokens: u64,
    kinds: Vec<Share>,
    tools: Vec<Share>,
    largest: Vec<Large>,
    findings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Share {
    name: String,
    count: usize,
    bytes: u64,
    tokens: u64,
}

#[derive(Debug, Serialize)]
struct Large {
    address: String,
    label: String,
    bytes: u64,
    tokens: u64,
}

impl Args {
    pub(crate) fn run(self, cx: &Context) -> CommandResult {
        let place = agent::locate(&cx.env, self.which.session.as_deref(), self.which.agent)?;
        if self.all {
            return self.scan(cx, &place);
        }
        let window = cx.config.size("window").map(Size::number);
        let conversation = cx.open(&place, window)?;
        let picture = picture(
            conversation.transcript(),
            conversation.about(),
            conversation.short_id(),
            conversation.findings(),
            self.largest,
        );
        if self.json {
            return output::json(&picture);
        }
        output::data(&draw(&picture))
    }

    fn scan(&self, cx: &Context, place: &agent::Place) -> CommandResult {
        if place.agent == Agent::Codex {
            let shown = cx.reading(place);
            let scan = codex::scan(&place.path)?;
            drop(shown);
            if self.json {
                return output::json(&rollout_json(&scan));
            }
            return output::data(&draw_rollout(&scan, self.largest));
        }
        let mut options = claude::ScanOptions::default();
        options.largest = self.largest;
        let shown = cx.reading(place);
        let scan = claude::scan(&place.path, &options, &mut |done, of| shown.at(done, of))?;
        drop(shown);
        if self.json {
            return output::json(&scan_json(&scan));
        }
        output::data(&draw_scan(&scan))
    }
}

fn picture(
    transcript: &Transcript,
    about: About,
    short: String,
    findings: Vec<String>,
    largest: usize,
) -> Picture {
    let scale = transcript.scale();
    let mut kinds: BTreeMap<&'static str, (usize, u64)> = BTreeMap::new();
    let mut tools: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    let mut outputs = Vec::new();
    for message in &transcript.messages {
        for block in &message.blocks {
            let kind = kind(message.author, &block.content);
            let entry = kinds.entry(kind).or_default();
            entry.0 += 1;
            entry.1 += block.bytes;
            let call = match &block.content {
                Content::ToolCall(call) => Some(*call),
                Content::ToolResult { call, .. } => *call,
                _ => None,
            };
            if let Some(call) = call.and_then(|i| transcript.calls.get(i)) {
                let entry = tools.entry(&call.tool).or_default();
                entry.0 += usize::from(matches!(block.content, Content::ToolCall(_)));
                entry.1 += block.bytes;
                if matches!(block.content, Content::ToolResult { .. }) {
                    outputs.push((block.bytes, call.address.clone(), call.label.clone()));
                }
            }
            if let Content::Attachment {
                kind,
                name,
                address,
                ..
            } = &block.content
            {
                outputs.push((
                    block.bytes,
                    address.clone(),
                    name.clone().unwrap_or_else(|| kind.clone()),
                ));
            }
        }
    }
    outputs.sort_by_key(|(bytes, ..)| std::cmp::Reverse(*bytes));
    outputs.truncate(largest);
    let shares = |of: Vec<(String, (usize, u64))>| {
        let mut of: Vec<_> = of
            .into_iter()
            .map(|(name, (count, bytes))| Share {
                name,
                count,
                bytes,
                tokens: scale.tokens(bytes),
            })
            .collect();
        of.sort_by_key(|s| std::cmp::Reverse(s.bytes));
        of
    };
    Picture {
        v: 1,
        id: about.id,
        short,
        title: about.title,
        model: about.model,
        file_bytes: about.file_bytes,
        messages: transcript.messages.len(),
        bytes: transcript.bytes(),
        fill_tokens: transcript.fill.map(|f| f.tokens),
        fill_is_stale: transcript.fill.is_some_and(|f| f.stale),
        window_tokens: transcript.fill.and_then(|f| f.window),
        outside_tokens: scale.outside(),
        kinds: shares(kinds.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
        tools: shares(tools.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
        largest: outputs
            .into_iter()
            .map(|(bytes, address, label)| Large {
                address,
                label,
                bytes,
                tokens: scale.tokens(bytes),
            })
            .collect(),
        findings,
    }
}

fn kind(author: Author, content: &Content) -> &'static str {
    match (author, content) {
        (_, Content::Thinking) => "thinking",
        (_, Content::ToolCall(_)) => "tool calls",
        (_, Content::ToolResult { parts, .. }) => {
            if parts.iter().any(|p| matches!(p, Part::Image(_))) {
                "tool images"
            } else {
                "tool outputs"
            }
        }
        (_, Content::Image(_)) => "images",
        (_, Content::Attachment { .. }) => "attachments",
        (Author::User, _) | (_, Content::Said(_)) => "user words",
        (Author::Assistant, _) => "assistant words",
        (Author::Summary, _) => "earlier summary",
        (Author::Client, _) => "client's own",
        _ => "other",
    }
}

fn draw(p: &Picture) -> String {
    let width = env::columns();
    let mut out = String::new();
    let title = p.title.as_deref().unwrap_or("(no title)");
    out.push_str(&format!(
        "{}  {}\n",
        output::styled(output::BOLD, &p.short),
        output::cut(title, width - 12)
    ));
    match (p.fill_tokens, p.window_tokens) {
        (Some(tokens), Some(window)) => {
            let share = tokens as f64 / window as f64;
            let style = if share >= 0.8 {
                output::BAD
            } else if share >= 0.6 {
                output::WARN
            } else {
                output::GOOD
            };
            let text = format!(
                "{} of {} tokens ({}){}",
                output::percent(share),
                output::tokens(window),
                output::tokens(tokens),
                if p.fill_is_stale {
                    ", before the last compaction"
                } else {
                    ""
                }
            );
            let cells = width.saturating_sub(text.len() + 1).clamp(4, 30);
            out.push_str(&format!(
                "{} {text}\n",
                output::styled(style, &output::bar(share, cells))
            ));
        }
        _ => out.push_str("the client has not recorded a fill yet; tokens are estimates\n"),
    }
    out.push_str(&format!(
        "{} messages · {} in the request · {} in the file\n",
        p.messages,
        output::bytes(p.bytes),
        output::bytes(p.file_bytes)
    ));
    let inside = p.kinds.iter().map(|k| k.tokens);
    let total = inside.fold(p.outside_tokens, u64::saturating_add).max(1);
    out.push_str("\nby kind\n");
    let mut rows: Vec<(&str, u64, String)> = p
        .kinds
        .iter()
        .map(|k| (k.name.as_str(), k.tokens, format!("{}×", k.count)))
        .collect();
    if p.outside_tokens > 0 {
        rows.push(("system and tools", p.outside_tokens, String::new()));
    }
    for (name, tokens, count) in rows {
        out.push_str(&share_line(name, tokens, total, &count, width));
    }
    if !p.tools.is_empty() {
        out.push_str("\nby tool\n");
        for tool in &p.tools {
            out.push_str(&share_line(
                &tool.name,
                tool.tokens,
                total,
                &format!("{}×", tool.count),
                width,
            ));
        }
    }
    if !p.largest.is_empty() {
        out.push_str("\nlargest outputs\n");
        let longest = p
            .largest
            .iter()
            .map(|l| l.address.chars().count())
            .max()
            .unwrap_or(0);
        for large in &p.largest {
            out.push_str(&format!(
                "  {:>5}  {:<longest$}  {}\n",
                output::tokens(large.tokens),
                large.address,
                output::cut(&large.label, width.saturating_sub(longest + 12))
            ));
        }
        out.push_str("  read one with `ctxfold unfold ADDRESS`\n");
    }
    for finding in &p.findings {
        out.push_str(&format!("{}\n", output::styled(output::WARN, finding)));
    }
    out
}

fn share_line(name: &str, tokens: u64, total: u64, count: &str, width: usize) -> String {
    let share = tokens as f64 / total as f64;
    let bar = output::bar(share, width.saturating_sub(44).clamp(10, 40));
    format!(
        "  {:<18} {bar} {:>3.0}%  {:>5}  {count}\n",
        output::cut(name, 18),
        share * 100.0,
        output::tokens(tokens)
    )
}

fn scan_json(scan: &claude::Scan) -> serde_json::Value {
    serde_json::json!({
        "v": 1,
        "id": scan.session,
        "bytes": scan.bytes,
        "lines": scan.lines,
        "rows": scan.rows,
        "kinds": scan.kinds.iter().map(|k| serde_json::json!({"kind": k.kind, "known": k.known, "rows": k.rows, "bytes": k.bytes})).collect::<Vec<_>>(),
        "tools": scan.tools.iter().map(|t| serde_json::json!({"tool": t.tool, "calls": t.calls, "input_bytes": t.input_bytes, "output_bytes": t.output_bytes})).collect::<Vec<_>>(),
        "largest": scan.largest.iter().map(|o| serde_json::json!({"address": o.address, "tool": o.tool, "bytes": o.bytes, "line": o.line, "offset": o.offset})).collect::<Vec<_>>(),
        "turns": scan.turns.iter().map(|t| serde_json::json!({"line": t.line, "at_ms": t.at_ms, "context_tokens": t.context, "output_tokens": t.output})).collect::<Vec<_>>(),
        "compactions": scan.compactions.iter().map(|c| serde_json::json!({"line": c.line, "offset": c.offset, "at_ms": c.at_ms, "trigger": c.trigger, "before_tokens": c.before, "after_tokens": c.after})).collect::<Vec<_>>(),
        "findings": scan.findings.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn draw_scan(scan: &claude::Scan) -> String {
    let width = env::columns();
    let total = scan.bytes.max(1);
    let mut out = format!(
        "{}  {} · {} lines · {} rows\n",
        output::styled(output::BOLD, scan.session.as_deref().unwrap_or("?")),
        output::bytes(scan.bytes),
        scan.lines,
        scan.rows
    );
    let line = |name: &str, bytes: u64, count: &str| {
        let share = bytes as f64 / total as f64;
        let bar = output::bar(share, width.saturating_sub(58).clamp(10, 40));
        format!(
            "  {:<28} {bar} {:>3.0}%  {:>9}  {count}\n",
            output::cut(name, 28),
            share * 100.0,
            output::bytes(bytes)
        )
    };
    out.push_str("\nrows by kind\n");
    for kind in &scan.kinds {
        let name = if kind.known {
            kind.kind.clone()
        } else {
            format!("{} (unknown)", kind.kind)
        };
        out.push_str(&line(&name, kind.bytes, &format!("{}×", kind.rows)));
    }
    if !scan.tools.is_empty() {
        out.push_str("\ntools\n");
        for tool in &scan.tools {
            out.push_str(&line(
                &tool.tool,
                tool.input_bytes + tool.output_bytes,
                &format!("{}×", tool.calls),
            ));
        }
    }
    if !scan.largest.is_empty() {
        out.push_str("\nlargest outputs\n");
        for large in &scan.largest {
            out.push_str(&format!(
                "  {:>9}  {:<20}  {} (line {})\n",
                output::bytes(large.bytes),
                large.address.as_deref().unwrap_or("-"),
                large.tool,
                large.line
            ));
        }
    }
    if !scan.turns.is_empty() {
        let fills: Vec<u64> = scan.turns.iter().map(|t| t.context).collect();
        out.push_str(&format!(
            "\nfill over {} answers, at most {} tokens\n  {}\n",
            fills.len(),
            output::tokens(fills.iter().copied().max().unwrap_or(0)),
            output::sparkline(&output::sample(&fills, width.saturating_sub(4)))
        ));
    }
    for c in &scan.compactions {
        let part = |n: Option<u64>| n.map_or("?".to_owned(), output::tokens);
        out.push_str(&format!(
            "  compaction at line {}: {} → {} tokens ({})\n",
            c.line,
            part(c.before),
            part(c.after),
            c.trigger.as_deref().unwrap_or("?")
        ));
    }
    for finding in &scan.findings {
        out.push_str(&format!(
            "{}\n",
            output::styled(output::WARN, &finding.to_string())
        ));
    }
    out
}

fn rollout_json(scan: &codex::Scan) -> serde_json::Value {
    let sum = |s: &codex::Sum| serde_json::json!({"count": s.count, "bytes": s.bytes});
    let named = |of: &BTreeMap<String, codex::Sum>| {
        of.iter()
            .map(|(name, s)| (name.clone(), sum(s)))
            .collect::<serde_json::Map<_, _>>()
    };
    serde_json::json!({
        "v": 1,
        "lines": sum(&scan.lines),
        "kinds": named(&scan.by_kind),
        "tools": named(&scan.by_tool),
        "largest": scan.largest.iter().map(|l| serde_json::json!({"address": l.address, "label": l.label, "bytes": l.bytes})).collect::<Vec<_>>(),
        "compacted": sum(&scan.compacted),
        "images": sum(&scan.images),
        "unique_images": sum(&scan.unique_images),
        "findings": scan.findings().iter().map(|f| serde_json::json!({"code": f.code, "message": f.message})).collect::<Vec<_>>(),
    })
}

fn draw_rollout(scan: &codex::Scan, largest: usize) -> String {
    let width = env::columns();
    let total = scan.lines.bytes.max(1);
    let mut out = format!(
        "{} in {} lines\n",
        output::bytes(scan.lines.bytes),
        scan.lines.count
    );
    let mut section = |title: &str, of: &BTreeMap<String, codex::Sum>| {
        let mut rows: Vec<_> = of.iter().collect();
        rows.sort_by_key(|(_, s)| std::cmp::Reverse(s.bytes));
        out.push_str(&format!("\n{title}\n"));
        for (name, s) in rows {
            let share = s.bytes as f64 / total as f64;
            let bar = output::bar(share, width.saturating_sub(58).clamp(10, 40));
            out.push_str(&format!(
                "  {:<28} {bar} {:>3.0}%  {:>9}  {}×\n",
                output::cut(name, 28),
                share * 100.0,
                output::bytes(s.bytes),
                s.count
            ));
        }
    };
    section("lines by kind", &scan.by_kind);
    section("outputs by tool", &scan.by_tool);
    out.push_str("\nlargest outputs\n");
    for large in scan.largest.iter().take(largest) {
        out.push_str(&format!(
            "  {:>9}  {}  {}\n",
            output::bytes(large.bytes),
            large.address,
            output::cut(&large.label, 60)
        ));
    }
    out.push_str(&format!(
        "\n{} compactions hold {}; {} images hold {}, {} of them different ({})\n",
        scan.compacted.count,
        output::bytes(scan.compacted.bytes),
        scan.images.count,
        output::bytes(scan.images.bytes),
        scan.unique_images.count,
        output::bytes(scan.unique_images.bytes)
    ));
    for finding in scan.findings() {
        out.push_str(&format!(
            "{}\n",
            output::styled(
                output::WARN,
                &format!("{}: {}", finding.code, finding.message)
            )
        ));
    }
    out
}
