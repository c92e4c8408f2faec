//! The monitor and the statusline as two commands: how the library is put together. Not for use.
//!
//! `blackbox hook [--host HOST] [--until-eof]` answers a hook call, `blackbox statusline [--scale
//! window] [--width N]` draws the line and writes the bridge. Unknown arguments are ignored, since a hook never
//! fails its host.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ctxfold_hook::{Document, Event as HookEvent, Host, Input, Limits, Name, Part, Reply, Until};
use ctxfold_monitor::{
    Config, Effect, Event, Happening, Overrides, Places, Planning, Scale, SessionId, Settings,
    Show, Store, Wording, advise, branch, branch_with_marks, exists, find_planning, is_tracked,
    statusline, step,
};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let env = Env::read();
    let answer = match args.first().map(String::as_str) {
        Some("hook") => hook(&args, &env),
        Some("statusline") => line(&args, &env),
        _ => return ExitCode::from(2),
    };
    let _ = std::io::stdout().write_all(answer.unwrap_or_default().as_bytes());
    ExitCode::SUCCESS
}

/// What both commands need of the surroundings.
struct Env {
    now: u64,
    home: Option<PathBuf>,
    cwd: PathBuf,
    store: Store,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the example stands for the binary"
)]
fn var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Env {
    fn read() -> Self {
        let temp = ["TMPDIR", "TMP", "TEMP"].into_iter().find_map(var);
        let places = Places {
            runtime: var("XDG_RUNTIME_DIR").map(Into::into),
            temp: temp.unwrap_or_else(|| "/tmp".into()).into(),
        };
        Self {
            now: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs(),
            home: var("HOME").map(Into::into),
            cwd: std::env::current_dir().unwrap_or_default(),
            store: Store::open(&places),
        }
    }

    fn folder(&self, said: Option<&str>) -> PathBuf {
        said.map_or_else(|| self.cwd.clone(), Into::into)
    }
}

fn flag<'a>(args: &'a [String], name: &str) -> Option<&'a str> {
    args.iter()
        .skip_while(|a| *a != name)
        .nth(1)
        .map(String::as_str)
}

fn read(args: &[String]) -> Option<Document> {
    let until = if args.iter().any(|a| a == "--until-eof") {
        Until::EndOfInput
    } else {
        Until::DocumentEnd
    };
    ctxfold_hook::read_document(
        std::io::stdin(),
        Limits {
            until,
            ..Limits::default()
        },
    )
    .ok()
}

// ---- hook

fn hook(args: &[String], env: &Env) -> Option<String> {
    let document = read(args)?;
    let host = flag(args, "--host").and_then(|name| name.parse().ok());
    let input = dialect(Input::parse(Host::Claude, &document.text).ok()?, host);
    let id = SessionId::new(input.session_id.as_deref()?).ok()?;

    let happening = happening(&input);
    let folder = env.folder(input.cwd.as_deref());
    let observes = matches!(happening, Happening::ToolCall | Happening::Silent);
    // The binary asks the session's own file first.
    let reading = env
        .store
        .bridge(&id)
        .filter(|_| observes)
        .map(|bridge| bridge.reading());
    let planning = match reading {
        Some(_) => find_planning(&folder, env.home.as_deref()),
        None => Planning::default(),
    };
    let config = Config::default().with_planning(&planning);
    let event = Event { happening, reading };
    let effects = env
        .store
        .transact(&id, |state| step(state, &event, &config, env.now))
        .ok()?;
    let reply = effects.iter().find_map(|effect| match effect {
        Effect::Warn(level, reading) => {
            let wording = wording(input.host, is_tracked(&folder));
            let text = advise(*level, reading, &wording);
            Some(Reply::new().context(text).extra("severity", level.name()))
        }
        _ => None,
    });
    if matches!(input.event, HookEvent::SessionStart(_)) {
        const WEEK: u64 = 7 * 86_400;
        env.store.collect(env.now, WEEK);
    }
    reply?.encode(&input).ok()
}

/// The host as told, else as the event's name says. A call without a name is an old Gemini CLI's.
fn dialect(input: Input, told: Option<Host>) -> Input {
    if input.name == Name::Missing && var("GEMINI_API_KEY").is_some() {
        return input
            .with_host(told.unwrap_or(Host::Gemini))
            .with_default_name("AfterTool");
    }
    let host = told.unwrap_or_else(|| Host::guess(input.event_name().unwrap_or_default()));
    input.with_host(host)
}

fn happening(input: &Input) -> Happening {
    let transcript = input.transcript_path.as_deref();
    let is_gone = transcript.is_some_and(|path| !exists(Path::new(path)));
    match &input.event {
        _ if input.agent_id.is_some() => Happening::Subagent,
        // A sub-agent's compaction shows only by a transcript that never comes to be.
        HookEvent::BeforeCompaction(_) if is_gone => Happening::Subagent,
        // Gemini CLI's PreCompress comes before every request.
        HookEvent::BeforeCompaction(_) if input.host != Host::Gemini => Happening::Compacting,
        HookEvent::AfterCompaction(done) if done.trigger.is_some() => Happening::Compacted,
        HookEvent::SessionStart(start) if start.source.as_deref() == Some("compact") => {
            Happening::Compacted
        }
        HookEvent::AfterTool(_) => {
            let name = input.event_name().unwrap_or_default();
            let speaks = ctxfold_hook::accepts(input.host, name).contains(&Part::Context);
            if speaks {
                Happening::ToolCall
            } else {
                Happening::Silent
            }
        }
        _ => Happening::Silent,
    }
}

fn wording(host: Host, tracked: bool) -> Wording {
    match host {
        Host::Gemini | Host::Antigravity => Wording {
            compact_command: "/compress".into(),
            foldable: false,
            tracked,
        },
        _ => Wording {
            tracked,
            ..Wording::default()
        },
    }
}

// ---- statusline

fn line(args: &[String], env: &Env) -> Option<String> {
    let document = read(args)?;
    let input = statusline::Input::parse(&document.text)?;
    let folder = env.folder(input.current_dir.as_deref());
    let planning = find_planning(&folder, env.home.as_deref());
    let scale = match flag(args, "--scale") {
        Some("window") => Scale::Window,
        _ => Scale::Compaction,
    };
    let overrides = Overrides {
        window: var("CLAUDE_CODE_AUTO_COMPACT_WINDOW"),
        percent: var("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"),
        disable_auto_compact: var("DISABLE_AUTO_COMPACT"),
        disable_compact: var("DISABLE_COMPACT"),
    };
    let settings = match (scale, input.window()) {
        (Scale::Compaction, Some(_)) => {
            let user = var("CLAUDE_CONFIG_DIR")
                .map(PathBuf::from)
                .or_else(|| env.home.as_ref().map(|home| home.join(".claude")));
            let project = input
                .project_dir
                .as_ref()
                .map_or_else(|| folder.clone(), Into::into);
            Settings::read(user.as_deref(), &project)
        }
        _ => Settings::default(),
    };
    let fill = input.fill(scale, &overrides, &settings, env.now);
    if let (Some(fill), Some(id)) = (&fill, input.session_id.as_deref())
        && let Ok(id) = SessionId::new(id)
    {
        // A line without a bridge is better than none.
        let _ = env.store.write_bridge(&id, &fill.bridge);
    }
    let look = statusline::Look {
        colour: var("NO_COLOR").is_none(),
        width: flag(args, "--width").and_then(|w| w.parse().ok()),
        tokens: Show::from(planning.tokens),
        meter_first: planning.meter_first,
        branch: match planning.git {
            None => branch(&folder),
            Some(true) => git_status(&folder),
            Some(false) => None,
        },
    };
    Some(statusline::render(
        &input,
        &folder.to_string_lossy(),
        fill.as_ref(),
        &look,
        env.now,
    ))
}

/// Asks git, in bounded time.
fn git_status(folder: &Path) -> Option<String> {
    let mut git = Command::new("git");
    git.args([
        "--no-optional-locks",
        "status",
        "--porcelain=v2",
        "--branch",
    ]);
    git.current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let _ = sender.send(git.output());
    });
    let output = receiver
        .recv_timeout(Duration::from_millis(1500))
        .ok()?
        .ok()?;
    branch_with_marks(&String::from_utf8_lossy(&output.stdout))
}
