//! When to warn: thresholds, and the keys that projects already have in `.planning/config.json`.

use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind};
use crate::files;
use crate::json::Object;
use crate::machine::Level;

/// Two thresholds in percent remaining, the critical one below the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    warning: f64,
    critical: f64,
}

impl Default for Thresholds {
    /// 35 and 25 percent.
    fn default() -> Self {
        Self {
            warning: 35.0,
            critical: 25.0,
        }
    }
}

impl Thresholds {
    /// Checks a pair. A warning threshold of 0 means that there are no warnings: `None`.
    ///
    /// # Errors
    /// [`ErrorKind::BadThresholds`] when one is no percentage or the critical threshold is not
    /// below the other.
    pub fn new(warning: f64, critical: f64) -> Result<Option<Self>, Error> {
        let bad = |text: String| Err(Error::new(ErrorKind::BadThresholds, text));
        for (name, value) in [("warning", warning), ("critical", critical)] {
            if !(0.0..=100.0).contains(&value) {
                return bad(format!("{name} threshold {value} is not between 0 and 100"));
            }
        }
        if warning == 0.0 {
            Ok(None)
        } else if critical < warning {
            Ok(Some(Self { warning, critical }))
        } else {
            bad(format!(
                "critical threshold {critical} is not below warning threshold {warning}"
            ))
        }
    }

    /// Percent remaining at which warnings begin.
    pub fn warning(self) -> f64 {
        self.warning
    }

    /// Percent remaining at which they become critical.
    pub fn critical(self) -> f64 {
        self.critical
    }

    /// The level of what remains, in percent; `None` when there is enough.
    pub fn level(self, remaining: f64) -> Option<Level> {
        if remaining <= self.critical {
            Some(Level::Critical)
        } else if remaining <= self.warning {
            Some(Level::Warning)
        } else {
            None
        }
    }
}

/// The monitor's configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// Whether to warn at all. Compactions are noticed in any case.
    pub enabled: bool,
    /// The thresholds.
    pub thresholds: Thresholds,
    /// Warnings repeat at every so many tool calls.
    pub repeat: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            enabled: true,
            thresholds: Thresholds::default(),
            repeat: 5,
        }
    }
}

impl Config {
    /// The same with a project's own wishes. An unusable threshold leaves the one that was; a
    /// pair that contradicts itself leaves both.
    #[must_use]
    pub fn with_planning(mut self, planning: &Planning) -> Self {
        if planning.warnings == Some(false) {
            self.enabled = false;
        }
        let usable =
            |value: Option<f64>, or| value.filter(|v| (0.0..=100.0).contains(v)).unwrap_or(or);
        let warning = usable(planning.warning, self.thresholds.warning);
        let critical = usable(planning.critical, self.thresholds.critical);
        if critical < warning {
            self.thresholds = Thresholds { warning, critical };
        }
        self
    }
}

/// Whether the statusline shows a part: always, never, or when it is worth it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Show {
    /// When it is cheap and known for certain.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl From<Option<bool>> for Show {
    fn from(choice: Option<bool>) -> Self {
        match choice {
            None => Self::Auto,
            Some(true) => Self::Always,
            Some(false) => Self::Never,
        }
    }
}

/// What a project's `.planning/config.json` says about the monitor and the statusline. Keys may
/// be nested (`{"hooks": {"context_warnings": false}}`) or flat (`{"hooks.context_warnings": false}`).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Planning {
    /// `hooks.context_warnings`, when it is true or false.
    pub warnings: Option<bool>,
    /// `hooks.context_warning_threshold`, when it is a number.
    pub warning: Option<f64>,
    /// `hooks.context_critical_threshold`, when it is a number.
    pub critical: Option<f64>,
    /// `statusline.context_position` is `front`.
    pub meter_first: bool,
    /// `statusline.show_context_tokens`.
    pub tokens: Option<bool>,
    /// `statusline.show_git`.
    pub git: Option<bool>,
}

impl Planning {
    /// Reads the file's text. Anything unusable is as if it were not there.
    pub fn parse(text: &str) -> Self {
        let Some(root) = Object::parse(text) else {
            return Self::default();
        };
        let hooks = root.object("hooks").unwrap_or_default();
        let line = root.object("statusline").unwrap_or_default();
        let number = |name: &str| {
            hooks
                .number(name)
                .or_else(|| root.number(&format!("hooks.{name}")))
        };
        let flag = |section: &Object<'_>, prefix: &str, name: &str| {
            section
                .bool(name)
                .or_else(|| root.bool(&format!("{prefix}.{name}")))
        };
        let position = line
            .string("context_position")
            .or_else(|| root.string("statusline.context_position"));
        Self {
            warnings: flag(&hooks, "hooks", "context_warnings"),
            warning: number("context_warning_threshold"),
            critical: number("context_critical_threshold"),
            meter_first: position.as_deref() == Some("front"),
            tokens: flag(&line, "statusline", "show_context_tokens"),
            git: flag(&line, "statusline", "show_git"),
        }
    }
}

/// Finds and reads `.planning/config.json` in a folder or the nearest of its ten parents; the
/// home folder is the last one looked at.
pub fn find_planning(folder: &Path, home: Option<&Path>) -> Planning {
    for ancestor in folder.ancestors().take(11) {
        let path: PathBuf = ancestor.join(".planning/config.json");
        if let Some(text) = files::read_settings(&path) {
            return Planning::parse(&text);
        }
        if home == Some(ancestor) {
            break;
        }
    }
    Planning::default()
}

/// Whether the project tracks its state in `.planning/STATE.md`.
pub fn is_tracked(folder: &Path) -> bool {
    files::exists(&folder.join(".planning/STATE.md"))
}
