//! Text that looks like a credential: counted, never kept or printed.

use memchr::memmem;

/// One kind of credential: a marker, and what must follow it.
struct Shape {
    marker: &'static [u8],
    /// Characters that may stand between the marker and the value.
    between: &'static [u8],
    /// Fewest characters of the value.
    least: usize,
    allowed: fn(u8) -> bool,
}

/// What the kinds are called, in the order of the counts.
pub(crate) const KINDS: [&str; 5] = [
    "private keys",
    "AWS keys",
    "API keys",
    "access tokens",
    "bearer tokens",
];

fn word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')
}

fn base64(b: u8) -> bool {
    word(b) || matches!(b, b'/' | b'+' | b'.' | b'=' | b'~')
}

fn upper(b: u8) -> bool {
    b.is_ascii_uppercase() || b.is_ascii_digit()
}

const ASSIGN: &[u8] = b"= :\"'\\";

const SHAPES: [&[Shape]; KINDS.len()] = [
    &[Shape {
        marker: b"PRIVATE KEY-----",
        between: b"\\nr \n",
        least: 40,
        allowed: base64,
    }],
    &[
        Shape {
            marker: b"AWS_SECRET_ACCESS_KEY",
            between: ASSIGN,
            least: 30,
            allowed: base64,
        },
        Shape {
            marker: b"aws_secret_access_key",
            between: ASSIGN,
            least: 30,
            allowed: base64,
        },
        Shape {
            marker: b"AKIA",
            between: b"",
            least: 16,
            allowed: upper,
        },
    ],
    &[
        Shape {
            marker: b"sk-ant-",
            between: b"",
            least: 20,
            allowed: word,
        },
        Shape {
            marker: b"sk-proj-",
            between: b"",
            least: 20,
            allowed: word,
        },
        Shape {
            marker: b"AIza",
            between: b"",
            least: 35,
            allowed: word,
        },
    ],
    &[
        Shape {
            marker: b"ghp_",
            between: b"",
            least: 36,
            allowed: word,
        },
        Shape {
            marker: b"github_pat_",
            between: b"",
            least: 36,
            allowed: word,
        },
        Shape {
            marker: b"glpat-",
            between: b"",
            least: 20,
            allowed: word,
        },
        Shape {
            marker: b"xoxb-",
            between: b"",
            least: 20,
            allowed: word,
        },
        Shape {
            marker: b"npm_",
            between: b"",
            least: 36,
            allowed: word,
        },
    ],
    &[Shape {
        marker: b"Bearer ",
        between: b"",
        least: 20,
        allowed: base64,
    }],
];

/// How many of each kind stand in a text.
pub(crate) fn count(text: &[u8]) -> [u64; KINDS.len()] {
    SHAPES.map(|shapes| shapes.iter().map(|s| s.count(text)).sum())
}

impl Shape {
    fn count(&self, text: &[u8]) -> u64 {
        memmem::find_iter(text, self.marker)
            .filter(|at| {
                let rest = &text[at + self.marker.len()..];
                let gap = rest
                    .iter()
                    .take(8)
                    .take_while(|b| self.between.contains(b))
                    .count();
                rest[gap..]
                    .iter()
                    .take(self.least)
                    .take_while(|b| (self.allowed)(**b))
                    .count()
                    == self.least
            })
            .count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c28_credentials_are_counted_by_kind() {
        // Put together here, so that no scanner takes this file for a leak.
        let text = format!(
            "export AWS_SECRET_ACCESS_KEY={}\\nAuthorization: Bearer {}\\n-----BEGIN RSA PRIVATE KEY-----\\n{}\\nghp_{}",
            "a1B2".repeat(10),
            "x9".repeat(20),
            "MIIE".repeat(16),
            "q7".repeat(18),
        );
        assert_eq!(count(text.as_bytes()), [1, 1, 0, 1, 1]);
    }

    #[test]
    fn talk_about_credentials_is_none() {
        let text = b"set AWS_SECRET_ACCESS_KEY=... and Bearer <token>; -----BEGIN PRIVATE KEY----- is the header; sk-ant-";
        assert_eq!(count(text), [0; KINDS.len()]);
    }
}
