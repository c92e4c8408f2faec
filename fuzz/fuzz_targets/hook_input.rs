//! A host's standard input, in whatever pieces it arrives: no panic, and the same text and event.
#![no_main]

use ctxfold_hook::{Host, Input, Sieve};
use libfuzzer_sys::fuzz_target;

const HOSTS: [Host; 4] = [Host::Claude, Host::Codex, Host::Gemini, Host::Antigravity];

fuzz_target!(|data: &[u8]| {
    let Some((&head, stdin)) = data.split_first() else {
        return;
    };
    let host = HOSTS[usize::from(head % 4)];
    let size = usize::from(head / 4) + 1;
    let whole = sift(stdin.chunks(stdin.len().max(1)));
    let pieces = sift(stdin.chunks(size));
    assert_eq!(
        whole, pieces,
        "the pieces in which input arrives change nothing"
    );
    if let Some(Ok(input)) = whole.map(|text| Input::parse(host, &text)) {
        // Whatever was read can be looked at.
        let _ = format!("{input:?}");
    }
});

/// The text that a sieve keeps, or nothing where it refuses the input.
fn sift<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Option<String> {
    let mut sieve = Sieve::new(1 << 20);
    for piece in pieces {
        sieve.push(piece).ok()?;
    }
    sieve.finish().ok()
}
