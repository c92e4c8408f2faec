//! Replaces secrets by placeholders that keep their kind. Linear in the text's length: the
//! patterns are finite automata without look-around, and what a pattern alone cannot tell is
//! decided on the match.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Captures, Regex, RegexSet};

mod values;

use values::{is_argument, is_line, is_quoted, is_reference, is_set, looks_random};

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
    pattern(
        "cookie",
        r"(?i)(?-u:\b)(?:set-)?cookie:\s*(?P<s>[A-Za-z0-9_.-]+=[^\r\n\x22']{8,})",
    ),
    tested(
        "url-password",
        r#"(?-u:\b)(?:postgres|postgresql|mysql|mariadb|mongodb|redis|rediss|amqp|amqps)(?:\+[a-z0-9]+)?://[^\s/:@"'<>\[]*:(?P<s>[^\s"'<>]+)@"#,
        |_, secret| !is_reference(secret) && !is_port(secret),
    ),
    tested(
        "url-password",
        r#"(?-u:\b)[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"'<>\[]*:(?P<s>[^\s/@"'<>]+)@"#,
        |_, secret| !is_reference(secret),
    ),
    tested(
        "url-token",
        r#"(?-u:\b)https?://(?P<s>[^\s/:@"'<>]{12,})@"#,
        |_, secret| secret.bytes().any(|b| b.is_ascii_digit()) && !is_reference(secret),
    ),
    tested(
        "header-key",
        r#"(?i)(?-u:\b)(?:x-api-key|x-goog-api-key|x-auth-token|api-key)["']?\s*[:=]\s*["']?(?P<s>[A-Za-z0-9._~+/=-]{12,})"#,
        |_, secret| looks_random(secret),
    ),
    tested(
        "command-secret",
        r#"(?-u:\b)(?:curl|wget)(?:\s(?:[^\n\\]|\\.|\\\n)*?)??\s(?:-[A-Za-z]*u|--user)[ =]?\\?["']?[^\s:"'/\\-][^\s:"'/\\]*:(?P<s>[^\s"'\\]{3,})"#,
        |_, secret| !is_reference(secret),
    ),
    tested(
        "command-secret",
        r#"(?-u:\b)(?:mysql|mysqldump|mysqladmin|mariadb)(?-u:\s)[^\n]*?\s-p(?P<s>[^\s"'\\]{4,})"#,
        is_argument,
    ),
    tested(
        "command-secret",
        r#"(?-u:\b)sshpass\s+-p\s*\\?["']?(?P<s>[^\s"'\\]{3,})"#,
        |_, secret| !is_reference(secret),
    ),
    tested(
        "command-secret",
        r#"(?-u:[\s"'])--?(?P<n>(?:[a-z]+-)*(?:password|passwd|passphrase|pass|token|api-?key|secret|secret-key|access-key))(?:=|\s+)\\?["']?(?P<s>[^\s"'\\]{4,})"#,
        is_argument,
    ),
    tested(
        "env-secret",
        r#"(?-u:\b)(?P<n>[A-Z][A-Z0-9_]*)=(?:\\"(?P<s4>[^"\\\n]+)|"(?P<s>[^"\n]+)"|'(?P<s2>[^'\n]+)'|(?P<s3>[^\s"'`;&|)\\]+))"#,
        is_set,
    ),
    tested(
        "env-secret",
        r#"(?-u:\b)(?:(?:export|set|declare -x)\s+(?P<n>[A-Za-z_][A-Za-z0-9_]*)=|setenv\s+(?P<n2>[A-Za-z_][A-Za-z0-9_]*) )(?:\\"(?P<s4>[^"\\\n]+)|"(?P<s>[^"\n]+)"|'(?P<s2>[^'\n]+)'|(?P<s3>[^\s"'`;&|)\\]+))"#,
        is_set,
    ),
    tested(
        "named-secret",
        r#"(?i)(?P<n>[a-z0-9_.-]*(?:password|passwd|passphrase|pwd|secret|token|key|credentials?)[a-z0-9_]*)\\?["']?\s*[:=]\s*(?:\\"(?P<s4>[^"\\\s]{8,})|"(?P<s>[^"\s]{8,})"|'(?P<s2>[^'\s]{8,})')"#,
        is_quoted,
    ),
    tested(
        "named-secret",
        r"(?im)^\s*(?:export\s+|-\s+)?(?P<n>[a-z0-9_.-]*(?:password|passwd|passphrase|pwd|secret|token|key|pat)[a-z0-9_]*)\s*[:=]\s*(?P<s>[^\s\x22'`;,(){}<>\[\]&$]{8,})\s*,?\s*$",
        is_line,
    ),
];

fn always(_: &str, _: &str) -> bool {
    true
}

/// The port of an address, with its path.
fn is_port(secret: &str) -> bool {
    let port = secret.split('/').next().unwrap_or_default();
    secret.contains('/') && !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit())
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
    let secret = ["s", "s2", "s3", "s4"]
        .iter()
        .find_map(|group| found.name(group))
        .unwrap_or(whole);
    let name = found.name("n").or_else(|| found.name("n2"));
    let name = name.map_or("", |n| n.as_str());
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
