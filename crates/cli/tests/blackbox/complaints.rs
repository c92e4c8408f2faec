//! What users of other monitors and statuslines complained about, one test each.

use ctxfold_hook::Host;
use ctxfold_monitor::statusline::Input;
use ctxfold_monitor::{
    Config, Effect, Event, Happening, Overrides, Planning, Reading, Scale, SessionId, Settings,
    Source, State, Thresholds, step,
};
use serde_json::{Value, json};

use crate::call::Lab;

fn used(size: u64, tokens: u64, settings: &Settings) -> f64 {
    let text = json!({ "context_window": { "context_window_size": size,
        "current_usage": { "input_tokens": tokens } } });
    let input = Input::parse(&text.to_string()).unwrap();
    input
        .fill(Scale::Compaction, &Overrides::default(), settings, 0)
        .unwrap()
        .shown
}

fn tool_call(percent: u64, at: u64) -> Event {
    let reading = Reading::of_tokens(percent, 100, Source::Transcript, Some(at));
    Event {
        happening: Happening::ToolCall,
        reading: Some(reading),
    }
}

/// The share is of 200,000 tokens on a window of a million.
#[test]
fn the_window_comes_from_the_input() {
    let none = Settings::default();
    assert_eq!(used(1_000_000, 150_000, &none), 16.0);
    assert_eq!(used(200_000, 150_000, &none), 90.0);
    // After the client lost the size, what it holds shows that the size is wrong.
    assert_eq!(used(200_000, 450_000, &none), 47.0);
}

/// The client's own room is subtracted though automatic compaction is off.
#[test]
fn the_buffer_is_there_only_with_automatic_compaction() {
    let off = Settings::merge([r#"{"autoCompactEnabled":false}"#]);
    assert_eq!(used(200_000, 100_000, &off), 50.0);
    assert_eq!(used(200_000, 100_000, &Settings::default()), 60.0);
}

/// Thresholds are constants, 0 is ignored, the critical one may be the higher one.
#[test]
fn thresholds_are_checked_as_a_pair_and_0_is_off() {
    assert_eq!(Thresholds::new(0.0, 25.0).unwrap(), None);
    assert_eq!(
        Thresholds::new(60.0, 40.0).unwrap().unwrap().warning(),
        60.0
    );
    for (warning, critical, word) in [
        (20.0, 25.0, "not below"),
        (25.0, 25.0, "not below"),
        (101.0, 25.0, "between 0 and 100"),
        (35.0, -1.0, "between 0 and 100"),
        (f64::NAN, 25.0, "between 0 and 100"),
    ] {
        let error = Thresholds::new(warning, critical).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    let planning = Planning::parse(r#"{"hooks":{"context_warning_threshold":60}}"#);
    let config = Config::default().with_planning(&planning);
    assert_eq!(
        (config.thresholds.warning(), config.thresholds.critical()),
        (60.0, 25.0)
    );
    let planning = Planning::parse(r#"{"hooks":{"context_warning_threshold":0}}"#);
    assert_eq!(
        Config::default().with_planning(&planning),
        Config::default()
    );
}

/// Plain text on standard output never reaches the model.
#[test]
fn the_warning_is_in_the_envelope_of_the_host() {
    for (args, event) in [
        (&["hook", "--host", "claude"], "PostToolUse"),
        (&["hook", "--host", "codex"], "PostToolUse"),
        (&["hook", "--host", "gemini"], "AfterTool"),
    ] {
        let lab = Lab::new();
        lab.bridge(30.0);
        let input = json!({ "session_id": "s", "hook_event_name": event }).to_string();
        let answer: Value = serde_json::from_str(&lab.run(args, &[], &input)).unwrap();
        let specific = &answer["hookSpecificOutput"];
        assert_eq!(specific["hookEventName"], event);
        assert!(
            specific["additionalContext"]
                .as_str()
                .unwrap()
                .starts_with("CONTEXT WARNING")
        );
        // Codex refuses a key that it does not know.
        assert_eq!(specific.get("severity").is_some(), args[2] != "codex");
    }
}

/// Tools of MCP servers get no warning, or the JSON comes twice.
#[test]
fn any_tool_gets_one_json_object() {
    for tool in ["mcp__server__tool", "Bash", "Agent", "Read", ""] {
        let lab = Lab::new();
        lab.bridge(30.0);
        let answer = lab.hook("PostToolUse", &json!({ "tool_name": tool }));
        let objects = serde_json::Deserializer::from_str(&answer).into_iter::<Value>();
        assert_eq!(objects.map(Result::unwrap).count(), 1, "{tool}");
    }
}

/// An empty answer is shown as an error of the hook. All four hosts take it with exit code 0.
#[test]
fn with_nothing_to_say_nothing_is_said() {
    let lab = Lab::new();
    for host in Host::ALL {
        for event in ctxfold_hook::events(host) {
            let input = json!({ "session_id": "s", "hook_event_name": event }).to_string();
            assert_eq!(
                lab.run(&["hook", "--host", host.name()], &[], &input),
                "",
                "{event}"
            );
        }
    }
}

/// A sub-agent's compaction looks like the parent's, but for a transcript that is never made.
#[test]
fn a_sub_agents_compaction_does_not_reset_the_parent() {
    let lab = Lab::new();
    lab.bridge(30.0);
    assert!(!lab.tool().is_empty());
    let absent = json!({ "trigger": "auto", "source": "compact",
        "transcript_path": lab.path("proj/absent.jsonl") });
    for event in ["PreCompact", "PostCompact", "SessionStart"] {
        assert_eq!(lab.hook(event, &absent), "");
        assert!(lab.state("-warned.json").exists() && !lab.state("-compacted.json").exists());
    }
    let agent = json!({ "trigger": "auto", "agent_id": "a1" });
    assert_eq!(lab.hook("PreCompact", &agent), "");
    assert!(lab.state("-warned.json").exists() && lab.state(".json").exists());
    std::fs::write(lab.path("proj/there.jsonl"), "").unwrap();
    let parent = json!({ "trigger": "auto", "transcript_path": lab.path("proj/there.jsonl") });
    assert_eq!(lab.hook("PreCompact", &parent), "");
    assert!(!lab.state("-warned.json").exists() && lab.state("-compacted.json").exists());
}

/// No event tells of a compaction.
#[test]
fn a_rise_of_what_remains_is_a_compaction() {
    let config = Config::default();
    let warns = |effects: &[Effect]| effects.iter().any(|e| matches!(e, Effect::Warn(..)));
    let (state, effects) = step(State::default(), &tool_call(70, 1), &config, 1);
    assert!(warns(&effects));
    let (state, effects) = step(state, &tool_call(20, 2), &config, 2);
    assert!(effects.is_empty() && state == State::default());
    let (state, effects) = step(state, &tool_call(70, 3), &config, 3);
    assert!(warns(&effects), "a fresh cycle warns at once");
    // From very full to still low: a compaction that kept much.
    let (state, _) = step(state, &tool_call(95, 4), &config, 4);
    let (_, effects) = step(state, &tool_call(66, 5), &config, 5);
    assert!(warns(&effects));
    // The other events of a compaction do as well.
    let lab = Lab::new();
    for (event, more) in [
        ("SessionStart", json!({ "source": "compact" })),
        (
            "PostCompact",
            json!({ "trigger": "auto", "compact_summary": "" }),
        ),
    ] {
        lab.bridge(30.0);
        let _ = std::fs::remove_file(lab.state("-compacted.json"));
        assert!(!lab.tool().is_empty());
        assert_eq!(lab.hook(event, &more), "");
        assert!(!lab.state("-warned.json").exists() && lab.state("-compacted.json").exists());
    }
}

/// A session id with `../` leaves the folder. (Open pipes are tested where they are read.)
#[test]
fn a_session_id_cannot_leave_the_folder() {
    let lab = Lab::new();
    for id in ["../../x", "a/b", "..", "a\\b"] {
        assert!(SessionId::new(id).is_err());
        for event in ["PostToolUse", "PreCompact"] {
            assert_eq!(lab.hook(event, &json!({ "session_id": id })), "");
        }
    }
    assert_eq!(std::fs::read_dir(lab.path("tmp")).unwrap().count(), 0);
}

/// Every tool call costs. With enough room nothing is written, not even a lock.
#[test]
fn a_call_with_enough_room_writes_nothing() {
    let lab = Lab::new();
    lab.bridge(80.0);
    assert_eq!(lab.tool(), "");
    assert_eq!(std::fs::read_dir(lab.path("tmp")).unwrap().count(), 1);
}

/// PowerShell writes a byte-order mark.
#[test]
fn a_byte_order_mark_in_settings_is_read_and_kept() {
    let lab = Lab::new();
    let path = lab.path("proj/.planning/config.json");
    let text = "\u{feff}{\"hooks\":{\"context_warnings\":false}}";
    std::fs::write(&path, text).unwrap();
    lab.bridge(10.0);
    assert_eq!(lab.tool(), "");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    let marked = "\u{feff}{\"autoCompactEnabled\":false}";
    assert_eq!(Settings::merge([marked]).enabled, Some(false));
}

/// The first low reading at the end of a turn eats the warning.
#[test]
fn what_nobody_could_be_told_is_said_at_the_next_tool_call() {
    let lab = Lab::new();
    lab.bridge(30.0);
    assert_eq!(lab.hook("Stop", &json!({})), "");
    assert_eq!(lab.hook("SubagentStop", &json!({ "agent_id": "a1" })), "");
    assert!(!lab.tool().is_empty());
    for _ in 0..4 {
        assert_eq!(lab.hook("Stop", &json!({})), "", "only tool calls count");
        assert_eq!(lab.tool(), "");
    }
    assert!(!lab.tool().is_empty());
}

/// Tool calls of sub-agents warn them of their parent's context.
#[test]
fn sub_agents_neither_hear_nor_use_up_the_warning() {
    let lab = Lab::new();
    lab.bridge(30.0);
    for _ in 0..7 {
        let agent = json!({ "agent_id": "a1", "agent_type": "Explore", "tool_name": "Read" });
        assert_eq!(lab.hook("PostToolUse", &agent), "");
    }
    assert!(!lab.state("-warned.json").exists());
    assert!(!lab.tool().is_empty());
}
