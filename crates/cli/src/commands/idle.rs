//! `ctxfold idle` and the mod's question. The policy's caller is `crate::idle`.

use std::time::Duration;

use clap::Subcommand;
use ctxfold_compactor::idle::{IdleSettings, Reason};

use super::Context;
use crate::agent::{self, Agent};
use crate::error::{CommandError, CommandResult};
use crate::idle::{self, Pass};
use crate::{config, env, interrupt, output};

/// Compact conversations that paused for so long that the provider's cache is gone
///
/// Off by default. Without a model the history is shortened by local rules and nothing leaves the
/// machine. A conversation whose cache is still warm is left alone: breaking it would cost more.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show the settings
    Status {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Switch idle compaction on
    On,
    /// Switch idle compaction off
    Off,
    /// Name the model that summarises, `default` for the usual one, `none` for local rules
    Model {
        /// Identifier of a Gemini model
        id: String,
    },
    /// Set the pause after which a conversation counts as idle
    After {
        /// Minutes
        minutes: u32,
    },
    /// Set the smallest conversation that is worth it
    Min {
        /// Bytes such as 64KB, or tokens such as 16k
        size: String,
    },
    /// Switch idle compaction of Codex threads on or off
    Codex {
        /// on or off
        #[arg(value_parser = ["on", "off"])]
        state: String,
    },
    /// Visit every session and thread once
    Run(Visit),
    /// Visit them again whenever their files change or time has passed
    Watch(Watch),
    /// Print units that run the visit by systemd, and a line for cron, for you to install
    Install {
        /// Print them; nothing is installed by itself
        #[arg(long, required = true)]
        print: bool,
    },
}

#[derive(Debug, clap::Args)]
struct Visit {
    /// Say what would be done, and stop
    #[arg(long, short = 'n')]
    dry_run: bool,

    /// Say of each conversation that is left alone why
    #[arg(long, short)]
    verbose: bool,

    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Watch {
    /// Seconds that two visits are at least apart
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    every: u64,

    /// Stop after this many visits
    #[arg(long, hide = true)]
    passes: Option<u64>,
}

impl Args {
    pub(crate) fn run(self, cx: &Context) -> CommandResult {
        let set = |name: &str, value: &str| -> CommandResult {
            config::edit(&cx.env, name, value)?;
            cx.say(&format!(
                "ctxfold: {name} = {}",
                if value.is_empty() { "none" } else { value }
            ));
            Ok(())
        };
        match self.action {
            Action::Status { json } => status(cx, json),
            Action::On => set("idle.enabled", "true"),
            Action::Off => set("idle.enabled", "false"),
            Action::Model { id } => match id.as_str() {
                "none" => set("idle.model", ""),
                "default" => set("idle.model", cx.config.text("gemini.model")),
                id => set("idle.model", id),
            },
            Action::After { minutes } => set("idle.after", &minutes.to_string()),
            Action::Min { size } => set("idle.min", &size),
            Action::Codex { state } => {
                set("idle.codex", if state == "on" { "true" } else { "false" })
            }
            Action::Run(args) => run(cx, &args),
            Action::Watch(args) => idle::watch(cx, Duration::from_secs(args.every), args.passes),
            Action::Install { print: _ } => install(),
        }
    }
}

fn status(cx: &Context, json: bool) -> CommandResult {
    let c = &cx.config;
    if json {
        return output::json(&serde_json::json!({
            "v": 1, "enabled": c.switch("idle.enabled"), "codex": c.switch("idle.codex"),
            "codex_stop": c.switch("idle.codex-stop"), "after_minutes": c.number("idle.after"),
            "min": c.text("idle.min"), "model": c.maybe("idle.model"),
            "price_cached": c.price("idle.price-cached"), "price_uncached": c.price("idle.price-uncached"),
        }));
    }
    let on = |name: &str| if c.switch(name) { "on" } else { "off" };
    output::data(&format!(
        "idle   {}\ncodex  {}\nstop   {}\nafter  {} min\nmin    {}\nprice  {}\nmodel  {}\n",
        on("idle.enabled"),
        on("idle.codex"),
        on("idle.codex-stop"),
        c.number("idle.after"),
        c.text("idle.min"),
        idle::price(c).map_or_else(
            || "not set; estimates show tokens".to_owned(),
            |p| format!("{} cached, {} anew, a million tokens", p.cached, p.uncached)
        ),
        c.maybe("idle.model")
            .unwrap_or("none (local rules, no network)"),
    ))
}

/// Prints how this very program is run by the clock, with the folders that it sees now.
fn install() -> CommandResult {
    let program = env::program()?;
    output::data(&idle::units(&program, &env::folders()))
}

fn run(cx: &Context, args: &Visit) -> CommandResult {
    // Who only looks may look while another one works.
    let _lock = (!args.dry_run).then(|| idle::lock(cx)).transpose()?;
    interrupt::arm(|| {})?;
    let pass = Pass::new(usize::MAX);
    let mut pass = if args.json { pass.silent() } else { pass };
    let report = pass.go(cx, args.dry_run)?;
    let ended = || {
        if report.interrupted {
            let text = "interrupted; what was compacted stays so, the rest is as it was";
            return Err(CommandError::model(text));
        }
        Ok(())
    };
    if args.json {
        output::json(&serde_json::json!({"v": 1, "dry_run": args.dry_run, "report": report}))?;
        return ended();
    }
    for agent in [Agent::Claude, Agent::Codex] {
        if (agent == Agent::Claude || report.knows(agent))
            && let Some(switch) = idle::switched_off(&cx.config, agent)
        {
            cx.say(&format!("ctxfold: {switch}"));
        }
    }
    if args.verbose {
        report.tell_left(cx);
    }
    report.tell(cx, args.dry_run);
    ended()
}

/// `ctxfold mod idle`: the mod asks at the next prompt.
#[derive(Debug, clap::Args)]
pub(crate) struct ModIdle {
    /// Minutes of pause after which a conversation counts as idle
    #[arg(long)]
    after: u64,

    /// Seconds since the session's last request, where the mod saw it itself
    #[arg(long)]
    idle_seconds: Option<u64>,
}

impl ModIdle {
    pub(crate) fn run(self, cx: &Context) -> CommandResult {
        let id = env::var("CLAUDE_CODE_SESSION_ID")
            .ok_or_else(|| CommandError::input("CLAUDE_CODE_SESSION_ID is not set"))?;
        let place = agent::locate(&cx.env, Some(&id), Some(Agent::Claude))?;
        let pause = agent::pause(&place)?;
        // Not the newest row: a client that resumes has written some already.
        let answered = pause.answered_ms;
        let by_file = answered.map(|at| u64::try_from(cx.env.now_ms() - at).unwrap_or(0));
        // The mod knows of requests that were cut before an answer was written, and of no answer in
        // another process. The shorter pause is the one: a warm cache is not to be broken.
        let by_mod = self.idle_seconds.map(|s| s.saturating_mul(1000));
        let idle_ms = by_file.into_iter().chain(by_mod).min();
        let cache_ms = pause.cache_ms.unwrap_or(IdleSettings::default().cache_ms);
        let after_ms = self.after.saturating_mul(60_000);
        let reason = match idle_ms {
            _ if pause.is_compacted => Some(Reason::AlreadyCompacted),
            None => Some(Reason::NoActivity),
            Some(idle) if idle < cache_ms => Some(Reason::Warm {
                left_ms: cache_ms - idle,
            }),
            Some(idle) if idle < after_ms => Some(Reason::Recent {
                left_ms: after_ms - idle,
            }),
            Some(_) => None,
        };
        let idle = reason.is_none();
        let why = reason.map_or_else(
            || format!("idle for {}", output::age(idle_ms.unwrap_or(0) / 1000)),
            |reason| reason.to_string(),
        );
        output::json(&serde_json::json!({"idle": idle, "why": why}))
    }
}
