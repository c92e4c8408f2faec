//! A whole rollout of Codex, from bytes to an append and back: what is prepared is read again, and
//! the conversation it leaves is the one that the plan said; every folded output is within reach;
//! what the ends tell agrees with the whole.
#![no_main]

use std::cell::{Cell, OnceCell};
use std::path::PathBuf;

use ctxfold_session_codex::{
    CommitOptions, Finding, Stamp, Store, Thread, check, fill, folded, glance, scan, unfold,
};
use ctxfold_transcript::{Action, Content, Mode, Plan, Transcript};
use libfuzzer_sys::fuzz_target;

const ID: &str = "01a22eb2-072d-76f3-a271-8cf7acd69144";

thread_local! {
    static HOME: OnceCell<PathBuf> = const { OnceCell::new() };
}

fn home() -> PathBuf {
    HOME.with(|home| {
        home.get_or_init(|| {
            let home = std::env::temp_dir().join(format!("fuzz-rollout-{}", std::process::id()));
            std::fs::create_dir_all(home.join("sessions/2026/12/01")).expect("a temporary folder");
            home
        })
        .clone()
    })
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

/// The words that were said, without outputs and without what the client writes anew.
fn words(transcript: &Transcript) -> Vec<String> {
    use ctxfold_transcript::Author;
    let said = transcript
        .messages
        .iter()
        .filter(|m| m.author != Author::Client);
    let blocks = said.flat_map(|m| &m.blocks);
    blocks
        .filter_map(|b| match &b.content {
            Content::Text(text) => Some(text.clone()),
            _ => None,
        })
        .collect()
}

fn has(findings: &[Finding], code: &str) -> bool {
    findings.iter().any(|f| f.code == code)
}

fuzz_target!(|bytes: &[u8]| {
    let home = home();
    let store = Store::new(&home);
    let name = format!("sessions/2026/12/01/rollout-2026-12-01T00-00-00-{ID}.jsonl");
    let path = home.join(name);
    std::fs::write(&path, bytes).expect("a temporary file");

    let whole = check(&store, &path);
    let ends = glance(&store, &path);
    let scanned = scan(&path);
    let _ = fill(&path);
    let Ok(thread) = Thread::open(&store, &path) else {
        return;
    };
    let (Ok(whole), Ok(ends), Ok(scanned)) = (whole, ends, scanned) else {
        panic!("a thread that opens can be gone through");
    };
    assert_eq!(has(&whole, "torn-tail"), has(&ends, "torn-tail"));
    assert_eq!(scanned.lines.bytes, bytes.len() as u64);

    let transcript = thread.transcript();
    let mut plan = Plan::keep_all(transcript, Mode::Mask);
    for call in 0..transcript.calls.len() {
        if transcript.calls[call].result.is_some() {
            plan.decide_call(call, Action::Truncate("[folded]".into()), "fuzzed");
        }
    }
    plan.measure(transcript);
    // A refusal is fine, and changes nothing.
    let Ok(append) = thread.prepare(&plan, &stamp()) else {
        assert_eq!(std::fs::read(&path).expect("the file"), bytes);
        return;
    };
    let appended = append.bytes().to_vec();
    if append.commit(&CommitOptions::default()).is_err() {
        assert_eq!(std::fs::read(&path).expect("the file"), bytes);
        return;
    }
    let after = std::fs::read(&path).expect("the file");
    assert!(after.starts_with(bytes), "a byte of the file changed");
    assert!(after.ends_with(&appended));

    let again = Thread::open(&store, &path).expect("it was a thread before");
    assert_eq!(
        words(again.transcript()),
        words(transcript),
        "words changed"
    );
    folded(&store, &path, &mut |output| {
        let address = output.address.parse().expect("an address of ours");
        // Calls may share an identifier in damaged files: one of them is found, or it is said that
        // there are several.
        let _ = unfold(&store, &path, &address);
        true
    })
    .expect("folded outputs can be gone through");
});
