//! No host ever sees an envelope that it rejects.

use std::collections::{BTreeMap, BTreeSet};

use ctxfold_hook::{Host, Part, Permission, Reply, accepts, events};
use serde_json::Value;

fn with(part: Part) -> Reply {
    let reply = Reply::new();
    match part {
        Part::Context => reply.context("c"),
        Part::Extra => reply.context("c").extra("severity", "warning"),
        Part::SystemMessage => reply.system_message("m"),
        Part::Halt => reply.halt("h"),
        Part::Block => reply.block("b"),
        Part::Permission => reply.permission(Permission::Deny, Some("no".into())),
        Part::UpdatedInput => reply
            .permission(Permission::Allow, None)
            .updated_input(r#"{"a":1}"#)
            .unwrap(),
        Part::UpdatedOutput => reply.updated_output(r#"{"stdout":""}"#).unwrap(),
        Part::UpdatedMcpOutput => reply.updated_mcp_output("[]").unwrap(),
        Part::Instructions => reply.instructions("keep the numbers"),
        Part::UpdatedRequest => reply.updated_request(r#"{"messages":[]}"#).unwrap(),
        other => panic!("no reply for {other:?}"),
    }
}

const PARTS: [Part; 11] = [
    Part::Context,
    Part::Extra,
    Part::SystemMessage,
    Part::Halt,
    Part::Block,
    Part::Permission,
    Part::UpdatedInput,
    Part::UpdatedOutput,
    Part::UpdatedMcpOutput,
    Part::Instructions,
    Part::UpdatedRequest,
];

#[test]
fn every_part_for_every_event_is_encoded_or_refused_as_the_table_says() {
    let mut encoded = 0;
    for host in Host::ALL {
        for event in events(host).chain(["Unheard", ""]) {
            for part in PARTS {
                // `Extra` alone never refuses: it is left out.
                let needed = if part == Part::Extra {
                    Part::Context
                } else {
                    part
                };
                let allowed = accepts(host, event).contains(&needed);
                let out = with(part).encode_for(host, event);
                assert_eq!(out.is_ok(), allowed, "{host} {event} {part:?}: {out:?}");
                let Ok(text) = out else { continue };
                assert!(!text.contains('\n'));
                if part == Part::Instructions {
                    assert_eq!(text, "keep the numbers");
                    continue;
                }
                let json: Value = serde_json::from_str(&text).unwrap();
                if let Some(specific) = json.get("hookSpecificOutput") {
                    assert_eq!(specific["hookEventName"], event);
                }
                let extra = json["hookSpecificOutput"].get("severity").is_some();
                let open = accepts(host, event).contains(&Part::Extra);
                assert_eq!(extra, part == Part::Extra && open, "{host} {event}");
                encoded += 1;
            }
        }
    }
    assert!(encoded > 140, "{encoded}");
}

#[test]
fn codex_sees_only_the_keys_of_its_closed_schemas() {
    #[derive(serde::Deserialize)]
    struct Keys {
        top: BTreeSet<String>,
        specific: Option<BTreeSet<String>>,
    }
    let schemas: BTreeMap<String, Keys> =
        serde_json::from_str(include_str!("../fixtures/codex-0.171.0-output-keys.json")).unwrap();
    let mut checked = 0;
    for event in events(Host::Codex) {
        for part in PARTS {
            let Ok(text) = with(part).encode_for(Host::Codex, event) else {
                continue;
            };
            let keys = schemas
                .get(event)
                .unwrap_or_else(|| panic!("{event} has no output schema"));
            let json: Value = serde_json::from_str(&text).unwrap();
            for (key, value) in json.as_object().unwrap() {
                assert!(keys.top.contains(key), "{event}: {key}");
                if key == "hookSpecificOutput" {
                    let known = keys
                        .specific
                        .as_ref()
                        .unwrap_or_else(|| panic!("{event}: {text}"));
                    for inner in value.as_object().unwrap().keys() {
                        assert!(known.contains(inner), "{event}: {inner}");
                    }
                }
            }
            checked += 1;
        }
    }
    assert!(checked > 40, "{checked}");
}

#[test]
fn silence_is_empty_for_every_host_and_event() {
    for host in Host::ALL {
        for event in events(host).chain(["Unheard"]) {
            assert_eq!(Reply::new().encode_for(host, event).unwrap(), "");
        }
    }
}

#[test]
fn claude_pre_compact_takes_no_specific_output() {
    assert!(
        Reply::new()
            .context("x")
            .encode_for(Host::Claude, "PreCompact")
            .unwrap_err()
            .is_not_accepted()
    );
    assert_eq!(
        Reply::new()
            .block("not now")
            .encode_for(Host::Claude, "PreCompact")
            .unwrap(),
        r#"{"decision":"block","reason":"not now"}"#
    );
    assert_eq!(
        Reply::new()
            .halt("not now")
            .encode_for(Host::Codex, "PreCompact")
            .unwrap(),
        r#"{"continue":false,"stopReason":"not now"}"#
    );
}

#[test]
fn the_same_wish_in_two_dialects() {
    let deny = Reply::new().permission(Permission::Deny, Some("no".into()));
    assert_eq!(
        deny.encode_for(Host::Claude, "PreToolUse").unwrap(),
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}"#
    );
    assert_eq!(
        deny.encode_for(Host::Gemini, "BeforeTool").unwrap(),
        r#"{"decision":"deny","reason":"no"}"#
    );
    assert_eq!(
        deny.encode_for(Host::Codex, "PermissionRequest").unwrap(),
        r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"no"}}}"#
    );
}
