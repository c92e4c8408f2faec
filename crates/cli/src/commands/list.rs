//! `ctxfold list`.

use std::time::Duration;

use ctxfold_compactor::idle::{IdleSettings, RequestTokens};
use ctxfold_session_claude as claude;
use ctxfold_session_codex as codex;

use super::Context;
use crate::agent::{self, Agent, Conversation, Place};
use crate::config::Size;
use crate::error::CommandResult;
use crate::{env, idle, output};

/// List sessions with age, size and fill
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Sessions of every folder, not of this one alone
    #[arg(long, short)]
    all: bool,

    /// Only those that nobody used for this long, for example 15m, 3h or 2d
    #[arg(long, value_name = "AGE", value_parser = age)]
    idle: Option<Duration>,

    /// Only files of at least this size, for example 2MB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    min_size: Option<u64>,

    /// Only one agent's
    #[arg(long, value_enum)]
    agent: Option<Agent>,

    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// When somebody last used a conversation that was compacted since: what ctxfold appended is no use
/// of it. The same clock as for idle compaction.
fn used_ms(place: &Place) -> Option<i64> {
    let conversation = Conversation::open(place, None).ok()?;
    idle::last_activity(&conversation).ok().flatten()
}

/// A span of time such as `15m`.
pub(crate) fn age(text: &str) -> Result<Duration, String> {
    let bad = || format!("{text} is no span of time such as 15m, 3h or 2d");
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?);
    let seconds = match unit {
        "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(bad()),
    };
    let number: u64 = number.parse().map_err(|_| bad())?;
    Ok(Duration::from_secs(number.saturating_mul(seconds)))
}

fn size(text: &str) -> Result<u64, String> {
    Size::parse(text)
        .map(Size::number)
        .ok_or_else(|| format!("{text} is no size such as 2MB"))
}

/// One line of the list, whatever the agent.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Item {
    pub(crate) agent: &'static str,
    /// The part of the identifier that people type.
    pub(crate) short: String,
    pub(crate) id: String,
    pub(crate) path: std::path::PathBuf,
    pub(crate) cwd: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) last_prompt: Option<String>,
    pub(crate) active_ms: Option<i64>,
    pub(crate) bytes: u64,
    pub(crate) fill_tokens: Option<u64>,
    pub(crate) window_tokens: Option<u64>,
    pub(crate) model: Option<String>,
    pub(crate) live_pid: Option<u32>,
    /// What the next request would hold, with `--idle`.
    pub(crate) next: Option<Next>,
    /// `archived`, `compressed` or `missing`, where a thread is.
    pub(crate) state: Option<&'static str>,
}

/// The next request of a conversation, in tokens and, where the user gave prices, in money.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Next {
    cached: u64,
    uncached: u64,
    cost: Option<f64>,
}

impl Next {
    /// Of a conversation whose context holds so many tokens.
    fn of(cx: &Context, place: &Place, tokens: u64) -> Option<Next> {
        let pause = agent::pause(place).ok()?;
        let life = pause.cache_ms.unwrap_or(IdleSettings::default().cache_ms);
        let ends = pause.active_ms?.saturating_add_unsigned(life);
        let is_warm = ends > cx.env.now_ms() && !pause.is_compacted;
        let (cached, uncached) = if is_warm { (tokens, 0) } else { (0, tokens) };
        let cost = idle::price(&cx.config);
        Some(Next {
            cached,
            uncached,
            cost: cost.map(|price| RequestTokens { cached, uncached }.cost(price)),
        })
    }

    fn words(&self) -> String {
        let tokens = output::tokens(self.cached + self.uncached);
        let state = if self.cached > 0 { "warm" } else { "cold" };
        let cost = self.cost.map(|c| format!(" {c:.2}")).unwrap_or_default();
        format!("  next {tokens:>5} {state}{cost}")
    }
}

impl Args {
    pub(crate) fn run(self, cx: &Context) -> CommandResult {
        let items = self.items(cx)?;
        if self.json {
            return output::json(&serde_json::json!({"v": 1, "sessions": items}));
        }
        if items.is_empty() {
            cx.say(if self.all {
                "ctxfold: no session was found"
            } else {
                "ctxfold: no session of this folder was found; --all lists every folder's"
            });
            return Ok(());
        }
        let mut text = String::new();
        for item in &items {
            text.push_str(&self.line(cx, item));
        }
        output::data(&text)
    }

    fn items(&self, cx: &Context) -> CommandResult<Vec<Item>> {
        let mut items = Vec::new();
        if self.agent != Some(Agent::Codex) {
            let mut filter = claude::Filter::default();
            filter.cwd = (!self.all).then(|| cx.env.cwd.clone());
            filter.min_size = self.min_size.unwrap_or(0);
            let store = claude::Store::new(&cx.env.claude_root);
            items.extend(
                store
                    .list(&filter, &claude::SystemProcesses)?
                    .into_iter()
                    .map(|s| Item {
                        active_ms: s
                            .fill
                            .filter(|fill| fill.stale)
                            .and_then(|_| used_ms(&Place::claude(s.path.clone())))
                            .or(s.active_ms),
                        agent: Agent::Claude.name(),
                        window_tokens: s.fill.map(|f| {
                            f.window.unwrap_or_else(|| {
                                agent::assumed_window(s.model.as_deref(), f.tokens)
                            })
                        }),
                        fill_tokens: s.fill.map(|f| f.tokens),
                        short: agent::short(&s.id).to_owned(),
                        id: s.id,
                        path: s.path,
                        cwd: s.cwd,
                        title: s.title,
                        last_prompt: s.last_prompt,
                        bytes: s.size,
                        model: s.model,
                        live_pid: s.live.map(|l| l.pid),
                        next: None,
                        state: None,
                    }),
            );
        }
        if self.agent != Some(Agent::Claude) && cx.env.codex_home.is_dir() {
            items.extend(self.threads(cx));
        }
        if let Some(idle) = self.idle {
            // The future is no pause, nor is what nobody dated.
            let pause = |item: &Item| u64::try_from(cx.env.now_ms() - item.active_ms?).ok();
            items.retain(|i| pause(i).is_some_and(|ms| u128::from(ms) >= idle.as_millis()));
        }
        items.sort_by_key(|i| std::cmp::Reverse(i.active_ms));
        if self.idle.is_some() {
            for item in &mut items {
                let path = item.path.clone();
                let place = if item.agent == Agent::Claude.name() {
                    Place::claude(path)
                } else {
                    Place::codex(&cx.env, path)
                };
                item.next = item.fill_tokens.and_then(|n| Next::of(cx, &place, n));
            }
        }
        Ok(items)
    }

    /// The threads of Codex. Archived and compressed ones are named as such.
    fn threads(&self, cx: &Context) -> Vec<Item> {
        let store = codex::Store::new(&cx.env.codex_home);
        let (entries, findings) = store.entries();
        for finding in findings {
            cx.say(&format!("ctxfold: {}: {}", finding.code, finding.message));
        }
        let wanted = entries.into_iter().filter(|e| {
            (self.all || e.cwd.as_deref() == Some(&cx.env.cwd))
                && e.bytes >= self.min_size.unwrap_or(0)
        });
        wanted
            .map(|e| {
                let fill = codex::fill(&e.path).ok().flatten();
                let used = fill
                    .filter(|fill| fill.stale)
                    .and_then(|_| used_ms(&Place::codex(&cx.env, e.path.clone())))
                    .unwrap_or(e.updated_ms);
                let state = if e.missing {
                    Some("missing")
                } else if e.archived {
                    Some("archived")
                } else if e.compressed {
                    Some("compressed")
                } else {
                    None
                };
                Item {
                    agent: Agent::Codex.name(),
                    short: agent::codex_short(&e.id).to_owned(),
                    id: e.id,
                    path: e.path,
                    cwd: e.cwd.map(|c| c.to_string_lossy().into_owned()),
                    title: e.title,
                    last_prompt: None,
                    active_ms: Some(used),
                    bytes: e.bytes,
                    fill_tokens: fill.map(|f| f.tokens),
                    window_tokens: fill.and_then(|f| f.window),
                    model: None,
                    live_pid: None,
                    next: None,
                    state,
                }
            })
            .collect()
    }

    fn line(&self, cx: &Context, item: &Item) -> String {
        let age = item.active_ms.map_or_else(
            || "?".to_owned(),
            |ms| output::age(u64::try_from(cx.env.now_ms().saturating_sub(ms) / 1000).unwrap_or(0)),
        );
        let columns = env::columns();
        // A narrow terminal has the numbers and no bar.
        let cells = if columns < 90 { 0 } else { 8 };
        let fill = match (item.fill_tokens, item.window_tokens) {
            (Some(tokens), Some(window)) => {
                let share = tokens as f64 / window as f64;
                format!(
                    "{} {:>4} {:>5}",
                    output::bar(share, cells),
                    output::percent(share),
                    output::tokens(tokens)
                )
            }
            _ => " ".repeat(cells + 11),
        };
        let next = item.next.as_ref().map(Next::words).unwrap_or_default();
        let live = if item.live_pid.is_some() {
            output::styled(output::GOOD, "live")
        } else {
            format!("{:4}", item.state.unwrap_or_default())
        };
        let title = item
            .title
            .as_deref()
            .or(item.last_prompt.as_deref())
            .unwrap_or("(no title)");
        // What stands before the title: identifier, agent, age, size, fill, state and the gaps.
        let before = 8 + 2 + 6 + 1 + 7 + 2 + 9 + 2 + fill.chars().count() + 2 + 4;
        let room = columns.saturating_sub(before + next.chars().count() + 2);
        // With --all the folder tells sessions apart better than the end of a title does.
        let folder = item.cwd.as_ref().filter(|_| self.all && room >= 24);
        let folder = folder.map(|cwd| output::cut(&cx.env.show(cwd.as_ref()), room - 14));
        let taken = folder.as_ref().map_or(0, |f| f.chars().count() + 2);
        let title = output::cut(title, (room - taken.min(room)).clamp(4, 48));
        let folder = folder.map_or_else(String::new, |f| {
            format!("  {}", output::styled(output::DIM, &f))
        });
        format!(
            "{}  {:<6} {age:>7}  {:>9}  {fill}  {live}{next}  {}{folder}\n",
            output::styled(output::BOLD, &item.short),
            item.agent,
            output::bytes(item.bytes),
            title,
        )
    }
}
