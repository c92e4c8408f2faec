//! What the monitor's commands share: its store, its rules, and readings of a conversation's fill.
//!
//! Readings come, best first, from the conversation's own file and from the bridge that a
//! statusline wrote. Files are named by a host, so only regular files are opened, and only a
//! bounded part of their end is read.

mod gemini;

use std::fmt;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ctxfold_hook::Host;
use ctxfold_monitor::{
    Bridge, Fill, Limit, Overrides, Places, Reading, SessionId, Settings, Source, Store,
    Thresholds, Why, assumed_window, find_planning, read_settings,
};
use ctxfold_session_claude as claude;
use ctxfold_session_codex as codex;

use crate::config::{Config, Size};
use crate::env::{self, Env};

/// How long a host waits for us at the most, its input included.
const PATIENCE: Duration = Duration::from_secs(8);

/// From now on neither a bug nor a pipe or file system that hangs disturbs the host: the process
/// ends in silence, with success.
pub(crate) fn never_disturb() {
    std::panic::set_hook(Box::new(|_| std::process::exit(0)));
    // Without the thread time is not bounded; the work is worth it all the same.
    let _ = std::thread::Builder::new().stack_size(64 << 10).spawn(|| {
        rest(PATIENCE);
        std::process::exit(0);
    });
}

/// Prints an answer for the host. A host that closed the pipe wants none.
pub(crate) fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// The settings files of Claude Code that call us or enable a plugin of ours, for people who miss a
/// warning.
pub(crate) fn callers(env: &Env) -> Vec<PathBuf> {
    let files = ["settings.json", "settings.local.json"];
    [env.claude_root.clone(), env.cwd.join(".claude")]
        .into_iter()
        .flat_map(|folder| files.map(|name| folder.join(name)))
        .filter(|path| read_settings(path).is_some_and(|text| text.contains("ctxfold")))
        .collect()
}

/// The monitor's files.
pub(crate) fn store() -> Store {
    let temp = ["TMPDIR", "TMP", "TEMP"].into_iter().find_map(env::var);
    Store::open(&Places {
        runtime: env::var("XDG_RUNTIME_DIR").map(Into::into),
        temp: temp.map_or_else(|| PathBuf::from("/tmp"), Into::into),
    })
}

/// When to warn, and who said so.
#[derive(Debug)]
pub(crate) struct Rules {
    /// The rules.
    pub(crate) config: ctxfold_monitor::Config,
    /// What is wrong with the user's settings; then the defaults hold.
    pub(crate) problem: Option<String>,
}

impl Rules {
    /// The user's settings under those of the project that a folder belongs to.
    pub(crate) fn read(env: &Env, user: &Config, folder: &Path) -> Rules {
        let (mut config, mut problem) = (ctxfold_monitor::Config::default(), None);
        let percent = |name| user.number(name) as f64;
        match Thresholds::new(percent("monitor.warning"), percent("monitor.critical")) {
            Ok(Some(thresholds)) => config.thresholds = thresholds,
            Ok(None) => config.enabled = false,
            Err(error) => problem = Some(error.to_string()),
        }
        if !user.switch("monitor.enabled") {
            config.enabled = false;
        }
        Rules {
            config: config.with_planning(&find_planning(folder, env.home.as_deref())),
            problem,
        }
    }
}

/// The conversation that a reading is of.
#[derive(Debug)]
pub(crate) struct Subject<'a> {
    /// Whose it is.
    pub(crate) host: Host,
    /// Its identifier.
    pub(crate) id: &'a SessionId,
    /// Its file, where the host named one.
    pub(crate) transcript: Option<&'a Path>,
    /// The model, where the host named it.
    pub(crate) model: Option<&'a str>,
    /// The project's folder.
    pub(crate) folder: &'a Path,
}

/// Who said how many tokens are 100 %.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScaleFrom {
    /// A statusline, in the bridge.
    Statusline,
    /// The client compacts by itself there.
    Compaction,
    /// Automatic compaction is off: the model's window.
    Window,
    /// The window that the client recorded in the rollout.
    Rollout,
}

impl fmt::Display for ScaleFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ScaleFrom::Statusline => "as the statusline told",
            ScaleFrom::Compaction => "where the client compacts by itself",
            ScaleFrom::Window => "the model's window, since automatic compaction is off",
            ScaleFrom::Rollout => "the window that the client recorded",
        })
    }
}

/// Why a conversation's own file gives no reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The host named no file.
    NoFile,
    /// What lies there is no file that can be read.
    Unreadable,
    /// It holds no usage yet.
    NoUsage,
    /// It was compacted, and no answer came since.
    Compacted,
    /// Nobody says how large the model's window is.
    NoWindow,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Missing::NoFile => "no file is known",
            Missing::Unreadable => "the file cannot be read",
            Missing::NoUsage => "the file holds no usage yet",
            Missing::Compacted => "no answer has come since the compaction",
            Missing::NoWindow => {
                "nobody says how large the model's window is; `ctxfold config set window 200k` does"
            }
        })
    }
}

/// A conversation's fill, and where it comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    /// The reading.
    pub(crate) reading: Option<Reading>,
    /// Who said what it is measured against.
    pub(crate) scale: Option<ScaleFrom>,
    /// Why the conversation's own file gave none.
    pub(crate) missing: Option<Missing>,
}

/// Measures a conversation: by its own file, else by the bridge.
pub(crate) fn measure(env: &Env, user: &Config, store: &Store, of: &Subject<'_>) -> Measured {
    let bridge = store.bridge(of.id);
    match from_file(env, user, of, bridge.as_ref()) {
        Ok((reading, scale)) => Measured {
            reading: Some(reading),
            scale: Some(scale),
            missing: None,
        },
        // The bridge is of the time before the compaction.
        Err(missing @ Missing::Compacted) => Measured {
            reading: None,
            scale: None,
            missing: Some(missing),
        },
        Err(missing) => Measured {
            reading: bridge.map(|bridge| bridge.reading()),
            scale: bridge
                .and_then(|bridge| bridge.tokens)
                .map(|_| ScaleFrom::Statusline),
            missing: Some(missing),
        },
    }
}

fn from_file(
    env: &Env,
    user: &Config,
    of: &Subject<'_>,
    bridge: Option<&Bridge>,
) -> Result<(Reading, ScaleFrom), Missing> {
    let path = of.transcript.ok_or(Missing::NoFile)?;
    let changed = changed(path).ok_or(Missing::Unreadable)?;
    let now = whole_seconds(env.now_ms());
    let reading = |used, limit, at| Reading::of_tokens(used, limit, Source::Transcript, Some(at));
    match of.host {
        Host::Codex => {
            let counted = codex::counted(path).map_err(|_| Missing::Unreadable)?;
            let counted = counted.ok_or(Missing::NoUsage)?;
            let fill = counted.fill;
            // The client writes a count only when the calls of the answer have run, but tells a
            // hook at once: see `keep_count`. A compaction drops the bridge.
            let since = counted.at_ms.map_or(changed, whole_seconds);
            let told = bridge.and_then(|bridge| bridge.tokens_since(since, now));
            let told = told.map(|tokens| tokens.used);
            let written = (!fill.stale).then_some(fill.tokens);
            let used = told.or(written).ok_or(Missing::Compacted)?;
            let window = fill.window.filter(|window| *window > 0);
            let window = window.ok_or(Missing::NoWindow)?;
            Ok((reading(used, window, changed), ScaleFrom::Rollout))
        }
        Host::Gemini | Host::Antigravity => {
            let used = gemini::tokens(path).ok_or(Missing::NoUsage)?;
            let limit = gemini::limit(env.home.as_deref(), of.folder);
            Ok((reading(used, limit, changed), ScaleFrom::Compaction))
        }
        _ => {
            let tail = claude::read_tail(path).map_err(|_| Missing::Unreadable)?;
            let fill = tail.fill.ok_or(Missing::NoUsage)?;
            if fill.stale {
                return Err(Missing::Compacted);
            }
            let at = tail.active_ms.map_or(changed, whole_seconds);
            let model = tail.model.as_deref().or(of.model).unwrap_or_default();
            let answered = tail.answered_ms.map_or(at, whole_seconds);
            let since = answered.saturating_sub(DRAWS);
            let told = bridge.and_then(|bridge| bridge.tokens_since(since, now));
            let told = told.map(|tokens| tokens.limit);
            let (limit, scale) = claude_limit(env, user, of.folder, model, fill.tokens, told)
                .ok_or(Missing::NoWindow)?;
            Ok((reading(fill.tokens, limit, at), scale))
        }
    }
}

fn whole_seconds(ms: i64) -> u64 {
    ms.max(0).cast_unsigned() / 1000
}

/// Keeps the count of an answer of Codex that its rollout does not hold yet.
pub(crate) fn keep_count(store: &Store, of: &Subject<'_>, used: u64, now: u64) {
    let path = of.transcript.filter(|path| changed(path).is_some());
    let fill = path.and_then(|path| codex::fill(path).ok()?);
    if let Some(window) = fill.and_then(|fill| fill.window).filter(|w| *w > 0) {
        // Without it the next reading is one answer old.
        let _ = store.write_bridge(of.id, &Fill::of_tokens(used, window, now).bridge);
    }
}

/// A statusline that was not drawn within so many seconds before an answer is not in use.
const DRAWS: u64 = 60;
/// How long the client may take to write down an answer whose tools have run already.
const WRITES: Duration = Duration::from_millis(250);
/// How much of a file's end is searched for a call, in bytes.
const NEAR_END: u64 = 256 << 10;

/// Waits until the end of a file names a call. `true` when it did not at first, so that what was
/// read of it may be one answer old.
pub(crate) fn await_call(path: &Path, call: &str) -> bool {
    let end = Instant::now() + WRITES;
    let mut pause = Duration::from_millis(2);
    let mut waited = false;
    while !ends_with_call(path, call.as_bytes()).unwrap_or(true) && Instant::now() < end {
        waited = true;
        rest(pause);
        pause *= 2;
    }
    waited
}

fn ends_with_call(path: &Path, call: &[u8]) -> Option<bool> {
    changed(path)?;
    let mut file = File::open(path).ok()?;
    let len = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(NEAR_END)))
        .ok()?;
    let mut bytes = Vec::new();
    file.take(NEAR_END).read_to_end(&mut bytes).ok()?;
    Some(memchr::memmem::find(&bytes, call).is_some())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the monitor's one function that sleeps"
)]
fn rest(pause: Duration) {
    std::thread::sleep(pause);
}

/// The scale of a session of Claude Code: what a statusline was told, else the window that the user
/// or the model's name says.
pub(crate) fn claude_limit(
    env: &Env,
    user: &Config,
    project: &Path,
    model: &str,
    used: u64,
    told: Option<u64>,
) -> Option<(u64, ScaleFrom)> {
    if let Some(limit) = told {
        return Some((limit, ScaleFrom::Statusline));
    }
    let window = match user.size("window").map(Size::number) {
        Some(window) if window > 0 => window,
        _ => assumed_window(model, used)?,
    };
    let settings = Settings::read(Some(&env.claude_root), project);
    let limit = Limit::of(window, model, &overrides(), &settings);
    let scale = match limit.why {
        Why::Window => ScaleFrom::Window,
        _ => ScaleFrom::Compaction,
    };
    Some((limit.tokens, scale))
}

/// What Claude Code's own variables say of the point where it compacts.
pub(crate) fn overrides() -> Overrides {
    Overrides {
        window: env::var("CLAUDE_CODE_AUTO_COMPACT_WINDOW"),
        percent: env::var("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"),
        disable_auto_compact: env::var("DISABLE_AUTO_COMPACT"),
        disable_compact: env::var("DISABLE_COMPACT"),
    }
}

/// When a regular file was changed last, in seconds since 1970. `None` for anything else: a FIFO
/// would block, and a link leads where nobody said.
pub(crate) fn changed(path: &Path) -> Option<u64> {
    let meta = std::fs::symlink_metadata(path).ok()?;
    if !meta.is_file() {
        return None;
    }
    let at = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    Some(at.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()))
}

/// The host of a conversation's file, by the names that the clients give.
pub(crate) fn host_of(transcript: &Path) -> Option<Host> {
    let name = transcript.file_name()?.to_str()?;
    if name.starts_with("rollout-") {
        Some(Host::Codex)
    } else if name.starts_with("session-") {
        Some(Host::Gemini)
    } else {
        None
    }
}
