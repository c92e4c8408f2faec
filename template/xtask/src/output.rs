//! The folder for the package: only what an earlier run made is ever removed from it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use crate::Result;

/// Lists the files of a package. What stands beside them is somebody else's.
const LIST: &str = ".packaged";

/// Finds the folder for the package and refuses it where a package must not go. Changes nothing.
pub fn check(root: &Path, sources: &[&str], out: &Path) -> Result<PathBuf> {
    let out = real(out)?;
    let shown = out.display();
    if root.canonicalize()?.starts_with(&out) {
        return Err(format!("{shown} holds the project; name another folder").into());
    }
    for source in sources {
        // The project need not have all of them.
        let Ok(source) = root.join(source).canonicalize() else {
            continue;
        };
        if source.starts_with(&out) || out.starts_with(&source) {
            let source = source.display();
            return Err(format!("{shown} overlaps {source}; name another folder").into());
        }
    }
    let there = files(&out, "")?;
    if there.is_empty() {
        return Ok(out);
    }
    let Ok(listed) = fs::read_to_string(out.join(LIST)) else {
        let what = "holds something that is no package of ours; name an empty folder";
        return Err(format!("{shown} {what}").into());
    };
    for file in there.iter().filter(|file| *file != LIST) {
        if !listed.lines().any(|line| line == file) {
            let file = out.join(file);
            let what = "is not from an earlier run; move it away";
            return Err(format!("{} {what}", file.display()).into());
        }
    }
    Ok(out)
}

/// Fills a new folder beside `out`, and puts it into its place once it is complete.
pub fn replace(out: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let parent = out.parent().ok_or("no folder to put the package into")?;
    fs::create_dir_all(parent)?;
    let stage = parent.join(format!(".package-{}", std::process::id()));
    fs::create_dir(&stage).map_err(|error| format!("{}: {error}", stage.display()))?;
    let filled = fill(&stage).and_then(|()| {
        fs::write(stage.join(LIST), files(&stage, "")?.join("\n") + "\n")?;
        if out.exists() {
            fs::remove_dir_all(out)?;
        }
        Ok(fs::rename(&stage, out)?)
    });
    if filled.is_err() {
        let _ = fs::remove_dir_all(&stage);
    }
    filled
}

/// The path without links and dots, as far as it is there.
fn real(path: &Path) -> Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let found = path.ancestors().find_map(|known| {
        let rest = path.strip_prefix(known).ok()?;
        let plain = rest.components().all(|c| matches!(c, Component::Normal(_)));
        let known = known.canonicalize().ok()?;
        plain.then(|| known.components().chain(rest.components()).collect())
    });
    found.ok_or_else(|| format!("{} is no folder", path.display()).into())
}

/// The files below a folder, with `/` in their paths; a link is a file. None where it is missing.
fn files(folder: &Path, prefix: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(found),
        entries => entries.map_err(|error| format!("{}: {error}", folder.display()))?,
    };
    for entry in entries {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            found.extend(files(&entry.path(), &format!("{path}/"))?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A project with one source, in a folder of its own that goes away with it.
    struct Project(PathBuf);

    impl Project {
        fn new(test: &str) -> Self {
            let name = format!("package {test} {}", std::process::id());
            let project = Self(std::env::temp_dir().join(name));
            project.write("project/plugin/hooks.json");
            project
        }

        fn write(&self, path: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "work").unwrap();
        }

        /// Everything that there is.
        fn all(&self) -> Vec<String> {
            files(&self.0, "").unwrap()
        }

        fn package(&self, out: &str) -> Result<()> {
            let out = check(&self.0.join("project"), &["plugin"], &self.0.join(out))?;
            replace(&out, |stage| {
                fs::create_dir(stage.join("plugins"))?;
                Ok(fs::write(stage.join("plugins/new"), "new")?)
            })
        }

        fn refused(&self, out: &str, why: &str) {
            let before = self.all();
            let error = self.package(out).unwrap_err().to_string();
            assert!(error.contains(why), "{out}: {error}");
            assert_eq!(self.all(), before, "{out}");
        }
    }

    impl Drop for Project {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn an_earlier_package_is_replaced_and_an_empty_folder_filled() {
        let project = Project::new("replaced");
        project.package("project/dist").unwrap();
        let made = project.all();
        assert!(made.contains(&"project/dist/plugins/new".to_owned()));
        project.package("project/dist").unwrap();
        assert_eq!(project.all(), made);
        fs::create_dir(project.0.join("empty")).unwrap();
        project.package("empty").unwrap();
        assert!(project.0.join("empty/plugins/new").exists());
    }

    #[test]
    fn nobody_elses_files_are_touched() {
        let project = Project::new("others");
        project.write("home/plugins/mine");
        project.refused("home", "no package of ours");
        project.package("dist").unwrap();
        project.write("dist/plugins/thesis.tex");
        project.refused("dist", "thesis.tex is not from an earlier run");
    }

    #[test]
    fn the_project_and_its_sources_are_no_output() {
        let project = Project::new("sources");
        project.refused("project", "holds the project");
        project.refused("", "holds the project");
        project.refused("project/dist/..", "is no folder");
        project.refused("project/plugin", "overlaps");
        project.refused("project/plugin/new/dist", "overlaps");
        fs::rename(project.0.join("project"), project.0.join("renamed")).unwrap();
        fs::create_dir(project.0.join("project")).unwrap();
        let linked = project.0.join("project/plugin");
        #[cfg(unix)]
        std::os::unix::fs::symlink(project.0.join("renamed/plugin"), linked).unwrap();
        #[cfg(unix)]
        project.refused("renamed", "overlaps");
    }

    #[test]
    fn a_failure_leaves_the_earlier_package() {
        let project = Project::new("failure");
        project.package("dist").unwrap();
        let before = project.all();
        let out = project.0.join("dist");
        assert!(replace(&out, |_| Err("no binary".into())).is_err());
        assert_eq!(project.all(), before);
    }
}
