//! The lines that stand in the place of folded content, and reading them back.

use std::fmt;

use ctxfold_transcript::{Activity, Call, Content, Outcome, Part};

const OPEN: &str = "[folded by ctxfold: ";
const READ_BACK: &str = "; read it back with: ctxfold unfold ";
const CUT: &str = "\n[cut by ctxfold: ";

/// What a folded line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldedLine {
    /// What ran, for example `Bash(cargo test)`.
    pub label: String,
    /// How it ended.
    pub ending: Ending,
    /// Bytes of the output.
    pub bytes: u64,
    /// Lines of the output's text.
    pub lines: u64,
    /// Images in the output.
    pub images: u64,
    /// The address that reads it back.
    pub address: String,
}

/// How folded content came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// A call that ended well, its exit code not being known.
    Well,
    /// A command's exit code.
    Exit(i32),
    /// A call that ended with an error.
    Error,
    /// The client attached it; nothing ran.
    Attached,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Well => f.write_str("ran without an error"),
            Ending::Exit(code) => write!(f, "ran, exit {code}"),
            Ending::Error => f.write_str("ran, ended with an error"),
            Ending::Attached => f.write_str("was attached"),
        }
    }
}

impl Ending {
    pub(crate) fn of(call: &Call) -> Ending {
        let exit = call.activities.iter().find_map(|activity| match activity {
            Activity::Run { exit, .. } => *exit,
            _ => None,
        });
        match (exit, call.outcome) {
            (Some(code), _) => Ending::Exit(code),
            (None, Outcome::Failure) => Ending::Error,
            (None, _) => Ending::Well,
        }
    }
}

impl fmt::Display for FoldedLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{OPEN}{} {}, {}",
            self.label,
            self.ending,
            Size(self.bytes)
        )?;
        if self.lines > 0 {
            write!(f, ", {} line{}", self.lines, plural(self.lines))?;
        }
        if self.images > 0 {
            write!(f, ", {} image{}", self.images, plural(self.images))?;
        }
        write!(f, "{READ_BACK}{}]", self.address)
    }
}

fn plural(n: u64) -> &'static str {
    if n == 1 { "" } else { "s" }
}

/// Bytes for people: `812 B`, `18.4 kB`, `2.0 MB`.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..1_000 => write!(f, "{} B", self.0),
            1_000..1_000_000 => write!(f, "{:.1} kB", self.0 as f64 / 1e3),
            _ => write!(f, "{:.1} MB", self.0 as f64 / 1e6),
        }
    }
}

impl FoldedLine {
    pub(crate) fn of_call(call: &Call, result: &Content) -> FoldedLine {
        let mut line = FoldedLine {
            label: one_line(&call.label),
            ending: Ending::of(call),
            bytes: result.payload_bytes(),
            lines: 0,
            images: 0,
            address: one_line(&call.address),
        };
        if let Content::ToolResult { parts, .. } = result {
            for part in parts {
                match part {
                    Part::Text(text) => line.lines += text.lines().count() as u64,
                    Part::Image(_) => line.images += 1,
                    _ => {}
                }
            }
        }
        line
    }

    pub(crate) fn of_attachment(content: &Content) -> Option<FoldedLine> {
        let Content::Attachment {
            kind,
            name,
            text,
            address,
            ..
        } = content
        else {
            return None;
        };
        Some(FoldedLine {
            label: one_line(name.as_deref().unwrap_or(kind)),
            ending: Ending::Attached,
            bytes: content.payload_bytes(),
            lines: text.lines().count() as u64,
            images: 0,
            address: one_line(address),
        })
    }

    /// Reads a folded line. The size comes back as precise as the line tells it.
    pub fn parse(text: &str) -> Option<FoldedLine> {
        let inner = text.strip_prefix(OPEN)?.strip_suffix(']')?;
        if inner.contains('\n') {
            return None;
        }
        let (what, address) = inner.rsplit_once(READ_BACK)?;
        let (mut what, mut lines, mut images) = (what, 0, 0);
        if let Some((rest, n)) = counted(what, "image") {
            (what, images) = (rest, n);
        }
        if let Some((rest, n)) = counted(what, "line") {
            (what, lines) = (rest, n);
        }
        let (what, size) = what.rsplit_once(", ")?;
        let (label, ending) = ending(what)?;
        Some(FoldedLine {
            label: label.to_owned(),
            ending,
            bytes: parse_size(size)?,
            lines,
            images,
            address: address.to_owned(),
        })
    }
}

fn counted<'a>(what: &'a str, unit: &str) -> Option<(&'a str, u64)> {
    let (rest, last) = what.rsplit_once(", ")?;
    let (n, word) = last.split_once(' ')?;
    (word.strip_suffix('s').unwrap_or(word) == unit).then_some((rest, n.parse().ok()?))
}

fn ending(what: &str) -> Option<(&str, Ending)> {
    for ending in [Ending::Well, Ending::Error, Ending::Attached] {
        if let Some(label) = what.strip_suffix(&format!(" {ending}")) {
            return Some((label, ending));
        }
    }
    let (label, code) = what.rsplit_once(" ran, exit ")?;
    Some((label, Ending::Exit(code.parse().ok()?)))
}

fn parse_size(size: &str) -> Option<u64> {
    let (number, unit) = size.split_once(' ')?;
    let scale = match unit {
        "B" => return number.parse().ok(),
        "kB" => 1e3,
        "MB" => 1e6,
        _ => return None,
    };
    Some((number.parse::<f64>().ok()? * scale).round() as u64)
}

/// The text without line breaks and other control characters.
pub(crate) fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// The first `head` characters of an output, and a line that says so.
pub(crate) fn truncated(call: &Call, text: &str, head: usize) -> String {
    let end = text.char_indices().nth(head).map_or(text.len(), |(i, _)| i);
    let total = text.chars().count();
    format!(
        "{}{CUT}{} {}; the first {} of {total} characters are above{READ_BACK}{}]",
        &text[..end],
        one_line(&call.label),
        Ending::of(call),
        head.min(total),
        one_line(&call.address),
    )
}

/// Whether an output was folded or cut by us already.
pub(crate) fn is_folded(content: &Content) -> bool {
    let text = match content {
        Content::Attachment { text, .. } => text,
        Content::ToolResult { parts, .. } => match parts.as_slice() {
            [Part::Text(text)] => text,
            _ => return false,
        },
        _ => return false,
    };
    FoldedLine::parse(text).is_some()
        || text.rsplit_once(CUT).is_some_and(|(_, line)| {
            line.ends_with(']') && line.contains(READ_BACK) && !line.contains('\n')
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_reads_as_promised() {
        let line = FoldedLine {
            label: "Bash(cargo test)".into(),
            ending: Ending::Exit(0),
            bytes: 18_421,
            lines: 412,
            images: 0,
            address: "3f2a91c0:GQ7wK2".into(),
        };
        assert_eq!(
            line.to_string(),
            "[folded by ctxfold: Bash(cargo test) ran, exit 0, 18.4 kB, 412 lines; \
             read it back with: ctxfold unfold 3f2a91c0:GQ7wK2]"
        );
    }

    proptest! {
        #[test]
        fn lines_parse_back(
            label in "[ -~äß漢]{0,60}", which in 0usize..4, code in any::<i32>(),
            bytes in 0u64..1_000, lines in 0u64..9_999, images in 0u64..3,
            address in "[0-9a-f]{8}:[A-Za-z0-9]{6}",
        ) {
            let ending = [Ending::Well, Ending::Exit(code), Ending::Error, Ending::Attached][which];
            let line = FoldedLine { label, ending, bytes, lines, images, address };
            prop_assert_eq!(FoldedLine::parse(&line.to_string()), Some(line));
        }

        #[test]
        fn sizes_are_told_to_a_twentieth(bytes in 0u64..3_000_000_000) {
            let told = parse_size(&Size(bytes).to_string()).unwrap();
            prop_assert!(told.abs_diff(bytes) <= bytes / 18);
        }
    }
}
