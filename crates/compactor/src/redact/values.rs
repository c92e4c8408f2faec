//! Which names are names of secrets, and which values behind them are secrets: whole words are
//! compared, so that `COMPASS` is no password and `changeme123` is one.

/// Letters and digits mixed, as in keys and unlike in words.
pub(super) fn looks_random(secret: &str) -> bool {
    let digits = secret.bytes().filter(u8::is_ascii_digit).count();
    digits >= 2 && secret.bytes().any(|b| b.is_ascii_alphabetic())
}

/// How sure a name is of what stands behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sure {
    /// It may be anything.
    No,
    /// It is a secret if it looks like one.
    Perhaps,
    /// It is a secret.
    Yes,
    /// It is a password, which may look like a word.
    Password,
}

/// The words of a name, in lower case: `DB_PASSWORD`, `db-password` and `dbPassword` have the same.
fn words(name: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        let begins = was_lower && c.is_ascii_uppercase();
        was_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
        if begins || !c.is_ascii_alphanumeric() {
            out.push(String::new());
        }
        if c.is_ascii_alphanumeric()
            && let Some(last) = out.last_mut()
        {
            last.push(c.to_ascii_lowercase());
        }
    }
    out.retain(|word| !word.is_empty());
    out
}

fn sure(name: &str) -> Sure {
    // What a name ends with when it names something about a secret.
    const ABOUT: [&str; 42] = [
        "file",
        "files",
        "path",
        "paths",
        "dir",
        "folder",
        "name",
        "names",
        "count",
        "limit",
        "id",
        "ids",
        "url",
        "uri",
        "type",
        "kind",
        "length",
        "len",
        "size",
        "ttl",
        "expiry",
        "expires",
        "expiration",
        "lifetime",
        "min",
        "max",
        "policy",
        "hint",
        "regex",
        "pattern",
        "field",
        "header",
        "prefix",
        "env",
        "var",
        "algorithm",
        "version",
        "provider",
        "endpoint",
        "host",
        "port",
        "manager",
    ];
    // Keys that are shown to everyone.
    const OPEN_KEYS: [&str; 12] = [
        "public",
        "publishable",
        "primary",
        "foreign",
        "cache",
        "sort",
        "partition",
        "index",
        "lookup",
        "group",
        "object",
        "row",
    ];
    const SECRET_KEYS: [&str; 15] = [
        "api",
        "access",
        "private",
        "secret",
        "auth",
        "encryption",
        "signing",
        "master",
        "service",
        "account",
        "shared",
        "jwt",
        "hmac",
        "deploy",
        "stripe",
    ];
    if matches!(name, "PWD" | "OLDPWD") {
        return Sure::No;
    }
    let words = words(name);
    let Some(last) = words.last() else {
        return Sure::No;
    };
    if ABOUT.contains(&last.as_str()) {
        return Sure::No;
    }
    let of = |(at, word): (usize, &String)| {
        let ends = |ends: &[&str]| ends.iter().any(|end| word.ends_with(end));
        let is = |whole: &[&str]| whole.contains(&word.as_str());
        let before = at.checked_sub(1).map(|at| words[at].as_str());
        if ends(&["password", "passwd", "passphrase"]) || is(&["pwd", "pass", "dbpass", "userpass"])
        {
            return Sure::Password;
        }
        if ends(&[
            "secret",
            "token",
            "apikey",
            "secretkey",
            "accesskey",
            "privatekey",
        ]) || is(&["credential", "credentials", "pat"])
        {
            return Sure::Yes;
        }
        match (word.as_str(), before) {
            ("key", Some(before)) if SECRET_KEYS.contains(&before) => Sure::Yes,
            ("key", Some(before)) if !OPEN_KEYS.contains(&before) => Sure::Perhaps,
            ("auth", _) if at + 1 == words.len() => Sure::Perhaps,
            _ => Sure::No,
        }
    };
    words.iter().enumerate().map(of).max().unwrap_or(Sure::No)
}

/// Whether a name that a shell or a file of settings gives a value makes it a secret.
pub(super) fn is_set(name: &str, secret: &str) -> bool {
    let long_enough = match sure(name) {
        Sure::No => false,
        Sure::Perhaps => secret.len() >= 16 && looks_random(secret),
        Sure::Yes | Sure::Password => secret.len() >= 6,
    };
    long_enough && is_value(secret)
}

/// The same for what stands behind a name in quotes, as in JSON and in programs.
pub(super) fn is_quoted(name: &str, secret: &str) -> bool {
    let is_likely = match sure(name) {
        Sure::No => false,
        Sure::Perhaps | Sure::Yes => secret.len() >= 16 && looks_random(secret),
        Sure::Password => true,
    };
    is_likely && is_value(secret)
}

/// The same for a line of its own without quotes, where the value may be a name of the program.
pub(super) fn is_line(name: &str, secret: &str) -> bool {
    let is_likely = match sure(name) {
        Sure::No => false,
        Sure::Perhaps => secret.len() >= 16 && looks_random(secret),
        Sure::Yes => looks_random(secret),
        Sure::Password => unlike_words(secret),
    };
    is_likely && is_value(secret)
}

/// Whether what stands behind an option of a command is a secret, and not a word of a sentence or
/// the name of a value in a help text.
pub(super) fn is_argument(_: &str, secret: &str) -> bool {
    unlike_words(secret) && !secret.starts_with('-') && is_value(secret)
}

/// A digit among letters, or a sign that no word and no name has.
fn unlike_words(secret: &str) -> bool {
    let has_letter = secret.bytes().any(|b| b.is_ascii_alphabetic());
    let is_strange =
        |b: u8| b.is_ascii_digit() || matches!(b, b'!' | b'@' | b'#' | b'%' | b'^' | b'*' | b'+');
    has_letter && secret.bytes().any(is_strange)
}

/// Whether what stands behind a name is a secret itself: no reference, no path, no number and no
/// word that stands for one.
pub(super) fn is_value(secret: &str) -> bool {
    let is_number = secret
        .bytes()
        .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'_' | b','));
    let is_path = ["/", "./", "../", "~/"]
        .iter()
        .any(|p| secret.starts_with(p))
        && (secret.contains('.') || secret.matches('/').count() > 1)
        && !looks_random(secret);
    !is_number && !is_path && !stands_for_one(secret) && !is_reference(secret) && !is_code(secret)
}

/// Whether it says that a secret is to be put there, or that there is none.
fn stands_for_one(secret: &str) -> bool {
    const WHOLE: [&str; 18] = [
        "null",
        "none",
        "nil",
        "undefined",
        "true",
        "false",
        "yes",
        "no",
        "on",
        "off",
        "empty",
        "required",
        "optional",
        "enabled",
        "disabled",
        "string",
        "redacted",
        "hidden",
    ];
    const WORDS: [&str; 10] = [
        "your",
        "example",
        "changeme",
        "placeholder",
        "dummy",
        "todo",
        "insert",
        "replace",
        "xxx",
        "here",
    ];
    let lower = secret.to_ascii_lowercase();
    let mut bytes = lower.bytes();
    let first = bytes.next();
    if bytes.all(|b| Some(b) == first) {
        return true;
    }
    let mut parts = lower.split(|c: char| !c.is_ascii_alphanumeric());
    WHOLE.contains(&lower.as_str())
        || !lower.bytes().any(|b| b.is_ascii_digit())
            && (parts.any(|part| WORDS.contains(&part)) || lower.starts_with("your"))
}

/// Whether it names a variable or was replaced already.
pub(super) fn is_reference(secret: &str) -> bool {
    let is_name = |name: &str| {
        let letters = |b: u8| b.is_ascii_alphabetic() || b == b'_';
        let capitals = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
        !name.is_empty() && (name.bytes().all(letters) || name.bytes().all(capitals))
    };
    let is_stars = secret.bytes().all(|b| b == b'*' || b == b'.');
    let is_variable = secret
        .strip_prefix('$')
        .is_some_and(|name| name.starts_with(['{', '(']) || is_name(name));
    let is_windows = secret.strip_prefix('%').is_some_and(|rest| {
        rest.strip_suffix('%').is_some_and(is_name) || matches!(rest, "s" | "d" | "v" | "q")
    });
    is_stars
        || is_variable
        || is_windows
        || secret.starts_with(['{', '<'])
        || secret.starts_with("[REDACTED")
        || secret.starts_with("***")
}

/// Whether a program reads it from elsewhere.
fn is_code(secret: &str) -> bool {
    const FROM: [&str; 12] = [
        "process.env",
        "import.meta.env",
        "os.environ",
        "os.getenv",
        "env.",
        "env(",
        "env[",
        "secrets.",
        "config.",
        "settings.",
        "self.",
        "this.",
    ];
    let is_path = |b: u8| b.is_ascii_alphanumeric() || b"_.[]()'\"".contains(&b);
    FROM.iter().any(|from| secret.starts_with(from)) && secret.bytes().all(is_path)
}
