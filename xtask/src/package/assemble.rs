//! Copies the sources into a marketplace: versions filled in, the binary and licences put beside.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::check::MANIFESTS;
use crate::shell::{Result, root};

/// Where the sources that are no marketplace plugins go.
const EXTRAS: [(&str, &str); 2] = [
    ("gemini-extension", "gemini/ctxfold"),
    ("antigravity-hooks", "antigravity/ctxfold"),
];
/// What an editor or a client lays into a source folder. It is no part of a package.
const LEFT_OUT: [&str; 5] = [
    ".claude-plugin/types",
    "tsconfig.json",
    ".gitignore",
    "node_modules",
    "bin",
];
/// A part whose files name this gets the launcher and the binaries.
const PROGRAM: &str = "bin/ctxfold";
/// A part that gets them too: its host knows no way to name a file beside the hooks.
const FROM_PATH: &str = "antigravity-hooks";

/// Makes `stage` a marketplace of the sources.
pub(super) fn assemble(
    sources: &Path,
    stage: &Path,
    version: &str,
    binaries: &[(String, PathBuf)],
) -> Result<()> {
    let marketplace = sources.join("marketplace.json");
    let listed: Value = parse(&marketplace)?;
    write(
        &stage.join(".claude-plugin/marketplace.json"),
        &read(&marketplace)?,
    )?;
    write(&stage.join("README.md"), &read(&sources.join("README.md"))?)?;
    let names = listed["plugins"].as_array().cloned().unwrap_or_default();
    let mut parts: Vec<(String, String)> = names
        .iter()
        .filter_map(|entry| entry["name"].as_str())
        .map(|name| (name.to_owned(), format!("plugins/{name}")))
        .collect();
    parts.extend(EXTRAS.map(|(from, to)| (from.to_owned(), to.to_owned())));
    for (from, to) in parts {
        let is_from_path = from == FROM_PATH;
        let (from, to) = (sources.join(from), stage.join(to));
        let needs_program = copy(&from, &from, &to, version)? || is_from_path;
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            write(&to.join(licence), &read(&root().join(licence))?)?;
        }
        if needs_program {
            put_program(&sources.join("launcher/ctxfold"), &to, binaries)?;
        }
    }
    Ok(())
}

/// Copies a folder; says whether one of its files names the program.
fn copy(base: &Path, from: &Path, to: &Path, version: &str) -> Result<bool> {
    let mut names_program = false;
    let mut entries: Vec<PathBuf> = fs::read_dir(from)
        .and_then(Iterator::collect::<std::io::Result<Vec<_>>>)
        .map_err(|error| format!("failed to read {}: {error}", from.display()))?
        .iter()
        .map(fs::DirEntry::path)
        .collect();
    entries.sort();
    for path in entries {
        let relative = path.strip_prefix(base).unwrap_or(&path);
        if LEFT_OUT
            .iter()
            .any(|left_out| relative == Path::new(left_out))
        {
            continue;
        }
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            names_program |= copy(base, &path, &target, version)?;
            continue;
        }
        let mut bytes = read(&path)?;
        if MANIFESTS
            .iter()
            .any(|manifest| relative == Path::new(manifest))
        {
            bytes = with_version(&path, version)?;
        }
        let is_read_by_people = relative
            .extension()
            .is_some_and(|extension| extension == "md");
        names_program |= !is_read_by_people
            && String::from_utf8_lossy(&bytes)
                .replace("${/}", "/")
                .contains(PROGRAM);
        write(&target, &bytes)?;
    }
    Ok(names_program)
}

/// A manifest with the workspace's version, for itself and for the parts it depends on.
fn with_version(path: &Path, version: &str) -> Result<Vec<u8>> {
    let mut manifest = parse(path)?;
    manifest["version"] = json!(version);
    if let Some(dependencies) = manifest["dependencies"].as_array_mut() {
        for dependency in dependencies {
            if dependency.get("version").is_some() {
                dependency["version"] = json!(format!("^{version}"));
            }
        }
    }
    // Indexing made a null where there was no list.
    if let Some(manifest) = manifest.as_object_mut() {
        manifest.retain(|_, value| !value.is_null());
    }
    let mut bytes = serde_json::to_vec_pretty(&manifest)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// The launcher, and one binary for each target.
fn put_program(launcher: &Path, part: &Path, binaries: &[(String, PathBuf)]) -> Result<()> {
    let bin = part.join("bin");
    write(&bin.join("ctxfold"), &read(launcher)?)?;
    make_executable(&bin.join("ctxfold"))?;
    for (triple, path) in binaries {
        let name = if triple.contains("windows") {
            "ctxfold.exe"
        } else {
            "ctxfold"
        };
        let target = bin.join(triple).join(name);
        write(&target, &read(path)?)?;
        make_executable(&target)?;
    }
    Ok(())
}

fn parse(path: &Path) -> Result<Value> {
    serde_json::from_slice(&read(path)?)
        .map_err(|error| format!("{} is not JSON: {error}", path.display()).into())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| format!("failed to read {}: {error}", path.display()).into())
}

/// Writes a file that everybody may read and nobody run.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, bytes))
        .map_err(|error| format!("failed to write {}: {error}", path.display()))?;
    set_mode(path, 0o644)
}

fn make_executable(path: &Path) -> Result<()> {
    set_mode(path, 0o755)
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(|error| format!("failed to set the mode of {}: {error}", path.display()).into())
}

#[cfg(not(unix))]
fn set_mode(_: &Path, _: u32) -> Result<()> {
    Ok(())
}
