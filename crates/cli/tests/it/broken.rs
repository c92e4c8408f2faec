//! A configuration that cannot be read: what goes on all the same, and how it is mended.

use std::fs;

use crate::lab::{Lab, SESSION};

/// Settings with one mistake in the third line.
const BROKEN: &str = "[idle]\nenabled = true\nbad = 1\nafter = 1\n";

/// A home with a broken configuration and a client that says how it was started.
fn lab() -> Lab {
    let lab = Lab::with_client();
    fs::create_dir_all(lab.config().parent().unwrap()).unwrap();
    fs::write(lab.config(), BROKEN).unwrap();
    lab
}

#[test]
fn a_broken_file_keeps_nobody_from_resuming() {
    let lab = lab();
    let before = lab.ctxfold(&["stats", "--json"]);
    assert_eq!(
        before.code, 1,
        "other commands name the mistake: {before:?}"
    );
    let ran = lab.a_day_later(&["resume", SESSION]);
    assert_eq!(ran.code, 7, "the client's own code: {ran:?}");
    assert_eq!(ran.stdout, format!("started: --resume {SESSION}\n"));
    assert!(
        ran.stderr
            .contains("not compacted: HOME/config/ctxfold/config.toml:3: unknown setting idle.bad"),
        "{ran:?}"
    );
    assert!(
        !lab.state().join("journal.jsonl").exists(),
        "nothing was written"
    );

    // The same with the mistake mended is compacted: the test above could have failed.
    lab.ctxfold(&["config", "unset", "idle.bad"]).done();
    let ran = lab.a_day_later(&["resume", SESSION]);
    assert_eq!(ran.code, 7, "{ran:?}");
    assert!(ran.stderr.contains("smaller"), "{ran:?}");
}

#[test]
fn the_doctor_names_the_mistake() {
    let lab = lab();
    let json = lab.ctxfold(&["doctor", "--json"]).json();
    let checks = json["checks"].as_array().unwrap();
    let row = checks
        .iter()
        .find(|c| c["what"] == "configuration")
        .unwrap();
    assert_eq!(row["ok"], false);
    let says = row["says"].as_str().unwrap();
    assert!(
        says.contains("config.toml:3: unknown setting idle.bad"),
        "{says}"
    );
    assert!(says.contains("`ctxfold config unset idle.bad`"), "{says}");
}

#[test]
fn every_error_over_the_file_says_how_to_mend_it() {
    let lab = lab();
    for arguments in [
        &["config", "list"][..],
        &["config", "get", "keep"],
        &["list"],
        &["idle", "on"],
    ] {
        let ran = lab.ctxfold(arguments);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(
            ran.stderr
                .contains("config.toml:3: unknown setting idle.bad"),
            "{ran:?}"
        );
        assert!(
            ran.stderr.contains("`ctxfold config unset idle.bad`"),
            "{ran:?}"
        );
    }
    fs::write(lab.config(), "[idle]\nafter = \"x\"\nbad = 1\n").unwrap();
    let ran = lab.ctxfold(&["config", "list"]);
    assert!(
        ran.stderr.contains("`ctxfold config set idle.after VALUE`"),
        "{ran:?}"
    );
    // Mending one mistake says the next.
    let ran = lab.ctxfold(&["config", "set", "keep", "8"]).done();
    assert!(
        ran.stderr.contains("unknown setting idle.bad") || ran.stderr.contains("idle.after must"),
        "{ran:?}"
    );
    let ran = lab.ctxfold(&["config", "unset", "idle.after"]).done();
    assert!(ran.stderr.contains("unknown setting idle.bad"), "{ran:?}");
    let ran = lab.ctxfold(&["config", "unset", "idle.bad"]).done();
    assert_eq!(ran.stderr, "ctxfold: idle.bad is gone\n");
    lab.ctxfold(&["config", "list"]).done();
    fs::write(lab.config(), "keep = = 6\n").unwrap();
    let ran = lab.ctxfold(&["config", "set", "keep", "6"]);
    assert!(
        ran.stderr.contains("config.toml:1:") && ran.stderr.contains("with an editor"),
        "{ran:?}"
    );
}

/// Hosts hear nothing of it.
#[test]
fn hooks_and_the_status_line_take_the_defaults() {
    let lab = lab();
    for (command, input) in [
        (
            "hook",
            r#"{"session_id":"a1","hook_event_name":"PostToolUse","tool_name":"Bash"}"#,
        ),
        (
            "statusline",
            r#"{"session_id":"a1","model":{"display_name":"Opus"},"workspace":{"current_dir":"/home/dev"}}"#,
        ),
    ] {
        let file = lab.home().join("input.json");
        fs::write(&file, input).unwrap();
        let mut with = lab.command(&[command]);
        with.stdin(fs::File::open(&file).unwrap());
        let broken = lab.ran(&mut with);
        assert!(broken.code == 0 && broken.stderr.is_empty(), "{broken:?}");
        assert_eq!(broken.stdout.is_empty(), command == "hook", "{broken:?}");
    }
}

/// A file in the middle of an edit does not end a watch.
#[test]
fn a_watch_goes_on() {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::process::Stdio;

    let lab = Lab::empty();
    let mut command = lab.command(&["idle", "watch", "--every", "1", "--passes", "2"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("watching") {
        line.clear();
        assert_ne!(said.read_line(&mut line).unwrap(), 0);
    }
    fs::create_dir_all(lab.config().parent().unwrap()).unwrap();
    fs::write(lab.config(), BROKEN).unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success(), "{rest}");
    assert!(
        rest.contains("nothing is compacted until this is mended"),
        "{rest}"
    );
}
