//! `cargo xtask package`: the built program and the plugin's files as a marketplace in `dist/`.

mod output;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The plugin, its program and its folder are called the same.
const NAME: &str = "{{project-name}}";
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// What is packaged: a folder of the project, and the folder of the package that it goes into.
const SOURCES: [(&str, &str); 2] = [("plugin", "plugins"), ("gemini", "gemini")];
const HELP: &str = "usage: cargo xtask package [--dev] [--binary TRIPLE=PATH]... [--out DIR]";

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some("package") {
        return Err(HELP.into());
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or(HELP)?;
    let (mut out, mut dev, mut binaries) = (root.join("dist"), false, Vec::new());
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--dev" => dev = true,
            "--out" => out = arguments.next().ok_or(HELP)?.into(),
            "--binary" => {
                let value = arguments.next().ok_or(HELP)?;
                let (triple, path) = value.split_once('=').ok_or(HELP)?;
                binaries.push((triple.to_owned(), PathBuf::from(path)));
            }
            _ => return Err(HELP.into()),
        }
    }
    // Before anything is built.
    let out = output::check(root, &SOURCES.map(|(source, _)| source), &out)?;
    if binaries.is_empty() {
        binaries.push(build(root, dev)?);
    }
    output::replace(&out, |stage| package(root, stage, &binaries))?;
    println!("{}: {NAME} {VERSION}", out.display());
    Ok(())
}

/// Builds the program for this machine; its target and its path.
fn build(root: &Path, dev: bool) -> Result<(String, PathBuf)> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--package", NAME]).current_dir(root);
    if !dev {
        cargo.arg("--release");
    }
    if !cargo.status()?.success() {
        return Err("the program does not build".into());
    }
    let about = Command::new("rustc").arg("-vV").output()?.stdout;
    let about = String::from_utf8(about)?;
    let triple = about.lines().find_map(|line| line.strip_prefix("host: "));
    // This task was built into the same folder as the program.
    let own = std::env::current_exe()?;
    let target = own.ancestors().nth(2).ok_or("no target folder")?;
    let folder = target.join(if dev { "debug" } else { "release" });
    let program = format!("{NAME}{}", std::env::consts::EXE_SUFFIX);
    Ok((
        triple.ok_or("rustc names no host")?.to_owned(),
        folder.join(program),
    ))
}

fn package(root: &Path, out: &Path, binaries: &[(String, PathBuf)]) -> Result<()> {
    let market = root.join("marketplace.json");
    if market.exists() {
        fs::create_dir_all(out.join(".claude-plugin"))?;
        fs::copy(market, out.join(".claude-plugin/marketplace.json"))?;
    }
    for (source, group) in SOURCES {
        let source = root.join(source);
        if source.exists() {
            let part = out.join(group).join(NAME);
            copy(&source, &part)?;
            add(root, &part, binaries)?;
        }
    }
    Ok(())
}

/// What every part has: launcher, binaries, licences and the README.
fn add(root: &Path, part: &Path, binaries: &[(String, PathBuf)]) -> Result<()> {
    let bin = part.join("bin");
    fs::create_dir_all(&bin)?;
    fs::copy(root.join("launcher"), bin.join(NAME))?;
    make_executable(&bin.join(NAME))?;
    for (triple, binary) in binaries {
        let program = match triple.contains("windows") {
            true => bin.join(triple).join(format!("{NAME}.exe")),
            false => bin.join(triple).join(NAME),
        };
        fs::create_dir_all(bin.join(triple))?;
        fs::copy(binary, &program).map_err(|error| format!("{}: {error}", binary.display()))?;
        make_executable(&program)?;
    }
    for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        if root.join(file).exists() {
            fs::copy(root.join(file), part.join(file))?;
        }
    }
    Ok(())
}

/// Copies a folder and writes the version into its manifests.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            let text = fs::read_to_string(entry.path())?;
            let version = format!("\"version\": \"{VERSION}\"");
            fs::write(target, text.replace("\"version\": \"0.0.0\"", &version))?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn make_executable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<()> {
    Ok(())
}
