//! `ctxfold config`: settings and keys. Their table is in `crate::config`.

use std::io::Read as _;

use clap::Subcommand;

use crate::config::{self, Config, KEYS, Key, KeySource};
use crate::env::{self, Env};
use crate::error::{CommandError, CommandResult};
use crate::watch::Rules;
use crate::{files, output};

/// Show and change the configuration
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print every setting with its value and meaning
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print one setting
    Get {
        /// The setting, for example gemini.model
        name: String,

        /// Print as JSON, with its default and meaning
        #[arg(long)]
        json: bool,
    },
    /// Change a setting; comments in the file stay
    Set {
        /// The setting
        name: String,
        /// Its new value
        value: String,
    },
    /// Remove a setting, so that its default holds
    Unset {
        /// The setting
        name: String,
    },
    /// Print the path of the file
    Path,
    /// Keep Gemini API keys in a file that only you can read
    Keys {
        #[command(subcommand)]
        action: KeysAction,
    },
}

#[derive(Debug, Subcommand)]
enum KeysAction {
    /// Add a key, read from standard input
    Add,
    /// Say where keys come from and how many there are
    Status {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove the file
    Clear,
}

impl Args {
    pub(crate) fn run(self, env: &Env, quiet: bool) -> CommandResult {
        let say = |text: &str| {
            if !quiet {
                output::say(text);
            }
        };
        match self.action {
            Action::List { json } => list(env, json),
            Action::Get { name, json } => {
                let key = config::key_named(&name)?;
                if json {
                    let mut shown = setting(&Config::read(env)?, key);
                    shown["v"] = 1.into();
                    return output::json(&shown);
                }
                output::data(&format!("{}\n", Config::read(env)?.text(&name)))
            }
            Action::Set { name, value } => {
                config::edit(env, &name, &value)?;
                say(&format!("ctxfold: {name} = {value}"));
                say_what_is_left(env, &say);
                Ok(())
            }
            Action::Unset { name } => {
                config::remove(env, &name)?;
                if config::key_named(&name).is_ok() {
                    say(&format!("ctxfold: {name} has its default again"));
                } else {
                    say(&format!("ctxfold: {name} is gone"));
                }
                say_what_is_left(env, &say);
                Ok(())
            }
            Action::Path => output::data(&format!("{}\n", env.config_file.display())),
            Action::Keys { action } => keys(env, &action, &say),
        }
    }
}

/// A setting with its value, default and meaning.
fn setting(config: &Config, key: &Key) -> serde_json::Value {
    serde_json::json!({"name": key.name, "value": config.text(key.name), "default": key.default,
                       "is_set": config.is_set(key.name), "about": key.about})
}

/// Says the next mistake of the file after a change.
fn say_what_is_left(env: &Env, say: &dyn Fn(&str)) {
    match Config::read(env) {
        Err(next) => say(&format!("ctxfold: {next}")),
        Ok(config) => {
            if let Some(problem) = Rules::read(env, &config, &env.cwd).problem {
                say(&format!("ctxfold: {problem}; the defaults hold"));
            }
        }
    }
}

fn list(env: &Env, json: bool) -> CommandResult {
    let config = Config::read(env)?;
    if json {
        let all: Vec<_> = KEYS.iter().map(|key| setting(&config, key)).collect();
        return output::json(&serde_json::json!({"v": 1, "settings": all}));
    }
    let columns = env::columns();
    let mut text = String::new();
    for key in KEYS {
        let value = config.text(key.name);
        let value = if value.is_empty() { "(none)" } else { value };
        let mark = if config.is_set(key.name) { "*" } else { " " };
        let lead = format!("{mark} {:<18} {value:<24} ", key.name);
        let wide = lead.chars().count();
        if wide + 30 <= columns {
            text.push_str(&output::hanging(&lead, wide, key.about, columns));
        } else {
            text.push_str(&format!("{}\n", lead.trim_end()));
            text.push_str(&output::hanging("    ", 4, key.about, columns));
        }
    }
    output::data(&text)
}

fn keys(env: &Env, action: &KeysAction, say: &dyn Fn(&str)) -> CommandResult {
    let path = config::keys_file(env);
    match action {
        KeysAction::Add => {
            if env::stdin_is_terminal() {
                say("ctxfold: paste the key, then press Enter and Ctrl-D");
            }
            let mut text = String::new();
            std::io::stdin()
                .take(64 << 10)
                .read_to_string(&mut text)
                .map_err(|e| CommandError::input(format!("failed to read the key: {e}")))?;
            let added: Vec<&str> = text
                .split([',', '\n'])
                .map(str::trim)
                .filter(|k| !k.is_empty())
                .collect();
            if added.is_empty() {
                return Err(CommandError::input("no key on standard input"));
            }
            ctxfold_gemini_client::Keys::parse(&added.join(","))?;
            let old = files::read_small(&path)?.unwrap_or_default();
            let mut all: Vec<&str> = old
                .lines()
                .map(str::trim)
                .filter(|k| !k.is_empty())
                .collect();
            all.extend(
                added
                    .iter()
                    .filter(|k| !old.lines().any(|o| o.trim() == **k)),
            );
            files::write_private(&path, &format!("{}\n", all.join("\n")))?;
            say(&format!(
                "ctxfold: {} keys in {}",
                all.len(),
                env.show(&path)
            ));
            Ok(())
        }
        KeysAction::Status { json } => {
            let found = config::gemini_keys(env)?;
            let count = |keys: &str| keys.split(',').filter(|k| !k.trim().is_empty()).count();
            let (count, source, place) = match &found {
                None => (0, None, None),
                Some((keys, KeySource::Variable(name))) => {
                    (count(keys), Some("variable"), Some((*name).to_owned()))
                }
                Some((keys, KeySource::File)) => {
                    (count(keys), Some("file"), Some(path.display().to_string()))
                }
            };
            if *json {
                return output::json(&serde_json::json!({
                    "v": 1, "keys": count, "source": source, "place": place,
                }));
            }
            output::data(&match (source, place) {
                (Some("variable"), Some(name)) => {
                    format!("{count} keys from the variable {name}\n")
                }
                (Some(_), _) => format!("{count} keys from {}\n", env.show(&path)),
                _ => "no key\n".to_owned(),
            })
        }
        KeysAction::Clear => match std::fs::remove_file(&path) {
            Ok(()) => {
                say("ctxfold: the keys file is gone");
                Ok(())
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(CommandError::io("remove", &path, &e)),
        },
    }
}
