//! What one failed attempt means: the kind for the caller, the cause for the retry rules, one short
//! text.

use std::time::Duration;

use crate::answer::Usage;
use crate::error::ErrorKind;
use crate::retry::Cause;
use crate::scrub::Scrubber;
use crate::wire::Fault;

/// One failed attempt. The text is scrubbed and names no key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    pub(crate) cause: Cause,
    pub(crate) text: String,
    pub(crate) status: Option<u16>,
    pub(crate) reason: Option<String>,
    /// Boxed, because it would be half of every failure and is in few.
    pub(crate) usage: Option<Box<Usage>>,
}

impl Failure {
    fn new(kind: ErrorKind, cause: Cause, text: String) -> Self {
        Self {
            kind,
            cause,
            text,
            status: None,
            reason: None,
            usage: None,
        }
    }

    /// The server answered, but not with something to hand out. Asking again would be paid again.
    pub(crate) fn of_answer(kind: ErrorKind, text: String) -> Self {
        Self::new(kind, Cause::Final, text)
    }

    /// The server was not reached, or the connection broke.
    pub(crate) fn of_network(text: String, again: bool) -> Self {
        Self::new(
            ErrorKind::Network,
            if again {
                Cause::Transient
            } else {
                Cause::Final
            },
            text,
        )
    }

    /// A reply with a status other than success.
    pub(crate) fn of_status(
        status: u16,
        body: &[u8],
        retry_after: Option<Duration>,
        thinking_sent: bool,
        scrub: &Scrubber,
    ) -> Self {
        let fault = Fault::of_body(body);
        let html = fault.is_none() && body.trim_ascii_start().starts_with(b"<");
        let mut fault = fault.unwrap_or_default();
        if html {
            fault.message = Some("an HTML page instead of JSON".to_owned());
        }
        fault.retry_delay = fault.retry_delay.or(retry_after);
        Self::of_fault(status, &fault, thinking_sent, scrub)
    }

    /// An error that came inside a successful reply or a stream: its own code counts.
    pub(crate) fn of_hidden(fault: &Fault, thinking_sent: bool, scrub: &Scrubber) -> Self {
        if let Some(code) = fault
            .code
            .or_else(|| fault.names.iter().find_map(|name| code_of(name)))
        {
            Self::of_fault(code, fault, thinking_sent, scrub)
        } else {
            let message = first_sentence(
                fault.message.as_deref().unwrap_or("no code and no message"),
                scrub,
            );
            Self::of_answer(
                ErrorKind::Malformed,
                format!("Gemini sent an error without a code: {message}"),
            )
        }
    }

    fn of_fault(status: u16, fault: &Fault, thinking_sent: bool, scrub: &Scrubber) -> Self {
        let message = fault.message.as_deref().unwrap_or_default();
        let (kind, cause) = meaning(status, fault, message, thinking_sent);
        let text = match (kind, cause) {
            (_, Cause::Quota { daily: true, .. }) => "daily quota".to_owned(),
            (_, Cause::Quota { .. }) => "quota".to_owned(),
            (ErrorKind::InvalidKey, _) if message.is_empty() && status == 400 => {
                "API key not valid".to_owned()
            }
            _ if message.trim().is_empty() => by_status(status).to_owned(),
            _ => first_sentence(message, scrub),
        };
        Self {
            status: Some(status),
            ..Self::new(kind, cause, format!("Gemini HTTP {status}: {text}"))
        }
    }
}

fn meaning(status: u16, fault: &Fault, message: &str, thinking_sent: bool) -> (ErrorKind, Cause) {
    let lower = message.to_ascii_lowercase();
    match status {
        429 => (
            ErrorKind::Quota,
            Cause::Quota {
                hint: fault.retry_delay,
                daily: fault.daily,
            },
        ),
        401 => (ErrorKind::InvalidKey, Cause::KeyRefused),
        403 => (ErrorKind::Forbidden, Cause::KeyRefused),
        400 if names_the_key(fault, &lower) => (ErrorKind::InvalidKey, Cause::KeyRefused),
        400 if thinking_sent && lower.contains("thinking") => {
            (ErrorKind::InvalidRequest, Cause::ThinkingRefused)
        }
        400 if lower.contains("too many states") => (ErrorKind::SchemaTooComplex, Cause::Final),
        400 if lower.contains("token count") && lower.contains("exceed") => {
            (ErrorKind::InputTooLong, Cause::Final)
        }
        413 => (ErrorKind::InputTooLong, Cause::Final),
        404 => (ErrorKind::ModelUnknown, Cause::Final),
        408 | 500 | 502 => (ErrorKind::Server, Cause::Transient),
        400..=499 => (ErrorKind::InvalidRequest, Cause::Final),
        503 => (ErrorKind::Overloaded, Cause::Overloaded),
        500.. => (ErrorKind::Server, Cause::Final),
        // Redirects are not followed: the key would go along to another server.
        _ => (ErrorKind::Malformed, Cause::Final),
    }
}

/// An invalid key comes as 400; other 400 would be the same with any key.
fn names_the_key(fault: &Fault, message: &str) -> bool {
    let by_name = |name: &String| {
        let name = name.to_ascii_uppercase();
        name.contains("API_KEY") && (name.contains("INVALID") || name.contains("EXPIRED"))
    };
    let wrong = ["not valid", "invalid", "expired", "not found"];
    fault.names.iter().any(by_name)
        || message.contains("api key") && wrong.iter().any(|word| message.contains(word))
}

/// The codes of errors that come with a word instead of a number.
fn code_of(name: &str) -> Option<u16> {
    Some(match name.to_ascii_uppercase().as_str() {
        "INVALID_ARGUMENT" | "INVALID_REQUEST" | "FAILED_PRECONDITION" => 400,
        "UNAUTHENTICATED" | "AUTHENTICATION" => 401,
        "PERMISSION_DENIED" => 403,
        "NOT_FOUND" => 404,
        "RESOURCE_EXHAUSTED" | "RATE_LIMIT_EXCEEDED" => 429,
        "INTERNAL" | "API_ERROR" => 500,
        "UNAVAILABLE" | "OVERLOADED" => 503,
        "DEADLINE_EXCEEDED" => 504,
        _ => return None,
    })
}

fn by_status(status: u16) -> &'static str {
    match status {
        300..=399 => "an unexpected redirect",
        400 => "invalid request",
        401 => "not authenticated",
        403 => "not allowed",
        404 => "not found",
        408 => "the request took too long",
        413 => "the request is too large",
        500 => "internal error",
        502 => "bad gateway",
        503 => "overloaded",
        504 => "the model took too long",
        _ => "no reason given",
    }
}

fn first_sentence(message: &str, scrub: &Scrubber) -> String {
    let line = scrub.line(message);
    let sentence = line
        .split_once(". ")
        .map_or(line.as_str(), |(first, _)| first);
    sentence.strip_suffix('.').unwrap_or(sentence).to_owned()
}
