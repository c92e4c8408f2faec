//! What no mode touches: where the tail begins, and which failures were never got over.

use std::collections::{BTreeMap, HashSet};

use ctxfold_transcript::{Activity, Author, Call, Outcome, Transcript};

use crate::Refusal;

/// The first message that stays verbatim: `keep_recent` from the end, moved back to an assistant
/// message, before no open call and inside no pair.
pub(crate) fn tail(transcript: &Transcript, keep_recent: usize) -> Result<usize, Refusal> {
    let messages = &transcript.messages;
    let too_short = Refusal::TooShort {
        messages: messages.len(),
        keep_recent,
    };
    let is_answer = |m: usize| {
        messages
            .get(m)
            .is_none_or(|m| m.author == Author::Assistant)
    };
    let mut cut = messages.len().saturating_sub(keep_recent);
    let last_answer = messages.iter().rposition(|m| m.author == Author::Assistant);
    loop {
        while cut > 0 && !is_answer(cut) {
            cut -= 1;
        }
        let earliest = transcript
            .calls
            .iter()
            .filter(|call| match call.result {
                Some(result) => result.message >= cut,
                None => Some(call.at.message) >= last_answer,
            })
            .map(|call| call.at.message)
            .filter(|at| *at < cut)
            .min();
        match earliest {
            Some(at) => cut = at,
            None if cut == 0 => return Err(too_short),
            None => return Ok(cut),
        }
    }
}

/// For each call, whether it failed and nothing of its kind succeeded later.
pub(crate) fn open_failures(transcript: &Transcript) -> Vec<bool> {
    let mut later = Successes::default();
    let mut open = vec![false; transcript.calls.len()];
    for (index, call) in transcript.calls.iter().enumerate().rev() {
        match call.outcome {
            Outcome::Failure => open[index] = !later.fixes(call),
            Outcome::Success => later.add(call),
            Outcome::Pending => {}
        }
    }
    open
}

/// For each call, whether it got over an earlier failure: while the failure stands, so must it.
pub(crate) fn fixers(transcript: &Transcript) -> Vec<bool> {
    let (mut exact, mut keys) = (HashSet::new(), HashSet::new());
    let mut out = vec![false; transcript.calls.len()];
    for (index, call) in transcript.calls.iter().enumerate() {
        for command in call.activities.iter().filter_map(command) {
            match call.outcome {
                Outcome::Failure => {
                    exact.insert(words(command));
                    keys.insert(command_key(command));
                }
                Outcome::Success => {
                    out[index] |= exact.contains(&words(command))
                        || (!hides_failure(command) && keys.contains(&command_key(command)));
                }
                Outcome::Pending => {}
            }
        }
    }
    out
}

/// What succeeded.
#[derive(Debug, Default)]
pub(crate) struct Successes {
    exact: HashSet<String>,
    keys: HashSet<String>,
    paths: HashSet<String>,
    tools: HashSet<String>,
}

impl Successes {
    pub(crate) fn add(&mut self, call: &Call) {
        for activity in &call.activities {
            if let Activity::Run { command, .. } = activity {
                self.exact.insert(words(command));
                if !hides_failure(command) {
                    self.keys.insert(command_key(command));
                }
            }
            if let Some(path) = activity.path() {
                self.paths.insert(plain_path(path).to_owned());
            }
        }
        self.tools.insert(call.tool.clone());
    }

    pub(crate) fn fixes_command(&self, command: &str) -> bool {
        self.exact.contains(&words(command)) || self.keys.contains(&command_key(command))
    }

    fn fixes(&self, call: &Call) -> bool {
        let mut commands = call.activities.iter().filter_map(command).peekable();
        if commands.peek().is_some() {
            return commands.all(|command| self.fixes_command(command));
        }
        let mut paths = call.activities.iter().filter_map(Activity::path).peekable();
        if paths.peek().is_some() {
            return paths.all(|path| self.paths.contains(plain_path(path)));
        }
        self.tools.contains(&call.tool)
    }
}

/// The command of a run.
pub(crate) fn command(activity: &Activity) -> Option<&str> {
    match activity {
        Activity::Run { command, .. } => Some(command),
        _ => None,
    }
}

/// A path as files are told apart.
pub(crate) fn plain_path(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path)
}

fn words(command: &str) -> String {
    command.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a command can end well although what matters in it failed: `cargo test | tail`.
fn hides_failure(command: &str) -> bool {
    command.contains(['|', ';', '\n'])
}

/// What tells commands apart: program and operands, without variables, options and redirections.
fn command_key(command: &str) -> String {
    let mut key: Vec<&str> = Vec::new();
    for word in command.split_whitespace() {
        let is_redirection = word.starts_with(['|', '>', '<'])
            || word.starts_with("2>")
            || word.starts_with("1>")
            || word.starts_with("&>");
        if is_redirection {
            break;
        }
        let is_variable = key.is_empty() && word.contains('=');
        if !word.starts_with('-') && !is_variable {
            key.push(word);
        }
    }
    key.join(" ")
}

/// Where each path was last read or changed with success, as the message's place.
pub(crate) fn last_touch(transcript: &Transcript) -> BTreeMap<String, usize> {
    let mut touched = BTreeMap::new();
    for call in &transcript.calls {
        if call.outcome != Outcome::Success {
            continue;
        }
        for path in call.activities.iter().filter_map(Activity::path) {
            touched.insert(plain_path(path).to_owned(), call.at.message);
        }
    }
    touched
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxfold_transcript::Builder;

    fn run(command: &str) -> Vec<Activity> {
        vec![Activity::Run {
            command: command.into(),
            exit: None,
        }]
    }

    #[test]
    fn a_failure_is_open_until_the_same_succeeds() {
        let table = [
            ("cargo test", "cargo test", true),
            ("cargo test 2>&1", "cargo   test --quiet", true),
            ("RUST_LOG=x cargo test", "cargo test", true),
            ("cargo test -p a", "cargo test -p b", false),
            ("cargo test", "cargo build", false),
            ("cargo test", "cargo test | tail -5", false),
            ("cargo test | tail", "cargo test | tail", true),
            ("cargo test", "cargo test || true", false),
        ];
        for (failed, succeeded, fixed) in table {
            let mut b = Builder::new();
            b.message(Author::Assistant)
                .call_with("1", "Bash", "1", run(failed));
            b.message(Author::Tool).result("1", "no", true);
            b.message(Author::Assistant)
                .call_with("2", "Bash", "2", run(succeeded));
            b.message(Author::Tool).result("2", "yes", false);
            let open = open_failures(&b.build());
            assert_eq!(open, [!fixed, false], "{failed} then {succeeded}");
        }
    }

    #[test]
    fn the_tail_moves_back_to_an_answer_and_never_into_a_pair() {
        let mut b = Builder::new();
        b.message(Author::User).text("0");
        b.message(Author::Assistant).call("a", "T", "T");
        b.message(Author::Tool).result("a", "2", false);
        b.message(Author::Assistant).text("3");
        b.message(Author::User).text("4");
        b.message(Author::Assistant).call("b", "T", "T");
        let t = b.build();
        let at = |keep| tail(&t, keep).ok();
        assert_eq!(at(0), Some(5), "the open call stays");
        assert_eq!(at(1), Some(5));
        assert_eq!(at(2), Some(3), "a prompt is no answer");
        assert_eq!(at(3), Some(3));
        assert_eq!(at(4), Some(1), "a result stays with its call");
        assert_eq!(at(5), Some(1));
        assert_eq!(at(6), None);
        assert_eq!(at(60), None);
    }
}
