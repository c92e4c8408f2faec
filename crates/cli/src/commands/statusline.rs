//! `ctxfold statusline`: gathers what the line shows and leaves the fill for hooks. The monitor crate
//! draws.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use ctxfold_hook::Limits;
use ctxfold_monitor::statusline::{Cache, Input, Look, render};
use ctxfold_monitor::{
    Fill, Scale, SessionId, Settings, Show, branch, branch_with_marks, find_planning,
};
use ctxfold_session_claude as claude;

use super::hook::{flag, seconds};
use crate::config::Config;
use crate::env::{self, Env};
use crate::{idle, watch};

/// Draw Claude Code's status line: model, folder, branch, fill of the context, prompt cache
///
/// Reads the client's JSON on standard input. It also leaves the fill where hooks find it. Like a
/// hook it always ends with exit code 0 and never writes to standard error.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A status line of your own: it gets the same input, and its lines come first
    #[arg(long, value_name = "COMMAND")]
    then: Option<String>,

    /// What 100 % is: the point where the client compacts by itself, or the model's whole window
    #[arg(long, value_name = "compaction|window")]
    scale: Option<String>,

    /// The most columns; what fits into the client's terminal without it
    #[arg(long, value_name = "COLUMNS")]
    width: Option<String>,

    /// Anything else is passed over
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}

/// How long the user's own status line and git may take.
const CHILD: Duration = Duration::from_millis(1500);
/// How long what a program printed may be on its way after it ended, where one that it left behind
/// holds its output open.
const REST: Duration = Duration::from_millis(100);
/// How long at a time is waited for a piece of its output.
const PIECE: Duration = Duration::from_millis(10);
/// The most that is taken of what they print, in bytes.
const MOST: u64 = 64 << 10;

impl Args {
    /// Reads the few flags without a parser that could fail, and that would take its time.
    pub(crate) fn of(words: &[OsString]) -> Args {
        Args {
            then: flag(words, "--then"),
            scale: flag(words, "--scale"),
            width: flag(words, "--width"),
            rest: Vec::new(),
        }
    }

    /// Draws, whatever happens.
    pub(crate) fn run(self) -> ExitCode {
        watch::never_disturb();
        let document = ctxfold_hook::read_document_blocking(std::io::stdin(), Limits::default());
        if let Ok(document) = document {
            watch::say(&self.draw(&document.text).unwrap_or_default());
        }
        ExitCode::SUCCESS
    }

    fn draw(&self, text: &str) -> Option<String> {
        // It works while we do.
        let theirs = self.then.as_deref().map(|command| {
            let mut shell = Command::new("/bin/sh");
            shell.arg("-c").arg(command);
            Child::start(shell, text)
        });
        let ours = Input::parse(text).map(|input| self.line(input));
        let theirs = theirs.and_then(|child| Some(child?.said().text));
        let theirs = theirs
            .map(|text| text.trim_end().to_owned())
            .filter(|t| !t.is_empty());
        match (theirs, ours) {
            (Some(theirs), Some(ours)) => Some(format!("{theirs}\n{ours}")),
            (theirs, ours) => theirs.or(ours),
        }
    }

    fn line(&self, mut input: Input) -> String {
        let env = Env::read();
        let now = seconds(&env);
        let folder = input
            .current_dir
            .as_deref()
            .map_or_else(|| env.cwd.clone(), PathBuf::from);
        let planning = find_planning(&folder, env.home.as_deref());
        let fill = self.measure(&env, &mut input, &folder, now);
        let look = Look {
            colour: env::var("NO_COLOR").is_none(),
            price: input
                .cache
                .filter(|cache| !cache.warm || cache.expires_at.is_some_and(|at| at <= now))
                .and_then(|_| idle::price(&Config::read(&env).ok()?))
                .map(|price| price.uncached),
            width: self.width(),
            tokens: Show::from(planning.tokens),
            meter_first: planning.meter_first,
            branch: match planning.git {
                None => branch(&folder),
                Some(true) => git_status(&folder),
                Some(false) => None,
            },
        };
        render(&input, &folder.to_string_lossy(), fill.as_ref(), &look, now)
    }

    /// The fill: from the input, which goes to the bridge, else from the session's own file. That
    /// also tells about the prompt cache where the input does not.
    fn measure(&self, env: &Env, input: &mut Input, folder: &Path, now: u64) -> Option<Fill> {
        let scale = match self.scale.as_deref() {
            Some("window") => Scale::Window,
            _ => Scale::Compaction,
        };
        let project = input
            .project_dir
            .as_ref()
            .map_or_else(|| folder.to_owned(), PathBuf::from);
        let settings = match (scale, input.window()) {
            (Scale::Compaction, Some(_)) => Settings::read(Some(&env.claude_root), &project),
            _ => Settings::default(),
        };
        let fill = input.fill(scale, &watch::overrides(), &settings, now);
        if let (Some(fill), Some(id)) = (&fill, input.session_id.as_deref())
            && let Ok(id) = SessionId::new(id)
        {
            // A line without a bridge is better than none.
            let _ = watch::store().write_bridge(&id, &fill.bridge);
        }
        if fill.is_some() && input.cache.is_some() {
            return fill;
        }
        let path = input.transcript_path.as_deref().map(Path::new);
        let path = path.filter(|path| watch::changed(path).is_some());
        let Some(tail) = path.and_then(|path| claude::read_tail(path).ok()) else {
            return fill;
        };
        if let (None, Some(ttl), Some(active)) = (input.cache, tail.cache_ttl, tail.active_ms) {
            let expires = active.max(0).cast_unsigned() / 1000 + ttl.as_secs();
            input.cache = Some(Cache {
                warm: expires > now,
                expires_at: Some(expires),
            });
        }
        fill.or_else(|| {
            let used = tail
                .fill
                .filter(|fill| !fill.stale && scale == Scale::Compaction)?;
            let model = tail
                .model
                .or_else(|| input.model_id.clone())
                .unwrap_or_default();
            let user = Config::read(env).unwrap_or_default();
            let (limit, _) = watch::claude_limit(env, &user, &project, &model, used.tokens, None)?;
            Some(Fill::of_tokens(used.tokens, limit, now))
        })
    }

    /// Columns: as told, else as the client says in `COLUMNS`, without its margins.
    fn width(&self) -> Option<usize> {
        const MARGINS: usize = 4;
        let number = |text: &str| text.trim().parse::<usize>().ok().filter(|n| *n > 0);
        let told = self.width.as_deref().and_then(number);
        let terminal = || Some(number(&env::var("COLUMNS")?)?.saturating_sub(MARGINS));
        told.or_else(terminal)
    }
}

/// Asks git for the branch with its marks.
fn git_status(folder: &Path) -> Option<String> {
    let mut git = Command::new("git");
    git.args([
        "--no-optional-locks",
        "status",
        "--porcelain=v2",
        "--branch",
    ])
    .current_dir(folder);
    let said = Child::start(git, "")?.said();
    // Half of its answer is no answer.
    branch_with_marks(said.is_whole.then_some(said.text.as_str())?)
}

/// What a program printed.
struct Said {
    text: String,
    /// Whether it had come to its end.
    is_whole: bool,
}

/// A program whose output is waited for in bounded time.
struct Child {
    process: std::process::Child,
    output: Receiver<Vec<u8>>,
}

impl Child {
    fn start(mut command: Command, input: &str) -> Option<Child> {
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = command.spawn().ok()?;
        let (mut stdin, stdout) = (process.stdin.take()?, process.stdout.take()?);
        let input = input.to_owned();
        // A program need not read its input.
        std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
        let (sender, output) = mpsc::channel();
        std::thread::spawn(move || {
            let mut stdout = stdout.take(MOST);
            let mut piece = [0; 4096];
            // At the end nobody waits when time is up.
            while let Ok(len @ 1..) = stdout.read(&mut piece)
                && sender.send(piece[..len].to_vec()).is_ok()
            {}
        });
        Some(Child { process, output })
    }

    /// What it printed until it ended or its time was up; then its whole group is ended.
    fn said(mut self) -> Said {
        let mut bytes = Vec::new();
        let (mut until, mut has_ended) = (Instant::now() + CHILD, false);
        let is_whole = loop {
            match self.output.recv_timeout(PIECE) {
                Ok(piece) => bytes.extend(piece),
                Err(RecvTimeoutError::Disconnected) => break true,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if !has_ended && matches!(self.process.try_wait(), Ok(Some(_))) {
                has_ended = true;
                until = until.min(Instant::now() + REST);
            }
            if Instant::now() >= until {
                break has_ended;
            }
        };
        if !is_whole {
            self.end();
        }
        // It is gone or about to go; either way nobody waits for it.
        let _ = self.process.try_wait();
        Said {
            text: String::from_utf8_lossy(&bytes).into_owned(),
            is_whole,
        }
    }

    #[cfg(unix)]
    fn end(&mut self) {
        let id = i32::try_from(self.process.id()).ok();
        if let Some(id) = id.and_then(rustix::process::Pid::from_raw) {
            // It may have ended by itself.
            let _ = rustix::process::kill_process_group(id, rustix::process::Signal::KILL);
        }
    }

    #[cfg(not(unix))]
    fn end(&mut self) {
        let _ = self.process.kill();
    }
}
