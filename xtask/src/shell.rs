//! Running other programs, with every exit status checked and every wait limited, and where the
//! workspace lies.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// The result of a task: an error is a message for a person.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// No command takes longer, not even an installation on a slow machine.
const LONGEST: Duration = Duration::from_mins(30);

/// When the whole task must be over, where [`be_over_in`] said so.
static END: OnceLock<Instant> = OnceLock::new();

/// Limits the whole task: what still runs then is ended, and what would start fails.
pub(crate) fn be_over_in(limit: Duration) {
    // Only the first call counts; there is one task a process.
    END.get_or_init(|| Instant::now() + limit);
}

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
    let status = watch(command, LONGEST, |_| {})?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{} ended with {status}", show(command)).into())
    }
}

/// Runs a command and hands over each line of its standard output while it runs.
///
/// An error where it cannot be started, and where it takes longer than `limit`: then it is ended
/// with everything that it started.
pub(crate) fn lines(
    command: &mut Command,
    limit: Duration,
    on_line: impl FnMut(&str),
) -> Result<ExitStatus> {
    watch(command.stdout(Stdio::piped()), limit, on_line)
}

/// What the thread that waits for a child has to tell.
enum Event {
    Line(String),
    End(std::io::Result<ExitStatus>),
}

fn watch(
    command: &mut Command,
    limit: Duration,
    mut on_line: impl FnMut(&str),
) -> Result<ExitStatus> {
    let shown = show(command);
    let start = Instant::now();
    let until = END
        .get()
        .map_or(start + limit, |end| (start + limit).min(*end));
    let mut child = command
        .stdin(Stdio::null())
        .spawn()
        .map_err(|error| format!("failed to start {shown}: {error}"))?;
    let (process, output) = (child.id(), child.stdout.take());
    let (send, events) = channel();
    thread::spawn(move || {
        let pieces = output.map(BufReader::new).into_iter();
        for piece in pieces.flat_map(|output| output.split(b'\n')) {
            let Ok(piece) = piece else { break };
            let line = String::from_utf8_lossy(&piece).into_owned();
            if send.send(Event::Line(line)).is_err() {
                break;
            }
        }
        // Nobody listens any more where the child was ended; it still has to be waited for.
        drop(send.send(Event::End(child.wait())));
    });
    loop {
        match events.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Event::Line(line)) => on_line(&line),
            Ok(Event::End(status)) => {
                return status
                    .map_err(|error| format!("failed to wait for {shown}: {error}").into());
            }
            Err(_) => {
                end_with_children(process);
                let seconds = start.elapsed().as_secs();
                return Err(format!("{shown} was ended: not done after {seconds} s").into());
            }
        }
    }
}

/// Ends a process and what descends from it. A group of its own would do this more simply, and
/// would keep Ctrl-C from reaching it.
fn end_with_children(process: u32) {
    let table = read(Command::new("ps").args(["-A", "-o", "pid=,ppid="])).unwrap_or_default();
    let all = descendants(process, &table);
    let all = all.iter().map(u32::to_string);
    // Those that ended meanwhile make `kill` complain; the others are ended all the same.
    drop(Command::new("kill").arg("-KILL").args(all).output());
}

/// A process and its descendants in a table of lines `PROCESS PARENT`.
fn descendants(process: u32, table: &str) -> BTreeSet<u32> {
    let pairs: Vec<(u32, u32)> = table
        .lines()
        .filter_map(|line| {
            let (child, parent) = line.trim().split_once(char::is_whitespace)?;
            Some((child.parse().ok()?, parent.trim().parse().ok()?))
        })
        .collect();
    let mut found = BTreeSet::from([process]);
    loop {
        let before = found.len();
        let next = pairs.iter().filter(|(_, parent)| found.contains(parent));
        let next: Vec<u32> = next.map(|(child, _)| *child).collect();
        found.extend(next);
        if found.len() == before {
            return found;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_found_in_any_order() {
        let table = "  40   30\n 10 1\n 30 20\n  20 10\n 50 1\nPID PPID\n";
        assert_eq!(descendants(20, table), BTreeSet::from([20, 30, 40]));
        assert_eq!(descendants(99, table), BTreeSet::from([99]));
    }

    #[test]
    fn a_command_that_hangs_is_ended_with_its_children() {
        let mut hangs = Command::new("sh");
        hangs.args(["-c", "sleep 600 & echo $!; wait"]);
        let mut child = String::new();
        let error = lines(&mut hangs, Duration::from_secs(1), |line| {
            line.clone_into(&mut child);
        });
        let error = error.unwrap_err().to_string();
        assert!(error.ends_with("was ended: not done after 1 s"), "{error}");
        assert!(child.parse::<u32>().is_ok(), "{child:?}");
        let is_gone = || {
            let state = Command::new("ps")
                .args(["-o", "stat=", "-p", &child])
                .output()
                .unwrap();
            // A dead process whose parent has not looked yet is a zombie.
            state.stdout.is_empty() || state.stdout.starts_with(b"Z")
        };
        assert!((0..200).any(|_| is_gone()), "process {child} still runs");
    }

    #[test]
    fn every_line_and_the_status_are_handed_over() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; printf two; exit 3"]);
        let mut seen = Vec::new();
        let status = lines(&mut command, LONGEST, |line| seen.push(line.to_owned())).unwrap();
        assert_eq!(
            (seen, status.code()),
            (vec!["one".into(), "two".into()], Some(3))
        );
        assert!(lines(&mut Command::new("/nowhere/cargo"), LONGEST, |_| {}).is_err());
    }
}
