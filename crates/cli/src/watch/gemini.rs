//! The fill of a conversation of Gemini CLI: the last `tokens` of its chat file, against the point
//! where it compresses by itself.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use ctxfold_monitor::read_settings;
use serde_json::Value;

/// How much of the file's end is read, in bytes.
const MOST: u64 = 8 << 20;
/// How much is read at first; an ordinary turn lies within.
const FIRST: u64 = 64 << 10;
/// The window of the models that the client knows, in tokens.
const WINDOW: f64 = 1_048_576.0;
/// The share of the window at which the client compresses.
const SHARE: f64 = 0.5;

/// Tokens in the context at the last answer. `None` when the end of the file does not say it.
pub(crate) fn tokens(path: &Path) -> Option<u64> {
    let mut file = File::open(path).ok()?;
    let len = file.metadata().ok()?.len();
    let mut size = FIRST;
    loop {
        let start = len.saturating_sub(size);
        file.seek(SeekFrom::Start(start)).ok()?;
        let mut bytes = Vec::new();
        (&file).take(size).read_to_end(&mut bytes).ok()?;
        // The first line of a part may have lost its beginning.
        let whole = if start == 0 {
            &bytes[..]
        } else {
            let end = bytes.iter().position(|b| *b == b'\n');
            end.map_or(&[][..], |end| &bytes[end + 1..])
        };
        if let Some(found) = whole.rsplit(|b| *b == b'\n').find_map(of_line) {
            return Some(found);
        }
        if start == 0 || size >= MOST {
            return None;
        }
        size = MOST;
    }
}

/// `{"type":"gemini","tokens":{"input":100,"output":5,…,"total":105}}`
fn of_line(line: &[u8]) -> Option<u64> {
    let row: Value = serde_json::from_slice(line).ok()?;
    if row["type"] != "gemini" {
        return None;
    }
    row["tokens"]["total"].as_u64().filter(|total| *total > 0)
}

/// Tokens at which the client compresses, by its own settings where they say it.
pub(crate) fn limit(home: Option<&Path>, project: &Path) -> u64 {
    let folders = [Some(project), home];
    let share = folders.into_iter().flatten().find_map(|folder| {
        let text = read_settings(&folder.join(".gemini/settings.json"))?;
        let settings: Value = serde_json::from_str(&text).ok()?;
        settings["model"]["compressionThreshold"].as_f64()
    });
    let share = share.filter(|s| *s > 0.0 && *s <= 1.0).unwrap_or(SHARE);
    (WINDOW * share) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(rows: &[&str]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), rows.join("\n")).unwrap();
        file
    }

    #[test]
    fn the_last_answer_counts_however_far_back() {
        let answer =
            r#"{"type":"gemini","content":"","tokens":{"input":400,"output":5,"total":405}}"#;
        let first = r#"{"type":"gemini","content":"","tokens":{"input":1,"output":1,"total":2}}"#;
        let user = format!(r#"{{"type":"user","content":"{}"}}"#, "x".repeat(100_000));
        for rows in [
            &[first, answer][..],
            &[
                first,
                answer,
                r#"{"$set":{"lastUpdated":"2026"}}"#,
                r#"{"torn"#,
            ],
            &[first, answer, &user],
            &[
                &user,
                first,
                answer,
                r#"{"type":"gemini","tokens":{"total":0}}"#,
            ],
        ] {
            assert_eq!(tokens(chat(rows).path()), Some(405));
        }
        assert_eq!(tokens(chat(&[&user]).path()), None);
        assert_eq!(tokens(chat(&[]).path()), None);
    }

    #[test]
    fn the_clients_settings_move_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(limit(Some(folder.path()), Path::new("/nowhere")), 524_288);
        std::fs::create_dir(folder.path().join(".gemini")).unwrap();
        let write = |text: &str| {
            std::fs::write(folder.path().join(".gemini/settings.json"), text).unwrap();
        };
        write(r#"{"model":{"compressionThreshold":0.25}}"#);
        assert_eq!(limit(Some(folder.path()), Path::new("/nowhere")), 262_144);
        write(r#"{"model":{"compressionThreshold":7}}"#);
        assert_eq!(limit(Some(folder.path()), Path::new("/nowhere")), 524_288);
    }
}
