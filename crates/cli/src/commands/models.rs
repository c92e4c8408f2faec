//! `ctxfold models`.

use std::time::Duration;

use super::Context;
use crate::error::CommandResult;
use crate::{engine, output};

/// List the Gemini models that can write summaries
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(self, cx: &Context) -> CommandResult {
        let deadline = Duration::from_secs(cx.config.number("gemini.deadline"));
        let client = engine::client(&cx.env, &cx.config, deadline)?;
        let models = engine::runtime()?.block_on(client.models())?;
        if self.json {
            let list: Vec<_> = models
                .iter()
                .map(|m| serde_json::json!({"id": m.id, "name": m.display_name, "input_tokens": m.input_token_limit, "output_tokens": m.output_token_limit}))
                .collect();
            return output::json(&serde_json::json!({"v": 1, "models": list}));
        }
        let mut text = String::new();
        for model in &models {
            let here = if model.id == cx.config.text("gemini.model") {
                "*"
            } else {
                " "
            };
            text.push_str(&format!("{here} {}\n", model.id));
        }
        output::data(&text)
    }
}
