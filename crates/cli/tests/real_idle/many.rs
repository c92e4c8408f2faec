//! A pass over many conversations, killed again and again.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use ctxfold_session_claude as claude;
use ctxfold_session_codex as codex;
use ctxfold_test_support::generate::{ClaudeSession, CodexRollout};
use ctxfold_test_support::{
    ClaudeHome, Client, CodexHome, GeminiTurn, MockAnthropic, MockGemini, MockResponses, clients,
    poll, require_client,
};
use rustix::fs::{FlockOperation, flock};

use crate::lab::{HOUR, command, run};
use crate::old::make_old;

const SESSIONS: usize = 400;
const THREADS: usize = 100;
const KILLS: usize = 10;

/// Where a conversation is in its life, by its number.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Cold,
    Warm,
    Small,
    Live,
}

fn kind(number: usize) -> Kind {
    match number % 10 {
        7 => Kind::Warm,
        8 => Kind::Small,
        9 => Kind::Live,
        _ => Kind::Cold,
    }
}

fn age(number: usize) -> Duration {
    match kind(number) {
        Kind::Warm => HOUR / 60,
        _ => HOUR * (2 + u32::try_from(number).unwrap() * 7),
    }
}

struct Many {
    claude: ClaudeHome,
    codex: CodexHome,
    anthropic: MockAnthropic,
    responses: MockResponses,
    gemini: MockGemini,
    env: BTreeMap<String, String>,
    /// Path and kind of every conversation, sessions first.
    files: Vec<(PathBuf, Kind)>,
    _leases: Vec<File>,
}

fn session_id(number: usize) -> String {
    format!("6f1d2c3b-0000-4000-8000-{number:012x}")
}

fn thread_id(number: usize) -> String {
    format!("01a22eb2-072d-76f3-a271-{number:012x}")
}

impl Many {
    fn new(claude: &Client, codex: &Client) -> Many {
        let anthropic = MockAnthropic::start();
        let responses = MockResponses::start();
        let gemini = MockGemini::start();
        let claude = ClaudeHome::new(claude, &anthropic);
        let codex = CodexHome::new(codex, &responses);
        // The client names the folder of its sessions.
        let first = claude.prompt("hello").run().success();
        let first = claude.session_file(first.session_id()).unwrap();
        let folder = first.parent().unwrap().to_owned();
        fs::remove_file(first).unwrap();
        drop(codex.prompt("hello").run().success());
        for path in codex.rollouts() {
            fs::remove_file(path).unwrap();
        }
        // Its store is made again from the rollouts.
        for entry in fs::read_dir(codex.codex_home()).unwrap() {
            let path = entry.unwrap().path();
            if path.to_string_lossy().contains(".sqlite") {
                fs::remove_file(path).unwrap();
            }
        }
        let mut files = Vec::new();
        for number in 0..SESSIONS {
            let small = kind(number) == Kind::Small;
            let session = ClaudeSession {
                id: session_id(number),
                cwd: claude.project().to_string_lossy().into_owned(),
                turns: 5,
                output_bytes: if small { 40 } else { 4096 },
                // Of which what is folded is more than a quarter.
                last_tokens: 20_000,
                ..ClaudeSession::default()
            };
            let path = folder.join(format!("{}.jsonl", session.id));
            session.write_to(File::create(&path).unwrap()).unwrap();
            make_old(&path, age(number));
            files.push((path, kind(number)));
        }
        // This process is the one that has the live ones open.
        let lives = claude.config().join("sessions");
        fs::create_dir_all(&lives).unwrap();
        let mut leases = Vec::new();
        let folder = codex.codex_home().join("sessions/2026/01/01");
        fs::create_dir_all(&folder).unwrap();
        let locks = codex.codex_home().join("thread-writer-locks");
        fs::create_dir_all(&locks).unwrap();
        for number in 0..THREADS {
            let small = kind(number) == Kind::Small;
            let rollout = CodexRollout {
                id: thread_id(number),
                cwd: codex.project().to_string_lossy().into_owned(),
                calls: 1,
                output_bytes: if small { 40 } else { 9000 },
                last_tokens: 20_000,
                ..CodexRollout::default()
            };
            let path = folder.join(rollout.file_name());
            rollout.write_to(File::create(&path).unwrap()).unwrap();
            make_old(&path, age(number));
            if kind(number) == Kind::Live {
                let lock = File::create(locks.join(format!("{}.lock", rollout.id))).unwrap();
                flock(&lock, FlockOperation::LockExclusive).unwrap();
                leases.push(lock);
            }
            files.push((path, kind(number)));
        }
        let mut env = claude.env().clone();
        env.extend(codex.env().clone());
        env.insert("HOME".into(), claude.home().to_string_lossy().into_owned());
        env.insert("CTXFOLD_GEMINI_BASE_URL".into(), gemini.url());
        env.insert("CTXFOLD_GEMINI_API_KEY".into(), "not-a-key".into());
        Many {
            claude,
            codex,
            anthropic,
            responses,
            gemini,
            env,
            files,
            _leases: leases,
        }
    }

    /// Says that this process, and one more for each session, has the live ones open.
    fn open_live(&self) -> Vec<Child> {
        let sessions = (0..SESSIONS).filter(|n| kind(*n) == Kind::Live).step_by(8);
        sessions
            .map(|number| {
                let child = std::process::Command::new("sleep")
                    .arg("600")
                    .spawn()
                    .unwrap();
                let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
                let start = stat
                    .rsplit_once(") ")
                    .unwrap()
                    .1
                    .split(' ')
                    .nth(19)
                    .unwrap();
                let row = serde_json::json!({
                    "pid": child.id(), "sessionId": session_id(number), "procStart": start,
                    "cwd": self.claude.project(), "version": "2.1.332", "status": "idle",
                });
                let path = self
                    .claude
                    .config()
                    .join(format!("sessions/{}.json", child.id()));
                fs::write(path, row.to_string()).unwrap();
                child
            })
            .collect()
    }

    fn run(&self, arguments: &[&str]) -> crate::lab::Ran {
        run(&self.env, &self.claude.project(), arguments)
    }
}

/// Waits without looking at anything.
fn wait(span: Duration) {
    assert_eq!(poll(span, || None::<()>), None);
}

fn compactions(path: &Path) -> usize {
    let text = fs::read_to_string(path).unwrap();
    text.matches("\"compact_boundary\"").count() + text.matches("\"type\":\"compacted\"").count()
}

#[test]
fn a_pass_that_is_killed_again_and_again_leaves_every_conversation_whole() {
    let claude = require_client!(claude, clients::CLAUDE[0]);
    let codex = require_client!(codex, clients::CODEX[0]);
    let many = Many::new(&claude, &codex);
    let mut live = many.open_live();
    many.run(&["idle", "on"]).done();
    many.run(&["idle", "codex", "on"]).done();
    many.run(&["idle", "min", "24KB"]).done();
    let before: Vec<Vec<u8>> = many
        .files
        .iter()
        .map(|(p, _)| fs::read(p).unwrap())
        .collect();

    // Other points in each run of the test. A kill counts where it ended a pass in the middle: some
    // were compacted already, and work is left.
    let mut seed = u64::from(std::process::id()) | 1;
    let done = || {
        many.files
            .iter()
            .filter(|(p, _)| compactions(p) > 0)
            .count()
    };
    let cold = many.files.iter().filter(|(_, kind)| *kind == Kind::Cold);
    let cold = cold.count();
    let (mut in_the_middle, mut killed) = (0, 0);
    for _ in 0..KILLS {
        if killed + cold / KILLS > cold {
            break;
        }
        let mut child = command(&many.env, &many.claude.project(), &["idle", "run"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // Somewhere behind its first write, well before the last pass has nothing to do.
        let more = 1 + (seed >> 33) as usize % (cold / (2 * KILLS));
        let begun = poll(Duration::from_mins(1), || {
            (done() >= killed + more).then_some(())
        });
        assert!(begun.is_some(), "a pass did nothing");
        let was_running = child.try_wait().unwrap().is_none();
        drop(child.kill());
        child.wait().unwrap();
        killed = done();
        in_the_middle += usize::from(was_running && killed < cold);
    }
    assert!(
        in_the_middle >= 5,
        "{in_the_middle} of {KILLS} kills were in the middle"
    );
    let begun = Instant::now();
    let last = many.run(&["idle", "run"]).done();
    let took = begun.elapsed();
    last.says(" 0 failed");
    eprintln!(
        "{killed} compacted by the killed runs, {in_the_middle} of them in the middle; then {took:?}: {}",
        last.stderr.lines().last().unwrap()
    );

    let open: Vec<String> = (0..SESSIONS)
        .filter(|n| kind(*n) == Kind::Live)
        .step_by(8)
        .map(session_id)
        .collect();
    for ((path, kind), before) in many.files.iter().zip(&before) {
        let now = fs::read(path).unwrap();
        assert!(
            now.starts_with(before),
            "{} is only appended to",
            path.display()
        );
        let is_thread = path.starts_with(many.codex.codex_home());
        let is_open = is_thread || open.iter().any(|id| path.to_string_lossy().contains(id));
        let wanted = match kind {
            Kind::Cold => 1,
            Kind::Live if !is_open => 1,
            _ => 0,
        };
        assert_eq!(compactions(path), wanted, "{kind:?} {}", path.display());
        if is_thread {
            let store = codex_store(&many);
            let thread = codex::Thread::open(&store, path).unwrap();
            assert!(!thread.transcript().messages.is_empty());
            if wanted == 1 {
                assert!(thread.meta().compacted_ms.is_some());
            }
        } else {
            let session = claude::Session::open(path, &claude::Options::default()).unwrap();
            assert!(!session.transcript().messages.is_empty());
            assert!(session.findings().is_empty(), "{:?}", session.findings());
        }
    }

    // A second run does nothing.
    let after: Vec<Vec<u8>> = many
        .files
        .iter()
        .map(|(p, _)| fs::read(p).unwrap())
        .collect();
    let begun = Instant::now();
    let again = many.run(&["idle", "run"]).done();
    again.says("ctxfold: 0 compacted, 500 left alone (");
    again.says("), 0 failed");
    eprintln!("a second run: {:?}", begun.elapsed());
    for ((path, _), after) in many.files.iter().zip(&after) {
        assert!(fs::read(path).unwrap() == *after, "{}", path.display());
    }
    for child in &mut live {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(many.gemini.log().all().len(), 0);

    // The clients themselves read them: one in six, both at a time.
    let sample = |most: usize| (0..most).filter(|n| n % 6 == 0 && kind(*n) == Kind::Cold);
    let check = |requests: &[ctxfold_test_support::Recorded], before: usize, id: &str| {
        assert_eq!(requests.len(), 1, "{id}");
        assert!(requests[0].holds("GO-ON"), "{id}");
        assert!(requests[0].bytes < before, "{id}");
    };
    let resumed = std::thread::scope(|scope| {
        let threads = scope.spawn(|| {
            for number in sample(THREADS) {
                let id = thread_id(number);
                many.responses.log().take();
                many.codex.prompt("GO-ON").resume(&id).run().success();
                let requests = many.responses.log().conversations();
                check(&requests, before[SESSIONS + number].len(), &id);
            }
            sample(THREADS).count()
        });
        for number in sample(SESSIONS) {
            let id = session_id(number);
            many.anthropic.log().take();
            many.claude.prompt("GO-ON").resume(&id).run().success();
            let requests = many.anthropic.log().conversations();
            check(&requests, before[number].len(), &id);
        }
        sample(SESSIONS).count() + threads.join().unwrap()
    });
    eprintln!("{resumed} of them resumed by the clients");
    assert!(resumed >= 60);
}

fn codex_store(many: &Many) -> codex::Store {
    codex::Store::new(many.codex.codex_home())
}

#[test]
fn two_never_run() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_string_lossy().into_owned();
    let mut env = BTreeMap::from([("HOME".to_owned(), home.clone())]);
    env.insert("CODEX_HOME".into(), format!("{home}/.codex"));
    fs::create_dir_all(folder.path().join(".claude/projects")).unwrap();
    let mut watch = command(&env, folder.path(), &["idle", "watch"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lock = folder.path().join(".local/state/ctxfold/idle.lock");
    let refused = poll(Duration::from_secs(20), || {
        lock.exists().then_some(())?;
        let ran = run(&env, folder.path(), &["idle", "run"]);
        (ran.code == 3).then_some(ran)
    });
    refused
        .unwrap()
        .says("another idle run or watch is at work");
    // Who only looks is not refused.
    run(&env, folder.path(), &["idle", "run", "-n"]).done();
    // Ctrl-C ends it in order.
    let pid = rustix::process::Pid::from_child(&watch);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert!(watch.wait().unwrap().success());
    run(&env, folder.path(), &["idle", "run"])
        .done()
        .says("0 compacted");
}

#[test]
fn a_watch_wakes_when_a_file_changes() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_string_lossy().into_owned();
    let mut env = BTreeMap::from([("HOME".to_owned(), home.clone())]);
    env.insert("CODEX_HOME".into(), format!("{home}/.codex"));
    let projects = folder.path().join(".claude/projects/-home-dev-proj");
    run(&env, folder.path(), &["idle", "on"]).done();
    let mut watch = command(
        &env,
        folder.path(),
        &["idle", "watch", "--every", "1", "--passes", "5"],
    )
    .stderr(Stdio::null())
    .spawn()
    .unwrap();
    let lock = folder.path().join(".local/state/ctxfold/idle.lock");
    poll(Duration::from_secs(20), || lock.exists().then_some(())).unwrap();
    wait(Duration::from_millis(500));
    // Without being told it would sleep for an hour. Not even the folder was there.
    fs::create_dir_all(&projects).unwrap();
    let made = folder.path().join("made.jsonl");
    ClaudeSession::default()
        .write_to(File::create(&made).unwrap())
        .unwrap();
    let session = projects.join("11111111-2222-4333-8444-555555555555.jsonl");
    fs::rename(&made, &session).unwrap();
    let seen = poll(Duration::from_secs(20), || {
        (compactions(&session) == 1).then_some(())
    });
    watch.kill().ok();
    watch.wait().unwrap();
    assert!(seen.is_some(), "the watch slept on");
}

/// Ctrl-C ends a pass between two conversations, also behind a model that was asked; what was done
/// is told at once.
#[test]
fn ctrl_c_ends_a_pass() {
    use std::io::{BufRead as _, BufReader, Read as _};

    let folder = tempfile::tempdir().unwrap();
    let gemini = MockGemini::start();
    let home = folder.path().to_string_lossy().into_owned();
    let mut env = BTreeMap::from([("HOME".to_owned(), home.clone())]);
    env.insert("CODEX_HOME".into(), format!("{home}/.codex"));
    env.insert("CTXFOLD_GEMINI_BASE_URL".into(), gemini.url());
    env.insert("CTXFOLD_GEMINI_API_KEY".into(), "not-a-key".into());
    let projects = folder.path().join(".claude/projects/-home-dev-proj");
    fs::create_dir_all(&projects).unwrap();
    for number in 0..3 {
        let id = session_id(number);
        let session = ClaudeSession {
            id: id.clone(),
            ..ClaudeSession::default()
        };
        let path = projects.join(format!("{id}.jsonl"));
        session.write_to(File::create(path).unwrap()).unwrap();
    }
    run(&env, folder.path(), &["idle", "on"]).done();
    run(&env, folder.path(), &["idle", "model", "default"]).done();
    // So that the first line is about the first conversation.
    run(
        &env,
        folder.path(),
        &["config", "set", "gemini.tier", "paid"],
    )
    .done();
    let planned = run(&env, folder.path(), &["idle", "run", "-n", "--json"]).done();
    let planned: serde_json::Value = serde_json::from_str(&planned.stdout).unwrap();
    let planned: Vec<PathBuf> = planned["report"]["compacted"]
        .as_array()
        .unwrap()
        .iter()
        .map(|visited| visited["path"].as_str().unwrap().into())
        .collect();
    assert_eq!(planned.len(), 3);
    // Another one is at work on the second.
    let held = File::open(&planned[1]).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();
    gemini.next(GeminiTurn::error(400, "INVALID_ARGUMENT", "not today"));
    let mut child = command(&env, folder.path(), &["idle", "run"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains(&session_id(0)[..20]), "{line}");
    assert_eq!(gemini.log().conversations().len(), 1, "a model was asked");
    assert_eq!(compactions(&planned[0]), 1);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(4), "{rest}");
    assert!(rest.contains("ctxfold: 1 compacted"), "{rest}");
    assert!(
        rest.contains("interrupted; what was compacted stays so"),
        "{rest}"
    );
    assert_eq!(compactions(&planned[1]) + compactions(&planned[2]), 0);
}
