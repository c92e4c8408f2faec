//! Sizes: bytes as they are sent, and tokens estimated from them.

use crate::{Content, Part};

/// Bytes of a text inside a JSON string: control characters, quotes and backslashes are escaped.
pub fn text_bytes(text: &str) -> u64 {
    let widths = text.bytes().map(|b| u64::from(ESCAPED[usize::from(b)]));
    widths.sum()
}

/// Bytes that each byte takes inside a JSON string.
const ESCAPED: [u8; 256] = {
    let mut widths = [1; 256];
    let mut control = 0;
    while control < 0x20 {
        widths[control] = 6;
        control += 1;
    }
    let short = *b"\"\\\n\r\t\x08\x0c";
    let mut place = 0;
    while place < short.len() {
        widths[short[place] as usize] = 2;
        place += 1;
    }
    widths
};

impl Content {
    /// Bytes of what the block holds, without the block's envelope; 0 where nothing can be put in
    /// its place: thinking, calls and unknown kinds.
    pub fn payload_bytes(&self) -> u64 {
        match self {
            Content::Text(text) | Content::Said(text) | Content::Attachment { text, .. } => {
                text_bytes(text)
            }
            Content::ToolResult { parts, .. } => parts
                .iter()
                .map(|p| match p {
                    Part::Text(text) => text_bytes(text),
                    Part::Image(image) => image.bytes,
                    Part::Other { bytes, .. } => *bytes,
                })
                .sum(),
            Content::Image(image) => image.bytes,
            Content::Thinking | Content::ToolCall(_) | Content::Other { .. } => 0,
        }
    }
}

/// How full the context is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fill {
    /// Tokens in the context at the last request, as the provider counted them.
    pub tokens: u64,
    /// The window in tokens, where the agent recorded or the caller knows it.
    pub window: Option<u64>,
    /// Whether the conversation was compacted after the count was taken.
    pub stale: bool,
}

impl Fill {
    /// The most tokens of a context or a window that are credible. Readers of files cut larger
    /// numbers to it, so that sums of what they give cannot overflow.
    pub const MOST_TOKENS: u64 = 1_000_000_000;
}

/// What a conversation weighs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measure {
    /// Messages.
    pub messages: usize,
    /// Bytes of the messages' contents in the request.
    pub bytes: u64,
    /// Tokens: an estimate unless it came from the provider.
    pub tokens: u64,
}

impl Measure {
    /// How much smaller `after` is, as a share of this measure's bytes between 0 and 1; 0 when it
    /// is not smaller.
    pub fn gain(&self, after: &Measure) -> f64 {
        if self.bytes == 0 || after.bytes >= self.bytes {
            return 0.0;
        }
        1.0 - after.bytes as f64 / self.bytes as f64
    }
}

/// Turns bytes of one conversation into tokens, so that the parts and what stands outside the
/// conversation (system prompt, tool definitions) add up to the fill.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    tokens_per_byte: f64,
    outside: u64,
}

impl Scale {
    /// Tokens a byte when nothing is known: four characters a token.
    const DEFAULT: f64 = 0.25;
    /// Denser text than this is not credible; the rest of the fill stands outside.
    const DENSEST: f64 = 0.4;

    /// A scale for a conversation of `bytes` bytes whose context holds `fill` tokens.
    pub fn new(bytes: u64, fill: Option<u64>) -> Scale {
        let Some(fill) = fill else {
            return Scale {
                tokens_per_byte: Scale::DEFAULT,
                outside: 0,
            };
        };
        if bytes == 0 {
            return Scale {
                tokens_per_byte: Scale::DEFAULT,
                outside: fill,
            };
        }
        let exact = fill as f64 / bytes as f64;
        let tokens_per_byte = exact.min(Scale::DENSEST);
        let inside = (bytes as f64 * tokens_per_byte).round() as u64;
        Scale {
            tokens_per_byte,
            outside: fill.saturating_sub(inside),
        }
    }

    /// Tokens of `bytes` bytes of the conversation, rounded.
    pub fn tokens(&self, bytes: u64) -> u64 {
        (bytes as f64 * self.tokens_per_byte).round() as u64
    }

    /// Tokens of the fill that are not in the conversation: system prompt, tool definitions.
    pub fn outside(&self) -> u64 {
        self.outside
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escaped_bytes_are_what_json_takes() {
        let table = [
            ("", 0),
            ("a\u{e4}", 3),
            ("\"\\", 4),
            ("\n\r\t\u{8}\u{c}", 10),
            ("\0\u{1f}", 12),
        ];
        for (text, bytes) in table {
            assert_eq!(text_bytes(text), bytes, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn inside_and_outside_add_up_to_the_fill(bytes in 0u64..100_000_000, fill in 1u64..2_000_000) {
            let scale = Scale::new(bytes, Some(fill));
            let sum = scale.tokens(bytes) + scale.outside();
            prop_assert!(sum.abs_diff(fill) <= 1, "{sum} is not {fill}");
        }

        #[test]
        fn gain_is_a_share(before in 0u64..1_000, after in 0u64..1_000) {
            let m = |bytes| Measure { messages: 1, bytes, tokens: 0 };
            let gain = m(before).gain(&m(after));
            prop_assert!((0.0..=1.0).contains(&gain));
            prop_assert_eq!(gain > 0.0, after < before);
        }
    }
}
