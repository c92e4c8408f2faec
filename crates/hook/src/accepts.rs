//! What each host accepts as the output of each event.
//!
//! Codex's rows are its output schemas, which are closed. Claude Code's are its schema of 2.1.332;
//! Gemini CLI's are what 0.61 reads. Antigravity's were not checked against the program and hold
//! only what is needed to add context.

use crate::host::Host;

/// A part of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Part {
    /// Text for the model: `additionalContext`.
    Context,
    /// Keys of one's own beside it.
    Extra,
    /// Text for the user: `systemMessage`.
    SystemMessage,
    /// End the run: `continue: false` with a reason.
    Halt,
    /// Refuse what happened, with a reason for the model.
    Block,
    /// Allow, deny or ask.
    Permission,
    /// Other arguments for the tool.
    UpdatedInput,
    /// Another result of the tool.
    UpdatedOutput,
    /// Another result, for tools of MCP servers only.
    UpdatedMcpOutput,
    /// Plain text that is added to the instructions of a compaction.
    Instructions,
    /// Another request to the model.
    UpdatedRequest,
}

use Part::{
    Block, Context, Extra, Halt, Instructions, Permission, SystemMessage, UpdatedInput,
    UpdatedMcpOutput, UpdatedOutput, UpdatedRequest,
};

type Row = (&'static str, &'static [Part]);

const CLAUDE: &[Row] = &[
    (
        "PreToolUse",
        &[
            Context,
            Extra,
            SystemMessage,
            Halt,
            Block,
            Permission,
            UpdatedInput,
        ],
    ),
    (
        "PostToolUse",
        &[
            Context,
            Extra,
            SystemMessage,
            Halt,
            Block,
            UpdatedOutput,
            UpdatedMcpOutput,
        ],
    ),
    ("PostToolUseFailure", &[Context, Extra, SystemMessage, Halt]),
    (
        "PostToolBatch",
        &[Context, Extra, SystemMessage, Halt, Block],
    ),
    (
        "PermissionRequest",
        &[SystemMessage, Permission, UpdatedInput],
    ),
    ("PermissionDenied", &[SystemMessage]),
    (
        "UserPromptSubmit",
        &[Context, Extra, SystemMessage, Halt, Block],
    ),
    (
        "UserPromptExpansion",
        &[Context, Extra, SystemMessage, Halt, Block],
    ),
    ("SessionStart", &[Context, Extra, SystemMessage]),
    ("SessionEnd", &[]),
    ("Setup", &[Context, Extra, SystemMessage]),
    ("Stop", &[Context, Extra, SystemMessage, Halt, Block]),
    ("StopFailure", &[]),
    ("SubagentStart", &[Context, Extra, SystemMessage]),
    (
        "SubagentStop",
        &[Context, Extra, SystemMessage, Halt, Block],
    ),
    ("PreCompact", &[SystemMessage, Block, Instructions]),
    ("PostCompact", &[SystemMessage]),
    ("PreModelSwitch", &[SystemMessage]),
    ("PostModelSwitch", &[Context, SystemMessage]),
    ("Notification", &[Context, SystemMessage]),
    ("TeammateIdle", &[]),
    ("TaskCreated", &[]),
    ("TaskCompleted", &[]),
    ("Elicitation", &[]),
    ("ElicitationResult", &[]),
    ("ConfigChange", &[]),
    ("WorktreeCreate", &[]),
    ("WorktreeRemove", &[]),
    ("InstructionsLoaded", &[]),
    ("CwdChanged", &[]),
    ("FileChanged", &[]),
    ("DirectoryAdded", &[]),
    ("MessageDisplay", &[]),
    ("PreSkillShellCommand", &[]),
];

const CODEX: &[Row] = &[
    (
        "PreToolUse",
        &[
            Context,
            SystemMessage,
            Halt,
            Block,
            Permission,
            UpdatedInput,
        ],
    ),
    (
        "PostToolUse",
        &[Context, SystemMessage, Halt, Block, UpdatedMcpOutput],
    ),
    (
        "PermissionRequest",
        &[SystemMessage, Halt, Permission, UpdatedInput],
    ),
    ("UserPromptSubmit", &[Context, SystemMessage, Halt, Block]),
    ("SessionStart", &[Context, SystemMessage, Halt]),
    ("SessionEnd", &[]),
    ("SubagentStart", &[Context, SystemMessage, Halt]),
    ("SubagentStop", &[SystemMessage, Halt, Block]),
    ("Stop", &[SystemMessage, Halt, Block]),
    ("PreCompact", &[SystemMessage, Halt]),
    ("PostCompact", &[SystemMessage, Halt]),
    ("Interrupt", &[SystemMessage]),
    ("PreModelRequest", &[]),
    ("PostModelRequest", &[]),
];

const GEMINI: &[Row] = &[
    ("SessionStart", &[Context, Extra, SystemMessage]),
    ("SessionEnd", &[SystemMessage]),
    ("BeforeAgent", &[Context, Extra, SystemMessage, Halt, Block]),
    ("AfterAgent", &[SystemMessage, Halt, Block]),
    ("BeforeModel", &[SystemMessage, Halt, Block, UpdatedRequest]),
    ("AfterModel", &[SystemMessage, Halt, Block]),
    ("BeforeToolSelection", &[SystemMessage]),
    (
        "BeforeTool",
        &[SystemMessage, Halt, Block, Permission, UpdatedInput],
    ),
    ("AfterTool", &[Context, Extra, SystemMessage, Halt, Block]),
    ("PreCompress", &[SystemMessage]),
    ("Notification", &[SystemMessage]),
];

const ANTIGRAVITY: &[Row] = &[
    ("SessionStart", &[Context]),
    ("PreToolUse", &[]),
    ("PostToolUse", &[Context, Extra]),
    ("BeforeTool", &[]),
    ("AfterTool", &[Context, Extra]),
    ("PreInvocation", &[]),
    ("PostInvocation", &[]),
    ("Stop", &[]),
];

fn table(host: Host) -> &'static [Row] {
    match host {
        Host::Claude => CLAUDE,
        Host::Codex => CODEX,
        Host::Gemini => GEMINI,
        Host::Antigravity => ANTIGRAVITY,
    }
}

/// The parts that a host accepts as the output of an event; none for an event not in its table.
///
/// ```
/// use ctxfold_hook::{Host, Part, accepts};
/// assert!(accepts(Host::Claude, "PostToolUse").contains(&Part::UpdatedOutput));
/// assert!(!accepts(Host::Codex, "PostToolUse").contains(&Part::UpdatedOutput));
/// ```
pub fn accepts(host: Host, event: &str) -> &'static [Part] {
    table(host)
        .iter()
        .find(|(name, _)| *name == event)
        .map_or(&[], |(_, parts)| parts)
}

/// The events of a host, by its own names.
pub fn events(host: Host) -> impl Iterator<Item = &'static str> {
    table(host).iter().map(|(name, _)| *name)
}
