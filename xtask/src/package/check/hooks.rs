//! Where commands that hosts run are listed: hooks and MCP servers. What is wrong with one of them is
//! in `command`.

use std::path::Path;

use serde_json::Value;

use super::Findings;
use super::command::Command;

/// Who reads a hooks file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    Claude,
    Codex,
    Gemini,
    Antigravity,
}

impl Host {
    /// How a command names the plugin's own folder.
    pub(super) fn roots(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["${CLAUDE_PLUGIN_ROOT}"],
            Self::Codex => &["${PLUGIN_ROOT}", "${CLAUDE_PLUGIN_ROOT}"],
            Self::Gemini => &["${extensionPath}"],
            Self::Antigravity => &[],
        }
    }

    /// The events that the host runs hooks on. It ignores others in silence; Claude Code's are left
    /// to its own validator.
    fn events(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &[],
            Self::Codex => &[
                "SessionStart",
                "SessionEnd",
                "UserPromptSubmit",
                "PreToolUse",
                "PostToolUse",
                "PermissionRequest",
                "PreModelRequest",
                "PostModelRequest",
                "PreCompact",
                "PostCompact",
                "SubagentStart",
                "SubagentStop",
                "Stop",
                "Interrupt",
            ],
            Self::Gemini => &[
                "SessionStart",
                "SessionEnd",
                "BeforeAgent",
                "AfterAgent",
                "BeforeModel",
                "AfterModel",
                "BeforeToolSelection",
                "BeforeTool",
                "AfterTool",
                "PreCompress",
                "Notification",
            ],
            Self::Antigravity => &[
                "PreToolUse",
                "PostToolUse",
                "PreInvocation",
                "PostInvocation",
                "Stop",
                "SessionStart",
            ],
        }
    }
}

/// Checks the hooks that a manifest names: a file, hooks as they are, or a list of both.
pub(super) fn check_named(at: &Command, named: &Value, findings: &mut Findings) {
    match named {
        Value::String(path) => {
            let path = path.trim_start_matches("./");
            if at.part.tree.find(path).is_none() {
                findings.add(
                    &at.file,
                    format!("names the hooks file {path}, which is not there"),
                    "add the file or correct the path",
                );
            }
            check_file(at, path, findings);
        }
        Value::Array(several) => several
            .iter()
            .for_each(|named| check_named(at, named, findings)),
        // Claude Code takes the events as they are, a hooks file has them below a key.
        hooks if hooks["hooks"].is_object() => events(at, &hooks["hooks"], findings),
        hooks => events(at, hooks, findings),
    }
}

/// Checks a hooks file, where there is one.
pub(super) fn check_file(from: &Command, path: &str, findings: &mut Findings) {
    let Some(parsed) = from.part.json(path, findings) else {
        return;
    };
    let at = &from.of_file(path);
    if at.host == Host::Codex {
        for key in parsed.as_object().into_iter().flatten().map(|(key, _)| key) {
            if key != "hooks" && key != "description" {
                findings.add(
                    &at.file,
                    format!("has the key {key}, for which Codex rejects the whole file"),
                    "remove it, or give Codex a hooks file of its own",
                );
            }
        }
    }
    // Antigravity's file maps names to what the others call hooks.
    if at.host == Host::Antigravity {
        for (_, named) in parsed.as_object().into_iter().flatten() {
            events(at, named, findings);
        }
    } else {
        events(at, &parsed["hooks"], findings);
    }
}

/// Checks events and their hooks.
fn events(at: &Command, events: &Value, findings: &mut Findings) {
    for (event, entries) in events.as_object().into_iter().flatten() {
        let known = at.host.events();
        if !known.is_empty() && !known.contains(&event.as_str()) {
            findings.add(
                &at.file,
                format!("has the event {event}, which the host does not know"),
                format!("use one of {}", known.join(", ")),
            );
        }
        for entry in entries.as_array().into_iter().flatten() {
            let listed = entry["hooks"].as_array();
            let commands = listed.map_or_else(|| vec![entry], |hooks| hooks.iter().collect());
            for hook in commands {
                at.hook(event, hook, findings);
            }
        }
    }
}

/// Checks MCP servers: by name, in a file, or a list of both.
pub(super) fn check_servers(at: &Command, servers: &Value, findings: &mut Findings) {
    match servers {
        // Others are bundles or addresses of them.
        Value::String(path) if Path::new(path).extension().is_some_and(|e| e == "json") => {
            let path = path.trim_start_matches("./");
            if let Some(parsed) = at.part.json(path, findings) {
                let servers = parsed.get("mcpServers").unwrap_or(&parsed);
                check_servers(&at.of_file(path), servers, findings);
            }
        }
        Value::Array(several) => several
            .iter()
            .for_each(|servers| check_servers(at, servers, findings)),
        servers => {
            for (name, server) in servers.as_object().into_iter().flatten() {
                at.server(name, server, findings);
            }
        }
    }
}
