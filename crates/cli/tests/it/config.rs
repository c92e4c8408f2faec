//! `config`: comments are kept, mistakes are named with their line, keys are the user's alone.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use crate::lab::{Lab, SESSION};

fn with(text: &str) -> Lab {
    let lab = Lab::new();
    fs::create_dir_all(lab.config().parent().unwrap()).unwrap();
    fs::write(lab.config(), text).unwrap();
    lab
}

#[test]
fn comments_stay_when_a_value_changes() {
    let lab = with("# mine\nkeep = 4 # newest\n\n[gemini]\n# paid\ntier = \"paid\"\n");
    lab.ctxfold(&["config", "set", "keep", "8"]).done();
    let text = fs::read_to_string(lab.config()).unwrap();
    assert_eq!(
        text,
        "# mine\nkeep = 8 # newest\n\n[gemini]\n# paid\ntier = \"paid\"\n"
    );
    assert_eq!(
        lab.ctxfold(&["config", "get", "keep"]).done().stdout.trim(),
        "8"
    );
}

#[test]
fn an_unknown_key_and_a_wrong_type_are_named_with_their_line() {
    for (text, parts) in [
        ("keep = 6\nkeeep = 6\n", ["keeep", "2"]),
        ("\n\nkeep = \"many\"\n", ["keep", "3"]),
        ("[gemini]\ntier = \"gold\"\n", ["tier", "2"]),
        ("keep = = 6\n", ["config.toml", "1"]),
    ] {
        let lab = with(text);
        let ran = lab.refused(1, &["compact", SESSION], parts[0]);
        assert!(ran.stderr.contains(parts[1]), "{ran:?}");
    }
}

#[test]
fn flags_beat_the_file() {
    let lab = with("keep = 1000\n");
    lab.refused(3, &["compact", SESSION], "nothing is old enough");
    lab.ctxfold(&["compact", SESSION, "--keep", "6"]).done();
}

#[test]
fn keys_lie_in_a_file_of_the_users_and_are_never_printed() {
    let lab = Lab::new();
    let key = "AIzaPlanted0000000000000000000000000002";
    let mut command = lab.command(&["config", "keys", "add"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(key.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = format!("{output:?}");
    assert!(!said.contains(key), "{said}");
    let mut found = 0;
    for entry in fs::read_dir(lab.config().parent().unwrap()).unwrap() {
        let entry = entry.unwrap();
        if fs::read_to_string(entry.path()).unwrap().contains(key) {
            found += 1;
            assert_eq!(
                entry.metadata().unwrap().permissions().mode() & 0o777,
                0o600
            );
        }
    }
    assert_eq!(found, 1);
    for arguments in [
        &["doctor"][..],
        &["doctor", "--json"],
        &["config"],
        &["config", "keys"],
    ] {
        let ran = lab.ctxfold(arguments);
        assert!(
            !ran.stdout.contains(key) && !ran.stderr.contains(key),
            "{ran:?}"
        );
    }
}

#[test]
fn a_setting_is_removed_where_it_is_set_and_nowhere_else() {
    let lab =
        with("# mine\n[gemini]\n# paid\ntier = \"paid\"\nmodel = \"gemini-3.8-flash\" # big\n");
    lab.ctxfold(&["config", "unset", "gemini.tier"]).done();
    let text = fs::read_to_string(lab.config()).unwrap();
    assert_eq!(
        text,
        "# mine\n[gemini]\nmodel = \"gemini-3.8-flash\" # big\n"
    );
    let tier = lab.ctxfold(&["config", "get", "gemini.tier"]).done();
    assert_eq!(tier.stdout, "free\n", "its default holds again");
    // Nothing is written about what was never set.
    lab.ctxfold(&["config", "unset", "gemini.tier"]).done();
    lab.ctxfold(&["config", "unset", "idle.after"]).done();
    assert_eq!(fs::read_to_string(lab.config()).unwrap(), text);
    fs::remove_file(lab.config()).unwrap();
    lab.ctxfold(&["config", "unset", "gemini.tier"]).done();
    assert!(!lab.config().exists());
}

#[test]
fn a_table_in_one_line_is_edited_too() {
    let lab = with("gemini = { tier = \"paid\" } # mine\n");
    lab.ctxfold(&["config", "set", "gemini.tier", "free"])
        .done();
    let text = fs::read_to_string(lab.config()).unwrap();
    assert_eq!(text, "gemini = { tier = \"free\" } # mine\n");
    lab.ctxfold(&["config", "unset", "gemini.tier"]).done();
    lab.ctxfold(&["config", "list"]).done();
}

#[test]
fn what_does_not_fit_is_not_written() {
    let lab = with("keep = 4\n");
    for (arguments, reason) in [
        (["config", "set", "keep", "many"], "keep must be"),
        (["config", "set", "keeep", "4"], "unknown setting keeep"),
        (
            ["config", "set", "gemini.tier", "gold"],
            "one of free, paid",
        ),
    ] {
        let ran = lab.ctxfold(&arguments);
        assert!(ran.code == 1 && ran.stderr.contains(reason), "{ran:?}");
    }
    assert_eq!(fs::read_to_string(lab.config()).unwrap(), "keep = 4\n");
}

#[test]
fn keys_that_others_can_read_are_not_used() {
    let lab = with("");
    let keys = lab.config().with_file_name("gemini-keys");
    fs::write(&keys, "AIzaPlanted\n").unwrap();
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o640)).unwrap();
    let summary = ["compact", SESSION, "--mode", "summary"];
    let ran = lab.refused(3, &summary, "can be read by others");
    assert!(ran.stderr.contains("chmod 600"), "{ran:?}");
    assert!(!ran.stderr.contains("AIzaPlanted"), "{ran:?}");
}

#[test]
fn thresholds_that_do_not_fit_together_are_said() {
    let lab = with("");
    let ran = lab
        .ctxfold(&["config", "set", "monitor.critical", "90"])
        .done();
    assert!(
        ran.stderr
            .contains("critical threshold 90 is not below warning threshold 35"),
        "{ran:?}"
    );
    let ran = lab
        .ctxfold(&["config", "set", "monitor.warning", "95"])
        .done();
    assert_eq!(ran.stderr, "ctxfold: monitor.warning = 95\n");
}
