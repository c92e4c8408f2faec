//! The commands that only look, and `undo`, over sessions of Claude Code and threads of Codex side
//! by side.

use std::fs;

use ctxfold_test_support::generate::ClaudeSession;
use ctxfold_test_support::{clients, require_client};
use serde_json::{Value, json};

use crate::lab::Lab;

/// A thread of Codex, and a session of Claude Code of the same folder under the same identifier.
fn both(version: &str) -> Option<Lab> {
    let client = clients::codex(version)?;
    let lab = Lab::new(&client, 120_000);
    let session = ClaudeSession {
        id: lab.thread.clone(),
        cwd: lab.home.project().to_string_lossy().into_owned(),
        output_bytes: 12_000,
        ..ClaudeSession::default()
    };
    let folder: String = session
        .cwd
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let folder = lab.home.home().join(".claude/projects").join(folder);
    fs::create_dir_all(&folder).unwrap();
    let file = fs::File::create(folder.join(format!("{}.jsonl", lab.thread))).unwrap();
    session.write_to(file).unwrap();
    Some(lab)
}

const AGENTS: [&str; 2] = ["claude", "codex"];

#[test]
fn every_command_takes_both_agents() {
    let _ = require_client!(codex, clients::CODEX[0]);
    let lab = both(clients::CODEX[0]).unwrap();
    let id = lab.thread.as_str();

    // One name, two conversations: it is asked which, by commands that look and that write.
    for command in ["inspect", "check", "undo", "compact"] {
        let ran = lab.fold(&[command, id]);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(
            ran.stderr.contains("--agent claude or --agent codex"),
            "{ran:?}"
        );
    }

    let listed = lab.fold(&["list", "--json"]).json();
    let sessions = listed["sessions"].as_array().unwrap();
    for agent in AGENTS {
        let of_agent = |s: &&Value| s["agent"] == agent && s["id"] == id;
        let item = sessions.iter().find(of_agent).unwrap();
        assert!(item["bytes"].as_u64() > Some(10_000), "{item}");
        assert!(item["fill_tokens"].as_u64() > Some(50_000), "{item}");
        assert!(item["window_tokens"].as_u64() > Some(100_000), "{item}");
        let only = lab.fold(&["list", "--agent", agent]).done().stdout;
        assert_eq!(only.lines().count(), 1, "{only}");
        assert!(only.contains(agent), "{only}");
    }

    for agent in AGENTS {
        look_and_fold(&lab, agent);
    }

    let stats = lab.fold(&["stats", "--json"]).json();
    assert_eq!(stats["modes"]["mask"]["compactions"], 2, "{stats}");
    assert_eq!(
        (&stats["undone"], &stats["unfinished"]),
        (&json!(2), &json!(0))
    );
    assert!(
        stats["modes"]["mask"]["tokens_saved"].as_u64() > Some(1000),
        "{stats}"
    );
}

/// Looks at a conversation, masks it, reads a folded output back, and takes the fold back.
fn look_and_fold(lab: &Lab, agent: &str) {
    let id = lab.thread.as_str();
    let run = |line: &str| {
        let words = line.split(' ').chain(["--agent", agent, id]);
        lab.fold(&words.collect::<Vec<_>>())
    };
    let before = run("inspect --json").json();
    assert!(before["messages"].as_u64() > Some(5), "{before}");
    assert!(before["fill_tokens"].as_u64() > Some(50_000), "{before}");
    let address = before["largest"][0]["address"].as_str().unwrap();
    let whole = lab.fold(&["unfold", address]).done().stdout;
    assert!(whole.len() > 5000);
    let drawn = run("inspect").done().stdout;
    assert!(
        drawn.contains("tool outputs") && drawn.contains(address),
        "{drawn}"
    );
    let all = run("inspect --all --json").json();
    assert!(all["kinds"].to_string().len() > 20, "{all}");
    assert!(all["largest"].to_string().contains(address), "{all}");
    assert!(run("inspect --all").done().stdout.contains(address));

    let checked = run("check --json").json();
    assert_eq!(
        (&checked["agent"], &checked["errors"]),
        (&json!(agent), &json!(0))
    );

    run("compact --mode mask --keep 2").done();
    let after = run("inspect --json").json();
    assert!(
        after["bytes"].as_u64() < before["bytes"].as_u64(),
        "{after}"
    );
    assert_eq!(lab.fold(&["unfold", address]).done().stdout, whole);
    run("undo").done();
    // Not the whole size: what Codex writes anew by itself is not brought back.
    assert_eq!(by_tool(&run("inspect --json").json()), by_tool(&before));
    run("check").done();
}

/// Tools with their calls and bytes.
fn by_tool(picture: &Value) -> Vec<(String, u64, u64)> {
    let tools = picture["tools"].as_array().unwrap().iter();
    let mut tools: Vec<_> = tools
        .map(|t| {
            let number = |key: &str| t[key].as_u64().unwrap();
            (t["name"].to_string(), number("count"), number("bytes"))
        })
        .collect();
    tools.sort();
    assert!(!tools.is_empty(), "{picture}");
    tools
}

#[test]
fn doctor_tells_of_projections_and_of_who_holds_a_thread() {
    let _ = require_client!(codex, clients::CODEX[0]);
    let lab = both(clients::CODEX[0]).unwrap();
    let says = |lab: &Lab| {
        let report = lab.fold(&["doctor", "--json"]).json();
        let checks = report["checks"].as_array().unwrap().clone();
        move |what: &str| -> Vec<(bool, String)> {
            let of_this = checks.iter().filter(|c| c["what"] == what);
            of_this
                .map(|c| (c["ok"] == true, c["says"].as_str().unwrap().to_owned()))
                .collect()
        }
    };
    let healthy = says(&lab);
    assert!(healthy("Claude Code")[0].1.starts_with("1 sessions under "));
    let codex = healthy("Codex");
    assert!(codex[0].1.starts_with("1 threads under "), "{codex:?}");
    assert!(codex.iter().all(|(ok, _)| *ok), "{codex:?}");
    assert_eq!(healthy("live threads"), [(true, "none".to_owned())]);

    let mut server = lab.home.app_server();
    server
        .request("thread/resume", json!({"threadId": lab.thread}))
        .unwrap();
    let end = &lab.thread[lab.thread.len() - 8..];
    assert_eq!(says(&lab)("live threads"), [(true, end.to_owned())]);
    drop(server);

    rusqlite::Connection::open(lab.home.codex_home().join("thread_history_1.sqlite"))
        .unwrap()
        .execute(
            "UPDATE thread_history_projection_state
             SET next_rollout_byte_offset = next_rollout_byte_offset - 200",
            [],
        )
        .unwrap();
    let told = says(&lab)("Codex");
    let expected = format!("{end}: projection-mid-line");
    assert!(
        told.iter()
            .any(|(ok, says)| !ok && says.starts_with(&expected)),
        "{told:?}"
    );
}

/// The help of each command says that it is for both agents.
#[test]
fn help_names_both_agents() {
    let commands = [
        "compact", "inspect", "list", "unfold", "undo", "stats", "check", "doctor",
    ];
    for command in commands {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_ctxfold"))
            .args([command, "--help"])
            .output()
            .unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        for agent in ["Claude Code", "Codex"] {
            assert!(help.contains(agent), "{command}: {help}");
        }
    }
}
