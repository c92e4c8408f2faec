//! The unit files and the crontab's line that run the visit by the clock. Both are started with
//! almost no environment: the program is named by its path, and folders that a variable names are
//! named again.

use std::path::PathBuf;

use crate::output::shell_word;

/// The visit, as systemd and cron start it.
const ARGUMENTS: &str = "idle run --quiet";

/// Unit files and the crontab's line for a program and the variables that it needs.
pub(crate) fn units(program: &str, variables: &[(&str, PathBuf)]) -> String {
    let (mut environment, mut before) = (String::new(), String::new());
    for (name, path) in variables {
        let path = path.to_string_lossy();
        environment.push_str(&format!(
            "Environment={}\n",
            systemd_word(&format!("{name}={path}"))
        ));
        before.push_str(&format!("{name}={} ", shell_word(&path)));
    }
    // cron takes a bare % for the end of the line.
    let command = format!("{before}{} {ARGUMENTS}", shell_word(program)).replace('%', "\\%");
    format!(
        "\
# ~/.config/systemd/user/ctxfold-idle.service
[Unit]
Description=Compact conversations that paused

[Service]
Type=oneshot
{environment}ExecStart={} {ARGUMENTS}

# ~/.config/systemd/user/ctxfold-idle.timer
[Unit]
Description=Look for conversations that paused

[Timer]
OnBootSec=10min
OnUnitActiveSec=10min

[Install]
WantedBy=timers.target

# then: systemctl --user enable --now ctxfold-idle.timer
# or, by cron:
# */10 * * * * {command}
",
        systemd_word(program)
    )
}

/// A word of a unit file, quoted: neither a specifier nor an escape is in it.
fn systemd_word(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '%' => out.push_str("%%"),
            '\n' => out.push_str("\\n"),
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_for_both() {
        let text = units(
            "/opt/my tools/ctx\"fold",
            &[("CODEX_HOME", PathBuf::from("/home/dev/it's 5%"))],
        );
        for line in [
            "ExecStart=\"/opt/my tools/ctx\\\"fold\" idle run --quiet",
            "Environment=\"CODEX_HOME=/home/dev/it's 5%%\"",
            "# */10 * * * * CODEX_HOME='/home/dev/it'\\''s 5\\%' '/opt/my tools/ctx\"fold' idle run --quiet",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
        }
    }

    #[test]
    fn nothing_is_set_that_was_not() {
        let text = units("/usr/bin/ctxfold", &[]);
        assert!(!text.contains("Environment"), "{text}");
        assert!(
            text.contains("\n# */10 * * * * /usr/bin/ctxfold idle run"),
            "{text}"
        );
    }
}
