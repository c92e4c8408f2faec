//! The course of one call: which key failed how, and the one error that is made of it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::{Details, Error, ErrorKind};
use crate::failure::Failure;
use crate::key::places;
use crate::retry::{Cause, Stop};

/// What failed so far.
#[derive(Debug, Default)]
pub(crate) struct Course {
    /// Each key's newest failure, by place.
    failures: BTreeMap<usize, Failure>,
    /// The place that failed last.
    last: usize,
    /// Attempts on that key.
    attempts: u32,
}

impl Course {
    pub(crate) fn failed(&mut self, place: usize, failure: Failure) {
        self.attempts = if self.last == place {
            self.attempts + 1
        } else {
            1
        };
        self.last = place;
        self.failures.insert(place, failure);
    }

    /// The error for a call that was given up.
    pub(crate) fn stopped(self, stop: Stop, deadline: Duration) -> Error {
        match stop {
            Stop::NoKeyLeft => self.no_key_left(),
            Stop::GiveUp => {
                let repeated = self.attempts > 1
                    && self
                        .newest()
                        .is_none_or(|failure| failure.cause != Cause::Final);
                let after = if repeated {
                    format!(" (after {} attempts)", self.attempts)
                } else {
                    String::new()
                };
                self.newest()
                    .map_or_else(Error::bug, |failure| failure.error(&after))
            }
            Stop::NoTime => {
                let text = format!(
                    "{}; no time for another attempt within {}",
                    self.groups(),
                    seconds(deadline)
                );
                Error::with(ErrorKind::Deadline, text, self.details())
            }
        }
    }

    /// The error for a call that the deadline cut off.
    pub(crate) fn cut_off(self, deadline: Duration, waiting_for_turn: bool) -> Error {
        let mut text = if waiting_for_turn {
            format!(
                "other requests used the key for the whole {}",
                seconds(deadline)
            )
        } else {
            format!("no answer from Gemini within {}", seconds(deadline))
        };
        if !self.failures.is_empty() {
            text = format!("{text}; before that: {}", self.groups());
        }
        Error::with(ErrorKind::Deadline, text, self.details())
    }

    fn no_key_left(self) -> Error {
        let count = self.failures.len();
        let text = match count {
            1 => self.groups(),
            _ => format!("all {count} keys failed: {}", self.groups()),
        };
        // What helps soonest comes first: a quota comes back, a refused key does not.
        let order = [
            ErrorKind::Quota,
            ErrorKind::Forbidden,
            ErrorKind::InvalidKey,
        ];
        let found = order
            .into_iter()
            .find(|kind| self.failures.values().any(|failure| failure.kind == *kind));
        Error::with(found.unwrap_or(ErrorKind::InvalidKey), text, self.details())
    }

    /// Each distinct failure once, with the places of the keys where there are several.
    fn groups(&self) -> String {
        let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
        for (&place, failure) in &self.failures {
            match groups.iter_mut().find(|(text, _)| *text == failure.text) {
                Some((_, places)) => places.push(place),
                None => groups.push((&failure.text, vec![place])),
            }
        }
        if self.failures.len() == 1 {
            return groups
                .first()
                .map(|(text, _)| (*text).to_owned())
                .unwrap_or_default();
        }
        let groups = groups
            .into_iter()
            .map(|(text, sorted)| format!("{text} ({})", places(&sorted)));
        groups.collect::<Vec<_>>().join("; ")
    }

    fn newest(&self) -> Option<&Failure> {
        self.failures.get(&self.last)
    }

    fn details(&self) -> Details {
        let newest = self.newest();
        Details {
            status: newest.and_then(|failure| failure.status),
            retry_after: self.failures.values().filter_map(Failure::hint).min(),
            ..Details::default()
        }
    }
}

impl Failure {
    /// This failure alone.
    pub(crate) fn error(&self, after: &str) -> Error {
        let details = Details {
            status: self.status,
            reason: self.reason.clone(),
            retry_after: self.hint(),
            usage: self.usage.as_deref().copied(),
            ..Details::default()
        };
        Error::with(self.kind, format!("{}{after}", self.text), details)
    }

    fn hint(&self) -> Option<Duration> {
        match self.cause {
            Cause::Quota { hint, .. } => hint,
            _ => None,
        }
    }
}

/// A duration as people read it: `60 s`, `1.5 s`.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(kind: ErrorKind, cause: Cause, text: &str) -> Failure {
        Failure {
            cause,
            ..Failure::of_answer(kind, text.to_owned())
        }
    }

    fn quota() -> Failure {
        failure(
            ErrorKind::Quota,
            Cause::Quota {
                hint: None,
                daily: false,
            },
            "Gemini HTTP 429: quota",
        )
    }

    fn invalid() -> Failure {
        failure(
            ErrorKind::InvalidKey,
            Cause::KeyRefused,
            "Gemini HTTP 400: API key not valid",
        )
    }

    #[test]
    fn each_distinct_failure_is_named_once() {
        let mut course = Course::default();
        // The order of trying does not matter: here the fifth key came first.
        for place in (5..=34).chain(1..5) {
            course.failed(place, if place == 5 { invalid() } else { quota() });
        }
        let error = course.stopped(Stop::NoKeyLeft, Duration::from_mins(1));
        let expected = "all 34 keys failed: Gemini HTTP 429: quota (keys 1-4, 6-34); \
                        Gemini HTTP 400: API key not valid (key 5)";
        assert_eq!(error.to_string(), expected);
        assert!(error.is_quota());
    }

    #[test]
    fn one_key_needs_no_places() {
        let mut course = Course::default();
        course.failed(1, quota());
        assert_eq!(
            course
                .stopped(Stop::NoKeyLeft, Duration::from_mins(1))
                .to_string(),
            "Gemini HTTP 429: quota"
        );
    }

    #[test]
    fn the_deadline_says_what_was_before() {
        let mut course = Course::default();
        course.failed(1, quota());
        course.failed(2, quota());
        let text = course
            .cut_off(Duration::from_millis(1_500), false)
            .to_string();
        assert_eq!(
            text,
            "no answer from Gemini within 1.5 s; before that: Gemini HTTP 429: quota (keys 1-2)"
        );
        let text = Course::default()
            .cut_off(Duration::from_mins(1), true)
            .to_string();
        assert_eq!(text, "other requests used the key for the whole 60 s");
    }
}
