//! A crash between any two steps leaves a thread that is read as before or as planned.

use std::fs;
use std::io::{self, Write};

use ctxfold_session_codex::{CommitOptions, Effects, Step, check};

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
    assert_eq!(error.kind(), ctxfold_session_codex::ErrorKind::DiskFull);
    assert!(home.bytes() == before);
}
