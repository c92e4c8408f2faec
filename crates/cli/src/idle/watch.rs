//! Passes for as long as the process lives: one when the clock says that a pause has become long
//! enough, one when files changed. In between nothing is looked at.

use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::{Pass, lock, settings};
use crate::agent::Agent;
use crate::commands::Context;
use crate::config::Config;
use crate::error::CommandResult;
use crate::interrupt;

/// Most conversations that one pass reads; the rest waits for the next one.
const MOST_A_PASS: usize = 50;
/// The longest wait, whatever is due and whatever the system tells of files.
const LONGEST: Duration = Duration::from_hours(1);

enum Wake {
    Changed,
    Stop,
}

/// Stays, until Ctrl-C or until that many passes were made. Two passes are at least `every` apart.
pub(crate) fn watch(cx: &Context, every: Duration, passes: Option<u64>) -> CommandResult {
    let _lock = lock(cx)?;
    let (sender, receiver) = mpsc::channel();
    let mut files = Files::new(cx, &sender);
    if !files.arm() {
        cx.say("ctxfold: this system does not tell of changed files; looking by the clock");
    }
    // It ends between two conversations, never inside an append.
    interrupt::arm(move || drop(sender.send(Wake::Stop)))?;
    cx.say("ctxfold: watching; Ctrl-C ends it");
    let mut pass = Pass::new(MOST_A_PASS);
    let mut made = 0;
    let mut was = None;
    loop {
        // What the user sets meanwhile holds from the next pass on; a file in the middle of an edit
        // is no reason to end.
        let config = match Config::read(&cx.env) {
            Ok(config) => config,
            Err(error) => {
                cx.say(&format!(
                    "ctxfold: nothing is compacted until this is mended: {error}"
                ));
                Config::default()
            }
        };
        let cx = Context {
            env: cx.env.clone(),
            config,
            quiet: cx.quiet,
        };
        let now = [Agent::Claude, Agent::Codex].map(|agent| settings(&cx.config, agent));
        if was.replace(now) != Some(now) {
            pass.forget();
        }
        // Folders may have been made, or made again, since.
        let told = files.arm();
        let begun = Instant::now();
        let report = pass.go(&cx, false)?;
        if !report.compacted.is_empty() || !report.failed.is_empty() {
            report.tell(&cx, false);
        }
        if report.interrupted {
            return Ok(());
        }
        made += 1;
        if passes.is_some_and(|most| made >= most) {
            return Ok(());
        }
        let longest = if told { LONGEST } else { every };
        let due = report.next_ms.map_or(longest, |at| {
            Duration::from_millis(u64::try_from(at - cx.env.now_ms()).unwrap_or(0))
        });
        if wait(
            &receiver,
            begun + every,
            begun + due.clamp(every, longest.max(every)),
        )
        .is_break()
        {
            return Ok(());
        }
    }
}

/// Waits until `due`, or, once files changed, until `soonest`.
fn wait(receiver: &Receiver<Wake>, soonest: Instant, due: Instant) -> std::ops::ControlFlow<()> {
    let mut until = due;
    loop {
        match receiver.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Wake::Changed) => until = soonest,
            Err(RecvTimeoutError::Timeout) => return std::ops::ControlFlow::Continue(()),
            Ok(Wake::Stop) | Err(RecvTimeoutError::Disconnected) => {
                return std::ops::ControlFlow::Break(());
            }
        }
    }
}

/// What the system tells of the agents' folders and of our settings.
struct Files {
    watcher: Option<RecommendedWatcher>,
    folders: [PathBuf; 3],
}

impl Files {
    fn new(cx: &Context, sender: &Sender<Wake>) -> Files {
        let folders = [
            cx.env.claude_root.join("projects"),
            cx.env.codex_home.join("sessions"),
            cx.env.config_file.clone(),
        ];
        let (sender, wanted) = (sender.clone(), folders.clone());
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let matters = |event: notify::Event| {
                // Above what is a file or not there, only it matters.
                let is_ours = |path: &PathBuf| {
                    let mut folders = wanted.iter();
                    folders.any(|f| path.starts_with(f) || f.starts_with(path))
                };
                !matches!(event.kind, EventKind::Access(_)) && event.paths.iter().any(is_ours)
            };
            if event.is_ok_and(matters) {
                // Once nobody listens the process is about to end.
                drop(sender.send(Wake::Changed));
            }
        });
        Files {
            watcher: watcher.ok(),
            folders,
        }
    }

    /// Asks to be told of every change under the folders, of the settings' file, and where one is
    /// not there, of its making. `false` where the system does not tell of all.
    fn arm(&mut self) -> bool {
        let Some(watcher) = &mut self.watcher else {
            return false;
        };
        let mut all = true;
        for folder in &self.folders {
            let mut above = folder.ancestors().skip(1);
            let watched = if folder.is_dir() {
                watcher.watch(folder, RecursiveMode::Recursive)
            } else if let Some(above) = above.find(|above| above.is_dir()) {
                watcher.watch(above, RecursiveMode::NonRecursive)
            } else {
                continue;
            };
            all &= watched.is_ok();
        }
        all
    }
}
