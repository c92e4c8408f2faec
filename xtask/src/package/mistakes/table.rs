//! Every mistake that a package is refused for.

mod commands;
mod files;
mod manifests;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;

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
const SERVERS: &str = "plugins/ctxfold-core/.mcp.json";
const EXTENSION: &str = "gemini/ctxfold/gemini-extension.json";
const GEMINI: &str = "gemini/ctxfold/hooks/hooks.json";
const ANTIGRAVITY: &str = "antigravity/ctxfold/hooks.json";
const LAUNCHER: &str = "plugins/ctxfold-monitor/bin/ctxfold";
const BINARY: &str = "plugins/ctxfold-core/bin/x86_64-unknown-linux-gnu/ctxfold";

/// What is done to a package, the file that the finding must name, and words of its remedy.
pub(super) type Mistake = (&'static str, fn(&Path), &'static str, &'static str);

/// All of them, by what they are in.
pub(super) const MISTAKES: [&[Mistake]; 3] =
    [manifests::MISTAKES, files::MISTAKES, commands::MISTAKES];
