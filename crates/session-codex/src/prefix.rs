//! The words with which the client begins a summary. Text that begins with them is a summary to
//! the client, and is left out at its next compaction; without them it would be taken for the
//! user speaking and kept for ever.

/// The client's own words up to the line break before the summary, the same in every version from
/// 0.144.6 to 0.171.0: what its `compacted` lines hold in `message`. A constant of the format,
/// used where the thread has no compaction of the client's own to take it from.
pub(crate) const SUMMARY_PREFIX: &str = "Another language model started to solve this problem and produced a summary of its thinking process. You also have access to the state of the tools that were used by that language model. Use this to build on the work that has already been done and avoid duplicating work. Here is the summary produced by the other language model, use the information in this summary to assist with your own analysis:";

/// The prefix in the `message` of an earlier compaction, where it has one.
pub(crate) fn derive(message: &str) -> Option<&str> {
    let (first, rest) = message.split_once('\n')?;
    let plausible = (200..2_000).contains(&first.len()) && first.ends_with(':');
    (plausible && !rest.is_empty()).then_some(first)
}

/// The summary behind either prefix, or nothing where the text is no summary.
pub(crate) fn strip<'t>(text: &'t str, own: &str) -> Option<&'t str> {
    let rest = text
        .strip_prefix(own)
        .or_else(|| text.strip_prefix(SUMMARY_PREFIX))?;
    Some(rest.strip_prefix('\n').unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_is_found_in_a_message_and_only_there() {
        let message = format!("{SUMMARY_PREFIX}\nthe work\nso far");
        assert_eq!(derive(&message), Some(SUMMARY_PREFIX));
        assert_eq!(strip(&message, "other"), Some("the work\nso far"));
        assert_eq!(derive("a summary: with\nlines"), None);
        assert_eq!(derive(""), None);
        assert_eq!(strip("hello", SUMMARY_PREFIX), None);
    }
}
