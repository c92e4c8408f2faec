//! The shapes of `--json`: a version, and keys that scripts can rely on. docs/json.md is made of the
//! same table that the reports are compared with.

mod reports;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use ctxfold_test_support::MockGemini;
use ctxfold_test_support::generate::CodexRollout;
use serde_json::Value;

use self::reports::{REPORTS, Report};
use crate::lab::{Lab, SESSION};

/// Paths of a value's keys with the kinds of their values, seen over several runs.
#[derive(Debug, Default)]
struct Shape {
    kinds: BTreeMap<String, BTreeSet<&'static str>>,
}

impl Shape {
    /// Takes a value in. What stands in `names` has data for names.
    fn take(&mut self, value: &Value, at: &str, names: &[String]) {
        let kind = match value {
            Value::Object(_) => "object",
            Value::Array(_) => "list",
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
        };
        self.kinds.entry(at.to_owned()).or_default().insert(kind);
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    let key = if names.iter().any(|n| n == at) {
                        "*"
                    } else {
                        key
                    };
                    let below = if at.is_empty() {
                        key.to_owned()
                    } else {
                        format!("{at}.{key}")
                    };
                    self.take(value, &below, names);
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.take(item, &format!("{at}[]"), names);
                }
            }
            _ => {}
        }
    }
}

/// Compares what a command printed with what the table says of it.
#[track_caller]
fn compare(report: &Report, printed: &[Value]) {
    let names: Vec<String> = report
        .keys
        .iter()
        .filter_map(|(path, ..)| path.split_once(".*").map(|(before, _)| before.to_owned()))
        .collect();
    let mut shape = Shape::default();
    for value in printed {
        assert_eq!(value["v"], 1, "{} tells its version", report.command);
        let mut value = value.clone();
        value.as_object_mut().unwrap().remove("v");
        shape.take(&value, "", &names);
    }
    let known: BTreeMap<&str, &str> = report
        .keys
        .iter()
        .map(|(path, kinds, _)| (path.trim_end_matches('?'), *kinds))
        .collect();
    let leads = |path: &str| {
        let (object, list) = (format!("{path}."), format!("{path}[]"));
        known
            .keys()
            .any(|k| k.starts_with(&object) || k.starts_with(&list))
    };
    for (path, kinds) in shape.kinds.iter().filter(|(path, _)| !path.is_empty()) {
        match known.get(path.as_str()) {
            Some(said) => {
                let said: Vec<&str> = said.split(" or ").collect();
                assert!(
                    kinds.iter().all(|k| said.contains(k)),
                    "{}: {path} is {kinds:?}, not {said:?}",
                    report.command
                );
            }
            None => assert!(
                leads(path) && kinds.iter().all(|k| ["object", "list"].contains(k)),
                "{}: {path} ({kinds:?}) is not explained",
                report.command
            ),
        }
    }
    for (path, ..) in report.keys {
        let optional = path.ends_with('?')
            || path.ends_with("findings[]")
            || path.ends_with("breadcrumbs[]")
            || path.ends_with("failed[]");
        assert!(
            optional || shape.kinds.contains_key(*path),
            "{}: {path} was not seen",
            report.command
        );
    }
}

/// Every report, printed in several situations.
fn printed() -> BTreeMap<&'static str, Vec<Value>> {
    let mut all: BTreeMap<&'static str, Vec<Value>> = BTreeMap::new();
    let lab = Lab::with_client();
    let rollouts = lab.home().join(".codex/sessions/2026/01/01");
    fs::create_dir_all(&rollouts).unwrap();
    let rollout = CodexRollout {
        compactions: 1,
        image_bytes: 100,
        ..CodexRollout::default()
    };
    let thread = rollouts.join(rollout.file_name());
    rollout
        .write_to(fs::File::create(&thread).unwrap())
        .unwrap();
    let thread = thread.to_str().unwrap();

    let mut add = |command, json: Value| all.entry(command).or_default().push(json);
    let run = |arguments: &[&str]| lab.ctxfold(&[arguments, &["--json"]].concat()).json();
    let out = |name: &str| lab.home().join(name).to_str().unwrap().to_owned();

    add("list", run(&["list", "--all"]));
    lab.ctxfold(&["config", "set", "idle.price-cached", "1"])
        .done();
    lab.ctxfold(&["config", "set", "idle.price-uncached", "10"])
        .done();
    add("list", run(&["list", "--all", "--idle", "1s"]));
    add("inspect", run(&["inspect", SESSION]));
    add("inspect", run(&["inspect", thread]));
    add(
        "inspect --all --agent codex",
        run(&["inspect", "--all", thread]),
    );
    add("monitor status", run(&["monitor", "status", SESSION]));
    add("resume --dry-run", run(&["resume", SESSION, "-n"]));
    add("idle run", run(&["idle", "run"]));
    lab.ctxfold(&["idle", "on"]).done();
    let later = |arguments: &[&str]| lab.a_day_later(&[arguments, &["--json"]].concat()).json();
    add("resume --dry-run", later(&["resume", SESSION, "-n"]));
    add("idle run", later(&["idle", "run", "-n"]));
    add("idle status", run(&["idle", "status"]));
    lab.ctxfold(&["idle", "off"]).done();

    add(
        "compact --dry-run --mode summary",
        run(&["compact", SESSION, "-n", "--mode", "summary"]),
    );
    add(
        "compact --dry-run --mode summary",
        run(&["compact", SESSION, "-n", "--mode", "prune"]),
    );
    add("compact", run(&["compact", SESSION, "-n"]));
    add(
        "compact",
        run(&["compact", SESSION, "--out", &out("copy.jsonl")]),
    );
    let done = run(&["compact", SESSION]);
    let address = done["decisions"][0]["address"].as_str().unwrap().to_owned();
    add("compact", done);
    add("unfold", run(&["unfold", &address]));
    let found = ["unfold", "--search", "module survey", "--session", SESSION];
    add("unfold --search", run(&found));
    add("inspect", run(&["inspect", SESSION]));
    add("inspect --all", run(&["inspect", "--all", SESSION]));
    add("list", run(&["list", "--all", "--idle", "1s"]));
    add("check", run(&["check", SESSION]));
    add("check", run(&["check", thread]));
    add("check --explain", run(&["check", "--explain", "all"]));
    add("undo", run(&["undo", SESSION, "-n"]));
    lab.is_live();
    add("undo", run(&["undo", SESSION, "-n"]));
    add("compact", run(&["compact", SESSION, "-n", "--keep", "2"]));
    add("list", run(&["list", "--all"]));
    fs::remove_dir_all(lab.home().join(".claude/sessions")).unwrap();
    add("undo", run(&["undo", SESSION]));
    add("stats", run(&["stats"]));
    add("doctor", run(&["doctor"]));
    add("config list", run(&["config", "list"]));
    add("config get", run(&["config", "get", "keep"]));
    add("config keys status", run(&["config", "keys", "status"]));

    let gemini = MockGemini::start();
    for (report, arguments) in [
        ("models", &["models", "--json"][..]),
        (
            "config keys status",
            &["config", "keys", "status", "--json"],
        ),
    ] {
        let mut command = lab.command(arguments);
        command
            .env("CTXFOLD_GEMINI_BASE_URL", gemini.url())
            .env("CTXFOLD_GEMINI_API_KEY", "AIzaPlanted");
        add(report, lab.ran(&mut command).json());
    }

    // A session with a torn row, which `check` finds and `repair` bridges.
    let lab = Lab::new();
    let text = String::from_utf8(lab.bytes()).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let torn = lines.len() / 2;
    lines[torn] = &lines[torn][..lines[torn].len() / 2];
    lab.write(lines.join("\n") + "\n");
    let damaged = lab.ctxfold(&["check", SESSION, "--json"]);
    assert_eq!(damaged.code, 1, "{damaged:?}");
    add("check", serde_json::from_str(&damaged.stdout).unwrap());
    let run = |arguments: &[&str]| lab.ctxfold(&[arguments, &["--json"]].concat()).json();
    let copy = lab.home().join("repaired.jsonl");
    add("repair", run(&["repair", SESSION, "-n"]));
    add(
        "repair",
        run(&["repair", SESSION, "--out", copy.to_str().unwrap()]),
    );
    add("repair", run(&["repair", SESSION]));
    all
}

#[test]
fn every_report_is_as_documented() {
    let printed = printed();
    for report in REPORTS {
        compare(report, &printed[report.command]);
    }
    assert_eq!(printed.len(), REPORTS.len());
}

/// Adds the commands whose help knows `--json`.
fn with_json(lab: &Lab, path: &[&str], out: &mut Vec<String>) {
    let help = lab.ctxfold(&[path, &["--help"]].concat()).done().stdout;
    if help.contains("--json") {
        out.push(path.join(" "));
    }
    let Some((_, list)) = help.split_once("Commands:\n") else {
        return;
    };
    for line in list.lines().take_while(|l| !l.is_empty()) {
        let Some(name) = line.strip_prefix("  ").and_then(|l| l.split(' ').next()) else {
            continue;
        };
        if !name.is_empty() {
            with_json(lab, &[path, &[name]].concat(), out);
        }
    }
}

#[test]
fn every_command_with_json_is_documented() {
    let lab = Lab::empty();
    let mut commands = Vec::new();
    with_json(&lab, &[], &mut commands);
    assert!(commands.len() > 15, "{commands:?}");
    for command in commands {
        let is_it =
            |r: &&Report| r.command == command || r.command.starts_with(&format!("{command} --"));
        assert!(REPORTS.iter().any(|r| is_it(&r)), "{command}");
    }
}

const HEAD: &str = "\
# What `--json` prints

Each report is one object on one line of standard output, indented on a terminal. `v` is the version
of its format, 1 in all of them. New keys may come without a new version, so pass over what you do not
know; a key that goes or changes its meaning brings a new one. Errors go to standard error as text, and
exit codes are the same as without `--json`. Sizes are in bytes, tokens are estimates unless the client
counted them, and `[]` stands for each item of a list, `*` for each name of an object whose names are
data. A key that is not always there has a `?`.

`hook`, `statusline` and `mod` speak JSON with agents and plugins and not with you; `config path`,
`completions`, `idle install --print` and `compact --rule help` print text alone.

This page is made by the test `the_page_is_current`, and its table is compared with what the commands
print; after a change run `UPDATE=1 cargo test -p ctxfold --test it the_page_is_current`.
";

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "UPDATE=1 writes the page instead of comparing"
)]
fn the_page_is_current() {
    let mut page = HEAD.to_owned();
    for report in REPORTS {
        page.push_str(&format!(
            "\n## `ctxfold {}`\n\n{}\n\n| key | value | meaning |\n|---|---|---|\n",
            report.command, report.about
        ));
        for (path, kinds, meaning) in report.keys {
            page.push_str(&format!("| `{path}` | {kinds} | {meaning} |\n"));
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    assert!(there == page, "docs/json.md is old; run with UPDATE=1");
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
