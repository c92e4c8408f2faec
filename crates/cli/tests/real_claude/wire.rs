//! What a request holds, compared block by block. Knows nothing of how a compaction is written.

use serde_json::Value;

/// One block of a message as the client sent it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Piece {
    pub(crate) role: String,
    pub(crate) block: Value,
}

impl Piece {
    pub(crate) fn is(&self, kind: &str) -> bool {
        self.block["type"] == kind
    }

    pub(crate) fn text(&self) -> &str {
        self.block["text"].as_str().unwrap_or_default()
    }

    /// What the client puts in by itself: reminders, and what it announces.
    fn is_clients_own(&self) -> bool {
        self.role == "system" || self.text().starts_with("<system-reminder>")
    }
}

/// A request's conversation.
#[derive(Debug, Clone)]
pub(crate) struct Wire {
    /// In order, without the client's own.
    pub(crate) pieces: Vec<Piece>,
    /// Bytes of the messages, as JSON.
    pub(crate) bytes: usize,
}

impl Wire {
    pub(crate) fn of(messages: &[Value]) -> Wire {
        let mut pieces = Vec::new();
        let mut bytes = 0;
        for message in messages {
            bytes += message.to_string().len();
            let role = message["role"].as_str().unwrap_or_default();
            let blocks = match &message["content"] {
                Value::String(text) => vec![serde_json::json!({"type": "text", "text": text})],
                Value::Array(blocks) => blocks.clone(),
                other => panic!("a message without content: {other}"),
            };
            pieces.extend(blocks.into_iter().map(|mut block| {
                // Where the cache ends moves with every request.
                block.as_object_mut().unwrap().remove("cache_control");
                Piece {
                    role: role.to_owned(),
                    block,
                }
            }));
        }
        pieces.retain(|piece| !piece.is_clients_own());
        let wire = Wire { pieces, bytes };
        wire.assert_pairs_are_whole();
        wire
    }

    /// Every result directly answers a call that came before it, once; every call is answered.
    fn assert_pairs_are_whole(&self) {
        let mut open = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for piece in &self.pieces {
            if piece.is("tool_use") {
                let id = piece.block["id"].as_str().unwrap();
                assert!(seen.insert(id), "{id} was called twice");
                open.push(id);
            } else if piece.is("tool_result") {
                let id = piece.block["tool_use_id"].as_str().unwrap();
                let at = open.iter().position(|o| *o == id);
                open.remove(at.unwrap_or_else(|| panic!("{id} answers nothing")));
            }
        }
        assert_eq!(open, Vec::<&str>::new(), "calls without a result");
    }

    /// What the user typed: texts of user messages.
    pub(crate) fn prompts(&self) -> Vec<&str> {
        let typed = self
            .pieces
            .iter()
            .filter(|p| p.role == "user" && p.is("text"));
        typed.map(Piece::text).collect()
    }

    /// In how many blocks a text stands.
    pub(crate) fn holds(&self, text: &str) -> usize {
        let has = |p: &&Piece| strings(&p.block).iter().any(|s| s.contains(text));
        self.pieces.iter().filter(has).count()
    }

    /// Checks this request against the one before the compaction, changed as the plan says. A
    /// truncated result must name its address; everything that the plan does not name must be the
    /// same, block by block.
    #[track_caller]
    pub(crate) fn assert_planned(&self, before: &Wire, plan: &Value) {
        let mut expected = before.pieces.clone();
        let mut truncated = Vec::new();
        for decision in plan["decisions"].as_array().unwrap() {
            let address = decision["address"].as_str().unwrap();
            let key = address.rsplit(':').next().unwrap();
            let is =
                |p: &Piece, name: &str| p.block[name].as_str().is_some_and(|id| id.ends_with(key));
            if decision["action"] == "drop" {
                let all = expected.len();
                expected.retain(|p| !is(p, "id") && !is(p, "tool_use_id"));
                assert_eq!(
                    all - expected.len(),
                    2,
                    "{decision} names a call and its result"
                );
            } else {
                let result = expected.iter().position(|p| is(p, "tool_use_id"));
                let result = result.unwrap_or_else(|| panic!("{decision} names nothing"));
                truncated.push((result, key.to_owned(), address.to_owned()));
            }
        }
        let by_key = |key: &str| {
            let is = |p: &&Piece| {
                p.block["tool_use_id"]
                    .as_str()
                    .is_some_and(|id| id.ends_with(key))
            };
            self.pieces
                .iter()
                .find(is)
                .unwrap_or_else(|| panic!("the result {key} is gone"))
        };
        for (_, key, address) in &truncated {
            let sent = by_key(key);
            let text = text_of(&sent.block);
            assert!(
                text.contains(&format!("ctxfold unfold {address}")),
                "{text}"
            );
            let old = expected
                .iter_mut()
                .find(|p| {
                    p.block["tool_use_id"]
                        .as_str()
                        .is_some_and(|id| id.ends_with(key))
                })
                .unwrap();
            assert!(text.len() < text_of(&old.block).len());
            // Only the content may differ.
            old.block["content"] = sent.block["content"].clone();
        }
        let mut sent = self.pieces.clone();
        for note in plan["notes"].as_array().unwrap() {
            let note = note["text"].as_str().unwrap();
            let holders: Vec<_> = sent
                .iter()
                .enumerate()
                .filter(|(_, p)| p.text().contains(note))
                .map(|(i, _)| i)
                .collect();
            assert_eq!(holders.len(), 1, "the note stands once: {note}");
            let rest = sent[holders[0]]
                .text()
                .replace(note, "")
                .trim_end()
                .to_owned();
            if rest.is_empty() {
                sent.remove(holders[0]);
            } else {
                sent[holders[0]].block["text"] = Value::String(rest);
            }
        }
        assert_same(&sent, &expected);
    }
}

/// The same blocks in the same order; shows the first that differs.
#[track_caller]
pub(crate) fn assert_same(sent: &[Piece], expected: &[Piece]) {
    let differs = sent.iter().zip(expected).position(|(a, b)| a != b);
    if let Some(at) = differs {
        panic!(
            "block {at} differs\nsent:     {:?}\nexpected: {:?}",
            sent[at], expected[at]
        );
    }
    assert_eq!(sent.len(), expected.len(), "{:?}", sent.last());
}

/// A result's text, of one string or of blocks.
pub(crate) fn text_of(result: &Value) -> String {
    strings(&result["content"]).join("\n")
}

fn strings(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(strings).collect(),
        Value::Object(map) => map.values().flat_map(strings).collect(),
        _ => Vec::new(),
    }
}
