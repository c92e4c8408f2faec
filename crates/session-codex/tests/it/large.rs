//! Cost follows the live part, not the file.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use ctxfold_session_codex::{CommitOptions, ErrorKind, Thread, check, fill, glance};
use serde_json::json;

use crate::common::{NOW_MS, bare, line, meta_line, stamp, summary};

/// Appends `count` compactions of `bytes` bytes of images each, and a live part of `turns` turns.
fn grow(path: &Path, count: u64, bytes: usize, turns: u64) {
    let file = File::options().append(true).open(path).unwrap();
    let mut out = BufWriter::new(file);
    let image = format!("data:image/png;base64,{}", "A".repeat(bytes / 8));
    let message = json!({"type": "message", "role": "user",
        "content": [{"type": "input_image", "image_url": image}]});
    let history: Vec<_> = (0..8).map(|_| message.clone()).collect();
    let payload = json!({"message": "m", "replacement_history": history, "window_number": 1});
    let payload = payload.to_string();
    let mut ordinal = 1;
    for _ in 0..count {
        writeln!(
            out,
            "{{\"timestamp\":\"2026-12-01T00:00:00.000Z\",\"ordinal\":{ordinal},\"type\":\"compacted\",\"payload\":{payload}}}"
        )
        .unwrap();
        ordinal += 1;
    }
    for _ in 0..turns {
        for role in ["user", "assistant"] {
            let kind = if role == "user" {
                "input_text"
            } else {
                "output_text"
            };
            let item = json!({"type": "message", "role": role,
                "content": [{"type": kind, "text": "z".repeat(2000)}]});
            out.write_all(line(ordinal, "response_item", &item).as_bytes())
                .unwrap();
            ordinal += 1;
        }
    }
    // What the test writes must not be counted as what the append brings to the disk.
    out.into_inner().unwrap().sync_all().unwrap();
}

/// 24 compactions here; the example `large_rollout` has 500 and measures memory.
#[test]
fn only_the_live_part_is_read() {
    let (_folder, store, path) = bare(&[meta_line()]);
    grow(&path, 24, 1_000_000, 5);
    let thread = Thread::open(&store, &path).unwrap();
    assert!(
        thread.meta().live_bytes < 1_100_000,
        "{}",
        thread.meta().live_bytes
    );
    let append = thread
        .prepare(&summary(thread.transcript(), "S"), &stamp())
        .unwrap();
    assert!(append.bytes().len() < 10_000);
    append.commit(&CommitOptions::default()).unwrap();
    assert_eq!(fill(&path).unwrap(), None);
}

const HUGE: i64 = 257 * 1024 * 1024;

/// Appends `before`, a hole that reads as zeros, and `after`.
fn hole(path: &Path, before: &str, after: &str) {
    let mut file = File::options().write(true).open(path).unwrap();
    file.seek(SeekFrom::End(0)).unwrap();
    file.write_all(before.as_bytes()).unwrap();
    let end = file.seek(SeekFrom::Current(HUGE)).unwrap();
    if after.is_empty() {
        file.set_len(end).unwrap();
    } else {
        file.write_all(after.as_bytes()).unwrap();
    }
}

/// A run of zeros, as a crash of the machine leaves, is a bad line like any other.
#[test]
fn a_run_of_zeros_is_passed_over() {
    let (_folder, store, path) = bare(&[meta_line()]);
    grow(&path, 0, 0, 5);
    hole(&path, "", "");
    let found = check(&store, &path).unwrap();
    for code in ["bad-line", "torn-tail", "line-too-long"] {
        // Longer than any line that is held, so it is told as that.
        let told = found.iter().any(|f| f.code == code);
        assert_eq!(told, code == "line-too-long", "{code}: {found:?}");
    }
    glance(&store, &path).unwrap();
}

/// A line that is too long to be held is told; where it is part of the conversation nothing is
/// written.
#[test]
fn a_line_that_is_too_long_is_refused() {
    let open = line(1, "response_item", &json!("")).replace("\"\"}\n", "\"");
    let (_folder, store, path) = bare(&[meta_line()]);
    hole(&path, &open, "\"}\n");
    grow(&path, 0, 0, 5);
    let thread = Thread::open(&store, &path).unwrap();
    assert_eq!(thread.transcript().messages.len(), 10);
    let error = thread.writable(NOW_MS).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLong, "{error}");
    assert!(error.is_refusal() && error.hint().is_some());
    let found = check(&store, &path).unwrap();
    assert!(found.iter().any(|f| f.code == "line-too-long"), "{found:?}");
    // Before the live part it does not matter.
    grow(&path, 1, 800, 5);
    Thread::open(&store, &path)
        .unwrap()
        .writable(NOW_MS)
        .unwrap();
}

/// A compressed rollout that unpacks to far more than it takes: nobody runs out of memory.
#[test]
fn a_bomb_is_not_taken_into_memory() {
    let (folder, store, path) = bare(&[meta_line()]);
    let packed = path.with_extension("jsonl.zst");
    let mut encoder = zstd::Encoder::new(File::create(&packed).unwrap(), 1).unwrap();
    encoder.write_all(meta_line().as_bytes()).unwrap();
    let zeros = vec![0; 1 << 20];
    for _ in 0..520 {
        encoder.write_all(&zeros).unwrap();
    }
    encoder.finish().unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(std::fs::metadata(&packed).unwrap().len() < 1 << 20);
    let error = Thread::open(&store, &packed).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLong, "{error}");
    drop(folder);
}
