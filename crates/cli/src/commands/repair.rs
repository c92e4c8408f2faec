//! `ctxfold repair`: make a damaged conversation whole for its client.

use std::path::PathBuf;

use super::{Context, Which};
use crate::agent::{self, Place};
use crate::error::{CommandError, CommandResult};
use crate::journal::{Done, Journal, Size};
use crate::output;

/// Make a damaged session whole for its client
///
/// Rows that stand on damaged lines are written again, gaps are bridged, and results without their
/// call are left out. Rows are appended, nothing is changed or removed; `ctxfold undo` takes it
/// back. `ctxfold check` says what is damaged. Codex repairs its own threads when it resumes them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,

    /// Say what would be done, and stop
    #[arg(long, short = 'n')]
    dry_run: bool,

    /// Append although a running client has the session; it takes effect at the next resume
    #[arg(long)]
    live: bool,

    /// Print what was done as JSON
    #[arg(long)]
    json: bool,

    /// Write a repaired copy to this new file and leave the session alone
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(self, cx: &Context) -> CommandResult {
        let place = agent::locate(&cx.env, self.which.session.as_deref(), self.which.agent)?;
        if let Some(out) = &self.out {
            super::new_file(cx, out)?;
        }
        let conversation = cx.open(&place, None)?;
        let writes = !self.dry_run && self.out.is_none();
        if writes && !self.live {
            conversation.refuse_live(&cx.env)?;
        }
        let before: Size = conversation.transcript().measure().into();
        let ready = conversation.prepare_repair(&cx.env)?;
        let more = ready.bytes().len() as u64;
        if !self.json {
            for finding in conversation.findings() {
                cx.say(&format!("  found   {finding}"));
            }
        }
        let json = |repaired: bool, after: Option<Size>, refused: Option<CommandError>| {
            output::json(&serde_json::json!({
                "v": 1, "repaired": repaired, "findings": conversation.findings(), "appended_bytes": more,
                "before": before, "after": after, "out": self.out, "refused": refused.map(|e| e.line()),
            }))
        };
        if self.dry_run {
            let leaves = self.live || self.out.is_some();
            let refused = super::would_refuse(cx, &conversation, leaves);
            if self.json {
                return json(false, None, refused);
            }
            cx.say(&format!(
                "ctxfold: would append {}; nothing was written",
                output::bytes(more)
            ));
            super::say_refused(cx, refused.as_ref());
            return Ok(());
        }
        let measure = |place: &Place| -> CommandResult<Size> {
            Ok(cx.open(place, None)?.transcript().measure().into())
        };
        if let Some(out) = &self.out {
            let written = ready.write_copy(out)?;
            if self.json {
                return json(true, Some(measure(&Place::claude(out.clone()))?), None);
            }
            cx.say(&format!(
                "ctxfold: wrote {} ({})",
                cx.env.show(out),
                output::bytes(written.len_after)
            ));
            return Ok(());
        }
        let journal = Journal::new(&cx.env.state_dir);
        super::write(cx, &journal, &conversation, ready, "repair", |id, w| {
            Done::unmeasured(id, w.len_after, &w.sha256, before)
        })?;
        let now = measure(&place)?;
        if self.json {
            return json(true, Some(now), None);
        }
        cx.say(&output::styled(
            output::GOOD,
            &format!(
                "ctxfold: repaired: {} → {} messages",
                before.messages, now.messages
            ),
        ));
        cx.say(&format!(
            "  undo    ctxfold undo {}",
            conversation.short_id()
        ));
        Ok(())
    }
}
