//! The files of a folder, sorted, with what a package needs to know of them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::Result;

/// A file or a link. `/` separates the parts of its path on every system.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::package) struct Entry {
    pub(in crate::package) path: String,
    pub(in crate::package) is_executable: bool,
    /// Where a link leads.
    pub(in crate::package) link: Option<PathBuf>,
}

/// A folder's files.
#[derive(Debug)]
pub(in crate::package) struct Tree {
    root: PathBuf,
    entries: Vec<Entry>,
}

impl Tree {
    /// Lists a folder; a folder that is not there has no files.
    pub(in crate::package) fn read(root: &Path) -> Result<Self> {
        let mut entries = Vec::new();
        if root.is_dir() {
            walk(root, "", &mut entries)?;
        }
        entries.sort();
        Ok(Self {
            root: root.to_owned(),
            entries,
        })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(in crate::package) fn files(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    pub(super) fn find(&self, path: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.path == path)
    }

    /// Whether files lie below a folder; the root is called by the empty path.
    pub(super) fn has_folder(&self, path: &str) -> bool {
        let below = |entry: &Entry| {
            let rest = entry.path.strip_prefix(path);
            path.is_empty() || rest.is_some_and(|rest| rest.starts_with('/'))
        };
        self.entries.iter().any(below)
    }

    /// The names of the folders right below the root that hold files.
    pub(in crate::package) fn top_folders(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .entries
            .iter()
            .filter_map(|entry| entry.path.split_once('/'))
            .map(|(name, _)| name.to_owned())
            .collect();
        names.dedup();
        names
    }
}

fn walk(folder: &Path, prefix: &str, entries: &mut Vec<Entry>) -> Result<()> {
    let failed = |error| format!("failed to read {}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            walk(&entry.path(), &format!("{path}/"), entries)?;
            continue;
        }
        let link = kind.is_symlink().then(|| fs::read_link(entry.path()));
        entries.push(Entry {
            path,
            is_executable: is_executable(&entry.path()),
            link: link.transpose().map_err(failed)?,
        });
    }
    Ok(())
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).is_ok_and(|about| about.permissions().mode() & 0o111 == 0o111)
}

#[cfg(not(unix))]
fn is_executable(_: &Path) -> bool {
    true
}
