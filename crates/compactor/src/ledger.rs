//! The ledger: facts taken from the conversation by code, put behind a model's summary, read back
//! from it in the next round. Its text form is in `form`.

mod form;

pub(crate) use form::defuse;

use ctxfold_transcript::{Activity, Author, Call, Outcome, Todo, TodoState, Transcript};

use crate::pins::{Successes, command, open_failures, plain_path};
use crate::settle::noted_drops;
use crate::standing::standing;

/// The ledger's limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerOptions {
    /// Tokens for user messages that stay verbatim, newest first, at four characters a token. Of
    /// older ones the first 200 characters stay, and every standing sentence.
    pub user_tokens: usize,
    /// Only what happened before this message, an index; `None` for everything. Whether a failure
    /// was got over and which todos are open is told by the whole conversation.
    pub before: Option<usize>,
}

impl Default for LedgerOptions {
    fn default() -> LedgerOptions {
        LedgerOptions {
            user_tokens: 20_000,
            before: None,
        }
    }
}

/// Facts of a conversation, oldest first in every list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Instructions and prohibitions that hold from now on, as the user wrote them.
    pub standing: Vec<String>,
    /// What the user said, in messages, in the results of tools and beside them; verbatim within
    /// the budget.
    pub user_messages: Vec<UserWords>,
    /// Files that were read, created, changed or deleted.
    pub files: Vec<FileFact>,
    /// Commands that failed and did not succeed later.
    pub failed: Vec<FailedCommand>,
    /// Tasks that are not done.
    pub todos: Vec<Todo>,
    /// Work that was handed to sub-agents.
    pub agents: Vec<AgentFact>,
    /// Names of skills that were loaded.
    pub skills: Vec<String>,
}

/// What the user said at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserWords {
    /// The words; of a long text that is cut the beginning, how to read all of it, and where the
    /// budget allows the end.
    pub text: String,
    /// The address that reads the whole text back; empty where none is known, or where the text is
    /// too short to be ever cut.
    pub address: String,
}

/// What happened to a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileFact {
    /// The path as the agent named it.
    pub path: String,
    /// It was read.
    pub read: bool,
    /// It was new.
    pub created: bool,
    /// It was written or edited.
    pub changed: bool,
    /// It was deleted, and not written again.
    pub deleted: bool,
    /// The address of the newest call that touched it.
    pub address: String,
}

/// A command that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedCommand {
    /// The command line.
    pub command: String,
    /// The line of its output that tells most.
    pub error: String,
    /// The address of its output.
    pub address: String,
}

/// Work handed to a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFact {
    /// The task in a few words.
    pub task: String,
    /// The sub-agent's identifier; empty where it is not known.
    pub agent: String,
    /// The address of its report.
    pub address: String,
}

/// Takes the facts from a conversation. A ledger in an earlier summary is read back and merged.
pub fn ledger(transcript: &Transcript, options: &LedgerOptions) -> Ledger {
    let before = options.before.unwrap_or(transcript.messages.len());
    let mut out = Ledger::default();
    let mut successes = Successes::default();
    for call in &transcript.calls {
        if call.outcome == Outcome::Success {
            successes.add(call);
        }
    }
    let open = open_failures(transcript);
    for (index, message) in transcript.messages.iter().enumerate().take(before) {
        for words in transcript.said(index) {
            out.hear(&words.text, words.address.unwrap_or_default());
        }
        match message.author {
            Author::Summary => {
                if let Some(earlier) = Ledger::parse(&message.text()) {
                    out.merge(earlier);
                    // Failures of earlier rounds that this round got over.
                    out.failed
                        .retain(|failed| !successes.fixes_command(&failed.command));
                }
            }
            Author::Assistant => {
                for (activity, address) in noted_drops(&message.text()) {
                    out.did(&activity, &address, true);
                }
                for index in message.calls() {
                    if let Some(call) = transcript.calls.get(index) {
                        out.see(transcript, index, call, open[index]);
                    }
                }
            }
            _ => {}
        }
    }
    for activity in transcript.calls.iter().flat_map(|call| &call.activities) {
        match activity {
            Activity::Plan { todos } => out.todos.clone_from(todos),
            Activity::Task { id, text, state } => {
                set_task(&mut out.todos, id, text.as_deref(), *state);
            }
            _ => {}
        }
    }
    out.todos.retain(|todo| todo.state != TodoState::Completed);
    out.fit(options.user_tokens.saturating_mul(4));
    out
}

impl Ledger {
    fn hear(&mut self, text: &str, address: &str) {
        if text.trim().is_empty() {
            return;
        }
        for sentence in standing(text) {
            self.add_standing(sentence);
        }
        let is_cuttable = text.chars().count() > SHORT;
        self.user_messages.push(UserWords {
            text: text.to_owned(),
            address: if is_cuttable { address } else { "" }.to_owned(),
        });
    }

    fn add_standing(&mut self, sentence: String) {
        if !self.standing.contains(&sentence) {
            self.standing.push(sentence);
        }
    }

    fn merge(&mut self, later: Ledger) {
        for sentence in later.standing {
            self.add_standing(sentence);
        }
        self.user_messages.extend(later.user_messages);
        for file in later.files {
            self.add_file(file);
        }
        for failed in later.failed {
            self.add_failed(failed);
        }
        self.todos = later.todos;
        for agent in later.agents {
            if !self.agents.contains(&agent) {
                self.agents.push(agent);
            }
        }
        for skill in later.skills {
            self.add_skill(skill);
        }
    }

    fn add_skill(&mut self, skill: String) {
        if !self.skills.contains(&skill) {
            self.skills.push(skill);
        }
    }

    fn add_failed(&mut self, failed: FailedCommand) {
        self.failed.retain(|old| old.command != failed.command);
        self.failed.push(failed);
    }

    fn add_file(&mut self, later: FileFact) {
        let plain = plain_path(&later.path);
        let known = self
            .files
            .iter_mut()
            .find(|file| plain_path(&file.path) == plain);
        let Some(file) = known else {
            self.files.push(later);
            return;
        };
        file.deleted = later.deleted || (file.deleted && !later.changed && !later.read);
        file.read |= later.read;
        file.created |= later.created;
        file.changed |= later.changed;
        file.address = later.address;
    }

    /// What a call that ended well did to files, or what any call set going.
    fn did(&mut self, activity: &Activity, address: &str, is_success: bool) {
        match activity {
            Activity::Delegate { task, agent } => {
                let fact = AgentFact {
                    task: task.clone(),
                    agent: agent.clone().unwrap_or_default(),
                    address: address.to_owned(),
                };
                if !self.agents.contains(&fact) {
                    self.agents.push(fact);
                }
            }
            Activity::Skill { name } => self.add_skill(name.clone()),
            _ => {}
        }
        if let (true, Some(path)) = (is_success, activity.path()) {
            self.add_file(FileFact {
                path: path.to_owned(),
                read: matches!(activity, Activity::Read { .. }),
                created: matches!(activity, Activity::Write { created: true, .. }),
                changed: matches!(activity, Activity::Write { .. } | Activity::Edit { .. }),
                deleted: matches!(activity, Activity::Delete { .. }),
                address: address.to_owned(),
            });
        }
    }

    fn see(&mut self, transcript: &Transcript, index: usize, call: &Call, is_open_failure: bool) {
        let is_success = call.outcome == Outcome::Success;
        for activity in &call.activities {
            self.did(activity, &call.address, is_success);
        }
        if is_open_failure {
            let output = transcript
                .result(index)
                .and_then(|block| block.content.result_text());
            for command in call.activities.iter().filter_map(command) {
                self.add_failed(FailedCommand {
                    command: command.to_owned(),
                    error: telling_line(output.as_deref().unwrap_or_default()),
                    address: call.address.clone(),
                });
            }
        }
    }

    /// Cuts older user messages so that all fit into a number of characters, newest first.
    fn fit(&mut self, budget: usize) {
        const HEAD: usize = 200;
        const WORTH: usize = 2_000;
        let mut left = budget;
        for message in self.user_messages.iter_mut().rev() {
            let chars = message.text.chars().count();
            if chars <= left {
                left -= chars;
            } else if left >= WORTH {
                message.cut(left / 2, left / 2);
                left = 0;
            } else {
                left = 0;
                if chars > SHORT {
                    message.cut(HEAD, 0);
                }
            }
        }
    }
}

/// Texts of at most this many characters are never cut.
const SHORT: usize = 400;

impl UserWords {
    /// Leaves the first and last characters, and between them says how to read the rest.
    fn cut(&mut self, head: usize, tail: usize) {
        let text = &self.text;
        let chars = text.chars().count();
        let place = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
        let way = match &*self.address {
            "" => format!("--search '{}'", searched(text)),
            address => address.to_owned(),
        };
        self.text = format!(
            "{}\n[{} characters are cut here; read all of it with: ctxfold unfold {way}]{}{}",
            &text[..place(head)],
            chars - head - tail,
            if tail > 0 { "\n" } else { "" },
            &text[place(chars - tail)..],
        );
    }
}

/// A regular expression that finds a text again: words of its first line that has some. A search
/// goes line by line.
fn searched(text: &str) -> String {
    const WORDS: usize = 6;
    let words = |line: &str| -> String {
        let words: Vec<&str> = line
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .take(WORDS)
            .collect();
        words.join(r"\W+")
    };
    let told = |line: &str| line.chars().filter(|c| c.is_alphanumeric()).count() >= 12;
    let line = text.lines().find(|line| told(line));
    words(line.or(text.lines().next()).unwrap_or_default())
}

/// Adds or changes one task. Its text begins with its identifier, so that a change in a later round
/// finds it in the ledger of an earlier one.
fn set_task(todos: &mut Vec<Todo>, id: &str, text: Option<&str>, state: Option<TodoState>) {
    let mark = format!("#{id} ");
    match todos.iter_mut().find(|todo| todo.text.starts_with(&mark)) {
        Some(todo) => {
            if let Some(text) = text {
                todo.text = format!("{mark}{text}");
            }
            todo.state = state.unwrap_or(todo.state);
        }
        None => todos.extend(text.map(|text| Todo {
            text: format!("{mark}{text}"),
            state: state.unwrap_or(TodoState::Pending),
        })),
    }
}

/// The line of a failed command's output that tells most: the first that speaks of an error, or
/// the last.
fn telling_line(output: &str) -> String {
    const LONGEST: usize = 200;
    let says_error = |line: &&str| {
        let lower = line.to_lowercase();
        ["error", "fail", "panic", "fatal", "not found", "denied"]
            .iter()
            .any(|word| lower.contains(word))
    };
    let lines = || {
        output
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
    };
    let line = lines().find(says_error).or_else(|| lines().next_back());
    line.unwrap_or_default().chars().take(LONGEST).collect()
}
