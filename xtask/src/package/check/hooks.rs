//! Commands that hosts run: hooks and MCP servers.

use serde_json::Value;

use super::{Findings, Part};

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
    fn roots(self) -> &'static [&'static str] {
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

/// One command while it is looked at.
struct Command<'a> {
    part: &'a Part<'a>,
    file: String,
    host: Host,
    manifest: &'a Value,
}

/// Checks a hooks file, where there is one.
pub(super) fn check(
    part: &Part,
    path: &str,
    host: Host,
    manifest: &Value,
    findings: &mut Findings,
) {
    let Some(parsed) = part.json(path, findings) else {
        return;
    };
    let at = Command {
        part,
        file: part.named(path),
        host,
        manifest,
    };
    if host == Host::Codex {
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
    let groups: Vec<&Value> = match host {
        Host::Antigravity => parsed
            .as_object()
            .map(|o| o.values().collect())
            .unwrap_or_default(),
        _ => vec![&parsed["hooks"]],
    };
    for (event, entries) in groups
        .iter()
        .filter_map(|group| group.as_object())
        .flatten()
    {
        if !host.events().is_empty() && !host.events().contains(&event.as_str()) {
            findings.add(
                &at.file,
                format!("has the event {event}, which the host does not know"),
                format!("use one of {}", host.events().join(", ")),
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

/// Checks the commands of MCP servers.
pub(super) fn check_servers(
    part: &Part,
    path: &str,
    servers: &Value,
    manifest: &Value,
    findings: &mut Findings,
) {
    let at = Command {
        part,
        file: part.named(path),
        host: Host::Claude,
        manifest,
    };
    for (name, server) in servers.as_object().into_iter().flatten() {
        at.program(
            name,
            server["command"].as_str().unwrap_or_default(),
            findings,
        );
        at.declared(name, &server.to_string(), findings);
    }
}

impl Command<'_> {
    fn hook(&self, event: &str, hook: &Value, findings: &mut Findings) {
        let command = hook["command"].as_str().unwrap_or_default();
        let whole = hook.to_string();
        self.timeout(event, &hook["timeout"], findings);
        self.declared(event, &whole, findings);
        self.program(event, command, findings);
        if hook.get("args").is_some() {
            if self.host != Host::Claude {
                findings.add(
                    &self.file,
                    format!("{event} has args, which only Claude Code reads"),
                    "write one command line with the path in double quotes",
                );
            }
            if command.chars().any(char::is_whitespace) {
                findings.add(
                    &self.file,
                    format!("{event} has args and a command with a space: {command:?}"),
                    "leave the program alone in command and move the words to args",
                );
            }
            self.optional(event, &whole, findings);
            return;
        }
        if whole.contains("${user_config.") {
            findings.add(
                &self.file,
                format!("{event} puts an option into a shell's command line"),
                "read CLAUDE_PLUGIN_OPTION_NAME in the program",
            );
        }
        for root in self.host.roots() {
            if outside_quotes(command, root) {
                findings.add(
                    &self.file,
                    format!("{event} has {root} without quotes: {command}"),
                    "put the path in double quotes: folders have spaces in their names",
                );
            }
        }
    }

    fn timeout(&self, event: &str, timeout: &Value, findings: &mut Findings) {
        let Some(timeout) = timeout.as_u64() else {
            return;
        };
        if self.host == Host::Gemini && timeout < 1000 {
            findings.add(
                &self.file,
                format!("{event} has a timeout of {timeout}, and Gemini CLI counts milliseconds"),
                format!("write {}", timeout * 1000),
            );
        }
        if self.host != Host::Gemini && timeout > 600 {
            findings.add(
                &self.file,
                format!("{event} has a timeout of {timeout}, and the host counts seconds"),
                "write the seconds, 600 at most",
            );
        }
    }

    /// The program of a command: there, and allowed to run.
    fn program(&self, place: &str, command: &str, findings: &mut Findings) {
        let command = command.replace("${/}", "/");
        for root in self.host.roots() {
            for (at, _) in command.match_indices(root) {
                let rest = &command[at + root.len()..];
                let end = rest.find(['"', '\'', ' ']).unwrap_or(rest.len());
                let path = rest[..end].trim_start_matches('/');
                self.path(place, path, findings);
            }
        }
        let first = command.trim_start_matches(['"', '\'']);
        if first.starts_with("./") || first.starts_with("../") || first.starts_with("bin/") {
            findings.add(
                &self.file,
                format!(
                    "{place} has the relative path {first}, and hooks run in the user's folder"
                ),
                format!(
                    "start it with {}/",
                    self.host.roots().first().unwrap_or(&"an installed name")
                ),
            );
        }
        if ["/home/", "/Users/", concat!("/ro", "ot/"), "C:\\"]
            .iter()
            .any(|p| command.contains(p))
        {
            findings.add(
                &self.file,
                format!("{place} has a path of one machine: {command}"),
                "name the plugin's own folder by its placeholder",
            );
        }
    }

    fn path(&self, place: &str, path: &str, findings: &mut Findings) {
        match self.part.tree.find(path) {
            None => findings.add(
                &self.file,
                format!("{place} runs {path}, which is not in the plugin"),
                "add the file or correct the path",
            ),
            Some(entry) if !entry.is_executable => findings.add(
                &self.part.named(path),
                "can't be run",
                format!("chmod 755 {path}"),
            ),
            Some(_) => {}
        }
    }

    fn declared(&self, place: &str, text: &str, findings: &mut Findings) {
        for key in options(text) {
            if self.manifest["userConfig"].get(key).is_none() {
                findings.add(
                    &self.file,
                    format!("{place} asks for the option {key}, which is not declared"),
                    "declare it in plugin.json's userConfig",
                );
            }
        }
    }

    /// A hook that names an option without a value fails.
    fn optional(&self, place: &str, text: &str, findings: &mut Findings) {
        for key in options(text) {
            let option = &self.manifest["userConfig"][key];
            if option.is_object() && option["required"] != true && option.get("default").is_none() {
                findings.add(
                    &self.file,
                    format!("{place} fails while the option {key} has no value"),
                    "read CLAUDE_PLUGIN_OPTION_NAME in the program, or give the option a default",
                );
            }
        }
    }
}

/// The names in `${user_config.NAME}`.
fn options(text: &str) -> impl Iterator<Item = &str> {
    let after = text.split("${user_config.").skip(1);
    after.filter_map(|rest| Some(rest.split_once('}')?.0))
}

/// Whether a shell would split what stands for `root`.
fn outside_quotes(command: &str, root: &str) -> bool {
    command
        .match_indices(root)
        .any(|(at, _)| command[..at].matches('"').count().is_multiple_of(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_counted() {
        let root = "${PLUGIN_ROOT}";
        assert!(!outside_quotes("\"${PLUGIN_ROOT}/bin/x\" hook", root));
        assert!(outside_quotes("${PLUGIN_ROOT}/bin/x", root));
        assert!(outside_quotes("\"sh\" ${PLUGIN_ROOT}/bin/x", root));
    }

    #[test]
    fn options_are_found_wherever_they_stand() {
        let found: Vec<&str> = options("a ${user_config.one} b ${user_config.two}").collect();
        assert_eq!(found, ["one", "two"]);
        assert_eq!(options("${user_config.open").count(), 0);
    }
}
