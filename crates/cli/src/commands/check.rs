use ctxfold_session_claude as claude;

use super::{Context, Which};
use crate::agent;
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
            return explain(code);
        }
        let place = agent::locate(&cx.env, self.which.session.as_deref(), self.which.agent)?;
        let bar = super::inspect::progress(cx.quiet);
        let report = claude::check(&place.path, &mut |done, of| {
            bar.set_length(of);
            bar.set_position(done);
        })?;
        bar.finish_and_clear();
        let errors = report.findings.iter().filter(|f| f.severity == claude::Severity::Error).count();
        if self.json {
            let all: Vec<_> = report
                .findings
                .iter()
                .map(|f| {
                    serde_json::json!({"code": f.code.as_str(), "severity": severity(f.severity).0,
                                       "line": f.line, "offset": f.offset, "message": f.message})
                })
                .collect();
            output::json(&serde_json::json!({"v": 1, "path": place.path, "rows": report.scan.rows, "errors": errors, "findings": all}))?;
        } else {
            let mut text = String::new();
            for f in &report.findings {
                let (word, style) = severity(f.severity);
                let at = match (f.line, f.offset) {
                    (Some(line), Some(offset)) => format!("line {line}, offset {offset}: "),
                    (Some(line), None) => format!("line {line}: "),
                    (None, Some(offset)) => format!("offset {offset}: "),
                    (None, None) => String::new(),
                };
                text.push_str(&format!("{} {}  {at}{}\n", output::styled(style, word), f.code.as_str(), f.message));
            }
            output::data(&text)?;
            cx.say(&format!(
                "ctxfold: {} rows, {} findings, {errors} of them errors{}",
                report.scan.rows,
                report.findings.len(),
                if report.findings.is_empty() { "" } else { "; `ctxfold check --explain CODE` says more" }
            ));
        }
        if errors > 0 {
            return Err(CommandError::input(format!("{} is damaged", cx.env.show(&place.path))));
        }
        Ok(())
    }
}

fn severity(of: claude::Severity) -> (&'static str, anstyle::Style) {
    match of {
        claude::Severity::Error => ("error  ", output::BAD),
        claude::Severity::Warning => ("warning", output::WARN),
        _ => ("info   ", output::DIM),
    }
}

fn explain(wanted: &str) -> CommandResult {
    if wanted == "all" {
        let mut text = String::new();
        for code in claude::Code::ALL {
            text.push_str(&format!("{}\n  {}\n", code.as_str(), claude::explain(*code)));
        }
        return output::data(&text);
    }
    let code = claude::Code::ALL
        .iter()
        .find(|c| c.as_str() == wanted || c.as_str().split('/').next_back() == Some(wanted))
        .ok_or_else(|| {
            CommandError::usage(format!("unknown code {wanted}")).hint("`ctxfold check --explain all` lists every code")
        })?;
    output::data(&format!("{}\n  {}\n", code.as_str(), claude::explain(*code)))
}
