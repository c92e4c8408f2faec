//! Running other programs, with every exit status checked, and where the workspace lies.

use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};

/// The result of a task: an error is a message for a person.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The root folder of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
}

/// A cargo command in the workspace's root.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(root());
    command
}

/// Runs a command to its end with our own output; an exit status other than 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("failed to start {shown}: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{shown} ended with {status}").into())
    }
}

/// Runs a command and returns its standard output; an exit status other than 0 is an error.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("failed to start {shown}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!("{shown} ended with {}\n{}", output.status, stderr.trim()).into())
}

/// A command as a person would type it.
pub(crate) fn show(command: &Command) -> String {
    let program = command.get_program().to_string_lossy().into_owned();
    let arguments = command
        .get_args()
        .map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once(program)
        .chain(arguments)
        .collect::<Vec<_>>()
        .join(" ")
}
