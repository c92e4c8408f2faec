//! Progress over files that take long to read: on a terminal, and nowhere else.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use ctxfold_test_support::Terminal;
use ctxfold_test_support::generate::ClaudeSession;

use crate::lab::{Lab, SESSION};

/// Runs a command in a terminal; `true` once the screen shows that a file is read, `false` when it
/// ended before.
fn shows_progress(lab: &Lab, arguments: &str) -> bool {
    let program = env!("CARGO_BIN_EXE_ctxfold");
    let script = format!("'{program}' {arguments} > out; echo it-$((1+1))nded; sleep 60");
    let env = BTreeMap::from([
        ("HOME".to_owned(), lab.home().to_str().unwrap().to_owned()),
        ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
    ]);
    let terminal = Terminal::start(
        Path::new("/bin/sh"),
        &[OsStr::new("-c"), OsStr::new(&script)],
        lab.home(),
        &env,
        (100, 20),
    );
    let name = format!("reading {SESSION}.jsonl");
    let drawn = |screen: &str| screen.contains(&name) || screen.contains("iB of ");
    let screen = terminal.wait_until(Duration::from_mins(2), |screen| {
        drawn(screen) || screen.contains("it-2nded")
    });
    drawn(&screen.unwrap())
}

#[test]
fn what_takes_long_says_so_on_a_terminal() {
    assert!(Terminal::is_available(), "tmux is needed");
    let lab = Lab::empty();
    lab.generate(&ClaudeSession::default());
    assert!(
        !shows_progress(&lab, &format!("inspect {SESSION}")),
        "a small one"
    );

    lab.generate(&ClaudeSession {
        turns: 160,
        output_bytes: 48 << 10,
        ..ClaudeSession::default()
    });
    let quiet = format!("--quiet inspect {SESSION}");
    assert!(!shows_progress(&lab, &quiet));
    let piped = lab.ctxfold(&["inspect", SESSION]).done();
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
        assert!(
            shows_progress(&lab, &arguments.replace("SESSION", SESSION)),
            "{arguments}"
        );
    }
}
