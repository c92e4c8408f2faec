//! The policy over pauses: a table over the whole domain, against an oracle written as one rule a
//! line, and what it never does.

use ctxfold_compactor::idle::{
    CacheLife, IdleFacts, IdleSettings, MinSize, Price, Reason, RequestTokens, Verdict, decide,
    shorten,
};
use ctxfold_transcript::{Action, Author, Builder};
use proptest::prelude::*;

use crate::generate::{call, edit, run, shown, talk};

const MINUTE: i64 = 60_000;

fn facts(idle_minutes: i64) -> IdleFacts {
    IdleFacts {
        now_ms: 1_000 * MINUTE,
        last_activity_ms: Some((1_000 - idle_minutes) * MINUTE),
        last_compaction_ms: None,
        live_bytes: 100 * 1024,
        live_tokens: 30_000,
        tokens_after: Some(5_000),
        cache: CacheLife::Known(5 * 60_000),
        is_live: false,
    }
}

fn on() -> IdleSettings {
    IdleSettings {
        enabled: true,
        ..IdleSettings::default()
    }
}

#[test]
fn the_defaults_are_the_documented_ones() {
    let settings = IdleSettings::default();
    assert!(!settings.enabled);
    assert_eq!(settings.after_ms, 15 * 60_000);
    assert_eq!(settings.min, MinSize::Bytes(65_536));
    assert_eq!(
        decide(&facts(600), &settings).verdict,
        Verdict::Leave(Reason::Off)
    );
}

#[test]
fn the_whole_domain() {
    let (mut rows, mut compacted) = (0, 0);
    for enabled in [false, true] {
        for is_live in [false, true] {
            for idle in [
                None,
                Some(-1),
                Some(0),
                Some(4),
                Some(5),
                Some(14),
                Some(15),
                Some(59),
                Some(60),
                Some(600),
            ] {
                for cache in [
                    CacheLife::Known(5 * 60_000),
                    CacheLife::Known(30 * 60_000),
                    CacheLife::Known(60 * 60_000),
                    CacheLife::Unknown,
                ] {
                    for compacted_before in [None, Some(1), Some(0), Some(-1)] {
                        for (bytes, tokens) in [
                            (65_535, 9_999),
                            (65_536, 10_000),
                            (1 << 30, 1 << 28),
                            (0, 0),
                        ] {
                            for after in [None, Some(0u64), Some(7_500), Some(7_501), Some(1 << 40)]
                            {
                                for min in [MinSize::Bytes(65_536), MinSize::Tokens(10_000)] {
                                    let f = IdleFacts {
                                        last_activity_ms: idle.map(|m| (1_000 - m) * MINUTE),
                                        last_compaction_ms: idle.and_then(|m| {
                                            compacted_before.map(|c| (1_000 - m - c) * MINUTE)
                                        }),
                                        live_bytes: bytes,
                                        live_tokens: tokens,
                                        tokens_after: after,
                                        cache,
                                        is_live,
                                        ..facts(0)
                                    };
                                    let s = IdleSettings {
                                        enabled,
                                        min,
                                        ..on()
                                    };
                                    let verdict = decide(&f, &s).verdict;
                                    assert_eq!(
                                        verdict == Verdict::Compact,
                                        oracle(&f, &s),
                                        "{f:?} {s:?} {verdict:?}"
                                    );
                                    rows += 1;
                                    compacted += usize::from(verdict == Verdict::Compact);
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    println!("{rows} rows, {compacted} of them compact");
    assert!(compacted > 100 && compacted < rows / 4);
}

/// Every condition by itself, in whole numbers.
fn oracle(f: &IdleFacts, s: &IdleSettings) -> bool {
    let Some(last) = f.last_activity_ms else {
        return false;
    };
    let cache = match f.cache {
        CacheLife::Known(ms) => ms,
        CacheLife::Unknown => 3_600_000,
    };
    let cold = i128::from(f.now_ms) >= i128::from(last) + i128::from(cache);
    let long = i128::from(f.now_ms) >= i128::from(last) + i128::from(s.after_ms);
    let first = f.last_compaction_ms.is_none_or(|at| at < last);
    let big = match s.min {
        MinSize::Bytes(n) => f.live_bytes >= n,
        MinSize::Tokens(n) => f.live_tokens >= n,
    };
    let gain = f.tokens_after.is_none_or(|after| {
        f.live_tokens > 0 && u128::from(after) * 4 <= u128::from(f.live_tokens) * 3
    });
    s.enabled && !f.is_live && cold && long && first && big && gain && f.now_ms >= last
}

#[test]
fn each_reason_is_given_and_reads_well() {
    let leave = |f: IdleFacts| match decide(&f, &on()).verdict {
        Verdict::Leave(reason) => reason.to_string(),
        Verdict::Compact => "compact".to_owned(),
    };
    let base = facts(120);
    assert_eq!(leave(base), "compact");
    let table = [
        (
            IdleFacts {
                is_live: true,
                ..base
            },
            "a process has the conversation open",
        ),
        (
            IdleFacts {
                last_activity_ms: None,
                ..base
            },
            "the conversation has no dated activity",
        ),
        (facts(-3), "the newest activity lies in the future"),
        (
            IdleFacts {
                last_compaction_ms: Some(base.now_ms - MINUTE),
                ..base
            },
            "compacted in this pause already",
        ),
        (
            facts(3),
            "the provider's cache is warm for 2 min more; breaking it costs more than it saves",
        ),
        (facts(10), "idle for too short a time: 5 min more"),
        (
            IdleFacts {
                live_bytes: 10,
                ..base
            },
            "the conversation is too small",
        ),
        (
            IdleFacts {
                tokens_after: Some(25_000),
                ..base
            },
            "too little to gain: 16% fewer tokens",
        ),
    ];
    for (facts, reason) in table {
        assert_eq!(leave(facts), reason);
    }
}

#[test]
fn the_estimate_tells_cached_from_uncached() {
    let warm = decide(&facts(3), &on()).cost;
    let cold = decide(&facts(120), &on()).cost;
    assert_eq!(
        warm.without,
        RequestTokens {
            cached: 30_000,
            uncached: 0
        }
    );
    assert_eq!(
        cold.without,
        RequestTokens {
            cached: 0,
            uncached: 30_000
        }
    );
    assert_eq!(
        cold.with,
        Some(RequestTokens {
            cached: 0,
            uncached: 5_000
        })
    );
    // What a compaction left a moment ago was never sent.
    let compacted = IdleFacts {
        last_compaction_ms: Some(1_000 * MINUTE),
        ..facts(3)
    };
    assert_eq!(decide(&compacted, &on()).cost.without, cold.without);
    let went_on = IdleFacts {
        last_compaction_ms: Some(990 * MINUTE),
        ..facts(3)
    };
    assert_eq!(decide(&went_on, &on()).cost.without, warm.without);
    let price = Price {
        cached: 0.5,
        uncached: 6.25,
    };
    assert!((cold.without.cost(price) - 0.1875).abs() < 1e-9);
    let saved = cold
        .with
        .map(|with| cold.without.cost(price) - with.cost(price));
    assert!(saved.is_some_and(|saved| saved > 0.15));
    let broken = warm
        .with
        .map(|with| with.cost(price) - warm.without.cost(price));
    assert!(
        broken.is_some_and(|lost| lost > 0.0),
        "a warm cache broken costs more"
    );
}

proptest! {
    #[test]
    fn never_twice_without_activity_never_warm_never_small(
        steps in proptest::collection::vec((0i64..90, 0u8..3), 1..40),
        cache in 1u64..70, after in 0u64..40, bytes in 0u64..200_000,
    ) {
        let settings = IdleSettings { after_ms: after * 60_000, ..on() };
        let (mut now, mut last, mut compaction) = (0, 0, None);
        let mut since_activity = 0;
        for (minutes, what) in steps {
            now += minutes * MINUTE;
            if what == 0 {
                (last, since_activity) = (now, 0);
                continue;
            }
            let facts = IdleFacts {
                now_ms: now, last_activity_ms: Some(last), last_compaction_ms: compaction,
                live_bytes: bytes, cache: CacheLife::Known(cache * 60_000), ..facts(0)
            };
            if decide(&facts, &settings).verdict == Verdict::Compact {
                since_activity += 1;
                prop_assert_eq!(since_activity, 1);
                prop_assert!((now - last).unsigned_abs() >= cache * 60_000);
                prop_assert!(bytes >= 65_536);
                compaction = Some(now);
            }
        }
    }
}

#[test]
fn rules_alone_shorten_a_paused_conversation() {
    let mut b = Builder::new();
    b.message(Author::User).text("go");
    for n in 0..5 {
        b.message(Author::Assistant).text(&format!("I will do {n}"));
        b.message(Author::User).text(&format!("yes, {n}"));
        call(
            &mut b,
            &format!("r{n}"),
            run("x"),
            &"out\n".repeat(500),
            false,
        );
        call(&mut b, &format!("e{n}"), edit("src/a.rs"), "done", false);
        b.message(Author::User).text(&format!("thanks {n}"));
    }
    talk(&mut b, 6);
    let mut t = b.build();
    for call in t.calls.iter_mut().filter(|c| c.id.starts_with('e')) {
        call.input = "new text of the file\n".repeat(200);
        let block = &mut t.messages[call.at.message].blocks[call.at.block];
        block.bytes += 4_400;
    }
    let plan = shorten(&t, 6, 0.25).unwrap();
    assert_eq!(plan.counts(), (5, 5));
    assert!(
        plan.decisions
            .iter()
            .any(|d| d.action == Action::Drop && d.reason == "long-input")
    );
    assert!(plan.before.gain(&plan.after) > 0.8);
    let after = shown(&plan.apply(&t));
    for n in 0..5 {
        assert!(
            after.contains(&format!("I will do {n}")) && after.contains(&format!("thanks {n}"))
        );
    }
    assert!(after.contains("Tool(e0): test:e0\n    changed src/a.rs"));
}
