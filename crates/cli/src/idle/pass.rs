//! One pass over every session and thread.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ctxfold_compactor::idle::{IdleSettings, Reason, Verdict};

use super::{Visitor, costs, look, settings};
use crate::agent::{self, Agent, Place};
use crate::commands::Context;
use crate::error::{CommandError, CommandResult};
use crate::{exit, files, interrupt};

/// Milliseconds until a conversation that could not be compacted is tried again.
const RETRY_MS: i64 = 15 * 60_000;
/// Milliseconds until a conversation that a process has open is looked at again.
const LIVE_MS: i64 = 60_000;

/// What a pass did.
#[derive(Debug, Default, serde::Serialize)]
pub(crate) struct Report {
    pub(crate) compacted: Vec<Visited>,
    pub(crate) failed: Vec<Visited>,
    /// How many were left alone, and how many for which reason.
    pub(crate) left: usize,
    pub(crate) left_because: BTreeMap<&'static str, usize>,
    /// Each of them.
    pub(crate) left_alone: Vec<Visited>,
    /// Left for the next pass, because this one did enough.
    pub(crate) waiting: usize,
    /// Whether the user ended it before everything was visited.
    pub(crate) interrupted: bool,
    /// When the next one is due, in milliseconds since the Unix epoch, as far as is known.
    #[serde(skip)]
    pub(crate) next_ms: Option<i64>,
}

/// A conversation that a pass has something to say of.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Visited {
    agent: &'static str,
    path: PathBuf,
    says: String,
}

impl Visited {
    fn new(place: &Place, says: String) -> Visited {
        Visited {
            agent: place.agent.name(),
            path: place.path.clone(),
            says,
        }
    }
}

impl Report {
    /// Leaves a conversation alone.
    fn leave(&mut self, place: &Place, because: &'static str, says: String) {
        self.left += 1;
        *self.left_because.entry(because).or_default() += 1;
        self.left_alone.push(Visited::new(place, says));
    }

    /// Says how many were compacted, or by a dry run would be.
    pub(crate) fn tell(&self, cx: &Context, dry_run: bool) {
        let mut because: Vec<_> = self.left_because.iter().collect();
        because.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let because: Vec<_> = because
            .into_iter()
            .map(|(name, count)| format!("{count} {}", name.replace('-', " ")))
            .collect();
        let because = match because.join(", ") {
            none if none.is_empty() => none,
            some => format!(" ({some})"),
        };
        let waiting = match self.waiting {
            0 => String::new(),
            n => format!(", {n} waiting for the next pass"),
        };
        cx.say(&format!(
            "ctxfold: {} {}, {} left alone{because}, {} failed{waiting}",
            self.compacted.len(),
            if dry_run { "to compact" } else { "compacted" },
            self.left,
            self.failed.len()
        ));
    }

    /// Whether one of this agent's was left alone.
    pub(crate) fn knows(&self, agent: Agent) -> bool {
        self.left_alone.iter().any(|v| v.agent == agent.name())
    }

    /// Says of each that was left alone why.
    pub(crate) fn tell_left(&self, cx: &Context) {
        for v in &self.left_alone {
            cx.say(&format!("ctxfold: {}: {}", cx.env.show(&v.path), v.says));
        }
    }

    fn due(&mut self, at_ms: Option<i64>) {
        self.next_ms = match (self.next_ms, at_ms) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}

/// Whether another visit can bring something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    stamp: (u64, Option<SystemTime>),
    /// At this time, in milliseconds since the Unix epoch; without one not before the file changes.
    due_ms: Option<i64>,
}

/// Passes, and what they know of each other.
#[derive(Debug)]
pub(crate) struct Pass {
    /// Most conversations that one pass reads.
    most: usize,
    /// Whether each is told of as soon as it was visited.
    tells: bool,
    known: HashMap<PathBuf, Known>,
}

impl Pass {
    /// Passes that read at most so many conversations each, and tell of each that was compacted or
    /// failed.
    pub(crate) fn new(most: usize) -> Pass {
        Pass {
            most,
            tells: true,
            known: HashMap::new(),
        }
    }

    /// The same without a word: the report tells.
    pub(crate) fn silent(self) -> Pass {
        Pass {
            tells: false,
            ..self
        }
    }

    /// Forgets what was found, because settings changed.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }

    /// Visits everything that is due. A failure of one conversation is told and does not stop the
    /// rest; only the user does, between two conversations or while a model is asked.
    pub(crate) fn go(&mut self, cx: &Context, dry_run: bool) -> CommandResult<Report> {
        let mut report = Report::default();
        let mut visitor = Visitor::default();
        let mut opened = 0;
        let of = |agent| settings(&cx.config, agent);
        let (claude, codex) = (of(Agent::Claude), of(Agent::Codex));
        for place in agent::all(&cx.env)? {
            if interrupt::is_asked() {
                report.interrupted = true;
                break;
            }
            let settings = match place.agent {
                Agent::Claude => &claude,
                Agent::Codex => &codex,
            };
            let now = cx.env.now_ms();
            let seen = self.known.get(&place.path).copied();
            let seen = seen.filter(|k| Some(k.stamp) == stamp(&place.path));
            let is_due = seen.is_none_or(|k| k.due_ms.is_some_and(|at| at <= now));
            if !settings.enabled {
                let off = Reason::Off;
                report.leave(&place, name(&off), off.to_string());
                continue;
            }
            if !is_due {
                report.leave(
                    &place,
                    "not-due",
                    "looked at before, and not due yet".into(),
                );
                report.due(seen.and_then(|k| k.due_ms));
                continue;
            }
            // The end of a file is enough to leave most conversations alone.
            let due_ms = if let Glance::Left(reason) = glance(cx, &place, settings) {
                report.leave(&place, name(&reason), reason.to_string());
                again(reason, now)
            } else if opened >= self.most {
                report.waiting += 1;
                Some(now)
            } else {
                opened += 1;
                match self.visit(cx, &place, settings, dry_run, &mut visitor, &mut report) {
                    Err(error) if error.is_interrupted() => {
                        report.interrupted = true;
                        break;
                    }
                    visited => visited?,
                }
            };
            report.due(due_ms);
            // Looked at again: our own append is no change.
            if let Some(stamp) = stamp(&place.path) {
                self.known.insert(place.path, Known { stamp, due_ms });
            }
        }
        Ok(report)
    }

    /// Visits one; returns when to come again.
    fn visit(
        &self,
        cx: &Context,
        place: &Place,
        settings: &IdleSettings,
        dry_run: bool,
        visitor: &mut Visitor,
        report: &mut Report,
    ) -> CommandResult<Option<i64>> {
        let now = cx.env.now_ms();
        let visited = |says: String| {
            if self.tells {
                cx.say(&format!("ctxfold: {}: {says}", cx.env.show(&place.path)));
            }
            Visited::new(place, says)
        };
        let looked = if dry_run {
            look(cx, place, settings).map(|d| {
                let done = costs(&cx.config, &d.cost);
                (d.verdict, Some(format!("would be compacted: {done}")))
            })
        } else {
            let outcome = visitor.visit(cx, place, settings);
            outcome.map(|o| (o.decision.verdict, o.done))
        };
        match looked {
            Ok((Verdict::Compact, done)) => {
                report.compacted.push(visited(done.unwrap_or_default()));
                Ok(None)
            }
            Ok((Verdict::Leave(reason), _)) => {
                report.leave(place, name(&reason), reason.to_string());
                Ok(again(reason, now))
            }
            Err(error) if error.is_interrupted() => Err(error),
            Err(error) if error.code() == exit::REFUSED => {
                report.leave(place, "refused", error.line());
                Ok(Some(now + RETRY_MS))
            }
            Err(error) => {
                report.failed.push(visited(error.to_string()));
                Ok(Some(now + RETRY_MS))
            }
        }
    }
}

/// A reason's short name, for counts and for scripts.
pub(crate) fn name(reason: &Reason) -> &'static str {
    match reason {
        Reason::Off => "switched-off",
        Reason::Live => "open",
        Reason::NoActivity => "undated",
        Reason::ClockBehind => "clock-behind",
        Reason::AlreadyCompacted => "compacted-already",
        Reason::Warm { .. } => "still-cached",
        Reason::Recent { .. } => "short-pause",
        Reason::Small => "small",
        Reason::LittleGain { .. } => "little-to-gain",
        _ => "other",
    }
}

/// When a conversation that was left alone is looked at again.
fn again(reason: Reason, now_ms: i64) -> Option<i64> {
    match reason {
        Reason::Warm { left_ms } | Reason::Recent { left_ms } => {
            Some(now_ms.saturating_add_unsigned(left_ms))
        }
        Reason::Live => Some(now_ms + LIVE_MS),
        Reason::ClockBehind => Some(now_ms + RETRY_MS),
        _ => None,
    }
}

/// What the end of a file says.
enum Glance {
    /// Left alone, and why.
    Left(Reason),
    /// It has to be read.
    Read,
}

/// Looks at the end of a file. When in doubt it has to be read.
fn glance(cx: &Context, place: &Place, settings: &IdleSettings) -> Glance {
    let Ok(pause) = agent::pause(place) else {
        return Glance::Read;
    };
    if pause.is_compacted {
        return Glance::Left(Reason::AlreadyCompacted);
    }
    let Some(active) = pause.active_ms else {
        return Glance::Read;
    };
    let now = cx.env.now_ms();
    let left = |needed: u64| {
        let due = active.saturating_add_unsigned(needed);
        u64::try_from(due - now).ok().filter(|left| *left > 0)
    };
    if let Some(left_ms) = pause.cache_ms.and_then(left) {
        Glance::Left(Reason::Warm { left_ms })
    } else if let Some(left_ms) = left(settings.after_ms) {
        Glance::Left(Reason::Recent { left_ms })
    } else {
        Glance::Read
    }
}

fn stamp(path: &Path) -> Option<(u64, Option<SystemTime>)> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.len(), meta.modified().ok()))
}

/// Held while passes run, so that two never do. It ends with the process, however that ends.
pub(crate) fn lock(cx: &Context) -> CommandResult<File> {
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
