//! Hooks and MCP servers: programs, arguments, options, events.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{
    ANTIGRAVITY, CODEX, CODEX_MANIFEST, CORE, EXTENSION, GEMINI, HOOKS, MONITOR, Mistake, SERVERS,
    edit,
};

/// A command of the first hook on `PostToolUse`.
fn hook(root: &Path, file: &str, change: impl Fn(&mut Value)) {
    edit(&root.join(file), |v| {
        change(&mut v["hooks"]["PostToolUse"][0]["hooks"][0]);
    });
}

/// A hook on `Stop` within Claude Code's manifest of the monitor.
fn inline(root: &Path, hook: &Value) {
    edit(&root.join(MONITOR), |v| {
        v["hooks"] = json!({"Stop": [{"hooks": [hook]}]});
    });
}

/// An MCP server in a file of its own.
fn server(root: &Path, server: &Value) {
    let servers = json!({"mcpServers": {"s": server}});
    fs::write(root.join(SERVERS), servers.to_string()).unwrap();
}

pub(super) const MISTAKES: &[Mistake] = &[
    (
        "a command with words and args",
        |d| {
            hook(d, HOOKS, |h| {
                h["command"] = json!("${CLAUDE_PLUGIN_ROOT}/bin/ctxfold hook");
            });
        },
        HOOKS,
        "move the words to args",
    ),
    (
        "an option that is not declared",
        |d| hook(d, HOOKS, |h| h["args"] = json!(["${user_config.nope}"])),
        HOOKS,
        "userConfig",
    ),
    (
        "an option in a shell's line",
        |d| {
            hook(
                d,
                HOOKS,
                |h| *h = json!({"type": "command", "command": "echo ${user_config.k}"}),
            );
        },
        HOOKS,
        "CLAUDE_PLUGIN_OPTION",
    ),
    (
        "an option that may have no value",
        |d| {
            edit(&d.join(MONITOR), |v| {
                v["userConfig"] =
                    json!({"k": {"type": "string", "title": "K", "description": "K"}});
            });
            hook(d, HOOKS, |h| h["args"] = json!(["${user_config.k}"]));
        },
        HOOKS,
        "a default",
    ),
    (
        "a path without quotes",
        |d| {
            hook(d, HOOKS, |h| {
                *h =
                    json!({"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/bin/ctxfold hook"});
            });
        },
        HOOKS,
        "double quotes",
    ),
    (
        "a relative path",
        |d| {
            hook(d, HOOKS, |h| {
                *h = json!({"type": "command", "command": "./bin/ctxfold hook"});
            });
        },
        HOOKS,
        "${CLAUDE_PLUGIN_ROOT}",
    ),
    (
        "a path of one machine",
        |d| {
            hook(
                d,
                HOOKS,
                |h| *h = json!({"type": "command", "command": "/home/dev/ctxfold hook"}),
            );
        },
        HOOKS,
        "placeholder",
    ),
    (
        "milliseconds where seconds count",
        |d| hook(d, HOOKS, |h| h["timeout"] = json!(10_000)),
        HOOKS,
        "600 at most",
    ),
    (
        "a server's program that is missing",
        |d| {
            edit(&d.join(CORE), |v| {
                v["mcpServers"] = json!({"s": {"command": "${CLAUDE_PLUGIN_ROOT}/bin/nope"}});
            });
        },
        CORE,
        "add the file",
    ),
    (
        "a server's program with a space",
        |d| {
            server(
                d,
                &json!({"command": "${CLAUDE_PLUGIN_ROOT}/bin/ctxfold hook"}),
            );
        },
        SERVERS,
        "move the words to args",
    ),
    (
        "a server's script that is missing",
        |d| {
            server(
                d,
                &json!({"command": "node", "args": ["${CLAUDE_PLUGIN_ROOT}/server.js"]}),
            );
        },
        SERVERS,
        "add the file",
    ),
    (
        "a server in a file that the manifest names",
        |d| {
            let servers = json!({"s": {"command": "${CLAUDE_PLUGIN_ROOT}/bin/nope"}});
            let path = d.join("plugins/ctxfold-core/servers.json");
            fs::write(path, servers.to_string()).unwrap();
            edit(&d.join(CORE), |v| {
                v["mcpServers"] = json!(["./servers.json"]);
            });
        },
        "plugins/ctxfold-core/servers.json",
        "add the file",
    ),
    (
        "a server's script that Gemini CLI misses",
        |d| {
            edit(&d.join(EXTENSION), |v| {
                v["mcpServers"] =
                    json!({"s": {"command": "node", "args": ["${extensionPath}${/}server.js"]}});
            });
        },
        EXTENSION,
        "add the file",
    ),
    (
        "an argument that is missing",
        |d| {
            hook(d, HOOKS, |h| {
                h["args"] = json!(["--rules=${CLAUDE_PLUGIN_ROOT}/rules.json"]);
            });
        },
        HOOKS,
        "add the file",
    ),
    (
        "a shell's line in an argument with what is missing",
        |d| {
            let line = "\"${CLAUDE_PLUGIN_ROOT}/bin/nope\" hook";
            hook(
                d,
                HOOKS,
                |h| *h = json!({"type": "command", "command": "sh", "args": ["-c", line]}),
            );
        },
        HOOKS,
        "add the file",
    ),
    (
        "an argument that leaves the plugin",
        |d| {
            hook(d, HOOKS, |h| {
                h["args"] = json!(["${CLAUDE_PLUGIN_ROOT}/../ctxfold-core/README.md"]);
            });
        },
        HOOKS,
        "correct the path",
    ),
    (
        "a manifest's hook without its program",
        |d| {
            inline(
                d,
                &json!({"type": "command", "command": "\"${CLAUDE_PLUGIN_ROOT}\"/bin/nope"}),
            );
        },
        MONITOR,
        "add the file",
    ),
    (
        "a manifest's hook with words and args",
        |d| {
            inline(
                d,
                &json!({"type": "command", "command": "sh -c", "args": ["true"]}),
            );
        },
        MONITOR,
        "move the words to args",
    ),
    (
        "a manifest's hook with an option that is not declared",
        |d| {
            inline(
                d,
                &json!({"type": "command", "command": "sh", "args": ["${user_config.nope}"]}),
            );
        },
        MONITOR,
        "userConfig",
    ),
    (
        "a hooks file that the manifest names and nobody wrote",
        |d| {
            edit(&d.join(MONITOR), |v| {
                v["hooks"] = json!(["./hooks/more.json"]);
            });
        },
        MONITOR,
        "correct the path",
    ),
    (
        "a mistake in a hooks file that the manifest names",
        |d| {
            let hooks = json!({"hooks": {"Stop": [{"hooks": [
                {"type": "command", "command": "\"${CLAUDE_PLUGIN_ROOT}/bin/nope\""},
            ]}]}});
            let path = d.join("plugins/ctxfold-monitor/hooks/more.json");
            fs::write(path, hooks.to_string()).unwrap();
            edit(&d.join(MONITOR), |v| {
                v["hooks"] = json!("./hooks/more.json");
            });
        },
        "plugins/ctxfold-monitor/hooks/more.json",
        "add the file",
    ),
    (
        "an event in Codex's manifest that Codex does not know",
        |d| {
            edit(&d.join(CODEX_MANIFEST), |v| {
                v["hooks"] = json!({"hooks": {"AfterTool": []}});
            });
        },
        CODEX_MANIFEST,
        "PostToolUse",
    ),
    (
        "modules in Codex's file",
        |d| edit(&d.join(CODEX), |v| v["modules"] = json!(["./register.ts"])),
        CODEX,
        "of its own",
    ),
    (
        "args in Codex's file",
        |d| hook(d, CODEX, |h| h["args"] = json!(["hook"])),
        CODEX,
        "one command line",
    ),
    (
        "an event that Codex does not know",
        |d| edit(&d.join(CODEX), |v| v["hooks"]["AfterTool"] = json!([])),
        CODEX,
        "PostToolUse",
    ),
    (
        "no hooks file for Codex",
        |d| fs::remove_file(d.join(CODEX)).unwrap(),
        CODEX_MANIFEST,
        "correct the path",
    ),
    (
        "Codex left to a file with modules",
        |d| fs::remove_file(d.join(CODEX_MANIFEST)).unwrap(),
        HOOKS,
        ".codex-plugin/plugin.json",
    ),
    (
        "another version for Codex",
        |d| edit(&d.join(CODEX_MANIFEST), |v| v["version"] = json!("1.0.0")),
        CODEX_MANIFEST,
        "the same",
    ),
    (
        "seconds where milliseconds count",
        |d| {
            edit(&d.join(GEMINI), |v| {
                v["hooks"]["AfterTool"][0]["hooks"][0]["timeout"] = json!(10);
            });
        },
        GEMINI,
        "10000",
    ),
    (
        "an event that Gemini CLI does not know",
        |d| edit(&d.join(GEMINI), |v| v["hooks"]["PostToolUse"] = json!([])),
        GEMINI,
        "AfterTool",
    ),
    (
        "an event that Antigravity does not know",
        |d| {
            edit(&d.join(ANTIGRAVITY), |v| {
                v["ctxfold"]["AfterTool"] = json!([]);
            });
        },
        ANTIGRAVITY,
        "PostToolUse",
    ),
];
