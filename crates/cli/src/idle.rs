//! Idle compaction: what is known of a paused conversation, the policy's word on it, and the
//! compaction itself. The policy is the compactor's; the ways in are `resume`, `idle run`,
//! `idle watch` and the mod.

mod pass;
mod stop;
mod units;
mod watch;

pub(crate) use pass::{Pass, lock, name};
pub(crate) use stop::stop;
pub(crate) use units::units;
pub(crate) use watch::watch;

use std::fs::File;
use std::time::Duration;

use ctxfold_compactor::Refusal;
use ctxfold_compactor::idle::{
    CacheLife, Estimate, IdleDecision, IdleFacts, IdleSettings, MinSize, Price, RequestTokens,
    SUMMARY_CHARS, Verdict, decide, shorten,
};
use ctxfold_transcript::{Author, Message, Mode, Transcript};

use crate::agent::{self, Agent, Conversation, Place};
use crate::commands::Context;
use crate::config::{Config, Size};
use crate::engine::{self, Made, Wish};
use crate::error::{CommandError, CommandResult};
use crate::journal::Journal;
use crate::{exit, output};

/// How long one compaction waits for another of the same conversation.
const PATIENCE: Duration = Duration::from_secs(10);

/// The settings for one agent's conversations.
pub(crate) fn settings(config: &Config, agent: Agent) -> IdleSettings {
    let on = config.switch("idle.enabled");
    IdleSettings {
        enabled: match agent {
            Agent::Claude => on,
            Agent::Codex => on && config.switch("idle.codex"),
        },
        after_ms: config.number("idle.after").saturating_mul(60_000),
        min: match config.size("idle.min") {
            Some(Size::Plain(tokens)) => MinSize::Tokens(tokens),
            Some(Size::Bytes(bytes)) => MinSize::Bytes(bytes),
            None => IdleSettings::default().min,
        },
        ..IdleSettings::default()
    }
}

/// What has to be switched on before an agent's conversations are compacted; `None` when they are.
pub(crate) fn switched_off(config: &Config, agent: Agent) -> Option<String> {
    let of = |command: &'static str, name| (!config.switch(name)).then_some(command);
    let missing = [
        of("ctxfold idle on", "idle.enabled"),
        of("ctxfold idle codex on", "idle.codex").filter(|_| agent == Agent::Codex),
    ];
    let missing: Vec<_> = missing
        .into_iter()
        .flatten()
        .map(|command| format!("`{command}`"))
        .collect();
    let whose = match agent {
        Agent::Claude => "sessions of Claude Code",
        Agent::Codex => "threads of Codex",
    };
    (!missing.is_empty()).then(|| {
        format!(
            "idle compaction of {whose} is off; {} switches it on",
            missing.join(" with ")
        )
    })
}

/// What is known of a conversation, without a plan.
pub(crate) fn facts(cx: &Context, conversation: &Conversation) -> CommandResult<IdleFacts> {
    let transcript = conversation.transcript();
    let about = conversation.about();
    let pause = agent::pause(conversation.place())?;
    let scale = transcript.scale();
    let bytes = transcript.bytes();
    Ok(IdleFacts {
        now_ms: cx.env.now_ms(),
        last_activity_ms: last_activity(conversation)?,
        last_compaction_ms: about.compacted_ms,
        live_bytes: bytes,
        live_tokens: scale.tokens(bytes) + scale.outside(),
        tokens_after: None,
        cache: pause.cache_ms.map_or(CacheLife::Unknown, CacheLife::Known),
        is_live: conversation.is_live(&cx.env)?,
    })
}

/// When somebody last did something in it, in milliseconds since the Unix epoch. Behind a compaction
/// nothing may be dated; a file's own time is moved by our append.
pub(crate) fn last_activity(conversation: &Conversation) -> CommandResult<Option<i64>> {
    let dated = newest(conversation.transcript(), is_activity);
    match dated.or(conversation.about().compacted_ms) {
        Some(at) => Ok(Some(at)),
        None => Ok(agent::pause(conversation.place())?.active_ms),
    }
}

/// A word of user, model or tool: a compaction is no activity.
fn is_activity(message: &Message) -> bool {
    matches!(
        message.author,
        Author::User | Author::Assistant | Author::Tool
    )
}

/// The time of the newest message of some kind.
fn newest(transcript: &Transcript, kind: impl Fn(&Message) -> bool) -> Option<i64> {
    let messages = transcript.messages.iter().filter(|m| kind(m));
    messages.filter_map(|m| m.at_ms).max()
}

/// The policy's word and what the next request costs, by local rules alone; nothing is written.
pub(crate) fn look(
    cx: &Context,
    place: &Place,
    settings: &IdleSettings,
) -> CommandResult<IdleDecision> {
    let conversation = open(cx, place)?;
    let mut facts = facts(cx, &conversation)?;
    let decision = decide(&facts, settings);
    if matches!(decision.verdict, Verdict::Leave(_)) {
        return Ok(decision);
    }
    let transcript = conversation.transcript();
    let keep = Wish::of(&cx.config).mask.keep_recent;
    facts.tokens_after = Some(match shorten(transcript, keep, settings.min_gain) {
        Ok(plan) => plan.after.tokens + transcript.scale().outside(),
        Err(refusal) => without_plan(&facts, &refusal),
    });
    Ok(decide(&facts, settings))
}

/// The tokens that stay where no plan came about.
fn without_plan(facts: &IdleFacts, refusal: &Refusal) -> u64 {
    match refusal {
        Refusal::NothingToGain { gain, .. } => {
            (facts.live_tokens as f64 * (1.0 - gain.clamp(0.0, 1.0))) as u64
        }
        _ => facts.live_tokens,
    }
}

fn open(cx: &Context, place: &Place) -> CommandResult<Conversation> {
    cx.open(place, cx.config.size("window").map(Size::number))
}

/// What the next request costs, in a line.
pub(crate) fn costs(config: &Config, cost: &Estimate) -> String {
    let price = price(config);
    let money = |tokens: RequestTokens| {
        price.map_or_else(String::new, |p| format!(" (costs {:.4})", tokens.cost(p)))
    };
    let total = |t: RequestTokens| output::tokens(t.cached + t.uncached);
    let kept = if cost.without.cached > 0 {
        "still cached"
    } else {
        "not cached any more"
    };
    let mut line = format!(
        "the next request holds {} tokens, {kept}{}",
        total(cost.without),
        money(cost.without)
    );
    if let Some(with) = cost.with {
        line.push_str(&format!(
            "; compacted by local rules {}{}",
            total(with),
            money(with)
        ));
    }
    line
}

/// What the user pays, where both prices are set.
pub(crate) fn price(config: &Config) -> Option<Price> {
    Some(Price {
        cached: config.price("idle.price-cached")?,
        uncached: config.price("idle.price-uncached")?,
    })
}

/// What was done with a conversation, and why.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The policy's word and the costs.
    pub(crate) decision: IdleDecision,
    /// The line of the compaction, where one was done.
    pub(crate) done: Option<String>,
}

/// Compacts conversations one after the other.
#[derive(Debug, Default)]
pub(crate) struct Visitor {
    /// Why the model failed. It is not asked again, and the reason is said once.
    failed: Option<String>,
}

impl Visitor {
    /// Compacts a conversation if the policy says so.
    pub(crate) fn visit(
        &mut self,
        cx: &Context,
        place: &Place,
        settings: &IdleSettings,
    ) -> CommandResult<Outcome> {
        let _alone = alone(place)?;
        let conversation = open(cx, place)?;
        let mut facts = facts(cx, &conversation)?;
        let left = |decision| {
            Ok(Outcome {
                decision,
                done: None,
            })
        };
        let decision = decide(&facts, settings);
        if matches!(decision.verdict, Verdict::Leave(_)) {
            return left(decision);
        }
        conversation.refuse_live(&cx.env)?;
        let transcript = conversation.transcript();
        let (made, wish) = match self.plan(cx, transcript, settings)? {
            Ok(made) => made,
            Err(refusal) => {
                facts.tokens_after = Some(without_plan(&facts, &refusal));
                return match decide(&facts, settings) {
                    decision if matches!(decision.verdict, Verdict::Leave(_)) => left(decision),
                    _ => Err(refusal.into()),
                };
            }
        };
        facts.tokens_after = Some(made.plan.after.tokens + transcript.scale().outside());
        let decision = decide(&facts, settings);
        if matches!(decision.verdict, Verdict::Leave(_)) {
            return left(decision);
        }
        // A model takes its time; meanwhile the user may have gone on.
        if made.usage.is_some() && conversation.is_live(&cx.env)? {
            return Err(CommandError::refused("it was opened meanwhile"));
        }
        let ready = conversation.prepare(&cx.env, &made.plan, false)?;
        let journal = Journal::new(&cx.env.state_dir);
        let mode = made.plan.mode.name();
        crate::commands::write(cx, &journal, &conversation, ready, mode, |id, w| {
            made.done(&wish, id, w)
        })?;
        Ok(Outcome {
            decision,
            done: Some(made.line(&wish)),
        })
    }

    /// With a model that was named: a short summary. Without one, or when it fails: rules. The
    /// inner error is the rules' refusal.
    fn plan(
        &mut self,
        cx: &Context,
        transcript: &Transcript,
        settings: &IdleSettings,
    ) -> CommandResult<Result<(Made, Wish), Refusal>> {
        let mut wish = Wish::of(&cx.config);
        wish.progress = !cx.quiet;
        let (mut fallback, mut sent) = (None, false);
        if let Some(model) = cx.config.maybe("idle.model")
            && self.failed.is_none()
        {
            wish.mode = Mode::Summary;
            model.clone_into(&mut wish.model);
            wish.max_chars = Some(SUMMARY_CHARS);
            wish.fallback = false;
            match engine::plan(&cx.env, &cx.config, transcript, &wish) {
                Ok(made) => return Ok(Ok((made, wish))),
                Err(error) if error.is_interrupted() => return Err(error),
                Err(error) => {
                    let reason = error.to_string();
                    let reason = reason.lines().next().unwrap_or_default().to_owned();
                    // What is wrong with this conversation says nothing of the next.
                    if error.code() != exit::REFUSED {
                        self.failed = Some(reason.clone());
                    }
                    sent = error.was_sent();
                    fallback = Some(reason);
                }
            }
        }
        let plan = match shorten(transcript, wish.mask.keep_recent, settings.min_gain) {
            Ok(plan) => plan,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let made = Made {
            plan,
            usage: None,
            fallback,
            secrets: 0,
            sent,
        };
        Ok(Ok((made, wish)))
    }
}

/// Held while a conversation is compacted, so that two never do it: a lock on its own file, which
/// the clients do not use.
#[cfg(unix)]
fn alone(place: &Place) -> CommandResult<File> {
    use rustix::fs::{FlockOperation, flock};
    use rustix::io::Errno;

    let path = &place.path;
    // Neither a link is followed nor a pipe waited for.
    let file = crate::files::options().read(true).open(path);
    let file = file.map_err(|e| CommandError::io("open", path, &e))?;
    let step = Duration::from_millis(50);
    let mut waited = Duration::ZERO;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if waited < PATIENCE => {
                crate::interrupt::check()?;
                pause(step);
                waited += step;
            }
            Err(Errno::WOULDBLOCK) => {
                return Err(CommandError::refused("another ctxfold is compacting it"));
            }
            // A file system without locks leaves the comparison at the append.
            _ => return Ok(file),
        }
    }
}

#[cfg(not(unix))]
fn alone(place: &Place) -> CommandResult<File> {
    let path = &place.path;
    File::open(path).map_err(|e| CommandError::io("open", path, &e))
}

/// The one place that sleeps.
#[expect(
    clippy::disallowed_methods,
    reason = "waits for another process of ours"
)]
#[cfg(unix)]
fn pause(span: Duration) {
    std::thread::sleep(span);
}
