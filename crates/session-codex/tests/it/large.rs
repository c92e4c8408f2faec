//! Cost follows the live part, not the file.

use std::fs::File;
use std::io::{BufWriter, Write};

use ctxfold_session_codex::{CommitOptions, Thread, fill};
use serde_json::json;

use crate::common::{bare, line, meta_line, stamp, summary};

/// Appends `count` compactions of `bytes` bytes of images each, and a live part of `turns` turns.
fn grow(path: &std::path::Path, count: u64, bytes: usize, turns: u64) {
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
