//! `ctxfold idle` and the mod's question. The policy's caller is `crate::idle`.

use std::time::Duration;

use clap::Subcommand;
use ctxfold_compactor::idle::{Reason, Verdict};

use super::Context;
use crate::agent::{self, Agent, Place};
use crate::config;
use crate::error::{CommandError, CommandResult};
use crate::{env, exit, files, idle, output};

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
    Status,
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
    Run(Run),
    /// Visit them again whenever their files change or time has passed
    Watch(Watch),
    /// Print units that run the visit by systemd, for you to install
    Install {
        /// Print them; nothing is installed by itself
        #[arg(long, required = true)]
        print: bool,
    },
}

#[derive(Debug, clap::Args)]
struct Run {
    /// Say what would be done, and stop
    #[arg(long, short = 'n')]
    dry_run: bool,

    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Watch {
    /// Seconds between two visits
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,

    /// Stop after this many visits
    #[arg(long, hide = true)]
    visits: Option<u64>,
}

/// Most conversations that one visit compacts; the rest waits for the next one.
const MOST_A_VISIT: usize = 1000;

impl Args {
    pub(crate) fn run(self, cx: &Context) -> CommandResult {
        let set = |name: &str, value: &str| -> CommandResult {
            config::edit(&cx.env, name, Some(value))?;
            cx.say(&format!(
                "ctxfold: {name} = {}",
                if value.is_empty() { "none" } else { value }
            ));
            Ok(())
        };
        match self.action {
            Action::Status => status(cx),
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
            Action::Watch(args) => watch(cx, &args),
            Action::Install { print: _ } => output::data(UNITS),
        }
    }
}

fn status(cx: &Context) -> CommandResult {
    let c = &cx.config;
    let on = |name: &str| if c.switch(name) { "on" } else { "off" };
    output::data(&format!(
        "idle   {}\ncodex  {}\nafter  {} min\nmin    {}\nmodel  {}\n",
        on("idle.enabled"),
        on("idle.codex"),
        c.number("idle.after"),
        c.text("idle.min"),
        c.maybe("idle.model")
            .unwrap_or("none (local rules, no network)"),
    ))
}

/// What a visit did.
#[derive(Debug, Default, serde::Serialize)]
struct Report {
    compacted: Vec<Visited>,
    failed: Vec<Visited>,
    left: usize,
}

#[derive(Debug, serde::Serialize)]
struct Visited {
    agent: &'static str,
    path: std::path::PathBuf,
    says: String,
}

fn run(cx: &Context, args: &Run) -> CommandResult {
    let _lock = lock(cx)?;
    let report = visit_all(cx, args.dry_run)?;
    if args.json {
        return output::json(
            &serde_json::json!({"v": 1, "dry_run": args.dry_run, "report": report}),
        );
    }
    tell(cx, &report);
    Ok(())
}

fn tell(cx: &Context, report: &Report) {
    for v in &report.compacted {
        cx.say(&format!("ctxfold: {}: {}", cx.env.show(&v.path), v.says));
    }
    for v in &report.failed {
        cx.say(&format!("ctxfold: {}: {}", cx.env.show(&v.path), v.says));
    }
    cx.say(&format!(
        "ctxfold: {} compacted, {} left alone, {} failed",
        report.compacted.len(),
        report.left,
        report.failed.len()
    ));
}

/// One pass over everything. A failure of one conversation is told and does not stop the rest.
fn visit_all(cx: &Context, dry_run: bool) -> CommandResult<Report> {
    let mut report = Report::default();
    for place in agent::all(&cx.env)? {
        let settings = idle::settings(&cx.config, place.agent);
        if !settings.enabled || report.compacted.len() >= MOST_A_VISIT {
            report.left += 1;
            continue;
        }
        // The end of a file is enough to leave most conversations alone.
        if !may_be_idle(cx, &place, settings.after_ms) {
            report.left += 1;
            continue;
        }
        match visit(cx, &place, dry_run, &settings) {
            Ok(Some(says)) => report.compacted.push(Visited {
                agent: place.agent.name(),
                path: place.path,
                says,
            }),
            Ok(None) => report.left += 1,
            Err(error) if error.code() == exit::REFUSED => report.left += 1,
            Err(error) => report.failed.push(Visited {
                agent: place.agent.name(),
                path: place.path,
                says: error.to_string(),
            }),
        }
    }
    Ok(report)
}

fn visit(
    cx: &Context,
    place: &Place,
    dry_run: bool,
    settings: &ctxfold_compactor::idle::IdleSettings,
) -> CommandResult<Option<String>> {
    if dry_run {
        let conversation = agent::Conversation::open(place, None)?;
        let facts = idle::facts(cx, &conversation)?;
        let decision = ctxfold_compactor::idle::decide(&facts, settings);
        let is_due = matches!(decision.verdict, Verdict::Compact);
        return Ok(is_due.then(|| "would be compacted".to_owned()));
    }
    Ok(idle::visit(cx, place, settings)?.done)
}

/// Whether the end of the file speaks for a pause. When in doubt, yes.
fn may_be_idle(cx: &Context, place: &Place, after_ms: u64) -> bool {
    let Ok(pause) = agent::pause(place) else {
        return true;
    };
    let Some(active) = pause.active_ms else {
        return true;
    };
    let idle = u64::try_from(cx.env.now_ms() - active).unwrap_or(0);
    idle >= pause.cache_ms.unwrap_or(0).max(after_ms)
}

fn watch(cx: &Context, args: &Watch) -> CommandResult {
    let _lock = lock(cx)?;
    cx.say(&format!(
        "ctxfold: watching; a visit every {} s; Ctrl-C ends it",
        args.every
    ));
    let mut visits = 0;
    loop {
        let report = visit_all(cx, false)?;
        if !report.compacted.is_empty() || !report.failed.is_empty() {
            tell(cx, &report);
        }
        visits += 1;
        if args.visits.is_some_and(|most| visits >= most) {
            return Ok(());
        }
        wait(Duration::from_secs(args.every));
    }
}

/// Waits for the next visit: the one place that sleeps.
#[expect(
    clippy::disallowed_methods,
    reason = "the watch's own pause between two visits"
)]
fn wait(span: Duration) {
    std::thread::sleep(span);
}

/// Held while visits run, so that two never do. It ends with the process, however that ends.
fn lock(cx: &Context) -> CommandResult<std::fs::File> {
    files::private_dir(&cx.env.state_dir)?;
    let path = cx.env.state_dir.join("idle.lock");
    let file = files::options()
        .read(true)
        .append(true)
        .create(true)
        .open(&path)
        .map_err(|e| CommandError::io("open", &path, &e))?;
    #[cfg(unix)]
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).map_err(
        |e| {
            if e == rustix::io::Errno::WOULDBLOCK {
                CommandError::refused("another idle run or watch is at work")
            } else {
                CommandError::io("lock", &path, &e.into())
            }
        },
    )?;
    Ok(file)
}

/// `ctxfold mod idle`: the mod asks at the next prompt.
#[derive(Debug, clap::Args)]
pub(crate) struct ModIdle {
    /// Minutes of pause after which a conversation counts as idle
    #[arg(long)]
    after: u64,

    /// Seconds since the last answer, where the mod saw it itself
    #[arg(long)]
    idle_seconds: Option<u64>,
}

impl ModIdle {
    pub(crate) fn run(self, cx: &Context) -> CommandResult {
        let id = env::var("CLAUDE_CODE_SESSION_ID")
            .ok_or_else(|| CommandError::input("CLAUDE_CODE_SESSION_ID is not set"))?;
        let place = agent::locate(&cx.env, Some(&id), Some(Agent::Claude))?;
        let pause = agent::pause(&place)?;
        let seen_ms = self.idle_seconds.map(|s| s.saturating_mul(1000));
        let idle_ms = seen_ms.or_else(|| {
            pause
                .active_ms
                .map(|at| u64::try_from(cx.env.now_ms() - at).unwrap_or(0))
        });
        let cache_ms = pause
            .cache_ms
            .unwrap_or(ctxfold_compactor::idle::IdleSettings::default().cache_ms);
        let after_ms = self.after.saturating_mul(60_000);
        let (idle, why) = match idle_ms {
            None => (false, Reason::NoActivity.to_string()),
            Some(idle) if idle < cache_ms => (
                false,
                Reason::Warm {
                    left_ms: cache_ms - idle,
                }
                .to_string(),
            ),
            Some(idle) if idle < after_ms => (
                false,
                Reason::Recent {
                    left_ms: after_ms - idle,
                }
                .to_string(),
            ),
            Some(idle) => (true, format!("idle for {}", output::age(idle / 1000))),
        };
        output::json(&serde_json::json!({"idle": idle, "why": why}))
    }
}

const UNITS: &str = "\
# ~/.config/systemd/user/ctxfold-idle.service
[Unit]
Description=Compact conversations that paused

[Service]
Type=oneshot
ExecStart=ctxfold idle run --quiet

# ~/.config/systemd/user/ctxfold-idle.timer
[Unit]
Description=Look for conversations that paused

[Timer]
OnBootSec=10min
OnUnitActiveSec=10min

[Install]
WantedBy=timers.target

# then: systemctl --user enable --now ctxfold-idle.timer
# or, by cron: */10 * * * * ctxfold idle run --quiet
";
