//! Leaves base64 out of a text that goes to a model, and says how much it was. What counts as
//! base64: what stands behind `base64,` as in data URIs, one long run, and a block of lines.

use std::ops::Range;

/// A run of at least this many bytes is base64.
const RUN: usize = 512;
/// So is a block of at least [`LINES`] lines of this many bytes.
const LINE: usize = 60;
const LINES: usize = 8;
/// What may stand between the lines of a block: a line end, indented or escaped.
const BETWEEN: usize = 12;

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
}

/// Capitals, small letters and digits, as paths, words and hashes in hexadecimal hardly have.
fn is_mixed(run: &[u8]) -> bool {
    run.iter().any(u8::is_ascii_uppercase)
        && run.iter().any(u8::is_ascii_lowercase)
        && run.iter().any(u8::is_ascii_digit)
}

/// The text without its base64.
pub(crate) fn plain(text: &str) -> String {
    let found = found(text.as_bytes());
    if found.is_empty() {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut at = 0;
    for range in found {
        out.push_str(&text[at..range.start]);
        out.push_str(&format!("(base64, {} characters, left out)", range.len()));
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}

/// Where base64 stands, in order.
fn found(bytes: &[u8]) -> Vec<Range<usize>> {
    let runs = runs(bytes);
    let mut out: Vec<Range<usize>> = Vec::new();
    let mut next = 0;
    while let Some(run) = runs.get(next) {
        let lines = block(bytes, &runs[next..]);
        let is_data = bytes[..run.start].ends_with(b"base64,");
        if lines > 1 && (lines >= LINES || is_data) {
            out.push(run.start..runs[next + lines - 1].end);
            next += lines;
            continue;
        }
        let content = &bytes[run.clone()];
        if is_data || run.len() >= RUN && is_mixed(content) {
            out.push(run.clone());
        }
        next += 1;
    }
    out
}

/// The runs of bytes of which base64 is made.
fn runs(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut start = None;
    for (at, byte) in bytes.iter().enumerate() {
        match (is_base64(*byte), start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                out.push(from..at);
                start = None;
            }
            _ => {}
        }
    }
    out.extend(start.map(|from| from..bytes.len()));
    out
}

/// How many runs from the first on are the lines of one block; the last may be shorter.
fn block(bytes: &[u8], runs: &[Range<usize>]) -> usize {
    let Some(first) = runs.first() else { return 0 };
    if first.len() < LINE || !is_mixed(&bytes[first.clone()]) {
        return 1;
    }
    let mut count = 1;
    for pair in runs.windows(2) {
        let between = &bytes[pair[0].end..pair[1].start];
        let is_line_end = between.len() <= BETWEEN
            && between.iter().any(|b| matches!(b, b'\n' | b'\\'))
            && between
                .iter()
                .all(|b| b.is_ascii_whitespace() || *b == b'\\');
        // The letter of an escaped line end belongs to the run: `\n` makes it one longer.
        if !is_line_end || pair[1].len() > first.len() + 1 {
            break;
        }
        let is_last = pair[1].len() + 1 < first.len();
        let content = &bytes[pair[1].clone()];
        if is_last && !content.ends_with(b"=") && !is_mixed(content) {
            // A word that follows the block.
            break;
        }
        count += 1;
        if is_last {
            break;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE_OF: &str =
        "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0NTY3QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0";

    #[test]
    fn base64_goes_and_says_how_much_it_was() {
        let long = LINE_OF.repeat(8);
        let block = format!("{LINE_OF}\n").repeat(9) + "QUI=";
        let escaped = format!("{LINE_OF}\\n").repeat(9) + "QUI=";
        for (text, expected) in [
            (
                format!("see {long} there"),
                format!("see (base64, {} characters, left out) there", long.len()),
            ),
            (
                "![x](data:image/png;base64,iVBORw0KGgo=) and on".to_owned(),
                "![x](data:image/png;base64,(base64, 12 characters, left out)) and on".to_owned(),
            ),
            (
                format!("begin\n{block}\nend"),
                format!("begin\n(base64, {} characters, left out)\nend", block.len()),
            ),
            (
                format!("\"{escaped}\""),
                format!("\"(base64, {} characters, left out)\"", escaped.len()),
            ),
            (
                format!("url(data:font/woff;base64,{LINE_OF}\n  {LINE_OF}\n  QUI=) x"),
                format!(
                    "url(data:font/woff;base64,(base64, {} characters, left out)) x",
                    2 * LINE_OF.len() + 10
                ),
            ),
        ] {
            assert_eq!(plain(&text), expected);
            assert_eq!(plain(&expected), expected, "twice is once");
        }
    }

    #[test]
    fn words_paths_and_hashes_stay() {
        let hashes = ("0123456789abcdef".repeat(4) + "\n").repeat(20);
        let paths = "/home/dev/Project1/crates/session-claude/tests/fixtures/of-the-client\n";
        for text in [
            hashes,
            paths.repeat(7),
            "integrity \"sha512-QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0NTY3QUJDREVGR0hJSktMTU5PUFFS==\""
                .to_owned(),
            format!("a short one {LINE_OF} stays"),
            "-".repeat(2000),
            "=".repeat(2000),
            "the word base64, and what follows".replace(", and", " and"),
        ] {
            assert_eq!(plain(&text), text);
        }
    }

    proptest! {
        /// Whatever stands around it, and wherever.
        #[test]
        fn no_long_run_stays(
            before in "[ -~\\n]{0,40}", run in "[a-z][A-Z][0-9][A-Za-z0-9+/]{520,700}", after in "\\PC{0,40}",
        ) {
            let out = plain(&format!("{before} {run} {after}"));
            prop_assert!(!out.contains(&run[..60]), "{out}");
            let (before, after) = (format!("{before} "), format!(" {after}"));
            if !before.contains("base64,") && !after.contains("base64,") {
                prop_assert!(out.starts_with(&before) && out.ends_with(&after));
            }
        }

        #[test]
        fn other_text_is_as_it_was(text in "([a-zA-Z0-9/+]{0,50}[ .:\\n]){0,30}") {
            prop_assume!(!text.contains("base64,"));
            prop_assert_eq!(plain(&text), text);
        }
    }
}
