//! How a client is set up.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::client::Client;
use crate::clock::{Clock, TokioClock};
use crate::error::Error;
use crate::exchange::Exchange;
use crate::key::Keys;
use crate::ring::Ring;
use crate::scrub::Scrubber;
use crate::transport::{Settings, Transport};

/// Sets up a [`Client`]; made by [`Client::builder`].
///
/// Nothing is read from the environment: proxies and keys are the caller's to find.
#[derive(Clone)]
#[must_use]
pub struct ClientBuilder {
    keys: Keys,
    settings: Settings,
    idle: Duration,
    deadline: Duration,
}

impl ClientBuilder {
    pub(crate) fn new(keys: Keys) -> Self {
        Self {
            keys,
            settings: Settings {
                base_url: "https://generativelanguage.googleapis.com".to_owned(),
                user_agent: concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"))
                    .to_owned(),
                proxy: None,
                no_proxy: None,
                connect_timeout: Duration::from_secs(10),
            },
            idle: Duration::from_mins(1),
            deadline: Duration::from_mins(1),
        }
    }

    /// Where the API is. Default: Google's own. A URL without a path gets `/v1beta`.
    ///
    /// The key is sent there, so plain `http` is for the own machine only.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.settings.base_url = url.into();
        self
    }

    /// The `User-Agent` header. Default: this crate's name and version.
    pub fn user_agent(mut self, name: impl Into<String>) -> Self {
        self.settings.user_agent = name.into();
        self
    }

    /// A proxy for all requests, as `http://`, `https://`, `socks5://` or `socks5h://` URL; without
    /// a scheme it is `http`. Default: none.
    pub fn proxy(mut self, url: impl Into<String>) -> Self {
        self.settings.proxy = Some(url.into());
        self
    }

    /// Hosts that are reached without the proxy, in the form of the `NO_PROXY` variable.
    pub fn no_proxy(mut self, hosts: impl Into<String>) -> Self {
        self.settings.no_proxy = Some(hosts.into());
        self
    }

    /// The longest time for a connection, TLS included. Default: 10 s.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.settings.connect_timeout = limit;
        self
    }

    /// The longest silence once a reply has begun. Default: 60 s.
    ///
    /// Before that the server is silent for as long as the model reads and thinks, which only the
    /// deadline limits.
    pub fn idle_timeout(mut self, limit: Duration) -> Self {
        self.idle = limit;
        self
    }

    /// The longest time for a call with all its attempts and waits. No attempt begins past it, and
    /// one that is under way is cut off. Waiting for another request on the same key counts.
    /// Default: 60 s; long summaries need more.
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.deadline = limit;
        self
    }

    /// Makes the client. No connection is opened yet.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) when base URL, proxy or user agent cannot be
    /// used.
    pub fn build(self) -> Result<Client, Error> {
        let transport = Transport::new(&self.settings)?;
        Ok(self.build_with(transport, Arc::new(TokioClock::new())))
    }

    #[cfg(test)]
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn build_with(self, transport: Transport, clock: Arc<dyn Clock>) -> Client {
        Client::of(Exchange {
            transport,
            scrub: Scrubber::new(&self.keys),
            ring: Ring::new(self.keys),
            clock,
            deadline: self.deadline,
            idle: self.idle,
            refused: Mutex::new(HashSet::new()),
        })
    }
}

impl fmt::Debug for ClientBuilder {
    /// Without the proxy, whose URL may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("keys", &self.keys)
            .field("deadline", &self.deadline)
            .field("idle_timeout", &self.idle)
            .finish_non_exhaustive()
    }
}
