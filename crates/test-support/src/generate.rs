//! Synthetic sessions of any size, in the shapes that the real clients write.
//!
//! The content is neutral and the same for the same parameters. [`ClaudeSession`] and
//! [`CodexRollout`] write to any [`Write`], row by row, so that a file of gigabytes takes no memory.

mod claude;
mod codex;

use std::io::{self, Write};

use serde_json::Value;

pub use claude::ClaudeSession;
pub use codex::CodexRollout;

/// Stands in a row where filler goes; replaced while the row is written.
const FILL: &str = "@@FILL@@";

/// What a generator wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Every byte.
    pub bytes: u64,
    /// The bytes from the last compaction's row on, or all of them where there is none.
    pub live_bytes: u64,
    /// Every row.
    pub rows: u64,
}

/// Counts what passes through, and puts filler into rows.
struct RowWriter<W> {
    out: W,
    filler: Filler,
    bytes: u64,
    rows: u64,
}

impl<W: Write> RowWriter<W> {
    fn new(out: W) -> Self {
        Self {
            out,
            filler: Filler::new(),
            bytes: 0,
            rows: 0,
        }
    }

    fn row(&mut self, row: &Value) -> io::Result<()> {
        self.filled_row(row, 0)
    }

    /// Writes a row with about `fill` bytes of text in place of each mark.
    fn filled_row(&mut self, row: &Value, fill: usize) -> io::Result<()> {
        let text = row.to_string();
        let fill = self.filler.take(fill, self.rows);
        for (at, part) in text.split(FILL).enumerate() {
            if at > 0 {
                self.put(fill.as_bytes())?;
            }
            self.put(part.as_bytes())?;
        }
        self.rows += 1;
        self.put(b"\n")
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    fn finish(mut self, live_from: u64) -> io::Result<Written> {
        self.out.flush()?;
        Ok(Written {
            bytes: self.bytes,
            live_bytes: self.bytes - live_from,
            rows: self.rows,
        })
    }
}

/// Lines of text, escaped for JSON once, so that large outputs cost a copy and no more.
struct Filler {
    /// Escaped lines, one behind the other.
    text: String,
    /// The end of each line in `text`.
    ends: Vec<usize>,
}

impl Filler {
    const LINES: usize = 4096;

    fn new() -> Self {
        let mut filler = Self {
            text: String::new(),
            ends: Vec::new(),
        };
        for line in 0..Self::LINES {
            let raw = match line % 4 {
                0 => format!(
                    "{line:06}: module survey returned {} items\n",
                    line * 7 % 97
                ),
                1 => format!(
                    "{line:06}:\tlet name = \"value {}\"; // kept — naïvely\n",
                    line % 31
                ),
                2 => format!("{line:06}: ok ({} ms)\n", line * 13 % 977),
                _ => format!("{line:06}: C:\\path\\{} is 100 % done\n", line % 211),
            };
            let escaped = Value::String(raw).to_string();
            filler.text.push_str(&escaped[1..escaped.len() - 1]);
            filler.ends.push(filler.text.len());
        }
        filler
    }

    /// About `size` bytes of whole lines, others for each `seed`; at least `size`, where not 0.
    fn take(&self, size: usize, seed: u64) -> String {
        let mut taken = String::with_capacity(size + 128);
        let mut line = usize::try_from(seed % Self::LINES as u64).unwrap_or(0);
        while taken.len() < size {
            let start = if line == 0 { 0 } else { self.ends[line - 1] };
            // As many lines as still fit, in one copy.
            let wanted = start + size - taken.len();
            let last = self
                .ends
                .partition_point(|end| *end < wanted)
                .min(Self::LINES - 1);
            taken.push_str(&self.text[start..self.ends[last]]);
            line = (last + 1) % Self::LINES;
        }
        taken
    }
}

/// A time that grows with `step`, as both clients write it.
fn time(step: u64) -> String {
    let (seconds, millis) = (step / 10, step % 10 * 100);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    format!(
        "2026-01-{:02}T{:02}:{:02}:{:02}.{millis:03}Z",
        days % 28 + 1,
        hours % 24,
        minutes % 60,
        seconds % 60
    )
}

/// An id in the form of a version 4 UUID, other for each number.
fn uuid(number: u64) -> String {
    // Spread, so that ids don't share long prefixes.
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{number:012x}",
        mixed >> 32,
        mixed >> 16 & 0xffff,
        mixed >> 4 & 0xfff,
        mixed & 0xfff
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filler_is_valid_json_text_of_about_the_size_asked_for() {
        let filler = Filler::new();
        for (size, seed) in [(0, 0), (1, 3), (100, 4095), (70_000, 9), (1_000_000, 77)] {
            let text = filler.take(size, seed);
            assert!(
                text.len() >= size && text.len() < size + 128,
                "{size}: {}",
                text.len()
            );
            let parsed: String = serde_json::from_str(&format!("\"{text}\"")).unwrap();
            assert!(parsed.is_empty() || parsed.ends_with('\n'));
        }
        assert_ne!(filler.take(50, 1), filler.take(50, 2));
    }

    #[test]
    fn ids_differ() {
        let mut ids: Vec<String> = (0..10_000).map(uuid).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 10_000);
        assert!(ids.iter().all(|id| id.len() == 36));
    }
}
