//! Error bodies: what of them can be found in any of the forms that were seen.

use std::time::Duration;

use serde_json::Value;

use super::{first_document, string};

/// What an error body says, before anybody decides what it means.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fault {
    /// The numeric code, also one written as a string.
    pub(crate) code: Option<u16>,
    /// Names in it: `status`, a code that is a word, and the reasons of the details.
    pub(crate) names: Vec<String>,
    pub(crate) message: Option<String>,
    pub(crate) retry_delay: Option<Duration>,
    /// A quota that is counted per day is among the violated.
    pub(crate) daily: bool,
}

impl Fault {
    /// `None` when the document is no error.
    pub(crate) fn read(document: &Value) -> Option<Self> {
        let error = document.get("error").filter(|error| !error.is_null())?;
        let mut fault = Self::default();
        fault.absorb(error, 0);
        Some(fault)
    }

    /// The error in a body that should hold one; `None` when there is none, or no JSON.
    pub(crate) fn of_body(body: &[u8]) -> Option<Self> {
        Self::read(&first_document(body)?)
    }

    /// The innermost message is the most exact; so are its details.
    fn absorb(&mut self, error: &Value, depth: usize) {
        if let Value::String(text) = error {
            self.absorb_text(text, depth);
            return;
        }
        match error.get("code") {
            Some(Value::Number(code)) => {
                self.code = code.as_u64().and_then(|code| u16::try_from(code).ok());
            }
            Some(Value::String(code)) => match code.parse() {
                Ok(code) => self.code = Some(code),
                Err(_) => self.names.push(code.clone()),
            },
            _ => {}
        }
        self.names.extend(string(error.get("status")));
        self.names.extend(string(error.get("reason")));
        for detail in error
            .get("details")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            self.absorb_detail(detail);
        }
        if let Some(message) = error.get("message").and_then(Value::as_str) {
            self.absorb_text(message, depth);
        }
    }

    /// A message may be another error, encoded.
    fn absorb_text(&mut self, text: &str, depth: usize) {
        let inner = text.trim_start();
        if depth < super::UNPACK
            && inner.starts_with(['{', '['])
            && let Some(document) = first_document(inner.as_bytes())
            && let Some(error) = document
                .get("error")
                .or_else(|| document.get("message").and(Some(&document)))
        {
            self.message = None;
            self.absorb(error, depth + 1);
            return;
        }
        self.message = Some(text.to_owned());
    }

    fn absorb_detail(&mut self, detail: &Value) {
        self.names.extend(string(detail.get("reason")));
        if let Some(delay) = detail.get("retryDelay").and_then(Value::as_str) {
            self.retry_delay = duration(delay);
        }
        for violation in detail
            .get("violations")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let id = violation
                .get("quotaId")
                .and_then(Value::as_str)
                .unwrap_or_default();
            self.daily |= id.contains("PerDay");
        }
    }
}

/// A protocol-buffer duration: seconds with up to nine decimals and an `s`, such as
/// `58.934310785s`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let seconds = text.strip_suffix('s')?;
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || seconds.ends_with('.') {
        return None;
    }
    let nanos: String = fraction
        .chars()
        .chain("000000000".chars())
        .take(9)
        .collect();
    Some(Duration::new(whole.parse().ok()?, nanos.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn durations_are_read_exactly_or_not_at_all() {
        let table = [
            ("26s", Some(Duration::from_secs(26))),
            ("58.934310785s", Some(Duration::new(58, 934_310_785))),
            ("45.837906927s", Some(Duration::new(45, 837_906_927))),
            ("0s", Some(Duration::ZERO)),
            ("0.5s", Some(Duration::from_millis(500))),
            ("1.0000000019s", Some(Duration::new(1, 1))),
            ("-1s", None),
            ("abc", None),
            ("", None),
            ("s", None),
            (".5s", None),
            ("1.s", None),
            ("1e3s", None),
            ("+1s", None),
            ("26", None),
            ("99999999999999999999s", None),
        ];
        for (text, expected) in table {
            assert_eq!(duration(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read(secs in any::<u64>(), nanos in 0u32..1_000_000_000) {
            let text = format!("{secs}.{nanos:09}s");
            prop_assert_eq!(duration(&text), Some(Duration::new(secs, nanos)));
        }

        #[test]
        fn no_text_is_too_odd(text in "\\PC{0,12}") {
            let _ = duration(&text);
            let _ = Fault::of_body(text.as_bytes());
        }
    }

    #[test]
    fn the_same_error_is_found_in_every_wrapping() {
        let error = json!({ "error": {
            "code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED",
            "details": [{
                "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "26s",
            }],
        } });
        let plain = error.to_string();
        let expected = Fault::of_body(plain.as_bytes()).unwrap();
        assert_eq!(expected.code, Some(429));
        assert_eq!(expected.message.as_deref(), Some("slow down"));
        assert_eq!(expected.retry_delay, Some(Duration::from_secs(26)));
        let wrappings = [
            json!([error]).to_string(),
            json!(plain).to_string(),
            json!(json!(plain).to_string()).to_string(),
            format!("\u{feff}{plain}"),
            format!("{plain}{plain}"),
            format!("data: {plain}\n\n"),
        ];
        for body in wrappings {
            assert_eq!(
                Fault::of_body(body.as_bytes()).as_ref(),
                Some(&expected),
                "{body}"
            );
        }
        let nested =
            json!({ "error": { "message": plain, "code": 429, "status": "Too Many Requests" } });
        let fault = Fault::read(&nested).unwrap();
        assert_eq!(fault.message, expected.message);
        assert_eq!(fault.retry_delay, expected.retry_delay);
    }

    #[test]
    fn codes_may_be_words_or_strings() {
        let fault = |error: Value| Fault::read(&json!({ "error": error })).unwrap();
        let word = fault(json!({ "code": "invalid_request", "message": "no" }));
        assert_eq!(
            (word.code, word.names),
            (None, vec!["invalid_request".to_owned()])
        );
        assert_eq!(fault(json!({ "code": "429" })).code, Some(429));
        assert_eq!(fault(json!({ "code": 70_000 })).code, None);
        assert_eq!(
            fault(json!("overloaded")).message.as_deref(),
            Some("overloaded")
        );
        let lookalike = fault(json!({ "message": "{\"a\": 1} is no request" }));
        assert_eq!(
            lookalike.message.as_deref(),
            Some("{\"a\": 1} is no request")
        );
        assert_eq!(Fault::read(&json!({ "error": null })), None);
        assert_eq!(Fault::of_body(b"<html>"), None);
    }

    #[test]
    fn a_daily_quota_is_recognised() {
        let details =
            |id: &str| json!({ "error": { "details": [{ "violations": [{ "quotaId": id }] }] } });
        assert!(
            Fault::read(&details(
                "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
            ))
            .unwrap()
            .daily
        );
        assert!(
            !Fault::read(&details("GenerateRequestsPerMinutePerProjectPerModel"))
                .unwrap()
                .daily
        );
    }
}
