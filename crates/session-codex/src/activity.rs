//! What a call did, from the agent's own tool names and inputs.

use ctxfold_transcript::{Activity, Span, Todo, TodoState};
use serde_json::Value;

/// What the tool did with this input. `exit` is the command's exit code, where it is known.
pub(crate) fn activities(tool: &str, input: &str, exit: Option<i32>) -> Vec<Activity> {
    let value: Value = serde_json::from_str(input).unwrap_or(Value::Null);
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    let found = match tool {
        "apply_patch" => patch(&text("input").unwrap_or_else(|| input.to_owned())),
        "update_plan" => vec![plan(&value)],
        "view_image" => one(text("path"), |path| Activity::Read { path, span: None }),
        "read_file" => one(text("file_path").or(text("path")), |path| Activity::Read {
            path,
            span: value["offset"].as_u64().map(|start| Span {
                start,
                lines: value["limit"].as_u64(),
            }),
        }),
        "list_dir" => one(text("dir_path").or(text("path")), |path| Activity::List {
            path,
        }),
        "grep_files" => one(text("pattern"), |pattern| Activity::Search { pattern }),
        "web_search" => one(text("query").or(text("url")), |url| Activity::Fetch { url }),
        "spawn_agent" => one(text("message").or(text("task")), |task| {
            Activity::Delegate { task, agent: None }
        }),
        _ => match command(tool, &value) {
            Some(command) => ran(&command, exit),
            None => Vec::new(),
        },
    };
    if found.is_empty() {
        vec![Activity::Other]
    } else {
        found
    }
}

fn one(value: Option<String>, make: impl FnOnce(String) -> Activity) -> Vec<Activity> {
    value.map(make).into_iter().collect()
}

/// The command line of a shell tool's input.
pub(crate) fn command(tool: &str, value: &Value) -> Option<String> {
    if !matches!(
        tool,
        "exec_command" | "shell" | "shell_command" | "local_shell" | "container.exec"
    ) {
        return None;
    }
    let command = [&value["cmd"], &value["command"]]
        .into_iter()
        .find(|v| !v.is_null())?;
    match command {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            match words.as_slice() {
                [_, "-lc" | "-c", script] => Some((*script).to_owned()),
                words => Some(words.join(" ")),
            }
        }
        _ => None,
    }
}

/// A command: a patch, a plain read, list or search that succeeded, or else a run.
fn ran(command: &str, exit: Option<i32>) -> Vec<Activity> {
    let run = || Activity::Run {
        command: command.to_owned(),
        exit,
    };
    if command.contains("*** Begin Patch") {
        let mut found = patch(command);
        found.push(run());
        return found;
    }
    if exit.is_some_and(|code| code != 0) {
        return vec![run()];
    }
    simple(command).map_or_else(|| vec![run()], |activity| vec![activity])
}

/// The one thing that a simple command does: no pipes, no redirection, no expansion.
fn simple(command: &str) -> Option<Activity> {
    if command.contains(['|', ';', '&', '>', '<', '$', '`', '\n', '*', '\\']) {
        return None;
    }
    let words = words(command)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let read = |path: &str, span| {
        Some(Activity::Read {
            path: path.to_owned(),
            span,
        })
    };
    match words.as_slice() {
        ["cat" | "nl", path] | ["nl", "-ba", path] | ["cat", "-n", path]
            if !path.starts_with('-') =>
        {
            read(path, None)
        }
        ["head", "-n", n, path] => read(
            path,
            Some(Span {
                start: 1,
                lines: Some(n.parse().ok()?),
            }),
        ),
        ["sed", "-n", range, path] => {
            let (start, end) = range.strip_suffix('p')?.split_once(',')?;
            let (start, end): (u64, u64) = (start.parse().ok()?, end.parse().ok()?);
            let lines = Some(end.checked_add(1)?.checked_sub(start)?);
            read(path, Some(Span { start, lines }))
        }
        ["ls"] => Some(Activity::List {
            path: ".".to_owned(),
        }),
        ["ls", .., path] if !path.starts_with('-') => Some(Activity::List {
            path: (*path).to_owned(),
        }),
        ["rg", "--files", ..] => Some(Activity::List {
            path: words.get(2).unwrap_or(&".").to_string(),
        }),
        ["rg" | "grep", rest @ ..] => {
            let pattern = rest.iter().find(|w| !w.starts_with('-'))?;
            Some(Activity::Search {
                pattern: (*pattern).to_owned(),
            })
        }
        _ => None,
    }
}

/// The words of a command line without expansions.
fn words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in command.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// The files that a patch touches.
fn patch(text: &str) -> Vec<Activity> {
    let mut found = Vec::new();
    for line in text.lines() {
        let file = |start: &str| line.strip_prefix(start).map(|p| p.trim().to_owned());
        if let Some(path) = file("*** Add File: ") {
            found.push(Activity::Write {
                path,
                created: true,
            });
        } else if let Some(path) = file("*** Update File: ") {
            found.push(Activity::Edit { path });
        } else if let Some(path) = file("*** Delete File: ") {
            found.push(Activity::Delete { path });
        } else if let Some(path) = file("*** Move to: ") {
            found.push(Activity::Write {
                path,
                created: true,
            });
        }
    }
    found
}

fn plan(value: &Value) -> Activity {
    let steps = value["plan"].as_array().map(Vec::as_slice);
    let todos = steps
        .unwrap_or_default()
        .iter()
        .map(|step| Todo {
            text: step["step"].as_str().unwrap_or_default().to_owned(),
            state: match step["status"].as_str() {
                Some("completed") => TodoState::Completed,
                Some("in_progress") => TodoState::InProgress,
                _ => TodoState::Pending,
            },
        })
        .collect();
    Activity::Plan { todos }
}

/// The exit code that an output's own words tell, in each form that the client has used.
pub(crate) fn exit_in(output: &str) -> Option<i32> {
    if output.starts_with("{\"output\"") {
        let value: Value = serde_json::from_str(output).ok()?;
        let code = value["metadata"]["exit_code"].as_i64()?;
        return i32::try_from(code).ok();
    }
    for line in output.lines().take(5) {
        let code = line
            .strip_prefix("Process exited with code ")
            .or_else(|| line.strip_prefix("Exit code: "));
        if let Some(code) = code {
            return code.trim().parse().ok();
        }
        if line == "Output:" {
            break;
        }
    }
    None
}

/// One line for people, at most 120 characters.
pub(crate) fn label(tool: &str, input: &str) -> String {
    let value: Value = serde_json::from_str(input).unwrap_or(Value::Null);
    let inside = command(tool, &value)
        .or_else(|| match activities(tool, input, None).first()? {
            Activity::Plan { todos } => Some(format!("{} steps", todos.len())),
            Activity::Search { pattern } => Some(pattern.clone()),
            Activity::Fetch { url } => Some(url.clone()),
            Activity::Delegate { task, .. } => Some(task.clone()),
            Activity::List { path } => Some(path.clone()),
            activity => activity.path().map(str::to_owned),
        })
        .unwrap_or_else(|| input.to_owned());
    let line: String = inside.split_whitespace().collect::<Vec<_>>().join(" ");
    // Nothing that a terminal would obey.
    let whole: String = format!("{tool}({line})")
        .chars()
        .filter(|c| !c.is_control())
        .collect();
    if whole.chars().count() <= 120 {
        return whole;
    }
    let cut: String = whole.chars().take(118).collect();
    format!("{cut}…)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_in_neutral_terms() {
        let run = |tool: &str, input: &str, exit| activities(tool, input, exit);
        assert_eq!(
            run("exec_command", r#"{"cmd":"cargo test"}"#, Some(101)),
            [Activity::Run {
                command: "cargo test".into(),
                exit: Some(101)
            }]
        );
        assert_eq!(
            run(
                "shell",
                r#"{"command":["bash","-lc","sed -n '5,9p' src/a.rs"]}"#,
                Some(0)
            ),
            [Activity::Read {
                path: "src/a.rs".into(),
                span: Some(Span {
                    start: 5,
                    lines: Some(5)
                })
            }]
        );
        assert!(matches!(
            run("exec_command", r#"{"cmd":"cat a | wc"}"#, Some(0))[..],
            [Activity::Run { .. }]
        ));
        assert!(matches!(
            run("exec_command", r#"{"cmd":"cat missing"}"#, Some(1))[..],
            [Activity::Run { .. }]
        ));
        assert_eq!(
            run(
                "apply_patch",
                "*** Begin Patch\n*** Add File: a\n+x\n*** Update File: b\n*** Delete File: c\n*** End Patch",
                None
            ),
            [
                Activity::Write {
                    path: "a".into(),
                    created: true
                },
                Activity::Edit { path: "b".into() },
                Activity::Delete { path: "c".into() },
            ]
        );
        assert_eq!(
            run(
                "update_plan",
                r#"{"plan":[{"step":"s","status":"in_progress"}]}"#,
                None
            ),
            [Activity::Plan {
                todos: vec![Todo {
                    text: "s".into(),
                    state: TodoState::InProgress
                }]
            }]
        );
        assert_eq!(run("files.read", "{}", None), [Activity::Other]);
        assert_eq!(run("exec_command", "not json", None), [Activity::Other]);
    }

    #[test]
    fn exit_codes_are_read_from_every_form() {
        assert_eq!(
            exit_in("Chunk ID: a\nWall time: 1\nProcess exited with code 3\nOutput:\n"),
            Some(3)
        );
        assert_eq!(exit_in("Exit code: 0\nWall time: 1\nOutput:\nx"), Some(0));
        assert_eq!(
            exit_in(r#"{"output":"x","metadata":{"exit_code":2}}"#),
            Some(2)
        );
        assert_eq!(exit_in("Output:\nProcess exited with code 3"), None);
    }

    #[test]
    fn labels_are_one_short_line() {
        assert_eq!(
            label("exec_command", r#"{"cmd":"echo a\necho b"}"#),
            "exec_command(echo a echo b)"
        );
        assert_eq!(
            label("exec_command", r#"{"cmd":"\u001b]0;x\u0007echo"}"#),
            "exec_command(]0;xecho)"
        );
        let long = format!(r#"{{"cmd":"{}"}}"#, "é".repeat(500));
        assert_eq!(label("exec_command", &long).chars().count(), 120);
    }
}
