//! What Claude Code's tools do, in terms that need no tool's name. The only place that knows them.

use ctxfold_transcript::{Activity, Span, Todo, TodoState};

use crate::wire::{Object, elements, string};

/// Longest label, in characters.
const LABEL: usize = 120;

/// What a call's result says beside its output.
#[derive(Debug, Clone, Default)]
pub struct Ended {
    /// Whether the client marked it as an error.
    pub is_error: bool,
    /// The newest text of the result, for the exit code of a failed command.
    pub text: String,
    /// What the client stored of the result beside its text, as JSON: `toolUseResult` of a row.
    pub detail: Option<String>,
}

/// One line that says what a call was, at most 120 characters: `Bash(cargo test)`. `input` is the
/// call's input as JSON.
pub fn label(tool: &str, input: &str) -> String {
    let shown = Object::parse(input).and_then(|input| {
        [
            "command",
            "file_path",
            "notebook_path",
            "path",
            "pattern",
            "url",
            "query",
            "subject",
            "description",
            "skill",
            "prompt",
        ]
        .iter()
        .find_map(|key| input.str(key))
    });
    let line = match shown {
        Some(shown) => format!("{tool}({shown})"),
        None => tool.to_owned(),
    };
    one_line(&line)
}

/// A text as one line of bounded length, without what a terminal would obey.
pub(crate) fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    if line.chars().count() <= LABEL {
        return line;
    }
    let cut: String = line.chars().take(LABEL - 1).collect();
    format!("{}…", cut.trim_end())
}

/// What a call of one of Claude Code's tools did; `input` is the call's input as JSON. `ended` is
/// what came of it, `None` while it runs.
pub fn activities(tool: &str, input: &str, ended: Option<&Ended>) -> Vec<Activity> {
    let Some(input) = Object::parse(input) else {
        return vec![Activity::Other];
    };
    let field = |key: &str| input.str(key).unwrap_or_default();
    let detail = ended.and_then(|e| e.detail.as_deref());
    let detail = detail.and_then(Object::parse);
    let path = || field("file_path");
    let one = match tool {
        "Read" => Activity::Read {
            path: path(),
            span: span(&input),
        },
        "Write" => Activity::Write {
            path: path(),
            created: detail
                .and_then(|d| d.str("type"))
                .is_some_and(|t| t == "create"),
        },
        "Edit" | "MultiEdit" => Activity::Edit { path: path() },
        "NotebookRead" => Activity::Read {
            path: field("notebook_path"),
            span: None,
        },
        "NotebookEdit" => Activity::Edit {
            path: field("notebook_path"),
        },
        "Glob" => Activity::List {
            path: field("pattern"),
        },
        "LS" => Activity::List {
            path: field("path"),
        },
        "Grep" => Activity::Search {
            pattern: field("pattern"),
        },
        "Bash" | "PowerShell" => Activity::Run {
            command: field("command"),
            exit: ended.and_then(|e| exit(e, detail.as_ref())),
        },
        "WebFetch" => Activity::Fetch { url: field("url") },
        "WebSearch" => Activity::Fetch {
            url: field("query"),
        },
        "Agent" | "Task" => Activity::Delegate {
            task: field("description"),
            agent: detail.and_then(|d| d.str("agentId")),
        },
        "TodoWrite" | "TaskCreate" | "TaskUpdate" if ended.is_some_and(|e| e.is_error) => {
            Activity::Other
        }
        "TodoWrite" => Activity::Plan {
            todos: todos(&input),
        },
        "TaskCreate" => match ended.and_then(|e| created_task(e, detail.as_ref())) {
            Some(id) => Activity::Task {
                id,
                text: input.str("subject"),
                state: Some(TodoState::Pending),
            },
            None => Activity::Other,
        },
        "TaskUpdate" => Activity::Task {
            id: field("taskId"),
            text: input.str("subject"),
            state: input.str("status").map(|state| todo_state(&state)),
        },
        "Skill" => Activity::Skill {
            name: input
                .str("skill")
                .or_else(|| input.str("command"))
                .unwrap_or_default(),
        },
        _ => Activity::Other,
    };
    vec![one]
}

fn span(input: &Object<'_>) -> Option<Span> {
    let (offset, limit) = (input.u64("offset"), input.u64("limit"));
    if offset.is_none() && limit.is_none() {
        return None;
    }
    Some(Span {
        start: offset.unwrap_or(1).max(1),
        lines: limit,
    })
}

fn todos(input: &Object<'_>) -> Vec<Todo> {
    let list = input.get("todos").and_then(elements).unwrap_or_default();
    list.into_iter()
        .filter_map(Object::parse)
        .map(|todo| Todo {
            text: todo.str("content").unwrap_or_default(),
            state: todo_state(&todo.str("status").unwrap_or_default()),
        })
        .collect()
}

fn todo_state(word: &str) -> TodoState {
    match word {
        "completed" | "deleted" => TodoState::Completed,
        "in_progress" => TodoState::InProgress,
        _ => TodoState::Pending,
    }
}

/// The identifier that a new task got: from the stored result, else from `Task #1 created …`.
fn created_task(ended: &Ended, detail: Option<&Object<'_>>) -> Option<String> {
    let stored = detail
        .and_then(|d| d.get("task"))
        .and_then(Object::parse)
        .and_then(|task| task.str("id"));
    stored.or_else(|| {
        let rest = ended.text.strip_prefix("Task #")?;
        Some(rest.split(' ').next()?.to_owned())
    })
}

/// The exit code of a command. A success has 0; a failure begins with `Exit code N`. A command in
/// the background has none yet.
fn exit(ended: &Ended, detail: Option<&Object<'_>>) -> Option<i32> {
    if let Some(code) = detail
        .and_then(|d| d.get("exitCode"))
        .and_then(|c| c.parse().ok())
    {
        return Some(code);
    }
    if ended.is_error {
        let detail = ended.detail.as_deref().and_then(string).unwrap_or_default();
        return [detail.trim_start_matches("Error: "), &ended.text]
            .iter()
            .find_map(|text| {
                let rest = text.strip_prefix("Exit code ")?;
                let digits = rest
                    .find(|c: char| !c.is_ascii_digit() && c != '-')
                    .map_or(rest, |end| &rest[..end]);
                digits.parse().ok()
            });
    }
    let background = detail.is_some_and(|d| d.get("backgroundTaskId").is_some_and(|v| v != "null"));
    (!background).then_some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(is_error: bool, text: &str, detail: Option<&str>) -> Vec<Activity> {
        let ended = Ended {
            is_error,
            text: text.into(),
            detail: detail.map(str::to_owned),
        };
        activities("Bash", r#"{"command":"x"}"#, Some(&ended))
    }

    #[test]
    fn tasks_are_told_by_what_the_client_answered() {
        let did = |tool: &str, input: &str, is_error: bool, text: &str, detail: Option<&str>| {
            let ended = Ended {
                is_error,
                text: text.into(),
                detail: detail.map(str::to_owned),
            };
            activities(tool, input, Some(&ended)).remove(0)
        };
        let task = |id: &str, text: Option<&str>, state| Activity::Task {
            id: id.into(),
            text: text.map(str::to_owned),
            state,
        };
        let create = r#"{"subject":"write the test","description":"d"}"#;
        let told = "Task #7 created successfully: write the test";
        let stored = r#"{"task":{"id":"7","subject":"write the test"}}"#;
        let new = task("7", Some("write the test"), Some(TodoState::Pending));
        assert_eq!(did("TaskCreate", create, false, told, Some(stored)), new);
        assert_eq!(did("TaskCreate", create, false, told, None), new);
        assert_eq!(
            did("TaskCreate", create, true, "No such tool", None),
            Activity::Other
        );
        let update = r#"{"taskId":"7","status":"deleted"}"#;
        assert_eq!(
            did("TaskUpdate", update, false, "Updated task #7 status", None),
            task("7", None, Some(TodoState::Completed))
        );
        assert_eq!(label("TaskCreate", create), "TaskCreate(write the test)");
    }

    #[test]
    fn exit_codes_come_from_where_the_client_puts_them() {
        let code = |a: &[Activity]| match a {
            [Activity::Run { exit, .. }] => *exit,
            other => panic!("{other:?}"),
        };
        assert_eq!(code(&run(false, "ok", None)), Some(0));
        assert_eq!(code(&run(true, "Exit code 3\nboo", None)), Some(3));
        assert_eq!(
            code(&run(true, "x", Some("\"Error: Exit code 127\\nno\""))),
            Some(127)
        );
        assert_eq!(code(&run(true, "interrupted", None)), None);
        assert_eq!(
            code(&run(false, "", Some(r#"{"backgroundTaskId":"b1"}"#))),
            None
        );
        assert_eq!(code(&activities("Bash", r#"{"command":"x"}"#, None)), None);
    }

    #[test]
    fn labels_are_one_line_of_bounded_length() {
        let escape = r#"{"command":"\u001b]0;x\u0007ls"}"#;
        assert_eq!(label("Bash", escape), "Bash(]0;xls)");
        let label = label(
            "Bash",
            &format!(r#"{{"command":"a\nb {}"}}"#, "é".repeat(200)),
        );
        assert_eq!(label.chars().count(), 120);
        assert!(label.starts_with("Bash(a b é"));
    }

    #[test]
    fn every_known_tool_has_a_meaning() {
        for tool in [
            "Read",
            "Write",
            "Edit",
            "MultiEdit",
            "NotebookRead",
            "NotebookEdit",
            "Glob",
            "LS",
            "Grep",
            "Bash",
            "WebFetch",
            "WebSearch",
            "Agent",
            "Task",
            "TodoWrite",
            "Skill",
        ] {
            assert_ne!(activities(tool, "{}", None), [Activity::Other], "{tool}");
        }
        assert_eq!(activities("mcp__x__y", "{}", None), [Activity::Other]);
        assert_eq!(
            activities("Read", r#"{"file_path":"/a","offset":5,"limit":2}"#, None),
            [Activity::Read {
                path: "/a".into(),
                span: Some(Span {
                    start: 5,
                    lines: Some(2)
                })
            }]
        );
    }
}
