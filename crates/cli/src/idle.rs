//! Idle compaction: what is known of a paused conversation, the policy's word on it, and the
//! compaction itself. The policy is the compactor's; the ways in are `resume`, `idle run`,
//! `idle watch` and the mod.

use ctxfold_compactor::idle::{
    CacheLife, IdleDecision, IdleFacts, IdleSettings, MinSize, SUMMARY_CHARS, Verdict, decide,
    shorten,
};
use ctxfold_transcript::{Author, Mode, Plan, Transcript};

use crate::agent::{self, Agent, Conversation, Place};
use crate::commands::Context;
use crate::config::{Config, Size};
use crate::engine::{self, Made, Wish};
use crate::error::CommandResult;
use crate::journal::{Done, Journal};

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

/// What is known of a conversation, without a plan.
pub(crate) fn facts(cx: &Context, conversation: &Conversation) -> CommandResult<IdleFacts> {
    let transcript = conversation.transcript();
    let pause = agent::pause(conversation.place())?;
    let scale = transcript.scale();
    let bytes = transcript.bytes();
    Ok(IdleFacts {
        now_ms: cx.env.now_ms(),
        last_activity_ms: last_activity(transcript).or(pause.active_ms),
        last_compaction_ms: conversation.about().compacted_ms,
        live_bytes: bytes,
        live_tokens: scale.tokens(bytes) + scale.outside(),
        tokens_after: None,
        cache: pause.cache_ms.map_or(CacheLife::Unknown, CacheLife::Known),
        is_live: agent::live_pid(&cx.env, conversation.place(), &conversation.about().id)?
            .is_some(),
    })
}

/// The newest word of user, model or tool: a compaction is no activity.
fn last_activity(transcript: &Transcript) -> Option<i64> {
    let said = |m: &&ctxfold_transcript::Message| {
        matches!(m.author, Author::User | Author::Assistant | Author::Tool)
    };
    transcript
        .messages
        .iter()
        .filter(said)
        .filter_map(|m| m.at_ms)
        .max()
}

/// What was done with a conversation, and why.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The policy's word and the costs.
    pub(crate) decision: IdleDecision,
    /// The line of the compaction, where one was done.
    pub(crate) done: Option<String>,
}

/// Compacts a conversation if the policy says so.
pub(crate) fn visit(
    cx: &Context,
    place: &Place,
    settings: &IdleSettings,
) -> CommandResult<Outcome> {
    let conversation = Conversation::open(place, cx.config.size("window").map(Size::number))?;
    let mut facts = facts(cx, &conversation)?;
    let decision = decide(&facts, settings);
    if matches!(decision.verdict, Verdict::Leave(_)) {
        return Ok(Outcome {
            decision,
            done: None,
        });
    }
    // A model is asked only after the rules alone were found to be worth it or not to suffice.
    let (made, wish) = match plan(cx, conversation.transcript(), settings) {
        Ok(made) => made,
        Err(error) if error.code() == crate::exit::REFUSED => {
            facts.tokens_after = Some(facts.live_tokens);
            return Ok(Outcome {
                decision: decide(&facts, settings),
                done: None,
            });
        }
        Err(error) => return Err(error),
    };
    facts.tokens_after = Some(made.plan.after.tokens + conversation.transcript().scale().outside());
    let decision = decide(&facts, settings);
    if matches!(decision.verdict, Verdict::Leave(_)) {
        return Ok(Outcome {
            decision,
            done: None,
        });
    }
    let ready = conversation.prepare(&cx.env, &made.plan, false)?;
    let journal = Journal::new(&cx.env.state_dir);
    let mode = made.plan.mode.name();
    crate::commands::write(cx, &journal, &conversation, ready, mode, |id, w| {
        let mut done = Done::of(id, w.len_after, &w.sha256, &made.plan);
        if let Some(usage) = made.usage {
            done.model = Some(wish.model.clone());
            done.model_in = usage.input_tokens;
            done.model_out = usage.output_tokens;
        }
        done
    })?;
    Ok(Outcome {
        decision,
        done: Some(made.line(&wish)),
    })
}

/// With a model that was named: a short summary. Without one, or when it fails: rules.
fn plan(
    cx: &Context,
    transcript: &Transcript,
    settings: &IdleSettings,
) -> CommandResult<(Made, Wish)> {
    let mut wish = Wish::of(&cx.config);
    wish.progress = !cx.quiet;
    let by_rules =
        |keep: usize| -> CommandResult<Plan> { Ok(shorten(transcript, keep, settings.min_gain)?) };
    let Some(model) = cx.config.maybe("idle.model") else {
        let plan = by_rules(wish.mask.keep_recent)?;
        return Ok((
            Made {
                plan,
                usage: None,
                fallback: None,
                secrets: 0,
            },
            wish,
        ));
    };
    wish.mode = Mode::Summary;
    model.clone_into(&mut wish.model);
    wish.max_chars = Some(SUMMARY_CHARS);
    wish.fallback = false;
    match engine::plan(&cx.env, &cx.config, transcript, &wish) {
        Ok(made) => Ok((made, wish)),
        Err(error) => {
            let plan = by_rules(wish.mask.keep_recent)?;
            let reason = error.to_string();
            let reason = reason.lines().next().unwrap_or_default().to_owned();
            Ok((
                Made {
                    plan,
                    usage: None,
                    fallback: Some(reason),
                    secrets: 0,
                },
                wish,
            ))
        }
    }
}
