//! A whole session of Claude Code, from bytes to an append: what is prepared is read back, and the
//! conversation it leaves is the one that the plan said.
#![no_main]

use std::cell::{Cell, OnceCell};
use std::path::PathBuf;

use ctxfold_session_claude::{CommitOptions, Options, Session, Stamp};
use ctxfold_transcript::{Action, Content, Mode, Plan, Transcript};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static FILE: OnceCell<PathBuf> = const { OnceCell::new() };
}

fn stamp() -> Stamp {
    let count = Cell::new(0u128);
    Stamp::new(1_796_083_200_000, move || {
        count.set(count.get() + 1);
        // Spread over all digits, so that no two are alike where it matters.
        count
            .get()
            .wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    })
}

/// The words that were said, without outputs.
fn words(transcript: &Transcript) -> Vec<String> {
    let blocks = transcript.messages.iter().flat_map(|m| &m.blocks);
    blocks
        .filter_map(|b| match &b.content {
            Content::Text(text) => Some(text.clone()),
            _ => None,
        })
        .collect()
}

fuzz_target!(|bytes: &[u8]| {
    let path = FILE.with(|file| {
        file.get_or_init(|| {
            std::env::temp_dir().join(format!("fuzz-session-{}.jsonl", std::process::id()))
        })
        .clone()
    });
    std::fs::write(&path, bytes).expect("a temporary file");
    let Ok(session) = Session::open(&path, &Options::default()) else {
        return;
    };
    let transcript = session.transcript();
    let mut plan = Plan::keep_all(transcript, Mode::Mask);
    for call in 0..transcript.calls.len() {
        if transcript.calls[call].result.is_some() {
            plan.decide_call(call, Action::Truncate("[folded]".into()), "fuzzed");
        }
    }
    plan.measure(transcript);
    // A refusal is fine, and changes nothing.
    let Ok(append) = session.prepare(&plan, &stamp()) else {
        assert_eq!(std::fs::read(&path).expect("the file"), bytes);
        return;
    };
    let appended = append.bytes().to_vec();
    append
        .commit(&CommitOptions::default())
        .expect("nothing else writes here");
    let after = std::fs::read(&path).expect("the file");
    assert!(after.starts_with(bytes), "a byte of the file changed");
    assert!(after.ends_with(&appended));

    let folded = Session::open(&path, &Options::default()).expect("it was a session before");
    assert_eq!(
        words(folded.transcript()),
        words(transcript),
        "words changed"
    );
});
