//! Time and randomness, as the caller gives them.

use std::fmt;

/// When a change is made, and where its fresh identifiers come from.
pub struct Stamp {
    now_ms: i64,
    random: Box<dyn Fn() -> u128>,
}

impl Stamp {
    /// A stamp: `now_ms` in milliseconds since the Unix epoch, and a source of random numbers from
    /// which version 4 UUIDs are made. Each call of `random` must give another number.
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

    /// A fresh version 4 UUID in its usual spelling.
    pub(crate) fn uuid(&self) -> String {
        let n = (self.random)();
        let n = (n & !(0xf << 76) | 0x4 << 76) & !(0b11 << 62) | 0b10 << 62;
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

    /// The time as the client writes it: ISO 8601 with milliseconds and `Z`.
    pub(crate) fn timestamp(&self) -> String {
        timestamp(self.now_ms)
    }
}

impl fmt::Debug for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stamp")
            .field("now_ms", &self.now_ms)
            .finish_non_exhaustive()
    }
}

/// Milliseconds since the Unix epoch as ISO 8601 with milliseconds and `Z`.
pub(crate) fn timestamp(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms)
        .unwrap_or(jiff::Timestamp::UNIX_EPOCH)
        .strftime("%Y-%m-%dT%H:%M:%S.%3fZ")
        .to_string()
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

    #[test]
    fn a_timestamp_is_spelled_as_the_client_spells_it() {
        assert_eq!(timestamp(1_796_081_155_284), "2026-11-30T23:25:55.284Z");
        assert_eq!(timestamp(1_796_081_155_000), "2026-11-30T23:25:55.000Z");
    }

    proptest! {
        #[test]
        fn timestamps_come_back(ms in 0i64..4_000_000_000_000) {
            prop_assert_eq!(parse_timestamp(&timestamp(ms)), Some(ms));
        }

        #[test]
        fn uuids_are_version_4(n: u128) {
            let id = Stamp::new(0, move || n).uuid();
            prop_assert_eq!(id.len(), 36);
            prop_assert_eq!(&id[14..15], "4");
            prop_assert!("89ab".contains(&id[19..20]), "{}", id);
        }
    }
}
