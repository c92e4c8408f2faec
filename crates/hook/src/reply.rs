//! What a hook wants of its host, and the envelope that the host takes for it.

use serde_json::{Map, Value, json};

use crate::accepts::{Part, accepts};
use crate::error::{Error, ErrorKind};
use crate::host::Host;
use crate::input::Input;

/// An answer to a permission question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Permission {
    /// Go ahead without asking.
    Allow,
    /// Do not.
    Deny,
    /// Let the user decide. Not an answer to Claude Code's and Codex's `PermissionRequest`.
    Ask,
}

impl Permission {
    fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Ask => "ask",
        }
    }
}

/// What a hook wants. An empty reply is silence, which every host takes as consent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    context: Option<String>,
    extra: Map<String, Value>,
    system_message: Option<String>,
    halt: Option<String>,
    block: Option<String>,
    permission: Option<(Permission, Option<String>)>,
    updated_input: Option<Value>,
    updated_output: Option<Value>,
    updated_mcp_output: Option<Value>,
    instructions: Option<String>,
    updated_request: Option<Value>,
}

impl Reply {
    /// Silence.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds text for the model. Keep it short and stable: it becomes part of the conversation.
    #[must_use]
    pub fn context(mut self, text: impl Into<String>) -> Self {
        self.context = Some(text.into());
        self
    }

    /// Adds a text under a key of one's own beside the context. It is left out, without an error,
    /// where the host has closed schemas.
    #[must_use]
    pub fn extra(mut self, key: &str, text: &str) -> Self {
        self.extra.insert(key.to_owned(), text.into());
        self
    }

    /// Adds text for the user.
    #[must_use]
    pub fn system_message(mut self, text: impl Into<String>) -> Self {
        self.system_message = Some(text.into());
        self
    }

    /// Ends the run. The reason is for the user.
    #[must_use]
    pub fn halt(mut self, reason: impl Into<String>) -> Self {
        self.halt = Some(reason.into());
        self
    }

    /// Refuses the prompt, the tool call, its result, the compaction or the end of the turn. The
    /// reason is for the model.
    #[must_use]
    pub fn block(mut self, reason: impl Into<String>) -> Self {
        self.block = Some(reason.into());
        self
    }

    /// Answers a permission question.
    #[must_use]
    pub fn permission(mut self, answer: Permission, reason: Option<String>) -> Self {
        self.permission = Some((answer, reason));
        self
    }

    /// Replaces the arguments of a tool that is about to run; JSON text of an object.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnObject`] when the text is not JSON.
    pub fn updated_input(mut self, json: &str) -> Result<Self, Error> {
        self.updated_input = Some(value(json)?);
        Ok(self)
    }

    /// Replaces the result of a tool; JSON text in the shape that the tool itself answers in.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnObject`] when the text is not JSON.
    pub fn updated_output(mut self, json: &str) -> Result<Self, Error> {
        self.updated_output = Some(value(json)?);
        Ok(self)
    }

    /// Replaces the result of an MCP server's tool; JSON text.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnObject`] when the text is not JSON.
    pub fn updated_mcp_output(mut self, json: &str) -> Result<Self, Error> {
        self.updated_mcp_output = Some(value(json)?);
        Ok(self)
    }

    /// Adds to the instructions of a compaction. Claude Code takes this as plain text, so it goes
    /// with no other part.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// Replaces the request that is about to go to the model; JSON text of Gemini CLI's
    /// `llm_request`.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnObject`] when the text is not JSON.
    pub fn updated_request(mut self, json: &str) -> Result<Self, Error> {
        self.updated_request = Some(value(json)?);
        Ok(self)
    }

    /// Whether the reply wants nothing.
    pub fn is_silent(&self) -> bool {
        self.parts().is_empty()
    }

    /// The text for standard output: one JSON object on one line, plain instructions, or nothing.
    ///
    /// # Errors
    /// [`ErrorKind::NotAccepted`] when the host would refuse or ignore a part of the reply. A
    /// hook that must not break its host writes nothing then.
    pub fn encode(&self, input: &Input) -> Result<String, Error> {
        self.encode_for(input.host, input.event_name().unwrap_or_default())
    }

    /// The same for a host and the host's name of an event.
    ///
    /// # Errors
    /// As [`Reply::encode`].
    pub fn encode_for(&self, host: Host, event: &str) -> Result<String, Error> {
        let accepted = accepts(host, event);
        let parts = self.parts();
        if let Some(part) = parts.iter().find(|part| !accepted.contains(part)) {
            return Err(refused(host, event, &format!("{part:?}")));
        }
        if let Some(text) = &self.instructions {
            return if parts.len() == 1 {
                Ok(text.clone())
            } else {
                Err(refused(host, event, "instructions beside other parts"))
            };
        }
        if parts.is_empty() {
            return Ok(String::new());
        }
        let mut envelope = Map::new();
        self.common(&mut envelope, host);
        let mut specific = self.specific(&mut envelope, host, event)?;
        if !specific.is_empty() {
            if self.context.is_some() && accepted.contains(&Part::Extra) {
                specific.extend(self.extra.clone());
            }
            let mut named = Map::from_iter([("hookEventName".to_owned(), json!(event))]);
            named.extend(specific);
            envelope.insert("hookSpecificOutput".into(), named.into());
        }
        Ok(Value::Object(envelope).to_string())
    }

    fn common(&self, envelope: &mut Map<String, Value>, host: Host) {
        if let Some(text) = &self.system_message {
            envelope.insert("systemMessage".into(), json!(text));
        }
        if let Some(reason) = &self.halt {
            envelope.insert("continue".into(), json!(false));
            envelope.insert("stopReason".into(), json!(reason));
        }
        if let Some(reason) = &self.block {
            let word = if host == Host::Gemini {
                "deny"
            } else {
                "block"
            };
            envelope.insert("decision".into(), json!(word));
            envelope.insert("reason".into(), json!(reason));
        }
    }

    /// The members of `hookSpecificOutput`. Gemini CLI's permission goes into the envelope.
    fn specific(
        &self,
        envelope: &mut Map<String, Value>,
        host: Host,
        event: &str,
    ) -> Result<Map<String, Value>, Error> {
        let mut specific = Map::new();
        let asks = event == "PermissionRequest";
        if let Some((answer, reason)) = &self.permission {
            if host == Host::Gemini {
                envelope.insert("decision".into(), json!(answer.word()));
                insert(envelope, "reason", reason.as_ref());
            } else if asks {
                if *answer == Permission::Ask {
                    return Err(refused(host, event, "the answer \"ask\""));
                }
                let mut decision = Map::new();
                decision.insert("behavior".into(), json!(answer.word()));
                if *answer == Permission::Allow {
                    insert(&mut decision, "updatedInput", self.updated_input.as_ref());
                } else {
                    insert(&mut decision, "message", reason.as_ref());
                }
                specific.insert("decision".into(), decision.into());
            } else {
                specific.insert("permissionDecision".into(), json!(answer.word()));
                insert(&mut specific, "permissionDecisionReason", reason.as_ref());
            }
        }
        if !asks {
            let key = if host == Host::Gemini {
                "tool_input"
            } else {
                "updatedInput"
            };
            insert(&mut specific, key, self.updated_input.as_ref());
        } else if self.updated_input.is_some() && self.permission.is_none() {
            return Err(refused(host, event, "other arguments without leave to run"));
        }
        insert(&mut specific, "additionalContext", self.context.as_ref());
        insert(
            &mut specific,
            "updatedToolOutput",
            self.updated_output.as_ref(),
        );
        insert(
            &mut specific,
            "updatedMCPToolOutput",
            self.updated_mcp_output.as_ref(),
        );
        insert(&mut specific, "llm_request", self.updated_request.as_ref());
        Ok(specific)
    }

    /// The parts that the reply has; `Extra` is optional by nature and not among them.
    fn parts(&self) -> Vec<Part> {
        [
            (self.context.is_some(), Part::Context),
            (self.system_message.is_some(), Part::SystemMessage),
            (self.halt.is_some(), Part::Halt),
            (self.block.is_some(), Part::Block),
            (self.permission.is_some(), Part::Permission),
            (self.updated_input.is_some(), Part::UpdatedInput),
            (self.updated_output.is_some(), Part::UpdatedOutput),
            (self.updated_mcp_output.is_some(), Part::UpdatedMcpOutput),
            (self.instructions.is_some(), Part::Instructions),
            (self.updated_request.is_some(), Part::UpdatedRequest),
        ]
        .into_iter()
        .filter_map(|(wanted, part)| wanted.then_some(part))
        .collect()
    }
}

fn insert<T: Clone + Into<Value>>(map: &mut Map<String, Value>, key: &str, value: Option<&T>) {
    if let Some(value) = value {
        map.insert(key.to_owned(), value.clone().into());
    }
}

fn value(json: &str) -> Result<Value, Error> {
    serde_json::from_str(json)
        .map_err(|e| Error::new(ErrorKind::NotAnObject, format!("not JSON: {e}")))
}

fn refused(host: Host, event: &str, what: &str) -> Error {
    Error::new(
        ErrorKind::NotAccepted,
        format!("{host} does not accept {what} for {event:?}"),
    )
}
