//! The marketplace: that its list and its folders agree.

use std::fs;
use std::path::Path;

use cargo_metadata::semver::{Version, VersionReq};
use serde_json::Value;

use super::{Findings, Part, Tree, plugin};
use crate::shell::Result;

pub(in crate::package) const FILE: &str = ".claude-plugin/marketplace.json";

/// Checks the list, every plugin it names, and the folders for other clients.
pub(super) fn check(folder: &Path, findings: &mut Findings) -> Result<()> {
    let bytes = fs::read(folder.join(FILE)).unwrap_or_default();
    let market: Value = match serde_json::from_slice(&bytes) {
        Ok(market) => market,
        Err(error) => {
            findings.add(FILE, format!("is not JSON ({error})"), "correct it");
            return Ok(());
        }
    };
    let entries = market["plugins"].as_array().cloned().unwrap_or_default();
    if entries.is_empty() {
        findings.add(FILE, "lists no plugin", "add one to plugins");
    }
    let mut known: Vec<(String, Version)> = Vec::new();
    let mut wanted = Vec::new();
    for entry in &entries {
        let name = entry["name"].as_str().unwrap_or_default().to_owned();
        if known.iter().any(|(other, _)| *other == name) {
            findings.add(FILE, format!("lists {name} twice"), "remove one");
            continue;
        }
        let Some(path) = source(entry, &name, findings) else {
            continue;
        };
        if !folder.join(&path).is_dir() {
            findings.add(
                FILE,
                format!("{name} has the source ./{path}, which is no folder"),
                "make the folder or correct the source",
            );
            continue;
        }
        let prefix = format!("{path}/");
        let part = Part {
            prefix: &prefix,
            tree: Tree::read(&folder.join(&path))?,
        };
        let manifest = plugin::check(&part, findings);
        if manifest["name"] != entry["name"] {
            findings.add(
                &part.named(plugin::CLAUDE),
                format!(
                    "has the name {}, but {FILE} calls it {}",
                    manifest["name"], entry["name"]
                ),
                "give both the same name",
            );
        }
        if entry
            .get("version")
            .is_some_and(|version| *version != manifest["version"])
        {
            findings.add(
                FILE,
                format!(
                    "{name} has the version {}, its plugin.json {}",
                    entry["version"], manifest["version"]
                ),
                "remove the version here: plugin.json's counts",
            );
        }
        if let Some(version) = manifest["version"].as_str().and_then(|v| v.parse().ok()) {
            known.push((name.clone(), version));
        }
        wanted.extend(dependencies(&manifest, &part.named(plugin::CLAUDE)));
    }
    for (file, dependency, range) in wanted {
        check_dependency(&file, &dependency, range.as_deref(), &known, findings);
    }
    check_unlisted(folder, &entries, findings)?;
    check_versions(&known, findings);
    for group in ["gemini", "antigravity"] {
        for name in Tree::read(&folder.join(group))?.top_folders() {
            let prefix = format!("{group}/{name}/");
            let part = Part {
                prefix: &prefix,
                tree: Tree::read(&folder.join(group).join(&name))?,
            };
            plugin::check(&part, findings);
        }
    }
    Ok(())
}

/// The folder that an entry names, where it is one within the marketplace.
fn source(entry: &Value, name: &str, findings: &mut Findings) -> Option<String> {
    let remedy = format!("write \"./plugins/{name}\"");
    let Some(source) = entry["source"].as_str() else {
        findings.add(FILE, format!("{name} has no folder as its source"), remedy);
        return None;
    };
    match source.strip_prefix("./") {
        Some(path) if !path.is_empty() && !path.split('/').any(|step| step == "..") => {
            Some(path.trim_end_matches('/').to_owned())
        }
        _ => {
            findings.add(
                FILE,
                format!("{name} has the source {source:?}, which does not start with ./ or leaves the marketplace"),
                remedy,
            );
            None
        }
    }
}

/// What a manifest depends on: the file that says so, the name, and the range where there is one.
fn dependencies(manifest: &Value, file: &str) -> Vec<(String, String, Option<String>)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    manifest["dependencies"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|dependency| {
            let name = text(dependency).or_else(|| text(&dependency["name"]))?;
            let range = dependency.get("version").and_then(text);
            Some((file.to_owned(), name, range))
        })
        .collect()
}

fn check_dependency(
    file: &str,
    name: &str,
    range: Option<&str>,
    known: &[(String, Version)],
    findings: &mut Findings,
) {
    let Some((_, version)) = known.iter().find(|(other, _)| other == name) else {
        findings.add(
            file,
            format!("depends on {name}, which this marketplace does not list"),
            format!("list it in {FILE} or remove the dependency"),
        );
        return;
    };
    let Some(range) = range else { return };
    let fits = VersionReq::parse(range).is_ok_and(|range| range.matches(version));
    if !fits {
        findings.add(
            file,
            format!("depends on {name} {range}, but the marketplace has {version}"),
            format!("ask for ^{version}"),
        );
    }
}

fn check_unlisted(folder: &Path, entries: &[Value], findings: &mut Findings) -> Result<()> {
    for name in Tree::read(&folder.join("plugins"))?.top_folders() {
        let path = format!("plugins/{name}");
        let is_listed = entries
            .iter()
            .filter_map(|entry| entry["source"].as_str())
            .any(|source| source.trim_start_matches("./").trim_end_matches('/') == path);
        if !is_listed {
            findings.add(
                &path,
                format!("is not in {FILE}"),
                "list the plugin or remove the folder",
            );
        }
    }
    Ok(())
}

fn check_versions(known: &[(String, Version)], findings: &mut Findings) {
    let Some((first, version)) = known.first() else {
        return;
    };
    for (name, other) in &known[1..] {
        if other != version {
            findings.add(
                FILE,
                format!("{first} has version {version}, {name} has {other}"),
                "release all plugins under one version",
            );
        }
    }
}
