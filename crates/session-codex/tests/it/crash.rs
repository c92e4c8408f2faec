//! A crash between any two steps leaves a thread that is read as before or as planned.

use std::fs;
use std::io::{self, Write};

use ctxfold_session_codex::{CommitOptions, Effects, ErrorKind, Step, check};
use ctxfold_transcript::Transcript;

use crate::common::{Home, stamp, summary};

/// Stops before a step, or after some bytes of the append.
pub(crate) enum Crash {
    Before(Step),
    Within(usize),
}

impl Effects for Crash {
    fn before(&mut self, step: Step) -> bool {
        !matches!(self, Crash::Before(at) if *at == step)
    }

    fn append(&mut self, file: &mut fs::File, bytes: &[u8]) -> io::Result<()> {
        match self {
            Crash::Before(_) => file.write_all(bytes),
            Crash::Within(len) => {
                file.write_all(&bytes[..*len])?;
                Err(io::ErrorKind::Interrupted.into())
            }
        }
    }
}

/// Every place to stop at, for an append of this many bytes.
pub(crate) fn places(len: usize) -> Vec<Crash> {
    let mut places: Vec<Crash> = Step::ALL.into_iter().map(Crash::Before).collect();
    places.extend([1, len / 4, len / 2, len - 1].map(Crash::Within));
    places
}

#[test]
fn a_crash_leaves_the_thread_readable_and_open_to_another_try() {
    let count = places(100).len();
    for project in [false, true] {
        for place in 0..count {
            let home = Home::new("paginated-0.171.0");
            let thread = home.open();
            let before = fs::read(thread.path()).unwrap();
            let append = thread
                .prepare(&summary(thread.transcript(), "S"), &stamp())
                .unwrap();
            let mut crash = places(append.bytes().len()).remove(place);
            let options = CommitOptions::default().project(project);
            let result = append.commit_with(&options, &mut crash);
            let skipped = matches!(crash, Crash::Before(Step::Project | Step::Commit)) && !project;
            assert_eq!(result.is_ok(), skipped, "place {place}");
            let after = fs::read(thread.path()).unwrap();
            assert_eq!(after[..before.len()], before[..]);
            let codes: Vec<_> = check(&home.store(), thread.path())
                .unwrap()
                .into_iter()
                .map(|f| f.code)
                .filter(|code| !matches!(*code, "torn-tail" | "projection-behind" | "store-wal"))
                .collect();
            assert!(codes.is_empty(), "place {place}: {codes:?}");
            // The next try works, whatever was left.
            let again = home.open();
            let change = match again.prepare(&summary(again.transcript(), "S"), &stamp()) {
                Ok(append) => append,
                Err(_) => again.prepare_undo(&stamp()).unwrap(),
            };
            change.commit(&CommitOptions::default()).unwrap();
            assert!(
                home.open()
                    .findings()
                    .iter()
                    .all(|f| f.code != "torn-tail" || place >= 8)
            );
        }
    }
}

/// A full disk takes back what was written.
#[test]
fn a_failed_write_is_taken_back() {
    struct Full;
    impl Effects for Full {
        fn before(&mut self, _: Step) -> bool {
            true
        }
        fn append(&mut self, file: &mut fs::File, bytes: &[u8]) -> io::Result<()> {
            file.write_all(&bytes[..40])?;
            Err(io::ErrorKind::StorageFull.into())
        }
    }
    let home = Home::new("paginated-0.171.0");
    let thread = home.open();
    let before = home.bytes();
    let append = thread
        .prepare(&summary(thread.transcript(), "S"), &stamp())
        .unwrap();
    let options = CommitOptions::default().project(true);
    let error = append.commit_with(&options, &mut Full).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DiskFull);
    assert!(home.bytes() == before);
}

/// A client that writes between the comparison and our append, which then takes `ours` bytes and
/// fails, where that is fewer than all.
struct Between {
    theirs: &'static str,
    behind: bool,
    ours: usize,
}

impl Effects for Between {
    fn before(&mut self, _: Step) -> bool {
        true
    }

    fn append(&mut self, file: &mut fs::File, bytes: &[u8]) -> io::Result<()> {
        let theirs = std::mem::take(&mut self.theirs);
        if !self.behind {
            file.write_all(theirs.as_bytes())?;
        }
        let ours = self.ours.min(bytes.len());
        file.write_all(&bytes[..ours])?;
        if self.behind {
            file.write_all(theirs.as_bytes())?;
        }
        if ours < bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

const LATE: &str = concat!(
    r#"{"timestamp":"2026-12-01T02:00:00.000Z","type":"response_item","payload":{"type":"message","#,
    r#""role":"user","content":[{"type":"input_text","text":"LATE PROMPT"}]}}"#,
    "\n"
);

/// What a client wrote at the same moment is never cut off.
#[test]
fn a_failed_write_takes_back_nothing_of_somebody_else() {
    for (ours, behind) in [(0, false), (40, false), (40, true)] {
        let home = Home::new("legacy-0.144.6");
        let thread = home.open();
        let before = fs::read(thread.path()).unwrap();
        let append = thread
            .prepare(&summary(thread.transcript(), "S"), &stamp())
            .unwrap();
        let part = append.bytes()[..ours].to_vec();
        let mut between = Between {
            theirs: LATE,
            behind,
            ours,
        };
        let error = append
            .commit_with(&CommitOptions::default(), &mut between)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Overtaken, "{error}");
        assert!(!error.is_refusal(), "something stands in the file");
        assert!(error.to_string().contains("was left as it is"), "{error}");
        let mut expected = before;
        if behind {
            expected.extend_from_slice(&part);
            expected.extend_from_slice(LATE.as_bytes());
        } else {
            expected.extend_from_slice(LATE.as_bytes());
            expected.extend_from_slice(&part);
        }
        assert!(
            fs::read(thread.path()).unwrap() == expected,
            "{ours} {behind}"
        );
    }
}

/// A line that a client wrote before ours would be hidden by our history: the next request holds it
/// all the same, with everything that was folded.
#[test]
fn a_line_that_came_between_is_part_of_the_next_request() {
    let texts = |transcript: &Transcript| -> Vec<String> {
        transcript
            .messages
            .iter()
            .map(ctxfold_transcript::Message::text)
            .collect()
    };
    for name in ["legacy-0.144.6", "legacy-0.171.0"] {
        let home = Home::new(name);
        let thread = home.open();
        let before = texts(thread.transcript());
        let append = thread
            .prepare(&summary(thread.transcript(), "THE SUMMARY"), &stamp())
            .unwrap();
        let mut between = Between {
            theirs: LATE,
            behind: false,
            ours: usize::MAX,
        };
        let error = append
            .commit_with(&CommitOptions::default(), &mut between)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Overtaken, "{error}");
        assert!(error.to_string().contains("was taken back"), "{error}");
        let now = texts(home.open().transcript());
        assert_eq!(now.last().unwrap(), "LATE PROMPT");
        // What the client writes anew by itself is not carried.
        assert!(before.ends_with(&now[..now.len() - 1]), "{now:?}");
        assert!(now.len() + 3 > before.len());
        // Nothing is left to be taken back, and another try is made on what is there now.
        let error = home.open().prepare_undo(&stamp()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NothingToGain);
        let again = home.open();
        let plan = summary(again.transcript(), "THE SUMMARY");
        let append = again.prepare(&plan, &stamp()).unwrap();
        append.commit(&CommitOptions::default()).unwrap();
        assert_eq!(
            texts(home.open().transcript()).last().unwrap(),
            "LATE PROMPT"
        );
    }
    // Behind ours it is read as any line is.
    let home = Home::new("legacy-0.144.6");
    let thread = home.open();
    let append = thread
        .prepare(&summary(thread.transcript(), "THE SUMMARY"), &stamp())
        .unwrap();
    let mut between = Between {
        theirs: LATE,
        behind: true,
        ours: usize::MAX,
    };
    append
        .commit_with(&CommitOptions::default(), &mut between)
        .unwrap();
    let now = texts(home.open().transcript());
    assert_eq!(now.last().unwrap(), "LATE PROMPT");
    assert!(now.iter().any(|text| text.contains("THE SUMMARY")));
}
