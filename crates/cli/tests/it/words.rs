//! What the user said outlives every mode, wherever they said it, and every way back that a ledger
//! prints is one.

use ctxfold_compactor::{Ledger, SECTIONS};
use ctxfold_test_support::{GeminiTurn, MockGemini};
use serde_json::{Value, json};

use crate::lab::{Lab, SESSION};

/// A session row by row.
#[derive(Default)]
struct Rows {
    rows: Vec<Value>,
}

impl Rows {
    fn put(&mut self, kind: &str, message: &Value) -> &mut Rows {
        let uuid = |n: usize| format!("{n:08x}-aaaa-4bbb-8ccc-dddddddddddd");
        let at = self.rows.len();
        let row = json!({
            "parentUuid": at.checked_sub(1).map(uuid), "isSidechain": false, "type": kind,
            "message": message, "uuid": uuid(at), "sessionId": SESSION,
            "timestamp": "2026-02-25T10:00:00.000Z", "cwd": "/home/dev/proj", "version": "2.1.332",
        });
        self.rows.push(row);
        self
    }

    fn user(&mut self, content: &Value) -> &mut Rows {
        self.put("user", &json!({"role": "user", "content": content}))
    }

    fn assistant(&mut self, block: &Value) -> &mut Rows {
        let id = format!("msg_{}", self.rows.len());
        let message = json!({"role": "assistant", "id": id, "model": "m", "content": [block]});
        self.put("assistant", &message)
    }

    /// A call, and its result with what stands beside it.
    fn call(&mut self, tool: &str, output: &str, is_error: bool, beside: &[&str]) -> &mut Rows {
        let id = format!("toolu_{:016}", self.rows.len());
        let input = json!({"file_path": "/home/dev/proj/a.rs", "command": "ls"});
        self.assistant(&json!({"type": "tool_use", "id": id, "name": tool, "input": input}));
        let mut content = vec![
            json!({"type": "tool_result", "tool_use_id": id, "content": output, "is_error": is_error}),
        ];
        content.extend(
            beside
                .iter()
                .map(|text| json!({"type": "text", "text": text})),
        );
        self.user(&json!(content))
    }

    fn talk(&mut self, turns: usize) -> &mut Rows {
        for n in 0..turns {
            self.user(&json!(format!("go on {n}")));
            self.assistant(&json!({"type": "text", "text": format!("done {n}")}));
        }
        self
    }

    fn lab(&self) -> Lab {
        let lab = Lab::empty();
        let rows: Vec<String> = self.rows.iter().map(Value::to_string).collect();
        lab.write(rows.join("\n") + "\n");
        lab
    }
}

fn summarise(lab: &Lab) -> String {
    let gemini = MockGemini::start();
    let sections =
        SECTIONS.map(|title| format!("## {title}\nNothing worth a word happened here.\n"));
    gemini.next(GeminiTurn::text(&sections.concat()));
    let mut command = lab.command(&["compact", SESSION, "--mode", "summary"]);
    command
        .env("CTXFOLD_GEMINI_BASE_URL", gemini.url())
        .env("CTXFOLD_GEMINI_API_KEY", "k");
    lab.ran(&mut command).done();
    let rows = String::from_utf8(lab.bytes()).unwrap();
    let summary: Value = serde_json::from_str(rows.lines().last().unwrap()).unwrap();
    summary["message"]["content"].as_str().unwrap().to_owned()
}

const REFUSED: &str = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). To tell you how to proceed, the user said:\n";

/// Words that stand in results, beside them and behind a command.
const SAID: [&str; 4] = [
    "Never touch the vault, put it into src/ instead.",
    r#""Which database?"="postgres only, never sqlite""#,
    "and by the way never log in as root",
    "/fix the parser, without new dependencies",
];

fn spoken() -> Rows {
    let filler = "a line of an output that nobody needs again\n".repeat(40);
    let answer = format!(
        "Your questions have been answered: {}. You can now continue with these answers in mind.",
        SAID[1]
    );
    let mut rows = Rows::default();
    rows.user(&json!("begin"))
        .call("Edit", &format!("{REFUSED}{}", SAID[0]), true, &[])
        .call("Edit", &filler, false, &[])
        .call("AskUserQuestion", &answer, false, &[])
        .call("AskUserQuestion", &filler, false, &[])
        .call("Bash", &filler, false, &[SAID[2], "[Request interrupted by user]"])
        .user(&json!("<command-message>fix</command-message>\n<command-name>/fix</command-name>\n<command-args>the parser, without new dependencies</command-args>"))
        .user(&json!("<command-name>/model</command-name>\n<command-args>never mind this</command-args>"))
        .user(&json!("<local-command-stdout>never mind that</local-command-stdout>"))
        .talk(6);
    rows
}

#[test]
fn words_in_results_survive_a_summary() {
    let summary = summarise(&spoken().lab());
    let ledger = Ledger::parse(&summary).unwrap();
    let heard: Vec<&str> = ledger
        .user_messages
        .iter()
        .map(|said| &*said.text)
        .collect();
    for said in SAID {
        assert!(heard.contains(&said), "{said}: {heard:?}");
        assert!(
            ledger.standing.iter().any(|s| said.contains(s.as_str())),
            "{said}"
        );
    }
    for noise in ["never mind", "[Request interrupted"] {
        assert!(!ledger.to_string().contains(noise), "{noise}");
    }
}

#[test]
fn words_in_results_are_not_masked() {
    let lab = spoken().lab();
    let plan = lab
        .ctxfold(&["compact", SESSION, "--aggressive", "--json"])
        .json();
    let folded = plan["decisions"].as_array().unwrap().iter();
    let labels: Vec<_> = folded.map(|d| d["what"].as_str().unwrap()).collect();
    // Of the two edits and three other calls those in which nobody speaks.
    let free = ["Edit(ls)", "Bash(ls)"];
    assert_eq!(labels, free);
    let rows = String::from_utf8(lab.bytes()).unwrap();
    for said in [SAID[0], SAID[2]] {
        assert!(rows.contains(said));
    }
}

#[test]
fn every_way_back_that_a_ledger_prints_is_one() {
    // The newest message takes all that the ledger has for messages.
    let long = |mark: &str| {
        format!(
            "Hi!\n\nPlease fix the {mark}.\n{}the end of {mark}",
            "wörds of a long message, \"quoted\"\t\r\n".repeat(60)
        )
    };
    let first = long("frobnicator") + &"x".repeat(40_000);
    let beside = long("needle beside a result");
    let mut rows = Rows::default();
    rows.user(&json!("begin"))
        .user(&json!([{"type": "text", "text": first}]))
        .assistant(&json!({"type": "text", "text": "an answer with a NEEDLE in it\nof two lines"}))
        .call("Bash", "out", false, &[&beside])
        .user(&json!("y ".repeat(39_900)))
        .talk(6);
    let lab = rows.lab();
    let summary = summarise(&lab);
    let commands: Vec<&str> = summary
        .split("read all of it with: ctxfold ")
        .skip(1)
        .map(|rest| rest.split(']').next().unwrap())
        .collect();
    assert_eq!(commands.len(), 2, "{summary}");
    let read = |command: &str| {
        let arguments: Vec<&str> = command.split(' ').collect();
        lab.ctxfold(&arguments).done().stdout
    };
    assert!(read(commands[0]) == first, "byte for byte");
    assert!(read(commands[1]) == beside, "byte for byte");

    // What is only searched for is found too, of user and assistant.
    let search = |pattern: &str| {
        let found = [
            "unfold",
            "--search",
            pattern,
            "--session",
            SESSION,
            "--json",
        ];
        lab.ctxfold(&found).json()["hits"]
            .as_array()
            .unwrap()
            .clone()
    };
    let hits = search("NEEDLE");
    assert_eq!(hits.len(), 1, "{hits:?}");
    assert_eq!(
        hits[0]["label"],
        "assistant(an answer with a NEEDLE in it of two lines)"
    );
    let address = hits[0]["address"].as_str().unwrap();
    assert_eq!(
        read(&format!("unfold {address}")),
        "an answer with a NEEDLE in it\nof two lines"
    );
    let hits = search("^Please fix the");
    let places: Vec<_> = hits
        .iter()
        .map(|hit| hit["line"].as_u64().unwrap())
        .collect();
    assert_eq!(places, [3, 3]);
    assert!(commands[0].ends_with(hits[0]["address"].as_str().unwrap()));
    // What still reaches the model is not folded.
    let kept = ["unfold", "--search", "go on 5", "--session", SESSION];
    assert_eq!(lab.ctxfold(&kept).code, 1);
}
