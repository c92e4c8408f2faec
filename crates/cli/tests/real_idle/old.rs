//! Files that are made to look old.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use jiff::{SignedDuration, Timestamp};

/// Moves every time in a file, and the file's own, so that the newest is `age` old.
pub(crate) fn make_old(path: &Path, age: Duration) {
    const MARK: &str = "\"timestamp\":\"";
    let text = fs::read_to_string(path).unwrap();
    let times = |text: &str| -> Vec<(usize, Timestamp)> {
        text.match_indices(MARK)
            .filter_map(|(at, _)| {
                let start = at + MARK.len();
                Some((start, text.get(start..start + 24)?.parse().ok()?))
            })
            .collect()
    };
    let found = times(&text);
    let newest = found.iter().map(|(_, time)| *time).max().unwrap();
    let wanted = Timestamp::now() - SignedDuration::try_from(age).unwrap();
    let shift = wanted.duration_since(newest);
    let mut moved = String::with_capacity(text.len());
    let mut done = 0;
    for (at, time) in found {
        moved.push_str(&text[done..at]);
        moved.push_str(&format!("{:.3}", time + shift));
        done = at + 24;
    }
    moved.push_str(&text[done..]);
    fs::write(path, moved).unwrap();
    set_age(path, age);
}

/// Sets the file's own time alone.
pub(crate) fn set_age(path: &Path, age: Duration) {
    let file = File::options().append(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
}
