//! `cargo xtask template`: generates plugins from `template/` in many combinations of its choices,
//! and holds each to what its own continuous integration would demand.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use cargo_metadata::MetadataCommand;

use crate::package;
use crate::shell::{Result, cargo, read, root, run as run_command};

/// The newest that builds with our toolchain.
const GENERATOR: &str = "0.23.12";
const HELP: &str = "usage: cargo xtask template [--keep DIR] [NAME...]";

/// One combination: name, hosts, events, licence.
struct Choice {
    name: &'static str,
    hosts: &'static str,
    events: &'static str,
    license: &'static str,
}

const fn choice(
    name: &'static str,
    hosts: &'static str,
    events: &'static str,
    license: &'static str,
) -> Choice {
    Choice {
        name,
        hosts,
        events,
        license,
    }
}

/// Each host alone, each event alone, each licence, and everything at once.
const CHOICES: [Choice; 7] = [
    choice("tool-reminder", "claude", "tool", "MIT"),
    choice("release-reminder", "codex", "prompt", "Apache-2.0"),
    choice("start-note", "gemini", "start", "MIT OR Apache-2.0"),
    choice("path-keeper", "claude", "compact", "MIT"),
    choice("two-hosts", "claude,codex", "tool,start", "MIT"),
    choice("others", "codex,gemini", "prompt,compact", "Apache-2.0"),
    choice(
        "everything",
        "claude,codex,gemini",
        "tool,prompt,start,compact",
        "MIT OR Apache-2.0",
    ),
];

/// Choices of which nothing comes but a message with these words.
const REFUSED: [(Choice, &str); 10] = [
    (choice("no-host", "", "tool", "MIT"), "choose a host"),
    (choice("no-event", "claude", "", "MIT"), "choose an event"),
    (choice("async", "claude", "tool", "MIT"), "a word of Rust"),
    (choice("gen", "claude", "tool", "MIT"), "a word of Rust"),
    (choice("xtask", "claude", "tool", "MIT"), "something else"),
    (choice("test", "claude", "tool", "MIT"), "something else"),
    (choice("aux", "claude", "tool", "MIT"), "a device"),
    (
        choice("3-hooks", "claude", "tool", "MIT"),
        "start with a letter",
    ),
    (
        choice("hooks_2", "claude", "tool", "MIT"),
        "lower-case letters",
    ),
    (
        choice("claude-x", "claude", "tool", "MIT"),
        "start with claude-",
    ),
];

/// Generates and checks; `--keep DIR` leaves the generated projects there.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut keep = None;
    let mut wanted = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--keep" => keep = Some(PathBuf::from(rest.next().ok_or(HELP)?)),
            name if CHOICES.iter().any(|choice| choice.name == name) => wanted.push(name),
            _ => return Err(HELP.into()),
        }
    }
    let target = target_folder()?;
    let generator = generator(&target)?;
    let temporary = tempfile::Builder::new()
        .prefix("generated plugins ")
        .tempdir()
        .map_err(|error| format!("failed to make a temporary folder: {error}"))?;
    let folder = keep.as_deref().unwrap_or(temporary.path());
    fs::create_dir_all(folder)
        .map_err(|error| format!("failed to make {}: {error}", folder.display()))?;
    let shared = target.join("template");
    for (choice, why) in &REFUSED {
        refused(&generator, choice, why)?;
    }
    for choice in &CHOICES {
        if !wanted.is_empty() && !wanted.contains(&choice.name) {
            continue;
        }
        let start = Instant::now();
        generate(&generator, choice, folder)
            .and_then(|project| prove(choice, &project, &shared))
            .map_err(|error| format!("{}: {error}", choice.name))?;
        println!(
            "{}: fine ({:.1} s)",
            choice.name,
            start.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

fn target_folder() -> Result<PathBuf> {
    let metadata = MetadataCommand::new()
        .current_dir(root())
        .no_deps()
        .exec()
        .map_err(|error| format!("failed to read the workspace: {error}"))?;
    Ok(metadata.target_directory.into_std_path_buf())
}

/// The pinned generator, installed below the target folder once.
fn generator(target: &Path) -> Result<PathBuf> {
    let tools = target.join("tools");
    let program = tools
        .join("bin")
        .join(format!("cargo-generate{}", std::env::consts::EXE_SUFFIX));
    let is_there = Command::new(&program)
        .args(["generate", "--version"])
        .output()
        .is_ok_and(|answer| String::from_utf8_lossy(&answer.stdout).contains(GENERATOR));
    if !is_there {
        println!("installing cargo-generate {GENERATOR}");
        let mut install = cargo(&["install", "cargo-generate", "--locked", "--quiet"]);
        install.args(["--version", GENERATOR, "--root"]).arg(&tools);
        // Its dependencies are compiled once and thrown away: optimizing them costs more than it saves.
        run_command(install.arg("--debug"))?;
    }
    Ok(program)
}

fn generate(generator: &Path, choice: &Choice, folder: &Path) -> Result<PathBuf> {
    let project = folder.join(choice.name);
    if project.exists() {
        fs::remove_dir_all(&project)
            .map_err(|error| format!("failed to empty {}: {error}", project.display()))?;
    }
    run_command(&mut generation(generator, choice, folder))?;
    Ok(project)
}

/// The command that generates a project below `folder`.
fn generation(generator: &Path, choice: &Choice, folder: &Path) -> Command {
    let hook = root().join("crates/hook");
    let mut command = Command::new(generator);
    command
        // It wants to know who its user is, whatever author is defined; containers have none.
        .env("USER", "dev")
        .args(["generate", "--silent", "--vcs", "none"])
        .args(["--name", choice.name, "--path"])
        .arg(root().join("template"))
        .arg("--destination")
        .arg(folder);
    for (key, value) in [
        ("description", "Reminds the agent of what it forgets"),
        ("author", "Dev O'Test"),
        ("hosts", choice.hosts),
        ("events", choice.events),
        ("license", choice.license),
        (
            "hook_dependency",
            &format!("{{ path = '{}' }}", hook.display()),
        ),
    ] {
        command.arg("--define").arg(format!("{key}={value}"));
    }
    command
}

/// Nothing is generated, and a message says why.
fn refused(generator: &Path, choice: &Choice, why: &str) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut command = generation(generator, choice, folder.path());
    let said = match read(command.env("RUST_BACKTRACE", "0")) {
        Ok(_) => return Err(format!("{} is generated, where {why:?} was due", choice.name).into()),
        Err(error) => error.to_string(),
    };
    let made = files(folder.path())?;
    if said.contains(why) && made.is_empty() {
        return Ok(());
    }
    let name = choice.name;
    Err(format!("{name} is refused without {why:?}, and {made:?} is left: {said}").into())
}

/// What the project's own checks demand, and ours on its package.
fn prove(choice: &Choice, project: &Path, target: &Path) -> Result<()> {
    no_leftovers(project)?;
    only_what_was_chosen(choice, project)?;
    for arguments in [
        // Not all packages: that would take in what it depends on by a path.
        &[
            "fmt",
            "--check",
            "--package",
            choice.name,
            "--package",
            "xtask",
        ][..],
        &[
            "clippy",
            "--quiet",
            "--workspace",
            "--all-targets",
            "--",
            "-Dwarnings",
        ],
        &["test", "--quiet", "--workspace"],
        &["xtask", "package", "--dev"],
    ] {
        run_command(&mut cargo_in(project, target, arguments))?;
    }
    package_touches_nothing_else(project, target)?;
    let dist = project.join("dist");
    let hosts: Vec<&str> = choice.hosts.split(',').collect();
    if hosts.contains(&"claude") || hosts.contains(&"codex") {
        package::refuse_mistakes(&dist)?;
    }
    if hosts.contains(&"gemini") {
        package::refuse_mistakes(&dist.join("gemini").join(choice.name))?;
    }
    Ok(())
}

fn cargo_in(project: &Path, target: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command
        .args(arguments)
        .current_dir(project)
        .env("CARGO_TARGET_DIR", target);
    command
}

/// An output that is no package is refused and left alone; an earlier package is replaced.
fn package_touches_nothing_else(project: &Path, target: &Path) -> Result<()> {
    let package = ["xtask", "package", "--dev"];
    run_command(&mut cargo_in(project, target, &package))?;
    let home = project.join("home");
    for folder in ["plugins", "gemini", ".claude-plugin"] {
        fs::create_dir_all(home.join(folder))?;
        fs::write(home.join(folder).join("mine"), "work")?;
    }
    let before = files(project)?;
    for out in [".", "..", "home", "src", "plugin/new", "gemini/new"] {
        let there = project.join(out).parent().is_some_and(Path::exists);
        let mut command = cargo_in(project, target, &[&package[..], &["--out", out]].concat());
        if there && read(&mut command).is_ok() {
            return Err(format!("`package --out {out}` is not refused").into());
        }
        if files(project)? != before {
            return Err(format!("`package --out {out}` changes files").into());
        }
    }
    fs::remove_dir_all(home)?;
    Ok(())
}

/// A placeholder that the template left unfilled. Workflows have braces of their own.
fn no_leftovers(folder: &Path) -> Result<()> {
    for path in files(folder)? {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let own = text.replace("${{", "");
        for mark in ["{{", "{%", "cargo-generate", ".rhai"] {
            if own.contains(mark) {
                return Err(format!("{} holds {mark}", path.display()).into());
            }
        }
    }
    Ok(())
}

fn only_what_was_chosen(choice: &Choice, project: &Path) -> Result<()> {
    let inputs = files(&project.join("tests/inputs"))?;
    let expected = choice.hosts.split(',').count() * choice.events.split(',').count();
    if inputs.len() != expected {
        return Err(format!("{} inputs, not {expected}", inputs.len()).into());
    }
    for (host, path) in [
        ("claude", "plugin/.claude-plugin/plugin.json"),
        ("claude", "plugin/hooks/hooks.json"),
        ("codex", "plugin/.codex-plugin/plugin.json"),
        ("codex", "plugin/hooks/codex.json"),
        ("gemini", "gemini/gemini-extension.json"),
    ] {
        if project.join(path).exists() != choice.hosts.split(',').any(|chosen| chosen == host) {
            return Err(format!("{path} does not fit the hosts {}", choice.hosts).into());
        }
    }
    for (word, path) in [("MIT", "LICENSE-MIT"), ("Apache", "LICENSE-APACHE")] {
        if project.join(path).exists() != choice.license.contains(word) {
            return Err(format!("{path} does not fit the licence {}", choice.license).into());
        }
    }
    Ok(())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let entries = fs::read_dir(&folder)
            .and_then(Iterator::collect::<std::io::Result<Vec<_>>>)
            .map_err(|error| format!("failed to read {}: {error}", folder.display()))?;
        for entry in entries {
            if entry.path().is_dir() {
                open.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a user gets who answers nothing must be there to be had.
    #[test]
    fn the_default_dependency_is_this_repository() {
        let questions = fs::read_to_string(root().join("template/cargo-generate.toml")).unwrap();
        let metadata = MetadataCommand::new().current_dir(root()).no_deps().exec();
        let packages = metadata.unwrap().packages;
        let hook = packages.iter().find(|p| p.name.as_str() == "ctxfold-hook");
        let repository = hook.and_then(|p| p.repository.clone()).unwrap();
        let default = format!("default = \"{{ git = '{repository}' }}\"");
        assert!(questions.contains(&default), "{default}\n{questions}");
    }

    #[test]
    fn every_host_event_and_licence_is_chosen_alone_somewhere() {
        for host in ["claude", "codex", "gemini"] {
            assert!(CHOICES.iter().any(|choice| choice.hosts == host), "{host}");
        }
        for event in ["tool", "prompt", "start", "compact"] {
            assert!(
                CHOICES.iter().any(|choice| choice.events == event),
                "{event}"
            );
        }
        for license in ["MIT", "Apache-2.0", "MIT OR Apache-2.0"] {
            assert!(
                CHOICES.iter().any(|choice| choice.license == license),
                "{license}"
            );
        }
    }

    #[test]
    fn leftovers_are_found_and_workflows_are_none() {
        let folder = tempfile::TempDir::new().unwrap();
        fs::write(folder.path().join("ci.yml"), "runs-on: ${{ matrix.os }}").unwrap();
        no_leftovers(folder.path()).unwrap();
        fs::write(folder.path().join("a.rs"), "//! {{name}}").unwrap();
        assert!(no_leftovers(folder.path()).is_err());
    }
}
