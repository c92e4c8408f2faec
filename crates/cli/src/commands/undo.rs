//! `ctxfold undo`.

use super::{Context, Which};
use crate::agent;
use crate::error::CommandResult;
use crate::journal::{Done, Journal, Size};
use crate::output;

/// Bring back the conversation as it was before the newest compaction
///
/// What was said since stays. Rows are appended; a second undo takes back the compaction before.
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
}

impl Args {
    pub(crate) fn run(self, cx: &Context) -> CommandResult {
        let place = agent::locate(&cx.env, self.which.session.as_deref(), self.which.agent)?;
        agent::refuse_packed(&place)?;
        let conversation = cx.open(&place, None)?;
        if !self.live && !self.dry_run {
            conversation.refuse_live(&cx.env)?;
        }
        let before: Size = conversation.transcript().measure().into();
        let ready = conversation.prepare_undo(&cx.env)?;
        if self.dry_run {
            let refused = super::would_refuse(cx, &conversation, self.live);
            let (len, more) = (ready.len_before(), ready.bytes().len() as u64);
            if self.json {
                return output::json(&serde_json::json!({
                    "v": 1, "undone": false, "len_before": len, "len_after": len + more,
                    "before": before, "after": null, "refused": refused.map(|e| e.line()),
                }));
            }
            cx.say(&format!(
                "ctxfold: would append {}; nothing was written",
                output::bytes(more)
            ));
            super::say_refused(cx, refused.as_ref());
            return Ok(());
        }
        let journal = Journal::new(&cx.env.state_dir);
        let written =
            super::compact::write(cx, &journal, &conversation, ready, "undo", |id, w| {
                Done::unmeasured(id, w.len_after, &w.sha256, before)
            })?;
        let now: Size = cx.open(&place, None)?.transcript().measure().into();
        if self.json {
            return output::json(&serde_json::json!({
                "v": 1, "undone": true, "len_before": written.len_before, "len_after": written.len_after,
                "before": before, "after": now, "refused": null,
            }));
        }
        cx.say(&output::styled(
            output::GOOD,
            &format!(
                "ctxfold: undone: {} → {} messages",
                before.messages, now.messages
            ),
        ));
        cx.say(&format!(
            "  before  {} in the request",
            output::bytes(before.bytes)
        ));
        cx.say(&format!(
            "  now     {} in the request",
            output::bytes(now.bytes)
        ));
        Ok(())
    }
}
