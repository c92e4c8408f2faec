//! Whatever goes wrong: the client's own summary runs, and one line says why.

use std::fs;

use ctxfold_test_support::{Client, GeminiTurn, require_client};

use crate::lab::{Lab, THEIRS, binary, dist, own_market, replace};

/// Compacts and checks that the client did it by itself and that one line of ours says why.
#[track_caller]
fn falls_back(name: &str, lab: &Lab, why: &str) {
    falls_back_in(name, lab, &lab.conversation(), why);
}

#[track_caller]
fn falls_back_in(name: &str, lab: &Lab, id: &str, why: &str) {
    let printed = lab.stream(id, "/compact");
    let compactions = lab.mock.log().compactions().len();
    assert_eq!(compactions, 1, "{name}: {printed}");
    let lines: Vec<&str> = printed
        .lines()
        .filter(|line| line.contains("ui_log") && line.contains("ctxfold"))
        .collect();
    assert_eq!(lines.len(), 1, "{name}: {printed}");
    assert!(lines[0].contains(why), "{name}: {}", lines[0]);
    lab.home.prompt("SEVENTH").resume(id).run().success();
    assert!(lab.mock.log().last().holds(THEIRS), "{name}");
}

/// A lab whose packaged binary is replaced by a script.
fn with_script(client: &Client, script: &str) -> (tempfile::TempDir, Lab) {
    let (folder, market) = own_market();
    replace(&binary(&market, "ctxfold-core"), script);
    let lab = Lab::with(client, &market);
    (folder, lab)
}

#[test]
fn without_a_key() {
    let client = require_client!(claude, "2.1.332");
    let lab = Lab::bare(&client);
    lab.install(dist(), &["ctxfold-compact@ctxfold"]);
    lab.home.prompt("/ctxfold on").run().success();
    falls_back("no key", &lab, "key");
    assert!(lab.gemini.log().all().is_empty());
}

#[test]
fn gemini_refuses_or_answers_nonsense() {
    let client = require_client!(claude, "2.1.332");
    let lab = Lab::with(&client, dist());
    for (name, turn, why) in [
        (
            "a bad key",
            GeminiTurn::error(403, "PERMISSION_DENIED", "no"),
            "403",
        ),
        ("a short answer", GeminiTurn::text("no"), "fewer than 200"),
    ] {
        lab.gemini.next(turn);
        falls_back(name, &lab, why);
    }
}

#[test]
fn gemini_is_down() {
    let client = require_client!(claude, "2.1.332");
    let mut lab = Lab::with(&client, dist());
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    lab.home.set_env(
        "CTXFOLD_GEMINI_BASE_URL",
        &format!("http://127.0.0.1:{port}"),
    );
    falls_back("down", &lab, "connect");
}

#[test]
fn while_off_which_it_is_after_installation() {
    let client = require_client!(claude, "2.1.332");
    let lab = Lab::bare(&client);
    lab.install(dist(), &["ctxfold-compact@ctxfold"]);
    falls_back("off", &lab, "/ctxfold on");
}

/// A conversation of two short turns; its id.
fn short(lab: &Lab) -> String {
    let mut live = lab.home.live(&[]);
    live.say("THIRD: a short one");
    let result = live.say("FOURTH: and another");
    drop(live);
    lab.mock.log().take();
    result["session_id"].as_str().unwrap().to_owned()
}

#[test]
fn nothing_to_gain() {
    let client = require_client!(claude, "2.1.332");
    let lab = Lab::with(&client, dist());
    lab.home.prompt("/ctxfold mode mask").run().success();
    falls_back_in(
        "not smaller",
        &lab,
        &short(&lab),
        "the client's own summary instead",
    );
}

#[test]
fn a_binary_that_is_missing_or_killed_or_lies() {
    let client = require_client!(claude, "2.1.332");
    let (_folder, market) = own_market();
    let program = binary(&market, "ctxfold-core");
    let lab = Lab::with(&client, &market);
    for (name, script, why) in [
        ("killed", "kill -9 $$", "killed (SIGKILL)"),
        ("no JSON", "echo oops", "JSON"),
        (
            "no messages",
            "echo '{\"v\":1,\"messages\":[]}'",
            "no messages",
        ),
        (
            "a row of another kind",
            "echo '{\"v\":1,\"messages\":[{\"role\":\"user\",\"text\":7}]}'",
            "no messages",
        ),
        (
            "an error",
            "echo 'ctxfold: no luck today' >&2; exit 4",
            "no luck today",
        ),
    ] {
        replace(&program, script);
        falls_back_in(name, &lab, &short(&lab), why);
    }
    fs::remove_file(&program).unwrap();
    falls_back_in("missing", &lab, &short(&lab), "no binary for");
    fs::remove_file(market.join("plugins/ctxfold-core/bin/ctxfold")).unwrap();
    falls_back_in("no launcher", &lab, &short(&lab), "ENOENT");
    let models = lab.home.prompt("/ctxfold-core models").run().success();
    let text = models.text();
    assert!(
        text.contains("ctxfold: that did not work: ") && text.contains("ENOENT"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn an_answer_over_four_mebibytes_is_taken() {
    let client = require_client!(claude, "2.1.332");
    let script = "cat > /dev/null; printf '{\"v\":1,\"pad\":\"'; head -c 5000000 /dev/zero | tr '\\0' x; \
                  printf '\",\"note\":\"large\",\"messages\":[{\"role\":\"user\",\"toolUses\":[],\"text\":\"OUR-SUMMARY\"}]}'";
    let (_folder, lab) = with_script(&client, script);
    let id = lab.conversation();
    let printed = lab.stream(&id, "/compact");
    assert!(
        lab.mock.log().all().is_empty(),
        "{}",
        &printed[..printed.len().min(2000)]
    );
    lab.home.prompt("SEVENTH").resume(&id).run().success();
    let request = lab.mock.log().last();
    assert!(
        request.holds("OUR-SUMMARY") && !request.holds("FIRST: go on"),
        "{:#?}",
        request.messages()
    );
}
