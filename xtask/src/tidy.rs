//! `cargo xtask tidy`: the rules of this repository that no compiler checks.
//!
//! Each rule is a function from what it looks at to a list of findings, so that its tests can show
//! it broken files. [`run`] gathers the real ones: `cargo metadata` and the files that git tracks
//! or would track.

mod documents;
mod edges;
mod files;
mod packages;

use std::fs;
use std::path::Path;
use std::process::Command;

use cargo_metadata::{Metadata, MetadataCommand};

use crate::shell::{Result, read, root};

/// A text file of the repository.
struct File {
    /// Its path from the root, with slashes.
    path: String,
    /// Its content. Bytes that are no UTF-8 make a file of no interest to these rules.
    text: String,
}

impl File {
    fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path)
            .extension()
            .is_some_and(|found| found == extension)
    }
}

/// Checks every rule and prints each finding; an error where there was one.
pub(crate) fn run(_: &[String]) -> Result<()> {
    let metadata = metadata()?;
    let paths = tracked_paths()?;
    let files = read_files(&paths);
    let mut findings = edges::check(&metadata);
    findings.extend(packages::check(&metadata, &files));
    findings.extend(files::check(&files));
    findings.extend(files::check_sizes(&paths, |path| {
        fs::metadata(root().join(path)).map_or(0, |metadata| metadata.len())
    }));
    findings.extend(documents::check(&files, |path| root().join(path).exists()));
    for finding in &findings {
        eprintln!("tidy: {finding}");
    }
    if findings.is_empty() {
        println!("tidy: {} files are fine", files.len());
        return Ok(());
    }
    Err(format!("tidy: {} findings", findings.len()).into())
}

/// The names of the workspace's packages.
pub(crate) fn workspace_packages() -> Result<Vec<String>> {
    Ok(metadata()?
        .workspace_packages()
        .iter()
        .map(|package| package.name.to_string())
        .collect())
}

fn metadata() -> Result<Metadata> {
    MetadataCommand::new()
        .current_dir(root())
        .other_options(["--locked".to_owned()])
        .exec()
        .map_err(|error| format!("failed to read the workspace: {error}").into())
}

/// Files that git tracks, and those that it would track; not those that were just deleted.
fn tracked_paths() -> Result<Vec<String>> {
    let mut git = Command::new("git");
    git.args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    let list = read(git.current_dir(root()))?;
    let paths = list
        .split('\0')
        .filter(|path| !path.is_empty())
        .map(str::to_owned);
    Ok(paths.filter(|path| root().join(path).is_file()).collect())
}

fn read_files(paths: &[String]) -> Vec<File> {
    let read = |path: &String| {
        let text = fs::read_to_string(root().join(path)).ok()?;
        Some(File {
            path: path.clone(),
            text,
        })
    };
    paths.iter().filter_map(read).collect()
}

#[cfg(test)]
fn file(path: &str, text: &str) -> File {
    File {
        path: path.to_owned(),
        text: text.to_owned(),
    }
}
