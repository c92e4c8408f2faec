//! Makes the demo session of `examples/demo-session` anew, by the real client against a scripted model:
//! `cargo run -p ctxfold --example make_demo`.

#![expect(clippy::unwrap_used, reason = "a tool of this repository, run by hand")]

use std::fs;
use std::path::{Path, PathBuf};

use ctxfold_test_support::{ClaudeHome, MockAnthropic, Turn, clients};
use serde_json::{Value, json};

const ID: &str = "d3a0c0de-5e55-4000-8000-000000000001";
/// Where the demo's project lies, as its rows say.
const CWD: &str = "/home/dev/weather";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/demo-session")
}

const REPORT: &str = "#!/bin/sh
# Mean temperature of each station, warmest first.
head -n -1 stations.csv | tail -n +2 | awk -F, '{ sum[$1] += $3; n[$1]++ }
  END { for (s in sum) printf \"%s %.1f\\n\", s, sum[s] / n[s] }' | sort -k2,2nr
";

fn write_project(home: &ClaudeHome) {
    let mut rows = String::from("station,day,temperature\n");
    for day in 1..=60 {
        for (place, name) in ["Aalborg", "Bergen", "Cuxhaven", "Delft", "Esbjerg"]
            .iter()
            .enumerate()
        {
            let tenths = 40 + (day * 7 + place * 31) % 130;
            rows.push_str(&format!(
                "{name},2026-05-{day:02},{}.{}\n",
                tenths / 10,
                tenths % 10
            ));
        }
    }
    rows.push_str("Falun,2026-05-60,11.0\n");
    fs::write(home.project().join("stations.csv"), rows).unwrap();
    fs::write(home.project().join("report.sh"), REPORT).unwrap();
}

fn script(mock: &MockAnthropic, home: &ClaudeHome) {
    let at = |name: &str| home.project().join(name);
    let read = |name: &str| json!({"file_path": at(name)});
    let bash = |command: &str, why: &str| json!({"command": command, "description": why});
    mock.on("Falun is missing", [
        Turn::new()
            .and_thinking("The report reads stations.csv. Falun may be the last line of it.")
            .and_text("I'll look at the data and at the script.")
            .and_tool("Bash", bash("ls -l", "List the project"))
            .and_tool("Read", read("stations.csv"))
            .and_tool("Read", read("report.sh")),
        Turn::text("`head -n -1` cuts the last line, and Falun is the last line.")
            .and_tool("Edit", json!({
                "file_path": at("report.sh"), "old_string": "head -n -1 stations.csv | tail -n +2 | awk",
                "new_string": "tail -n +2 stations.csv | awk",
            })),
        Turn::tool("Bash", bash("sh report.sh", "Run the report")),
        Turn::text("Falun is in the report now: 11.0 on average."),
    ]);
    mock.on(
        "same for half a year",
        [
            Turn::new()
                .and_text("I'll make half a year of data and look at it.")
                .and_tool(
                    "Bash",
                    bash(
                        "for i in 1 2 3; do tail -n +2 stations.csv; done | tee long.csv",
                        "Make half a year of data",
                    ),
                )
                .and_tool(
                    "Bash",
                    bash("grep -n Delft stations.csv", "Find the rows of one station"),
                ),
            Turn::tool("Bash", bash("cat /home/dev/limits.txt", "Look for limits")),
            Turn::text("Half a year of data gives the same. There is no file with limits."),
        ],
    );
    mock.on(
        "never touch stations.csv",
        [
            Turn::tool("Read", read("report.sh")),
            Turn::text("Understood: stations.csv stays as it is. The script only reads it."),
        ],
    );
    mock.on(
        "what is left",
        [Turn::text(
            "Nothing: the report is right, and stations.csv is untouched.",
        )],
    );
    mock.on(
        "one line for the log",
        [Turn::text("report.sh: keep the last line of the data.")],
    );
    mock.on("good, thank you", [Turn::text("You're welcome.")]);
}

/// Makes paths neutral: the project's, its folder's in the store, and the home's.
fn strip(row: &mut Value, project: &str) {
    match row {
        Value::String(text) => {
            let home = project.strip_suffix("/proj").unwrap();
            let stored = |path: &str| path.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
            *text = text
                .replace(project, CWD)
                .replace(&stored(project), &stored(CWD))
                .replace(home, "/home/dev");
        }
        Value::Array(items) => items.iter_mut().for_each(|item| strip(item, project)),
        Value::Object(map) => map.values_mut().for_each(|item| strip(item, project)),
        _ => {}
    }
}

/// Takes the client's own words out.
fn blank(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > 40 && !text.starts_with('/') => {
            "(stripped)".clone_into(text);
        }
        Value::Array(items) => items.iter_mut().for_each(blank),
        Value::Object(map) => map.values_mut().for_each(blank),
        _ => {}
    }
}

fn stripped(text: &str, project: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut row: Value = serde_json::from_str(line).unwrap();
        let kind = row["type"].as_str().unwrap_or_default().to_owned();
        if kind.starts_with("api-request")
            || kind == "cost-state"
            || kind == "file-history-snapshot"
        {
            continue;
        }
        if kind == "attachment" {
            if row["attachment"]["type"] == "prompt_snapshot" {
                row["attachment"]["tools"] = json!([]);
            }
            for key in ["attachment", "rendered"] {
                if row.get(key).is_some() {
                    blank(&mut row[key]);
                }
            }
        }
        strip(&mut row, project);
        out.push_str(&row.to_string());
        out.push('\n');
    }
    out
}

fn main() {
    let client = clients::claude("2.1.332").expect("`cargo xtask clients` installs the client");
    let mock = MockAnthropic::start();
    let home = ClaudeHome::new(&client, &mock);
    write_project(&home);
    script(&mock, &home);
    let prompts = [
        "In the report of report.sh the station Falun is missing. Why? Please fix it.",
        "Does it do the same for half a year of data? Try it.",
        "Please never touch stations.csv, other people read it. Show me that the script doesn't.",
        "So what is left to do?",
        "Give me one line for the log.",
        "good, thank you",
    ];
    for (turn, prompt) in prompts.iter().enumerate() {
        let prompt = home.prompt(prompt);
        let prompt = if turn == 0 {
            prompt.arg("--session-id").arg(ID)
        } else {
            prompt.resume(ID)
        };
        prompt.run().success();
    }
    let text = fs::read_to_string(home.session_file(ID).unwrap()).unwrap();
    let project = home.project().to_str().unwrap().to_owned();
    fs::create_dir_all(folder()).unwrap();
    fs::write(
        folder().join(format!("{ID}.jsonl")),
        stripped(&text, &project),
    )
    .unwrap();
}
