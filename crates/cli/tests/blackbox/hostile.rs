//! Whatever lies at a place that we read changes nothing but the answer: no hang, no failure, no
//! write through a link, no reading of four gigabytes.

use std::fs::File;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;

use ctxfold_monitor::{Bridge, Places, SessionId, Store, branch, read_settings};
use serde_json::json;

use crate::call::Lab;

/// Puts one kind of trouble at a path.
type Trouble = fn(&Path);

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn folder(path: &Path) {
    std::fs::create_dir(path).unwrap();
}

fn dangling(path: &Path) {
    symlink("/nonexistent/file", path).unwrap();
}

fn device(path: &Path) {
    symlink("/dev/zero", path).unwrap();
}

fn huge(path: &Path) {
    File::create(path).unwrap().set_len(4 << 30).unwrap();
}

fn garbage(path: &Path) {
    std::fs::write(path, b"\xff\xfe{\0").unwrap();
}

const TROUBLES: [(&str, Trouble); 6] = [
    ("fifo", fifo),
    ("folder", folder),
    ("dangling link", dangling),
    ("device", device),
    ("4 GiB", huge),
    ("garbage", garbage),
];

fn warns(answer: &str) -> bool {
    answer.contains("CONTEXT WARNING")
}

#[test]
fn at_the_bridge_there_is_no_reading() {
    for (name, trouble) in TROUBLES {
        let lab = Lab::new();
        trouble(&lab.state(".json"));
        assert_eq!(lab.tool(), "", "{name}");
        assert!(!lab.state("-warned.json").exists(), "{name}");
    }
}

#[test]
fn at_the_other_files_the_warning_still_comes() {
    for suffix in ["-warned.json", "-cycle.json", "-compacted.json", ".lock"] {
        for (name, trouble) in TROUBLES {
            let lab = Lab::new();
            trouble(&lab.state(suffix));
            lab.bridge(30.0);
            assert!(warns(&lab.tool()), "{name} at {suffix}");
            // A compaction goes through as well.
            assert_eq!(lab.hook("PreCompact", &json!({ "trigger": "auto" })), "");
            assert!(!lab.state(".json").exists(), "{name} at {suffix}");
        }
    }
}

/// How often a nearly full context is told of in so many tool calls, and noted in the journal.
fn told_and_noted(lab: &Lab, calls: usize) -> (usize, usize) {
    lab.bridge(10.0);
    let told = (0..calls).filter(|_| !lab.tool().is_empty()).count();
    let journal = std::fs::read_to_string(lab.path("home/.local/state/ctxfold/journal.jsonl"));
    (told, journal.unwrap_or_default().lines().count())
}

#[test]
fn a_folder_in_the_way_of_the_state_brings_no_flood() {
    for suffix in ["-warned.json", "-cycle.json", "-compacted.json", ".lock"] {
        let lab = Lab::new();
        std::fs::create_dir_all(lab.state(suffix).join("full")).unwrap();
        assert_eq!(told_and_noted(&lab, 11), (3, 1), "{suffix}");
        lab.hook("PreCompact", &json!({ "trigger": "auto" }));
        lab.bridge(10.0);
        assert_eq!(lab.tool(), "", "{suffix}: what the bridge says may be old");
        // People find the session by its name, and can make it forgotten.
        let said = lab.run(&["monitor", "status", "--json", "s"], &[], "");
        assert!(said.contains("\"session\":\"s\""), "{suffix}: {said}");
    }
}

#[test]
fn a_state_that_cannot_be_saved_at_all_makes_the_monitor_silent() {
    for names in [["-warned", "-warned-2"], ["-cycle", "-cycle-2"]] {
        let lab = Lab::new();
        for name in names {
            std::fs::create_dir(lab.state(&format!("{name}.json"))).unwrap();
        }
        assert_eq!(told_and_noted(&lab, 7), (0, 0), "{names:?}");
    }
}

#[test]
fn at_the_settings_the_defaults_hold() {
    let payload = |lab: &Lab| {
        json!({ "session_id": "s", "workspace": { "current_dir": lab.path("proj") },
            "context_window": { "context_window_size": 200_000, "remaining_percentage": 50 } })
        .to_string()
    };
    for (name, trouble) in TROUBLES {
        let lab = Lab::new();
        let places = [
            "proj/.planning/config.json",
            "proj/.claude/settings.json",
            "proj/.claude/settings.local.json",
            "home/.claude/settings.json",
            "home/.claude/settings.local.json",
            "proj/.git/HEAD",
        ];
        for place in places {
            trouble(&lab.path(place));
        }
        let line = lab.run(&["statusline"], &[], &payload(&lab));
        assert!(
            line.contains("60%") && !line.contains("main"),
            "{name}: {line}"
        );
        lab.bridge(30.0);
        assert!(warns(&lab.tool()), "{name}");
    }
}

#[test]
fn at_the_sessions_file_the_bridge_is_left() {
    for place in [
        "proj/x.jsonl",
        "proj/rollout-x.jsonl",
        "proj/session-x.jsonl",
    ] {
        for (name, trouble) in TROUBLES {
            let lab = Lab::new();
            let path = lab.path(place);
            trouble(&path);
            let event = if place.contains("session") {
                "AfterTool"
            } else {
                "PostToolUse"
            };
            let call = json!({ "tool_name": "Bash", "tool_use_id": "t", "transcript_path": path });
            assert_eq!(lab.hook(event, &call), "", "{name} at {place}");
            lab.bridge(30.0);
            assert!(warns(&lab.hook(event, &call)), "{name} at {place}");
            let payload = json!({ "session_id": "s", "transcript_path": path });
            let line = lab.run(&["statusline"], &[], &payload.to_string());
            assert!(line.contains("Claude"), "{name} at {place}: {line}");
        }
    }
}

#[test]
fn a_link_at_the_sessions_file_is_not_followed() {
    let lab = Lab::new();
    let row = r#"{"type":"gemini","tokens":{"total":400000}}"#;
    std::fs::write(lab.path("proj/real.jsonl"), row).unwrap();
    symlink(lab.path("proj/real.jsonl"), lab.path("proj/link.jsonl")).unwrap();
    for (file, expected) in [("real", true), ("link", false)] {
        let path = lab.path(&format!("proj/{file}.jsonl"));
        let answer = lab.hook("AfterTool", &json!({ "transcript_path": path }));
        assert_eq!(answer.contains("CONTEXT"), expected, "{file}");
    }
}

#[test]
fn at_the_users_settings_and_journal_the_warning_still_comes() {
    for place in [
        "home/.config/ctxfold/config.toml",
        "home/.local/state/ctxfold/journal.jsonl",
    ] {
        for (name, trouble) in TROUBLES {
            let lab = Lab::new();
            let path = lab.path(place);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            trouble(&path);
            lab.bridge(10.0);
            assert!(lab.tool().contains("CONTEXT CRITICAL"), "{name} at {place}");
        }
    }
}

#[test]
fn a_statusline_replaces_what_lies_at_its_bridge() {
    for (name, trouble) in TROUBLES {
        let lab = Lab::new();
        trouble(&lab.state(".json"));
        let payload =
            json!({ "session_id": "s", "context_window": { "remaining_percentage": 30 } });
        assert!(
            lab.run(&["statusline"], &[], &payload.to_string())
                .contains("70%"),
            "{name}"
        );
        assert_eq!(warns(&lab.tool()), name != "folder", "{name}");
    }
}

#[test]
fn nothing_is_read_or_written_through_a_link() {
    for suffix in [
        ".json",
        "-warned.json",
        "-cycle.json",
        "-compacted.json",
        ".lock",
    ] {
        let lab = Lab::new();
        let victim = lab.path("victim");
        let text =
            r#"{"remaining_percentage":10,"callsSinceWarn":0,"lastLevel":"critical","at":1}"#;
        std::fs::write(&victim, text).unwrap();
        lab.bridge(30.0);
        let _ = std::fs::remove_file(lab.state(suffix));
        symlink(&victim, lab.state(suffix)).unwrap();
        assert_eq!(warns(&lab.tool()), suffix != ".json", "{suffix}");
        lab.hook("PreCompact", &json!({}));
        let payload = json!({ "session_id": "s", "context_window": { "remaining_percentage": 9 } });
        lab.run(&["statusline"], &[], &payload.to_string());
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), text, "{suffix}");
    }
}

#[test]
fn what_we_write_is_ours_alone() {
    let lab = Lab::new();
    let payload = json!({ "session_id": "s", "context_window": { "remaining_percentage": 9 } });
    lab.run(&["statusline"], &[], &payload.to_string());
    lab.tool();
    lab.hook("PreCompact", &json!({}));
    lab.bridge(30.0);
    for entry in std::fs::read_dir(lab.path("tmp"))
        .unwrap()
        .map(Result::unwrap)
    {
        let mode = entry.metadata().unwrap().mode() & 0o777;
        let is_ours = entry.file_name() != "claude-ctx-s.json";
        assert!(
            mode == 0o600 || !is_ours,
            "{:?} is {mode:o}",
            entry.file_name()
        );
    }
}

/// Gives a file to somebody else; only root can.
fn give_away(path: &Path) -> bool {
    let another = std::fs::metadata(path).unwrap().uid() + 1000;
    let given = chown(path, Some(another), None).is_ok();
    if !given {
        eprintln!(
            "not run: only root can give {} to another user",
            path.display()
        );
    }
    given
}

#[test]
fn another_users_files_are_not_believed() {
    for suffix in [".json", "-warned.json", "-compacted.json", ".lock"] {
        let lab = Lab::new();
        lab.bridge(30.0);
        let planted = match suffix {
            "-warned.json" => r#"{"callsSinceWarn":0,"lastLevel":"critical"}"#.to_owned(),
            "-compacted.json" => format!(r#"{{"at":{}}}"#, crate::call::now()),
            _ => std::fs::read_to_string(lab.state(".json")).unwrap(),
        };
        std::fs::write(lab.state(suffix), planted).unwrap();
        if !give_away(&lab.state(suffix)) {
            return;
        }
        assert_eq!(warns(&lab.tool()), suffix != ".json", "{suffix}");
    }
}

#[test]
fn the_runtime_folder_is_used_only_when_it_is_ours_alone() {
    let lab = Lab::new();
    let open = |runtime: &str| {
        Store::open(&Places {
            runtime: Some(lab.path(runtime)),
            temp: lab.path("tmp"),
        })
    };
    let mode = |path: &str, mode| {
        std::fs::set_permissions(lab.path(path), PermissionsExt::from_mode(mode)).unwrap();
    };
    std::fs::create_dir(lab.path("run")).unwrap();
    mode("run", 0o700);
    assert_eq!(open("run").folder(), lab.path("run/ctxfold"));
    let made = std::fs::metadata(lab.path("run/ctxfold")).unwrap();
    assert_eq!(made.mode() & 0o777, 0o700);

    mode("run/ctxfold", 0o755);
    assert_eq!(
        open("run").folder(),
        lab.path("tmp"),
        "others can look into it"
    );
    mode("run/ctxfold", 0o700);
    mode("run", 0o777);
    assert_eq!(
        open("run").folder(),
        lab.path("tmp"),
        "others can write to it"
    );
    mode("run", 0o700);
    std::fs::remove_dir(lab.path("run/ctxfold")).unwrap();
    symlink(lab.path("home"), lab.path("run/ctxfold")).unwrap();
    assert_eq!(open("run").folder(), lab.path("tmp"), "it is a link");
    std::fs::remove_file(lab.path("run/ctxfold")).unwrap();
    std::fs::create_dir(lab.path("run/ctxfold")).unwrap();
    mode("run/ctxfold", 0o700);
    if give_away(&lab.path("run/ctxfold")) {
        assert_eq!(
            open("run").folder(),
            lab.path("tmp"),
            "it is another user's"
        );
    }
    assert_eq!(open("nowhere").folder(), lab.path("tmp"));
}

#[test]
fn the_newest_bridge_of_both_folders_counts_and_a_compaction_drops_both() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("run")).unwrap();
    std::fs::set_permissions(lab.path("run"), PermissionsExt::from_mode(0o700)).unwrap();
    let runtime = lab.path("run");
    let env = [("XDG_RUNTIME_DIR", runtime.as_path())];
    let store = Store::open(&Places {
        runtime: Some(runtime.clone()),
        temp: lab.path("tmp"),
    });
    let id = SessionId::new("s").unwrap();
    let now = crate::call::now();
    let ours = Bridge {
        used: 20.0,
        remaining: 80.0,
        tokens: None,
        at: Some(now - 30),
    };
    store.write_bridge(&id, &ours).unwrap();
    lab.bridge(30.0);
    let input = |event: &str| json!({ "session_id": "s", "hook_event_name": event }).to_string();
    assert!(warns(&lab.run(&["hook"], &env, &input("PostToolUse"))));
    assert!(lab.path("run/ctxfold/claude-ctx-s-warned.json").exists());
    lab.run(&["hook"], &env, &input("PreCompact"));
    assert!(store.bridge(&id).is_none() && !lab.state(".json").exists());
}

#[test]
fn old_state_is_collected_and_nothing_else() {
    let lab = Lab::new();
    lab.bridge(30.0);
    lab.tool();
    std::fs::write(lab.path("tmp/claude-ctx-notes.txt"), "mine").unwrap();
    std::fs::write(lab.path("tmp/other.json"), "mine").unwrap();
    symlink(
        lab.path("tmp/other.json"),
        lab.path("tmp/claude-ctx-link.json"),
    )
    .unwrap();
    let store = Store::open(&Places {
        runtime: None,
        temp: lab.path("tmp"),
    });
    let now = crate::call::now();
    assert_eq!(store.collect(now, 60), 0);
    assert_eq!(store.sessions(), [SessionId::new("s").unwrap()]);
    // Bridge, last warning, cycle and lock.
    assert_eq!(store.collect(now + 120, 60), 4);
    let mut left: Vec<_> = std::fs::read_dir(lab.path("tmp"))
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(
        left,
        ["claude-ctx-link.json", "claude-ctx-notes.txt", "other.json"]
    );
}

#[test]
fn settings_are_read_from_links_and_with_a_byte_order_mark() {
    let lab = Lab::new();
    std::fs::write(lab.path("real.json"), "\u{feff}{\"a\":\"\u{e9}\"}").unwrap();
    symlink(lab.path("real.json"), lab.path("link.json")).unwrap();
    assert_eq!(
        read_settings(&lab.path("link.json")).unwrap(),
        "{\"a\":\"\u{e9}\"}"
    );
    assert_eq!(read_settings(&lab.path("none.json")), None);
}

#[test]
fn a_branch_is_read_where_git_keeps_it() {
    let lab = Lab::new();
    let write = |path: &str, text: &str| {
        std::fs::create_dir_all(lab.path(path).parent().unwrap()).unwrap();
        std::fs::write(lab.path(path), text).unwrap();
    };
    let here = lab.path("proj");
    write("proj/.git/HEAD", "ref: refs/heads/topic/one\n");
    assert_eq!(branch(&here), None, "no commit yet");
    write(
        "proj/.git/packed-refs",
        "# pack-refs\n0123 refs/heads/topic/one\n",
    );
    assert_eq!(branch(&here).as_deref(), Some("topic/one"));
    write("proj/.git/HEAD", &"a".repeat(40));
    assert_eq!(branch(&here.join("deep/down")).as_deref(), Some("aaaaaaa"));
    write("proj/.git/refs/heads/wt", "0123\n");
    write(
        "tree/.git",
        &format!("gitdir: {}\n", lab.path("proj/.git/worktrees/w").display()),
    );
    write("proj/.git/worktrees/w/HEAD", "ref: refs/heads/wt\n");
    write("proj/.git/worktrees/w/commondir", "../..\n");
    assert_eq!(branch(&lab.path("tree")).as_deref(), Some("wt"));
    write("proj/.git/HEAD", "ref: refs/heads/../../../etc\n");
    assert_eq!(branch(&here), None);
}
