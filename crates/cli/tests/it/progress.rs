//! Progress over files that take long to read: on a terminal, and nowhere else.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use ctxfold_test_support::generate::ClaudeSession;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::lab::{Lab, SESSION};

/// All that a command ever draws on a terminal that is its standard error, where that is told to
/// wait so long before it says something.
fn drawn(lab: &Lab, arguments: &str, patience_ms: &str) -> String {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let size = Winsize {
        ws_row: 24,
        ws_col: 100,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&controller, size).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let terminal = File::options()
        .read(true)
        .write(true)
        .open(OsStr::from_bytes(name.as_bytes()))
        .unwrap();
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let mut child = lab
        .command(&arguments)
        .env("TERM", "xterm-256color")
        .env("CTXFOLD_TEST_PATIENCE_MS", patience_ms)
        .stdout(Stdio::null())
        .stderr(terminal)
        .spawn()
        .unwrap();
    let (mut screen, mut bytes) = (File::from(controller), [0; 4096]);
    let mut out = Vec::new();
    // The end of a terminal is an error.
    while let Ok(n @ 1..) = screen.read(&mut bytes) {
        out.extend_from_slice(&bytes[..n]);
    }
    child.wait().unwrap();
    String::from_utf8_lossy(&out).into_owned()
}

fn is_progress(drawn: &str) -> bool {
    drawn.contains(&format!("reading {SESSION}.jsonl")) || drawn.contains("iB of ")
}

#[test]
fn what_takes_long_says_so_on_a_terminal() {
    let lab = Lab::empty();
    lab.generate(&ClaudeSession {
        turns: 20,
        output_bytes: 24 << 10,
        ..ClaudeSession::default()
    });
    let inspect = format!("inspect {SESSION}");
    let soon = drawn(&lab, &inspect, "600000");
    assert!(!is_progress(&soon), "it was over soon: {soon}");
    let quiet = drawn(&lab, &format!("--quiet {inspect}"), "0");
    assert!(!is_progress(&quiet), "{quiet}");
    let mut piped = lab.command(&["inspect", SESSION]);
    let piped = lab.ran(piped.env("CTXFOLD_TEST_PATIENCE_MS", "0")).done();
    assert_eq!(piped.stderr, "", "no terminal");
    for arguments in [
        "inspect SESSION",
        "inspect --all SESSION",
        "check SESSION",
        "compact SESSION -n",
        "compact SESSION",
        "unfold --search there-is-none --session SESSION",
        "undo SESSION",
    ] {
        let drawn = drawn(&lab, &arguments.replace("SESSION", SESSION), "0");
        assert!(is_progress(&drawn), "{arguments}: {drawn:?}");
    }
}
