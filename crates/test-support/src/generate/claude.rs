//! A session of Claude Code: turns with thinking and parallel calls, before and after a compaction.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::{FILL, RowWriter, Written, time, uuid};

/// What to write. The default is a small session without a compaction.
#[derive(Debug, Clone)]
pub struct ClaudeSession {
    /// The session's id, in every row.
    pub id: String,
    /// The working directory, in every row.
    pub cwd: String,
    /// The client's version, in every row.
    pub version: String,
    /// Turns are written before a compaction until they have this many bytes; 0: no compaction.
    pub old_bytes: u64,
    /// Turns after the compaction.
    pub turns: usize,
    /// Tool calls a turn, in parallel.
    pub calls: usize,
    /// The size of each call's output, in bytes.
    pub output_bytes: usize,
    /// Rows that never reach the model (progress of tools) are written after each turn until they
    /// have this share of all bytes, in percent.
    pub progress_percent: u64,
    /// The input tokens that the last message reports; earlier ones report less, in proportion.
    pub last_tokens: u64,
}

impl Default for ClaudeSession {
    fn default() -> Self {
        Self {
            id: "11111111-2222-4333-8444-555555555555".to_owned(),
            cwd: "/home/dev/proj".to_owned(),
            version: "2.1.332".to_owned(),
            old_bytes: 0,
            turns: 10,
            calls: 3,
            output_bytes: 4096,
            progress_percent: 0,
            last_tokens: 60_000,
        }
    }
}

impl ClaudeSession {
    /// Writes the session.
    ///
    /// # Errors
    ///
    /// What `out` answers.
    pub fn write_to(&self, out: impl Write) -> io::Result<Written> {
        let mut writer = Writer {
            session: self,
            rows: RowWriter::new(out),
            next_id: 1,
            turn: 0,
            live_from: 0,
            leaf: None,
            last_turn: Vec::new(),
            progress_bytes: 0,
        };
        let mut live_from = 0;
        if self.old_bytes > 0 {
            while writer.rows.bytes < self.old_bytes {
                writer.turn()?;
            }
            live_from = writer.rows.bytes;
            writer.compaction()?;
            writer.live_from = writer.turn;
        }
        for _ in 0..self.turns {
            writer.turn()?;
        }
        writer.rows.finish(live_from)
    }
}

struct Writer<'a, W> {
    session: &'a ClaudeSession,
    rows: RowWriter<W>,
    next_id: u64,
    turn: u64,
    /// The turn with which the live part begins.
    live_from: u64,
    leaf: Option<String>,
    /// The ids of the newest turn's rows, in sending order.
    last_turn: Vec<String>,
    progress_bytes: u64,
}

impl<W: Write> Writer<'_, W> {
    fn fresh(&mut self) -> String {
        self.next_id += 1;
        uuid(self.next_id)
    }

    /// Fills in what every row of the conversation has, writes it, and makes it the leaf.
    fn put(&mut self, mut row: Value, parent: Option<&str>, fill: usize) -> io::Result<String> {
        let id = self.fresh();
        row["parentUuid"] = json!(parent);
        row["isSidechain"] = json!(false);
        row["uuid"] = json!(id);
        row["timestamp"] = json!(time(self.next_id));
        row["userType"] = json!("external");
        row["entrypoint"] = json!("cli");
        row["cwd"] = json!(self.session.cwd);
        row["sessionId"] = json!(self.session.id);
        row["version"] = json!(self.session.version);
        row["gitBranch"] = json!("main");
        self.rows.filled_row(&row, fill)?;
        self.last_turn.push(id.clone());
        self.leaf = Some(id.clone());
        Ok(id)
    }

    fn user(&mut self, content: &Value, fill: usize) -> io::Result<String> {
        let parent = self.leaf.clone();
        let row = json!({"type": "user", "message": {"role": "user", "content": content}});
        self.put(row, parent.as_deref(), fill)
    }

    /// One message of the model: a row a block, all with the message's id and usage.
    fn assistant(&mut self, blocks: &[Value], stop_reason: &str) -> io::Result<Vec<String>> {
        let message = format!("msg_{:024}", self.next_id);
        let request = format!("req_{:024}", self.next_id);
        let usage = self.usage();
        let mut ids = Vec::new();
        for (index, block) in blocks.iter().enumerate() {
            let parent = self.leaf.clone();
            let row = json!({
                "type": "assistant",
                "message": {
                    "id": message, "type": "message", "role": "assistant",
                    "model": "claude-opus-5-5", "content": [block], "stop_reason": stop_reason,
                    "stop_sequence": null, "usage": usage,
                },
                "apiBlockIndex": index,
                "requestId": request,
            });
            ids.push(self.put(row, parent.as_deref(), 0)?);
        }
        Ok(ids)
    }

    fn usage(&self) -> Value {
        let turns = (self.session.turns as u64).max(1);
        let turn = self.turn - self.live_from;
        let share = (turn % turns + 1) * self.session.last_tokens / turns;
        json!({
            "input_tokens": 12,
            "cache_creation_input_tokens": 100,
            "cache_read_input_tokens": share.saturating_sub(112),
            "output_tokens": 50,
            "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
            "service_tier": "standard",
            "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 100},
        })
    }

    fn turn(&mut self) -> io::Result<()> {
        self.last_turn.clear();
        let turn = self.turn;
        self.user(
            &json!(format!("prompt {turn}: please look into part {turn}")),
            0,
        )?;
        let calls: Vec<(String, Value)> = (0..self.session.calls)
            .map(|call| {
                let id = format!("toolu_{turn:012}{call:012}");
                let mut block = tool_call(turn, call);
                block["id"] = json!(id);
                (id, block)
            })
            .collect();
        let mut blocks = vec![
            json!({
                "type": "thinking", "thinking": format!("turn {turn} needs a look"),
                "signature": format!("MOCKSIG{turn:016x}"),
            }),
            json!({"type": "text", "text": format!("answer {turn}: looking")}),
        ];
        let first_call = blocks.len();
        blocks.extend(calls.iter().map(|(_, block)| block.clone()));
        let ids = self.assistant(&blocks, "tool_use")?;
        // Each result hangs on the row of its own call, as the client writes parallel ones.
        for ((id, _), caller) in calls.iter().zip(&ids[first_call..]) {
            let content = json!([{"tool_use_id": id, "type": "tool_result", "content": FILL}]);
            let row = json!({
                "type": "user",
                "message": {"role": "user", "content": content},
                "sourceToolAssistantUUID": caller,
            });
            self.put(row, Some(caller), self.session.output_bytes)?;
        }
        let text = format!("answer {turn}: part {turn} is fine");
        self.assistant(&[json!({"type": "text", "text": text})], "end_turn")?;
        let last_prompt = json!({
            "type": "last-prompt", "lastPrompt": format!("prompt {turn}"),
            "leafUuid": self.leaf, "sessionId": self.session.id,
        });
        self.rows.row(&last_prompt)?;
        self.turn += 1;
        self.progress()
    }

    fn progress(&mut self) -> io::Result<()> {
        while self.progress_bytes * 100 < self.rows.bytes * self.session.progress_percent {
            let before = self.rows.bytes;
            let row = json!({
                "type": "progress", "sessionId": self.session.id,
                "timestamp": time(self.next_id), "data": {"type": "output", "output": FILL},
            });
            self.rows.filled_row(&row, 8192)?;
            self.progress_bytes += self.rows.bytes - before;
        }
        Ok(())
    }

    /// A compaction as the client writes it: the newest turn stays, a summary stands for the rest.
    fn compaction(&mut self) -> io::Result<()> {
        let kept = std::mem::take(&mut self.last_turn);
        let leaf = self.leaf.take();
        let summary = uuid(self.next_id + 2);
        let row = json!({
            "type": "system",
            "subtype": "compact_boundary",
            "content": "Conversation compacted",
            "isMeta": false,
            "level": "info",
            "logicalParentUuid": leaf,
            "compactMetadata": {
                "trigger": "manual", "preTokens": 160_000, "postTokens": 9000,
                "preservedSegment": {
                    "headUuid": kept.first(), "anchorUuid": summary, "tailUuid": kept.last(),
                },
                "preservedMessages": {"anchorUuid": summary, "uuids": kept, "allUuids": kept},
            },
        });
        let boundary = self.put(row, None, 0)?;
        let text = "This session is being continued from a previous conversation that ran out of \
                    context.\n\nSummary:\nearlier parts were looked into and are fine";
        let row = json!({
            "type": "user",
            "message": {"role": "user", "content": text},
            "isVisibleInTranscriptOnly": true,
            "isCompactSummary": true,
        });
        let written = self.put(row, Some(&boundary), 0)?;
        debug_assert_eq!(written, summary);
        // The next turn hangs on the end of what was kept.
        self.leaf = kept.last().cloned();
        Ok(())
    }
}

/// Calls that differ, some of which a later one supersedes.
fn tool_call(turn: u64, call: usize) -> Value {
    let file = format!("/home/dev/proj/src/part{}.rs", turn % 7);
    match call % 3 {
        0 => json!({"type": "tool_use", "id": "", "name": "Read", "input": {"file_path": file}}),
        1 => json!({
            "type": "tool_use", "id": "", "name": "Bash",
            "input": {"command": format!("cargo test part{turn}"), "description": "Run the tests"},
        }),
        _ => json!({
            "type": "tool_use", "id": "", "name": "Grep",
            "input": {"pattern": format!("part{turn}"), "path": "/home/dev/proj"},
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn rows(session: &ClaudeSession) -> (Vec<Value>, Written) {
        let mut bytes = Vec::new();
        let written = session.write_to(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.ends_with('\n'));
        let rows: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(
            (written.bytes, written.rows),
            (text.len() as u64, rows.len() as u64)
        );
        (rows, written)
    }

    #[test]
    fn sizes_are_as_asked_and_parents_exist() {
        let session = ClaudeSession {
            old_bytes: 200_000,
            turns: 4,
            progress_percent: 30,
            ..ClaudeSession::default()
        };
        let (rows, written) = rows(&session);
        assert!(written.bytes - written.live_bytes >= 200_000);
        let mut known = HashSet::new();
        for row in &rows {
            let parent = row["parentUuid"].as_str();
            assert!(parent.is_none_or(|parent| known.contains(parent)), "{row}");
            known.extend(row["uuid"].as_str());
        }
        let boundary = rows
            .iter()
            .find(|row| row["subtype"] == "compact_boundary")
            .unwrap();
        let kept = boundary["compactMetadata"]["preservedMessages"]["uuids"]
            .as_array()
            .unwrap();
        assert!(kept.len() > 5 && kept.iter().all(|id| known.contains(id.as_str().unwrap())));
        let progress = |row: &&Value| row["type"] == "progress";
        let share: usize = rows
            .iter()
            .filter(progress)
            .map(|row| row.to_string().len())
            .sum();
        assert!(
            (25..=45).contains(&(share as u64 * 100 / written.bytes)),
            "{share}"
        );
    }

    #[test]
    fn every_call_has_its_result() {
        let (rows, _) = rows(&ClaudeSession::default());
        let blocks = || {
            rows.iter()
                .filter_map(|r| r["message"]["content"].as_array())
                .flatten()
        };
        let calls: Vec<_> = blocks().filter_map(|block| block["id"].as_str()).collect();
        let results: Vec<_> = blocks()
            .filter_map(|block| block["tool_use_id"].as_str())
            .collect();
        assert_eq!(calls.len(), 30);
        assert_eq!(calls, results);
        let output = blocks()
            .find(|block| block["type"] == "tool_result")
            .unwrap();
        assert!(output["content"].as_str().unwrap().len() > 3500);
    }
}
