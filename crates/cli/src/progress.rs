//! Progress over a file that takes long to read: on a terminal alone, and only once it takes long.

use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::env;

/// What is over sooner shows nothing.
const PATIENCE: Duration = Duration::from_millis(500);
/// Time between two drawings.
const TICK: Duration = Duration::from_millis(120);

/// Shown until it is dropped.
#[derive(Debug)]
pub(crate) struct Progress(Option<Shown>);

#[derive(Debug)]
struct Shown {
    bar: ProgressBar,
    /// Its end is the waiter's sign to go.
    stop: Option<Sender<()>>,
    waiter: Option<JoinHandle<()>>,
}

impl Progress {
    /// Over a file that is read now. Without word of how far it is, time alone passes.
    pub(crate) fn over(quiet: bool, path: &Path) -> Progress {
        if quiet || !env::stderr_is_terminal() {
            return Progress(None);
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{spinner} reading {prefix} · {elapsed}") {
            bar.set_style(style);
        }
        let name = path.file_name().unwrap_or(path.as_os_str());
        bar.set_prefix(crate::output::cut(&name.to_string_lossy(), 60));
        let (stop, stopped) = mpsc::channel::<()>();
        let shown = bar.clone();
        let waiter = std::thread::spawn(move || {
            if stopped.recv_timeout(env::patience(PATIENCE)) == Err(RecvTimeoutError::Timeout) {
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(TICK);
            }
        });
        Progress(Some(Shown {
            bar,
            stop: Some(stop),
            waiter: Some(waiter),
        }))
    }

    /// So many bytes are done of so many.
    pub(crate) fn at(&self, done: u64, of: u64) {
        let Some(Shown { bar, .. }) = &self.0 else {
            return;
        };
        if bar.length() != Some(of) {
            bar.set_length(of);
            let template = "{bar:30} {bytes} of {total_bytes} · {elapsed}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
        }
        bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(shown) = &mut self.0 {
            drop(shown.stop.take());
            if let Some(waiter) = shown.waiter.take() {
                // It only draws; when it failed, nothing was drawn.
                let _ = waiter.join();
            }
            shown.bar.finish_and_clear();
        }
    }
}
