//! `ctxfold monitor`: what is known of a session and why nothing is said, for people who ask; also
//! for `doctor` and `resume`.

use std::path::PathBuf;

use ctxfold_hook::Host;
use ctxfold_monitor::{
    Config as MonitorConfig, SessionId, Source, State, Store, Unusable, Verdict, judge,
};
use serde_json::json;

use super::hook::seconds;
use super::{Context, Which};
use crate::agent::{self, Agent, Place};
use crate::config::Config;
use crate::env::{self, Env};
use crate::error::{CommandError, CommandResult};
use crate::journal::{Critical, Entry, Journal};
use crate::output;
use crate::watch::{self, Measured, Rules, Subject};

/// Say what the monitor knows of a session, or make it forget
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Say how full the context is, by which source and scale, and why nothing is said, if so
    Status(Status),
    /// Forget a session's warnings, compaction and bridge
    Reset(Which),
}

#[derive(Debug, clap::Args)]
struct Status {
    #[command(flatten)]
    which: Which,

    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(self, cx: &Context) -> CommandResult {
        match self.action {
            Action::Status(status) => status.run(cx),
            Action::Reset(which) => reset(cx, &which),
        }
    }
}

/// What the monitor knows of one session.
pub(crate) struct Report {
    id: SessionId,
    host: Host,
    transcript: Option<PathBuf>,
    measured: Measured,
    rules: Rules,
    state: State,
    verdict: Verdict,
    now: u64,
}

impl Report {
    /// Looks at a session.
    pub(crate) fn of(env: &Env, user: &Config, place: &Place) -> CommandResult<Report> {
        let id = SessionId::new(&agent::id(place)?)
            .map_err(|error| CommandError::input(error.to_string()))?;
        let host = match place.agent {
            Agent::Claude => Host::Claude,
            Agent::Codex => Host::Codex,
        };
        Ok(Report::new(env, user, id, host, Some(place.path.clone())))
    }

    fn new(
        env: &Env,
        user: &Config,
        id: SessionId,
        host: Host,
        transcript: Option<PathBuf>,
    ) -> Report {
        let store = watch::store();
        let subject = Subject {
            host,
            id: &id,
            transcript: transcript.as_deref(),
            model: None,
            folder: &env.cwd,
        };
        let measured = watch::measure(env, user, &store, &subject);
        let rules = Rules::read(env, user, &env.cwd);
        let (state, now) = (store.load(&id), seconds(env));
        let verdict = judge(&state, measured.reading.as_ref(), &rules.config, now);
        Report {
            id,
            host,
            transcript,
            measured,
            rules,
            state,
            verdict,
            now,
        }
    }

    /// Whether a warning would come if there were cause for one.
    pub(crate) fn is_watching(&self) -> bool {
        !matches!(self.verdict, Verdict::Off | Verdict::NoReading) && self.rules.problem.is_none()
    }

    /// Source, scale and verdict in one line.
    pub(crate) fn line(&self) -> String {
        let parts = [self.fill(), self.scale(), Some(self.says())];
        let mut line = parts.into_iter().flatten().collect::<Vec<_>>().join("; ");
        if let Some(problem) = &self.rules.problem {
            line.push_str(&format!("; {problem}, so the defaults hold"));
        }
        line
    }

    fn fill(&self) -> Option<String> {
        let reading = self.measured.reading?;
        let tokens = reading.tokens.map_or_else(String::new, |t| {
            format!(
                " ({} of {})",
                output::tokens(t.used),
                output::tokens(t.limit)
            )
        });
        let source = self.source()?;
        Some(format!("{}% used{tokens} by {source}", reading.used))
    }

    fn source(&self) -> Option<String> {
        let reading = self.measured.reading?;
        Some(match (reading.source, reading.at) {
            (Source::Bridge, Some(at)) => format!(
                "the statusline, {} ago",
                output::age(self.now.saturating_sub(at))
            ),
            (Source::Bridge, None) => "the statusline".to_owned(),
            _ => "the session's own file".to_owned(),
        })
    }

    fn scale(&self) -> Option<String> {
        Some(format!("100% is {}", self.measured.scale?))
    }

    /// What would be said after a tool call now, and why not.
    fn says(&self) -> String {
        let thresholds = self.rules.config.thresholds;
        match self.verdict {
            Verdict::Off => "warnings are switched off".into(),
            Verdict::NoReading => match self.measured.missing {
                Some(why) => format!("nothing is said: {why}, and no statusline wrote a reading"),
                None => "nothing is said: there is no reading".into(),
            },
            Verdict::Unusable(Unusable::Stale) => {
                "nothing is said: the statusline was drawn over a minute ago".into()
            }
            Verdict::Unusable(Unusable::NoTime) => {
                "nothing is said: the statusline's reading has no usable time".into()
            }
            Verdict::Unusable(_) => {
                "nothing is said: the reading may be of the time before the compaction".into()
            }
            Verdict::Enough => format!(
                "nothing is said: more than {}% remain",
                thresholds.warning()
            ),
            Verdict::Waits { level, calls } => format!(
                "a {} was given; it comes again after {calls} more tool calls",
                level.name()
            ),
            Verdict::Warns(level) => format!("the next tool call brings a {}", level.name()),
            _ => "nothing is said".into(),
        }
    }
}

impl Status {
    fn run(self, cx: &Context) -> CommandResult {
        let report = find(cx, &self.which)?;
        let journal = Journal::new(&cx.env.state_dir);
        let crumbs = breadcrumbs(&journal, report.id.as_str())?;
        if self.json {
            return print_json(&report, &crumbs);
        }
        let config: &MonitorConfig = &report.rules.config;
        let folder = watch::store().folder().to_owned();
        let mut lines = vec![("session", format!("{} ({})", report.id, report.host))];
        if let Some(path) = &report.transcript {
            lines.push(("file", cx.env.show(path)));
        }
        match report.fill() {
            Some(fill) => lines.push(("fill", fill)),
            None => lines.push(("fill", "unknown".into())),
        }
        if let (Some(_), Some(why)) = (report.measured.reading, report.measured.missing) {
            lines.push(("own file", format!("gives no reading: {why}")));
        }
        lines.extend(report.scale().map(|scale| ("scale", scale)));
        let percents = format!(
            "warning at {}% remaining, critical at {}%, again after {} tool calls",
            config.thresholds.warning(),
            config.thresholds.critical(),
            config.repeat
        );
        lines.push(("rules", percents));
        lines.extend(
            report
                .rules
                .problem
                .as_ref()
                .map(|problem| ("settings", format!("{problem}; the defaults hold"))),
        );
        lines.push(("now", report.says()));
        for (at_ms, crumb) in &crumbs {
            let ago = output::age(
                report
                    .now
                    .saturating_sub(at_ms.max(&0).cast_unsigned() / 1000),
            );
            lines.push((
                "critical",
                format!("{}% used, {ago} ago", crumb.used_percent),
            ));
        }
        lines.push(("state", cx.env.show(&folder)));
        let mut text = String::new();
        for (name, says) in lines {
            let lead = format!("{name:<10} ");
            text.push_str(&output::hanging(&lead, 11, &says, env::columns()));
        }
        output::data(&text)
    }
}

fn print_json(report: &Report, crumbs: &[(i64, Critical)]) -> CommandResult {
    let reading = report.measured.reading;
    let thresholds = report.rules.config.thresholds;
    let crumbs: Vec<_> = crumbs
        .iter()
        .map(|(at_ms, c)| json!({ "at_ms": at_ms, "used_percent": c.used_percent, "cwd": c.cwd }))
        .collect();
    output::json(&json!({
        "v": 1,
        "session": report.id.as_str(),
        "host": report.host.name(),
        "file": report.transcript,
        "source": reading.map(|r| match r.source {
            Source::Bridge => "statusline",
            _ => "transcript",
        }),
        "used_percent": reading.map(|r| r.used),
        "remaining_percent": reading.map(|r| r.remaining),
        "used_tokens": reading.and_then(|r| r.tokens).map(|t| t.used),
        "limit_tokens": reading.and_then(|r| r.tokens).map(|t| t.limit),
        "scale": report.measured.scale.map(|s| s.to_string()),
        "enabled": report.rules.config.enabled,
        "warning": thresholds.warning(),
        "critical": thresholds.critical(),
        "problem": report.rules.problem,
        "compacted_at": report.state.compacted_at,
        "says": report.says(),
        "breadcrumbs": crumbs,
        "state_folder": watch::store().folder(),
    }))
}

/// Finds the session: one of an agent whose files we know, else one that the monitor has seen.
fn find(cx: &Context, which: &Which) -> CommandResult<Report> {
    let error = match agent::locate(&cx.env, which.session.as_deref(), which.agent) {
        Ok(place) => return Report::of(&cx.env, &cx.config, &place),
        Err(error) => error,
    };
    let store = watch::store();
    let id = match which.session.as_deref() {
        Some(word) => seen(&store, word),
        None => None,
    };
    match id {
        Some(id) => Ok(Report::new(&cx.env, &cx.config, id, Host::Claude, None)),
        None => Err(error),
    }
}

/// The only session of the store whose identifier begins so.
fn seen(store: &Store, word: &str) -> Option<SessionId> {
    let mut found = store
        .sessions()
        .into_iter()
        .filter(|id| id.as_str().starts_with(word));
    found.next().filter(|_| found.next().is_none())
}

fn reset(cx: &Context, which: &Which) -> CommandResult {
    let report = find(cx, which)?;
    watch::store()
        .forget(&report.id)
        .map_err(|error| CommandError::input(error.to_string()))?;
    cx.say(&format!("forgot what was known of {}", report.id));
    Ok(())
}

/// The times at which a session's context was nearly full, oldest first.
fn breadcrumbs(journal: &Journal, session: &str) -> CommandResult<Vec<(i64, Critical)>> {
    let lines = journal.read()?.into_iter();
    Ok(lines
        .filter_map(|line| match line.entry {
            Entry::Critical(crumb) if crumb.session == session => Some((line.at_ms, crumb)),
            _ => None,
        })
        .collect())
}

/// What to tell somebody who resumes a session whose context ran out.
pub(crate) fn last_breadcrumb(env: &Env, session: &str) -> Option<String> {
    let crumbs = breadcrumbs(&Journal::new(&env.state_dir), session).ok()?;
    let (at_ms, crumb) = crumbs.last()?;
    let ago = seconds(env).saturating_sub(at_ms.max(&0).cast_unsigned() / 1000);
    Some(format!(
        "its context was {}% full {} ago",
        crumb.used_percent,
        output::age(ago)
    ))
}
