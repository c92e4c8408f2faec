//! What fills a file.

use ctxfold_session_claude::{Scan, ScanOptions, scan};

fn of(text: &str) -> Scan {
    with(text, &ScanOptions::default())
}

fn with(text: &str, options: &ScanOptions) -> Scan {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    std::fs::write(&path, text).unwrap();
    let mut last = (0, 0);
    let scan = scan(&path, options, &mut |done, total| {
        assert!(last.0 <= done && done <= total);
        last = (done, total);
    })
    .unwrap();
    assert_eq!(last, (text.len() as u64, text.len() as u64));
    scan
}

fn answer(uuid: &str, message: &str, context: u64, output: u64, content: &str) -> String {
    format!(
        "{{\"type\":\"assistant\",\"uuid\":\"{uuid}\",\"sessionId\":\"3f2a91c0-0000-4000-8000-000000000001\",\"timestamp\":\"2026-12-01T00:00:01.000Z\",\"message\":{{\"id\":\"{message}\",\"usage\":{{\"input_tokens\":{context},\"output_tokens\":{output}}},\"content\":[{content}]}}}}\n"
    )
}

fn call(id: &str, tool: &str) -> String {
    format!("{{\"type\":\"tool_use\",\"id\":\"{id}\",\"name\":\"{tool}\",\"input\":{{}}}}")
}

fn result(id: &str, text: &str) -> String {
    format!(
        "{{\"type\":\"user\",\"uuid\":\"r\",\"message\":{{\"role\":\"user\",\"content\":[{{\"tool_use_id\":\"{id}\",\"type\":\"tool_result\",\"content\":\"{text}\"}}]}}}}\n"
    )
}

#[test]
fn c23_usage_counts_once_a_message_and_the_last_output_is_final() {
    let text = [
        answer("a", "m1", 100, 1, ""),
        answer("b", "m1", 100, 1, ""),
        answer("c", "m1", 100, 420, ""),
        answer("d", "m2", 600, 5, ""),
        // A newer version of an old row is no new answer.
        answer("a", "m1", 100, 420, ""),
    ];
    let scan = of(&text.concat());
    let turns: Vec<_> = scan
        .turns
        .iter()
        .map(|t| (t.line, t.context, t.output))
        .collect();
    assert_eq!(turns, [(1, 100, 420), (4, 600, 5)]);
}

#[test]
fn outputs_are_counted_by_tool_and_the_largest_named() {
    let text = [
        answer("a", "m1", 1, 1, &call("toolu_aaaaaa", "Read")),
        result("toolu_aaaaaa", &"x".repeat(50)),
        answer("b", "m2", 1, 1, &call("toolu_bbbbbb", "Bash")),
        result("toolu_bbbbbb", &"y".repeat(300)),
        answer("c", "m3", 1, 1, &call("toolu_cccccc", "Bash")),
        result("toolu_cccccc", "z"),
        result("toolu_lost00", "lost"),
    ];
    let options = {
        let mut options = ScanOptions::default();
        options.largest = 2;
        options
    };
    let scan = with(&text.concat(), &options);
    let tools: Vec<_> = scan
        .tools
        .iter()
        .map(|t| (t.tool.as_str(), t.calls, t.output_bytes))
        .collect();
    assert_eq!(tools, [("Bash", 2, 301), ("Read", 1, 50), ("?", 0, 4)]);
    assert_eq!(scan.largest.len(), 2);
    let first = &scan.largest[0];
    assert_eq!(first.address.as_deref(), Some("3f2a91c0:bbbbbb"));
    assert_eq!(
        (first.tool.as_str(), first.bytes, first.line),
        ("Bash", 300, 4)
    );
    assert_eq!(first.offset, text[..3].concat().len() as u64);
}

#[test]
fn compactions_tell_what_they_recorded() {
    let text = "{\"type\":\"mode\",\"sessionId\":\"s\"}\n{\"type\":\"system\",\"subtype\":\"compact_boundary\",\"uuid\":\"b\",\"timestamp\":\"2026-12-01T00:00:01.000Z\",\"compactMetadata\":{\"trigger\":\"auto\",\"preTokens\":900,\"postTokens\":90}}\n";
    let scan = of(text);
    assert_eq!(scan.compactions.len(), 1);
    let c = &scan.compactions[0];
    assert_eq!((c.line, c.before, c.after), (2, Some(900), Some(90)));
    assert_eq!(c.trigger.as_deref(), Some("auto"));
    let kinds: Vec<_> = scan.kinds.iter().map(|k| k.kind.as_str()).collect();
    assert_eq!(kinds, ["system/compact_boundary", "mode"]);
}

#[test]
fn every_number_of_threads_sees_the_same() {
    let mut text = String::new();
    for i in 0..3000 {
        let id = format!("toolu_{i:06}");
        text += &answer(
            &format!("a{i}"),
            &format!("m{}", i / 2),
            i,
            1,
            &call(&id, "Bash"),
        );
        text += &result(&id, &"o\\n".repeat(1 + (i as usize * 37) % 2000));
        if i % 500 == 0 {
            text += "garbage\n";
        }
    }
    let of_threads = |n| {
        let mut options = ScanOptions::default();
        options.threads = Some(n);
        with(&text, &options)
    };
    let one = of_threads(1);
    assert_eq!(one.rows, 6000);
    assert_eq!(one.findings.len(), 6);
    assert_eq!(one.turns.len(), 1500);
    assert_eq!(one, of_threads(2));
    assert_eq!(one, of_threads(4));
    // The oracle counts lines and bytes in the plain way.
    assert_eq!(one.lines, text.lines().count() as u64);
    let rows: usize = text
        .lines()
        .filter(|l| l.starts_with('{'))
        .map(str::len)
        .sum();
    assert_eq!(one.kinds.iter().map(|k| k.bytes).sum::<u64>(), rows as u64);
}

#[test]
fn x13_a_line_of_50_mb_is_survived() {
    let huge = result("toolu_aaaaaa", &"x".repeat(50 << 20));
    let text = [
        answer("a", "m1", 1, 1, &call("toolu_aaaaaa", "Read")),
        huge,
        answer("b", "m2", 7, 1, ""),
    ];
    let scan = of(&text.concat());
    assert_eq!(scan.largest[0].bytes, 50 << 20);
    assert_eq!(scan.turns[1].context, 7);
}

#[test]
fn rows_of_sub_agents_are_no_turns() {
    let side = answer("s", "m9", 5, 5, &call("toolu_zzzzzz", "Bash"))
        .replace("\"uuid\":\"s\"", "\"uuid\":\"s\",\"isSidechain\":true");
    let scan = of(&(answer("a", "m1", 1, 1, "") + &side));
    assert_eq!(scan.turns.len(), 1);
    assert_eq!(scan.tools, []);
    assert_eq!(scan.rows, 2);
}
