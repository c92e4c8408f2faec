//! The scripts that choose the binary: whatever lies behind them, a hook's host sees no error.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use ctxfold_test_support::clients;
use tempfile::TempDir;

/// What may lie in the binary's place: its bytes, and its mode.
const BROKEN: [(&str, &[u8], u32); 4] = [
    ("without the bit", b"#!/bin/sh\necho ran\n", 0o644),
    ("of another machine", b"\x7fELF\x02\x01\x01\0(((\n\"", 0o755),
    ("of nobody", b"#!/no/such/program\n", 0o755),
    ("that fails", b"#!/bin/sh\necho oops >&2; exit 126\n", 0o755),
];
const FINE: &[u8] = b"#!/bin/sh\ncat; echo \"$@\"\n";

/// A launcher with a binary for each Linux behind it, or with none.
fn launcher(text: &str, binary: Option<(&[u8], u32)>) -> TempDir {
    let folder = TempDir::with_prefix("a launcher ").unwrap();
    let bin = folder.path();
    write(&bin.join("ctxfold"), text.as_bytes(), 0o755);
    if let Some((bytes, mode)) = binary {
        for target in ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"] {
            fs::create_dir(bin.join(target)).unwrap();
            write(&bin.join(target).join("ctxfold"), bytes, mode);
        }
    }
    folder
}

fn write(path: &Path, bytes: &[u8], mode: u32) {
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Runs it with something on standard input.
fn run(shell: &str, folder: &TempDir, arguments: &[&str]) -> Output {
    let input = folder.path().join("input");
    fs::write(&input, "INPUT ").unwrap();
    Command::new(shell)
        .arg(folder.path().join("ctxfold"))
        .args(arguments)
        .stdin(Stdio::from(fs::File::open(&input).unwrap()))
        .output()
        .unwrap()
}

#[track_caller]
fn is_silent(name: &str, output: &Output) {
    assert!(output.status.success(), "{name}: {output:?}");
    assert!(output.stderr.is_empty(), "{name}: {output:?}");
    assert!(output.stdout.is_empty(), "{name}: {output:?}");
}

#[test]
fn a_binary_that_cannot_be_run_breaks_no_host() {
    let ours = fs::read_to_string(clients::workspace().join("plugins/launcher/ctxfold")).unwrap();
    for shell in ["sh", "bash"] {
        let broken = BROKEN.map(|(name, bytes, mode)| (name, Some((bytes, mode))));
        for (name, binary) in broken.into_iter().chain([("that is missing", None)]) {
            let folder = launcher(&ours, binary);
            for call in [&["hook", "--host", "claude"][..], &["statusline"]] {
                is_silent(&format!("{shell} {name}"), &run(shell, &folder, call));
            }
            // A person is told.
            let output = run(shell, &folder, &["doctor"]);
            assert!(!output.status.success(), "{name}: {output:?}");
            assert!(!output.stderr.is_empty(), "{name}: {output:?}");
        }
        let folder = launcher(&ours, Some((FINE, 0o755)));
        for call in ["hook", "statusline", "doctor"] {
            let output = run(shell, &folder, &[call, "a b"]);
            let said = String::from_utf8(output.stdout).unwrap();
            assert_eq!(said, format!("INPUT {call} a b\n"));
        }
    }
}

#[test]
fn a_generated_plugins_binary_breaks_no_host_either() {
    let text = fs::read_to_string(clients::workspace().join("template/launcher")).unwrap();
    let text = text.replace("{{project-name}}", "ctxfold");
    for (name, bytes, mode) in BROKEN {
        let folder = launcher(&text, Some((bytes, mode)));
        is_silent(name, &run("sh", &folder, &[]));
    }
    is_silent("that is missing", &run("sh", &launcher(&text, None), &[]));
    let output = run("sh", &launcher(&text, Some((FINE, 0o755))), &["x"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "INPUT x\n");
}
