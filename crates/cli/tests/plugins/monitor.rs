//! The monitor from the package, and a plugin from the template, in the clients they are made for.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use ctxfold_test_support::{
    CodexHome, GeminiHome, GeminiTurn, MockGemini, MockResponses, ResponsesTurn, Turn, clients,
    require_client,
};
use serde_json::json;
use tempfile::TempDir;

use crate::lab::{Lab, binary_in, copy, dist, replace};

const WARNING: &str = "CONTEXT WARNING";
const CRITICAL: &str = "CONTEXT CRITICAL";

/// A folder for temporary files with the monitor's state of a session that ended last week.
fn temp_with_old_state(home: &Path) -> (PathBuf, PathBuf) {
    let folder = home.join("tmp of a test");
    fs::create_dir(&folder).unwrap();
    let old = folder.join("claude-ctx-old-warned.json");
    let file = File::create(&old).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_hours(8 * 24))
        .unwrap();
    (folder, old)
}

#[test]
fn claude_code_is_warned_in_the_request_after_a_tool_call() {
    let client = require_client!(claude, "2.1.332");
    let lab = Lab::bare(&client);
    lab.install(dist(), &["ctxfold-monitor@ctxfold"]);
    let echo = |text: &str| {
        Turn::tool(
            "Bash",
            json!({"command": format!("echo {text}"), "description": "echo"}),
        )
    };
    lab.mock
        .on("COUNT", [echo("one"), echo("two"), Turn::text("counted")]);
    // Of a window of a million, of which the client keeps a part for itself.
    lab.mock.set_usage(json!({"input_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 650_000, "output_tokens": 5}));
    lab.home.prompt("COUNT: please").run().success();
    let requests = lab.mock.log().conversations();
    assert_eq!(requests.len(), 3);
    assert!(!requests[0].holds(WARNING));
    let warned = requests.iter().position(|request| request.holds(WARNING));
    assert!(warned.is_some(), "{:#?}", requests[2].messages());
    let whole = serde_json::to_string(requests[2].messages()).unwrap();
    assert_eq!(whole.matches(WARNING).count(), 1, "{whole}");
}

#[test]
fn claude_code_is_not_warned_while_there_is_room() {
    let client = require_client!(claude, "2.1.332");
    let lab = Lab::bare(&client);
    lab.install(dist(), &["ctxfold-monitor@ctxfold"]);
    lab.home.prompt("FIRST: please").run().success();
    assert_eq!(lab.mock.log().conversations().len(), 2);
    assert!(!lab.mock.log().last().holds("CONTEXT "));
}

#[test]
fn after_a_compaction_by_our_mod_the_next_warning_comes_at_once() {
    let client = require_client!(claude, "2.1.332");
    let mut lab = Lab::with(&client, dist());
    lab.done(&["plugin", "install", "ctxfold-monitor@ctxfold"]);
    lab.home.prompt("/ctxfold mode mask").run().success();
    let (temp, old) = temp_with_old_state(lab.home.home());
    lab.home.set_env("TMPDIR", temp.to_str().unwrap());
    lab.mock.set_usage(json!({"input_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 800_000, "output_tokens": 5}));
    let id = lab.conversation();
    assert!(!old.exists(), "state that nobody needs is collected");
    let warned = temp.join(format!("claude-ctx-{id}-warned.json"));
    let text = fs::read_to_string(&warned).unwrap();
    assert!(text.contains("critical"), "{text}");

    let printed = lab.stream(&id, "/compact");
    assert!(printed.contains("compact_boundary"), "{printed}");
    assert!(lab.mock.log().all().is_empty(), "the mod answered");
    assert!(!warned.exists(), "a compaction begins a new cycle");

    let call = json!({"command": "echo seven", "description": "echo"});
    lab.mock
        .on("SEVENTH", [Turn::tool("Bash", call), Turn::text("done")]);
    lab.home.prompt("SEVENTH").resume(&id).run().success();
    let requests = lab.mock.log().conversations();
    assert_eq!(requests.len(), 2);
    let warned: Vec<bool> = requests.iter().map(|r| r.holds(CRITICAL)).collect();
    assert_eq!(warned, [false, true], "{:#?}", requests[1].messages());
}

#[test]
fn codex_takes_the_marketplace_and_is_warned() {
    let client = require_client!(codex, "0.171.0");
    let mock = MockResponses::start();
    let turn =
        |text: &str| ResponsesTurn::shell(&format!("echo {text}")).with_input_tokens(180_000);
    mock.on(
        "COUNT",
        [turn("one"), turn("two"), ResponsesTurn::text("counted")],
    );
    let mut home = CodexHome::new(&client, &mock);
    let (temp, old) = temp_with_old_state(home.home());
    home.set_env("TMPDIR", temp.to_str().unwrap());
    let market = dist().to_str().unwrap();
    for arguments in [
        &["plugin", "marketplace", "add", market][..],
        &["plugin", "add", "ctxfold-monitor@ctxfold"],
    ] {
        let output = home.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }
    home.prompt("COUNT: please")
        .arg("--dangerously-bypass-hook-trust")
        .run()
        .success();
    let last = mock.log().last();
    let whole = serde_json::to_string(last.input()).unwrap();
    assert_eq!(whole.matches(WARNING).count(), 1, "{whole}");
    assert!(!old.exists(), "the start of a session collects old state");
}

#[test]
fn gemini_cli_takes_the_extension_and_runs_its_hook() {
    let client = require_client!(gemini, "0.61.0");
    let mock = MockGemini::start();
    mock.on(
        "COUNT",
        [
            GeminiTurn::function(
                "run_shell_command",
                &json!({"command": "echo one", "description": "echo"}),
            ),
            GeminiTurn::text("counted"),
        ],
    );
    let home = GeminiHome::new(&client, &mock);
    // A program in the binary's place whose answer shows in the request that it was run.
    let folder = TempDir::with_prefix("an extension ").unwrap();
    let extension = folder.path().join("ctxfold");
    copy(&dist().join("gemini/ctxfold"), &extension);
    let script = "cat > /dev/null; echo '{\"hookSpecificOutput\":{\"hookEventName\":\"AfterTool\",\"additionalContext\":\"THE-HOOK-RAN\"}}'";
    replace(&binary_in(&extension), script);
    let path = extension.to_str().unwrap();
    let output = home.run(&["extensions", "install", path, "--consent"], b"y\n");
    assert!(output.status.success(), "{output:?}");
    let ran = home.prompt("COUNT: please", &["--yolo"]).success();
    assert!(ran.text().contains("counted"), "{ran:?}");
    let last = mock.log().last();
    assert!(last.holds("THE-HOOK-RAN"), "{:#?}", last.contents());
}

#[test]
fn gemini_cli_starts_a_session_and_old_state_is_collected() {
    let client = require_client!(gemini, "0.61.0");
    let mock = MockGemini::start();
    let mut home = GeminiHome::new(&client, &mock);
    let (temp, old) = temp_with_old_state(home.home());
    home.set_env("TMPDIR", temp.to_str().unwrap());
    let extension = dist().join("gemini/ctxfold");
    let path = extension.to_str().unwrap();
    let output = home.run(&["extensions", "install", path, "--consent"], b"y\n");
    assert!(output.status.success(), "{output:?}");
    home.prompt("COUNT: please", &["--yolo"]).success();
    assert!(!old.exists());
}

/// Generates a plugin from the template, as its task does, packages it, and installs it.
#[test]
fn a_generated_plugin_reaches_the_next_request() {
    let client = require_client!(claude, "2.1.332");
    let folder = TempDir::with_prefix("a generated plugin ").unwrap();
    let ran = Command::new(env!("CARGO"))
        .args([
            "run",
            "--quiet",
            "--package",
            "xtask",
            "--",
            "template",
            "tool-reminder",
            "--keep",
        ])
        .arg(folder.path())
        .current_dir(clients::workspace())
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let lab = Lab::bare(&client);
    let market = folder.path().join("tool-reminder/dist");
    lab.done(&[
        "plugin",
        "validate",
        "--strict",
        market.join("plugins/tool-reminder").to_str().unwrap(),
    ]);
    lab.install(&market, &["tool-reminder@tool-reminder-market"]);
    let build = Turn::tool(
        "Bash",
        json!({"command": "cargo build --help > /dev/null; echo built", "description": "build"}),
    );
    lab.mock.on("BUILD", [build, Turn::text("built")]);
    lab.home.prompt("BUILD: please").run().success();
    let requests = lab.mock.log().conversations();
    assert_eq!(requests.len(), 2);
    assert!(!requests[0].holds("run `cargo test` as well"));
    assert!(
        requests[1].holds("run `cargo test` as well"),
        "{:#?}",
        requests[1].messages()
    );
}
