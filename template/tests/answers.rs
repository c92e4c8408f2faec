//! Recorded inputs of each host, and what the plugin answers.

use ctxfold_hook::Host;

use {{crate_name}}::answer;

/// An input as the host writes it. Record another by putting `tee FILE` before the program.
fn recorded(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/inputs");
    std::fs::read_to_string(format!("{folder}/{name}.json")).expect("the input is there")
}
{% for host in hosts %}
{%- assign Host = host | capitalize %}
{%- for event in events %}
#[test]
fn {{host}}_{{event}}() {
    let reply = answer(Host::{{Host}}, &recorded("{{host}}-{{event}}")).expect("it is accepted");
{%- if event == "tool" %}
    assert!(reply.contains("run `cargo test` as well"), "{reply}");
{%- elsif event == "prompt" %}
    assert!(reply.contains("CONTRIBUTING.md"), "{reply}");
{%- elsif event == "start" %}
    assert!(reply.contains("tests run with `cargo test`"), "{reply}");
{%- elsif host == "claude" %}
    assert_eq!(reply, "Keep every path and command as it is.");
{%- else %}
    assert_eq!(reply, "");
{%- endif %}
}
{% endfor %}
{%- endfor %}
#[test]
fn everything_else_is_answered_with_silence() {
    let host = Host::{{hosts | first | capitalize}};
    let reply = answer(host, r#"{"hook_event_name":"SomethingNew"}"#);
    assert_eq!(reply.expect("unknown events are no errors"), "");
    assert!(answer(host, "no JSON").is_err());
}
