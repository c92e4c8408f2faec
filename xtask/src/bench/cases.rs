//! What is measured, against what, and which limits the project promises.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ctxfold_test_support::generate::{ClaudeSession, CodexRollout};

use super::inputs::{Content, Input};
use super::measure::Measured;

/// The baseline in Node: reads a file and parses each line.
const NODE_BASELINE: &str = "xtask/src/bench/baseline.mjs";

const MIB: u64 = 1 << 20;

/// One table: a command of ours, its baselines, and what must hold.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) inputs: Vec<Input>,
    /// Ours first, then the baselines.
    pub(super) commands: Vec<Measured>,
    pub(super) effect: Effect,
    pub(super) limits: Vec<Limit>,
}

/// How one sees that our command did its work.
#[derive(Debug)]
pub(super) enum Effect {
    /// Standard output holds this text.
    Prints(&'static str),
    /// One of the inputs has grown.
    Appends,
}

/// What the project promises for a case.
#[derive(Debug)]
pub(super) enum Limit {
    /// At most so many times as long as a baseline, by its place among the commands.
    Ratio { baseline: usize, most: f64 },
    /// At most so many megabytes at the peak.
    PeakMb(f64),
    /// Of a hundred calls so many take at most this time.
    Within { percent: usize, most: Duration },
}

/// A command without home or input.
pub(super) fn command(name: &'static str, program: &str, arguments: &[&str]) -> Measured {
    Measured {
        name,
        program: PathBuf::from(program),
        arguments: arguments
            .iter()
            .map(|argument| (*argument).to_owned())
            .collect(),
        home: None,
        stdin: None,
    }
}

/// Every case, with our binary and the folder that the inputs live in.
pub(super) fn all(binary: &Path, home: &Path) -> Vec<Case> {
    let program = binary.to_string_lossy().into_owned();
    let ours = |name, arguments: &[&str]| {
        let measured = command(name, &program, arguments);
        Measured {
            home: Some(home.to_owned()),
            ..measured
        }
    };
    vec![
        start(&ours),
        compact_claude(&ours, home),
        inspect_claude(&ours, home),
        compact_codex(&ours, home),
        hook(&ours, home),
        idle(&program, home),
    ]
}

type Ours<'a> = &'a dyn Fn(&'static str, &[&str]) -> Measured;

fn start(ours: Ours<'_>) -> Case {
    Case {
        name: "start",
        about: "start-up, against a bare process",
        inputs: Vec::new(),
        commands: vec![
            ours("ctxfold --version", &["--version"]),
            command("true", "/bin/true", &[]),
        ],
        effect: Effect::Prints(env!("CARGO_PKG_VERSION")),
        limits: vec![Limit::Ratio {
            baseline: 1,
            most: 3.0,
        }],
    }
}

/// A session of Claude Code, where the client would keep it.
fn claude_input(home: &Path, id: &str, session: ClaudeSession) -> Input {
    let session = ClaudeSession {
        id: id.to_owned(),
        ..session
    };
    let folder = home.join(".claude/projects/-home-dev-proj");
    Input {
        path: folder.join(format!("{id}.jsonl")),
        content: Content::Claude(session),
    }
}

/// A live part of about 2 MB: 40 turns of 3 outputs of 16 KB.
fn live_2mb() -> ClaudeSession {
    ClaudeSession {
        turns: 40,
        calls: 3,
        output_bytes: 16 * 1024,
        ..ClaudeSession::default()
    }
}

fn compact_claude(ours: Ours<'_>, home: &Path) -> Case {
    let session = ClaudeSession {
        old_bytes: 1024 * MIB,
        progress_percent: 30,
        ..live_2mb()
    };
    let input = claude_input(home, "10000000-0000-4000-8000-000000000001", session);
    let path = input.path.to_string_lossy().into_owned();
    Case {
        name: "compact-claude",
        about: "mask a session of 1 GB whose live part is 2 MB",
        inputs: vec![input],
        commands: vec![
            ours("ctxfold compact", &["compact", "--quiet", &path]),
            command("wc -l", "wc", &["-l", &path]),
        ],
        effect: Effect::Appends,
        limits: vec![
            Limit::Ratio {
                baseline: 1,
                most: 1.0,
            },
            Limit::PeakMb(64.0),
        ],
    }
}

fn inspect_claude(ours: Ours<'_>, home: &Path) -> Case {
    let session = ClaudeSession {
        old_bytes: 298 * MIB,
        progress_percent: 30,
        ..live_2mb()
    };
    let input = claude_input(home, "10000000-0000-4000-8000-000000000002", session);
    let path = input.path.to_string_lossy().into_owned();
    Case {
        name: "inspect-claude",
        about: "scan a session of 300 MB from its beginning",
        inputs: vec![input],
        commands: vec![
            ours(
                "ctxfold inspect --all",
                &["inspect", "--all", "--json", &path],
            ),
            command("node", "node", &[NODE_BASELINE, &path]),
            command("wc -l", "wc", &["-l", &path]),
        ],
        // Only a scan of the whole file sees rows of that kind.
        effect: Effect::Prints("\"progress\""),
        limits: vec![
            Limit::Ratio {
                baseline: 1,
                most: 0.2,
            },
            Limit::PeakMb(66.0),
        ],
    }
}

fn compact_codex(ours: Ours<'_>, home: &Path) -> Case {
    let rollout = CodexRollout {
        id: "01a22eb2-072d-76f3-a271-000000000003".to_owned(),
        compactions: 500,
        image_bytes: 4 << 20,
        turns: 40,
        calls: 3,
        output_bytes: 16 * 1024,
        ..CodexRollout::default()
    };
    let path = home
        .join(".codex/sessions/2026/01/01")
        .join(rollout.file_name());
    let text = path.to_string_lossy().into_owned();
    // The last `compacted` line, with its image of 4 MB, is part of the live part.
    Case {
        name: "compact-codex",
        about: "mask a rollout of 2 GB with 500 compactions of images",
        inputs: vec![Input {
            path,
            content: Content::Codex(rollout),
        }],
        commands: vec![
            ours("ctxfold compact", &["compact", "--quiet", &text]),
            command("wc -l", "wc", &["-l", &text]),
        ],
        effect: Effect::Appends,
        limits: vec![
            Limit::Ratio {
                baseline: 1,
                most: 1.0,
            },
            Limit::PeakMb(72.0),
        ],
    }
}

fn hook(ours: Ours<'_>, home: &Path) -> Case {
    // So full that the monitor has something to say.
    let session = ClaudeSession {
        last_tokens: 900_000,
        old_bytes: 98 * MIB,
        progress_percent: 30,
        ..live_2mb()
    };
    let input = claude_input(home, "10000000-0000-4000-8000-000000000004", session);
    let event = serde_json::json!({
        "session_id": "10000000-0000-4000-8000-000000000004",
        "transcript_path": input.path,
        "cwd": "/home/dev/proj",
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "true"},
        "tool_response": {"stdout": "", "stderr": ""},
        // How every call's identifier begins: the client has written the answer down already.
        "tool_use_id": "toolu_00",
    });
    let stdin = home.join("stdin/hook/event.json");
    let event = Input {
        path: stdin.clone(),
        content: Content::Text(event.to_string()),
    };
    let call = ours("ctxfold hook", &["hook", "--host", "claude"]);
    Case {
        name: "hook",
        about: "one hook call with a transcript of 100 MB behind it",
        inputs: vec![input, event],
        commands: vec![
            Measured {
                stdin: Some(stdin),
                ..call
            },
            command("true", "/bin/true", &[]),
            command("node -e 0", "node", &["-e", "0"]),
        ],
        effect: Effect::Prints("additionalContext"),
        limits: vec![
            Limit::Ratio {
                baseline: 1,
                most: 3.0,
            },
            Limit::Ratio {
                baseline: 2,
                most: 0.1,
            },
            Limit::PeakMb(16.0),
            Limit::Within {
                percent: 50,
                most: Duration::from_millis(5),
            },
            Limit::Within {
                percent: 99,
                most: Duration::from_millis(20),
            },
        ],
    }
}

/// Sessions of the pass over paused conversations.
const PAUSED: u32 = 300;

/// A pass over paused sessions, in a home of its own: it would compact the other cases' inputs.
fn idle(program: &str, home: &Path) -> Case {
    let home = home.join("idle");
    let mut inputs = vec![Input {
        path: home.join(".config/ctxfold/config.toml"),
        content: Content::Text("[idle]\nenabled = true\n".to_owned()),
    }];
    for number in 0..PAUSED {
        let session = ClaudeSession {
            turns: 10,
            calls: 3,
            output_bytes: 6 * 1024,
            last_tokens: 60_000,
            ..ClaudeSession::default()
        };
        let id = format!("20000000-0000-4000-8000-{number:012}");
        inputs.push(claude_input(&home, &id, session));
    }
    let files = home.join(".claude/projects/-home-dev-proj/*.jsonl");
    let count = format!("wc -l {} | tail -1", files.display());
    Case {
        name: "idle",
        about: "one pass over 300 paused sessions of 200 kB, each of which is compacted",
        inputs,
        commands: vec![
            Measured {
                home: Some(home),
                ..command("ctxfold idle run", program, &["idle", "run", "--quiet"])
            },
            command("wc -l", "sh", &["-c", &count]),
        ],
        effect: Effect::Appends,
        limits: vec![Limit::PeakMb(64.0)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_names_a_baseline_that_is_there() {
        for case in all(Path::new("/bin/ctxfold"), Path::new("/tmp/bench")) {
            for limit in &case.limits {
                if let Limit::Ratio { baseline, .. } = limit {
                    assert!((1..case.commands.len()).contains(baseline), "{}", case.name);
                }
            }
        }
    }
}
