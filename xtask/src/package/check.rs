//! What a package must be beyond what `claude plugin validate --strict` sees. Every finding names a
//! file, what is wrong with it, and what to do.

mod command;
mod files;
mod hooks;
mod market;
mod plugin;
mod program;
mod tree;

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::archive;
use crate::shell::Result;
pub(super) use market::FILE as MARKET;
#[cfg(test)]
pub(super) use tree::Entry;
pub(super) use tree::Tree;

/// The manifests of the hosts, each with a version.
pub(super) const MANIFESTS: [&str; 3] = [plugin::CLAUDE, plugin::CODEX, plugin::GEMINI];

/// Findings, each below the folder that is checked.
#[derive(Debug, Default)]
struct Findings(Vec<String>);

impl Findings {
    fn add(&mut self, file: &str, what: impl AsRef<str>, remedy: impl AsRef<str>) {
        let finding = format!("{file}: {}; {}", what.as_ref(), remedy.as_ref());
        if !self.0.contains(&finding) {
            self.0.push(finding);
        }
    }
}

/// A plugin's folder while it is looked at.
struct Part<'a> {
    /// Its path below what is checked, as in `plugins/ctxfold-core/`; empty for the folder itself.
    prefix: &'a str,
    tree: Tree,
}

impl Part<'_> {
    /// The path of one of the plugin's files as findings name it.
    fn named(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    /// Reads a JSON file of the plugin; what is there but no JSON is a finding.
    fn json(&self, path: &str, findings: &mut Findings) -> Option<Value> {
        let bytes = fs::read(self.tree.root().join(path)).ok()?;
        match serde_json::from_slice(&bytes) {
            Ok(value) => Some(value),
            Err(error) => {
                findings.add(
                    &self.named(path),
                    format!("is not JSON ({error})"),
                    "correct it",
                );
                None
            }
        }
    }
}

/// Checks a marketplace, a plugin for Claude Code or Codex, or an extension of Gemini CLI.
pub(super) fn folder(folder: &Path) -> Result<Vec<String>> {
    let mut findings = Findings::default();
    if folder.join(market::FILE).is_file() {
        market::check(folder, &mut findings)?;
    } else if MANIFESTS
        .iter()
        .any(|manifest| folder.join(manifest).is_file())
    {
        let part = Part {
            prefix: "",
            tree: Tree::read(folder)?,
        };
        plugin::check(&part, &mut findings);
    } else {
        return Err(format!(
            "{} is no package: it has no {} and no {}",
            folder.display(),
            market::FILE,
            plugin::CLAUDE
        )
        .into());
    }
    // A file that can't be read is no file that was packaged.
    if let Ok(listed) = fs::read_to_string(folder.join(archive::SUMS))
        && archive::sums(folder).ok() != Some(listed)
    {
        findings.add(
            archive::SUMS,
            "does not fit the files",
            "package again, and change nothing afterwards",
        );
    }
    Ok(findings.0)
}
