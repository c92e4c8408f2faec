//! Time and randomness, as the caller gives them.

use std::cell::Cell;
use std::fmt;

/// When a change is made, and where its fresh identifiers come from.
pub struct Stamp {
    now_ms: i64,
    random: Box<dyn Fn() -> u128>,
}

impl Stamp {
    /// A stamp: `now_ms` in milliseconds since the Unix epoch, and a source of random numbers from
    /// which version 7 UUIDs are made. Each call of `random` must give another number.
    pub fn new(now_ms: i64, random: impl Fn() -> u128 + 'static) -> Stamp {
        Stamp {
            now_ms,
            random: Box::new(random),
        }
    }

    /// The time in milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// A fresh version 7 UUID in its usual spelling.
    pub(crate) fn uuid(&self) -> String {
        uuid_of(self.now_ms, (self.random)())
    }

    /// A stamp of the same time with a few numbers drawn from this one.
    pub(crate) fn spare(&self) -> Stamp {
        let numbers: Vec<u128> = (0..8).map(|_| (self.random)()).collect();
        let next = Cell::new(0);
        Stamp::new(self.now_ms, move || {
            let at = next.replace(next.get() + 1);
            numbers[at % numbers.len()].wrapping_add((at / numbers.len()) as u128)
        })
    }

    /// The time as the client writes it: ISO 8601 with milliseconds and `Z`.
    pub(crate) fn timestamp(&self) -> String {
        jiff::Timestamp::from_millisecond(self.now_ms)
            .unwrap_or(jiff::Timestamp::UNIX_EPOCH)
            .strftime("%Y-%m-%dT%H:%M:%S.%3fZ")
            .to_string()
    }
}

impl fmt::Debug for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stamp")
            .field("now_ms", &self.now_ms)
            .finish_non_exhaustive()
    }
}

/// The version 7 UUID of a time in milliseconds and a number.
pub(crate) fn uuid_of(ms: i64, random: u128) -> String {
    let time = (ms as u128 & 0xffff_ffff_ffff) << 80;
    let random = random & ((1 << 80) - 1);
    let n = (time | random) & !(0xf << 76) | 0x7 << 76;
    let n = n & !(0b11 << 62) | 0b10 << 62;
    let hex = format!("{n:032x}");
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

/// A timestamp of the file in milliseconds since the Unix epoch.
pub(crate) fn parse_timestamp(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>()
        .ok()
        .map(jiff::Timestamp::as_millisecond)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn timestamps_come_back(ms in 0i64..4_000_000_000_000) {
            let text = Stamp::new(ms, || 0).timestamp();
            prop_assert_eq!(text.len(), 24);
            prop_assert_eq!(parse_timestamp(&text), Some(ms));
        }

        #[test]
        fn uuids_are_version_7_and_carry_the_time(ms in 0i64..4_000_000_000_000, n: u128) {
            let id = Stamp::new(ms, move || n).uuid();
            prop_assert_eq!(id.len(), 36);
            prop_assert_eq!(&id[14..15], "7");
            prop_assert!("89ab".contains(&id[19..20]), "{}", id);
            let time = i64::from_str_radix(&id.replace('-', "")[..12], 16).unwrap();
            prop_assert_eq!(time, ms);
        }
    }
}
