//! What happened, in words that fit every host.
//!
//! An event of one host and its twin on another are the same variant: Claude Code's `PostToolUse`
//! and Gemini CLI's `AfterTool` are both [`Event::AfterTool`]. The host's own word is in
//! [`Input::name`](crate::Input::name).

use crate::host::Host;
use crate::json::{Payload, Raw};

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A conversation begins, goes on, or was compacted.
    SessionStart(SessionStart),
    /// A conversation ends. Hosts cut this hook short: be quick.
    SessionEnd(SessionEnd),
    /// The user sent a prompt, which is the text.
    Prompt(String),
    /// A tool is about to run.
    BeforeTool(Tool),
    /// A tool has run.
    AfterTool(ToolCall),
    /// A tool has failed.
    ToolFailed(ToolFailure),
    /// All calls of one assistant message have run.
    ToolBatch(Vec<ToolCall>),
    /// The host is about to ask the user for leave to run a tool.
    PermissionRequest(Tool),
    /// The conversation is about to be compacted.
    BeforeCompaction(Compaction),
    /// The conversation was compacted.
    AfterCompaction(Compaction),
    /// A request is about to go to the model.
    BeforeModel(ModelCall),
    /// The model has answered a request.
    AfterModel(ModelCall),
    /// A sub-agent begins.
    SubagentStart(Subagent),
    /// A sub-agent ends.
    SubagentStop(Subagent),
    /// The turn ends.
    Stop(Stop),
    /// The user cut the turn short.
    Interrupt,
    /// The host tells the user something, which is the text where there is one.
    Notification(Option<String>),
    /// An event that this crate has no type for. Its fields are in the payload.
    Other,
}

/// A conversation begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionStart {
    /// Why: `startup`, `resume`, `clear` or `compact`.
    pub source: Option<String>,
}

/// A conversation ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionEnd {
    /// Why, in the host's words.
    pub reason: Option<String>,
}

/// A tool and what it is called with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tool {
    /// The host's name of the tool: `Bash`, `run_shell_command`, `mcp__server__tool`.
    pub name: String,
    /// The arguments.
    pub input: Option<Raw>,
    /// The call's id, where the host gives one.
    pub use_id: Option<String>,
}

impl Tool {
    /// The argument of that name, when it is a string.
    pub fn argument(&self, name: &str) -> Option<String> {
        self.input.as_ref()?.member(name)?.string()
    }

    /// Whether the tool belongs to an MCP server.
    pub fn is_mcp(&self) -> bool {
        self.name.starts_with("mcp__") || self.name.starts_with("mcp_")
    }
}

/// A tool call with its result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolCall {
    /// The tool.
    pub tool: Tool,
    /// The result, in the shape of the host and tool: an object on Claude Code and Gemini CLI,
    /// a string on Codex.
    pub response: Option<Raw>,
    /// How long the tool ran, in milliseconds.
    pub duration_ms: Option<u64>,
}

/// A tool call that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolFailure {
    /// The tool.
    pub tool: Tool,
    /// What the model is told.
    pub error: Option<String>,
    /// Whether the user interrupted it.
    pub interrupted: bool,
}

/// A compaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compaction {
    /// Who asked for it: `manual` or `auto`.
    pub trigger: Option<String>,
    /// What the user wants to be kept in mind (before).
    pub instructions: Option<String>,
    /// The summary (after); empty when another program compacted.
    pub summary: Option<String>,
}

/// A request to the model or its answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelCall {
    /// Why the host asks the model: Codex says `sampling` or `foreground_compaction`.
    pub kind: Option<String>,
    /// The request, where the host shows it (Gemini CLI).
    pub request: Option<Raw>,
    /// The answer, where the host shows it (Gemini CLI).
    pub response: Option<Raw>,
    /// Token counts of the answer, where the host shows them (Codex).
    pub usage: Option<Raw>,
}

/// A sub-agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Subagent {
    /// What kind of agent it is.
    pub kind: Option<String>,
    /// Its transcript (at its end).
    pub transcript_path: Option<String>,
    /// Its last message (at its end).
    pub last_message: Option<String>,
}

/// The end of a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stop {
    /// Whether the turn goes on only because a hook of this event asked for it.
    pub hook_active: bool,
    /// The assistant's last message.
    pub last_message: Option<String>,
}

impl Event {
    /// Reads the event of that name from its payload.
    pub(crate) fn read(host: Host, name: &str, p: &Payload) -> Self {
        match name {
            "SessionStart" => Self::SessionStart(SessionStart {
                source: p.string("source"),
            }),
            "SessionEnd" => Self::SessionEnd(SessionEnd {
                reason: p.string("reason"),
            }),
            "UserPromptSubmit" | "BeforeAgent" => {
                Self::Prompt(p.string("prompt").unwrap_or_default())
            }
            "PreToolUse" | "BeforeTool" => Self::BeforeTool(tool(p)),
            "PostToolUse" | "AfterTool" => Self::AfterTool(call(p)),
            "PostToolUseFailure" => Self::ToolFailed(ToolFailure {
                tool: tool(p),
                error: p.string("error"),
                interrupted: p.decode("is_interrupt").unwrap_or_default(),
            }),
            "PostToolBatch" => Self::ToolBatch(batch(p)),
            "PermissionRequest" => Self::PermissionRequest(tool(p)),
            "PreCompact" | "PreCompress" => Self::BeforeCompaction(compaction(p)),
            "PostCompact" => Self::AfterCompaction(compaction(p)),
            "BeforeModel" | "PreModelRequest" => Self::BeforeModel(model_call(p)),
            "AfterModel" | "PostModelRequest" => Self::AfterModel(model_call(p)),
            "PreInvocation" if host == Host::Antigravity => Self::BeforeModel(model_call(p)),
            "PostInvocation" if host == Host::Antigravity => Self::AfterModel(model_call(p)),
            "SubagentStart" => Self::SubagentStart(subagent(p)),
            "SubagentStop" => Self::SubagentStop(subagent(p)),
            "Stop" | "AfterAgent" => Self::Stop(Stop {
                hook_active: p.decode("stop_hook_active").unwrap_or_default(),
                last_message: p
                    .string("last_assistant_message")
                    .or_else(|| p.string("prompt_response")),
            }),
            "Interrupt" => Self::Interrupt,
            "Notification" => Self::Notification(p.string("message")),
            _ => Self::Other,
        }
    }
}

fn tool(p: &Payload) -> Tool {
    Tool {
        name: p.string("tool_name").unwrap_or_default(),
        input: p.raw("tool_input").cloned(),
        use_id: p.string("tool_use_id"),
    }
}

fn call(p: &Payload) -> ToolCall {
    ToolCall {
        tool: tool(p),
        response: p.raw("tool_response").cloned(),
        duration_ms: p.decode("duration_ms"),
    }
}

fn batch(p: &Payload) -> Vec<ToolCall> {
    let calls = p.raw("tool_calls").and_then(Raw::items).unwrap_or_default();
    calls
        .iter()
        .filter_map(|c| Payload::parse(c.text()).ok())
        .map(|c| call(&c))
        .collect()
}

fn compaction(p: &Payload) -> Compaction {
    Compaction {
        trigger: p.string("trigger"),
        instructions: p.string("custom_instructions"),
        summary: p.string("compact_summary"),
    }
}

fn model_call(p: &Payload) -> ModelCall {
    ModelCall {
        kind: p.string("kind"),
        request: p.raw("llm_request").cloned(),
        response: p.raw("llm_response").cloned(),
        usage: p.raw("token_usage").cloned(),
    }
}

fn subagent(p: &Payload) -> Subagent {
    Subagent {
        kind: p.string("agent_type"),
        transcript_path: p.string("agent_transcript_path"),
        last_message: p.string("last_assistant_message"),
    }
}
