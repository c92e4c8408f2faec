//! What `idle install --print` prints, run as systemd and cron would: without the environment that
//! it was printed in.

use std::fs;
use std::process::Command;

use ctxfold_test_support::generate::ClaudeSession;

use crate::lab::{Lab, SESSION};

/// A home with a paused session in a folder that only a variable names, with what has to be quoted
/// in its name, and the program at such a path too.
struct Set {
    lab: Lab,
    printed: String,
    session: std::path::PathBuf,
}

fn printed() -> Set {
    let lab = Lab::empty();
    let odd = lab.home().join("it's 5% \"odd\"");
    let projects = odd.join("claude/projects/-home-dev-proj");
    fs::create_dir_all(&projects).unwrap();
    let session = projects.join(format!("{SESSION}.jsonl"));
    let file = fs::File::create(&session).unwrap();
    ClaudeSession::default()
        .write_to(std::io::BufWriter::new(file))
        .unwrap();
    // systemd takes no quotation mark in a program's path.
    let program = lab.home().join("5% odd/ctxfold");
    fs::create_dir(program.parent().unwrap()).unwrap();
    fs::hard_link(env!("CARGO_BIN_EXE_ctxfold"), &program)
        .or_else(|_| fs::copy(env!("CARGO_BIN_EXE_ctxfold"), &program).map(|_| ()))
        .unwrap();
    let config = odd.join("config.toml");
    fs::write(&config, "[idle]\nenabled = true\n").unwrap();
    let mut command = Command::new(&program);
    command
        .args(["idle", "install", "--print"])
        .env_clear()
        .env("HOME", lab.home())
        .env("CLAUDE_CONFIG_DIR", odd.join("claude"))
        .env("CTXFOLD_CONFIG", "../it's 5% \"odd\"/config.toml")
        .env("CODEX_HOME", odd.join("none"))
        .env("XDG_STATE_HOME", odd.join("state"))
        .env("XDG_CONFIG_HOME", "a/relative/one/is/ignored")
        .current_dir(lab.home().join("proj"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(!printed.contains("XDG_CONFIG_HOME"), "{printed}");
    Set {
        lab,
        printed,
        session,
    }
}

/// Checks that the visit compacted the session and kept its journal where it was told to.
fn was_visited(set: &Set, before: u64) {
    assert!(
        fs::metadata(&set.session).unwrap().len() > before,
        "it was compacted"
    );
    let journal = set
        .lab
        .home()
        .join("it's 5% \"odd\"/state/ctxfold/journal.jsonl");
    assert!(journal.is_file());
}

#[test]
fn the_line_for_cron_finds_program_and_folders() {
    let set = printed();
    let before = fs::metadata(&set.session).unwrap().len();
    let line = set
        .printed
        .lines()
        .find_map(|l| l.strip_prefix("# */10 * * * * "))
        .unwrap();
    // cron takes the backslash away, and starts the rest with its own short environment.
    let line = line.replace("\\%", "%");
    in_silence(bare().args(["/bin/sh", "-c", &line]));
    was_visited(&set, before);
}

/// What starts a program as cron and systemd do: in no folder of the user's and with no environment
/// but a short path.
fn bare() -> Command {
    let mut command = Command::new("env");
    command.args(["-i", "PATH=/usr/bin:/bin"]).current_dir("/");
    command
}

fn in_silence(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
}

/// A word of a unit file as systemd reads it.
fn unquoted(word: &str) -> String {
    let inner = word.strip_prefix('"').unwrap().strip_suffix('"').unwrap();
    inner
        .replace("\\\"", "\"")
        .replace("\\\\", "\\")
        .replace("%%", "%")
}

#[test]
fn the_unit_finds_program_and_folders() {
    let set = printed();
    let before = fs::metadata(&set.session).unwrap().len();
    let lines = || set.printed.lines();
    let mut variables = Vec::new();
    for line in lines().filter_map(|l| l.strip_prefix("Environment=")) {
        variables.push(unquoted(line));
    }
    assert_eq!(variables.len(), 4, "{variables:?}");
    let start = lines().find_map(|l| l.strip_prefix("ExecStart=")).unwrap();
    let (program, arguments) = start.rsplit_once("\" ").unwrap();
    in_silence(
        bare()
            .args(&variables)
            .arg(unquoted(&format!("{program}\"")))
            .args(arguments.split(' ')),
    );
    was_visited(&set, before);

    // Where systemd is there, it has the last word.
    let folder = set.lab.home();
    let mut name = String::new();
    for line in lines().take_while(|l| !l.starts_with("# then")) {
        if let Some(path) = line.strip_prefix("# ~/.config/systemd/user/") {
            path.clone_into(&mut name);
            fs::write(folder.join(&name), "").unwrap();
            continue;
        }
        let file = folder.join(&name);
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, format!("{text}{line}\n")).unwrap();
    }
    let verified = Command::new("systemd-analyze")
        .args(["--user", "verify"])
        .arg(folder.join("ctxfold-idle.service"))
        .arg(folder.join("ctxfold-idle.timer"))
        .env("XDG_RUNTIME_DIR", folder)
        .output();
    if let Ok(output) = verified {
        assert!(output.status.success(), "{output:?}");
        assert!(
            !String::from_utf8_lossy(&output.stderr).contains("ctxfold"),
            "{output:?}"
        );
    }
}
