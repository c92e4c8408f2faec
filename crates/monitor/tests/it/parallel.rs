//! Many calls of one session at once.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::SystemTime;

use ctxfold_monitor::{
    Config, Effect, Event, Happening, Places, Reading, SessionId, Source, Store, step,
};

/// An example program, which cargo builds beside this test.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(
        path.exists(),
        "{} is missing: cargo build --examples",
        path.display()
    );
    path
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap().as_secs()
}

const NOW: u64 = 1_800_000_000;

fn low() -> Event {
    let reading = Reading::of_tokens(70, 100, Source::Transcript, Some(NOW));
    Event {
        happening: Happening::ToolCall,
        reading: Some(reading),
    }
}

fn store(folder: &tempfile::TempDir) -> Store {
    Store::open(&Places {
        runtime: None,
        temp: folder.path().to_owned(),
    })
}

#[test]
fn a_thousand_first_calls_give_one_warning() {
    let folder = tempfile::tempdir().unwrap();
    let id = SessionId::new("s").unwrap();
    let (warnings, busy) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let config = Config {
        repeat: u64::MAX,
        ..Config::default()
    };
    let start = Barrier::new(1000);
    std::thread::scope(|scope| {
        for _ in 0..1000 {
            scope.spawn(|| {
                let store = store(&folder);
                start.wait();
                match store.transact(&id, |state| step(state, &low(), &config, NOW)) {
                    Ok(effects) => {
                        let warns = effects.iter().any(|e| matches!(e, Effect::Warn(..)));
                        warnings.fetch_add(usize::from(warns), Ordering::Relaxed);
                    }
                    Err(_) => drop(busy.fetch_add(1, Ordering::Relaxed)),
                }
            });
        }
    });
    assert_eq!(warnings.into_inner(), 1);
    // Every call that was not turned away is counted.
    let counted = store(&folder).load(&id).warned.unwrap().calls;
    assert_eq!(counted, 999 - busy.into_inner() as u64);
}

#[test]
fn eight_processes_lose_nothing() {
    const TIMES: u64 = 150;
    let folder = tempfile::tempdir().unwrap();
    let program = example("hammer");
    let start = || -> Child {
        let mut hammer = Command::new(&program);
        hammer.arg(folder.path()).args(["s", &TIMES.to_string()]);
        hammer.stdin(Stdio::null()).spawn().unwrap()
    };
    let processes: Vec<Child> = (0..8).map(|_| start()).collect();
    for mut process in processes {
        assert!(process.wait().unwrap().success());
    }
    let state = store(&folder).load(&SessionId::new("s").unwrap());
    assert_eq!(state.warned.unwrap().calls, 8 * TIMES - 1);
    let names: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 3, "no temporary file is left: {names:?}");
}

#[test]
fn a_lock_that_is_collected_meanwhile_still_locks() {
    let folder = tempfile::tempdir().unwrap();
    let id = SessionId::new("s").unwrap();
    let config = Config {
        repeat: u64::MAX,
        ..Config::default()
    };
    let ended = AtomicBool::new(false);
    let counted = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let store = store(&folder);
                    for _ in 0..100 {
                        let done = store.transact(&id, |state| step(state, &low(), &config, NOW));
                        counted.fetch_add(usize::from(done.is_ok()), Ordering::Relaxed);
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let path = folder.path().join("claude-ctx-s.lock");
            let mut collected = 0;
            while !ended.load(Ordering::Relaxed) {
                // The lock looks old, the state does not.
                if let Ok(lock) = std::fs::File::options().write(true).open(&path) {
                    lock.set_modified(std::time::UNIX_EPOCH).unwrap();
                }
                collected += store(&folder).collect(now(), 3600);
                std::thread::yield_now();
            }
            assert!(collected > 0);
        });
        for worker in workers {
            worker.join().unwrap();
        }
        ended.store(true, Ordering::Relaxed);
    });
    let calls = store(&folder).load(&id).warned.unwrap().calls;
    assert_eq!(calls + 1, counted.into_inner() as u64);
}
