//! What people read: tables, bars, outcomes and errors, at two widths and without colour.

use std::fs;

use crate::lab::{Lab, SESSION};

#[test]
fn the_life_of_a_session() {
    let lab = Lab::new();
    let mut story = String::new();
    for arguments in [
        &["list", "--all"][..],
        &["inspect", SESSION],
        &["compact", SESSION, "--dry-run"],
        &["compact", SESSION],
        &["compact", SESSION],
        &[
            "unfold",
            "--search",
            "module survey returned 4. items",
            "--session",
            SESSION,
            "--limit",
            "2",
        ],
        &["undo", SESSION],
        &["stats"],
        &["check", SESSION],
    ] {
        let ran = lab.ctxfold(arguments);
        story.push_str(&format!(
            "$ ctxfold {}\n{}\n",
            arguments.join(" "),
            ran.shown()
        ));
    }
    insta::assert_snapshot!(story);
}

/// What a plan says of the size is what every other command says after it.
#[test]
fn sizes_agree_after_a_compaction_and_after_its_undo() {
    let lab = Lab::empty();
    let demo = "examples/demo-session/d3a0c0de-5e55-4000-8000-000000000001.jsonl";
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    lab.write(fs::read(root.join(demo)).unwrap());
    let fill = || {
        let json = lab.ctxfold(&["inspect", SESSION, "--json"]).json();
        let listed = lab.ctxfold(&["list", "--all", "--json"]).json();
        let listed = &listed["sessions"][0];
        assert_eq!(json["fill_tokens"], listed["fill_tokens"]);
        assert_eq!(json["window_tokens"], listed["window_tokens"]);
        (json["fill_tokens"].clone(), json["title"].clone())
    };
    let before = fill();
    lab.ctxfold(&["compact", SESSION]).done();
    let after = fill();
    assert!(before.0.as_u64() > after.0.as_u64(), "{before:?} {after:?}");
    lab.ctxfold(&["undo", SESSION]).done();
    assert_eq!(fill(), before);
    lab.ctxfold(&["compact", SESSION]).done();
    assert_eq!(fill(), after);
    assert_eq!(after.1, before.1, "the title");
}

#[test]
fn a_narrow_terminal_gets_narrow_lines() {
    let lab = Lab::new();
    let ran = lab
        .ran(lab.command(&["inspect", SESSION]).env("COLUMNS", "60"))
        .done();
    insta::assert_snapshot!(ran.stdout);
    let widest = ran.stdout.lines().map(|l| l.chars().count()).max().unwrap();
    assert!(widest <= 60, "{widest} columns:\n{}", ran.stdout);
}

#[test]
fn a_list_keeps_to_its_width() {
    let lab = Lab::new();
    for columns in [60, 80, 100, 120] {
        let ran = lab
            .ran(
                lab.command(&["list", "--all"])
                    .env("COLUMNS", columns.to_string()),
            )
            .done();
        let widest = ran.stdout.lines().map(|l| l.chars().count()).max().unwrap();
        assert!(widest <= columns, "{widest} of {columns}:\n{}", ran.stdout);
    }
}

/// A folder that is not there is worth a look where somebody named it, or where no agent is found.
#[test]
fn the_doctor_misses_folders_that_should_be_there() {
    let row = |lab: &Lab, what: &str, variable: Option<&str>| {
        let mut command = lab.command(&["doctor", "--json"]);
        if let Some(name) = variable {
            command.env(name, "/nowhere");
        }
        let json = lab.ran(&mut command).json();
        let checks = json["checks"].as_array().unwrap();
        let row = checks.iter().find(|c| c["what"] == what).unwrap();
        (
            row["ok"].as_bool().unwrap(),
            row["says"].as_str().unwrap().to_owned(),
        )
    };
    let (with, without) = (Lab::new(), Lab::empty());
    assert!(row(&with, "Claude Code", None).0);
    let (ok, says) = row(&with, "Claude Code", Some("CLAUDE_CONFIG_DIR"));
    assert!(!ok && says == "no folder at /nowhere", "{says}");
    let (ok, says) = row(&without, "Claude Code", None);
    assert!(!ok && says == "no folder at ~/.claude", "{says}");
    assert!(row(&with, "Codex", None).0, "there need not be two agents");
    let (ok, says) = row(&with, "Codex", Some("CODEX_HOME"));
    assert!(!ok && says == "no home at /nowhere", "{says}");
    fs::create_dir(without.home().join(".codex")).unwrap();
    assert!(row(&without, "Claude Code", None).0, "Codex alone is fine");
}

/// Without a name a command means the session that it runs in.
#[test]
fn the_running_session_comes_first() {
    let lab = Lab::new();
    assert_eq!(
        lab.ctxfold(&["inspect", "--json"]).code,
        1,
        "none is of this folder"
    );
    let mut command = lab.command(&["inspect", "--json"]);
    let json = lab
        .ran(command.env("CLAUDE_CODE_SESSION_ID", SESSION))
        .json();
    assert_eq!(json["id"], SESSION);
}

/// Words are not broken, so a path may stand out; nothing else does.
#[test]
fn every_table_keeps_to_its_width() {
    let lab = Lab::new();
    lab.ctxfold(&["compact", SESSION]).done();
    fs::create_dir_all(lab.config().parent().unwrap()).unwrap();
    for columns in [60, 80, 120] {
        for arguments in [
            &["config", "list"][..],
            &["compact", "--rule", "help"],
            &["doctor"],
            &["monitor", "status", SESSION],
            &["inspect", SESSION],
        ] {
            let mut command = lab.command(arguments);
            let ran = lab.ran(command.env("COLUMNS", columns.to_string())).done();
            for line in ran.stdout.lines().filter(|l| l.chars().count() > columns) {
                let longest = line.split_whitespace().map(str::len).max().unwrap();
                assert!(longest > 40, "{columns} columns, {arguments:?}: {line}");
            }
            if arguments[0] != "inspect" {
                let widest = ran.stdout.lines().map(|l| l.chars().count()).max().unwrap();
                assert!(
                    columns > 80 || widest > columns / 2,
                    "the width is used: {ran:?}"
                );
            }
        }
    }
}

#[test]
fn nothing_but_text_goes_into_a_pipe() {
    let lab = Lab::new();
    for arguments in [
        &["inspect", SESSION][..],
        &["list", "--all"],
        &["doctor"],
        &["compact", SESSION],
    ] {
        let ran = lab.ran(lab.command(arguments).env("TERM", "xterm-256color"));
        assert!(
            !ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'),
            "{ran:?}"
        );
    }
    // Asked for, colours come; and NO_COLOR wins over what a terminal can do.
    let coloured = lab.ran(lab.command(&["doctor"]).env("CLICOLOR_FORCE", "1"));
    assert!(coloured.stdout.contains('\u{1b}'), "{coloured:?}");
    let plain = lab.ran(lab.command(&["doctor"]).env("NO_COLOR", "1"));
    assert!(!plain.stdout.contains('\u{1b}'), "{plain:?}");
}

#[test]
fn quiet_says_nothing_and_prints_data() {
    let lab = Lab::new();
    let ran = lab
        .ctxfold(&["--quiet", "compact", SESSION, "--json"])
        .done();
    assert!(
        ran.stderr.is_empty() && ran.stdout.starts_with('{'),
        "{ran:?}"
    );
    let ran = lab.ctxfold(&["--quiet", "undo", SESSION]).done();
    assert!(ran.stderr.is_empty() && ran.stdout.is_empty(), "{ran:?}");
    let ran = lab.ctxfold(&["--quiet", "compact", "ffffffff"]);
    assert!(
        ran.code == 1 && !ran.stderr.is_empty(),
        "an error is said: {ran:?}"
    );
}

#[test]
fn errors_say_what_where_and_what_next() {
    let lab = Lab::new();
    fs::create_dir_all(lab.config().parent().unwrap()).unwrap();
    let mut all = String::new();
    let mut show = |arguments: &[&str], code: i32| {
        let ran = lab.ctxfold(arguments);
        assert_eq!(ran.code, code, "{arguments:?}: {ran:?}");
        all.push_str(&format!(
            "$ ctxfold {}\n{}\n",
            arguments.join(" "),
            ran.shown()
        ));
    };
    show(&["compact", "ffffffff"], 1);
    show(&["inspect", "nowhere/at/all.jsonl"], 1);
    show(&["unfold", "11111111:nokey1"], 1);
    show(&["unfold", "no address"], 2);
    show(&["unfold", "--search", "("], 2);
    show(&["compact", SESSION, "--rule", "telepathy=on"], 2);
    show(&["compact", SESSION, "--to", "much"], 2);
    show(&["compact", SESSION, "-n", "--window", "0"], 2);
    show(&["compact", SESSION, "--project"], 2);
    show(&["compact", SESSION, "--out", "-"], 2);
    show(&["compact", SESSION, "--out", ".."], 1);
    show(&["repair", SESSION, "--out", ".."], 1);
    show(&["unfold", "--search", "x", "--limit", "0"], 2);
    show(&["config", "set", "window", "0"], 1);
    show(&["config", "set", "monitor.warning", "200"], 1);
    show(&["idle", "model", "a b"], 1);
    show(&["check", "--explain", "claude/nothing"], 2);
    show(&["compact", SESSION, "--keep", "1000"], 3);
    show(&["undo", SESSION], 3);
    show(&["compact", SESSION, "--mode", "summary"], 1);
    show(&["frobnicate"], 2);
    insta::assert_snapshot!(all);
}

#[test]
fn help_fits_a_narrow_terminal_and_a_wide_one() {
    let lab = Lab::empty();
    for columns in ["60", "100"] {
        let help = |arguments: &[&str]| {
            lab.ran(lab.command(arguments).env("COLUMNS", columns))
                .done()
                .stdout
        };
        let text = help(&["--help"]);
        for arguments in [&["compact", "--help"][..], &["config", "--help"]] {
            let page = help(arguments);
            let widest = page.lines().map(|l| l.chars().count()).max().unwrap();
            assert!(
                widest <= columns.parse().unwrap(),
                "{widest} columns:\n{page}"
            );
        }
        insta::assert_snapshot!(format!("help_at_{columns}"), text);
    }
}
