//! Where sessions are: the client's config folder, which the caller passes in.
//!
//! This is the crate's only module that walks folders. Folder names are in `folder.rs`, listings
//! in `list.rs`, live processes in `live.rs`.

mod folder;
mod list;
mod live;

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub use folder::project_folder;
pub use list::{Filter, Listed};
pub use live::{LiveSession, Presence, Processes, SystemProcesses};

use crate::{Error, ErrorKind};

/// The sessions under one config folder, for example `~/.claude`.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
}

/// One session file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The session's identifier, from the file name.
    pub id: String,
    /// The file.
    pub path: PathBuf,
    /// Name of the project's folder.
    pub project: String,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last change.
    pub modified: Option<SystemTime>,
}

/// The file of a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentFile {
    /// The sub-agent's identifier.
    pub id: String,
    /// The file.
    pub path: PathBuf,
    /// Size in bytes.
    pub size: u64,
    /// Its kind, from the file beside it.
    pub kind: Option<String>,
    /// What it was asked to do, from the file beside it.
    pub description: Option<String>,
    /// The tool call that started it, from the file beside it.
    pub call: Option<String>,
}

impl Store {
    /// The store under a config folder, which need not exist.
    pub fn new(root: impl Into<PathBuf>) -> Store {
        Store { root: root.into() }
    }

    /// The config folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder that holds the projects' folders.
    pub fn projects(&self) -> PathBuf {
        self.root.join("projects")
    }

    /// All session files of all projects, in no particular order. Links are not followed, so that
    /// nothing outside the store is taken for a session.
    ///
    /// # Errors
    /// When a folder is there and cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        for name in self.project_names()? {
            self.entries_of(&name, &mut entries)?;
        }
        Ok(entries)
    }

    /// The session files of a working directory, of all folders that belong to it.
    ///
    /// # Errors
    /// When a folder is there and cannot be read.
    pub fn entries_in(&self, cwd: &Path) -> Result<Vec<Entry>, Error> {
        let real = fs::canonicalize(cwd).unwrap_or_else(|_| cwd.to_owned());
        let names = self.project_names()?;
        let wanted = [project_folder(&real), project_folder(cwd)];
        let mut entries = Vec::new();
        for name in &names {
            if wanted.iter().any(|w| folder::same(name, w, &real)) {
                self.entries_of(name, &mut entries)?;
            }
        }
        if !entries.is_empty() {
            return Ok(entries);
        }
        // The name may be made in another way by another client: ask the files themselves.
        for name in &names {
            let mut found = Vec::new();
            self.entries_of(name, &mut found)?;
            let newest = found.iter().max_by_key(|e| e.modified);
            let dir = newest.and_then(|e| list::first_cwd(&e.path));
            if dir.is_some_and(|d| Path::new(&d) == real || Path::new(&d) == cwd) {
                entries.extend(found);
            }
        }
        Ok(entries)
    }

    /// Finds a session by path, identifier, beginning of an identifier, or `agent-` and a
    /// sub-agent's identifier. `cwd` decides between equal identifiers in several projects.
    ///
    /// # Errors
    /// When nothing matches, or several sessions do; the message then lists them.
    pub fn find(&self, what: &str, cwd: Option<&Path>) -> Result<PathBuf, Error> {
        let looks_like_path = what.contains(['/', '\\']) || Path::new(what).extension().is_some();
        if looks_like_path {
            let path = cwd.map_or_else(|| PathBuf::from(what), |d| d.join(what));
            return match fs::metadata(&path) {
                Ok(meta) if meta.is_file() => Ok(path),
                Ok(_) => Err(Error::new(ErrorKind::NotASession, "not a session file").at(&path)),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    Err(Error::new(ErrorKind::NotFound, "no such session file").at(&path))
                }
                Err(e) => Err(Error::io(&path, "cannot read the session file", e)),
            };
        }
        let is_id = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if what.is_empty() || !what.chars().all(is_id) {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("not a session identifier: {what:?}"),
            ));
        }
        let entries = self.entries()?;
        let mut found: Vec<Entry> = if what.starts_with("agent-") {
            self.agent_entries(&entries, what)?
        } else {
            let starts = |e: &&Entry| starts_with_ignoring_case(&e.id, what);
            entries.iter().filter(starts).cloned().collect()
        };
        if found.iter().any(|e| e.id == what) {
            found.retain(|e| e.id == what);
        }
        if let Some(here) = cwd
            && found.len() > 1
            && found.iter().all(|e| e.id == found[0].id)
        {
            let mut ours = self.entries_in(here)?;
            ours.retain(|e| e.id == found[0].id);
            if ours.len() == 1 {
                found = ours;
            }
        }
        match found.as_slice() {
            [] => Err(Error::new(
                ErrorKind::NotFound,
                format!("no session begins with {what:?}"),
            )
            .at(&self.projects())),
            [one] => Ok(one.path.clone()),
            many => Err(ambiguous(what, many)),
        }
    }

    /// The session that changed last, in a working directory or anywhere.
    ///
    /// # Errors
    /// When there is none.
    pub fn newest(&self, cwd: Option<&Path>) -> Result<PathBuf, Error> {
        let entries = match cwd {
            Some(dir) => self.entries_in(dir)?,
            None => self.entries()?,
        };
        let newest = entries
            .into_iter()
            .filter(|e| e.size > 0)
            .max_by(|a, b| (a.modified, &a.id).cmp(&(b.modified, &b.id)));
        newest.map(|e| e.path).ok_or_else(|| match cwd {
            Some(dir) => Error::new(ErrorKind::NotFound, "no session in this folder").at(dir),
            None => Error::new(ErrorKind::NotFound, "no session").at(&self.projects()),
        })
    }

    /// The files of a session's sub-agents, by name.
    ///
    /// # Errors
    /// When the folder is there and cannot be read.
    pub fn agents(&self, session: &Path) -> Result<Vec<AgentFile>, Error> {
        let dir = session.with_extension("").join("subagents");
        let mut agents = Vec::new();
        for (name, path, meta) in files(&dir)? {
            let id = name
                .strip_prefix("agent-")
                .and_then(|n| n.strip_suffix(".jsonl"));
            if let Some(id) = id {
                agents.push(list::agent_file(id, path, meta.len()));
            }
        }
        agents.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(agents)
    }

    fn agent_entries(&self, entries: &[Entry], what: &str) -> Result<Vec<Entry>, Error> {
        let mut found = Vec::new();
        for entry in entries {
            for agent in self.agents(&entry.path)? {
                let id = format!("agent-{}", agent.id);
                if starts_with_ignoring_case(&id, what) {
                    found.push(Entry {
                        id,
                        path: agent.path,
                        size: agent.size,
                        ..entry.clone()
                    });
                }
            }
        }
        Ok(found)
    }

    fn project_names(&self) -> Result<Vec<String>, Error> {
        let dir = self.projects();
        let io = |e| Error::io(&dir, "cannot read the projects folder", e);
        let mut names = Vec::new();
        for entry in read_dir(&dir).map_err(io)? {
            let entry = entry.map_err(io)?;
            // The type of the entry itself: a link is none.
            if entry.file_type().map_err(io)?.is_dir()
                && let Ok(name) = entry.file_name().into_string()
            {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn entries_of(&self, project: &str, out: &mut Vec<Entry>) -> Result<(), Error> {
        for (name, path, meta) in files(&self.projects().join(project))? {
            let id = match name.strip_suffix(".jsonl") {
                // Older clients kept sub-agents beside the sessions.
                Some(id) if !id.starts_with("agent-") => id.to_owned(),
                _ => continue,
            };
            out.push(Entry {
                id,
                path,
                project: project.to_owned(),
                size: meta.len(),
                modified: meta.modified().ok(),
            });
        }
        Ok(())
    }
}

/// The regular files of a folder; none when it is not there.
fn files(dir: &Path) -> Result<Vec<(String, PathBuf, fs::Metadata)>, Error> {
    let io = |e| Error::io(dir, "cannot read the folder", e);
    let mut out = Vec::new();
    for entry in read_dir(dir).map_err(io)? {
        let entry = entry.map_err(io)?;
        if !entry.file_type().map_err(io)?.is_file() {
            continue;
        }
        // A file that went away meanwhile is none.
        if let (Ok(name), Ok(meta)) = (entry.file_name().into_string(), entry.metadata()) {
            out.push((name, entry.path(), meta));
        }
    }
    Ok(out)
}

fn read_dir(dir: &Path) -> io::Result<impl Iterator<Item = io::Result<fs::DirEntry>>> {
    match fs::read_dir(dir) {
        Ok(entries) => Ok(Some(entries).into_iter().flatten()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None.into_iter().flatten()),
        Err(e) => Err(e),
    }
}

fn starts_with_ignoring_case(id: &str, prefix: &str) -> bool {
    id.get(..prefix.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(prefix))
}

fn ambiguous(what: &str, many: &[Entry]) -> Error {
    const SHOWN: usize = 10;
    let mut message = format!("{} sessions begin with {what:?}:", many.len());
    for entry in many.iter().take(SHOWN) {
        let _ = write!(message, "\n  {}  ({})", entry.id, entry.project);
    }
    if many.len() > SHOWN {
        let _ = write!(message, "\n  and {} more", many.len() - SHOWN);
    }
    Error::new(ErrorKind::Ambiguous, message)
}
