//! Every mistake that a package is refused for.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use serde_json::{Value, json};

use super::super::archive;
use super::{TRIPLE, program};

fn edit(path: &Path, change: impl Fn(&mut Value)) {
    let mut value: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    change(&mut value);
    fs::write(path, serde_json::to_vec_pretty(&value).unwrap()).unwrap();
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

const MARKET: &str = ".claude-plugin/marketplace.json";
const CORE: &str = "plugins/ctxfold-core/.claude-plugin/plugin.json";
const COMPACT: &str = "plugins/ctxfold-compact/.claude-plugin/plugin.json";
const MONITOR: &str = "plugins/ctxfold-monitor/.claude-plugin/plugin.json";
const HOOKS: &str = "plugins/ctxfold-monitor/hooks/hooks.json";
const CODEX_MANIFEST: &str = "plugins/ctxfold-monitor/.codex-plugin/plugin.json";
const CODEX: &str = "plugins/ctxfold-monitor/hooks/codex.json";
const GEMINI: &str = "gemini/ctxfold/hooks/hooks.json";
const ANTIGRAVITY: &str = "antigravity/ctxfold/hooks.json";
const LAUNCHER: &str = "plugins/ctxfold-monitor/bin/ctxfold";
const BINARY: &str = "plugins/ctxfold-core/bin/x86_64-unknown-linux-gnu/ctxfold";

/// What is done to a package, the file that the finding must name, and words of its remedy.
pub(super) type Mistake = (&'static str, fn(&Path), &'static str, &'static str);

/// A command of the first hook on `PostToolUse`.
fn hook(root: &Path, file: &str, change: impl Fn(&mut Value)) {
    edit(&root.join(file), |v| {
        change(&mut v["hooks"]["PostToolUse"][0]["hooks"][0]);
    });
}

pub(super) const MISTAKES: &[Mistake] = &[
    (
        "the marketplace is no JSON",
        |d| fs::write(d.join(MARKET), "{").unwrap(),
        MARKET,
        "correct it",
    ),
    (
        "an empty marketplace",
        |d| edit(&d.join(MARKET), |v| v["plugins"] = json!([])),
        MARKET,
        "add one",
    ),
    (
        "a folder that is missing",
        |d| fs::remove_dir_all(d.join("plugins/ctxfold-core")).unwrap(),
        MARKET,
        "make the folder",
    ),
    (
        "a source without ./",
        |d| {
            edit(&d.join(MARKET), |v| {
                v["plugins"][0]["source"] = json!("plugins/ctxfold-core");
            });
        },
        MARKET,
        "./plugins/ctxfold-core",
    ),
    (
        "a source above the marketplace",
        |d| {
            edit(&d.join(MARKET), |v| {
                v["plugins"][0]["source"] = json!("./../ctxfold-core");
            });
        },
        MARKET,
        "./plugins/ctxfold-core",
    ),
    (
        "a name listed twice",
        |d| {
            edit(&d.join(MARKET), |v| {
                v["plugins"][1] = v["plugins"][0].clone();
            });
        },
        MARKET,
        "remove one",
    ),
    (
        "a name that differs from the list's",
        |d| {
            edit(&d.join(MARKET), |v| {
                v["plugins"][0]["name"] = json!("ctxfold-base");
            });
        },
        CORE,
        "the same name",
    ),
    (
        "a name that differs from the folder's",
        |d| edit(&d.join(CORE), |v| v["name"] = json!("core")),
        CORE,
        "the same name",
    ),
    (
        "a version in the list",
        |d| {
            edit(&d.join(MARKET), |v| {
                v["plugins"][0]["version"] = json!("9.9.9");
            });
        },
        MARKET,
        "remove the version",
    ),
    (
        "a plugin that is not listed",
        |d| {
            edit(&d.join(MARKET), |v| {
                v["plugins"].as_array_mut().unwrap().pop();
            });
        },
        "plugins/ctxfold-monitor",
        "list the plugin",
    ),
    (
        "two versions in one release",
        |d| edit(&d.join(CORE), |v| v["version"] = json!("1.2.4")),
        MARKET,
        "one version",
    ),
    (
        "a manifest that is missing",
        |d| fs::remove_file(d.join(CORE)).unwrap(),
        CORE,
        "write it",
    ),
    (
        "a manifest that is no JSON",
        |d| fs::write(d.join(CORE), "{,}").unwrap(),
        CORE,
        "correct it",
    ),
    (
        "a name in capitals",
        |d| edit(&d.join(CORE), |v| v["name"] = json!("Core_1")),
        CORE,
        "lower-case",
    ),
    (
        "a name of the client's maker",
        |d| edit(&d.join(CORE), |v| v["name"] = json!("claude-core")),
        CORE,
        "what it does",
    ),
    (
        "a version that is none",
        |d| edit(&d.join(CORE), |v| v["version"] = json!("1.2")),
        CORE,
        "1.2.3",
    ),
    (
        "a version left to be filled in",
        |d| edit(&d.join(CORE), |v| v["version"] = json!("0.0.0")),
        CORE,
        "cargo xtask package",
    ),
    (
        "no description",
        |d| edit(&d.join(CORE), |v| v["description"] = json!(" ")),
        CORE,
        "in a sentence",
    ),
    (
        "no licence in the manifest",
        |d| {
            edit(&d.join(CORE), |v| {
                v.as_object_mut().unwrap().remove("license");
            });
        },
        CORE,
        "SPDX",
    ),
    (
        "a dependency that is not there",
        |d| {
            edit(&d.join(COMPACT), |v| {
                v["dependencies"][0]["name"] = json!("ctxfold-base");
            });
        },
        COMPACT,
        "list it",
    ),
    (
        "a dependency on another version",
        |d| {
            edit(&d.join(COMPACT), |v| {
                v["dependencies"][0]["version"] = json!("^2.0.0");
            });
        },
        COMPACT,
        "^1.2.3",
    ),
    (
        "types that are not there",
        |d| edit(&d.join(CORE), |v| v["types"] = json!("./types/none.d.ts")),
        CORE,
        "add the file",
    ),
    (
        "a module without engines",
        |d| {
            edit(&d.join(CORE), |v| {
                v.as_object_mut().unwrap().remove("engines");
            });
        },
        CORE,
        "engines",
    ),
    (
        "a module that is missing",
        |d| fs::remove_file(d.join("plugins/ctxfold-core/hooks/register.ts")).unwrap(),
        "plugins/ctxfold-core/hooks/hooks.json",
        "relative to hooks.json",
    ),
    (
        "a secret in plain settings",
        |d| {
            edit(&d.join(CORE), |v| {
                v["userConfig"]["apiKey"]["sensitive"] = json!(false);
            });
        },
        CORE,
        "sensitive",
    ),
    (
        "a default that is no choice",
        |d| {
            edit(&d.join(CORE), |v| {
                v["userConfig"]["tier"]["default"] = json!("gold");
            });
        },
        CORE,
        "one of its options",
    ),
    (
        "no README",
        |d| fs::remove_file(d.join("plugins/ctxfold-core/README.md")).unwrap(),
        "plugins/ctxfold-core/README.md",
        "how to use it",
    ),
    (
        "a short README",
        |d| fs::write(d.join("plugins/ctxfold-core/README.md"), "# Core\n").unwrap(),
        "plugins/ctxfold-core/README.md",
        "at least 40",
    ),
    (
        "a placeholder",
        |d| {
            fs::write(
                d.join("plugins/ctxfold-core/README.md"),
                "{{name}} ".repeat(50),
            )
            .unwrap();
        },
        "plugins/ctxfold-core/README.md",
        "fill it in",
    ),
    (
        "no licence",
        |d| {
            for l in ["LICENSE-MIT", "LICENSE-APACHE"] {
                fs::remove_file(d.join("plugins/ctxfold-core").join(l)).unwrap();
            }
        },
        "plugins/ctxfold-core/LICENSE",
        "add the licence",
    ),
    (
        "no launcher",
        |d| fs::remove_file(d.join(LAUNCHER)).unwrap(),
        HOOKS,
        "add the file",
    ),
    (
        "a launcher that can't be run",
        |d| mode(&d.join(LAUNCHER), 0o644),
        LAUNCHER,
        "chmod 755",
    ),
    (
        "a launcher with Windows line ends",
        |d| fs::write(d.join(LAUNCHER), "#!/bin/sh\r\n").unwrap(),
        LAUNCHER,
        "\\n",
    ),
    (
        "no binary behind the launcher",
        |d| fs::remove_dir_all(d.join("plugins/ctxfold-core/bin").join(TRIPLE)).unwrap(),
        "plugins/ctxfold-core/bin/ctxfold",
        "cargo xtask package",
    ),
    (
        "a target without its binary",
        |d| fs::rename(d.join(BINARY), d.join(BINARY).with_file_name("other")).unwrap(),
        BINARY,
        "build it for",
    ),
    (
        "a binary that can't be run",
        |d| mode(&d.join(BINARY), 0o644),
        BINARY,
        "chmod 755",
    ),
    (
        "a binary for another processor",
        |d| {
            fs::copy(program(d, 183), d.join(BINARY)).unwrap();
            fs::remove_file(d.join("program-183")).unwrap();
        },
        BINARY,
        "its folder's target",
    ),
    (
        "a script in a binary's place",
        |d| fs::write(d.join(BINARY), "#!/bin/sh\necho a script, not a binary\n").unwrap(),
        BINARY,
        "its folder's target",
    ),
    (
        "a target nobody knows",
        |d| {
            fs::rename(
                d.join("plugins/ctxfold-core/bin").join(TRIPLE),
                d.join("plugins/ctxfold-core/bin/linux"),
            )
            .unwrap();
        },
        "plugins/ctxfold-core/bin/linux",
        "after the target",
    ),
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
    (
        "a leftover",
        |d| fs::write(d.join("plugins/ctxfold-core/README.md.orig"), "").unwrap(),
        "plugins/ctxfold-core/README.md.orig",
        "remove it",
    ),
    (
        "types that a client laid",
        |d| {
            fs::create_dir(d.join("plugins/ctxfold-core/.claude-plugin/types")).unwrap();
            fs::write(
                d.join("plugins/ctxfold-core/.claude-plugin/types/index.d.ts"),
                "",
            )
            .unwrap();
        },
        "plugins/ctxfold-core/.claude-plugin/types/index.d.ts",
        "remove it",
    ),
    (
        "a link that leaves the plugin",
        |d| symlink("../../README.md", d.join("plugins/ctxfold-core/MORE.md")).unwrap(),
        "plugins/ctxfold-core/MORE.md",
        "copy the file",
    ),
    (
        "a link to a path of the machine",
        |d| symlink("/etc/hostname", d.join("plugins/ctxfold-core/name")).unwrap(),
        "plugins/ctxfold-core/name",
        "copy the file",
    ),
    (
        "names that differ in case",
        |d| fs::write(d.join("plugins/ctxfold-core/readme.md"), "x ".repeat(50)).unwrap(),
        "plugins/ctxfold-core/readme.md",
        "rename one",
    ),
    (
        "a change after packaging",
        |d| {
            archive::write_sums(d).unwrap();
            fs::write(d.join("README.md"), "changed").unwrap();
        },
        "SHA256SUMS",
        "package again",
    ),
];
