//! The monitor inside the real clients: no status line is installed, and what the model is told is
//! read from the client's next request.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ctxfold_test_support::{
    ClaudeHome, ClaudeRun, Client, CodexHome, GeminiHome, GeminiTurn, MockAnthropic, MockGemini,
    MockResponses, Recorded, ResponsesTurn, Terminal, Turn, clients, require_client,
};
use serde_json::{Value, json};

use crate::call::PROGRAM;

const MINUTE: Duration = Duration::from_mins(1);
/// Where Claude Code compacts a model with 200,000 tokens.
const CLAUDE_LIMIT: u64 = 167_000;
/// What Codex records as the window of its default model.
const CODEX_WINDOW: u64 = 258_400;
/// Half of the window of a million tokens, where Gemini CLI compresses.
const GEMINI_LIMIT: u64 = 524_288;

/// Percent used at each of ten answers that call a tool, and the warnings that the request behind
/// the call holds from then on: ordinary and critical ones.
///
/// The mock answers at once, so that the client may write two answers down together: what is read
/// at a call is up to two steps old, and each step is small enough to be waited for.
///
/// 65 % used is the first warning. It is repeated after five calls, and 75 % is critical at once.
const STORY: [(u64, (usize, usize)); 10] = [
    (55, (0, 0)),
    (64, (0, 0)),
    (66, (1, 0)),
    (67, (1, 0)),
    (67, (1, 0)),
    (67, (1, 0)),
    (67, (1, 0)),
    (68, (2, 0)),
    (76, (2, 1)),
    (76, (2, 1)),
];

/// How many warnings of each level a request holds.
fn warnings(request: &Recorded, key: &str) -> (usize, usize) {
    let text = request.body[key].to_string();
    let count = |level: &str| text.matches(&format!("CONTEXT {level}")).count();
    (count("WARNING"), count("CRITICAL"))
}

/// The requests of a turn tell the story: the one behind each call holds what was said until then.
fn tells_the_story(requests: &[Recorded], key: &str) {
    assert_eq!(requests.len(), STORY.len() + 1);
    assert_eq!(warnings(&requests[0], key), (0, 0));
    let told: Vec<_> = requests[1..].iter().map(|r| warnings(r, key)).collect();
    let expected: Vec<_> = STORY.iter().map(|(_, warnings)| *warnings).collect();
    assert_eq!(told, expected);
}

/// Calls the binary in a client's home.
fn ctxfold(home: &Path, env: &[(&str, &Path)], arguments: &[&str]) -> String {
    let mut command = Command::new(PROGRAM);
    command
        .args(arguments)
        .env_clear()
        .current_dir(home.join("proj"));
    command.env("HOME", home).env("TMPDIR", home.join("tmp"));
    let output = command.envs(env.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

// ---- Claude Code

fn usage(percent: u64) -> Value {
    // Above the percentage, so that rounding does not matter.
    json!({ "input_tokens": 1, "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": CLAUDE_LIMIT * percent / 100, "output_tokens": 1 })
}

fn bash(percent: u64) -> Turn {
    Turn::tool("Bash", json!({ "command": "echo ran" })).with_usage(usage(percent))
}

fn claude_home(client: &Client, mock: &MockAnthropic) -> ClaudeHome {
    let mut home = ClaudeHome::new(client, mock);
    std::fs::create_dir(home.home().join("tmp")).unwrap();
    let temp = home.home().join("tmp");
    home.set_env("TMPDIR", &temp.to_string_lossy());
    home.set_env("ANTHROPIC_MODEL", "claude-sonnet-4-5-20250929");
    home
}

fn claude_hooks() -> Value {
    let hook = json!([{ "hooks": [{ "type": "command", "timeout": 10,
        "command": format!("\"{PROGRAM}\" hook") }] }]);
    let events = [
        "PostToolUse",
        "PreCompact",
        "PostCompact",
        "SessionStart",
        "Stop",
        "SubagentStop",
    ];
    events
        .into_iter()
        .map(|event| (event, hook.clone()))
        .collect()
}

fn go_on(home: &ClaudeHome, prompt: &str, run: &ClaudeRun) -> ClaudeRun {
    home.prompt(prompt).resume(run.session_id()).run().success()
}

#[test]
fn claude_code_hears_of_it_in_time() {
    let client = require_client!(claude, clients::CLAUDE[0]);
    let mock = MockAnthropic::start();
    let home = claude_home(&client, &mock);
    home.write_settings(json!({ "hooks": claude_hooks() }));
    let work = STORY.iter().map(|(percent, _)| bash(*percent));
    mock.on(
        "WORK",
        work.chain([Turn::text("done").with_usage(usage(76))]),
    );
    let run = home.prompt("WORK on it").run().success();
    tells_the_story(&mock.log().conversations(), "messages");

    // The journal has it, once.
    let config = home.config();
    let env = [("CLAUDE_CONFIG_DIR", config.as_path())];
    let status = ["monitor", "status", "--json", run.session_id()];
    let status: Value = serde_json::from_str(&ctxfold(home.home(), &env, &status)).unwrap();
    assert_eq!(
        status["breadcrumbs"].as_array().unwrap().len(),
        1,
        "{status}"
    );
    assert_eq!(status["source"], "transcript");
    assert_eq!(status["limit_tokens"], CLAUDE_LIMIT);
    let resume = ctxfold(
        home.home(),
        &env,
        &["resume", "--dry-run", run.session_id()],
    );
    assert!(resume.contains("was 76% full"), "{resume}");

    // After a compaction it is silent, and a new cycle warns at once.
    go_on(&home, "/compact", &run);
    assert_eq!(mock.log().compactions().len(), 1);
    mock.log().take();
    mock.on(
        "AFTERWARDS",
        [
            bash(55),
            bash(60),
            bash(66),
            Turn::text("done").with_usage(usage(66)),
        ],
    );
    go_on(&home, "AFTERWARDS do more", &run);
    let told: Vec<_> = mock
        .log()
        .conversations()
        .iter()
        .map(|request| warnings(request, "messages"))
        .collect();
    assert_eq!(told, [(0, 0), (0, 0), (0, 0), (1, 0)]);
}

#[test]
fn claude_codes_sub_agents_hear_nothing() {
    let client = require_client!(claude, clients::CLAUDE[0]);
    let mock = MockAnthropic::start();
    let home = claude_home(&client, &mock);
    home.write_settings(json!({ "hooks": claude_hooks() }));
    mock.on(
        "SUB-TASK",
        [
            bash(5),
            bash(6),
            Turn::text("SUB-ANSWER").with_usage(usage(6)),
        ],
    );
    let agent = json!({ "description": "look", "prompt": "SUB-TASK: look around",
        "subagent_type": "general-purpose", "run_in_background": false });
    mock.on(
        "DELEGATE",
        [
            Turn::tool("Agent", agent).with_usage(usage(66)),
            bash(67),
            Turn::text("done").with_usage(usage(67)),
        ],
    );
    home.prompt("DELEGATE it").run().success();
    let requests = mock.log().conversations();
    let (subs, mains): (Vec<_>, Vec<_>) = requests
        .iter()
        .partition(|r| r.holds("SUB-TASK: look around") && !r.holds("DELEGATE it"));
    assert_eq!(subs.len(), 3);
    for request in subs {
        assert_eq!(warnings(request, "messages"), (0, 0));
    }
    // What is said behind the sub-agent's call itself reaches the parent.
    let told: Vec<_> = mains.iter().map(|r| warnings(r, "messages")).collect();
    assert_eq!(told, [(0, 0), (1, 0), (1, 0)]);
}

fn status_line(env: &[(&str, &str)], width: u16) -> (String, String) {
    let Some(client) = clients::claude(clients::CLAUDE[0]) else {
        clients::report_missing("claude", clients::CLAUDE[0]);
        return Default::default();
    };
    assert!(
        Terminal::is_available(),
        "tmux is needed to drive a terminal"
    );
    let mock = MockAnthropic::start();
    let mut home = claude_home(&client, &mock);
    for (name, value) in env {
        home.set_env(name, value);
    }
    home.write_settings(json!({ "statusLine": { "type": "command",
        "command": format!("\"{PROGRAM}\" statusline --then 'echo MINE'") } }));
    mock.on("HELLO", [Turn::text("ANSWERED").with_usage(usage(70))]);
    let terminal = home.terminal(&[], (width, 30));
    terminal.wait_for("│ proj", MINUTE);
    terminal.type_text("HELLO there");
    terminal.wait_for("HELLO there", MINUTE);
    terminal.press("Enter");
    terminal.wait_for("ANSWERED", MINUTE);
    let plain = terminal.wait_for("70%", MINUTE);
    let coloured = terminal.screen_with_colours();
    // The bridge is for hooks that cannot read the session's file.
    let bridges = std::fs::read_dir(home.home().join("tmp")).unwrap();
    let names: Vec<_> = bridges.map(|e| e.unwrap().file_name()).collect();
    assert!(
        names
            .iter()
            .any(|n| n.to_string_lossy().starts_with("claude-ctx-")),
        "{names:?}"
    );
    (plain, coloured)
}

fn line_with<'a>(screen: &'a str, text: &str) -> &'a str {
    screen
        .lines()
        .find(|line| line.contains(text))
        .unwrap_or_default()
}

#[test]
fn the_status_line_stands_beside_claude_code_in_colours() {
    let (plain, coloured) = status_line(&[], 110);
    if plain.is_empty() {
        return;
    }
    let line = line_with(&plain, "70%");
    assert!(
        line.contains("│ proj") && line.contains("███████░░░ 70% (117k/167k)"),
        "{plain}"
    );
    assert!(line.contains("cache warm"), "{plain}");
    // The user's own line comes first.
    assert!(plain.contains("MINE"), "{plain}");
    let line = line_with(&coloured, "70%");
    assert!(line.contains("\x1b[38;5;208m"), "{line:?}");
}

#[test]
fn the_status_line_makes_sense_in_sixty_columns_without_colours() {
    let (plain, coloured) = status_line(&[("NO_COLOR", "1")], 60);
    if plain.is_empty() {
        return;
    }
    let line = line_with(&plain, "70%");
    assert!(
        line.contains("│ proj") && line.contains("███████░░░ 70%"),
        "{plain}"
    );
    assert!(!line.contains('…'), "it was cut by the client: {plain}");
    let line = line_with(&coloured, "70%");
    assert!(!line.contains("38;5;208"), "{line:?}");
}

// ---- Codex

/// Works in Codex with every hook of ours; returns the requests and the monitor's status.
fn work_in_codex(client: &Client) -> (Vec<Recorded>, Value) {
    let mock = MockResponses::start();
    let shell = |percent: u64| {
        ResponsesTurn::shell("echo ran").with_input_tokens(CODEX_WINDOW * percent / 100)
    };
    let work = STORY.iter().map(|(percent, _)| shell(*percent));
    let done = ResponsesTurn::text("done").with_input_tokens(CODEX_WINDOW * 76 / 100);
    mock.on("WORK", work.chain([done]));
    let mut home = CodexHome::new(client, &mock);
    let temp = home.home().join("tmp");
    std::fs::create_dir(&temp).unwrap();
    home.set_env("TMPDIR", &temp.to_string_lossy());
    let hook = json!([{ "hooks": [{ "type": "command", "timeout": 10,
        "command": format!("\"{PROGRAM}\" hook --host codex") }] }]);
    let events = [
        "PostModelRequest",
        "PostToolUse",
        "PreCompact",
        "PostCompact",
        "SessionStart",
        "Stop",
    ];
    let hooks: Value = events
        .into_iter()
        .map(|event| (event, hook.clone()))
        .collect();
    let text = json!({ "hooks": hooks }).to_string();
    std::fs::write(home.codex_home().join("hooks.json"), text).unwrap();

    let run = home
        .prompt("WORK on it")
        .arg("--dangerously-bypass-hook-trust")
        .run()
        .success();
    let codex_home = home.codex_home();
    let env = [("CODEX_HOME", codex_home.as_path())];
    let status = ["monitor", "status", "--json", run.thread_id()];
    let status = serde_json::from_str(&ctxfold(home.home(), &env, &status)).unwrap();
    (mock.log().conversations(), status)
}

#[test]
fn codex_hears_of_it_in_time() {
    let client = require_client!(codex, clients::CODEX[0]);
    let (requests, status) = work_in_codex(&client);
    tells_the_story(&requests, "input");
    assert_eq!(status["limit_tokens"], CODEX_WINDOW, "{status}");
    assert_eq!(
        status["breadcrumbs"].as_array().unwrap().len(),
        1,
        "{status}"
    );
}

/// Earlier versions tell no hook of an answer's tokens and write them behind the tool's output.
#[test]
fn earlier_codex_hears_of_it_one_call_later() {
    let client = require_client!(codex, clients::CODEX[2]);
    let (requests, status) = work_in_codex(&client);
    let told: Vec<_> = requests.iter().map(|r| warnings(r, "input")).collect();
    assert_eq!(&told[..4], &[(0, 0); 4]);
    assert_eq!(told[4], (1, 0), "{told:?}");
    assert_eq!(told.last(), Some(&(2, 1)), "{told:?}");
    assert_eq!(status["breadcrumbs"].as_array().unwrap().len(), 1);
}

// ---- Gemini CLI

fn gemini_turn(percent: u64, part: &Value) -> GeminiTurn {
    let input = GEMINI_LIMIT * percent / 100;
    GeminiTurn::raw(json!({
        "candidates": [{ "content": { "role": "model", "parts": [part] },
            "finishReason": "STOP", "index": 0 }],
        "usageMetadata": { "promptTokenCount": input, "candidatesTokenCount": 1,
            "totalTokenCount": input + 1 },
    }))
}

#[test]
fn gemini_cli_hears_of_it_in_time() {
    let client = require_client!(gemini, clients::GEMINI[0]);
    let mock = MockGemini::start();
    // The client stops a model that repeats itself: each call reads another file.
    let read = |(n, (percent, _)): (usize, &(u64, _))| {
        let call = json!({ "name": "read_file", "args": { "file_path": format!("{n}.txt") } });
        gemini_turn(*percent, &json!({ "functionCall": call }))
    };
    let work = STORY.iter().enumerate().map(read);
    mock.on(
        "WORK",
        work.chain([gemini_turn(76, &json!({ "text": "done" }))]),
    );
    let mut home = GeminiHome::new(&client, &mock);
    let temp = home.home().join("tmp");
    std::fs::create_dir(&temp).unwrap();
    home.set_env("TMPDIR", &temp.to_string_lossy());
    for n in 0..STORY.len() {
        std::fs::write(home.project().join(format!("{n}.txt")), "note\n").unwrap();
    }
    let hook = json!([{ "hooks": [{ "type": "command", "timeout": 10_000,
        "command": format!("\"{PROGRAM}\" hook --host gemini") }] }]);
    let events = ["AfterTool", "PreCompress", "SessionStart", "AfterAgent"];
    let hooks: Value = events
        .into_iter()
        .map(|event| (event, hook.clone()))
        .collect();
    home.write_settings(json!({ "hooks": hooks }));

    home.prompt("WORK on it", &[]).success();
    let requests: Vec<_> = mock
        .log()
        .conversations()
        .into_iter()
        .filter(|request| request.path.ends_with(":streamGenerateContent"))
        .collect();
    tells_the_story(&requests, "contents");
    let last = requests.last().unwrap();
    assert!(last.holds("<hook_context>CONTEXT WARNING") && last.holds("/compress"));
}
