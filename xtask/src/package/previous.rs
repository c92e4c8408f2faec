//! What stands in the output before a package replaces it: an earlier package, or somebody's files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::archive::{self, SUMS};
use super::check::{MANIFESTS, MARKET, Tree};
use crate::shell::Result;

/// The marketplace's name in its own file, by which a package of ours is known.
const NAME: &str = "ctxfold";

/// Refuses an output that holds anything but what an earlier run wrote there, and names it.
pub(super) fn may_be_replaced(out: &Path) -> Result<()> {
    let shown = out.display();
    if fs::symlink_metadata(out).is_err() {
        return Ok(());
    }
    let tree = Tree::read(out)?;
    if out.is_dir() && tree.files().next().is_none() {
        return Ok(());
    }
    let is_ours = json(&out.join(MARKET)).is_some_and(|market| market["name"] == NAME);
    let Some(sums) = fs::read_to_string(out.join(SUMS)).ok().filter(|_| is_ours) else {
        return Err(format!(
            "{shown} holds something that is no package; name an empty folder with --out"
        )
        .into());
    };
    let listed: BTreeSet<&str> = paths_and_sums(&sums).map(|(path, _)| path).collect();
    let stray = tree
        .files()
        .find(|file| file.path != SUMS && !listed.contains(file.path.as_str()));
    match stray {
        Some(stray) => Err(format!(
            "{} is not from an earlier package; move it away, or name an empty folder with --out",
            out.join(&stray.path).display()
        )
        .into()),
        None => Ok(()),
    }
}

/// Finds what differs from a package of the same version, archives included. Clients compare versions
/// only: another content never reaches anybody who has the version already.
pub(super) fn differences(stage: &Path, previous: &Path) -> Result<Vec<String>> {
    let (now, then) = (versions(stage)?, versions(previous)?);
    let Some(version) = now.intersection(&then).next() else {
        return Ok(Vec::new());
    };
    let (now, then) = (content(stage)?, content(previous)?);
    let paths: BTreeSet<&String> = now.keys().chain(then.keys()).collect();
    let differing = paths
        .into_iter()
        .filter(|path| now.get(*path) != then.get(*path));
    let finding = |path| {
        format!(
            "{path}: differs from {}, which has the version {version} too; raise the version in \
             Cargo.toml, or pass --replace if nobody has the old one",
            previous.display()
        )
    };
    Ok(differing.map(finding).collect())
}

/// The versions in a package's manifests: one, where it is as it should be.
fn versions(folder: &Path) -> Result<BTreeSet<String>> {
    let tree = Tree::read(folder)?;
    let manifests = tree
        .files()
        .filter(|file| MANIFESTS.iter().any(|name| file.path.ends_with(name)));
    Ok(manifests
        .filter_map(|file| {
            json(&folder.join(&file.path))?["version"]
                .as_str()
                .map(str::to_owned)
        })
        .collect())
}

/// The checksum of every file, and whether it may be run.
fn content(folder: &Path) -> Result<BTreeMap<String, (String, bool)>> {
    let sums = archive::sums(folder)?;
    let sums: BTreeMap<&str, &str> = paths_and_sums(&sums).collect();
    let tree = Tree::read(folder)?;
    Ok(tree
        .files()
        .filter_map(|file| {
            let sum = (*sums.get(file.path.as_str())?).to_owned();
            Some((file.path.clone(), (sum, file.is_executable)))
        })
        .collect())
}

fn paths_and_sums(sums: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = sums.lines().filter_map(|line| line.split_once("  "));
    lines.map(|(sum, path)| (path, sum))
}

fn json(path: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}
