//! The files that the cases work on: generated once, and put back to their length after each run.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use ctxfold_test_support::generate::{ClaudeSession, CodexRollout};

use crate::shell::Result;

/// What a file holds.
#[derive(Debug, Clone)]
pub(super) enum Content {
    /// A session of Claude Code.
    Claude(ClaudeSession),
    /// A rollout of Codex.
    Codex(CodexRollout),
    /// Text as it is.
    Text(String),
}

/// A file of a case.
#[derive(Debug, Clone)]
pub(super) struct Input {
    pub(super) path: PathBuf,
    pub(super) content: Content,
}

impl Input {
    /// Beside each file lies one that holds its length and how it was made.
    fn stamp(&self) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".stamp");
        // Not in the sessions' folder, where a client would look at it.
        self.path
            .ancestors()
            .nth(2)
            .unwrap_or(&self.path)
            .join(name)
    }

    fn recipe(&self) -> String {
        format!("{:?}", self.content)
    }

    fn recorded_length(&self) -> Option<u64> {
        let stamp = fs::read_to_string(self.stamp()).ok()?;
        let (length, recipe) = stamp.split_once('\n')?;
        if recipe == self.recipe() {
            length.parse().ok()
        } else {
            None
        }
    }
}

/// Makes the files that aren't there yet, or were made otherwise.
pub(super) fn prepare(inputs: &[Input]) -> Result<()> {
    for input in inputs {
        let there =
            fs::metadata(&input.path).is_ok_and(|m| Some(m.len()) == input.recorded_length());
        if !there {
            generate(input).map_err(|e| format!("failed to make {}: {e}", input.path.display()))?;
        }
    }
    Ok(())
}

fn generate(input: &Input) -> std::io::Result<()> {
    println!("  generating {}", input.path.display());
    if let Some(folder) = input.path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&input.path)?);
    let length = match &input.content {
        Content::Claude(session) => session.write_to(out)?.bytes,
        Content::Codex(rollout) => rollout.write_to(out)?.bytes,
        Content::Text(text) => {
            out.write_all(text.as_bytes())?;
            out.flush()?;
            text.len() as u64
        }
    };
    fs::write(input.stamp(), format!("{length}\n{}", input.recipe()))
}

/// Whether a run appended to one of the files.
pub(super) fn have_grown(inputs: &[Input]) -> bool {
    inputs.iter().any(|input| {
        let now = fs::metadata(&input.path)
            .ok()
            .map(|metadata| metadata.len());
        now > input.recorded_length()
    })
}

/// Cuts off what a run appended.
pub(super) fn restore(inputs: &[Input]) -> Result<()> {
    for input in inputs {
        let failed = |error| format!("failed to restore {}: {error}", input.path.display());
        let Some(length) = input.recorded_length() else {
            continue;
        };
        let file = File::options()
            .write(true)
            .open(&input.path)
            .map_err(failed)?;
        if file.metadata().map_err(failed)?.len() != length {
            file.set_len(length).map_err(failed)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_made_once_and_put_back_to_their_length() {
        let folder = tempfile::tempdir().unwrap();
        let input = Input {
            path: folder.path().join("a/b/session.jsonl"),
            content: Content::Claude(ClaudeSession::default()),
        };
        prepare(std::slice::from_ref(&input)).unwrap();
        let length = fs::metadata(&input.path).unwrap().len();
        let mut text = fs::read_to_string(&input.path).unwrap();
        text.push_str("appended\n");
        fs::write(&input.path, &text).unwrap();
        assert!(have_grown(std::slice::from_ref(&input)));
        restore(std::slice::from_ref(&input)).unwrap();
        assert!(!have_grown(std::slice::from_ref(&input)));
        assert_eq!(fs::metadata(&input.path).unwrap().len(), length);

        let modified = fs::metadata(&input.path).unwrap().modified().unwrap();
        prepare(std::slice::from_ref(&input)).unwrap();
        assert_eq!(
            fs::metadata(&input.path).unwrap().modified().unwrap(),
            modified
        );
        let content = Content::Claude(ClaudeSession {
            turns: 3,
            ..ClaudeSession::default()
        });
        let other = Input { content, ..input };
        prepare(std::slice::from_ref(&other)).unwrap();
        assert!(fs::metadata(&other.path).unwrap().len() < length);
    }
}
