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
