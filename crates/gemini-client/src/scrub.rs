//! Removes whatever looks like a key from text that others wrote, and makes one short line of it.
//!
//! Servers echo keys in their messages. Every text that reaches an [`Error`](crate::Error) goes
//! through here.

use std::fmt;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::key::{Key, Keys};

/// What stands where a key was.
const MARK: &str = "[key]";
/// The longest text that an error takes over from a server, in characters.
const LONGEST: usize = 200;
/// Longer bodies are cut before they are searched; a message never needs more.
const LONGEST_SEARCHED: usize = 64 * 1024;

/// Google's key and token forms, wherever they stand.
static TOKENS: LazyLock<Regex> = LazyLock::new(|| {
    rule(
        r"(?:AIza|AQ\.|ya29\.|GOCSPX-)[A-Za-z0-9_.~+/=%-]{4,}|\bsk-[A-Za-z0-9_-]{8,}|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_.-]+",
    )
});

/// A value that its name gives away: `key=…`, `"api_key": "…"`, `x-goog-api-key: …`.
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    rule(
        r#"(?i)((?:api[_-]?key|access[_-]?token|\bkey|\btoken|password|secret)(?:\\?["'])?\s*(?:=|:|%3D)\s*(?:\\?["'])?)([^\s"'\\&,;<>()\[\]{}]{4,})"#,
    )
});

/// The credentials of an `Authorization` header.
static BEARER: LazyLock<Regex> =
    LazyLock::new(|| rule(r"(?i)\b(bearer|basic)(\s+|%20|\+)[A-Za-z0-9_.~+/=%-]{4,}"));

/// User and password in a URL.
static USERINFO: LazyLock<Regex> = LazyLock::new(|| rule(r"://[^\s/@]+@"));

#[expect(
    clippy::expect_used,
    reason = "the rules are constants, and the tests use each"
)]
fn rule(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the rule is a valid pattern")
}

/// Knows the client's own keys besides the general forms.
#[derive(Clone)]
pub(crate) struct Scrubber {
    /// Longest first, so that a key which is the beginning of another leaves no rest.
    own: Vec<String>,
}

impl fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scrubber({} keys)", self.own.len())
    }
}

impl Scrubber {
    pub(crate) fn new(keys: &Keys) -> Self {
        let mut own: Vec<_> = keys.iter().map(Key::secret).map(str::to_owned).collect();
        own.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { own }
    }

    /// The text without keys, on one line, without control characters, cut to a readable length.
    pub(crate) fn line(&self, text: &str) -> String {
        let searched = &text[..text.floor_char_boundary(LONGEST_SEARCHED)];
        let mut keyless = self.keyless(searched);
        if searched.len() < text.len() {
            // The cut may go through a key, whose beginning is not recognised.
            let longest = self.own.first().map_or(0, String::len);
            let end = keyless.len().saturating_sub(longest);
            keyless.truncate(keyless.floor_char_boundary(end));
        }
        one_line(&keyless)
    }

    fn keyless(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.own {
            text = text.replace(secret, MARK);
        }
        let text = USERINFO.replace_all(&text, "://");
        let text = TOKENS.replace_all(&text, MARK);
        let text = BEARER.replace_all(&text, "$1 [key]");
        NAMED
            .replace_all(&text, |found: &Captures<'_>| format!("{}{MARK}", &found[1]))
            .into_owned()
    }
}

fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let mut line = words
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    if let Some((cut, _)) = line.char_indices().nth(LONGEST) {
        line.truncate(cut);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(text: &str) -> String {
        Scrubber::new(&Keys::parse("own-key-1,own-key-12,hunter2").unwrap()).line(text)
    }

    #[test]
    fn every_known_form_is_removed() {
        let table = [
            (
                "Consumer 'api_key:AIzaSyTEST-123' has been suspended",
                "Consumer 'api_key:[key]' has been suspended",
            ),
            ("api_key:plainvalue9 is bad", "api_key:[key] is bad"),
            (
                "GET https://h/v1?key=abcd1234&alt=sse",
                "GET https://h/v1?key=[key]&alt=sse",
            ),
            ("{\"apiKey\": \"abcd1234\"}", "{\"apiKey\": \"[key]\"}"),
            (
                r#"{\"api_key\":\"abcd1234\"}"#,
                r#"{\"api_key\":\"[key]\"}"#,
            ),
            ("x-goog-api-key: abcd1234", "x-goog-api-key: [key]"),
            (
                "Authorization: Bearer abc.def-123",
                "Authorization: Bearer [key]",
            ),
            ("token AQ.Ab8RN6x_y-z here", "token [key] here"),
            ("ya29.a0AfH6SMB rest", "[key] rest"),
            ("saw own-key-12 and own-key-1", "saw [key] and [key]"),
            ("saw hunter2hunter2", "saw [key][key]"),
            (
                "proxy http://user:pass@host:1 refused",
                "proxy http://host:1 refused",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(line(text), expected);
        }
    }

    #[test]
    fn harmless_text_stays() {
        for text in [
            "API key not valid",
            "models/gemini-3.5-flash is not found",
            "token count 1048577 is too large",
        ] {
            assert_eq!(line(text), text);
        }
    }

    #[test]
    fn text_becomes_one_short_line() {
        assert_eq!(line("a\r\n\tb\u{1b}[31m c\0"), "a b [31m c");
        let long = line(&"word ".repeat(50_000));
        assert_eq!(long.chars().count(), LONGEST + 1);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn a_key_at_the_cut_leaves_no_beginning() {
        for kept in 1.."own-key-12".len() {
            let spaces = " ".repeat(LONGEST_SEARCHED - 4 - kept);
            assert_eq!(line(&format!("text{spaces}own-key-12 and more")), "text");
        }
    }

    proptest! {
        #[test]
        fn a_planted_key_never_survives(
            before in ".{0,40}",
            after in ".{0,40}",
            tail in "[A-Za-z0-9_-]{20,36}",
        ) {
            let google = format!("AIza{tail}");
            let text = format!("{before}{google}{after} hunter2 {before}");
            let line = line(&text);
            for planted in [&google, &tail, "hunter2"] {
                prop_assert!(!line.contains(planted), "{line}");
            }
        }
    }
}
