//! `ctxfold mod`: the machine interface of the plugins. Rows are read and written in
//! `crate::mod_session`.

use std::io::Read as _;

use clap::Subcommand;
use ctxfold_compactor::Refusal;
use ctxfold_transcript::Author;

use super::Context;
use crate::engine::{self, Wish};
use crate::error::{CommandError, CommandResult};
use crate::mod_session::{self, Handed, Reply};
use crate::{env, output};

/// The machine interface of the plugins
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Compact the conversation on standard input and print the messages that are left
    Compact,
    /// Say whether the running session paused for so long that its cache is gone
    Idle(super::idle::ModIdle),
}

/// The largest conversation that is read, in bytes.
const LARGEST: u64 = 1 << 30;

impl Args {
    pub(crate) fn run(self, cx: &Context) -> CommandResult {
        match self.action {
            Action::Compact => compact(cx),
            Action::Idle(args) => args.run(cx),
        }
    }
}

fn compact(cx: &Context) -> CommandResult {
    let mut bytes = Vec::new();
    std::io::stdin()
        .take(LARGEST)
        .read_to_end(&mut bytes)
        .map_err(|e| CommandError::input(format!("failed to read standard input: {e}")))?;
    let text = String::from_utf8_lossy(&bytes);
    let text = mod_session::well_formed(&text);
    let session = env::var("CLAUDE_CODE_SESSION_ID").unwrap_or_default();
    let handed = mod_session::read(&text, &session)?;
    let wish = wish(cx, &handed);
    let made = match engine::plan(&cx.env, &cx.config, &handed.transcript, &wish) {
        Ok(made) => made,
        Err(error) if error.code() == crate::exit::REFUSED => {
            return output::json(&Reply::Skip {
                v: 1,
                skip: error.to_string(),
            });
        }
        Err(error) => return Err(error),
    };
    let messages = mod_session::write(&handed, &made.plan);
    let prompts = handed
        .transcript
        .messages
        .iter()
        .filter(|m| m.author == Author::User)
        .count();
    if messages.is_empty() || (prompts > 0 && messages.len() < 2 && made.plan.summary.is_none()) {
        return Err(CommandError::refused(
            Refusal::NothingToGain {
                gain: 0.0,
                needed: 0.25,
            }
            .to_string(),
        ));
    }
    output::json(&Reply::Messages {
        v: 1,
        messages,
        note: made.line(&wish),
    })
}

/// The plugin's settings over the configuration's.
fn wish(cx: &Context, handed: &Handed<'_>) -> Wish {
    let mut wish = Wish::of(&cx.config);
    let options = &handed.options;
    if let Some(mode) = &options.mode {
        wish.mode = engine::mode_named(mode);
    }
    if let Some(keep) = options.keep_recent {
        wish.mask.keep_recent = keep;
    }
    if let Some(model) = &options.model {
        wish.model.clone_from(model);
    }
    if let Some(level) = &options.thinking {
        wish.thinking = engine::thinking_named(level);
    }
    if let Some(tier) = &options.tier {
        wish.tier.clone_from(tier);
    }
    wish.instructions.clone_from(&handed.instructions);
    wish.progress = false;
    // When the model fails, the client's own summary is the fallback.
    wish.fallback = false;
    wish
}
