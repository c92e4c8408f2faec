//! Codex: no hook of it can shorten a request, but one can stop a prompt before it is sent.

use std::path::Path;

use ctxfold_compactor::idle::{IdleSettings, Verdict, decide};
use ctxfold_transcript::Author;

use super::{facts, newest, settings};
use crate::agent::{self, Agent, Conversation, Place};
use crate::commands::Context;
use crate::config::Config;
use crate::env::Env;
use crate::{files, output};

/// Most pauses that are remembered.
const MOST: usize = 200;

/// Why a prompt to a paused thread is stopped, and what to do instead; `None` when it may go on.
/// It is stopped once a pause: who sends it again wants it so.
pub(crate) fn stop(env: &Env, rollout: &Path) -> Option<String> {
    let config = Config::read(env).ok()?;
    if !config.switch("idle.codex-stop") {
        return None;
    }
    let place = Place::codex(env, rollout.to_owned());
    let cx = Context {
        env: env.clone(),
        config,
        quiet: true,
    };
    let conversation = Conversation::open(&place, None).ok()?;
    let mut facts = facts(&cx, &conversation).ok()?;
    // The prompt itself may be in the file already; the client that asks is the one that is live.
    let answered = newest(conversation.transcript(), |m| {
        matches!(m.author, Author::Assistant | Author::Tool)
    })?;
    facts.last_activity_ms = Some(answered);
    facts.is_live = false;
    let settings = IdleSettings {
        enabled: true,
        ..settings(&cx.config, Agent::Codex)
    };
    let decision = decide(&facts, &settings);
    if matches!(decision.verdict, Verdict::Leave(_)) {
        return None;
    }
    let id = conversation.about().id;
    if !first_time(&env.state_dir.join("idle-stops"), &id, answered) {
        return None;
    }
    let ago = u64::try_from(facts.now_ms - answered).unwrap_or(0) / 1000;
    Some(format!(
        "ctxfold: this thread paused for {}, so its {} tokens are not cached any more. Quit and run \
         `ctxfold resume {}` to go on with a shorter one, or send the prompt again as it is.",
        output::age(ago),
        output::tokens(facts.live_tokens),
        agent::codex_short(&id),
    ))
}

/// Whether nothing was said of this pause yet. When that cannot be kept, nothing is said.
fn first_time(path: &Path, id: &str, answered_ms: i64) -> bool {
    let line = format!("{id} {answered_ms}");
    let Ok(text) = files::read_small(path) else {
        return false;
    };
    let text = text.unwrap_or_default();
    let mut lines: Vec<&str> = text.lines().collect();
    if lines.contains(&line.as_str()) {
        return false;
    }
    lines.push(&line);
    let newest = &lines[lines.len().saturating_sub(MOST)..];
    files::write_private(path, &(newest.join("\n") + "\n")).is_ok()
}
