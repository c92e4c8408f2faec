//! A home of Codex with mock models on both sides, and the binary run in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use ctxfold_test_support::{
    Client, CodexHome, GeminiTurn, MockGemini, MockResponses, Recorded, ResponsesTurn,
};
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

/// The fixture homes of the crate that reads threads.
const FIXTURES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../session-codex/tests/fixtures"
);
/// Where the fixture homes lay when they were made.
const MADE_AT: &str = "/home/dev/lab0/home";

/// What the model of a summary answers, and the text by which it is known.
pub(crate) const SUMMARY: &str = "\
## 1. Request and intent
OUR-SUMMARY: the user asked for lists of numbers and then for a word.
## 2. Technical concepts
seq and echo in a shell.
## 3. Files and code
No file was touched.
## 4. Errors and fixes
Nothing failed.
## 5. Problem solving
The lists were made once alone and once by two commands at the same time.
## 6. User messages
Both requests were answered.
## 7. Pending tasks
None.
## 8. Current work
None.
## 9. Next step
The user's.";
pub(crate) const OURS: &str = "OUR-SUMMARY";

/// A run of the binary.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// The same run, which ended well.
    #[track_caller]
    pub(crate) fn done(self) -> Ran {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }

    /// That it was refused for this reason, and names this way out.
    #[track_caller]
    pub(crate) fn assert_refuses(&self, reason: &str, way_out: &str) {
        assert_eq!(self.code, 3, "{self:?}");
        let (message, hint) = self.stderr.split_once("\n  hint: ").unwrap();
        assert!(message.contains(reason), "{}", self.stderr);
        assert!(hint.contains(way_out), "{}", self.stderr);
    }

    /// Its standard output as JSON.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        let done = self.done();
        serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}: {}", done.stdout))
    }
}

pub(crate) struct Lab {
    pub(crate) mock: MockResponses,
    pub(crate) gemini: MockGemini,
    pub(crate) home: CodexHome,
    pub(crate) thread: String,
    /// How many of the newest messages stay verbatim.
    pub(crate) keep: &'static str,
}

impl Lab {
    /// A home without a thread.
    pub(crate) fn empty(client: &Client) -> Lab {
        let mock = MockResponses::start();
        mock.on(
            "FIRST",
            [
                ResponsesTurn::shell("seq 1 950; echo OLD-$((40+1)); seq 951 1900"),
                ResponsesTurn::text("first done"),
            ],
        );
        mock.on(
            "SECOND",
            [
                ResponsesTurn::new()
                    .and_reasoning("think")
                    .and_shell("seq 1 950; echo PAR-$((1+1)); seq 951 1900")
                    .and_shell("seq 1 950; echo PAR-$((2+2)); seq 951 1900"),
                ResponsesTurn::text("second done"),
            ],
        );
        Lab {
            home: CodexHome::new(client, &mock),
            gemini: MockGemini::start(),
            mock,
            thread: String::new(),
            keep: "2",
        }
    }

    /// A thread made by the client: a tool call, reasoning with two parallel calls, and a plain
    /// answer after which that many of 258,400 tokens are used.
    pub(crate) fn new(client: &Client, tokens: u64) -> Lab {
        let mut lab = Lab::empty(client);
        let run = lab.home.prompt("FIRST: run it").run().success();
        run.thread_id().clone_into(&mut lab.thread);
        lab.turn("SECOND: run both");
        lab.mock
            .next(ResponsesTurn::text("third done").with_input_tokens(tokens));
        lab.turn("THIRD: just say so");
        lab
    }

    /// A fixture home for this client.
    pub(crate) fn of_fixture(client: &Client, name: &str) -> Lab {
        let mut lab = Lab::empty(client);
        let codex_home = lab.home.codex_home();
        let config = fs::read(codex_home.join("config.toml")).unwrap();
        copy(&Path::new(FIXTURES).join(name), &codex_home);
        fs::write(codex_home.join("config.toml"), config).unwrap();
        let state = Connection::open(codex_home.join("state_5.sqlite")).unwrap();
        let sql = "UPDATE threads SET rollout_path = replace(rollout_path, ?1, ?2)";
        let place = codex_home.to_string_lossy();
        assert!(state.execute(sql, [MADE_AT, &place]).unwrap() > 0);
        let newest = "SELECT id FROM threads ORDER BY updated_at_ms DESC, id DESC LIMIT 1";
        lab.thread = state.query_row(newest, [], |row| row.get(0)).unwrap();
        lab
    }

    /// One more turn of the real client; returns the requests that it sent.
    #[track_caller]
    pub(crate) fn turn(&self, text: &str) -> Vec<Recorded> {
        self.mock.log().take();
        self.home.prompt(text).resume(&self.thread).run().success();
        let requests = self.mock.log().all();
        requests
            .into_iter()
            .filter(|r| r.path.contains("responses"))
            .collect()
    }

    /// The binary as a command in this home, with nothing else of the environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ctxfold"));
        command
            .args(arguments)
            .env_clear()
            .env("HOME", self.home.home())
            .env("CODEX_HOME", self.home.codex_home())
            .env(
                "CTXFOLD_GEMINI_API_KEY",
                "AIzaTEST-not-a-key-0000000000000000000000",
            )
            .env("CTXFOLD_GEMINI_BASE_URL", self.gemini.url())
            .env("NO_PROXY", "127.0.0.1")
            .current_dir(self.home.project())
            .stdin(Stdio::null());
        command
    }

    /// Lets every rollout look as if it rested for a while: a client without leases may have one
    /// that changed a moment ago.
    fn rest(&self) {
        let earlier = SystemTime::now() - Duration::from_mins(2);
        for path in self.home.rollouts() {
            let file = fs::File::options().append(true).open(path);
            // One that may not be written is a scene of its own.
            drop(file.and_then(|file| file.set_modified(earlier)));
        }
    }

    /// Runs the binary.
    pub(crate) fn fold(&self, arguments: &[&str]) -> Ran {
        self.rest();
        let output = self.command(arguments).output().unwrap();
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Compacts the thread in a mode, everything before the newest turn, with the mock as the
    /// model.
    #[track_caller]
    pub(crate) fn compact(&self, mode: &str) -> Ran {
        self.compact_with(mode, &[])
    }

    /// As [`Lab::compact`], with more on the command line.
    #[track_caller]
    pub(crate) fn compact_with(&self, mode: &str, more: &[&str]) -> Ran {
        match mode {
            "summary" => self.gemini.next(GeminiTurn::text(SUMMARY)),
            "prune" => self.gemini.next(GeminiTurn::text(&drop_all(self.calls()))),
            _ => {}
        }
        let mut arguments = self.compact_arguments(mode);
        arguments.extend(more);
        self.fold(&arguments).done()
    }

    /// That a command is refused for this reason, names this way out, and changes nothing.
    #[track_caller]
    pub(crate) fn assert_refused(&self, arguments: &[&str], reason: &str, way_out: &str) {
        let before = self.bytes();
        self.fold(arguments).assert_refuses(reason, way_out);
        let after = self.bytes();
        let changed: Vec<&PathBuf> = (before.iter().filter(|file| !after.contains(file)))
            .chain(after.iter().filter(|file| !before.contains(file)))
            .map(|(path, _)| path)
            .collect();
        assert!(changed.is_empty(), "{changed:?}");
    }

    pub(crate) fn compact_arguments<'a>(&'a self, mode: &'a str) -> Vec<&'a str> {
        let line = "compact --agent codex --fallback none --mode";
        let more = [mode, "--keep", self.keep, &self.thread];
        line.split(' ').chain(more).collect()
    }

    /// How many older calls the model of a prune would be asked about.
    fn calls(&self) -> usize {
        let mut arguments = self.compact_arguments("prune");
        arguments.extend(["--dry-run", "--json"]);
        let ran = self.fold(&arguments);
        let Ok(asked) = serde_json::from_str::<Value>(&ran.stdout) else {
            return 0;
        };
        let text = asked["requests"][0]["text"].as_str().unwrap_or_default();
        let (_, rest) = text.rsplit_once("over exactly these ").unwrap_or_default();
        rest.split(' ')
            .next()
            .and_then(|n| n.parse().ok())
            .unwrap_or(0)
    }

    /// The thread's active rollout, as the client's own store says.
    pub(crate) fn rollout(&self) -> PathBuf {
        let state = read_only(&self.home.codex_home().join("state_5.sqlite"));
        let sql = "SELECT rollout_path FROM threads WHERE id = ?1";
        let path: String = state
            .query_row(sql, [&self.thread], |row| row.get(0))
            .unwrap();
        PathBuf::from(path)
    }

    /// That rollout and projection agree, by our own account and by the rows themselves.
    #[track_caller]
    pub(crate) fn assert_exact(&self) {
        let checked = self
            .fold(&["check", "--agent", "codex", "--json", &self.thread])
            .json();
        let path = self.rollout();
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<Value> = text
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        let paginated = lines[0]["payload"]["history_mode"] == "paginated";
        let bad: Vec<&Value> = checked["findings"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|f| {
                let code = f["code"].as_str().unwrap();
                code != "codex/store-wal" && (paginated || !code.contains("/projection"))
            })
            .collect();
        assert!(bad.is_empty(), "{bad:?}");
        if !paginated {
            assert!(lines.iter().all(|l| l.get("ordinal").is_none()));
            return;
        }
        let first = lines[0]["ordinal"].as_u64().unwrap();
        for (at, line) in lines.iter().enumerate() {
            assert_eq!(line["ordinal"], first + at as u64, "{line}");
        }
        let state = read_only(&self.home.codex_home().join("thread_history_1.sqlite"));
        let sql = "SELECT next_rollout_byte_offset, next_rollout_ordinal
                   FROM thread_history_projection_state WHERE thread_id = ?1";
        let reached: (i64, i64) = state
            .query_row(sql, [rollout_id(&path)], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap();
        let end = first + lines.len() as u64;
        let len = text.len() as u64;
        assert_eq!(reached, (len.cast_signed(), end.cast_signed()));
    }

    /// What the client shows of the thread's history, after resuming it or without.
    pub(crate) fn history(&self, resume: bool) -> Value {
        let mut server = self.home.app_server();
        if resume {
            let params = json!({"threadId": self.thread});
            server.request("thread/resume", params).unwrap();
        }
        let params = json!({"threadId": self.thread, "includeTurns": true});
        server.request("thread/read", params).unwrap()["thread"]["turns"].take()
    }

    /// Compacts the thread as the client's `/compact` does.
    pub(crate) fn compact_by_client(&self, summary: &str) {
        self.mock.set_summary(summary);
        let mut server = self.home.app_server();
        let params = json!({"threadId": self.thread});
        server.request("thread/resume", params).unwrap();
        server.compact(&self.thread);
    }

    /// How many compactions the client's history shows.
    #[track_caller]
    pub(crate) fn markers(&self) -> usize {
        markers(&self.history(true))
    }

    /// Every file of the client's home with its bytes, without locks, and without the index and
    /// the empty log that SQLite makes beside a store when it is opened.
    pub(crate) fn bytes(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        collect(&self.home.codex_home(), &mut found);
        found.sort();
        found
    }
}

/// How many compactions a history shows.
pub(crate) fn markers(turns: &Value) -> usize {
    let turns = turns.as_array().unwrap();
    let items = turns.iter().flat_map(|t| t["items"].as_array().unwrap());
    items.filter(|i| i["type"] == "contextCompaction").count()
}

/// The id that projections are kept under: behind the underscore where a thread was reverted.
fn rollout_id(path: &Path) -> String {
    let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
    stem[stem.len() - 36..].to_owned()
}

fn read_only(path: &Path) -> Connection {
    let store = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    store.busy_timeout(Duration::from_secs(10)).unwrap();
    store
}

/// A prune's answer that drops every call.
fn drop_all(calls: usize) -> String {
    let decisions: Vec<Value> = (1..=calls)
        .map(|n| json!({"id": format!("c{n}"), "action": "drop"}))
        .collect();
    json!({ "decisions": decisions }).to_string()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            // Fixtures may have been checked out read-only; the copy is for writing.
            fs::write(target, fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}

fn collect(folder: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name == "thread-writer-locks" {
            continue;
        }
        if path.is_dir() {
            collect(&path, found);
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let is_empty_log = name.ends_with("-wal") && bytes.is_empty();
        if !name.ends_with("-shm") && !is_empty_log {
            found.push((path, bytes));
        }
    }
}

#[track_caller]
pub(crate) fn assert_one(requests: &[Recorded], held: &[&str], gone: &[&str]) {
    assert_eq!(requests.len(), 1, "one request");
    for text in held {
        assert!(
            requests[0].holds(text),
            "{text} is missing: {:?}",
            requests[0].input()
        );
    }
    for text in gone {
        assert!(!requests[0].holds(text), "{text} is still there");
    }
}

/// One test for each pinned version.
macro_rules! on_each_version {
    ($($scene:ident),* $(,)?) => {
        mod newest { $( #[test] fn $scene() { super::$scene(ctxfold_test_support::clients::CODEX[0]); } )* }
        mod middle { $( #[test] fn $scene() { super::$scene(ctxfold_test_support::clients::CODEX[1]); } )* }
        mod oldest { $( #[test] fn $scene() { super::$scene(ctxfold_test_support::clients::CODEX[2]); } )* }
    };
}
pub(crate) use on_each_version;
