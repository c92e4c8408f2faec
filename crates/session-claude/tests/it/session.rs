//! Whole sessions: what is read, what is written, what comes back. The fixtures are files of the
//! real client; what it sent for them is in the `.sent.txt` beside them.

use std::path::{Path, PathBuf};

use ctxfold_session_claude::{
    Address, CommitOptions, ErrorKind, FoldedPart, Options, Session, Stamp, folded, unfold,
};
use ctxfold_transcript::{Action, Author, Block, Content, Mode, Note, Part, Plan, Transcript};
use proptest::prelude::*;

fn fixtures() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut found: Vec<PathBuf> = ["v2.1.197", "v2.1.332"]
        .iter()
        .flat_map(|version| std::fs::read_dir(root.join(version)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
        .collect();
    found.sort();
    assert!(found.len() > 15, "{found:?}");
    found
}

fn open(path: &Path) -> Session {
    Session::open(path, &Options::default()).unwrap()
}

fn stamp(seed: u128) -> Stamp {
    let next = std::cell::Cell::new(seed);
    Stamp::new(1_796_100_000_000, move || {
        next.set(
            next.get()
                .wrapping_mul(0x5851_f42d_4c95_7f2d_1405_7b7e_f767_814f)
                .wrapping_add(1),
        );
        next.get()
    })
}

fn copy(path: &Path, dir: &Path) -> PathBuf {
    let out = dir.join(path.file_name().unwrap());
    std::fs::copy(path, &out).unwrap();
    out
}

/// What a model sees, without row numbers and addresses.
fn seen(transcript: &Transcript) -> Vec<(Author, Vec<String>)> {
    let block = |b: &Block| match &b.content {
        Content::Text(text) => format!("text {text}"),
        Content::ToolCall(call) => {
            let call = &transcript.calls[*call];
            format!("call {} {} {}", call.id, call.tool, call.input)
        }
        Content::ToolResult {
            call,
            parts,
            is_error,
            ..
        } => {
            let id = call.map(|c| transcript.calls[c].id.clone());
            format!("result {id:?} {is_error} {parts:?}")
        }
        other => format!("{other:?}"),
    };
    let mut out: Vec<(Author, Vec<String>)> = Vec::new();
    for message in &transcript.messages {
        let blocks = message.blocks.iter().map(block);
        match out.last_mut() {
            // Attachments in a row are one message or several; the model sees the same.
            Some((Author::Client, before)) if message.author == Author::Client => {
                before.extend(blocks);
            }
            _ => out.push((message.author, blocks.collect())),
        }
    }
    out
}

/// Assistant messages as kinds of blocks, and the number of results in each answer to them, from
/// a `.sent.txt`.
fn sent(text: &str, version: &str) -> Vec<String> {
    let section = text
        .split("# ")
        .find(|s| s.starts_with(version))
        .unwrap_or_else(|| panic!("no section {version}"));
    let mut out = Vec::new();
    for line in section.lines().skip(1).map(str::trim) {
        let Some((role, rest)) = line.split_once('[') else {
            continue;
        };
        let kinds: Vec<&str> = rest
            .trim_end_matches(']')
            .split(" | ")
            .map(|b| match b.split(':').next().unwrap_or_default() {
                "U" => "call",
                "R" => "result",
                start if start.starts_with("TH") || start.starts_with("RED") => "thinking",
                "t" => "text",
                other => other,
            })
            .collect();
        if role == "a" && !rest.contains("No response requested") {
            out.push(kinds.join(" "));
        } else if role == "u" && kinds.contains(&"result") {
            out.push(
                kinds
                    .iter()
                    .filter(|k| **k == "result")
                    .copied()
                    .collect::<Vec<_>>()
                    .join(" "),
            );
        }
    }
    out
}

fn ours(transcript: &Transcript) -> Vec<String> {
    let kind = |b: &Block| match b.content {
        Content::Thinking => "thinking",
        Content::ToolCall(_) => "call",
        Content::ToolResult { .. } => "result",
        _ => "text",
    };
    transcript
        .messages
        .iter()
        .filter(|m| matches!(m.author, Author::Assistant | Author::Tool))
        .filter(|m| !m.text().starts_with("No response requested"))
        .map(|m| m.blocks.iter().map(kind).collect::<Vec<_>>().join(" "))
        .collect()
}

#[test]
fn the_branch_is_the_one_that_the_client_sent() {
    let mut compared = 0;
    for path in fixtures() {
        let Ok(text) = std::fs::read_to_string(path.with_extension("sent.txt")) else {
            continue;
        };
        for version in ["2.1.332", "2.1.197"] {
            assert_eq!(
                ours(open(&path).transcript()),
                sent(&text, version),
                "{} {version}",
                path.display()
            );
            compared += 1;
        }
    }
    assert_eq!(compared, 12);
}

#[test]
fn known_traps_read_as_the_client_reads_them() {
    let find = |name: &str| {
        let path = fixtures()
            .into_iter()
            .find(|p| p.to_string_lossy().contains(name));
        open(&path.unwrap())
    };
    let users = |s: &Session| -> Vec<String> {
        s.transcript()
            .messages
            .iter()
            .filter(|m| m.author == Author::User)
            .map(|m| {
                m.text()
                    .split_whitespace()
                    .next()
                    .unwrap_or_default()
                    .to_owned()
            })
            .collect()
    };
    // A turn that a live client appended to the old leaf, with and without preserved rows.
    let with = find("03-same-as-02");
    assert!(
        with.transcript()
            .messages
            .iter()
            .any(|m| m.author == Author::Summary)
    );
    let without = find("04-same-as-01");
    assert!(
        without
            .transcript()
            .messages
            .iter()
            .all(|m| m.author != Author::Summary)
    );
    assert!(users(&without).len() > users(&with).len());
    // One unknown uuid, and the client drops the whole tail: told, and never compacted over.
    let lost = find("10-preservedMessages");
    let codes: Vec<&str> = lost.findings().iter().map(|f| f.code.as_str()).collect();
    assert!(codes.contains(&"claude/preserved-missing"), "{codes:?}");
    // A torn last line costs that line alone.
    let torn = find("11-torn");
    let codes: Vec<&str> = torn.findings().iter().map(|f| f.code.as_str()).collect();
    assert!(codes.contains(&"claude/torn-tail"), "{codes:?}");
}

/// A plan with what `choices` say about each call, as far as the plan's own rules allow it.
fn plan(transcript: &Transcript, mode: Mode, keep: usize, choices: &[u8]) -> Plan {
    let mut plan = Plan::keep_all(transcript, mode);
    plan.tail = transcript.messages.len().saturating_sub(keep);
    if mode == Mode::Summary {
        plan.summary = Some("What was done.".into());
        while plan.tail > 0 && plan.validate(transcript).is_err() {
            plan.tail -= 1;
        }
        plan.measure(transcript);
        return plan;
    }
    for index in 0..transcript.calls.len() {
        let before = plan.clone();
        let choice = choices
            .get(index % choices.len().max(1))
            .copied()
            .unwrap_or(0);
        match choice % 3 {
            1 => plan.decide_call(
                index,
                Action::Truncate(format!("cut \"{index}\"\n")),
                "test",
            ),
            2 => plan.decide_call(index, Action::Drop, "test"),
            _ => continue,
        }
        if plan.validate(transcript).is_err() {
            plan = before;
        }
    }
    for message in 0..plan.tail {
        if transcript.messages[message].calls().next().is_some() && choices.contains(&4) {
            let text = format!("note {message}");
            plan.notes.push(Note { message, text });
            if plan.validate(transcript).is_err() {
                plan.notes.pop();
            }
        }
    }
    plan.measure(transcript);
    plan
}

/// Writes the plan, reads the file again, and compares with the plan carried out as a value; then
/// takes it back. False where the plan gains nothing.
fn round(path: &Path, plan: &Plan, seed: u128) -> bool {
    let dir = tempfile::tempdir().unwrap();
    let file = copy(path, dir.path());
    let before = open(&file);
    let append = match before.prepare(plan, &stamp(seed)) {
        Ok(append) => append,
        Err(e) if e.kind() == ErrorKind::NothingToGain => return false,
        // A list with a lost row is refused, not repaired in passing.
        Err(e) => panic!("{}: {e}", path.display()),
    };
    let original = std::fs::read(&file).unwrap();
    append.commit(&CommitOptions::default()).unwrap();
    let written = std::fs::read(&file).unwrap();
    assert_eq!(written[..original.len()], original[..]);
    let after = open(&file);
    let expected = plan.apply(before.transcript());
    assert_eq!(
        seen(after.transcript()),
        seen(&expected),
        "{}",
        path.display()
    );
    // Folded outputs read back as they were.
    for (index, call) in before.transcript().calls.iter().enumerate() {
        let Some(parts) = before.transcript().result(index).map(|b| &b.content) else {
            continue;
        };
        let Content::ToolResult { parts, .. } = parts else {
            unreachable!()
        };
        if parts.iter().all(|p| matches!(p, Part::Text(_))) && !path_is_pruned(path) {
            let address: Address = call.address.parse().unwrap();
            let read = unfold(&file, &address).unwrap();
            let texts: Vec<Part> = read
                .parts
                .iter()
                .map(|p| match p {
                    FoldedPart::Text(text) => Part::Text(text.clone()),
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(&texts, parts);
        }
    }
    let undo = after.prepare_undo(&stamp(seed + 1)).unwrap();
    undo.commit(&CommitOptions::default()).unwrap();
    assert_eq!(
        seen(open(&file).transcript()),
        seen(before.transcript()),
        "undo of {}",
        path.display()
    );
    true
}

/// In these an output was cut before, so that what is read back is longer than what is sent.
fn path_is_pruned(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    name.starts_with('0')
}

#[test]
fn every_mode_on_every_fixture_is_read_back_as_planned_and_undone() {
    let mut done = 0;
    for path in fixtures() {
        let session = open(&path);
        if session
            .findings()
            .iter()
            .any(|f| f.code.as_str() == "claude/preserved-missing")
        {
            continue;
        }
        for (mode, choices) in [
            (Mode::Mask, &[1u8][..]),
            (Mode::Prune, &[2, 4]),
            (Mode::Prune, &[1, 2, 0, 4]),
            (Mode::Summary, &[]),
        ] {
            for keep in [1, 4] {
                let plan = plan(session.transcript(), mode, keep, choices);
                if plan.validate(session.transcript()).is_ok() {
                    done += usize::from(round(&path, &plan, 7));
                }
            }
        }
    }
    assert!(done > 40, "only {done} plans were worth it");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_plan_is_read_back_as_planned(
        choices in proptest::collection::vec(0u8..5, 1..9), keep in 0usize..6, fixture in 0usize..100, seed: u64
    ) {
        let all = fixtures();
        let path = &all[fixture % all.len()];
        let session = open(path);
        let lost = session.findings().iter().any(|f| f.code.as_str() == "claude/preserved-missing");
        let plan = plan(session.transcript(), Mode::Prune, keep, &choices);
        if !lost && plan.validate(session.transcript()).is_ok() {
            round(path, &plan, u128::from(seed));
        }
    }
}

fn fixture(name: &str, dir: &Path) -> PathBuf {
    let path = fixtures().into_iter().find(|p| p.ends_with(name)).unwrap();
    copy(&path, dir)
}

fn cut_all(session: &Session) -> Plan {
    plan(session.transcript(), Mode::Mask, 1, &[1])
}

#[test]
fn a_file_that_changed_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let file = fixture("v2.1.332/5turns-before-compact.jsonl", dir.path());
    let session = open(&file);
    let append = session.prepare(&cut_all(&session), &stamp(1)).unwrap();
    let copy = session.prepare(&cut_all(&session), &stamp(1)).unwrap();
    let mut changed = std::fs::read(&file).unwrap();
    changed.extend_from_slice(b"{\"type\":\"mode\"}\n");
    std::fs::write(&file, &changed).unwrap();
    let error = append.commit(&CommitOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed);
    assert!(error.is_refusal());
    let error = copy.write_copy(&dir.path().join("copy.jsonl")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed);
    assert_eq!(std::fs::read(&file).unwrap(), changed);
}

#[test]
fn what_gains_nothing_or_breaks_pairs_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = fixture("v2.1.332/5turns-before-compact.jsonl", dir.path());
    let session = open(&file);
    let keep = Plan::keep_all(session.transcript(), Mode::Mask);
    let error = session.prepare(&keep, &stamp(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NothingToGain);
    assert_eq!(
        session.prepare_undo(&stamp(1)).unwrap_err().kind(),
        ErrorKind::NothingToGain
    );
    // A summary whose tail begins between a call and its result.
    let mut split = Plan::keep_all(session.transcript(), Mode::Summary);
    split.summary = Some("s".into());
    split.tail = session.transcript().calls[0].at.message + 1;
    let error = session.prepare(&split, &stamp(1)).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::BrokenPairs | ErrorKind::BadPlan),
        "{error}"
    );
}

#[test]
fn what_is_no_session_is_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.jsonl");
    std::fs::write(&file, "{\"type\":\"mode\"}\nhello\n").unwrap();
    let error = Session::open(&file, &Options::default()).unwrap_err();
    assert!(error.is_not_a_session());
    assert_eq!(error.path(), Some(&*file));
    let error = Session::open(&dir.path().join("none"), &Options::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
}

#[test]
fn a_copy_leaves_the_session_alone() {
    let dir = tempfile::tempdir().unwrap();
    let file = fixture("v2.1.332/5turns-before-compact.jsonl", dir.path());
    let before = std::fs::read(&file).unwrap();
    let session = open(&file);
    let out = dir.path().join("out.jsonl");
    let append = session.prepare(&cut_all(&session), &stamp(1)).unwrap();
    let receipt = append.write_copy(&out).unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), before);
    assert_eq!(std::fs::metadata(&out).unwrap().len(), receipt.len_after);
    assert!(open(&out).transcript().bytes() < session.transcript().bytes());
    assert_eq!(append.write_copy(&out).unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn time_of_change_and_line_ends_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let file = fixture("v2.1.332/5turns-before-compact.jsonl", dir.path());
    let text = std::fs::read_to_string(&file)
        .unwrap()
        .replace('\n', "\r\n");
    std::fs::write(&file, text.trim_end()).unwrap();
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_hours(450_000);
    std::fs::File::options()
        .append(true)
        .open(&file)
        .unwrap()
        .set_modified(old)
        .unwrap();
    let session = open(&file);
    let append = session.prepare(&cut_all(&session), &stamp(1)).unwrap();
    assert!(append.bytes().starts_with(b"\r\n{"));
    assert!(append.bytes().ends_with(b"}\r\n"));
    append
        .commit(&CommitOptions::default().keep_mtime(true))
        .unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().modified().unwrap(), old);
    assert_eq!(open(&file).meta().live_rows, session.meta().live_rows + 1);
}

#[test]
fn folded_outputs_are_listed_with_the_addresses_that_read_them() {
    let dir = tempfile::tempdir().unwrap();
    let file = fixture("v2.1.332/5turns-before-compact.jsonl", dir.path());
    let list = |file: &Path| {
        let mut all = Vec::new();
        folded(file, &mut |f| {
            all.push(f);
            true
        })
        .unwrap();
        all
    };
    assert!(list(&file).is_empty());
    let session = open(&file);
    let plan = cut_all(&session);
    session
        .prepare(&plan, &stamp(1))
        .unwrap()
        .commit(&CommitOptions::default())
        .unwrap();
    let all = list(&file);
    assert_eq!(all.len(), plan.counts().0);
    for one in &all {
        assert_eq!(unfold(&file, &one.address.parse().unwrap()).unwrap(), *one);
    }
    assert!(all.iter().any(|f| f.text().lines().any(|l| l == "2999")));
    let session = open(&file);
    session
        .prepare_undo(&stamp(2))
        .unwrap()
        .commit(&CommitOptions::default())
        .unwrap();
    assert!(list(&file).is_empty());
    let error = unfold(&file, &"11111111:zzzzzz".parse().unwrap()).unwrap_err();
    assert!(error.is_not_found());
}

/// Rows far longer than any buffer, rows of the client's bookkeeping, and damage before, between
/// and behind: the conversation is the same.
#[test]
fn damage_and_bulk_around_the_conversation_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = fixture("v2.1.332/5turns-before-compact.jsonl", dir.path());
    let expected = seen(open(&file).transcript());
    let lines: Vec<Vec<u8>> = std::fs::read(&file)
        .unwrap()
        .split_inclusive(|b| *b == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    let long = format!(
        "{{\"type\":\"api-request-blob\",\"message\":\"{}\"}}\n",
        "x".repeat(9 << 20)
    );
    let junk: [&[u8]; 6] = [
        b"\xef\xbb\xbf\n",
        b"\0\0\0\n",
        b"{\"type\":\"user\",\"uui\n",
        b"not json\n",
        b"{\"type\":\"progress\",\"uuid\":\"p\",\"parentUuid\":null}\n",
        long.as_bytes(),
    ];
    let mut damaged = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        if i % 3 == 0 {
            damaged.extend_from_slice(junk[(i / 3) % junk.len()]);
        }
        damaged.extend_from_slice(line);
    }
    damaged.extend_from_slice(b"{\"type\":\"assistant\",\"torn");
    std::fs::write(&file, &damaged).unwrap();
    let session = open(&file);
    assert_eq!(seen(session.transcript()), expected);
    assert!(
        session
            .findings()
            .iter()
            .any(|f| f.code.as_str() == "claude/torn-tail")
    );
}

/// Identifiers that stand twice, and empty ones: each result stays with the call that its row hangs
/// on, and each address reads its own output.
#[test]
fn calls_with_one_identifier_are_not_mixed_up() {
    let row = |n: usize, kind: &str, content: &str| {
        let parent = if n == 0 {
            "null".to_owned()
        } else {
            format!("\"{:08}-0000-4000-8000-000000000000\"", n - 1)
        };
        format!(
            "{{\"parentUuid\":{parent},\"type\":\"{kind}\",\"uuid\":\"{n:08}-0000-4000-8000-000000000000\",\"sessionId\":\"3f2a91c0-0000-4000-8000-000000000001\",\"timestamp\":\"2026-12-01T00:00:{n:02}.000Z\",\"message\":{{\"id\":\"m{n}\",\"role\":\"{kind}\",\"content\":{content}}}}}\n"
        )
    };
    let call = |id: &str| {
        format!(r#"[{{"type":"tool_use","id":"{id}","name":"Bash","input":{{"command":"x"}}}}]"#)
    };
    let result = |id: &str, text: &str| {
        format!(
            r#"[{{"type":"tool_result","tool_use_id":"{id}","content":"{}"}}]"#,
            text.repeat(100)
        )
    };
    let ids = ["toolu_same01", "toolu_same01", "", ""];
    let mut file = row(0, "user", "\"go\"");
    for (i, id) in ids.iter().enumerate() {
        file += &row(2 * i + 1, "assistant", &call(id));
        file += &row(2 * i + 2, "user", &result(id, &format!("output-{i} ")));
    }
    file += &row(9, "assistant", r#"[{"type":"text","text":"end"}]"#);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    std::fs::write(&path, file).unwrap();
    let session = open(&path);
    let found = |s: &Session, code: &str| {
        s.findings()
            .iter()
            .filter(|f| f.code.as_str() == code)
            .count()
    };
    assert_eq!(found(&session, "claude/duplicate-tool-id"), 4);
    let transcript = session.transcript();
    for (i, call) in transcript.calls.iter().enumerate() {
        let text = transcript.result(i).unwrap().content.result_text().unwrap();
        assert!(text.starts_with(&format!("output-{i} ")), "{i}: {text:.20}");
        let read = unfold(&path, &call.address.parse().unwrap()).unwrap();
        assert_eq!(read.text(), text, "{}", call.address);
    }
    assert!(round(&path, &plan(transcript, Mode::Mask, 1, &[1]), 5));
}

/// Rows that the last compaction preserves are found however far back they stand, and nothing else
/// is kept on the way.
#[test]
fn preserved_rows_are_found_far_back() {
    let dir = tempfile::tempdir().unwrap();
    let file = fixture("v2.1.332/5turns-before-compact.jsonl", dir.path());
    let session = open(&file);
    let append = session.prepare(&cut_all(&session), &stamp(1)).unwrap();
    append.commit(&CommitOptions::default()).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let (old, boundary) = text.trim_end().rsplit_once('\n').unwrap();
    let filler = format!(
        "{{\"type\":\"progress\",\"uuid\":\"p\",\"parentUuid\":null,\"data\":\"{}\"}}\n",
        "y".repeat(4000)
    );
    std::fs::write(&file, format!("{old}\n{}{boundary}\n", filler.repeat(2000))).unwrap();
    let far = open(&file);
    assert_eq!(far.meta().live_rows, session.meta().live_rows + 1);
    assert!(far.meta().live_bytes > 8_000_000);
    assert!(far.transcript().bytes() < session.transcript().bytes());
}

/// Whatever the client's own compactions left behind is found, and each part is read back by its
/// address alone: prompts and answers as well as outputs.
#[test]
fn all_that_no_longer_reaches_the_model_is_found_and_read_back() {
    let mut said = 0;
    for path in fixtures() {
        let shown: Vec<String> = {
            let session = open(&path);
            let messages = session.transcript().messages.iter();
            messages
                .filter(|message| message.author == Author::User)
                .map(ctxfold_transcript::Message::text)
                .collect()
        };
        folded(&path, &mut |part| {
            let address: Address = part.address.parse().unwrap();
            let read = unfold(&path, &address).unwrap();
            assert_eq!(read, part, "{}", path.display());
            if part.tool == "user" {
                said += 1;
                assert!(
                    !shown.contains(&part.text()),
                    "{} reaches the model",
                    part.label
                );
            }
            true
        })
        .unwrap();
    }
    assert!(said > 10, "{said}");
}

/// Every text of a transcript has the address that reads it back.
#[test]
fn words_are_read_back_by_their_addresses() {
    for path in fixtures() {
        let session = open(&path);
        for message in &session.transcript().messages {
            if message.author != Author::User {
                continue;
            }
            for block in &message.blocks {
                let (Content::Text(text), Some(address)) = (&block.content, &block.address) else {
                    continue;
                };
                let read = unfold(&path, &address.parse().unwrap()).unwrap();
                assert!(read.text().contains(text), "{}: {text}", path.display());
            }
        }
    }
}
