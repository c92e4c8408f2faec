//! Single files of a plugin: leftovers, links, the README and the licence.

use std::collections::BTreeMap;
use std::fs;
use std::path::Component;

use super::tree::Entry;
use super::{Findings, Part};

/// Fewer words tell nobody what a plugin does; the public directory asks for as many.
const README_WORDS: usize = 40;
/// Names that tools leave behind.
const LEFTOVERS: [&str; 12] = [
    "node_modules",
    "target",
    ".git",
    ".gitignore",
    ".DS_Store",
    "Thumbs.db",
    "tsconfig.json",
    "package-lock.json",
    "__pycache__",
    ".env",
    ".vscode",
    ".idea",
];
const LEFTOVER_ENDINGS: [&str; 6] = ["~", ".orig", ".rej", ".bak", ".swp", ".tmp"];
/// Where a session with `--plugin-dir` lays the client's types.
const LAID_TYPES: &str = ".claude-plugin/types/";

pub(super) fn check(part: &Part, findings: &mut Findings) {
    let mut seen = BTreeMap::new();
    for entry in part.tree.files() {
        let file = part.named(&entry.path);
        let is_leftover = entry.path.split('/').any(|step| {
            LEFTOVERS.contains(&step) || LEFTOVER_ENDINGS.iter().any(|end| step.ends_with(end))
        });
        if is_leftover || entry.path.starts_with(LAID_TYPES) {
            findings.add(&file, "is a leftover of a tool", "remove it");
        }
        check_link(part, &file, entry, findings);
        if let Some(other) = seen.insert(entry.path.to_lowercase(), &entry.path) {
            findings.add(
                &file,
                format!("differs from {other} in the case of letters only"),
                "rename one: many file systems hold just one of them",
            );
        }
        check_placeholders(part, entry, findings);
    }
    check_readme(part, findings);
    let has_licence = part
        .tree
        .files()
        .any(|entry| entry.path.starts_with("LICENSE"));
    if !has_licence {
        findings.add(
            &part.named("LICENSE"),
            "is missing",
            "add the licence's text",
        );
    }
}

/// An installation copies a plugin and drops what leads out of it.
fn check_link(part: &Part, file: &str, entry: &Entry, findings: &mut Findings) {
    let Some(link) = &entry.link else { return };
    let mut depth = entry.path.matches('/').count();
    let mut leaves = link.is_absolute();
    for step in link.components() {
        match step {
            Component::ParentDir if depth == 0 => leaves = true,
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => depth += 1,
            _ => {}
        }
    }
    if leaves {
        findings.add(
            file,
            format!("links to {}, outside of the plugin", link.display()),
            "copy the file: an installation drops the link",
        );
    } else if !part.tree.root().join(&entry.path).exists() {
        findings.add(
            file,
            format!("links to {}, which is not there", link.display()),
            "remove the link or add what it leads to",
        );
    }
}

/// What a template left unfilled.
fn check_placeholders(part: &Part, entry: &Entry, findings: &mut Findings) {
    let is_text = [".json", ".md"].iter().any(|end| entry.path.ends_with(end));
    if !is_text {
        return;
    }
    let text = fs::read_to_string(part.tree.root().join(&entry.path)).unwrap_or_default();
    for mark in ["{{", "{%"] {
        if text.contains(mark) {
            findings.add(
                &part.named(&entry.path),
                format!("holds {mark}, a template's placeholder"),
                "fill it in",
            );
        }
    }
}

fn check_readme(part: &Part, findings: &mut Findings) {
    let path = part.tree.root().join("README.md");
    let file = part.named("README.md");
    let Ok(text) = fs::read_to_string(path) else {
        findings.add(
            &file,
            "is missing",
            "say what the plugin does and how to use it",
        );
        return;
    };
    let words = text.split_whitespace().count();
    if words < README_WORDS {
        findings.add(
            &file,
            format!("has {words} words"),
            format!("write at least {README_WORDS}: what it does, how to use it, what it sends"),
        );
    }
}
