//! The shapes of `--json`: a version, and keys that scripts can rely on.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::lab::{Lab, SESSION};

/// Paths of an object's keys with the kinds of their values; lists count by their first item.
fn shape(value: &Value, at: &str, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                shape(value, &format!("{at}.{key}"), out);
            }
        }
        Value::Array(items) => {
            out.insert(format!("{at}[]"));
            for item in items {
                shape(item, &format!("{at}[]"), out);
            }
        }
        Value::Null => {
            out.insert(format!("{at}: null"));
        }
        Value::Bool(_) => {
            out.insert(format!("{at}: bool"));
        }
        Value::Number(_) => {
            out.insert(format!("{at}: number"));
        }
        Value::String(_) => {
            out.insert(format!("{at}: string"));
        }
    }
}

#[test]
fn every_report_has_its_shape() {
    let lab = Lab::new();
    let mut all = String::new();
    let mut address = String::new();
    for arguments in [
        vec!["list", "--all", "--json"],
        vec!["inspect", SESSION, "--json"],
        vec!["compact", SESSION, "--mode", "prune", "--dry-run", "--json"],
        vec!["compact", SESSION, "--json"],
        vec!["unfold", "ADDRESS", "--json"],
        vec![
            "unfold",
            "--search",
            "module survey",
            "--session",
            SESSION,
            "--json",
        ],
        vec!["undo", SESSION, "--json"],
        vec!["check", SESSION, "--json"],
        vec!["stats", "--json"],
        vec!["doctor", "--json"],
    ] {
        let filled: Vec<&str> = arguments
            .iter()
            .map(|a| if *a == "ADDRESS" { &*address } else { *a })
            .collect();
        let json = lab.ctxfold(&filled).json();
        assert_eq!(json["v"], 1, "{arguments:?} tells its version");
        if let Some(found) = json["decisions"][0]["address"].as_str() {
            found.clone_into(&mut address);
        }
        let mut keys = BTreeSet::new();
        shape(&json, "", &mut keys);
        let keys: Vec<_> = keys.into_iter().collect();
        all.push_str(&format!(
            "$ ctxfold {}\n{}\n\n",
            arguments.join(" "),
            keys.join("\n")
        ));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn every_shell_gets_completions() {
    let lab = Lab::empty();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = lab.ctxfold(&["completions", shell]).done();
        for word in ["compact", "unfold", "dry-run"] {
            assert!(ran.stdout.contains(word), "{shell} lacks {word}");
        }
    }
    assert_eq!(lab.ctxfold(&["completions", "tcsh"]).code, 2);
}
