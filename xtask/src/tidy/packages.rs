//! Manifests: versions, licences, descriptions, of our packages and of what they link.

use cargo_metadata::{Metadata, Package};
use serde_json::Value;

use super::File;

/// Licences that may be linked into a binary under ours. `deny.toml` has the same list.
const LICENCES: &[&str] = &[
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Zlib",
];

const OURS: &str = "MIT OR Apache-2.0";

pub(super) fn check(metadata: &Metadata, files: &[File]) -> Vec<String> {
    let ours = metadata.workspace_packages();
    let version = ours
        .first()
        .map(|package| package.version.to_string())
        .unwrap_or_default();
    let mut findings: Vec<String> = ours
        .iter()
        .flat_map(|package| check_ours(package, &version))
        .collect();
    let others = metadata
        .packages
        .iter()
        .filter(|package| package.source.is_some());
    findings.extend(others.filter_map(|package| {
        let licence = package.license.as_deref().unwrap_or("none");
        (!may_link(licence)).then(|| format!("{} has the licence {licence}", package.name))
    }));
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        if !files.iter().any(|file| file.path == licence) {
            findings.push(format!("{licence} is missing"));
        }
    }
    findings.extend(check_changelog(files, &version));
    findings.extend(files.iter().filter_map(|file| check_plugin(file, &version)));
    findings
}

fn check_ours(package: &Package, version: &str) -> Vec<String> {
    let name = &package.name;
    let mut findings = Vec::new();
    if package.version.to_string() != version {
        findings.push(format!(
            "{name} has version {}, not {version}",
            package.version
        ));
    }
    if package.license.as_deref() != Some(OURS) {
        findings.push(format!("{name} must inherit the licence {OURS}"));
    }
    let description = package.description.as_deref().unwrap_or_default();
    if description.len() < 20 {
        findings.push(format!("{name} needs a description, not {description:?}"));
    }
    findings
}

/// Whether one of the licences that an expression offers, or all that it demands, are listed.
fn may_link(expression: &str) -> bool {
    let listed = |licence: &str| LICENCES.contains(&licence.trim_matches(['(', ')', ' ']));
    let all = |part: &str| {
        part.split(" AND ")
            .all(|group| group.split('/').any(listed))
    };
    expression.split(" OR ").any(all)
}

fn check_changelog(files: &[File], version: &str) -> Option<String> {
    let changelog = files.iter().find(|file| file.path == "CHANGELOG.md");
    let Some(changelog) = changelog else {
        return Some("CHANGELOG.md is missing".into());
    };
    let heading = format!("## {version}");
    let found = changelog
        .text
        .lines()
        .any(|line| line.starts_with(&heading));
    (!found).then(|| format!("CHANGELOG.md has no heading \"{heading}\""))
}

/// The version of a manifest into which packaging writes the workspace's.
const FILLED_IN: &str = "0.0.0";

/// Plugin manifests name the workspace's version, or leave it to the packaging.
fn check_plugin(file: &File, version: &str) -> Option<String> {
    let manifest = ["plugin.json", "gemini-extension.json", "marketplace.json"];
    let named = manifest
        .iter()
        .any(|name| file.path.ends_with(&format!("/{name}")));
    if !file.path.starts_with("plugins/") || !named {
        return None;
    }
    let Ok(parsed) = serde_json::from_str::<Value>(&file.text) else {
        return Some(format!("{} is not JSON", file.path));
    };
    let found = parsed["version"].as_str()?;
    let fine = found == version || found == FILLED_IN;
    (!fine).then(|| format!("{} has version {found}, not {version}", file.path))
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    #[test]
    fn licence_expressions() {
        for good in [
            "MIT",
            "MIT/Apache-2.0",
            "Apache-2.0 OR GPL-2.0",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "ISC AND MIT",
        ] {
            assert!(may_link(good), "{good}");
        }
        for bad in [
            "none",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "AGPL-3.0 OR GPL-2.0",
            "",
        ] {
            assert!(!may_link(bad), "{bad}");
        }
    }

    #[test]
    fn cargo_deny_allows_the_same_licences() {
        let deny = include_str!("../../../deny.toml");
        let list = deny.split_once("allow = [").unwrap().1;
        let list: Vec<&str> = list.split_once(']').unwrap().0.split('"').collect();
        // What stands between two quotes is every second piece.
        let quoted: Vec<&str> = list.into_iter().skip(1).step_by(2).collect();
        assert_eq!(quoted, LICENCES);
    }

    #[test]
    fn versions_that_differ_are_found() {
        let log = [file("CHANGELOG.md", "# Changes\n\n## 0.1.0 (unreleased)\n")];
        assert_eq!(check_changelog(&log, "0.1.0"), None);
        assert!(check_changelog(&log, "0.2.0").is_some());
        assert!(check_changelog(&[], "0.1.0").is_some());

        let plugin = file(
            "plugins/core/.claude-plugin/plugin.json",
            r#"{"version":"0.0.9"}"#,
        );
        assert!(check_plugin(&plugin, "0.1.0").is_some());
        let open = file(
            "plugins/core/.claude-plugin/plugin.json",
            r#"{"name":"core"}"#,
        );
        assert_eq!(check_plugin(&open, "0.1.0"), None);
        assert!(check_plugin(&file("plugins/x/plugin.json", "{"), "0.1.0").is_some());
    }
}
