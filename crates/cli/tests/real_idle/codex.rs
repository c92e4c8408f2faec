//! Codex through `ctxfold resume`, and the hook that stops an expensive prompt.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use ctxfold_test_support::{
    CodexHome, MockGemini, MockResponses, Recorded, ResponsesTurn, clients, poll, require_client,
};
use serde_json::json;

use crate::lab::{HOUR, Ran, environment, run};
use crate::old::{make_old, set_age};

/// A thread with three long outputs that ended a moment ago.
struct Lab {
    mock: MockResponses,
    gemini: MockGemini,
    home: CodexHome,
    env: BTreeMap<String, String>,
    thread: String,
    /// Bytes of the last request's input.
    full: usize,
}

impl Lab {
    fn new(client: &ctxfold_test_support::Client) -> Lab {
        let mock = MockResponses::start();
        let gemini = MockGemini::start();
        let home = CodexHome::new(client, &mock);
        let noisy = |mark: &str| format!("seq 1 950; echo {mark}-$((40+2)); seq 951 1900");
        mock.on(
            "FIRST",
            [
                ResponsesTurn::shell(&noisy("OLD-A")),
                ResponsesTurn::shell(&noisy("OLD-B")),
                ResponsesTurn::shell(&noisy("OLD-C")),
                ResponsesTurn::text("first done"),
            ],
        );
        let made = home.prompt("FIRST: count").run().success();
        let thread = made.thread_id().to_owned();
        for prompt in ["talk one", "talk two", "talk three"] {
            home.prompt(prompt).resume(&thread).run().success();
        }
        let sent = requests(&mock).pop().unwrap();
        assert!(sent.holds("OLD-B-42"), "the whole history was sent");
        let env = environment(home.env(), client, &gemini);
        let lab = Lab {
            full: size(&sent),
            mock,
            gemini,
            home,
            env,
            thread,
        };
        lab.run(&["idle", "on"]).done();
        lab.run(&["idle", "codex", "on"]).done();
        lab.run(&["idle", "min", "16KB"]).done();
        lab.mock.log().take();
        lab
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        run(&self.env, &self.home.project(), arguments)
    }

    /// `ctxfold resume` with a prompt for `codex exec`.
    fn resume(&self) -> Ran {
        let client = ["exec", "--json", "--skip-git-repo-check", "GO-ON: with it"];
        self.run(&[&["resume", &self.thread, "--"], &client[..]].concat())
    }

    fn file(&self) -> PathBuf {
        self.home.rollout(&self.thread).unwrap()
    }

    fn text(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }

    fn compactions(&self) -> usize {
        self.text().matches("\"type\":\"compacted\"").count()
    }

    #[track_caller]
    fn short_request(&self, prompt: &str) {
        let requests = requests(&self.mock);
        assert_eq!(requests.len(), 1, "one prompt, one request");
        let request = &requests[0];
        assert!(request.holds(prompt), "the prompt is in it");
        for old in ["OLD-A-42", "OLD-B-42", "OLD-C-42"] {
            assert!(!request.holds(old), "{old} is out of it");
        }
        for said in ["FIRST: count", "first done", "talk one"] {
            assert!(request.holds(said), "{said} stays");
        }
        let (now, full) = (size(request), self.full);
        assert!(now < full, "{now} of {full} bytes");
        eprintln!("one request of {now} bytes of input, {full} without a compaction");
    }
}

fn requests(mock: &MockResponses) -> Vec<Recorded> {
    let all = mock.log().all().into_iter();
    all.filter(|r| r.path.contains("responses") && !r.input().is_empty())
        .collect()
}

fn size(request: &Recorded) -> usize {
    serde_json::to_string(request.input()).unwrap().len()
}

#[test]
fn a_cold_thread_is_resumed_short_once_and_never_under_another_writer() {
    let version = clients::CODEX[0];
    let client = require_client!(codex, version);
    let lab = Lab::new(&client);
    let before = lab.text();

    // Warm.
    lab.run(&["resume", &lab.thread, "-n"])
        .done()
        .says("cache is warm");
    make_old(&lab.file(), 3 * HOUR);
    let cold = lab.text();
    assert_eq!(before.len(), cold.len());

    // The switch of its own.
    lab.run(&["idle", "codex", "off"]).done();
    lab.run(&["idle", "run"]).done().says("0 compacted");
    lab.run(&["idle", "codex", "on"]).done();

    // Another client has it.
    let mut server = lab.home.app_server();
    let params = json!({"threadId": lab.thread});
    server.request("thread/resume", params).unwrap();
    make_old(&lab.file(), 3 * HOUR);
    let held = lab.text();
    lab.run(&["idle", "run"]).done().says("0 compacted");
    lab.run(&["resume", &lab.thread, "-n"])
        .done()
        .says("a process has the conversation open");
    let ran = lab.resume();
    ran.says("a process has the conversation open");
    assert_ne!(ran.code, 0, "the client refuses it too: {ran:?}");
    assert_eq!(lab.text(), held, "nothing was written beside it");
    assert_eq!(requests(&lab.mock).len(), 0);
    server.kill();
    let freed = poll(2 * HOUR / 60, || {
        let ran = lab.run(&["resume", &lab.thread, "-n"]);
        (!ran.stderr.contains("has the conversation open")).then_some(())
    });
    assert!(freed.is_some(), "a killed client holds no lease");

    make_old(&lab.file(), 3 * HOUR);
    let resumed = lab.resume().done();
    resumed.says("% smaller");
    assert!(resumed.stdout.contains(&lab.thread), "{resumed:?}");
    lab.short_request("GO-ON: with it");
    assert_eq!(lab.compactions(), 1);

    lab.mock.log().take();
    lab.resume().done().says("cache is warm");
    lab.short_request("GO-ON: with it");
    assert_eq!(lab.compactions(), 1);
    assert_eq!(lab.gemini.log().all().len(), 0, "nothing left the machine");
}

#[test]
fn a_thread_is_compacted_once_a_pause_however_long_it_is() {
    let version = clients::CODEX[0];
    let client = require_client!(codex, version);
    let lab = Lab::new(&client);
    make_old(&lab.file(), 3 * HOUR);
    lab.run(&["idle", "run"]).done().says("1 compacted");
    let text = lab.text();
    // What the compaction left was never sent, however fresh the file is.
    lab.run(&["resume", &lab.thread, "-n"])
        .done()
        .says("not cached any more");
    for age in [HOUR / 2, 3 * HOUR, 30 * HOUR] {
        set_age(&lab.file(), age);
        lab.run(&["idle", "run"]).done().says("0 compacted, 1 left");
        lab.run(&["resume", &lab.thread, "-n"])
            .done()
            .says("compacted in this pause already");
    }
    assert_eq!(lab.text(), text);
    assert_eq!(lab.compactions(), 1);
}

/// A client that takes no lease is known by what it has open, before a model is asked.
#[test]
fn a_thread_without_leases_is_left_alone_while_a_client_has_it() {
    let client = require_client!(codex, clients::CODEX[2]);
    let lab = Lab::new(&client);
    lab.run(&["idle", "model", "default"]).done();
    let mut server = lab.home.app_server();
    let params = json!({"threadId": lab.thread});
    server.request("thread/resume", params).unwrap();
    server.turn(&lab.thread, "hold it");
    make_old(&lab.file(), 3 * HOUR);
    let held = lab.text();
    lab.run(&["idle", "run"]).done().says("0 compacted");
    for arguments in [&["idle", "run", "-n"][..], &["resume", &lab.thread, "-n"]] {
        lab.run(arguments).done().says("open");
    }
    assert_eq!(lab.text(), held, "nothing was written beside it");
    assert_eq!(lab.gemini.log().all().len(), 0, "nobody was asked");
    server.kill();
    lab.run(&["idle", "model", "none"]).done();
    let freed = poll(HOUR / 60, || {
        let ran = lab.run(&["idle", "run"]).done();
        ran.stderr.contains("1 compacted").then_some(())
    });
    assert!(freed.is_some(), "a killed client has nothing open");
}

#[test]
fn the_hook_stops_an_expensive_prompt_once() {
    let version = clients::CODEX[0];
    let client = require_client!(codex, version);
    let mut lab = Lab::new(&client);
    let hook = format!("{} hook --host codex", env!("CARGO_BIN_EXE_ctxfold"));
    let hooks = json!({"hooks": {"UserPromptSubmit": [{
        "hooks": [{"type": "command", "command": hook, "timeout": 20}],
    }]}});
    fs::write(lab.home.codex_home().join("hooks.json"), hooks.to_string()).unwrap();
    for (key, value) in lab.env.clone() {
        lab.home.set_env(&key, &value);
    }
    let go = |lab: &Lab, text: &str| {
        lab.mock.log().take();
        let mut command = lab.home.command();
        command.args([
            "exec",
            "--skip-git-repo-check",
            "--dangerously-bypass-hook-trust",
        ]);
        let output = command
            .args(["resume", &lab.thread, text])
            .output()
            .unwrap();
        let [out, err] = [output.stdout, output.stderr].map(|o| String::from_utf8(o).unwrap());
        out + &err
    };

    // Off by default.
    make_old(&lab.file(), 3 * HOUR);
    go(&lab, "GO-ON: off");
    assert_eq!(requests(&lab.mock).len(), 1);

    lab.run(&["config", "set", "idle.codex-stop", "true"])
        .done();
    go(&lab, "GO-ON: warm");
    assert_eq!(requests(&lab.mock).len(), 1);

    make_old(&lab.file(), 3 * HOUR);
    let said = go(&lab, "GO-ON: cold");
    assert_eq!(requests(&lab.mock).len(), 0, "{said}");
    assert!(said.contains("hook: UserPromptSubmit Blocked"), "{said}");

    // Who sends it again wants it so.
    go(&lab, "GO-ON: again");
    assert_eq!(requests(&lab.mock).len(), 1);

    // A terminal shows why, and the way out.
    make_old(&lab.file(), 4 * HOUR);
    lab.mock.log().take();
    let arguments = ["resume", &lab.thread, "--dangerously-bypass-hook-trust"];
    let terminal = lab.home.terminal(&arguments, (140, 50));
    terminal.type_text("GO-ON: in the box");
    terminal.wait_for("GO-ON: in the box", 2 * HOUR / 60);
    terminal.press("Enter");
    let command = format!("ctxfold resume {}", &lab.thread[lab.thread.len() - 8..]);
    let screen = terminal.wait_for(&command, HOUR / 60);
    assert_eq!(requests(&lab.mock).len(), 0, "{screen}");
}
