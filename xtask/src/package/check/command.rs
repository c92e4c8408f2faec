//! One command of a hook or an MCP server: its program, its arguments, its options.

use serde_json::Value;

use super::hooks::Host;
use super::{Findings, Part};

/// Where commands stand that are looked at.
pub(super) struct Command<'a> {
    pub(super) part: &'a Part<'a>,
    /// The file as findings name it.
    pub(super) file: String,
    pub(super) host: Host,
    /// The manifest that declares the options.
    pub(super) manifest: &'a Value,
}

impl<'a> Command<'a> {
    pub(super) fn new(part: &'a Part<'a>, path: &str, host: Host, manifest: &'a Value) -> Self {
        Self {
            part,
            file: part.named(path),
            host,
            manifest,
        }
    }

    /// The same in another file of the plugin.
    pub(super) fn of_file(&self, path: &str) -> Self {
        Self::new(self.part, path, self.host, self.manifest)
    }

    pub(super) fn hook(&self, event: &str, hook: &Value, findings: &mut Findings) {
        let command = hook["command"].as_str().unwrap_or_default();
        let whole = hook.to_string();
        self.timeout(event, &hook["timeout"], findings);
        self.declared(event, &whole, findings);
        self.place(event, command, findings);
        if let Some(arguments) = hook.get("args") {
            if self.host != Host::Claude {
                findings.add(
                    &self.file,
                    format!("{event} has args, which only Claude Code reads"),
                    "write one command line with the path in double quotes",
                );
            }
            self.program(event, command, arguments, findings);
            self.optional(event, &whole, findings);
            return;
        }
        if whole.contains("${user_config.") {
            findings.add(
                &self.file,
                format!("{event} puts an option into a shell's command line"),
                "read CLAUDE_PLUGIN_OPTION_NAME in the program",
            );
        }
        let command = command.replace("${/}", "/");
        for root in self.host.roots() {
            if outside_quotes(&command, root) {
                findings.add(
                    &self.file,
                    format!("{event} has {root} without quotes: {command}"),
                    "put the path in double quotes: folders have spaces in their names",
                );
            }
            let runs = command.trim_start_matches(['"', '\'']).starts_with(root);
            for (index, path) in words(&command, root).enumerate() {
                self.exists(event, &path, runs && index == 0, findings);
            }
        }
    }

    pub(super) fn server(&self, name: &str, server: &Value, findings: &mut Findings) {
        let command = server["command"].as_str().unwrap_or_default();
        self.declared(name, &server.to_string(), findings);
        self.place(name, command, findings);
        self.program(name, command, &server["args"], findings);
    }

    /// A program that is started without a shell, and what it gets.
    fn program(&self, place: &str, command: &str, arguments: &Value, findings: &mut Findings) {
        if command.chars().any(char::is_whitespace) {
            findings.add(
                &self.file,
                format!("{place} starts a program with a space in its name: {command:?}"),
                "leave the program alone in command and move the words to args",
            );
        }
        let program = command.split_whitespace().next().unwrap_or_default();
        for root in self.host.roots() {
            for path in after(&program.replace("${/}", "/"), root) {
                self.exists(place, path, true, findings);
            }
            let texts = arguments.as_array().into_iter().flatten();
            for text in texts.filter_map(Value::as_str) {
                let text = text.replace("${/}", "/");
                // An argument is taken as it stands, but it may be a line for a shell.
                for (path, word) in after(&text, root).zip(words(&text, root)) {
                    if self.part.tree.find(path).is_none() {
                        self.exists(place, &word, false, findings);
                    }
                }
            }
        }
    }

    fn timeout(&self, event: &str, timeout: &Value, findings: &mut Findings) {
        let Some(timeout) = timeout.as_u64() else {
            return;
        };
        if self.host == Host::Gemini && timeout < 1000 {
            findings.add(
                &self.file,
                format!("{event} has a timeout of {timeout}, and Gemini CLI counts milliseconds"),
                format!("write {}", timeout * 1000),
            );
        }
        if self.host != Host::Gemini && timeout > 600 {
            findings.add(
                &self.file,
                format!("{event} has a timeout of {timeout}, and the host counts seconds"),
                "write the seconds, 600 at most",
            );
        }
    }

    /// Where the program lies: in the plugin, or on the search path.
    fn place(&self, place: &str, command: &str, findings: &mut Findings) {
        let first = command.trim_start_matches(['"', '\'']);
        if first.starts_with("./") || first.starts_with("../") || first.starts_with("bin/") {
            findings.add(
                &self.file,
                format!(
                    "{place} has the relative path {first}, and hooks run in the user's folder"
                ),
                format!(
                    "start it with {}/",
                    self.host.roots().first().unwrap_or(&"an installed name")
                ),
            );
        }
        if ["/home/", "/Users/", concat!("/ro", "ot/"), "C:\\"]
            .iter()
            .any(|p| command.contains(p))
        {
            findings.add(
                &self.file,
                format!("{place} has a path of one machine: {command}"),
                "name the plugin's own folder by its placeholder",
            );
        }
    }

    /// A file or folder of the plugin that a command names.
    fn exists(&self, place: &str, path: &str, runs: bool, findings: &mut Findings) {
        let verb = if runs { "runs" } else { "names" };
        match self.part.tree.find(path) {
            Some(entry) if runs && !entry.is_executable => findings.add(
                &self.part.named(path),
                "can't be run",
                format!("chmod 755 {path}"),
            ),
            None if runs || !self.part.tree.has_folder(path) => findings.add(
                &self.file,
                format!("{place} {verb} {path:?}, which is not in the plugin"),
                "add the file or correct the path",
            ),
            _ => {}
        }
    }

    fn declared(&self, place: &str, text: &str, findings: &mut Findings) {
        for key in options(text) {
            if self.manifest["userConfig"].get(key).is_none() {
                findings.add(
                    &self.file,
                    format!("{place} asks for the option {key}, which is not declared"),
                    "declare it in plugin.json's userConfig",
                );
            }
        }
    }

    /// A hook that names an option without a value fails.
    fn optional(&self, place: &str, text: &str, findings: &mut Findings) {
        for key in options(text) {
            let option = &self.manifest["userConfig"][key];
            if option.is_object() && option["required"] != true && option.get("default").is_none() {
                findings.add(
                    &self.file,
                    format!("{place} fails while the option {key} has no value"),
                    "read CLAUDE_PLUGIN_OPTION_NAME in the program, or give the option a default",
                );
            }
        }
    }
}

/// The names in `${user_config.NAME}`.
fn options(text: &str) -> impl Iterator<Item = &str> {
    let after = text.split("${user_config.").skip(1);
    after.filter_map(|rest| Some(rest.split_once('}')?.0))
}

/// Whether a shell would split what stands for `root`.
fn outside_quotes(command: &str, root: &str) -> bool {
    command
        .match_indices(root)
        .any(|(at, _)| !is_quoted(&command[..at]))
}

/// Whether what comes after this part of a command stands in double quotes.
fn is_quoted(before: &str) -> bool {
    !before.matches('"').count().is_multiple_of(2)
}

/// What follows each `root`, to the end.
fn after<'a>(text: &'a str, root: &'a str) -> impl Iterator<Item = &'a str> {
    let places = text.match_indices(root);
    places.map(move |(at, _)| text[at + root.len()..].trim_matches('/'))
}

/// What follows each `root` within the same word of a shell, without the quotes.
fn words<'a>(command: &'a str, root: &'a str) -> impl Iterator<Item = String> {
    let places = command.match_indices(root);
    places.map(move |(at, _)| word(&command[at + root.len()..], is_quoted(&command[..at])))
}

/// The rest of a word, as far as it is known before the shell runs: the folder of what a variable or
/// a pattern stands in.
fn word(rest: &str, mut is_quoted: bool) -> String {
    let mut word = String::new();
    for letter in rest.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '\'' if !is_quoted => {}
            '$' | '`' | '*' | '?' | '[' => {
                word.truncate(word.rfind('/').unwrap_or_default());
                break;
            }
            _ if !is_quoted && (letter.is_whitespace() || ";&|<>():,".contains(letter)) => break,
            _ => word.push(letter),
        }
    }
    word.trim_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "${PLUGIN_ROOT}";

    #[test]
    fn quotes_are_seen() {
        assert!(!outside_quotes("\"${PLUGIN_ROOT}/bin/x\" hook", ROOT));
        assert!(!outside_quotes("\"${PLUGIN_ROOT}\"/bin/x hook", ROOT));
        assert!(!outside_quotes("say \"it's ${PLUGIN_ROOT}\"", ROOT));
        assert!(outside_quotes("${PLUGIN_ROOT}/bin/x", ROOT));
        assert!(outside_quotes("\"sh\" ${PLUGIN_ROOT}/bin/x", ROOT));
    }

    #[test]
    fn words_end_where_a_shell_ends_them() {
        for (command, expected) in [
            ("\"${PLUGIN_ROOT}/bin/x\" hook", "bin/x"),
            ("\"${PLUGIN_ROOT}\"/bin/x hook", "bin/x"),
            ("\"${PLUGIN_ROOT}\"/'bin'/\"x\";y", "bin/x"),
            ("sh -c '\"${PLUGIN_ROOT}/bin/x\"' hook", "bin/x"),
            ("cat <\"${PLUGIN_ROOT}/my file\"|sort", "my file"),
            ("cd \"${PLUGIN_ROOT}\" && ./x", ""),
            ("\"${PLUGIN_ROOT}/bin/$(uname)/x\" hook", "bin"),
            ("ls \"${PLUGIN_ROOT}\"/lib/*.js", "lib"),
            ("PATH=\"${PLUGIN_ROOT}\"/bin:$PATH x", "bin"),
        ] {
            let found: Vec<String> = words(command, ROOT).collect();
            assert_eq!(found, [expected], "{command}");
        }
    }

    #[test]
    fn options_are_found_wherever_they_stand() {
        let found: Vec<&str> = options("a ${user_config.one} b ${user_config.two}").collect();
        assert_eq!(found, ["one", "two"]);
        assert_eq!(options("${user_config.open").count(), 0);
    }
}
