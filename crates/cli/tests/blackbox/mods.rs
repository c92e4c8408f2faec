//! The machine interface of the plugins, without a client around it.

use std::path::Path;

use serde_json::{Value, json};

use crate::call::Lab;
use crate::readings::{answer, session};

/// A conversation of which local rules can fold most.
fn conversation(prompt: &str) -> String {
    let mut rows = Vec::new();
    for number in 0..8 {
        let id = format!("t{number}");
        let call = json!({ "tool_use_id": id, "tool": "Bash", "input": { "command": "seq 9" } });
        let result =
            json!({ "tool_use_id": id, "text": "0123456789 ".repeat(2000), "isError": false });
        rows.extend([
            json!({ "role": "user", "text": format!("{number}: {prompt}"), "toolUses": [] }),
            json!({ "role": "assistant", "text": "", "toolUses": [call] }),
            json!({ "role": "user", "text": "", "toolUses": [], "toolResults": [result] }),
            json!({ "role": "assistant", "text": "done", "toolUses": [] }),
        ]);
    }
    let options = json!({ "mode": "mask", "keepRecent": 2 });
    json!({ "v": 1, "trigger": "manual", "options": options, "messages": rows }).to_string()
}

#[test]
fn half_a_character_costs_no_conversation_its_compaction() {
    let lab = Lab::new();
    for (written, read) in [
        ("\\ud83d\\ude00", "a 😀 word"),
        ("\\ud83d", "a \u{fffd} word"),
        ("\\ude00\\ud83d", "a \u{fffd}\u{fffd} word"),
    ] {
        let input = conversation("a HALF word").replace("HALF", written);
        let text = lab.run(&["mod", "compact"], &[], &input);
        let reply: Value = serde_json::from_str(&text).unwrap();
        let messages = reply["messages"]
            .as_array()
            .unwrap_or_else(|| panic!("{text}"));
        let prompts: Vec<_> = messages
            .iter()
            .filter_map(|message| message["text"].as_str().filter(|t| t.contains(read)))
            .collect();
        assert_eq!(prompts.len(), 8, "{written}: {text}");
    }
}

#[test]
fn the_newest_of_what_file_and_mod_know_decides_whether_a_cache_is_cold() {
    const HOURS: u64 = 3 * 3600;
    for (answered, told, expected) in [
        (HOURS, None, true),
        (HOURS, Some(HOURS), true),
        (20, None, false),
        // Another process answered meanwhile.
        (20, Some(HOURS), false),
        // A request was cut before an answer was written.
        (HOURS, Some(20), false),
    ] {
        let lab = Lab::new();
        session(&lab, &[answer(116_900, answered)]);
        let mut args = vec!["mod", "idle", "--after", "15"];
        let told = told.map(|seconds: u64| seconds.to_string());
        if let Some(told) = &told {
            args.extend(["--idle-seconds", told]);
        }
        let id = [("CLAUDE_CODE_SESSION_ID", Path::new("s"))];
        let reply: Value = serde_json::from_str(&lab.run(&args, &id, "")).unwrap();
        assert_eq!(reply["idle"], expected, "{answered} {told:?}: {reply}");
    }
}
