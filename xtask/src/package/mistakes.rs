//! A package without a mistake, and with each of those in the table.

mod table;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{archive, assemble, build, check, parse};
use crate::shell::root;
use table::MISTAKES;

const TRIPLE: &str = "x86_64-unknown-linux-gnu";
const VERSION: &str = "1.2.3";

/// The head of a program for Linux on this processor, which is all that checks look at.
fn program(folder: &Path, machine: u16) -> PathBuf {
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(18, 0);
    bytes.extend(machine.to_le_bytes());
    bytes.extend([0; 44]);
    let path = folder.join(format!("program-{machine}"));
    fs::write(&path, bytes).unwrap();
    path
}

/// A marketplace of the real sources with a small binary.
fn package(folder: &Path) -> PathBuf {
    let stage = folder.join("dist with space");
    let binaries = [(TRIPLE.to_owned(), program(folder, 62))];
    assemble::assemble(&root().join("plugins"), &stage, VERSION, &binaries).unwrap();
    stage
}

#[test]
fn each_mistake_is_refused_with_its_file_and_a_remedy() {
    for (name, make, file, remedy) in MISTAKES.concat() {
        let folder = TempDir::new().unwrap();
        let dist = package(folder.path());
        make(&dist);
        let findings = check::folder(&dist).unwrap();
        assert!(
            findings.iter().any(|finding| {
                finding.starts_with(&format!("{file}: ")) && finding.contains(remedy)
            }),
            "{name}: {findings:#?}"
        );
    }
    assert!(MISTAKES.concat().len() > 70);
}

#[test]
fn our_own_package_has_no_mistake_and_a_link_within_it_is_none() {
    let folder = TempDir::new().unwrap();
    let dist = package(folder.path());
    assert_eq!(check::folder(&dist).unwrap(), [""; 0]);
    symlink(
        "../README.md",
        dist.join("plugins/ctxfold-core/hooks/ABOUT.md"),
    )
    .unwrap();
    assert_eq!(check::folder(&dist).unwrap(), [""; 0]);
    assert_eq!(
        check::folder(&dist.join("plugins/ctxfold-monitor")).unwrap(),
        [""; 0]
    );
    assert!(check::folder(folder.path()).is_err());
}

#[test]
fn correct_commands_are_no_mistakes() {
    let folder = TempDir::new().unwrap();
    let dist = package(folder.path());
    let monitor = dist.join("plugins/ctxfold-monitor");
    fs::write(monitor.join("my rules.json"), "{}").unwrap();
    let commands = [
        json!({"command": r#""${CLAUDE_PLUGIN_ROOT}"/bin/ctxfold hook"#}),
        json!({"command": r#""${CLAUDE_PLUGIN_ROOT}/bin/ctxfold" --rules "${CLAUDE_PLUGIN_ROOT}/my rules.json""#}),
        json!({"command": r#"cd "${CLAUDE_PLUGIN_ROOT}" && cat "${CLAUDE_PLUGIN_ROOT}/hooks/"*.json"#}),
        json!({"command": "sh", "args": ["-c", r#""${CLAUDE_PLUGIN_ROOT}/bin/ctxfold" hook"#]}),
        json!({"command": "${CLAUDE_PLUGIN_ROOT}/bin/ctxfold", "args": [
            "--rules=${CLAUDE_PLUGIN_ROOT}/my rules.json",
            "--in=${CLAUDE_PLUGIN_ROOT}/hooks/",
            "${CLAUDE_PLUGIN_ROOT}",
        ]}),
    ];
    let path = monitor.join(".claude-plugin/plugin.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    manifest["hooks"] = json!([{"Stop": [{"hooks": commands}]}]);
    manifest["mcpServers"] = json!({"s": commands[4]});
    fs::write(&path, manifest.to_string()).unwrap();
    let path = monitor.join("hooks/codex.json");
    let hooks = fs::read_to_string(&path).unwrap();
    let quoted = hooks.replace(r#"/bin/ctxfold\""#, r#"\"/bin/ctxfold"#);
    assert_ne!(hooks, quoted);
    fs::write(&path, quoted).unwrap();
    assert_eq!(check::folder(&dist).unwrap(), [""; 0]);
}

/// Every file with its mode and bytes.
fn content(folder: &Path) -> Vec<(check::Entry, Vec<u8>)> {
    let tree = check::Tree::read(folder).unwrap();
    let read = |entry: &check::Entry| fs::read(folder.join(&entry.path)).unwrap();
    tree.files()
        .map(|entry| (entry.clone(), read(entry)))
        .collect()
}

#[test]
fn two_packages_are_the_same_bytes_and_one_replaces_another() {
    let folder = TempDir::new().unwrap();
    let binaries = [(TRIPLE.to_owned(), program(folder.path(), 62))];
    let (one, two) = (folder.path().join("one"), folder.path().join("a/b"));
    build(&one, VERSION, &binaries, false).unwrap();
    build(&two, VERSION, &binaries, false).unwrap();
    assert_eq!(content(&one), content(&two));
    fs::remove_file(one.join("README.md")).unwrap();
    build(&one, VERSION, &binaries, true).unwrap();
    assert_eq!(content(&one), content(&two));
    let names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 3, "{names:?}");
}

#[test]
fn archives_hold_the_plugin_with_its_modes() {
    let folder = TempDir::new().unwrap();
    let binaries = [(TRIPLE.to_owned(), program(folder.path(), 62))];
    let out = folder.path().join("dist");
    build(&out, VERSION, &binaries, false).unwrap();
    let file = fs::File::open(out.join("zip/ctxfold-core-1.2.3.zip")).unwrap();
    let mut zip = zip::ZipArchive::new(file).unwrap();
    assert_eq!(
        zip.by_name("bin/ctxfold").unwrap().unix_mode(),
        Some(0o100_755)
    );
    assert_eq!(
        zip.by_name("README.md").unwrap().unix_mode(),
        Some(0o100_644)
    );
    let names: Vec<String> = zip
        .file_names()
        .map(|name| name.unwrap().into_owned())
        .collect();
    let listed: Vec<String> = check::Tree::read(&out.join("plugins/ctxfold-core"))
        .unwrap()
        .files()
        .map(|entry| entry.path.clone())
        .collect();
    assert_eq!(names, listed);
}

/// What is refused, with the output left as it was.
fn refused(out: &Path, binaries: &[(String, PathBuf)], replace: bool) -> String {
    let before = content(out);
    let error = build(out, VERSION, binaries, replace).unwrap_err();
    assert_eq!(content(out), before);
    error.to_string()
}

#[test]
fn the_same_version_with_another_content_is_refused_and_changes_nothing() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("dist");
    let first = [(TRIPLE.to_owned(), program(folder.path(), 62))];
    build(&out, VERSION, &first, false).unwrap();
    let mut changed = fs::read(&first[0].1).unwrap();
    changed.push(1);
    let path = folder.path().join("changed");
    fs::write(&path, changed).unwrap();
    let second = [(TRIPLE.to_owned(), path)];
    let error = refused(&out, &second, false);
    for part in [
        "plugins/ctxfold-core",
        "gemini/ctxfold",
        "antigravity/ctxfold",
    ] {
        let file = format!("{part}/bin/{TRIPLE}/ctxfold: differs");
        assert!(error.contains(&file), "{error}");
    }
    assert!(error.contains("raise the version"), "{error}");
    build(&out, "1.2.4", &second, false).unwrap();
    build(&out, "1.2.4", &first, true).unwrap();
}

#[test]
fn any_file_that_ships_belongs_to_its_version() {
    let folder = TempDir::new().unwrap();
    let binaries = [(TRIPLE.to_owned(), program(folder.path(), 62))];
    for path in [
        ".claude-plugin/marketplace.json",
        "README.md",
        "antigravity/ctxfold/hooks.json",
        "gemini/ctxfold/hooks/hooks.json",
        "plugins/ctxfold-compact/README.md",
        "zip/ctxfold-gemini-1.2.3.zip",
    ] {
        let out = folder.path().join("dist");
        build(&out, VERSION, &binaries, true).unwrap();
        let mut bytes = fs::read(out.join(path)).unwrap();
        bytes.push(b'\n');
        fs::write(out.join(path), bytes).unwrap();
        let error = refused(&out, &binaries, false);
        assert!(error.contains(&format!("{path}: differs")), "{error}");
        assert_eq!(error.matches("differs").count(), 1, "{error}");
        fs::remove_file(out.join(path)).unwrap();
        if path == ".claude-plugin/marketplace.json" {
            assert!(refused(&out, &binaries, true).contains("no package"));
            fs::remove_dir_all(&out).unwrap();
            continue;
        }
        let error = refused(&out, &binaries, false);
        assert!(error.contains(&format!("{path}: differs")), "{error}");
    }
}

#[test]
fn a_folder_that_is_no_package_is_never_emptied() {
    let folder = TempDir::new().unwrap();
    let binaries = [(TRIPLE.to_owned(), program(folder.path(), 62))];
    let home = folder.path().join("home");
    fs::create_dir(&home).unwrap();
    fs::write(home.join("thesis.tex"), "years of work").unwrap();
    let no_package = "holds something that is no package";
    assert!(refused(&home, &binaries, true).contains(no_package));
    // Checksums of another release, even of everything that is there.
    archive::write_sums(&home).unwrap();
    assert!(refused(&home, &binaries, true).contains(no_package));
    // Another's marketplace.
    fs::create_dir(home.join(".claude-plugin")).unwrap();
    fs::write(home.join(check::MARKET), r#"{"name":"others"}"#).unwrap();
    archive::write_sums(&home).unwrap();
    assert!(refused(&home, &binaries, true).contains(no_package));
    // A package of ours, and what somebody put into it.
    let dist = folder.path().join("dist");
    build(&dist, VERSION, &binaries, false).unwrap();
    fs::write(dist.join("plugins/ctxfold-core/thesis.tex"), "work").unwrap();
    let stray = "plugins/ctxfold-core/thesis.tex is not from an earlier package";
    assert!(refused(&dist, &binaries, true).contains(stray));
}

#[test]
fn arguments() {
    let words =
        |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
    let options = parse(&words("--binary aarch64-apple-darwin=a --out o --replace")).unwrap();
    assert_eq!(
        options.binaries,
        [("aarch64-apple-darwin".to_owned(), PathBuf::from("a"))]
    );
    assert!(options.replace && options.out == Some("o".into()));
    assert!(parse(&words("--out")).is_err() && parse(&words("everything")).is_err());
}
