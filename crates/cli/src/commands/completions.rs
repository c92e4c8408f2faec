//! `ctxfold completions`.

use clap_complete::Shell;

use crate::error::CommandResult;
use crate::output;

/// Print completions for a shell
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

impl Args {
    pub(crate) fn run(&self) -> CommandResult {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut super::command(), "ctxfold", &mut text);
        output::raw(&text)
    }
}
