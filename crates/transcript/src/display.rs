//! A plan for people: one line on the whole, one a decision, one a note.

use std::fmt;

use crate::{Action, Mode, Plan, Target, Transcript};

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Plan {
    /// The plan as text for people, with the calls' labels from the transcript it was made for.
    pub fn render(&self, transcript: &Transcript) -> String {
        use fmt::Write as _;
        let mut out = String::new();
        let (truncated, dropped) = self.counts();
        let percent = (self.before.gain(&self.after) * 100.0).floor();
        let _ = writeln!(
            out,
            "{}: {} → {} messages · {} → {} bytes · {percent:.0}% smaller · {truncated} truncated, {dropped} dropped",
            self.mode,
            self.before.messages,
            self.after.messages,
            self.before.bytes,
            self.after.bytes,
        );
        for decision in &self.decisions {
            let label = match decision.target {
                Target::Call(i) => transcript.calls.get(i).map_or("?", |c| c.label.as_str()),
                Target::Attachment(at) => match transcript.block(at).map(|b| &b.content) {
                    Some(crate::Content::Attachment {
                        name: Some(name), ..
                    }) => name.as_str(),
                    Some(crate::Content::Attachment { kind, .. }) => kind.as_str(),
                    _ => "?",
                },
            };
            let verb = match decision.action {
                Action::Keep => "keep",
                Action::Truncate(_) => "truncate",
                Action::Drop => "drop",
            };
            // Labels come from files that others wrote: nothing that a terminal would obey.
            let label: String = label.chars().filter(|c| !c.is_control()).collect();
            let _ = writeln!(out, "  {verb:<8} {label}  ({})", decision.reason);
        }
        for note in &self.notes {
            let _ = writeln!(out, "  note     on message {}: {}", note.message, note.text);
        }
        out
    }
}
