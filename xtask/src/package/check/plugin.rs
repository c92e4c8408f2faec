//! One plugin or extension: its manifests, and everything that they name.

use cargo_metadata::semver::Version;
use serde_json::Value;

use super::command::Command;
use super::hooks::{self, Host};
use super::{Findings, Part, files, program};

pub(super) const CLAUDE: &str = ".claude-plugin/plugin.json";
pub(super) const CODEX: &str = ".codex-plugin/plugin.json";
pub(super) const GEMINI: &str = "gemini-extension.json";

/// How names begin that could pass as the client's maker's own.
const RESERVED: [&str; 4] = ["claude-", "anthropic-", "anthropics-", "cc-plugin-"];
const HOOKS: &str = "hooks/hooks.json";
const SERVERS: &str = ".mcp.json";

/// Checks a folder and returns its manifest, or null where there is none.
pub(super) fn check(part: &Part, findings: &mut Findings) -> Value {
    files::check(part, findings);
    program::check(part, findings);
    let mut main = Value::Null;
    if let Some(manifest) = part.json(CLAUDE, findings) {
        claude(part, &manifest, findings);
        main = manifest;
    } else if part.tree.find(CLAUDE).is_none()
        && part.tree.find(CODEX).is_none()
        && part.prefix.starts_with("plugins/")
    {
        findings.add(&part.named(CLAUDE), "is missing", "write it");
    }
    if let Some(manifest) = part.json(CODEX, findings) {
        codex(part, &manifest, &main, findings);
        if main.is_null() {
            main = manifest;
        }
    } else if part.tree.find(CLAUDE).is_some()
        && let Some(file) = part.json(HOOKS, findings)
        && file.get("modules").is_some()
        && file.get("hooks").is_some()
    {
        // Codex takes Claude's manifest where it finds none of its own.
        findings.add(
            &part.named(HOOKS),
            "has hooks and modules, and Codex rejects a file with modules",
            format!("write {CODEX} with a hooks file for Codex"),
        );
    }
    if let Some(manifest) = part.json(GEMINI, findings) {
        named(part, GEMINI, &manifest, findings);
        let at = Command::new(part, GEMINI, Host::Gemini, &Value::Null);
        hooks::check_file(&at, HOOKS, findings);
        hooks::check_servers(&at, &manifest["mcpServers"], findings);
        if main.is_null() {
            main = manifest;
        }
    } else if main.is_null() {
        let at = Command::new(part, "hooks.json", Host::Antigravity, &Value::Null);
        hooks::check_file(&at, "hooks.json", findings);
    }
    main
}

/// Name, version and description: what every host shows.
fn named(part: &Part, file: &str, manifest: &Value, findings: &mut Findings) {
    let file = &part.named(file);
    let name = manifest["name"].as_str().unwrap_or_default();
    let is_kebab = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if !is_kebab {
        findings.add(
            file,
            format!("has the name {name:?}"),
            "use lower-case letters, digits and hyphens",
        );
    }
    if let Some(word) = RESERVED.iter().find(|word| name.starts_with(**word)) {
        findings.add(
            file,
            format!("has the name {name}, and Claude Code keeps names with {word} for its maker"),
            "name it for what it does",
        );
    }
    let folder = part.prefix.trim_end_matches('/').rsplit('/').next();
    if let Some(folder) = folder.filter(|folder| !folder.is_empty() && *folder != name) {
        findings.add(
            file,
            format!("has the name {name}, but its folder is {folder}"),
            "give both the same name",
        );
    }
    match manifest["version"].as_str().map(Version::parse) {
        Some(Ok(version)) if version == Version::new(0, 0, 0) => findings.add(
            file,
            "has the version 0.0.0, which stands for none",
            "package with `cargo xtask package`, which fills it in",
        ),
        Some(Ok(_)) => {}
        _ => findings.add(
            file,
            format!("has the version {}", manifest["version"]),
            "write three numbers as in 1.2.3",
        ),
    }
    if manifest["description"]
        .as_str()
        .is_none_or(|text| text.trim().is_empty())
    {
        findings.add(
            file,
            "has no description",
            "say in a sentence what the plugin does",
        );
    }
}

fn claude(part: &Part, manifest: &Value, findings: &mut Findings) {
    named(part, CLAUDE, manifest, findings);
    let file = part.named(CLAUDE);
    if manifest["license"].as_str().is_none_or(str::is_empty) {
        findings.add(&file, "names no license", "add its SPDX identifier");
    }
    if let Some(types) = manifest["types"].as_str()
        && part.tree.find(types.trim_start_matches("./")).is_none()
    {
        findings.add(
            &file,
            format!("names the types {types}, which is not there"),
            "add the file",
        );
    }
    options(&file, manifest, findings);
    if let Some(hooks_file) = part.json(HOOKS, findings) {
        for module in hooks_file["modules"].as_array().into_iter().flatten() {
            let path = module.as_str().unwrap_or_default().trim_start_matches("./");
            if part.tree.find(&format!("hooks/{path}")).is_none() {
                findings.add(
                    &part.named(HOOKS),
                    format!("names the module {path}, which is not there"),
                    "add the file or correct the path, which is relative to hooks.json",
                );
            }
            if manifest["engines"]["claude-code"].as_str().is_none() {
                findings.add(
                    &file,
                    "says nothing of the Claude Code that runs its module",
                    "add \"engines\": {\"claude-code\": \">=2.1.332\"}",
                );
            }
        }
    }
    let at = Command::new(part, CLAUDE, Host::Claude, manifest);
    hooks::check_file(&at, HOOKS, findings);
    hooks::check_named(&at, &manifest["hooks"], findings);
    hooks::check_servers(&at, &manifest["mcpServers"], findings);
    if part.tree.find(SERVERS).is_some() {
        hooks::check_servers(&at, &SERVERS.into(), findings);
    }
}

/// The options that people fill in.
fn options(file: &str, manifest: &Value, findings: &mut Findings) {
    for (key, option) in manifest["userConfig"].as_object().into_iter().flatten() {
        let lower = key.to_lowercase();
        let is_secret = ["apikey", "api_key", "token", "secret", "password"]
            .iter()
            .any(|word| lower.ends_with(word));
        if is_secret && option["sensitive"] != true {
            findings.add(
                file,
                format!("keeps the option {key} in plain settings"),
                "add \"sensitive\": true",
            );
        }
        let choices = option["options"].as_array();
        if let Some(choices) = choices
            && option
                .get("default")
                .is_some_and(|default| !choices.contains(default))
        {
            findings.add(
                file,
                format!(
                    "the option {key} has the default {}, which it does not offer",
                    option["default"]
                ),
                "take one of its options",
            );
        }
    }
}

fn codex(part: &Part, manifest: &Value, main: &Value, findings: &mut Findings) {
    named(part, CODEX, manifest, findings);
    for field in ["name", "version"] {
        if !main.is_null() && manifest[field] != main[field] {
            findings.add(
                &part.named(CODEX),
                format!(
                    "has the {field} {}, but {CLAUDE} has {}",
                    manifest[field], main[field]
                ),
                "give both the same",
            );
        }
    }
    let at = Command::new(part, CODEX, Host::Codex, main);
    match manifest.get("hooks") {
        Some(named) => hooks::check_named(&at, named, findings),
        None => hooks::check_file(&at, HOOKS, findings),
    }
}
