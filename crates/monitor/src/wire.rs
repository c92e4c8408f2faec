//! The texts of the state's three files. Anything unreadable is as if it were not there.

use crate::json::{Object, number, shown};
use crate::machine::{Cycle, Level, Warned};

const CALLS: &str = "callsSinceWarn";
const LEVEL: &str = "lastLevel";

/// `{"callsSinceWarn":0,"lastLevel":"warning"}`, unknown members kept.
pub(crate) fn read_warned(text: &str) -> Option<Warned> {
    let object = Object::parse(text)?;
    let calls = match object.raw(CALLS) {
        None | Some("null") => 0,
        Some(raw) => raw.parse().ok()?,
    };
    let level = object
        .string(LEVEL)
        .and_then(|name| Level::from_name(&name));
    let others = object
        .members()
        .filter(|(name, _)| ![CALLS, LEVEL].contains(name))
        .map(|(name, raw)| (name.to_owned(), raw.to_owned()))
        .collect();
    Some(Warned {
        calls,
        level,
        others,
    })
}

pub(crate) fn write_warned(warned: &Warned) -> String {
    let level = warned
        .level
        .map_or_else(|| "null".to_owned(), |l| format!("\"{}\"", l.name()));
    let mut text = format!("{{\"{CALLS}\":{},\"{LEVEL}\":{level}", warned.calls);
    for (name, raw) in &warned.others {
        let name = serde_json::Value::from(name.as_str()).to_string();
        text.extend([",", &name, ":", raw]);
    }
    text.push('}');
    text
}

/// `{"v":1,"due":false,"recorded":true,"used":78}`; a newer version is not understood.
pub(crate) fn read_cycle(text: &str) -> Option<Cycle> {
    let object = Object::parse(text)?;
    if object.raw("v") != Some("1") {
        return None;
    }
    Some(Cycle {
        due: object.bool("due").unwrap_or_default(),
        recorded: object.bool("recorded").unwrap_or_default(),
        used: object.number("used"),
    })
}

pub(crate) fn write_cycle(cycle: &Cycle) -> String {
    let used = cycle.used.map_or_else(|| "null".to_owned(), shown);
    format!(
        "{{\"v\":1,\"due\":{},\"recorded\":{},\"used\":{used}}}",
        cycle.due, cycle.recorded
    )
}

/// `{"at":1800000000}`, a JSON number.
pub(crate) fn read_watermark(text: &str) -> Option<f64> {
    number(Object::parse(text)?.raw("at")?)
}

pub(crate) fn write_watermark(at: f64) -> String {
    format!("{{\"at\":{}}}", shown(at))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            calls in any::<u64>(),
            level in prop::option::of(any::<bool>()),
            others in prop::collection::btree_map("[a-z\"\\\\é]{1,5}", any::<i32>(), 0..4),
            due: bool,
            recorded: bool,
            used in prop::option::of(0u8..=100),
            at in 0u32..,
        ) {
            let level = level.map(|c| if c { Level::Critical } else { Level::Warning });
            let others = others.into_iter().map(|(k, v)| (k, v.to_string())).collect();
            let warned = Warned { calls, level, others };
            prop_assert_eq!(read_warned(&write_warned(&warned)), Some(warned));
            let cycle = Cycle { due, recorded, used: used.map(f64::from) };
            prop_assert_eq!(read_cycle(&write_cycle(&cycle)), Some(cycle));
            let at = f64::from(at);
            prop_assert_eq!(read_watermark(&write_watermark(at)), Some(at));
        }

        #[test]
        fn no_text_panics(text in "[\\PC{}\\[\\]\":,0-9e.-]{0,48}") {
            let _ = (read_warned(&text), read_cycle(&text), read_watermark(&text));
        }
    }

    #[test]
    fn a_newer_cycle_is_not_understood_and_an_odd_counter_is_none() {
        assert_eq!(read_cycle(r#"{"v":2,"due":true}"#), None);
        for odd in [
            r#"{"callsSinceWarn":-1}"#,
            r#"{"callsSinceWarn":"3"}"#,
            "null",
            "[]",
            "",
        ] {
            assert_eq!(read_warned(odd), None, "{odd}");
        }
    }
}
