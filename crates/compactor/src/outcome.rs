//! The one line that says what a compaction did.

use std::fmt::Write as _;

use ctxfold_transcript::{Mode, Plan};

/// What the model calls used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens sent.
    pub input_tokens: u64,
    /// Tokens answered, thinking included.
    pub output_tokens: u64,
}

/// What a plan did, in one line, without the program's name before it.
///
/// ```
/// use ctxfold_compactor::{Usage, outcome};
/// use ctxfold_transcript::{Measure, Mode, Plan, Transcript};
///
/// let mut plan = Plan::keep_all(&Transcript::default(), Mode::Summary);
/// plan.before = Measure { messages: 58, bytes: 100_000, tokens: 25_000 };
/// plan.after = Measure { messages: 7, bytes: 8_900, tokens: 2_225 };
/// let usage = Usage { input_tokens: 312_400, output_tokens: 5_100 };
/// assert_eq!(
///     outcome(&plan, Some(usage)),
///     "summary: 58 → 7 messages · 91% smaller · 312k in, 5k out"
/// );
/// ```
pub fn outcome(plan: &Plan, usage: Option<Usage>) -> String {
    let (before, after) = (plan.before, plan.after);
    let smaller = format!("{:.0}% smaller", (before.gain(&after) * 100.0).floor());
    let (truncated, dropped) = plan.counts();
    let mut line = match plan.mode {
        Mode::Summary => format!(
            "summary: {} → {} messages · {smaller}",
            before.messages, after.messages
        ),
        Mode::Prune => format!(
            "kept {}/{} messages · {smaller} · {dropped} dropped, {truncated} truncated",
            after.messages, before.messages
        ),
        Mode::Mask if dropped > 0 => {
            format!("masked: {truncated} folded, {dropped} dropped · {smaller}")
        }
        Mode::Mask => format!("masked: {truncated} folded · {smaller}"),
    };
    if let Some(usage) = usage {
        let _ = write!(
            line,
            " · {} in, {} out",
            short(usage.input_tokens),
            short(usage.output_tokens)
        );
    }
    line
}

/// The line for a conversation that was masked because the model failed.
pub fn masked_instead(reason: &str) -> String {
    let one_line = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("masked instead: {one_line}")
}

/// Tokens in at most four characters where that is possible: `950`, `31k`, `1.2M`.
fn short(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..999_500 => format!("{}k", (tokens + 500) / 1_000),
        _ => format!("{:.1}M", tokens as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxfold_transcript::{Action, Measure, Transcript};

    #[test]
    fn each_mode_has_its_line() {
        let measure = |messages, bytes| Measure {
            messages,
            bytes,
            tokens: bytes / 4,
        };
        let mut plan = Plan::keep_all(&Transcript::default(), Mode::Prune);
        plan.before = measure(58, 100_000);
        plan.after = measure(41, 47_900);
        for call in 0..27 {
            let action = if call < 18 {
                Action::Drop
            } else {
                Action::Truncate(String::new())
            };
            plan.decide_call(call, action, "model");
        }
        let usage = Usage {
            input_tokens: 31_499,
            output_tokens: 1_234,
        };
        assert_eq!(
            outcome(&plan, Some(usage)),
            "kept 41/58 messages · 52% smaller · 18 dropped, 9 truncated · 31k in, 1k out"
        );
        plan.mode = Mode::Mask;
        assert_eq!(
            outcome(&plan, None),
            "masked: 9 folded, 18 dropped · 52% smaller"
        );
        assert_eq!(
            masked_instead("Gemini HTTP 429:\n quota"),
            "masked instead: Gemini HTTP 429: quota"
        );
    }

    #[test]
    fn tokens_are_short_at_every_size() {
        let table = [
            (0, "0"),
            (999, "999"),
            (1_000, "1k"),
            (1_499, "1k"),
            (1_500, "2k"),
            (999_499, "999k"),
            (999_500, "1.0M"),
            (1_250_000, "1.2M"),
        ];
        for (tokens, text) in table {
            assert_eq!(short(tokens), text);
        }
    }
}
