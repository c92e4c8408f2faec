//! One hook call: the fields that all events have, the event, and the whole payload.

use crate::error::Error;
use crate::event::Event;
use crate::host::Host;
use crate::json::Payload;

/// The name of an event, or what stands in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Name {
    /// The host's word, without surrounding white space.
    Known(String),
    /// There is none, or it is empty.
    Missing,
    /// It is not a string.
    Malformed,
}

/// One hook call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Input {
    /// Who calls.
    pub host: Host,
    /// The host's own word for the event.
    pub name: Name,
    /// What happened.
    pub event: Event,
    /// The conversation's id; on Codex the thread's.
    pub session_id: Option<String>,
    /// The file of the conversation. It need not exist yet.
    pub transcript_path: Option<String>,
    /// The folder in which the agent works.
    pub cwd: Option<String>,
    /// The sub-agent in which the event happened; `None` in the main conversation. The session
    /// id is the main conversation's in either case.
    pub agent_id: Option<String>,
    /// The model, where the host names it.
    pub model: Option<String>,
    /// Everything that the host sent.
    pub payload: Payload,
}

impl Input {
    /// Reads a hook's standard input.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnObject`](crate::ErrorKind::NotAnObject) when the text is no JSON object.
    /// Missing fields, unknown events and fields of a wrong type are no errors.
    pub fn parse(host: Host, text: &str) -> Result<Self, Error> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let payload = Payload::parse(text)?;
        let name = match payload.raw("hook_event_name") {
            None => Name::Missing,
            Some(raw) if raw.text() == "null" => Name::Missing,
            Some(raw) => match raw.string() {
                None => Name::Malformed,
                Some(name) if name.trim().is_empty() => Name::Missing,
                Some(name) => Name::Known(name.trim().to_owned()),
            },
        };
        let text_of = |member| payload.string(member).filter(|text| !text.is_empty());
        let mut input = Self {
            host,
            name,
            event: Event::Other,
            session_id: text_of("session_id"),
            transcript_path: text_of("transcript_path"),
            cwd: text_of("cwd"),
            agent_id: text_of("agent_id"),
            model: text_of("model"),
            payload,
        };
        input.read_event();
        Ok(input)
    }

    /// The same call with a name for its event, if it has none. An old host that sends no
    /// `hook_event_name` is told apart by the command line or the environment.
    #[must_use]
    pub fn with_default_name(mut self, name: &str) -> Self {
        if self.name == Name::Missing {
            self.name = Name::Known(name.to_owned());
            self.read_event();
        }
        self
    }

    /// The same call in another host's dialect.
    #[must_use]
    pub fn with_host(mut self, host: Host) -> Self {
        self.host = host;
        self.read_event();
        self
    }

    /// The host's own word for the event, when there is one.
    pub fn event_name(&self) -> Option<&str> {
        match &self.name {
            Name::Known(name) => Some(name),
            Name::Missing | Name::Malformed => None,
        }
    }

    fn read_event(&mut self) {
        if let Name::Known(name) = &self.name {
            self.event = Event::read(self.host, name, &self.payload);
        }
    }
}
