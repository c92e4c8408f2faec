//! Printing: data to standard output, talk to standard error, numbers for people, bars.

use std::io::Write as _;

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::error::CommandResult;

/// Styles by meaning. Every line makes sense without them.
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();

/// Writes data. A closed pipe ends the command quietly.
pub(crate) fn data(text: &str) -> CommandResult {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes data without any change, whatever bytes it holds.
pub(crate) fn raw(bytes: &[u8]) -> CommandResult {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}

/// Writes a value as JSON, indented on a terminal.
pub(crate) fn json(value: &impl Serialize) -> CommandResult {
    let text = if crate::env::stdout_is_terminal() {
        serde_json::to_string_pretty(value)
    } else {
        serde_json::to_string(value)
    };
    let mut text = text.map_err(std::io::Error::other)?;
    text.push('\n');
    raw(text.as_bytes())
}

/// Talks to the user. What cannot be said is no reason to fail.
pub(crate) fn say(text: &str) {
    anstream::eprintln!("{text}");
}

/// `text` in a style.
pub(crate) fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Bytes for people: `812 B`, `18.4 kB`, `2.0 MB`.
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if n < 1000 {
        return format!("{n} B");
    }
    let mut value = n as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Tokens for people: `950`, `31k`, `1.2M`.
pub(crate) fn tokens(n: u64) -> String {
    match n {
        0..1000 => n.to_string(),
        1000..999_500 => format!("{}k", (n + 500) / 1000),
        _ => format!("{:.1}M", n as f64 / 1e6),
    }
}

/// A share of a window for people: `8%`, `104%`; past all belief `>999%`.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 999.5 {
        format!("{percent:.0}%")
    } else {
        ">999%".to_owned()
    }
}

/// A span of time for people: `45 s`, `12 min`, `3 h`, `5 d`.
pub(crate) fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A bar of `width` cells, filled to `share` (0 to 1), in eighths of a cell.
pub(crate) fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let filled = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let mut out: String = "█".repeat(filled / 8);
    if !filled.is_multiple_of(8) {
        out.push(EIGHTHS[filled % 8]);
    }
    let used = out.chars().count();
    out.extend(std::iter::repeat_n(' ', width.saturating_sub(used)));
    out
}

/// A line of small bars, one a value, scaled to the largest.
pub(crate) fn sparkline(values: &[u64]) -> String {
    const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().copied().max().unwrap_or(0).max(1);
    values
        .iter()
        .map(|v| STEPS[((*v as f64 / most as f64) * 7.0).round() as usize])
        .collect()
}

/// The first `width` characters of a line, with an ellipsis where it was longer; control
/// characters become spaces.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let clean: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if clean.chars().count() <= width {
        return clean;
    }
    let mut out: String = clean.chars().take(width.saturating_sub(1)).collect();
    out.push('…');
    out
}

/// A text behind a lead, broken between words where it is wider than the table; the lines that
/// follow stand under the first. A single word that is too wide, such as a path, stays whole.
pub(crate) fn hanging(lead: &str, lead_width: usize, text: &str, width: usize) -> String {
    let mut out = lead.to_owned();
    let mut at = lead_width;
    let mut is_first = true;
    for word in text.split(' ') {
        let len = word.chars().count();
        if !is_first && at + 1 + len > width {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', lead_width));
            at = lead_width;
            is_first = true;
        }
        if !is_first {
            out.push(' ');
            at += 1;
        }
        out.push_str(word);
        at += len;
        is_first = false;
    }
    out.push('\n');
    out
}

/// A word as a shell reads it back.
pub(crate) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@%+".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Asks at most `width` values of a series, evenly.
pub(crate) fn sample(values: &[u64], width: usize) -> Vec<u64> {
    if values.len() <= width || width == 0 {
        return values.to_vec();
    }
    (0..width)
        .map(|i| values[i * (values.len() - 1) / (width - 1).max(1)])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_short_at_the_edges() {
        for (n, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (999_949, "999.9 kB"),
            (999_951, "1.0 MB"),
        ] {
            assert_eq!(bytes(n), text);
        }
        for (n, text) in [
            (999, "999"),
            (1000, "1k"),
            (999_499, "999k"),
            (999_500, "1.0M"),
        ] {
            assert_eq!(tokens(n), text);
        }
    }

    #[test]
    fn a_bar_always_has_its_width() {
        for eighth in 0..=80 {
            assert_eq!(bar(f64::from(eighth) / 80.0, 10).chars().count(), 10);
        }
        assert_eq!(bar(7.0, 3), "███");
        assert_eq!(bar(-1.0, 3), "   ");
    }

    #[test]
    fn cut_takes_control_characters_out() {
        assert_eq!(cut("a\x1b[31mb\n", 20), "a [31mb ");
        assert_eq!(cut("abcdef", 4), "abc…");
    }

    #[test]
    fn a_text_hangs_under_its_first_line() {
        let text = "one two three four";
        assert_eq!(
            hanging("x  ", 3, text, 11),
            "x  one two\n   three\n   four\n"
        );
        assert_eq!(hanging("x  ", 3, text, 80), "x  one two three four\n");
        assert_eq!(
            hanging("x  ", 3, "/a/long/path b", 8),
            "x  /a/long/path\n   b\n"
        );
        assert_eq!(hanging("x  ", 3, "", 8), "x  \n");
    }

    #[test]
    fn a_shell_reads_every_word_back() {
        for word in [
            "",
            "a",
            "go on",
            "it's",
            "$(x) `y` \"z\"",
            "a\nb",
            "*",
            "~",
            "\\",
        ] {
            let script = format!("printf %s {}", shell_word(word));
            let output = std::process::Command::new("sh")
                .arg("-c")
                .arg(script)
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), word);
        }
        assert_eq!(shell_word("--resume"), "--resume");
    }

    #[test]
    fn a_sample_has_both_ends() {
        let all: Vec<u64> = (0..100).collect();
        let some = sample(&all, 10);
        assert_eq!((some.len(), some[0], some[9]), (10, 0, 99));
    }
}
