//! `cargo xtask clients`: installs the pinned real clients under `target/clients`.
//!
//! Each folder of `xtask/clients` pins one client by a `package.json` and its lock file. The lock
//! files carry hashes but no addresses, so that any npm registry serves. A client whose lock file
//! is the installed one and whose program answers is left alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::shell::{Result, read, root, run as run_command};

/// Installs the clients named by `arguments` (`claude-2.1.332`, or `claude` for all of them).
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let pins = pinned()?;
    let wanted = |name: &str| {
        let asked = |a: &String| name == a || name.split('-').next() == Some(a.as_str());
        arguments.is_empty() || arguments.iter().any(asked)
    };
    let chosen: Vec<&PathBuf> = pins
        .iter()
        .filter(|pin| wanted(&folder_name(pin)))
        .collect();
    if chosen.is_empty() {
        let names: Vec<String> = pins.iter().map(|pin| folder_name(pin)).collect();
        return Err(format!("no such client; there are: {}", names.join(", ")).into());
    }
    for pin in chosen {
        let start = Instant::now();
        let name = folder_name(pin);
        let state = install(pin, &installed_folder(&name))?;
        println!("{name}: {state} ({:.1} s)", start.elapsed().as_secs_f64());
    }
    Ok(())
}

/// The folders of `xtask/clients`, sorted by name.
fn pinned() -> Result<Vec<PathBuf>> {
    let folder = root().join("xtask/clients");
    let entries = fs::read_dir(&folder)
        .and_then(Iterator::collect::<std::io::Result<Vec<_>>>)
        .map_err(|error| format!("failed to read {}: {error}", folder.display()))?;
    let mut pins: Vec<PathBuf> = entries
        .iter()
        .map(fs::DirEntry::path)
        .filter(|path| path.is_dir())
        .collect();
    pins.sort();
    Ok(pins)
}

fn folder_name(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

fn installed_folder(name: &str) -> PathBuf {
    root().join("target/clients").join(name)
}

/// Installs one client where it isn't yet, and says what was done.
fn install(pin: &Path, target: &Path) -> Result<&'static str> {
    let name = folder_name(pin);
    let (kind, version) = name
        .split_once('-')
        .ok_or_else(|| format!("{name} is not NAME-VERSION"))?;
    let program = target.join("node_modules/.bin").join(kind);
    let lock = read_file(&pin.join("package-lock.json"))?;
    let stamp = target.join("installed-lock.json");
    let is_current = fs::read_to_string(&stamp).is_ok_and(|installed| installed == lock);
    if is_current && answers(&program, version).is_ok() {
        return Ok("already there");
    }
    find_npm()?;
    if target.exists() {
        fs::remove_dir_all(target)
            .map_err(|error| format!("failed to empty {}: {error}", target.display()))?;
    }
    fs::create_dir_all(target)
        .map_err(|error| format!("failed to make {}: {error}", target.display()))?;
    for file in ["package.json", "package-lock.json"] {
        write_file(&target.join(file), &read_file(&pin.join(file))?)?;
    }
    // `npm ci` refuses a lock whose optional packages for other systems are gone from the
    // registry, as is the case for one of ours; `npm install` takes what the lock pins, by hash.
    // `--force`: the newest Claude Code asks for a newer Node than it needs.
    let mut npm = Command::new("npm");
    npm.args([
        "install",
        "--no-save",
        "--force",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ]);
    run_command(npm.current_dir(target))
        .map_err(|error| format!("failed to install {name}: {error}"))?;
    answers(&program, version)?;
    write_file(&stamp, &lock)?;
    Ok("installed")
}

/// Asks a client for its version and checks the answer.
fn answers(program: &Path, version: &str) -> Result<()> {
    let answer = read(Command::new(program).arg("--version"))?;
    let found = answer.split_whitespace().any(|word| word == version);
    if found {
        return Ok(());
    }
    Err(format!(
        "{} answers {:?}, not {version}",
        program.display(),
        answer.trim()
    )
    .into())
}

fn find_npm() -> Result<()> {
    match Command::new("npm").arg("--version").output() {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err(
            "npm was not found: install Node.js 20 or newer, then run this again; or test \
                  without the real clients: cargo xtask test --no-clients"
                .into(),
        ),
    }
}

fn read_file(path: &Path) -> Result<String> {
    fs::read_to_string(path)
        .map_err(|error| format!("failed to read {}: {error}", path.display()).into())
}

fn write_file(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text)
        .map_err(|error| format!("failed to write {}: {error}", path.display()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pin_names_its_version_once_and_no_address() {
        let pins = pinned().unwrap();
        assert!(pins.len() >= 6, "{pins:?}");
        for pin in pins {
            let name = folder_name(&pin);
            let version = name.split_once('-').unwrap().1;
            let manifest = read_file(&pin.join("package.json")).unwrap();
            assert!(
                manifest.contains(&format!("\": \"{version}\"")),
                "{name}: {manifest}"
            );
            let lock = read_file(&pin.join("package-lock.json")).unwrap();
            assert!(lock.contains("\"integrity\": \"sha512-"), "{name}");
            assert!(
                !lock.contains("\"resolved\"") && !lock.contains("http"),
                "{name}"
            );
        }
    }

    #[test]
    fn a_program_that_answers_another_version_is_refused() {
        let error = answers(Path::new("/bin/echo"), "2.1.332")
            .unwrap_err()
            .to_string();
        assert!(error.contains("not 2.1.332"), "{error}");
        assert!(answers(Path::new("/nowhere/claude"), "1").is_err());
    }
}
