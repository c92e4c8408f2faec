//! `ctxfold check`: damage in a conversation's file.

use ctxfold_session_claude as claude;
use ctxfold_session_codex as codex;

use super::{Context, Which};
use crate::agent::{self, Agent};
use crate::error::{CommandError, CommandResult};
use crate::output;

/// Look for damage in a session file
///
/// Exit code 1 when the conversation is damaged, 0 otherwise. Nothing is changed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,

    /// Explain a code instead, for example claude/torn-line; `all` explains every code
    #[arg(long, value_name = "CODE", conflicts_with = "session")]
    explain: Option<String>,

    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(self, cx: &Context) -> CommandResult {
        if let Some(code) = &self.explain {
            return explain(code, self.json);
        }
        let place = agent::locate(&cx.env, self.which.session.as_deref(), self.which.agent)?;
        let (rows, found) = match place.agent {
            Agent::Claude => {
                let shown = cx.reading(&place);
                let report = claude::check(&place.path, &mut |done, of| shown.at(done, of))?;
                (
                    Some(report.scan.rows),
                    report.findings.into_iter().map(Found::from).collect(),
                )
            }
            Agent::Codex => {
                let _shown = cx.reading(&place);
                let found = codex::check(&place.codex_store(), &place.path)?;
                (None, found.into_iter().map(Found::from).collect::<Vec<_>>())
            }
        };
        let errors = found.iter().filter(|f| f.severity == "error").count();
        if self.json {
            output::json(&serde_json::json!({
                "v": 1, "agent": place.agent.name(), "path": place.path, "rows": rows, "errors": errors, "findings": found,
            }))?;
        } else {
            output::data(&found.iter().map(Found::line).collect::<String>())?;
            let more = if found.is_empty() {
                ""
            } else {
                "; `ctxfold check --explain CODE` says more"
            };
            cx.say(&format!(
                "ctxfold: {} findings, {errors} of them errors{more}",
                found.len()
            ));
        }
        if errors > 0 {
            return Err(CommandError::input(format!(
                "{} is damaged",
                cx.env.show(&place.path)
            )));
        }
        Ok(())
    }
}

/// A finding, whatever the agent.
#[derive(Debug, serde::Serialize)]
struct Found {
    code: String,
    severity: &'static str,
    line: Option<u64>,
    offset: Option<u64>,
    message: String,
}

impl Found {
    fn line(&self) -> String {
        let style = match self.severity {
            "error" => output::BAD,
            "warning" => output::WARN,
            _ => output::DIM,
        };
        let at = match (self.line, self.offset) {
            (Some(line), Some(offset)) => format!("line {line}, offset {offset}: "),
            (Some(line), None) => format!("line {line}: "),
            (None, Some(offset)) => format!("offset {offset}: "),
            (None, None) => String::new(),
        };
        let word = output::styled(style, &format!("{:<7}", self.severity));
        format!("{word}  {}  {at}{}\n", self.code, self.message)
    }
}

impl From<claude::Finding> for Found {
    fn from(f: claude::Finding) -> Found {
        Found {
            code: f.code.as_str().to_owned(),
            severity: match f.severity {
                claude::Severity::Error => "error",
                claude::Severity::Warning => "warning",
                claude::Severity::Info => "info",
            },
            line: f.line,
            offset: f.offset,
            message: f.message,
        }
    }
}

impl From<codex::Finding> for Found {
    fn from(f: codex::Finding) -> Found {
        Found {
            code: format!("codex/{}", f.code),
            severity: match f.severity {
                codex::Severity::Error => "error",
                codex::Severity::Warning => "warning",
                codex::Severity::Info => "info",
            },
            line: f.line,
            offset: f.offset,
            message: f.message,
        }
    }
}

/// Every code with its explanation.
fn codes() -> Vec<(String, &'static str)> {
    let of_claude = claude::Code::ALL
        .iter()
        .map(|c| (c.as_str().to_owned(), claude::explain(*c)));
    let of_codex = codex::codes().filter_map(|c| Some((format!("codex/{c}"), codex::explain(c)?)));
    of_claude.chain(of_codex).collect()
}

fn explain(wanted: &str, json: bool) -> CommandResult {
    let is_wanted = |code: &str| {
        wanted == "all" || code == wanted || code.split('/').next_back() == Some(wanted)
    };
    let mut found = codes();
    found.retain(|(code, _)| is_wanted(code));
    if found.is_empty() {
        return Err(CommandError::usage(format!("unknown code {wanted}"))
            .hint("`ctxfold check --explain all` lists every code"));
    }
    if json {
        let codes: Vec<_> = found
            .iter()
            .map(|(code, about)| serde_json::json!({"code": code, "about": about}))
            .collect();
        return output::json(&serde_json::json!({"v": 1, "codes": codes}));
    }
    let mut text = String::new();
    for (code, about) in &found {
        text.push_str(&format!("{code}\n  {about}\n"));
    }
    output::data(&text)
}
