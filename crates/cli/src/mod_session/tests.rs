use ctxfold_transcript::{Action, Author, Mode, Outcome, Plan};
use serde_json::{Value, json};

use super::{read, write};

fn conversation() -> String {
    json!({"v": 1, "trigger": "manual", "instructions": " ", "options": {"mode": "mask", "keepRecent": 2}, "messages": [
        {"role": "user", "text": "count", "toolUses": [], "handle": "h0"},
        {"role": "assistant", "text": "", "toolUses": [], "handle": "h1"},
        {"role": "assistant", "text": "counting", "toolUses": [], "handle": "h2"},
        {"role": "assistant", "text": "", "toolUses": [{"tool_use_id": "toolu_01AAAAAAAAAAB1", "tool": "Bash", "input": {"command": "seq 9"}, "text": "x"}], "handle": "h3"},
        {"role": "assistant", "text": "", "toolUses": [{"tool_use_id": "toolu_01AAAAAAAAAAB2", "tool": "Read", "input": {"file_path": "/a", "n": 1.5}}], "handle": "h4"},
        {"role": "user", "text": "", "toolUses": [], "toolResults": [{"tool_use_id": "toolu_01AAAAAAAAAAB2", "text": "content", "isError": false}], "handle": "h5"},
        {"role": "user", "text": "", "toolUses": [], "toolResults": [{"tool_use_id": "toolu_01AAAAAAAAAAB1", "text": "Exit code 2\nno", "isError": true}], "handle": "h6"},
        {"role": "assistant", "text": "done", "toolUses": [], "handle": "h7"},
        {"role": "user", "text": "next", "toolUses": [], "handle": "h8"},
    ]})
    .to_string()
}

fn written(plan: &Plan, text: &str) -> Vec<Value> {
    let handed = read(text, "3f2a91c0-1111").unwrap();
    let rows = write(&handed, plan);
    serde_json::from_str(&serde_json::to_string(&rows).unwrap()).unwrap()
}

#[test]
fn rows_become_messages_and_calls() {
    let text = conversation();
    let handed = read(&text, "3f2a91c0-1111").unwrap();
    let t = &handed.transcript;
    let authors: Vec<_> = t.messages.iter().map(|m| m.author).collect();
    assert_eq!(
        authors,
        [
            Author::User,
            Author::Assistant,
            Author::Tool,
            Author::Assistant,
            Author::User
        ]
    );
    assert_eq!(t.calls[0].label, "Bash(seq 9)");
    assert_eq!(
        (t.calls[0].outcome, t.calls[1].outcome),
        (Outcome::Failure, Outcome::Success)
    );
    assert_eq!(t.calls[0].address, "3f2a91c0:AAAAAAAAB1");
    assert_eq!(handed.instructions, None);
}

#[test]
fn the_user_is_heard_in_results_beside_them_and_behind_commands() {
    let refusal = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). To tell you how to proceed, the user said:\nNever touch it.";
    let text = json!({"v": 1, "options": {"mode": "mask"}, "messages": [
        {"role": "user", "text": "<command-message>fix</command-message>\n<command-name>/fix</command-name>\n<command-args>the parser</command-args>", "toolUses": []},
        {"role": "assistant", "text": "", "toolUses": [{"tool_use_id": "t1", "tool": "Edit", "input": {"file_path": "/a"}}]},
        {"role": "user", "text": "and use tabs", "toolUses": [], "toolResults": [{"tool_use_id": "t1", "text": refusal, "isError": true}]},
        {"role": "user", "text": "<command-name>/model</command-name>\n<command-args>opus</command-args>", "toolUses": []},
        {"role": "user", "text": "<local-command-stdout>set</local-command-stdout>", "toolUses": []},
    ]})
    .to_string();
    let handed = read(&text, "3f2a91c0").unwrap();
    let t = &handed.transcript;
    let said = (0..t.messages.len()).flat_map(|message| t.said(message));
    let said: Vec<_> = said.map(|words| words.text.into_owned()).collect();
    assert_eq!(said, ["/fix the parser", "Never touch it.", "and use tabs"]);
    let rows = written(&Plan::keep_all(t, Mode::Mask), &text);
    assert_eq!(rows[2]["toolResults"][0]["text"], refusal);
    assert_eq!(
        (&rows[3]["role"], &rows[3]["text"]),
        (&json!("user"), &json!("and use tabs"))
    );
}

#[test]
fn nothing_decided_means_every_word_and_pair_is_there() {
    let text = conversation();
    let handed = read(&text, "3f2a91c0").unwrap();
    let rows = written(&Plan::keep_all(&handed.transcript, Mode::Mask), &text);
    assert_eq!(rows[0]["handle"], "h0");
    assert_eq!(rows[1]["text"], "counting");
    assert_eq!(rows[1]["toolUses"].as_array().unwrap().len(), 2);
    assert_eq!(rows[2]["toolResults"][0]["text"], "content");
    assert_eq!(rows[3]["toolResults"][0]["isError"], true);
    assert_eq!(rows.last().unwrap()["text"], "next");
    for row in &rows {
        let is_plain = row["role"] == "user" && row.get("toolResults").is_none();
        assert_eq!(row.get("handle").is_some(), is_plain, "{row}");
    }
}

#[test]
fn a_dropped_call_takes_its_result_and_joins_the_answers() {
    let text = conversation();
    let handed = read(&text, "3f2a91c0").unwrap();
    let mut plan = Plan::keep_all(&handed.transcript, Mode::Prune);
    plan.decide_call(0, Action::Drop, "model");
    plan.decide_call(1, Action::Drop, "model");
    let rows = written(&plan, &text);
    let roles: Vec<_> = rows.iter().map(|r| r["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert_eq!(rows[1]["text"], "counting\n\ndone");
}

#[test]
fn a_summary_stands_before_the_tail() {
    let text = conversation();
    let handed = read(&text, "3f2a91c0").unwrap();
    let mut plan = Plan::keep_all(&handed.transcript, Mode::Summary);
    plan.summary = Some("SUM".into());
    plan.tail = 3;
    let rows = written(&plan, &text);
    let texts: Vec<_> = rows.iter().map(|r| r["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["SUM", "done", "next"]);
}

#[test]
fn another_version_is_refused() {
    let text = conversation().replacen("\"v\":1", "\"v\":2", 1);
    assert!(
        read(&text, "s")
            .unwrap_err()
            .to_string()
            .contains("version 2")
    );
    assert!(read("{", "s").is_err());
}

#[test]
fn a_call_s_input_stays_as_it_is_written() {
    let text = conversation().replace("1.5", "1.50");
    let handed = read(&text, "3f2a91c0").unwrap();
    let rows = write(&handed, &Plan::keep_all(&handed.transcript, Mode::Mask));
    assert!(
        serde_json::to_string(&rows)
            .unwrap()
            .contains(r#""n":1.50"#)
    );
}
