//! What went wrong in the field, at the level of the command: large files, large outputs, pasted
//! images, line ends, names that must stay. The reader's and the writer's rows are tested in the
//! session crate; docs/formats/claude-jsonl.md lists where each row is.

use std::fs;

use ctxfold_test_support::generate::ClaudeSession;
use serde_json::{Value, json};

use crate::lab::{Lab, SESSION};

/// Largest resident set of a run, in KB, as the kernel counted it.
fn peak_kb(lab: &Lab, arguments: &[&str]) -> u64 {
    // A shell that lives as long as its child, and its child's own count from the kernel.
    let script = r#""$0" "$@" >/dev/null 2>"$HOME/err" & pid=$!
        peak=0
        while kill -0 $pid 2>/dev/null; do
            now=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' /proc/$pid/status 2>/dev/null)
            [ "${now:-0}" -gt $peak ] && peak=$now
        done
        wait $pid || exit 9
        echo $peak"#;
    let binary = env!("CARGO_BIN_EXE_ctxfold");
    let output = std::process::Command::new("sh")
        .arg("-c")
        .arg(script)
        .arg(binary)
        .args(arguments)
        .env("HOME", lab.home())
        .env("XDG_STATE_HOME", lab.home().join("state"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        fs::read_to_string(lab.home().join("err")).unwrap()
    );
    String::from_utf8(output.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

#[test]
fn s1_s2_memory_follows_the_live_part_and_not_the_file() {
    let lab = Lab::empty();
    // 120 MB, nearly all of it progress and turns before a compaction.
    lab.generate(&ClaudeSession {
        old_bytes: 120 << 20,
        progress_percent: 90,
        turns: 40,
        ..ClaudeSession::default()
    });
    let file = lab.file();
    assert!(lab.file().metadata().unwrap().len() > 120 << 20);
    let peak = peak_kb(&lab, &["compact", file.to_str().unwrap()]);
    assert!(peak > 0 && peak < 100 << 10, "{peak} KB");
    fs::remove_file(file).unwrap();
}

#[test]
fn s8_a_request_too_large_in_bytes_gets_small() {
    let lab = Lab::empty();
    lab.generate(&ClaudeSession {
        turns: 30,
        calls: 1,
        output_bytes: 1 << 20,
        ..ClaudeSession::default()
    });
    let plan = lab.ctxfold(&["compact", SESSION, "--json"]).json();
    let of = |side: &str| plan[side]["bytes"].as_u64().unwrap();
    assert!(
        of("before") > 10 << 20 && of("after") < 5 << 20,
        "{} → {}",
        of("before"),
        of("after")
    );
}

/// Rows of the generated session, for a change by hand.
fn rows(lab: &Lab) -> Vec<Value> {
    let text = fs::read_to_string(lab.file()).unwrap();
    text.lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect()
}

fn write(lab: &Lab, rows: &[Value], line_end: &str) {
    lab.write(
        rows.iter()
            .map(|r| r.to_string() + line_end)
            .collect::<String>(),
    );
}

#[test]
fn s6_pasted_images_never_go_to_a_model_and_the_text_beside_them_stays() {
    let lab = Lab::new();
    let mut all = rows(&lab);
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0K".repeat(9000)}});
    let user = all
        .iter_mut()
        .find(|r| r["message"]["content"].is_string())
        .unwrap();
    user["message"]["content"] =
        json!([image, image, image, {"type": "text", "text": "what is wrong in these pictures"}]);
    write(&lab, &all, "\n");
    let dry = lab
        .ctxfold(&[
            "compact",
            SESSION,
            "--mode",
            "summary",
            "--dry-run",
            "--json",
        ])
        .json();
    let text = dry["requests"].to_string();
    assert!(text.contains("what is wrong in these pictures") && !text.contains("iVBORw0KiVBORw0K"));
    let before = lab.bytes();
    lab.ctxfold(&["compact", SESSION]).done();
    let appended = String::from_utf8(lab.bytes()[before.len()..].to_vec()).unwrap();
    for row in appended
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).unwrap())
    {
        let has_text = row["message"]
            .to_string()
            .contains("what is wrong in these pictures");
        assert!(
            !has_text || row["message"].to_string().contains("iVBORw0K"),
            "a user's message is never edited"
        );
    }
}

#[test]
fn c10_rows_are_appended_with_the_files_line_ends() {
    let lab = Lab::new();
    write(&lab, &rows(&lab), "\r\n");
    let before = lab.bytes();
    lab.ctxfold(&["compact", SESSION]).done();
    let after = lab.bytes();
    assert!(after.starts_with(&before));
    let text = String::from_utf8(after[before.len()..].to_vec()).unwrap();
    assert!(text.lines().count() > 1);
    assert_eq!(text.matches("\r\n").count(), text.matches('\n').count());
    lab.ctxfold(&["undo", SESSION]).done();
}

#[test]
fn c26_a_compaction_whose_kept_rows_are_lost_is_not_built_upon() {
    let lab = Lab::new();
    lab.ctxfold(&["compact", SESSION]).done();
    // One row that the boundary lists is gone: the client drops the whole list.
    let mut all = rows(&lab);
    let boundary = all
        .iter()
        .rfind(|r| r["subtype"] == "compact_boundary")
        .unwrap();
    let lost = boundary["compactMetadata"]["preservedMessages"]["uuids"][3].clone();
    all.retain(|r| r["uuid"] != lost);
    write(&lab, &all, "\n");
    fs::remove_file(lab.state().join("journal.jsonl")).unwrap();
    for mode in [
        &["compact", SESSION][..],
        &["compact", SESSION, "--aggressive"],
    ] {
        lab.refused(3, mode, "`ctxfold check` says more");
    }
    let checked = lab.ctxfold(&["check", SESSION]);
    assert_eq!(checked.code, 1, "{checked:?}");
}

#[test]
fn c27_the_title_is_still_listed_after_a_compaction() {
    let lab = Lab::new();
    let mut all = rows(&lab);
    all.insert(
        1,
        json!({"type": "custom-title", "customTitle": "the great survey", "sessionId": SESSION}),
    );
    write(&lab, &all, "\n");
    lab.ctxfold(&["compact", SESSION]).done();
    let listed = lab.ctxfold(&["list", "--all", "--json"]).json();
    assert_eq!(
        listed["sessions"][0]["title"], "the great survey",
        "{listed}"
    );
}

#[test]
fn s13_time_of_change_mode_and_every_old_byte_stay() {
    use std::os::unix::fs::PermissionsExt as _;
    let lab = Lab::new();
    fs::set_permissions(lab.file(), fs::Permissions::from_mode(0o600)).unwrap();
    let (before, meta) = (lab.bytes(), lab.file().metadata().unwrap());
    // Somebody holds the file open, as a client does that appends.
    let mut held = fs::File::options().append(true).open(lab.file()).unwrap();
    lab.ctxfold(&["compact", SESSION]).done();
    let now = lab.file().metadata().unwrap();
    assert_eq!(now.modified().unwrap(), meta.modified().unwrap());
    assert_eq!(now.permissions().mode(), meta.permissions().mode());
    assert!(lab.bytes().starts_with(&before));
    let len = lab.bytes().len();
    std::io::Write::write_all(&mut held, b"{\"type\":\"mode\"}\n").unwrap();
    assert_eq!(
        lab.bytes().len(),
        len + 16,
        "it is the same file, not one in its place"
    );
}
