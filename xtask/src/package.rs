//! `cargo xtask package`: the release binary and the plugins as a marketplace in `dist/`.
//!
//! Everything is put together in a folder beside the output and checked there; only a package
//! without a finding replaces what stood in the output. Two runs over the same sources give the same
//! bytes. `--check DIR` checks a marketplace or a plugin that is there already.

mod archive;
mod assemble;
mod check;
#[cfg(test)]
mod mistakes;
mod previous;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::MetadataCommand;

use crate::shell::{Result, cargo, read, root, run as run_command};

const HELP: &str = "\
usage: cargo xtask package [--target TRIPLE]... [--binary [TRIPLE=]PATH]... [--out DIR] [--replace]
       cargo xtask package --check DIR

  --target TRIPLE         build for this target; may be repeated; the host's when none is named
  --binary [TRIPLE=]PATH  take this binary in place of building one
  --out DIR               where the package goes; dist when left out; an earlier package is replaced
  --replace               replace a package of the same version that has another content
  --check DIR             build nothing; check the marketplace or plugin in DIR";

/// What the command line asked for.
#[derive(Debug, Default)]
struct Options {
    targets: Vec<String>,
    binaries: Vec<(String, PathBuf)>,
    out: Option<PathBuf>,
    replace: bool,
    check: Option<PathBuf>,
}

/// Packages, or checks a package.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let options = parse(arguments)?;
    if let Some(folder) = &options.check {
        return refuse_mistakes(folder).map(|()| println!("{}: fine", folder.display()));
    }
    let out = options.out.clone();
    let out = out.unwrap_or_else(|| root().join("dist"));
    // Before anything is built.
    previous::may_be_replaced(&out)?;
    let binaries = binaries(&options)?;
    let version = version()?;
    build(&out, &version, &binaries, options.replace)?;
    println!("{}: version {version}", out.display());
    Ok(())
}

/// Assembles, checks, and only then replaces the output.
fn build(out: &Path, version: &str, binaries: &[(String, PathBuf)], replace: bool) -> Result<()> {
    previous::may_be_replaced(out)?;
    let parent = match out.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(parent)
        .map_err(|error| format!("failed to make {}: {error}", parent.display()))?;
    // Beside the output, so that the last step is a rename.
    let staging = tempfile::Builder::new()
        .prefix(".package-")
        .tempdir_in(parent)
        .map_err(|error| format!("failed to make a folder in {}: {error}", parent.display()))?;
    let stage = staging.path().join("dist");
    assemble::assemble(&root().join("plugins"), &stage, version, binaries)?;
    refuse(&check::folder(&stage)?)?;
    archive::write_zips(&stage, version)?;
    archive::write_sums(&stage)?;
    if !replace {
        refuse(&previous::differences(&stage, out)?)?;
    }
    if out.exists() {
        fs::remove_dir_all(out)
            .map_err(|error| format!("failed to empty {}: {error}", out.display()))?;
    }
    fs::rename(&stage, out)
        .map_err(|error| format!("failed to move the package to {}: {error}", out.display()).into())
}

/// Checks a marketplace, a plugin or an extension that is there already.
pub(crate) fn refuse_mistakes(folder: &Path) -> Result<()> {
    refuse(&check::folder(folder)?)
}

fn refuse(findings: &[String]) -> Result<()> {
    if findings.is_empty() {
        return Ok(());
    }
    Err(format!("the package is refused:\n  {}", findings.join("\n  ")).into())
}

fn parse(arguments: &[String]) -> Result<Options> {
    let mut options = Options::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().cloned().ok_or(HELP);
        match argument.as_str() {
            "--replace" => options.replace = true,
            "--target" => options.targets.push(value()?),
            "--out" => options.out = Some(value()?.into()),
            "--check" => options.check = Some(value()?.into()),
            "--binary" => {
                let value = value()?;
                options.binaries.push(match value.split_once('=') {
                    Some((triple, path)) => (triple.to_owned(), path.into()),
                    None => (host()?, value.into()),
                });
            }
            _ => return Err(format!("unknown argument {argument}\n{HELP}").into()),
        }
    }
    Ok(options)
}

/// The binaries to ship, each with its target: those given, those built, else the host's.
fn binaries(options: &Options) -> Result<Vec<(String, PathBuf)>> {
    let mut binaries = options.binaries.clone();
    let mut targets = options.targets.clone();
    if targets.is_empty() && binaries.is_empty() {
        targets.push(host()?);
    }
    for triple in targets {
        let path = compile(&triple)?;
        binaries.push((triple, path));
    }
    binaries.sort();
    Ok(binaries)
}

/// Builds the release binary for one target.
fn compile(triple: &str) -> Result<PathBuf> {
    let mut command = cargo(&["build", "--release", "--locked", "--package", "ctxfold"]);
    let is_host = triple == host()?;
    if !is_host {
        command.args(["--target", triple]);
    }
    run_command(&mut command)
        .map_err(|error| format!("{error}\nis the target there? `rustup target add {triple}`"))?;
    let target = MetadataCommand::new()
        .current_dir(root())
        .no_deps()
        .exec()
        .map_err(|error| format!("failed to read the workspace: {error}"))?
        .target_directory
        .into_std_path_buf();
    let folder = if is_host { target } else { target.join(triple) };
    let name = if triple.contains("windows") {
        "ctxfold.exe"
    } else {
        "ctxfold"
    };
    Ok(folder.join("release").join(name))
}

/// The target that this machine's compiler builds for.
fn host() -> Result<String> {
    let about = read(Command::new("rustc").arg("-vV"))?;
    about
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .ok_or_else(|| "rustc -vV names no host".into())
}

/// The workspace's version, which every manifest gets.
fn version() -> Result<String> {
    let metadata = MetadataCommand::new()
        .current_dir(root())
        .no_deps()
        .exec()
        .map_err(|error| format!("failed to read the workspace: {error}"))?;
    let package = metadata.packages.iter().find(|p| p.name == "ctxfold");
    package
        .map(|package| package.version.to_string())
        .ok_or_else(|| "the workspace has no package ctxfold".into())
}
