//! Ctrl-C, where something has to end in order: asked once, the work ends at the next good place;
//! asked twice, the process ends. What is appended is whole or not at all either way.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::error::{CommandError, CommandResult};
use crate::{engine, exit};

static ASKED: AtomicBool = AtomicBool::new(false);
static ARMED: Once = Once::new();

/// From now on Ctrl-C is heard and no longer ends the process by itself; `heard` is called at the
/// first one. Only the first call of this function does anything.
pub(crate) fn arm(heard: impl FnOnce() + Send + 'static) -> CommandResult {
    if ARMED.is_completed() {
        return Ok(());
    }
    let runtime = engine::runtime()?;
    ARMED.call_once(move || {
        std::thread::spawn(move || {
            let mut heard = Some(heard);
            while runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
                match heard.take() {
                    Some(heard) => {
                        ASKED.store(true, Ordering::SeqCst);
                        heard();
                    }
                    None => std::process::exit(exit::MODEL.into()),
                }
            }
        });
    });
    Ok(())
}

/// Whether the user asked for the end.
pub(crate) fn is_asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

/// An error once the user asked for the end.
pub(crate) fn check() -> CommandResult {
    if is_asked() {
        return Err(CommandError::interrupted());
    }
    Ok(())
}

/// Waits until the user asks for the end.
pub(crate) async fn asked() {
    while !is_asked() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
