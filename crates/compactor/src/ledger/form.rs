//! The ledger's text form, version 1: for the model to read, and for the next round to parse.
//!
//! Sections begin with `# `, items with `- `; each further line of an item is indented by two
//! spaces, so that nothing in an item can pass for a section or for the end.

use std::fmt;

use ctxfold_transcript::{Todo, TodoState};

use super::{AgentFact, FailedCommand, FileFact, Ledger, UserWords};
use crate::fold::one_line;

const OPEN: &str = "<ctxfold-ledger version=\"1\">";
const OPEN_ANY: &str = "<ctxfold-ledger version=\"";
const CLOSE: &str = "</ctxfold-ledger>";

const STANDING: &str = "# standing instructions and prohibitions of the user";
const USER: &str = "# what the user said, oldest first";
const FILES: &str = "# files";
const FAILED: &str = "# commands that failed and were not fixed";
const TODOS: &str = "# open todos";
const AGENTS: &str = "# sub-agents";
const SKILLS: &str = "# skills in use (load them again before you rely on them)";

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{OPEN}")?;
        writeln!(
            f,
            "Taken from the conversation by code, not by a model. To read a part back: \
             ctxfold unfold ADDRESS; to find one: ctxfold unfold --search REGEX"
        )?;
        section(f, STANDING, self.standing.iter().cloned())?;
        section(f, USER, self.user_messages.iter().map(words))?;
        section(f, FILES, self.files.iter().map(file))?;
        let failed = self
            .failed
            .iter()
            .map(|x| format!("{}\n{} ({})", x.command, one_line(&x.error), x.address));
        section(f, FAILED, failed)?;
        let todos = self.todos.iter().map(|todo| {
            let mark = match todo.state {
                TodoState::InProgress => '~',
                TodoState::Pending => ' ',
                TodoState::Completed => 'x',
            };
            format!("[{mark}] {}", todo.text)
        });
        section(f, TODOS, todos)?;
        let agents = self
            .agents
            .iter()
            .map(|x| format!("{}\n{} ({})", x.task, one_line(&x.agent), x.address));
        section(f, AGENTS, agents)?;
        section(f, SKILLS, self.skills.iter().cloned())?;
        f.write_str(CLOSE)
    }
}

fn file(file: &FileFact) -> String {
    let told = [
        (file.read, "read"),
        (file.created, "created"),
        (file.changed, "changed"),
        (file.deleted, "deleted"),
    ];
    let words: Vec<&str> = told.iter().filter(|(is, _)| *is).map(|(_, w)| *w).collect();
    format!(
        "{} ({}) ({})",
        one_line(&file.path),
        words.join(", "),
        one_line(&file.address)
    )
}

/// The words, and on a line of its own the address where one is known.
fn words(words: &UserWords) -> String {
    let UserWords { text, address } = words;
    let is_unclear = || text.rsplit('\n').next().and_then(as_address).is_some();
    match &**address {
        "" if is_unclear() => format!("{text}\n({NO_ADDRESS})"),
        "" => text.clone(),
        address => format!("{text}\n({})", one_line(address)),
    }
}

const NO_ADDRESS: &str = "-";

/// The address in a line that holds nothing else.
fn as_address(line: &str) -> Option<&str> {
    let address = line.strip_prefix('(')?.strip_suffix(')')?;
    let is_word = |word: &str| {
        let is_char = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        !word.is_empty() && word.chars().all(is_char)
    };
    let (session, key) = address.split_once(':').unwrap_or((address, address));
    let is_address = is_word(session) && is_word(key) && address.contains(':');
    (is_address || address == NO_ADDRESS).then_some(address)
}

fn parse_words(item: String) -> UserWords {
    let found = item
        .rsplit_once('\n')
        .and_then(|(text, last)| Some((text, as_address(last)?)));
    match found {
        Some((text, address)) => UserWords {
            text: text.to_owned(),
            address: if address == NO_ADDRESS { "" } else { address }.to_owned(),
        },
        None => UserWords {
            text: item,
            address: String::new(),
        },
    }
}

fn section(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    items: impl Iterator<Item = String>,
) -> fmt::Result {
    let mut items = items.peekable();
    if items.peek().is_none() {
        return Ok(());
    }
    writeln!(f, "{title}")?;
    for item in items {
        for (place, line) in item.split('\n').enumerate() {
            writeln!(f, "{} {line}", if place == 0 { "-" } else { " " })?;
        }
    }
    Ok(())
}

/// Where the last ledger of a text begins and ends.
fn place(text: &str) -> Option<(usize, usize)> {
    let start = if let Some(at) = text.rfind(&format!("\n{OPEN_ANY}")) {
        at + 1
    } else if text.starts_with(OPEN_ANY) {
        0
    } else {
        return None;
    };
    let close = text[start..].find(&format!("\n{CLOSE}"))?;
    Some((start, start + close + 1 + CLOSE.len()))
}

/// A model's text in which nothing passes for a ledger.
pub(crate) fn defuse(text: &str) -> String {
    text.replace("<ctxfold-ledger", "<ctxfold ledger")
        .replace("</ctxfold-ledger", "</ctxfold ledger")
}

impl Ledger {
    /// Reads the last ledger of a summary, of this version or a newer one.
    pub fn parse(summary: &str) -> Option<Ledger> {
        let (start, end) = place(summary)?;
        let mut out = Ledger::default();
        let mut title = "";
        let mut item: Option<String> = None;
        for line in summary[start..end].split('\n') {
            if let Some(rest) = line.strip_prefix("  ") {
                if let Some(item) = &mut item {
                    item.push('\n');
                    item.push_str(rest);
                }
                continue;
            }
            if let Some(done) = item.take() {
                out.take(title, done);
            }
            if let Some(rest) = line.strip_prefix("- ") {
                item = Some(rest.to_owned());
            } else {
                title = line;
            }
        }
        Some(out)
    }

    fn take(&mut self, title: &str, item: String) {
        match title {
            STANDING => self.standing.push(item),
            USER => self.user_messages.push(parse_words(item)),
            SKILLS => self.skills.push(item),
            FILES => self.files.extend(parse_file(&item)),
            FAILED => self
                .failed
                .extend(
                    parse_two(&item).map(|(command, error, address)| FailedCommand {
                        command,
                        error,
                        address,
                    }),
                ),
            AGENTS => self
                .agents
                .extend(parse_two(&item).map(|(task, agent, address)| AgentFact {
                    task,
                    agent,
                    address,
                })),
            TODOS => self.todos.extend(parse_todo(&item)),
            _ => {}
        }
    }
}

fn parse_file(item: &str) -> Option<FileFact> {
    let (rest, address) = item.strip_suffix(')')?.rsplit_once(" (")?;
    let (path, words) = rest.strip_suffix(')')?.rsplit_once(" (")?;
    let has = |word| words.split(", ").any(|w| w == word);
    Some(FileFact {
        path: path.to_owned(),
        read: has("read"),
        created: has("created"),
        changed: has("changed"),
        deleted: has("deleted"),
        address: address.to_owned(),
    })
}

/// A text of several lines and, on its last, a word on it and the address.
fn parse_two(item: &str) -> Option<(String, String, String)> {
    let (text, last) = item.rsplit_once('\n')?;
    let (word, address) = last.strip_suffix(')')?.rsplit_once(" (")?;
    Some((text.to_owned(), word.to_owned(), address.to_owned()))
}

fn parse_todo(item: &str) -> Option<Todo> {
    let state = match item.get(..4)? {
        "[~] " => TodoState::InProgress,
        "[ ] " => TodoState::Pending,
        "[x] " => TodoState::Completed,
        _ => return None,
    };
    Some(Todo {
        text: item[4..].to_owned(),
        state,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            "[ -~äß漢\n]{0,40}",
            Just(CLOSE.to_owned()),
            Just(format!("a\n{CLOSE}\n{OPEN}\n{FILES}\n- evil (read) (x)")),
            Just(STANDING.to_owned()),
            "[a-z]{0,3}(\n\\((-|[a-c:]{1,3})\\)){0,2}",
        ]
    }

    fn line() -> impl Strategy<Value = String> {
        "[ -~äß漢]{0,30}"
    }

    prop_compose! {
        fn ledgers()(
            standing in proptest::collection::vec(text(), 0..3),
            user_messages in proptest::collection::vec((text(), any::<bool>()), 0..3),
            files in proptest::collection::vec((line(), any::<[bool; 4]>()), 0..3),
            failed in proptest::collection::vec((text(), line()), 0..3),
            todos in proptest::collection::vec((text(), any::<bool>()), 0..3),
            agents in proptest::collection::vec((text(), line()), 0..3),
            skills in proptest::collection::vec(text(), 0..3),
        ) -> Ledger {
            let address = "3f2a91c0:GQ7wK2".to_owned();
            Ledger {
                standing,
                user_messages: user_messages.into_iter().map(|(text, known)| UserWords {
                    text,
                    address: if known { address.clone() } else { String::new() },
                }).collect(),
                files: files.into_iter().map(|(path, is)| FileFact {
                    path, read: is[0], created: is[1], changed: is[2], deleted: is[3],
                    address: address.clone(),
                }).collect(),
                failed: failed.into_iter().map(|(command, error)| FailedCommand {
                    command, error, address: address.clone(),
                }).collect(),
                todos: todos.into_iter().map(|(text, busy)| Todo {
                    text,
                    state: if busy { TodoState::InProgress } else { TodoState::Pending },
                }).collect(),
                agents: agents.into_iter().map(|(task, agent)| AgentFact {
                    task, agent, address: address.clone(),
                }).collect(),
                skills,
            }
        }
    }

    proptest! {
        #[test]
        fn a_ledger_reads_back_whatever_it_holds(ledger in ledgers(), before in text()) {
            let summary = format!("{}\n\n{ledger}\n\nbehind it", defuse(&before));
            prop_assert_eq!(Ledger::parse(&summary), Some(ledger.clone()));
            prop_assert_eq!(Ledger::parse(&ledger.to_string()), Some(ledger));
        }
    }

    #[test]
    fn a_newer_ledger_gives_what_is_known_of_it() {
        let text = "x\n<ctxfold-ledger version=\"2\">\n# moods\n- fine\n# files\n- a (read) (b)\n</ctxfold-ledger>";
        let ledger = Ledger::parse(text).unwrap();
        assert_eq!(ledger.files.len(), 1);
        assert_eq!(Ledger::parse("no ledger here"), None);
    }
}
