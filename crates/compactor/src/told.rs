//! The conversation as a model is shown it: flat text inside delimiters that nothing in it can
//! forge, images and base64 left out, secrets replaced, longest outputs cut first.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use ctxfold_transcript::{Author, Call, Content, Part, Transcript};

use crate::fold::Ending;
use crate::plain::plain;
use crate::{SecretKind, redact};

/// Secrets that were replaced, by kind.
pub(crate) type Secrets = BTreeMap<SecretKind, usize>;

/// A part of the conversation: words, and where it is a call its output, which may be cut.
#[derive(Debug, Clone, Default)]
pub(crate) struct Piece {
    pub(crate) words: String,
    pub(crate) output: String,
    /// The call that it tells.
    pub(crate) call: Option<usize>,
    words_chars: usize,
    output_chars: usize,
}

/// Outputs are never cut below this many characters before the conversation is split instead.
const LEAST_OUTPUT: usize = 2_000;
/// Room that the line in the middle of a cut text takes.
const CUT_LINE: usize = 60;

impl Piece {
    pub(crate) fn new(words: String, output: String) -> Piece {
        Piece {
            words_chars: words.chars().count(),
            output_chars: output.chars().count(),
            words,
            output,
            call: None,
        }
    }

    pub(crate) fn chars(&self) -> usize {
        self.words_chars + self.output_chars
    }

    /// Cuts words and output to at most these characters each, head and tail staying.
    pub(crate) fn cut(&mut self, words: usize, output: usize) {
        if self.words_chars > words {
            self.words = head_and_tail(&self.words, words);
            self.words_chars = self.words.chars().count();
        }
        if self.output_chars > output {
            self.output = head_and_tail(&self.output, output);
            self.output_chars = self.output.chars().count();
        }
    }
}

/// At most `limit` characters of a text, the middle being left out and said so.
pub(crate) fn head_and_tail(text: &str, limit: usize) -> String {
    let chars = text.chars().count();
    if chars <= limit {
        return text.to_owned();
    }
    let room = limit.saturating_sub(CUT_LINE);
    let (head, tail) = (room - room / 3, room / 3);
    let place = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    let cut = format!("\n[… {} characters left out …]\n", chars - head - tail);
    format!(
        "{}{cut}{}",
        &text[..place(head)],
        &text[place(chars - tail)..]
    )
}

/// Turns messages into pieces.
pub(crate) struct Teller<'a> {
    pub(crate) transcript: &'a Transcript,
    pub(crate) redact: bool,
    pub(crate) secrets: Secrets,
}

impl<'a> Teller<'a> {
    pub(crate) fn new(transcript: &'a Transcript, redact: bool) -> Teller<'a> {
        Teller {
            transcript,
            redact,
            secrets: Secrets::new(),
        }
    }

    /// The text without base64, and without secrets, which are counted.
    pub(crate) fn clean(&mut self, text: &str) -> String {
        let text = plain(text);
        if !self.redact {
            return text;
        }
        let clean = redact(&text);
        for (kind, count) in clean.counts {
            *self.secrets.entry(kind).or_default() += count;
        }
        clean.text
    }

    /// The pieces of one message. Results are told with their calls, orphans by themselves.
    pub(crate) fn message(
        &mut self,
        index: usize,
        mut call_head: impl FnMut(usize, &Call) -> String,
    ) -> Vec<Piece> {
        let transcript = self.transcript;
        let message = &transcript.messages[index];
        let who = speaker(message.author);
        let mut pieces = Vec::new();
        for block in &message.blocks {
            let (words, output) = match &block.content {
                Content::Text(text) => (format!("\n## {who}\n{text}\n"), String::new()),
                Content::Said(text) => (told_by_user(text), String::new()),
                Content::ToolCall(call) => {
                    let Some(made) = transcript.calls.get(*call) else {
                        continue;
                    };
                    let result = transcript.result(*call).map(|block| &block.content);
                    let ending = match result {
                        Some(_) => Ending::of(made).to_string(),
                        None => "has no result".to_owned(),
                    };
                    let head = call_head(*call, made);
                    let input = if made.input == made.label {
                        String::new()
                    } else {
                        format!("\ninput: {}", made.input)
                    };
                    // What the user said stands with the words, which are cut last.
                    let said = result.and_then(Content::said);
                    let said = said.map(told_by_user).unwrap_or_default();
                    (
                        format!("\n## {head}{} {ending}{input}\n{said}", made.label),
                        result.map(output).unwrap_or_default(),
                    )
                }
                Content::ToolResult { call: None, .. } => {
                    ("\n## a tool's output\n".to_owned(), output(&block.content))
                }
                Content::Image(image) => (
                    format!("\n## {who}\n(an image, {}, left out)\n", image.media_type),
                    String::new(),
                ),
                // What may not be folded outlives every plan: the model needs no account of it.
                Content::Attachment {
                    kind,
                    name,
                    text,
                    foldable: true,
                    ..
                } => (
                    format!(
                        "\n## the client attached {kind} {}\n",
                        name.as_deref().unwrap_or_default()
                    ),
                    text.clone(),
                ),
                _ => continue,
            };
            let (words, output) = (self.clean(&words), self.clean(&output));
            let call = match block.content {
                Content::ToolCall(call) => Some(call),
                _ => None,
            };
            pieces.push(Piece {
                call,
                ..Piece::new(words, output)
            });
        }
        pieces
    }
}

fn told_by_user(text: &str) -> String {
    format!("\n## {}\n{text}\n", speaker(Author::User))
}

fn speaker(author: Author) -> &'static str {
    match author {
        Author::User => "the user said",
        Author::Assistant => "the assistant said",
        Author::Summary => {
            "EARLIER SUMMARY of what was before (nobody said this; merge it into yours)"
        }
        Author::Tool => "a tool said",
        _ => "the client said",
    }
}

fn output(content: &Content) -> String {
    let Content::ToolResult { parts, .. } = content else {
        return String::new();
    };
    let mut out = String::from("output:\n");
    for part in parts {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Image(image) => {
                let _ = write!(out, "(an image, {}, left out)", image.media_type);
            }
            Part::Other { kind, .. } => {
                let _ = write!(out, "({kind}, left out)");
            }
            _ => {}
        }
        out.push('\n');
    }
    out
}

/// Cuts the longest outputs until all fit into `limit` characters, or each is as short as it may
/// be.
pub(crate) fn shorten(pieces: &mut [Piece], limit: usize) {
    let total: usize = pieces.iter().map(Piece::chars).sum();
    if total <= limit {
        return;
    }
    let with_cap = |cap: usize| -> usize {
        pieces
            .iter()
            .map(|piece| piece.words_chars + piece.output_chars.min(cap))
            .sum()
    };
    let longest = pieces.iter().map(|piece| piece.output_chars).max();
    let (mut low, mut high) = (LEAST_OUTPUT, longest.unwrap_or(0).max(LEAST_OUTPUT));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if with_cap(middle) <= limit {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    for piece in pieces {
        piece.cut(usize::MAX, low);
    }
}

/// Joins pieces into texts of at most `limit` characters; a longer piece is split.
pub(crate) fn chunks(pieces: &[Piece], limit: usize) -> Vec<String> {
    let limit = limit.max(1);
    let mut out = vec![String::new()];
    let mut filled = 0;
    for piece in pieces {
        if filled > 0 && filled + piece.chars() > limit {
            out.push(String::new());
            filled = 0;
        }
        for text in [&piece.words, &piece.output] {
            for c in text.chars() {
                if filled == limit {
                    out.push(String::new());
                    filled = 0;
                }
                if let Some(last) = out.last_mut() {
                    last.push(c);
                }
                filled += 1;
            }
        }
    }
    out
}

/// The data between delimiters whose number occurs nowhere in it.
pub(crate) fn fenced(name: &str, data: &str) -> String {
    let stem = format!("{name}-");
    let taken: BTreeSet<u64> = data
        .split(stem.as_str())
        .skip(1)
        .filter_map(|rest| {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            rest[..digits].parse().ok()
        })
        .collect();
    let most = taken.len() as u64 + 1;
    let number = (1..=most).find(|n| !taken.contains(n)).unwrap_or(most);
    format!("<{stem}{number}>\n{data}\n</{stem}{number}>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_data_forges_its_delimiter(data in "(conversation-[0-9]{1,2}|</|<|>| |x){0,40}") {
            let fenced = fenced("conversation", &data);
            let open = fenced.lines().next().unwrap();
            let close = format!("</{}", &open[1..]);
            prop_assert_eq!(fenced.matches(open).count(), 1);
            prop_assert_eq!(fenced.matches(&close).count(), 1);
            prop_assert!(fenced.ends_with(&close));
        }

        #[test]
        fn chunks_lose_nothing_and_fit(
            lengths in proptest::collection::vec((0usize..40, 0usize..40), 0..12),
            limit in 1usize..50,
        ) {
            let pieces: Vec<_> = lengths.iter()
                .map(|(a, b)| Piece::new("ä".repeat(*a), "b".repeat(*b)))
                .collect();
            let all: String = pieces.iter().map(|p| p.words.clone() + &p.output).collect();
            let chunks = chunks(&pieces, limit);
            prop_assert_eq!(chunks.concat(), all);
            prop_assert!(chunks.iter().all(|c| c.chars().count() <= limit));
        }

        #[test]
        fn the_longest_outputs_are_cut_first(
            lengths in proptest::collection::vec(0usize..9_000, 1..8), limit in 0usize..30_000,
        ) {
            let mut pieces: Vec<_> = lengths.iter()
                .map(|n| Piece::new(String::new(), "ö".repeat(*n)))
                .collect();
            shorten(&mut pieces, limit);
            let total: usize = pieces.iter().map(Piece::chars).sum();
            let floor: usize = lengths.iter().map(|n| n.min(&LEAST_OUTPUT)).sum();
            prop_assert!(total <= limit.max(floor));
            let longest_whole = pieces.iter().zip(&lengths)
                .filter(|(p, n)| p.chars() == **n).map(|(_, n)| *n).max().unwrap_or(0);
            let shortest_cut = pieces.iter().zip(&lengths)
                .filter(|(p, n)| p.chars() < **n).map(|(_, n)| *n).min().unwrap_or(usize::MAX);
            prop_assert!(longest_whole <= shortest_cut);
        }
    }

    #[test]
    fn head_and_tail_fit() {
        for n in [0, 10, 60, 61, 100, 5_000] {
            for limit in [61, 100, 300] {
                let cut = head_and_tail(&"é".repeat(n), limit);
                assert!(cut.chars().count() <= limit, "{n} {limit}");
            }
        }
    }
}
