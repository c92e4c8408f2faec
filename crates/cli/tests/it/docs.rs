//! The reference is what the binary says, and the README's commands run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::lab::Lab;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The subcommands that a help text lists.
fn subcommands(help: &str) -> Vec<String> {
    let Some((_, list)) = help.split_once("Commands:\n") else {
        return Vec::new();
    };
    let lines = list.lines().take_while(|l| !l.is_empty());
    let names = lines.filter(|l| l.starts_with("  ") && !l.starts_with("   "));
    names
        .filter_map(|l| l.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

fn document(lab: &Lab, path: &[String], out: &mut String) {
    let mut arguments: Vec<&str> = path.iter().map(String::as_str).collect();
    arguments.push("--help");
    let help = lab.ctxfold(&arguments).done().stdout;
    let name = ["ctxfold".to_owned()]
        .iter()
        .chain(path)
        .cloned()
        .collect::<Vec<_>>()
        .join(" ");
    let level = "#".repeat(path.len().min(2) + 1);
    let text: Vec<&str> = help.lines().map(str::trim_end).collect();
    out.push_str(&format!(
        "{level}# `{name}`\n\n```text\n{}\n```\n\n",
        text.join("\n").trim_end()
    ));
    for name in subcommands(&help) {
        document(lab, &[path, &[name]].concat(), out);
    }
}

const HEAD: &str = "\
# The command line

What each command says of itself. This page is made by the test `docs_are_current`; after a change,
run `UPDATE=1 cargo test -p ctxfold --test it docs_are_current`.

Every report takes `--json`; its keys are in [json.md](json.md). Standard output is data, standard
error is talk. Exit codes are in [exit-codes.md](exit-codes.md).

";

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "UPDATE=1 writes the page instead of comparing"
)]
fn docs_are_current() {
    let lab = Lab::empty();
    let mut page = HEAD.to_owned();
    document(&lab, &[], &mut page);
    let page = page.trim_end().to_owned() + "\n";
    let path = root().join("docs/cli.md");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let there = fs::read_to_string(&path).unwrap();
    assert!(there == page, "docs/cli.md is old; run with UPDATE=1");
}

#[test]
fn every_exit_code_is_explained() {
    let page = fs::read_to_string(root().join("docs/exit-codes.md")).unwrap();
    let source = fs::read_to_string(root().join("crates/cli/src/exit.rs")).unwrap();
    let mut found = 0;
    for line in source
        .lines()
        .filter(|l| l.contains("const ") && l.contains(": u8 ="))
    {
        let code = line.split('=').nth(1).unwrap().trim().trim_end_matches(';');
        assert!(
            page.contains(&format!("| {code} |")),
            "exit code {code} is not explained"
        );
        found += 1;
    }
    assert_eq!(found, 6);
}

/// The first command of the README, as a shell runs it, but with the binary that was built.
#[test]
fn the_readmes_first_command_compacts_the_demo() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let block = readme
        .split("```sh\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let line = block.lines().find(|l| !l.starts_with('#')).unwrap();
    let cargo = "cargo run -q -p ctxfold --";
    assert!(line.starts_with(cargo), "{line}");
    let line = line.replace(cargo, env!("CARGO_BIN_EXE_ctxfold"));
    let lab = Lab::empty();
    let demo = root().join("examples/demo-session");
    let sizes = || -> Vec<u64> {
        let files = fs::read_dir(&demo).unwrap();
        files
            .map(|f| f.unwrap().metadata().unwrap().len())
            .collect()
    };
    let before = sizes();
    let output = Command::new("sh")
        .arg("-c")
        .arg(&line)
        .env_clear()
        .env("HOME", lab.home())
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("TMPDIR", lab.home())
        .current_dir(root())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("  before  ") && said.contains("  after   "),
        "{said}"
    );
    assert!(said.contains("smaller"), "{said}");
    assert_eq!(sizes(), before, "the demo is as it was");

    // The line that reads a folded output back from the copy is a command too.
    let read = said
        .lines()
        .find_map(|l| l.strip_prefix("  read    ctxfold "))
        .unwrap();
    assert!(read.contains(" --session "), "{read}");
    let output = Command::new("sh")
        .args(["-c", &format!("{} {read}", env!("CARGO_BIN_EXE_ctxfold"))])
        .env_clear()
        .env("HOME", lab.home())
        .current_dir(root())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout.len() > 100, "{output:?}");
}

/// Targets of the links of a page that lead into the repository.
fn links(page: &str) -> impl Iterator<Item = &str> {
    let targets = page.split("](").skip(1).filter_map(|l| l.split(')').next());
    targets
        .map(|t| t.split('#').next().unwrap_or(t))
        .filter(|t| !t.is_empty() && !t.contains("://"))
}

#[test]
fn links_and_named_tests_are_there() {
    let mut seen = 0;
    for page in [
        "README.md",
        "docs/exit-codes.md",
        "docs/cli.md",
        "docs/json.md",
        "docs/formats/journal.md",
    ] {
        let path = root().join(page);
        let text = fs::read_to_string(&path).unwrap();
        for link in links(&text) {
            let target = path.parent().unwrap().join(link);
            assert!(target.exists(), "{page} names {link}, which is not there");
            seen += 1;
        }
    }
    assert!(seen > 8, "{seen} links");

    // The example of how to run one test finds one.
    let page = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let example = page
        .split("`cargo test -p ctxfold-")
        .find(|l| l.contains("--test it -- "));
    let (package, rest) = example.unwrap().split_once(" --test it -- ").unwrap();
    let (module, name) = rest.split('`').next().unwrap().split_once("::").unwrap();
    let file = root().join(format!("crates/{package}/tests/it/{module}.rs"));
    let tests = fs::read_to_string(file).unwrap();
    assert!(tests.contains(&format!("fn {name}")), "{module}::{name}");

    let page = fs::read_to_string(root().join("docs/formats/claude-jsonl.md")).unwrap();
    let mut named = 0;
    for word in page
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|w| w.contains("/tests/"))
    {
        // `{a,b}` stands for several files.
        let (head, rest) = word.split_once('{').unwrap_or((word, "}"));
        let (names, end) = rest.split_once('}').unwrap();
        for name in names.split(',') {
            let mut file = root().join("crates").join(format!("{head}{name}{end}"));
            if file.extension().is_none() {
                file.set_extension("rs");
            }
            assert!(file.exists(), "{}", file.display());
            named += 1;
        }
    }
    assert!(named > 10, "{named} files");
}
