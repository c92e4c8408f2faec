//! Changed copies of rows: a shorter output, a note, a block less. Everything but the named value
//! stays as the client wrote it.

use crate::wire::{Object, elements, quote, span_in, splice};

/// What changes in one row's content.
#[derive(Debug, Default)]
pub(crate) struct Edit {
    /// Outputs that are replaced: place among the blocks, and the new text.
    pub(crate) outputs: Vec<(usize, String)>,
    /// Blocks that go: their places.
    pub(crate) gone: Vec<usize>,
    /// A text that is put behind a text block.
    pub(crate) note: Option<(usize, String)>,
    /// What an attachment shows instead.
    pub(crate) attachment: Option<String>,
}

/// A row with its edit carried out; `None` when the row does not have what the edit names.
pub(crate) fn edited(row: &str, edit: &Edit) -> Option<String> {
    let object = Object::parse(row)?;
    if let Some(text) = &edit.attachment {
        return attachment(&object, text);
    }
    let message = object.object("message")?;
    let content = message.get("content")?;
    let content = edited_content(content, edit)?;
    let message = message.edited(&[("content", content)], &[]);
    let remove: &[&str] = if edit.outputs.is_empty() {
        &[]
    } else {
        &["toolUseResult"]
    };
    Some(object.edited(&[("message", message)], remove))
}

/// The number of blocks of a row's content; a string is one.
pub(crate) fn block_count(row: &str) -> usize {
    let count = || {
        let message = Object::parse(row)?.object("message")?;
        let content = message.get("content")?;
        elements(content).map(|e| e.len()).or(Some(1))
    };
    count().unwrap_or(0)
}

fn edited_content(content: &str, edit: &Edit) -> Option<String> {
    let Some(blocks) = elements(content) else {
        let (_, note) = edit.note.as_ref()?;
        return appended(content, note);
    };
    let mut edits = Vec::new();
    for (place, text) in &edit.outputs {
        let block = blocks.get(*place)?;
        let object = Object::parse(block)?;
        object.get("content")?;
        edits.push((*place, object.edited(&[("content", quote(text))], &[])));
    }
    if let Some((place, note)) = &edit.note {
        let block = Object::parse(blocks.get(*place)?)?;
        let text = appended(block.get("text")?, note)?;
        edits.push((*place, block.edited(&[("text", text)], &[])));
    }
    if edit.gone.is_empty() {
        let mut spans: Vec<_> = edits
            .iter()
            .map(|(place, with)| (span_in(content, blocks[*place]), with.as_str()))
            .collect();
        spans.sort_by_key(|(span, _)| span.start);
        return Some(splice(content, &spans));
    }
    let kept: Vec<&str> = (0..blocks.len())
        .filter(|place| !edit.gone.contains(place))
        .map(|place| {
            edits
                .iter()
                .find(|(p, _)| *p == place)
                .map_or(blocks[place], |(_, with)| with.as_str())
        })
        .collect();
    Some(format!("[{}]", kept.join(",")))
}

/// A JSON string with a text behind its own: the original's escapes stay as they are.
fn appended(string: &str, text: &str) -> Option<String> {
    let head = string.strip_suffix('"')?;
    let quoted = quote(&format!("\n\n{text}"));
    Some(format!("{head}{}", quoted.strip_prefix('"')?))
}

/// What the newer client puts around an attachment, so that the model does not take it for the
/// user's words.
const OPENING: &str = "<system-reminder>";
const CLOSING: &str = "</system-reminder>";

/// The attachment with its file's content replaced, in both places where the two client
/// generations look.
fn attachment(row: &Object<'_>, text: &str) -> Option<String> {
    let mut replace = Vec::new();
    let rendered = row.get("rendered").and_then(elements).unwrap_or_default();
    if let Some(longest) = (0..rendered.len()).max_by_key(|&i| rendered[i].len()) {
        let raw = row.get("rendered")?;
        let entry = Object::parse(rendered[longest])?;
        let wrapped = entry
            .str("content")
            .is_some_and(|c| c.starts_with(OPENING) && c.ends_with(CLOSING));
        let shown = if wrapped {
            format!("{OPENING}\n{text}\n{CLOSING}")
        } else {
            text.to_owned()
        };
        let entry = entry.edited(&[("content", quote(&shown))], &[]);
        let span = span_in(raw, rendered[longest]);
        replace.push(("rendered", splice(raw, &[(span, &entry)])));
    }
    let attachment = row.object("attachment")?;
    let content = attachment.object("content")?;
    let file = content.object("file")?;
    file.get("content")?;
    let file = file.edited(&[("content", quote(text))], &[]);
    let content = content.edited(&[("file", file)], &[]);
    replace.push((
        "attachment",
        attachment.edited(&[("content", content)], &[]),
    ));
    Some(row.edited(&replace, &[]))
}

/// A new text row of an assistant's message, made after one of its rows.
pub(crate) fn note_row(model: &str, uuid: &str, parent: &str, text: &str) -> Option<String> {
    let object = Object::parse(model)?;
    let block = format!(r#"[{{"type":"text","text":{}}}]"#, quote(text));
    let message = object.object("message")?.edited(&[("content", block)], &[]);
    let replace = [
        ("message", message),
        ("uuid", quote(uuid)),
        ("parentUuid", quote(parent)),
    ];
    Some(object.edited(&replace, &["apiBlockIndex"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULT: &str = r#"{ "parentUuid":"p","message":{"role":"user","content":[{"tool_use_id":"t","type":"tool_result","content":"\ud800 long", "x":1.0}]},"uuid":"u","toolUseResult":{"a":1},"z":1e2}"#;

    #[test]
    fn an_output_is_replaced_and_all_else_stays() {
        let edit = Edit {
            outputs: vec![(0, "short".into())],
            ..Edit::default()
        };
        assert_eq!(
            edited(RESULT, &edit).unwrap(),
            r#"{ "parentUuid":"p","message":{"role":"user","content":[{"tool_use_id":"t","type":"tool_result","content":"short", "x":1.0}]},"uuid":"u","z":1e2}"#
        );
    }

    #[test]
    fn a_note_goes_behind_the_text_and_keeps_its_escapes() {
        let row =
            r#"{"message":{"content":[{"type":"thinking"},{"type":"text","text":"a\ud800"}]}}"#;
        let edit = Edit {
            note: Some((1, "n\"".into())),
            ..Edit::default()
        };
        assert_eq!(
            edited(row, &edit).unwrap(),
            r#"{"message":{"content":[{"type":"thinking"},{"type":"text","text":"a\ud800\n\nn\""}]}}"#
        );
    }

    #[test]
    fn a_block_less() {
        let row = r#"{"message":{"content":[{"a":1},{"b":2},{"c":3}]}}"#;
        let edit = Edit {
            gone: vec![1],
            ..Edit::default()
        };
        assert_eq!(
            edited(row, &edit).unwrap(),
            r#"{"message":{"content":[{"a":1},{"c":3}]}}"#
        );
        assert_eq!(block_count(row), 3);
    }

    #[test]
    fn an_attachment_is_masked_where_both_clients_look() {
        let row = r#"{"attachment":{"type":"file","content":{"type":"text","file":{"content":"long","numLines":2}}},"rendered":[{"content":"read"},{"content":"1 long long"}]}"#;
        let edit = Edit {
            attachment: Some("m".into()),
            ..Edit::default()
        };
        assert_eq!(
            edited(row, &edit).unwrap(),
            r#"{"attachment":{"type":"file","content":{"type":"text","file":{"content":"m","numLines":2}}},"rendered":[{"content":"read"},{"content":"m"}]}"#
        );
    }

    #[test]
    fn an_attachment_stays_a_reminder() {
        let row = r#"{"attachment":{"type":"file","content":{"type":"text","file":{"content":"long"}}},"rendered":[{"content":"<system-reminder>\n1 long long\n</system-reminder>"}]}"#;
        let edit = Edit {
            attachment: Some("m".into()),
            ..Edit::default()
        };
        assert_eq!(
            edited(row, &edit).unwrap(),
            r#"{"attachment":{"type":"file","content":{"type":"text","file":{"content":"m"}}},"rendered":[{"content":"<system-reminder>\nm\n</system-reminder>"}]}"#
        );
    }

    #[test]
    fn what_is_not_there_cannot_be_edited() {
        let edit = Edit {
            outputs: vec![(7, String::new())],
            ..Edit::default()
        };
        assert_eq!(edited(RESULT, &edit), None);
    }
}
