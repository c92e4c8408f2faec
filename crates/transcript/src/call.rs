//! Tool calls, and what they did in terms that need no agent's tool names.

use crate::BlockRef;

/// One tool call and its result.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The identifier that pairs call and result. Not always unique in damaged files.
    pub id: String,
    /// The agent's own name of the tool.
    pub tool: String,
    /// One line for people and for the line that stands in a folded output's place, for example
    /// `Bash(cargo test)`: at most 120 characters, without line breaks.
    pub label: String,
    /// The whole input as the model wrote it.
    pub input: String,
    /// What it did. More than one for a call that touches several files.
    pub activities: Vec<Activity>,
    /// How it ended.
    pub outcome: Outcome,
    /// The address that reads its output back once it is folded.
    pub address: String,
    /// Where the call stands.
    pub at: BlockRef,
    /// Where its result stands, once it has come.
    pub result: Option<BlockRef>,
}

/// What a call did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activity {
    /// Read a file.
    Read {
        /// The file's path as the agent named it.
        path: String,
        /// The lines that were read; `None` for the whole file.
        span: Option<Span>,
    },
    /// Created a file or wrote it as a whole.
    Write {
        /// The file's path as the agent named it.
        path: String,
        /// Whether the file is known to be new.
        created: bool,
    },
    /// Changed a part of a file.
    Edit {
        /// The file's path as the agent named it.
        path: String,
    },
    /// Deleted a file.
    Delete {
        /// The file's path as the agent named it.
        path: String,
    },
    /// Listed a folder or matched file names.
    List {
        /// Folder or pattern.
        path: String,
    },
    /// Searched contents.
    Search {
        /// What was searched for.
        pattern: String,
    },
    /// Ran a command.
    Run {
        /// The command line.
        command: String,
        /// Its exit code, where the agent recorded it.
        exit: Option<i32>,
    },
    /// Fetched from the network.
    Fetch {
        /// Address or query.
        url: String,
    },
    /// Handed work to a sub-agent.
    Delegate {
        /// The task in a few words.
        task: String,
        /// The sub-agent's identifier, where it is known.
        agent: Option<String>,
    },
    /// Wrote down or changed a plan.
    Plan {
        /// The whole list after this call.
        todos: Vec<Todo>,
    },
    /// Added one task to a plan, or changed one.
    Task {
        /// The task's identifier in the plan.
        id: String,
        /// Its words, where the call says them.
        text: Option<String>,
        /// How far it is now, where the call says it. A task that was given up is completed.
        state: Option<TodoState>,
    },
    /// Loaded a skill or a set of instructions by name.
    Skill {
        /// The skill's name.
        name: String,
    },
    /// Something else.
    Other,
}

/// Lines of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// First line, from 1.
    pub start: u64,
    /// Number of lines; `None` up to the end of the file.
    pub lines: Option<u64>,
}

impl Span {
    /// Whether every line of `other` is in this span.
    pub fn covers(&self, other: &Span) -> bool {
        let end = |s: &Span| s.lines.map(|n| s.start.saturating_add(n));
        self.start <= other.start
            && match (end(self), end(other)) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(a), Some(b)) => b <= a,
            }
    }
}

/// One entry of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Todo {
    /// The task.
    pub text: String,
    /// How far it is.
    pub state: TodoState,
}

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TodoState {
    /// Not begun.
    Pending,
    /// Under way.
    InProgress,
    /// Done.
    Completed,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// No result yet. Never touched by a plan.
    Pending,
    /// A result that is no error, and an exit code of 0 where there is one.
    Success,
    /// An error, or an exit code other than 0.
    Failure,
}

impl Activity {
    /// The file that was read, written, edited or deleted.
    pub fn path(&self) -> Option<&str> {
        match self {
            Activity::Read { path, .. }
            | Activity::Write { path, .. }
            | Activity::Edit { path }
            | Activity::Delete { path } => Some(path),
            _ => None,
        }
    }

    /// Whether it changed a file.
    pub fn changes_file(&self) -> bool {
        matches!(
            self,
            Activity::Write { .. } | Activity::Edit { .. } | Activity::Delete { .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Span;
    use proptest::prelude::*;

    proptest! {
        /// The oracle lists the lines one by one.
        #[test]
        fn covers_agrees_with_listing_the_lines(a in 1u64..20, an in proptest::option::of(1u64..20),
                                                b in 1u64..20, bn in proptest::option::of(1u64..20)) {
            let lines = |start: u64, n: Option<u64>| {
                let end = n.map_or(1_000, |n| start + n);
                (start..end).collect::<std::collections::BTreeSet<_>>()
            };
            let (x, y) = (Span { start: a, lines: an }, Span { start: b, lines: bn });
            prop_assert_eq!(x.covers(&y), lines(b, bn).is_subset(&lines(a, an)));
        }
    }
}
