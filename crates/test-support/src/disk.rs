//! A disk with little room, where the machine lets a test have one: a file system in memory, in a
//! namespace of its own where mounting takes more rights than the test has.

use std::path::Path;
use std::process::{Command, Output};

use crate::clients::report_not_run;

/// What the shell ends with where nothing can be mounted.
const NO_MOUNT: i32 = 111;

/// Runs a shell script with the environment and folder of `command`, and with a file system of
/// `bytes` bytes at `folder`, which is `$DISK` there; `$PROGRAM` is the command's program. `None`
/// where that is not possible, which is reported as not run.
///
/// # Panics
///
/// Where that is not possible and nothing may be left out: `CI=true` or
/// `CTXFOLD_REQUIRE_CLIENTS=1`.
pub fn with_small_disk(
    command: &Command,
    folder: &Path,
    bytes: usize,
    script: &str,
) -> Option<Output> {
    std::fs::create_dir_all(folder).expect("the folder can be made");
    let mount = format!(
        "mount -t tmpfs -o size={bytes} tmpfs \"$DISK\" 2>/dev/null || exit {NO_MOUNT}\n{script}"
    );
    for words in [&["unshare", "-rm", "sh"][..], &["unshare", "-m", "sh"]] {
        let mut shell = Command::new(words[0]);
        shell.args(&words[1..]).arg("-c").arg(&mount).env_clear();
        shell.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                shell.env(name, value);
            }
        }
        shell
            .env("DISK", folder)
            .env("PROGRAM", command.get_program());
        if let Some(at) = command.get_current_dir() {
            shell.current_dir(at);
        }
        let Ok(output) = shell.output() else { continue };
        let is_refused = output.stderr.starts_with(b"unshare: ");
        if !is_refused && output.status.code() != Some(NO_MOUNT) {
            return Some(output);
        }
    }
    report_not_run("no file system can be mounted here, not even in a namespace");
    None
}
