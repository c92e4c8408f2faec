//! Replaces secrets by placeholders that keep their kind. Linear in the text's length: the
//! patterns are finite automata without look-around, and what a pattern alone cannot tell is
//! decided on the match.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Captures, Regex, RegexSet};

/// A kind of secret, by name, for example `aws-access-key`.
pub type SecretKind = &'static str;

/// A text without its secrets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Redacted {
    /// The text with placeholders.
    pub text: String,
    /// How many secrets of each kind were replaced.
    pub counts: BTreeMap<SecretKind, usize>,
}

/// A kind's pattern. The group `s` is the secret; the whole match where there is no such group.
struct Pattern {
    kind: SecretKind,
    form: &'static str,
    /// Whether a match is a secret, by the name before it and the secret itself.
    is_secret: fn(name: &str, secret: &str) -> bool,
}

const fn pattern(kind: SecretKind, form: &'static str) -> Pattern {
    Pattern {
        kind,
        form,
        is_secret: always,
    }
}

const fn tested(
    kind: SecretKind,
    form: &'static str,
    is_secret: fn(&str, &str) -> bool,
) -> Pattern {
    Pattern {
        kind,
        form,
        is_secret,
    }
}

/// In the order of use: what is told by its own form first, what is told by its name last.
const PATTERNS: &[Pattern] = &[
    pattern(
        "private-key",
        r#"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9+/=\s\\:,."'()@<>*#|→-]*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"#,
    ),
    pattern(
        "private-key",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:\s|\\n|\\r)*[A-Za-z0-9+/=]{16}[A-Za-z0-9+/=\s\\]*",
    ),
    pattern("private-key", r"(?-u:\b)AGE-SECRET-KEY-1[A-Z0-9]{40,}"),
    pattern("anthropic-key", r"(?-u:\b)sk-ant-[A-Za-z0-9_-]{16,}"),
    tested(
        "openai-key",
        r"(?-u:\b)sk-(?:proj-|svcacct-|admin-|or-v1-)?[A-Za-z0-9_-]{20,}",
        |_, secret| looks_random(secret),
    ),
    pattern("google-key", r"(?-u:\b)AIza[A-Za-z0-9_-]{20,}"),
    pattern(
        "google-key",
        r"(?-u:\b)(?:GOCSPX-|ya29\.)[A-Za-z0-9_-]{20,}",
    ),
    tested(
        "google-key",
        r"(?-u:\b)AQ\.[A-Za-z0-9_-]{30,}",
        |_, secret| looks_random(secret),
    ),
    pattern("github-token", r"(?-u:\b)gh[pousr]_[A-Za-z0-9]{30,}"),
    pattern("github-token", r"(?-u:\b)github_pat_[A-Za-z0-9_]{22,}"),
    pattern(
        "gitlab-token",
        r"(?-u:\b)gl(?:pat|ptt|rt|dt)-[A-Za-z0-9_-]{20,}",
    ),
    pattern("slack-token", r"(?-u:\b)xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    pattern(
        "slack-webhook",
        r"hooks\.slack\.com/services/(?P<s>[A-Za-z0-9/]{20,})",
    ),
    pattern(
        "stripe-key",
        r"(?-u:\b)(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}",
    ),
    pattern("stripe-key", r"(?-u:\b)whsec_[A-Za-z0-9+/=]{24,}"),
    pattern(
        "aws-access-key",
        r"(?-u:\b)(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?-u:\b)",
    ),
    pattern(
        "azure-key",
        r"(?i:AccountKey|SharedAccessKey)=(?P<s>[A-Za-z0-9+/=]{40,})",
    ),
    pattern("npm-token", r"(?-u:\b)npm_[A-Za-z0-9]{36}"),
    pattern("pypi-token", r"(?-u:\b)pypi-[A-Za-z0-9_-]{40,}"),
    pattern("huggingface-token", r"(?-u:\b)hf_[A-Za-z0-9]{30,}"),
    pattern(
        "sendgrid-key",
        r"(?-u:\b)SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    ),
    pattern("twilio-key", r"(?-u:\b)SK[0-9a-f]{32}(?-u:\b)"),
    pattern("telegram-token", r"(?-u:\b)[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"),
    pattern("digitalocean-token", r"(?-u:\b)do[opr]_v1_[a-f0-9]{64}"),
    pattern("groq-key", r"(?-u:\b)gsk_[A-Za-z0-9]{40,}"),
    pattern("xai-key", r"(?-u:\b)xai-[A-Za-z0-9]{40,}"),
    pattern("replicate-token", r"(?-u:\b)r8_[A-Za-z0-9]{30,}"),
    pattern("databricks-token", r"(?-u:\b)dapi[a-f0-9]{32}"),
    pattern("vault-token", r"(?-u:\b)hvs\.[A-Za-z0-9_-]{20,}"),
    pattern(
        "shopify-token",
        r"(?-u:\b)shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",
    ),
    pattern(
        "jwt",
        r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    ),
    tested(
        "bearer-token",
        r"(?i:(?-u:\b)bearer)\s+(?P<s>[A-Za-z0-9._~+/=-]{16,})",
        |_, secret| secret.bytes().any(|b| b.is_ascii_digit()),
    ),
    pattern(
        "basic-auth",
        r#"(?i:authorization)["']?\s*[:=]\s*["']?(?i:basic)\s+(?P<s>[A-Za-z0-9+/=]{8,})"#,
    ),
    tested(
        "url-password",
        r#"(?-u:\b)[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"'<>]*:(?P<s>[^\s/@"'<>]+)@"#,
        |_, secret| !is_reference(secret),
    ),
    tested(
        "header-key",
        r#"(?i)(?-u:\b)(?:x-api-key|x-goog-api-key|x-auth-token|api-key)["']?\s*[:=]\s*["']?(?P<s>[A-Za-z0-9._~+/=-]{12,})"#,
        |_, secret| looks_random(secret),
    ),
    tested(
        "env-secret",
        r#"(?-u:\b)(?P<n>[A-Z][A-Z0-9_]*)=(?:"(?P<s>[^"\n]+)"|'(?P<s2>[^'\n]+)'|(?P<s3>[^\s"'`;&|)\\]+))"#,
        |name, secret| is_secret_name(name) && secret.len() >= 6 && is_value(secret),
    ),
    tested(
        "named-secret",
        r#"(?i)(?P<n>[a-z0-9_.-]*(?:password|passwd|passphrase|secret|token|api_?-?key|access_?-?key|private_?-?key|credentials?)[a-z0-9_]*)["']?\s*[:=]\s*(?:"(?P<s>[^"\s]{8,})"|'(?P<s2>[^'\s]{8,})')"#,
        |name, secret| {
            is_value(secret)
                && (is_password_name(name) || (secret.len() >= 16 && looks_random(secret)))
        },
    ),
    tested(
        "named-secret",
        r"(?im)^\s*(?:export\s+|-\s+)?(?P<n>[a-z0-9_.-]*(?:password|passwd|passphrase|secret|token|api_?-?key|access_?-?key)[a-z0-9_]*)\s*[:=]\s*(?P<s>[^\s\x22'`;,(){}<>\[\]&$]{8,})\s*$",
        |_, secret| is_value(secret) && looks_random(secret),
    ),
];

fn always(_: &str, _: &str) -> bool {
    true
}

/// Letters and digits mixed, as in keys and unlike in words.
fn looks_random(secret: &str) -> bool {
    let digits = secret.bytes().filter(u8::is_ascii_digit).count();
    digits >= 2 && secret.bytes().any(|b| b.is_ascii_alphabetic())
}

/// Whether a name in capitals names a secret, and not a file, a count or a limit of one.
fn is_secret_name(name: &str) -> bool {
    const PARTS: [&str; 12] = [
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "SECRET",
        "TOKEN",
        "APIKEY",
        "API_KEY",
        "ACCESS_KEY",
        "PRIVATE_KEY",
        "CREDENTIAL",
        "AUTH_KEY",
        "PASS",
    ];
    const NOT: [&str; 8] = [
        "_FILE", "_PATH", "_DIR", "_NAME", "_COUNT", "_LIMIT", "_ID", "_URL",
    ];
    let has_part = PARTS
        .iter()
        .any(|part| name.contains(part) && (*part != "PASS" || name.ends_with("PASS")));
    has_part && !NOT.iter().any(|end| name.ends_with(end))
}

fn is_password_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["password", "passwd", "passphrase"]
        .iter()
        .any(|part| name.ends_with(part))
}

/// Whether what stands behind a name is a secret itself: no reference, no path, no number and no
/// word that stands for one.
fn is_value(secret: &str) -> bool {
    let is_number = secret
        .bytes()
        .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'_' | b','));
    let is_path = ["/", "./", "../", "~/"]
        .iter()
        .any(|p| secret.starts_with(p))
        && (secret.contains('.') || secret.matches('/').count() > 1)
        && !looks_random(secret);
    let lower = secret.to_ascii_lowercase();
    let stands_for_one = [
        "your",
        "example",
        "changeme",
        "placeholder",
        "xxxx",
        "****",
        "null",
        "none",
        "undefined",
        "true",
        "false",
        "process.env",
        "os.environ",
        "env.",
        "env(",
        "secrets.",
        "config.",
        "todo",
    ]
    .iter()
    .any(|word| lower.starts_with(word));
    !is_number && !is_path && !stands_for_one && !is_reference(secret)
}

/// Whether it names a variable or was replaced already.
fn is_reference(secret: &str) -> bool {
    let is_stars = secret.bytes().all(|b| b == b'*' || b == b'.');
    is_stars
        || secret.starts_with(['$', '%', '{', '<'])
        || secret.starts_with("[REDACTED")
        || secret.starts_with("***")
}

struct Compiled {
    set: RegexSet,
    each: Vec<Regex>,
}

static COMPILED: LazyLock<Compiled> = LazyLock::new(|| {
    let patterns: Vec<&str> = PATTERNS.iter().map(|p| p.form).collect();
    Compiled {
        set: RegexSet::new(&patterns).expect("the patterns are constant and tested"),
        each: patterns
            .iter()
            .map(|p| Regex::new(p).expect("the patterns are constant and tested"))
            .collect(),
    }
});

/// Replaces secrets by placeholders such as `[REDACTED:jwt]`.
///
/// Known forms (keys of common vendors, JWTs, private keys) are found anywhere; passwords and
/// tokens without a form of their own are found by the name or the header before them. Doing it
/// twice changes nothing.
///
/// ```
/// let clean = ctxfold_compactor::redact("export DB_PASSWORD=hunter2-really");
/// assert_eq!(clean.text, "export DB_PASSWORD=[REDACTED:env-secret]");
/// assert_eq!(clean.counts["env-secret"], 1);
/// ```
pub fn redact(text: &str) -> Redacted {
    let mut out = Redacted {
        text: text.to_owned(),
        counts: BTreeMap::new(),
    };
    let matched = COMPILED.set.matches(text);
    for index in matched {
        let (pattern, regex) = (&PATTERNS[index], &COMPILED.each[index]);
        let mut count = 0;
        let replaced = regex.replace_all(&out.text, |found: &Captures<'_>| {
            replace(pattern, found, &mut count)
        });
        if count > 0 {
            out.text = replaced.into_owned();
            *out.counts.entry(pattern.kind).or_default() += count;
        }
    }
    out
}

fn replace(pattern: &Pattern, found: &Captures<'_>, count: &mut usize) -> String {
    let whole = found.get_match();
    let secret = ["s", "s2", "s3"]
        .iter()
        .find_map(|group| found.name(group))
        .unwrap_or(whole);
    let name = found.name("n").map_or("", |n| n.as_str());
    let is_done = secret.as_str().contains("[REDACTED:");
    if is_done || !(pattern.is_secret)(name, secret.as_str()) {
        return whole.as_str().to_owned();
    }
    *count += 1;
    let offset = whole.start();
    let (before, after) = (secret.start() - offset, secret.end() - offset);
    format!(
        "{}[REDACTED:{}]{}",
        &whole.as_str()[..before],
        pattern.kind,
        &whole.as_str()[after..]
    )
}
