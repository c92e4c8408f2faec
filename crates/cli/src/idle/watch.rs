//! Passes for as long as the process lives: one when the clock says that a pause has become long
//! enough, one when files changed. In between nothing is looked at.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::{Pass, lock, settings};
use crate::agent::Agent;
use crate::commands::Context;
use crate::config::Config;
use crate::engine;
use crate::error::CommandResult;

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
    let watcher = watch_files(cx, &sender);
    if watcher.is_none() {
        cx.say("ctxfold: this system does not tell of changed files; looking by the clock");
    }
    stop_on_ctrl_c(sender)?;
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
        let begun = Instant::now();
        let report = pass.go(&cx, false)?;
        if !report.compacted.is_empty() || !report.failed.is_empty() {
            report.tell(&cx, false);
        }
        made += 1;
        if passes.is_some_and(|most| made >= most) {
            return Ok(());
        }
        let longest = if watcher.is_some() { LONGEST } else { every };
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

/// Tells of every change under the agents' folders. They need not all be there.
fn watch_files(cx: &Context, sender: &Sender<Wake>) -> Option<RecommendedWatcher> {
    let sender = sender.clone();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if event.is_ok_and(|e| !matches!(e.kind, EventKind::Access(_))) {
            // Once nobody listens the process is about to end.
            drop(sender.send(Wake::Changed));
        }
    })
    .ok()?;
    let folders = [
        cx.env.claude_root.join("projects"),
        cx.env.codex_home.join("sessions"),
    ];
    let mut there = folders.iter().filter(|folder| folder.is_dir()).peekable();
    there.peek()?;
    for folder in there {
        watcher.watch(folder, RecursiveMode::Recursive).ok()?;
    }
    Some(watcher)
}

/// Ends the watch between two passes, never inside an append.
fn stop_on_ctrl_c(sender: Sender<Wake>) -> CommandResult {
    let runtime = engine::runtime()?;
    std::thread::spawn(move || {
        if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            drop(sender.send(Wake::Stop));
        }
    });
    Ok(())
}
