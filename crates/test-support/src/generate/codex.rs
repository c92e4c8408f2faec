//! A rollout of Codex: turns with calls, and compactions whose histories hold images.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::{FILL, RowWriter, Written, time, uuid};

/// What to write. The default is a small paginated rollout without a compaction.
#[derive(Debug, Clone)]
pub struct CodexRollout {
    /// The thread's id.
    pub id: String,
    /// The working directory of the thread.
    pub cwd: String,
    /// The client's version in the first line.
    pub version: String,
    /// The provider's name in the first line.
    pub provider: String,
    /// Whether lines carry ordinals: the form since 0.148.
    pub paginated: bool,
    /// Compactions, each after one turn.
    pub compactions: usize,
    /// The size of the image in the history of each compaction, in bytes; 0: no image.
    pub image_bytes: usize,
    /// Turns after the last compaction.
    pub turns: usize,
    /// Tool calls a turn, one after the other.
    pub calls: usize,
    /// The size of each call's output, in bytes.
    pub output_bytes: usize,
    /// The tokens in the context that the last turn reports.
    pub last_tokens: u64,
}

impl Default for CodexRollout {
    fn default() -> Self {
        Self {
            id: "01a22eb2-072d-76f3-a271-8cf7acd69144".to_owned(),
            cwd: "/home/dev/proj".to_owned(),
            version: "0.171.0".to_owned(),
            provider: "mock".to_owned(),
            paginated: true,
            compactions: 0,
            image_bytes: 0,
            turns: 5,
            calls: 2,
            output_bytes: 4096,
            last_tokens: 60_000,
        }
    }
}

impl CodexRollout {
    /// The name that the client would give the file.
    pub fn file_name(&self) -> String {
        format!("rollout-2026-01-01T00-00-00-{}.jsonl", self.id)
    }

    /// Writes the rollout.
    ///
    /// # Errors
    ///
    /// What `out` answers.
    pub fn write_to(&self, out: impl Write) -> io::Result<Written> {
        let mut writer = Writer {
            rollout: self,
            rows: RowWriter::new(out),
            turn: 0,
            window: uuid(1),
        };
        writer.meta()?;
        let mut live_from = 0;
        for number in 1..=self.compactions {
            writer.turn()?;
            live_from = writer.compaction(number)?;
        }
        for _ in 0..self.turns {
            writer.turn()?;
        }
        writer.rows.finish(live_from)
    }
}

struct Writer<'a, W> {
    rollout: &'a CodexRollout,
    rows: RowWriter<W>,
    turn: u64,
    window: String,
}

impl<W: Write> Writer<'_, W> {
    fn line(&mut self, kind: &str, payload: &Value, fill: usize) -> io::Result<()> {
        let number = self.rows.rows;
        let mut line = json!({"timestamp": time(number)});
        if self.rollout.paginated {
            line["ordinal"] = json!(number);
        }
        line["type"] = json!(kind);
        line["payload"] = payload.clone();
        self.rows.filled_row(&line, fill)
    }

    fn event(&mut self, payload: &Value) -> io::Result<()> {
        self.line("event_msg", payload, 0)
    }

    fn item(&mut self, payload: &Value, fill: usize) -> io::Result<()> {
        self.line("response_item", payload, fill)
    }

    /// An event of a finished item, which only the paginated form has.
    fn completed(&mut self, item: &Value, turn: &str) -> io::Result<()> {
        if !self.rollout.paginated {
            return Ok(());
        }
        let started = 1_767_225_600_000 + self.rows.rows * 100;
        self.event(&json!({
            "type": "item_completed", "thread_id": self.rollout.id, "turn_id": turn, "item": item,
            "started_at_ms": started, "completed_at_ms": started,
        }))
    }

    fn meta(&mut self) -> io::Result<()> {
        let mode = if self.rollout.paginated {
            "paginated"
        } else {
            "legacy"
        };
        let meta = json!({
            "session_id": self.rollout.id, "id": self.rollout.id, "timestamp": time(0),
            "cwd": self.rollout.cwd, "originator": "codex_exec",
            "cli_version": self.rollout.version, "source": "exec", "thread_source": "user",
            "model_provider": self.rollout.provider,
            "base_instructions": {"text": "You are a test."}, "history_mode": mode,
            "context_window": {"window_id": self.window},
        });
        self.line("session_meta", &meta, 0)
    }

    fn begin(&mut self) -> io::Result<String> {
        let turn = uuid(1000 + self.rows.rows);
        self.event(&json!({
            "type": "task_started", "turn_id": turn, "started_at": 1_767_225_600 + self.turn,
            "model_context_window": 258_400, "collaboration_mode_kind": "default",
        }))?;
        Ok(turn)
    }

    fn end(&mut self, turn: &str, message: &Value) -> io::Result<()> {
        self.event(&json!({
            "type": "task_complete", "turn_id": turn, "last_agent_message": message,
            "started_at": 1_767_225_600 + self.turn, "completed_at": 1_767_225_601 + self.turn,
            "duration_ms": 1000,
        }))
    }

    fn token_count(&mut self, tokens: u64) -> io::Result<()> {
        let usage = |input: u64, total: u64| {
            json!({
                "input_tokens": input, "cached_input_tokens": 0, "output_tokens": total - input,
                "reasoning_output_tokens": 0, "total_tokens": total,
            })
        };
        let last = usage(tokens.saturating_sub(50), tokens);
        let total = usage(tokens * 3, tokens * 4);
        self.event(&json!({
            "type": "token_count",
            "info": {
                "total_token_usage": total, "last_token_usage": last,
                "model_context_window": 258_400,
            },
            "rate_limits": null,
        }))
    }

    fn turn(&mut self) -> io::Result<()> {
        let number = self.turn;
        let turn = self.begin()?;
        let prompt = format!("prompt {number}: please look into part {number}");
        self.item(&message("user", "input_text", &prompt), 0)?;
        let said = json!([{"type": "text", "text": prompt, "text_elements": []}]);
        let item =
            json!({"type": "UserMessage", "id": uuid(7000 + self.rows.rows), "content": said});
        self.completed(&item, &turn)?;
        self.item(
            &json!({
                "type": "reasoning", "id": format!("rs_{number:06}"), "content": null,
                "summary": [{"type": "summary_text", "text": "a look"}],
                "encrypted_content": format!("MOCK-ENCRYPTED-REASONING-{number}"),
            }),
            0,
        )?;
        for call in 0..self.rollout.calls {
            let id = format!("call_{number:06}{call:03}");
            let arguments = json!({"cmd": format!("cat src/part{number}.rs")}).to_string();
            self.item(
                &json!({
                    "type": "function_call", "id": format!("fc_{number:06}{call:03}"),
                    "name": "exec_command", "arguments": arguments, "call_id": id,
                }),
                0,
            )?;
            let output = format!("Process exited with code 0\nOutput:\n{FILL}");
            self.item(
                &json!({"type": "function_call_output", "call_id": id, "output": output}),
                self.rollout.output_bytes,
            )?;
        }
        let answer = format!("answer {number}: part {number} is fine");
        let id = format!("msg_{number:06}");
        let text = json!([{"type": "Text", "text": answer}]);
        self.completed(
            &json!({"type": "AgentMessage", "id": id, "content": text}),
            &turn,
        )?;
        self.item(&message("assistant", "output_text", &answer), 0)?;
        let turns = (self.rollout.turns as u64).max(1);
        self.token_count((number % turns + 1) * self.rollout.last_tokens / turns)?;
        self.end(&turn, &json!(answer))?;
        self.turn += 1;
        Ok(())
    }

    /// A compaction, as a turn of its own; returns where its `compacted` line starts.
    fn compaction(&mut self, number: usize) -> io::Result<u64> {
        let turn = self.begin()?;
        let previous = std::mem::replace(&mut self.window, uuid(900_000 + number as u64));
        let summary = format!("A summary of earlier work follows.\nparts up to {number} are fine");
        let mut history = vec![message(
            "user",
            "input_text",
            "prompt 0: please look into part 0",
        )];
        if self.rollout.image_bytes > 0 {
            let image = format!("data:image/png;base64,{FILL}");
            let content = json!([{"type": "input_image", "image_url": image}]);
            history.push(json!({"type": "message", "role": "user", "content": content}));
        }
        history.push(message("user", "input_text", &summary));
        let start = self.rows.bytes;
        let payload = json!({
            "message": summary, "replacement_history": history, "window_number": number,
            "first_window_id": uuid(1), "previous_window_id": previous, "window_id": self.window,
        });
        self.line("compacted", &payload, self.rollout.image_bytes)?;
        self.token_count(6000)?;
        if self.rollout.paginated {
            let id = uuid(800_000 + number as u64);
            self.completed(&json!({"type": "ContextCompaction", "id": id}), &turn)?;
        } else {
            self.event(&json!({"type": "context_compacted"}))?;
        }
        self.end(&turn, &Value::Null)?;
        Ok(start)
    }
}

fn message(role: &str, kind: &str, text: &str) -> Value {
    json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinals_count_the_lines_and_the_live_part_starts_at_the_last_compaction() {
        let rollout = CodexRollout {
            compactions: 3,
            image_bytes: 50_000,
            ..CodexRollout::default()
        };
        let mut bytes = Vec::new();
        let written = rollout.write_to(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        for (number, line) in text.lines().enumerate() {
            let line: Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["ordinal"], number);
        }
        let live = &text[text.len() - usize::try_from(written.live_bytes).unwrap()..];
        let first: Value = serde_json::from_str(live.lines().next().unwrap()).unwrap();
        assert_eq!(first["type"], "compacted");
        assert_eq!(first["payload"]["window_number"], 3);
        assert_eq!(
            live.lines()
                .filter(|line| line.contains("\"compacted\""))
                .count(),
            1
        );
        assert!(written.bytes > 150_000);
    }

    #[test]
    fn the_legacy_form_has_no_ordinals() {
        let rollout = CodexRollout {
            paginated: false,
            compactions: 1,
            ..CodexRollout::default()
        };
        let mut bytes = Vec::new();
        rollout.write_to(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(!text.contains("\"ordinal\"") && !text.contains("item_completed"));
        assert!(text.contains("context_compacted") && text.contains("\"legacy\""));
    }
}
