//! Running a child to its end: output collected, time bounded, the whole process group ended.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// What a finished child left behind.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Output {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to standard output, as text.
    pub stdout: String,
    /// What it wrote to standard error, as text.
    pub stderr: String,
}

impl Output {
    /// The exit code, or -1 where a signal ended it.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or(-1)
    }
}

/// Runs a command with `input` on its standard input.
///
/// # Panics
///
/// When the command can't be started, or runs longer than `limit`: then its process group is
/// killed first, and the panic shows what it wrote so far.
pub(crate) fn run(command: &mut Command, input: &[u8], limit: Duration) -> Output {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = command
        .spawn()
        .unwrap_or_else(|error| panic!("failed to start {command:?}: {error}"));
    let group = child.id();
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let input = input.to_vec();
    // A child that doesn't read its input closes the pipe, which is no fault here.
    let writer = thread::spawn(move || drop(stdin.write_all(&input)));
    let stdout = collect(child.stdout.take().expect("stdout is piped"));
    let stderr = collect(child.stderr.take().expect("stderr is piped"));
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || drop(sender.send(child.wait())));
    let Ok(status) = ended.recv_timeout(limit) else {
        kill_group(group);
        let (out, err) = (stdout.join(), stderr.join());
        panic!(
            "{command:?} ran longer than {limit:?}\nstdout: {}\nstderr: {}",
            out.unwrap_or_default(),
            err.unwrap_or_default(),
        );
    };
    drop(writer.join());
    // Grandchildren that outlive the client would keep the pipes open.
    kill_group(group);
    Output {
        status: status.expect("a child can be waited for"),
        stdout: stdout.join().expect("the reader of stdout doesn't panic"),
        stderr: stderr.join().expect("the reader of stderr doesn't panic"),
    }
}

fn collect(mut from: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // A broken pipe ends the output; what came before it counts.
        drop(from.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Kills every process of a group; a group that is gone already is fine.
pub(crate) fn kill_group(leader: u32) {
    let pid = i32::try_from(leader)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // The group may have ended by itself.
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
}

/// Kills every process whose program lies below a folder.
pub(crate) fn kill_programs_under(folder: &Path) {
    for pid in programs_under(folder) {
        if let Some(pid) = rustix::process::Pid::from_raw(pid) {
            // It may have ended by itself.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// The processes whose program lies below a folder, where `/proc` tells.
pub(crate) fn programs_under(folder: &Path) -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let is_below = |entry: &fs::DirEntry| {
        fs::read_link(entry.path().join("exe")).is_ok_and(|program| program.starts_with(folder))
    };
    let processes = entries.filter_map(Result::ok).filter(is_below);
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_below_a_folder_are_found_and_killed() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("sleeper");
        fs::copy("/bin/sleep", &program).unwrap();
        let mut child = Command::new(&program).arg("600").spawn().unwrap();
        let id = i32::try_from(child.id()).unwrap();
        assert_eq!(programs_under(folder.path()), [id]);
        kill_programs_under(folder.path());
        assert!(!child.wait().unwrap().success());
        assert!(programs_under(folder.path()).is_empty());
    }

    #[test]
    #[should_panic(expected = "ran longer than")]
    fn a_child_past_its_limit_is_killed() {
        run(
            Command::new("sleep").arg("600"),
            b"",
            Duration::from_millis(50),
        );
    }

    #[test]
    fn output_and_status_are_collected() {
        let output = run(
            Command::new("sh").args(["-c", "cat; echo err >&2; exit 3"]),
            b"in",
            Duration::from_secs(20),
        );
        assert_eq!((output.code(), output.stdout.as_str()), (3, "in"));
        assert_eq!(output.stderr, "err\n");
    }
}
