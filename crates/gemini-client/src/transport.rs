//! The one file that touches the network: HTTP and TLS through reqwest, whose types and error texts
//! end here.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{NoProxy, Proxy, StatusCode, Url, redirect};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

use crate::course::seconds;
use crate::error::{Error, ErrorKind};
use crate::key::Key;

/// The version of the API that a base URL without a path gets.
const VERSION: &str = "/v1beta";
/// Finds out that a peer is gone while a call waits without an idle limit.
const KEEPALIVE: Duration = Duration::from_secs(15);

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) base_url: String,
    pub(crate) user_agent: String,
    pub(crate) proxy: Option<String>,
    pub(crate) no_proxy: Option<String>,
    pub(crate) connect_timeout: Duration,
}

#[derive(Clone, Debug)]
pub(crate) struct Transport {
    http: reqwest::Client,
    base: Url,
    connect_timeout: Duration,
}

/// What is sent, apart from the key.
#[derive(Debug)]
pub(crate) struct Outgoing<'a> {
    /// Under the base URL, without a slash before it.
    pub(crate) path: &'a str,
    pub(crate) query: &'a [(&'static str, String)],
    /// JSON; without it the request is a GET.
    pub(crate) body: Option<Vec<u8>>,
}

/// A reply whose body is still to come.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) status: u16,
    pub(crate) events: bool,
    pub(crate) retry_after: Option<Duration>,
    response: reqwest::Response,
}

/// No reply. The text is not yet scrubbed.
#[derive(Debug)]
pub(crate) struct Broken(pub(crate) String);

impl Transport {
    pub(crate) fn new(settings: &Settings) -> Result<Self, Error> {
        let base = base(&settings.base_url)?;
        let wrong = |what| Error::new(ErrorKind::Config, format!("the {what} cannot be used"));
        let user_agent =
            HeaderValue::from_str(&settings.user_agent).map_err(|_| wrong("user agent"))?;
        let mut http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls().map_err(|_| wrong("TLS provider"))?)
            .user_agent(user_agent)
            .connect_timeout(settings.connect_timeout)
            .tcp_keepalive(KEEPALIVE)
            // A redirect would take the key to another server.
            .redirect(redirect::Policy::none())
            .referer(false)
            // Not even the environment's proxies: the caller reads the environment, or does not.
            .no_proxy();
        if let Some(url) = &settings.proxy {
            let exceptions = settings.no_proxy.as_deref().and_then(NoProxy::from_string);
            let proxy = proxy(url).ok_or_else(|| wrong("proxy URL"))?;
            http = http.proxy(proxy.no_proxy(exceptions));
        }
        let http = http.build().map_err(|_| wrong("HTTP client"))?;
        Ok(Self {
            http,
            base,
            connect_timeout: settings.connect_timeout,
        })
    }

    /// The same connections to another address; loading the trust store again is slow.
    #[cfg(test)]
    pub(crate) fn moved(&self, base_url: &str) -> Self {
        Self {
            base: base(base_url).unwrap(),
            ..self.clone()
        }
    }

    pub(crate) async fn send(&self, outgoing: Outgoing<'_>, key: &Key) -> Result<Incoming, Broken> {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{}", self.base.path(), outgoing.path));
        if !outgoing.query.is_empty() {
            url.query_pairs_mut().extend_pairs(outgoing.query);
        }
        let mut secret = HeaderValue::from_str(key.secret())
            .map_err(|_| Broken("the key cannot be sent".to_owned()))?;
        secret.set_sensitive(true);
        let request = match outgoing.body {
            None => self.http.get(url),
            Some(body) => self
                .http
                .post(url)
                .header(CONTENT_TYPE, "application/json")
                .body(body),
        };
        let response = request
            .header("x-goog-api-key", secret)
            .send()
            .await
            .map_err(|error| self.broken(&error))?;
        Ok(Incoming::of(response))
    }

    /// The next bytes of the body; `None` at its end.
    pub(crate) async fn chunk(
        &self,
        incoming: &mut Incoming,
    ) -> Result<Option<impl AsRef<[u8]>>, Broken> {
        incoming
            .response
            .chunk()
            .await
            .map_err(|error| self.broken(&error))
    }

    pub(crate) fn host(&self) -> &str {
        self.base.host_str().unwrap_or("the server")
    }

    fn broken(&self, error: &reqwest::Error) -> Broken {
        let host = self.host();
        if error.is_connect() && error.is_timeout() {
            return Broken(format!(
                "no connection to {host} within {}",
                seconds(self.connect_timeout)
            ));
        }
        let mut root: &dyn std::error::Error = error;
        while let Some(source) = root.source() {
            root = source;
        }
        // Only an error without a source is reqwest's own, and only those quote the URL.
        let root = if error.source().is_none() {
            "no details".to_owned()
        } else {
            root.to_string()
        };
        let what = if error.is_connect() {
            "cannot connect to"
        } else {
            "the connection broke to"
        };
        Broken(format!("{what} {host}: {root}"))
    }
}

impl Incoming {
    fn of(response: reqwest::Response) -> Self {
        let header = |name| {
            response
                .headers()
                .get(name)
                .and_then(|value| value.to_str().ok())
        };
        let events = header(CONTENT_TYPE).is_some_and(|kind| kind.starts_with("text/event-stream"));
        let retry_after = header(RETRY_AFTER)
            .and_then(|seconds| seconds.parse().ok())
            .map(Duration::from_secs);
        Self {
            status: response.status().as_u16(),
            events,
            retry_after,
            response,
        }
    }

    pub(crate) fn is_success(&self) -> bool {
        StatusCode::from_u16(self.status).is_ok_and(|status| status.is_success())
    }
}

/// What is wrong is said without the URL, which may hold a password.
fn base(text: &str) -> Result<Url, Error> {
    let wrong = |what: &str| Error::new(ErrorKind::Config, format!("the base URL {what}"));
    let mut url = Url::parse(text).map_err(|error| wrong(&format!("cannot be used: {error}")))?;
    if !matches!(url.scheme(), "https" | "http") || url.host_str().is_none_or(str::is_empty) {
        return Err(wrong("must begin with https:// or http://"));
    }
    if url.query().is_some()
        || url.fragment().is_some()
        || !url.username().is_empty()
        || url.password().is_some()
    {
        return Err(wrong("may hold nothing but scheme, host, port and path"));
    }
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(if path.is_empty() { VERSION } else { &path });
    Ok(url)
}

/// A proxy of a kind that reqwest knows: one of another kind it would leave out without a word, and
/// requests would go directly.
fn proxy(text: &str) -> Option<Proxy> {
    let url = if text.contains("://") {
        Url::parse(text)
    } else {
        // As curl reads it.
        Url::parse(&format!("http://{text}"))
    };
    let known = ["http", "https", "socks5", "socks5h"];
    let url = url
        .ok()
        .filter(|url| known.contains(&url.scheme()) && url.has_host())?;
    Proxy::all(url).ok()
}

/// rustls on ring, which builds with a C compiler alone.
///
/// Trust is the machine's own, so that a company's proxy that opens TLS works; a machine without
/// any roots, such as a bare container, gets Mozilla's.
fn tls() -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?;
    let builder = if let Ok(verifier) = Verifier::new(provider) {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
    } else {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
        builder.with_root_certificates(roots)
    };
    Ok(builder.with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_is_checked_and_completed() {
        let table = [
            (
                "https://generativelanguage.googleapis.com",
                "https://generativelanguage.googleapis.com/v1beta",
            ),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/v1beta"),
            (
                "https://proxy.example/gemini/v1/",
                "https://proxy.example/gemini/v1",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(base(text).unwrap().as_str(), expected);
        }
        for text in [
            "",
            "generativelanguage.googleapis.com",
            "ftp://h/",
            "file:///etc",
            "https://user:hunter2@h/",
            "https://h/?key=hunter2",
            "https://h/#hunter2",
        ] {
            let error = base(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config, "{text}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }
}
