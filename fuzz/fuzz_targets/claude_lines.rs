//! Claude Code's lines: whatever the bytes are, printing the pieces gives them back, a row is one
//! JSON object, a part of the file reads as the whole does, and a check never panics.
#![no_main]

use std::cell::OnceCell;
use std::path::PathBuf;

use ctxfold_session_claude::{PieceKind, check, read_tail, split};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static FILE: OnceCell<PathBuf> = const { OnceCell::new() };
}

fuzz_target!(|bytes: &[u8]| {
    let (pieces, findings) = split(bytes, 0, Some(1));
    let printed: Vec<u8> = pieces.iter().flat_map(|p| p.bytes).copied().collect();
    assert_eq!(printed, bytes);
    let mut rows = Vec::new();
    for piece in &pieces {
        let from = piece.offset as usize;
        assert_eq!(&bytes[from..from + piece.bytes.len()], piece.bytes);
        let lines = bytes[..from].iter().filter(|b| **b == b'\n').count() as u64;
        assert_eq!(piece.line, Some(lines + 1));
        if piece.kind == PieceKind::Row {
            assert!(serde_json::from_slice::<serde::de::IgnoredAny>(piece.bytes).is_ok());
            rows.push(piece.bytes);
        }
    }
    for finding in &findings {
        assert!(finding.offset.is_some_and(|o| o < bytes.len() as u64));
    }

    // Each row on a line of its own is the file that `repair` writes: it has no findings, and the
    // same rows.
    let clean: Vec<u8> = rows.iter().flat_map(|r| [*r, b"\n"].concat()).collect();
    let (again, none) = split(&clean, 0, Some(1));
    assert!(none.is_empty());
    let again = again.iter().filter(|p| p.kind == PieceKind::Row);
    assert!(again.map(|p| p.bytes).eq(rows.iter().copied()));

    let path = FILE.with(|file| {
        file.get_or_init(|| {
            std::env::temp_dir().join(format!("fuzz-lines-{}.jsonl", std::process::id()))
        })
        .clone()
    });
    std::fs::write(&path, bytes).expect("a temporary file");
    let report = check(&path, &mut |_, _| {}).expect("damage is no error");
    assert_eq!(report.scan.rows, rows.len() as u64);
    assert_eq!(report.scan.bytes, bytes.len() as u64);
    read_tail(&path).expect("damage is no error");
});
