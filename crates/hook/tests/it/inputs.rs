//! Every recorded input is read, and nothing of it is lost.

use ctxfold_hook::{Event, Host, Input, Name, events};

const CLAUDE: &str = include_str!("../fixtures/claude-2.1.332.jsonl");
const CODEX: &str = include_str!("../fixtures/codex-0.171.0.jsonl");
const GEMINI: &str = include_str!("../fixtures/gemini-0.61.0.jsonl");

fn recorded() -> impl Iterator<Item = (Host, &'static str)> {
    let lines = |host, text: &'static str| text.lines().map(move |line| (host, line));
    lines(Host::Claude, CLAUDE)
        .chain(lines(Host::Codex, CODEX))
        .chain(lines(Host::Gemini, GEMINI))
}

fn find(host: Host, name: &str) -> Input {
    recorded()
        .filter(|(h, _)| *h == host)
        .map(|(_, line)| Input::parse(host, line).unwrap())
        .find(|input| input.event_name() == Some(name))
        .unwrap_or_else(|| panic!("no recorded {name} of {host}"))
}

#[test]
fn every_recorded_input_is_typed_and_lossless() {
    let mut seen = 0;
    for (host, line) in recorded() {
        let input = Input::parse(host, line).unwrap();
        assert_eq!(input.payload.to_string(), line);
        let name = input.event_name().unwrap();
        assert!(
            events(host).any(|known| known == name),
            "{host} {name} is in no table"
        );
        if name != "BeforeToolSelection" {
            assert_ne!(input.event, Event::Other, "{host} {name}");
        }
        assert!(input.session_id.is_some() && input.cwd.is_some());
        assert!(input.transcript_path.is_some());
        seen += 1;
    }
    assert!(seen > 45, "{seen} inputs");
}

#[test]
fn twins_of_two_hosts_are_one_event() {
    for (host, name) in [
        (Host::Claude, "PostToolUse"),
        (Host::Codex, "PostToolUse"),
        (Host::Gemini, "AfterTool"),
    ] {
        let Event::AfterTool(call) = find(host, name).event else {
            panic!("{host}")
        };
        assert!(call.tool.argument("command").is_some());
        assert!(call.response.is_some());
    }
    let Event::AfterTool(call) = find(Host::Codex, "PostToolUse").event else {
        panic!()
    };
    assert_eq!(call.response.unwrap().string().unwrap(), "hi\n");
}

#[test]
fn the_fields_of_compactions_and_batches_are_read() {
    let Event::BeforeCompaction(before) = find(Host::Claude, "PreCompact").event else {
        panic!()
    };
    assert_eq!(before.trigger.as_deref(), Some("manual"));
    assert_eq!(before.instructions.as_deref(), Some("keep the numbers"));
    let Event::AfterCompaction(after) = find(Host::Claude, "PostCompact").event else {
        panic!()
    };
    assert!(after.summary.unwrap().contains("MOCK-SUMMARY"));
    let Event::ToolBatch(calls) = find(Host::Claude, "PostToolBatch").event else {
        panic!()
    };
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[1].tool.argument("command").unwrap(), "exit 4");
    let Event::ToolFailed(failed) = find(Host::Claude, "PostToolUseFailure").event else {
        panic!()
    };
    assert_eq!(failed.error.as_deref(), Some("Exit code 4"));
    let Event::AfterModel(call) = find(Host::Codex, "PostModelRequest").event else {
        panic!()
    };
    assert!(call.usage.unwrap().member("total_tokens").is_some());
}

#[test]
fn a_sub_agent_is_told_from_its_parent() {
    let stop = find(Host::Claude, "SubagentStop");
    assert!(stop.agent_id.is_some());
    let Event::SubagentStop(agent) = stop.event else {
        panic!()
    };
    assert!(agent.transcript_path.unwrap().contains("/subagents/"));
    assert_eq!(find(Host::Claude, "PostToolUse").agent_id, None);
}

#[test]
fn unknown_events_and_fields_of_any_type_are_data() {
    let text = r#"{"session_id":7,"hook_event_name":"  Brand New\n","cwd":[],"x":{"y":1e999}}"#;
    let input = Input::parse(Host::Claude, text).unwrap();
    assert_eq!(input.name, Name::Known("Brand New".into()));
    assert_eq!(input.event, Event::Other);
    assert_eq!((input.session_id, input.cwd), (None, None));
    assert_eq!(input.payload.raw("x").unwrap().text(), r#"{"y":1e999}"#);
    for (text, name) in [
        ("{}", Name::Missing),
        (r#"{"hook_event_name":null}"#, Name::Missing),
        (r#"{"hook_event_name":"  "}"#, Name::Missing),
        (r#"{"hook_event_name":["Stop"]}"#, Name::Malformed),
    ] {
        assert_eq!(Input::parse(Host::Claude, text).unwrap().name, name);
    }
}

#[test]
fn a_missing_name_can_be_supplied_and_a_present_one_wins() {
    let late = Input::parse(Host::Gemini, r#"{"tool_name":"x"}"#).unwrap();
    assert!(matches!(
        late.with_default_name("AfterTool").event,
        Event::AfterTool(_)
    ));
    let named = Input::parse(Host::Gemini, r#"{"hook_event_name":"SessionEnd"}"#).unwrap();
    assert_eq!(
        named.with_default_name("AfterTool").event_name(),
        Some("SessionEnd")
    );
}
