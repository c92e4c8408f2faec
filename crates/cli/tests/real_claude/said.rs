//! What the user says outside of prompts, as the real client writes it down: why they refused a
//! call, what they answered to a question, and what follows the name of a command.

use std::fs;

use ctxfold_test_support::{Turn, require_client};
use serde_json::json;

use crate::lab::{Lab, SESSION};
use crate::modelled::summary;
use crate::on_each_version;
use crate::wire::Wire;

on_each_version!(what_the_user_says_in_results_and_commands_outlives_every_mode);

/// What the client's terminal puts before the reason of a refusal.
const REFUSED: &str = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). To tell you how to proceed, the user said:\n";

const SAID: [&str; 3] = [
    "Never touch the vault.",
    "postgres only, never sqlite",
    "/fix the parser, without new dependencies",
];

fn what_the_user_says_in_results_and_commands_outlives_every_mode(version: &str) {
    let client = require_client!(claude, version);
    let lab = Lab::empty(&client);
    let file = lab.home.project().join("vault.txt");
    let write = json!({"file_path": file, "content": "a line\n".repeat(300)});
    let mut question = json!({"questions": [{
        "question": "Which database?", "header": "Database", "multiSelect": false,
        "options": [
            {"label": "sqlite", "description": "small"},
            {"label": "mysql", "description": "big"},
        ],
    }]});
    let turns = |tool, input| [Turn::tool(tool, input), Turn::text("so be it")];
    lab.mock.on("REFUSE", turns("Write", write.clone()));
    lab.mock.on("AGAIN", turns("Write", write.clone()));
    lab.mock
        .on("ASK", turns("AskUserQuestion", question.clone()));
    lab.mock.on("EXPANDED", [Turn::text("fixed")]);
    let commands = lab.home.project().join(".claude/commands");
    fs::create_dir_all(&commands).unwrap();
    let command = "EXPANDED: fix what is asked for: $ARGUMENTS\n";
    fs::write(commands.join("fix.md"), command).unwrap();

    // The newer client marks words that a host hands over; of the older one only the terminal's
    // wording tells that the user speaks.
    let reason = match version {
        "2.1.197" => format!("{REFUSED}{}", SAID[0]),
        _ => SAID[0].to_owned(),
    };
    question["answers"] = json!({"Which database?": SAID[1]});
    let answers = [
        json!({"behavior": "deny", "message": reason}),
        json!({"behavior": "allow", "updatedInput": write}),
        json!({"behavior": "allow", "updatedInput": question}),
    ];
    let mut live = lab.home.live_asking(&["--session-id", SESSION], answers);
    for prompt in [
        "REFUSE: write it",
        "AGAIN: write it",
        "ASK: me",
        SAID[2],
        "FIRST: numbers",
        "talk one",
        "talk two",
        "talk three",
    ] {
        live.say(prompt);
    }
    lab.wait_for_text("to: talk three");
    drop(live);
    let sent = |wire: &Wire, said: &str| {
        let arguments = said.strip_prefix("/fix ").unwrap_or(said);
        wire.holds(arguments)
    };
    let before = lab.probe();
    for said in SAID {
        assert!(sent(&before, said) > 0, "{said}");
    }

    let plan = lab.compact(&["--aggressive"]);
    let masked = Wire::of(lab.resume("PROBE").messages());
    masked.assert_planned(&before, &plan);
    assert_eq!(masked.holds("ALONE-42"), 0, "the numbers are folded");
    for said in SAID {
        assert_eq!(sent(&masked, said), sent(&before, said), "{said}");
    }

    for prompt in ["talk four", "talk five", "talk six"] {
        lab.resume(prompt);
    }
    lab.gemini.next(summary("MODEL"));
    lab.compact(&["--mode", "summary"]);
    let summed = Wire::of(lab.resume("PROBE").messages());
    assert!(summed.holds("MODEL") > 0 && summed.holds("AGAIN: write it") == 1);
    for said in SAID {
        assert_eq!(summed.holds(said), 1, "{said}");
    }

    // And where they stood they are found.
    let search = ["unfold", "--search", SAID[0], "--session", SESSION];
    let found = lab.ctxfold(&search).done().stdout;
    let (address, _) = found
        .split_once(":1: ")
        .or(found.split_once(":2: "))
        .unwrap();
    let read = lab.ctxfold(&["unfold", address]).done().stdout;
    assert_eq!(read, reason);
}
