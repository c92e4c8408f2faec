//! {{description}}.
//!
//! [`answer`] is the whole plugin: text in, text out. The program around it only reads and writes.

{% if events contains "tool" %}use ctxfold_hook::{Error, Event, Host, Input, Reply, ToolCall};{% else %}use ctxfold_hook::{Error, Event, Host, Input, Reply};{% endif %}

/// Answers one event in the words of the host: JSON, plain text, or nothing.
///
/// # Errors
///
/// When the text is no JSON object, or the host takes no such answer.
pub fn answer(host: Host, text: &str) -> Result<String, Error> {
    let input = Input::parse(host, text)?;
    reply(&input).encode(&input)
}

fn reply(input: &Input) -> Reply {
    match &input.event {
{%- for event in events %}
{%- case event %}
{%- when "tool" %}
        Event::AfterTool(call) => after_tool(call),
{%- when "prompt" %}
        Event::Prompt(text) => prompt(text),
{%- when "start" %}
        Event::SessionStart(_) => session_start(),
{%- when "compact" %}
        Event::BeforeCompaction(_) => before_compaction(input.host),
{%- endcase %}
{%- endfor %}
        _ => Reply::new(),
    }
}
{% for event in events %}
{%- case event %}
{%- when "tool" %}
/// After a build: the tests are next.
fn after_tool(call: &ToolCall) -> Reply {
    match call.tool.argument("command") {
        Some(command) if command.starts_with("cargo build") => {
            Reply::new().context("The build is not the proof: run `cargo test` as well.")
        }
        _ => Reply::new(),
    }
}
{%- when "prompt" %}
/// When the user speaks of a release: where its steps are written down.
fn prompt(text: &str) -> Reply {
    if text.to_lowercase().contains("release") {
        Reply::new().context("The steps of a release are in CONTRIBUTING.md: read them first.")
    } else {
        Reply::new()
    }
}
{%- when "start" %}
/// At the start, and again after a resume or a compaction: what the agent should always know.
fn session_start() -> Reply {
    Reply::new().context("This project's tests run with `cargo test`.")
}
{%- when "compact" %}
/// Before a compaction: what its summary must keep. Only Claude Code takes such a wish.
fn before_compaction(host: Host) -> Reply {
    match host {
        Host::Claude => Reply::new().instructions("Keep every path and command as it is."),
        _ => Reply::new(),
    }
}
{%- endcase %}
{% endfor -%}
