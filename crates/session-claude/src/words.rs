//! What the user says outside of prompts: in the results of tools, in messages typed while the
//! client was busy, and behind the names of commands. The wordings are the client's own, as
//! versions 2.1.197 and 2.1.332 have them.

use crate::wire::{Object, elements, string};

/// What stands before the user's words in the result of a call that they refused: in a session,
/// and in a sub-agent.
const REFUSED: [&str; 2] = [
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). To tell you how to proceed, the user said:",
    "Permission for this tool use was denied. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). The user said:",
];

/// Refusals in which nobody says anything.
const WORDLESS: [&str; 4] = [
    "The user doesn't want to proceed with this tool use.",
    "Permission for this tool use was denied.",
    "User denied permission",
    "User aborted",
];

/// What the client puts around the answers to a question.
const ANSWERED: [(&str, &str); 5] = [
    (
        "Your questions have been answered: ",
        ". You can now continue with these answers in mind.",
    ),
    (
        "User has answered your questions: ",
        ". You can now continue with the user's answers in mind.",
    ),
    (
        "The user answered: ",
        ". Read the answers carefully \u{2014} they may request clarification, changes, or that you not proceed \u{2014} and follow what they actually say.",
    ),
    ("The user responded: ", ""),
    ("The user responded:", ""),
];
const UNANSWERED: &str = "The user did not answer the questions.";

/// What stands before a plan that the user approved after changing it.
const EDITED_PLAN: &str = "## Approved Plan (edited by user):";

/// A tool's result, as far as the user can speak in it.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct ResultWords<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The result's text.
    pub text: &'a str,
    /// Whether the client marked it as an error.
    pub is_error: bool,
    /// The row's JSON, where it is at hand: the newer client marks in it who spoke.
    pub row: Option<&'a str>,
}

impl<'a> ResultWords<'a> {
    /// The result of a tool.
    pub fn new(tool: &'a str, text: &'a str, is_error: bool) -> ResultWords<'a> {
        ResultWords {
            tool,
            text,
            is_error,
            row: None,
        }
    }
}

/// What the user says in a tool's result: why they refused the call, the answer to a question, or
/// a plan as they changed it.
pub fn said_in_result(result: &ResultWords<'_>) -> Option<String> {
    let row = result.row.and_then(Object::parse);
    said(result, row.as_ref())
}

/// The same, the row being read already.
pub(crate) fn said(result: &ResultWords<'_>, row: Option<&Object<'_>>) -> Option<String> {
    let spoken = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    if let Some(words) = row.and_then(|row| row.str("userFeedback")) {
        return spoken(&words);
    }
    let text = result.text.trim();
    if result.is_error {
        if let Some(words) = REFUSED.iter().find_map(|start| text.strip_prefix(start)) {
            return spoken(words);
        }
        let refused_by_user = row.is_some_and(|row| {
            row.is_true("holdsPersonsWords")
                || row.str("toolDenialKind").as_deref() == Some("user-rejected")
        });
        let is_wordless = WORDLESS.iter().any(|start| text.starts_with(start));
        return spoken(text).filter(|_| refused_by_user && !is_wordless);
    }
    if row.is_some_and(|row| row.is_true("holdsPersonsWords")) {
        return spoken(text);
    }
    match result.tool {
        "AskUserQuestion" if text == UNANSWERED => None,
        "AskUserQuestion" => {
            let inner = ANSWERED.iter().find_map(|(start, end)| {
                let rest = text.strip_prefix(start)?;
                Some(rest.strip_suffix(end).unwrap_or(rest))
            });
            spoken(inner.unwrap_or(text))
        }
        "ExitPlanMode" => spoken(text.split_once(EDITED_PLAN)?.1),
        _ => None,
    }
}

/// Whether the client wrote a text in the user's name.
pub fn is_client_text(text: &str) -> bool {
    const STARTS: [&str; 10] = [
        "<command-name>",
        "<command-message>",
        "<local-command-stdout>",
        "<local-command-stderr>",
        "<local-command-caveat>",
        "<bash-input>",
        "<bash-stdout>",
        "<task-notification>",
        "<system-reminder>",
        "[Request interrupted by user",
    ];
    let text = text.trim_start();
    STARTS.iter().any(|start| text.starts_with(start))
}

/// Whether a text is the output of a command that the client carried out by itself.
pub fn is_local_output(text: &str) -> bool {
    text.trim_start().starts_with("<local-command-std")
}

/// A command as the user typed it, where they said something behind its name: `/fix the parser`.
/// Not for `/compact`: what is said behind it is meant for the summary.
pub fn typed_command(text: &str) -> Option<String> {
    let text = text.trim_start();
    if !["<command-name>", "<command-message>"]
        .iter()
        .any(|start| text.starts_with(start))
    {
        return None;
    }
    let (_, rest) = text.split_once("<command-name>")?;
    let (name, rest) = rest.split_once("</command-name>")?;
    let (_, rest) = rest.split_once("<command-args>")?;
    let (arguments, _) = rest.rsplit_once("</command-args>")?;
    let name = name.trim().trim_start_matches('/');
    (!arguments.trim().is_empty() && name != "compact")
        .then(|| format!("/{name} {}", arguments.trim()))
}

/// What the user typed while the client was busy, from an attachment; `None` for what the client
/// queued by itself.
pub(crate) fn typed_while_busy(attachment: &Object<'_>) -> Option<String> {
    let by_human = attachment.object("origin").is_none_or(|origin| {
        let kind = origin.str("kind");
        kind.is_none_or(|kind| kind == "human")
    });
    let is_prompt = attachment.is_true("humanTurn")
        || (attachment.str("commandMode").as_deref() == Some("prompt")
            && !attachment.is_true("isMeta")
            && by_human);
    if attachment.str("type").as_deref() != Some("queued_command") || !is_prompt {
        return None;
    }
    let prompt = attachment.get("prompt")?;
    if let Some(text) = string(prompt) {
        return Some(text);
    }
    let blocks = elements(prompt)?.into_iter().filter_map(Object::parse);
    let texts: Vec<String> = blocks.filter_map(|block| block.str("text")).collect();
    Some(texts.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(tool: &str, text: &str, is_error: bool, row: &str) -> Option<String> {
        said_in_result(&ResultWords {
            row: Some(row),
            ..ResultWords::new(tool, text, is_error)
        })
    }

    #[test]
    fn refusals_answers_and_changed_plans_are_heard() {
        let refused = format!("{}\nNever touch it.\n", REFUSED[0]);
        let stop = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed.";
        let host = r#"{"toolDenialKind":"user-rejected","holdsPersonsWords":true}"#;
        let table = [
            ("Edit", &*refused, true, "{}", Some("Never touch it.")),
            ("Edit", &*refused, false, "{}", None),
            (
                "Edit",
                &*format!("{}\nIn src/ only", REFUSED[1]),
                true,
                "{}",
                Some("In src/ only"),
            ),
            ("Edit", stop, true, "{}", None),
            ("Edit", stop, true, host, None),
            ("Edit", "Use tabs", true, host, Some("Use tabs")),
            ("Edit", "Use tabs", true, "{}", None),
            ("Edit", "x", true, r#"{"userFeedback":" no "}"#, Some("no")),
            (
                "AskUserQuestion",
                "Your questions have been answered: \"db?\"=\"postgres\". You can now continue with these answers in mind.",
                false,
                "{}",
                Some("\"db?\"=\"postgres\""),
            ),
            (
                "AskUserQuestion",
                "The user responded: neither",
                false,
                "{}",
                Some("neither"),
            ),
            ("AskUserQuestion", UNANSWERED, false, "{}", None),
            (
                "AskUserQuestion",
                "new words",
                false,
                "{}",
                Some("new words"),
            ),
            (
                "ExitPlanMode",
                "User has approved your plan.\n\n## Approved Plan (edited by user):\nonly step 1",
                false,
                "{}",
                Some("only step 1"),
            ),
            (
                "ExitPlanMode",
                "User has approved your plan.\n\n## Approved Plan:\nall steps",
                false,
                "{}",
                None,
            ),
            ("Bash", "ok", false, "{}", None),
        ];
        for (tool, text, is_error, row, expected) in table {
            let words = heard(tool, text, is_error, row);
            assert_eq!(words.as_deref(), expected, "{tool}: {text} {row}");
        }
    }

    #[test]
    fn what_is_said_behind_a_command_is_heard() {
        let table = [
            (
                "<command-message>fix</command-message>\n<command-name>/fix</command-name>\n<command-args>the <b> parser</command-args>",
                Some("/fix the <b> parser"),
            ),
            (
                "<command-name>/fix</command-name>\n            <command-message>fix</command-message>\n            <command-args>it</command-args>",
                Some("/fix it"),
            ),
            (
                "<command-message>fix</command-message>\n<command-name>/fix</command-name>",
                None,
            ),
            (
                "<command-name>/fix</command-name><command-args> </command-args>",
                None,
            ),
            (
                "<command-name>/compact</command-name><command-args>numbers</command-args>",
                None,
            ),
            (
                "see <command-name>/fix</command-name><command-args>x</command-args>",
                None,
            ),
        ];
        for (text, expected) in table {
            assert_eq!(typed_command(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn what_was_typed_while_the_client_was_busy_is_heard() {
        let table = [
            (
                r#"{"type":"queued_command","prompt":"a","commandMode":"prompt","humanTurn":true}"#,
                Some("a"),
            ),
            (
                r#"{"type":"queued_command","prompt":"a","commandMode":"prompt"}"#,
                Some("a"),
            ),
            (
                r#"{"type":"queued_command","prompt":[{"type":"text","text":"a"},{"type":"image"}],"commandMode":"prompt","origin":{"kind":"human"}}"#,
                Some("a"),
            ),
            (
                r#"{"type":"queued_command","prompt":"a","commandMode":"prompt","isMeta":true}"#,
                None,
            ),
            (
                r#"{"type":"queued_command","prompt":"a","commandMode":"prompt","origin":{"kind":"peer"}}"#,
                None,
            ),
            (
                r#"{"type":"queued_command","prompt":"a","commandMode":"task-notification"}"#,
                None,
            ),
            (r#"{"type":"file","prompt":"a","humanTurn":true}"#, None),
        ];
        for (attachment, expected) in table {
            let attachment = Object::parse(attachment).unwrap();
            assert_eq!(typed_while_busy(&attachment).as_deref(), expected);
        }
    }
}
