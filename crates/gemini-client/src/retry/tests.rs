use proptest::prelude::*;

use super::*;

const MINUTE: Duration = Duration::from_mins(1);

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn quota(hint: Option<u64>) -> Cause {
    Cause::Quota {
        hint: hint.map(secs),
        daily: false,
    }
}

/// Plays a script of failures; time passes only in waits.
fn play(keys: usize, deadline: Duration, script: &[Cause]) -> Vec<Step> {
    let mut retry = Retry::new(keys, deadline);
    let mut elapsed = Duration::ZERO;
    script
        .iter()
        .map(|&cause| {
            let step = retry.after(cause, elapsed);
            if let Step::Wait(delay) = step {
                elapsed += delay;
            }
            step
        })
        .collect()
}

#[test]
fn overload_waits_one_two_three_and_ends_after_four_attempts() {
    let steps = play(3, MINUTE, &[Cause::Overloaded; 4]);
    let expected = [
        Step::Wait(secs(1)),
        Step::Wait(secs(2)),
        Step::Wait(secs(3)),
        Step::Stop(Stop::GiveUp),
    ];
    assert_eq!(steps, expected);
}

#[test]
fn refused_keys_are_each_used_once() {
    let steps = play(
        3,
        MINUTE,
        &[Cause::KeyRefused, quota(None), Cause::KeyRefused],
    );
    assert_eq!(
        steps,
        [Step::NextKey, Step::NextKey, Step::Stop(Stop::NoKeyLeft)]
    );
}

#[test]
fn a_hint_is_obeyed_on_the_last_key_only_and_when_it_fits() {
    let table = [
        (1, quota(Some(26)), Step::Wait(secs(26))),
        (2, quota(Some(26)), Step::NextKey),
        (1, quota(Some(59)), Step::Wait(secs(59))),
        (1, quota(Some(60)), Step::Stop(Stop::NoKeyLeft)),
        (1, quota(Some(u64::MAX)), Step::Stop(Stop::NoKeyLeft)),
        (1, quota(None), Step::Stop(Stop::NoKeyLeft)),
        (
            1,
            Cause::Quota {
                hint: Some(secs(1)),
                daily: true,
            },
            Step::Stop(Stop::NoKeyLeft),
        ),
    ];
    for (keys, cause, expected) in table {
        assert_eq!(
            play(keys, MINUTE, &[cause]),
            [expected],
            "{keys} keys, {cause:?}"
        );
    }
}

#[test]
fn a_hint_of_zero_cannot_loop() {
    let steps = play(1, MINUTE, &[quota(Some(0)); 4]);
    assert_eq!(steps[..3], [Step::Wait(secs(0)); 3]);
    assert_eq!(steps[3], Step::Stop(Stop::NoKeyLeft));
}

#[test]
fn a_failing_server_gets_one_more_chance() {
    let steps = play(3, MINUTE, &[Cause::Transient, Cause::Transient]);
    assert_eq!(steps, [Step::Wait(secs(1)), Step::Stop(Stop::GiveUp)]);
    let steps = play(3, MINUTE, &[Cause::Overloaded, Cause::Transient]);
    assert_eq!(
        steps,
        [Step::Wait(secs(1)), Step::Stop(Stop::GiveUp)],
        "waits share one count"
    );
}

#[test]
fn thinking_is_dropped_once() {
    let steps = play(3, MINUTE, &[Cause::ThinkingRefused, Cause::ThinkingRefused]);
    assert_eq!(steps, [Step::WithoutThinking, Step::Stop(Stop::GiveUp)]);
}

#[test]
fn nothing_begins_at_the_deadline() {
    let steps = play(1, secs(3), &[Cause::Overloaded, Cause::Overloaded]);
    assert_eq!(steps, [Step::Wait(secs(1)), Step::Stop(Stop::NoTime)]);
    for cause in [Cause::KeyRefused, Cause::ThinkingRefused] {
        let mut retry = Retry::new(2, MINUTE);
        assert_eq!(retry.clone().after(cause, MINUTE), Step::Stop(Stop::NoTime));
        assert!(!matches!(retry.after(cause, secs(59)), Step::Stop(_)));
    }
}

fn causes() -> impl Strategy<Value = Cause> {
    prop_oneof![
        Just(Cause::Overloaded),
        Just(Cause::KeyRefused),
        Just(Cause::Transient),
        Just(Cause::ThinkingRefused),
        Just(Cause::Final),
        (proptest::option::of(0u64..100), any::<bool>()).prop_map(|(hint, daily)| Cause::Quota {
            hint: hint.map(secs),
            daily
        }),
    ]
}

proptest! {
    /// Whatever the server does, a request ends: bounded attempts, none at or past the deadline.
    #[test]
    fn every_request_ends(
        keys in 1usize..6,
        deadline in 1u64..90,
        script in proptest::collection::vec((causes(), 0u64..20), 40),
    ) {
        let mut retry = Retry::new(keys, secs(deadline));
        let (mut elapsed, mut rotations, mut attempts_on_key) = (Duration::ZERO, 0, 1);
        let mut stopped = false;
        for (cause, took) in script {
            elapsed += secs(took);
            match retry.after(cause, elapsed) {
                Step::Wait(delay) => { elapsed += delay; attempts_on_key += 1; }
                Step::NextKey => { rotations += 1; attempts_on_key = 1; }
                // The dropped setting is repeated beside the count.
                Step::WithoutThinking => {}
                Step::Stop(_) => { stopped = true; break; }
            }
            prop_assert!(elapsed < secs(deadline), "an attempt at {elapsed:?}");
            prop_assert!(rotations < keys && attempts_on_key <= 4);
        }
        prop_assert!(stopped, "no end after 40 failures");
    }
}
