//! The demo session of `examples/`, made by `examples/make_demo.rs` of this crate: the real client still
//! takes it.

use std::fs;
use std::path::{Path, PathBuf};

use ctxfold_test_support::{ClaudeHome, Client, MockAnthropic, require_client};

use crate::lab::ran;
use crate::on_each_version;
use crate::wire::Wire;

const ID: &str = "d3a0c0de-5e55-4000-8000-000000000001";
/// Where the demo's project lies, as its rows say.
const CWD: &str = "/home/dev/weather";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/demo-session")
}

/// Puts the demo into a home, as a session of its project.
fn home_with_demo(client: &Client, mock: &MockAnthropic) -> ClaudeHome {
    let home = ClaudeHome::new(client, mock);
    // The folder's name is the client's to give: it makes a session there first.
    let made = home.prompt("hello").run().success();
    let beside = home.session_file(made.session_id()).unwrap();
    let text = fs::read_to_string(folder().join(format!("{ID}.jsonl"))).unwrap();
    let text = text.replace(CWD, home.project().to_str().unwrap());
    fs::write(beside.with_file_name(format!("{ID}.jsonl")), text).unwrap();
    home
}

fn the_demo_resumes_before_and_after(version: &str) {
    let client = require_client!(claude, version);
    let mock = MockAnthropic::start();
    let home = home_with_demo(&client, &mock);
    let ask = || {
        mock.log().take();
        home.prompt("PROBE")
            .resume(ID)
            .arg("--fork-session")
            .run()
            .success();
        Wire::of(mock.log().last().messages())
    };
    let before = ask();
    assert_eq!(before.holds("Falun is missing"), 1);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ctxfold"));
    command.env_clear().env("HOME", home.home()).args([
        "compact",
        home.session_file(ID).unwrap().to_str().unwrap(),
        "--json",
    ]);
    let plan = ran(&mut command).json();
    let after = ask();
    after.assert_planned(&before, &plan);
    assert!(after.bytes < before.bytes);
}

on_each_version!(the_demo_resumes_before_and_after);
