//! Changes of `config.toml`: comments and order stay, and what the file holds wrongly can be removed.

use toml_edit::{DocumentMut, Item, TableLike, Value};

use super::{Config, KEYS, Key, Kind, expected, fits, key_named};
use crate::env::Env;
use crate::error::{CommandError, CommandResult};
use crate::files;

/// Sets a key in the file, whatever else is wrong there.
///
/// # Errors
/// Refuses a value that does not fit.
pub(crate) fn edit(env: &Env, name: &str, value: &str) -> CommandResult {
    let key = key_named(name)?;
    if !fits(key.kind, value) {
        return Err(CommandError::input(format!(
            "{name} must be {}",
            expected(key.kind)
        )));
    }
    // An empty price is none.
    if value.is_empty() && key.kind == Kind::Price {
        return remove(env, name);
    }
    let mut document = read(env)?;
    let (table, leaf): (&mut dyn TableLike, &str) = match name.split_once('.') {
        None => (document.as_table_mut(), name),
        Some((table, leaf)) => {
            let item = document
                .entry(table)
                .or_insert_with(|| Item::Table(toml_edit::Table::new()));
            let inside = item.as_table_like_mut().ok_or_else(|| {
                CommandError::input(format!(
                    "{}: {table} is no table",
                    env.config_file.display()
                ))
                .hint(format!("`ctxfold config unset {table}` removes it"))
            })?;
            (inside, leaf)
        }
    };
    let new = typed(key, value);
    match table.get_mut(leaf).and_then(Item::as_value_mut) {
        Some(old) => {
            let decor = old.decor().clone();
            *old = new;
            *old.decor_mut() = decor;
        }
        None => {
            table.insert(leaf, Item::Value(new));
        }
    }
    files::write_private(&env.config_file, &document.to_string())
}

/// Removes a key from the file, also one that ctxfold does not know: that is how a broken file is
/// mended.
///
/// # Errors
/// Names the closest keys when the file does not hold it and ctxfold does not know it.
pub(crate) fn remove(env: &Env, name: &str) -> CommandResult {
    let mut document = read(env)?;
    let known = key_named(name);
    // A table of settings is no setting; one of nothing known is a mistake like any other.
    let inside = format!("{name}.");
    let is_table = KEYS.iter().any(|k| k.name.starts_with(&inside))
        && document.get(name).is_some_and(Item::is_table_like);
    if known.is_err() && is_table {
        return known.map(|_| ());
    }
    if take(document.as_table_mut(), name) {
        return files::write_private(&env.config_file, &document.to_string());
    }
    // What nothing sets needs no removing, and no file that says so.
    known.map(|_| ())
}

fn read(env: &Env) -> CommandResult<DocumentMut> {
    let text = files::read_small(&env.config_file)?.unwrap_or_default();
    match text.parse() {
        Ok(document) => Ok(document),
        // The reader's own error has the line.
        Err(error) => {
            Config::parse(&text, &env.config_file)?;
            Err(CommandError::input(format!(
                "{}: {}",
                env.config_file.display(),
                toml_edit::TomlError::message(&error)
            )))
        }
    }
}

fn typed(key: &Key, value: &str) -> Value {
    match key.kind {
        Kind::Number | Kind::Percent => Value::from(value.parse::<i64>().unwrap_or_default()),
        Kind::Switch => Value::from(value == "true"),
        Kind::Price => Value::from(value.parse::<f64>().unwrap_or_default()),
        Kind::Text | Kind::Model | Kind::Word(_) | Kind::Size | Kind::Window => Value::from(value),
    }
}

/// Takes a key out of a table or of a table in it; a dot may stand in a key's own name.
fn take(table: &mut dyn TableLike, name: &str) -> bool {
    if table.remove(name).is_some() {
        return true;
    }
    name.match_indices('.').any(|(at, _)| {
        table
            .get_mut(&name[..at])
            .and_then(Item::as_table_like_mut)
            .is_some_and(|inside| take(inside, &name[at + 1..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lab(text: &str) -> (tempfile::TempDir, Env) {
        let dir = tempfile::tempdir().unwrap();
        let mut env = Env::read();
        env.config_file = dir.path().join("c/config.toml");
        files::write_private(&env.config_file, text).unwrap();
        (dir, env)
    }

    fn text(env: &Env) -> String {
        std::fs::read_to_string(&env.config_file).unwrap()
    }

    #[test]
    fn an_edit_keeps_comments() {
        let (_dir, env) = lab("# mine\nkeep = 4 # four\n\n[gemini]\n# why\nmodel = \"a\" # b\n");
        edit(&env, "keep", "5").unwrap();
        edit(&env, "gemini.model", "x").unwrap();
        assert_eq!(
            text(&env),
            "# mine\nkeep = 5 # four\n\n[gemini]\n# why\nmodel = \"x\" # b\n"
        );
        remove(&env, "keep").unwrap();
        assert!(!text(&env).contains("keep"));
        assert!(edit(&env, "keep", "many").is_err());
        assert!(edit(&env, "nope", "1").is_err());
    }

    #[test]
    fn what_is_wrong_in_a_file_can_be_removed() {
        for (before, name, after) in [
            (
                "[gemini]\nbad = 1\nmodel = \"a\"\n",
                "gemini.bad",
                "[gemini]\nmodel = \"a\"\n",
            ),
            ("keep = 6\nkeeep = 5\n", "keeep", "keep = 6\n"),
            ("[gemeni]\nmodel = \"a\"\n", "gemeni", ""),
            ("gemini = 3\n", "gemini", ""),
            ("\"a.b\" = 3\n", "a.b", ""),
            ("a.b.\"c.d\" = 3\n", "a.b.c.d", ""),
            ("keep = \"many\"\n", "keep", ""),
        ] {
            let (_dir, env) = lab(before);
            assert!(Config::read(&env).is_err(), "{before}");
            remove(&env, name).unwrap();
            assert_eq!(text(&env), after);
        }
        let (_dir, env) = lab("[gemini]\nmodel = \"a\"\n");
        assert!(remove(&env, "gemini").is_err(), "a table is no setting");
        assert!(remove(&env, "gemini.bad").is_err());
        assert_eq!(text(&env), "[gemini]\nmodel = \"a\"\n");
    }

    #[test]
    fn a_wrong_value_is_replaced() {
        let (_dir, env) = lab("keep = \"many\"\nkeeep = 5\n");
        edit(&env, "keep", "8").unwrap();
        assert_eq!(text(&env), "keep = 8\nkeeep = 5\n");
        let (_dir, env) = lab("gemini = 3\n");
        let error = edit(&env, "gemini.model", "a").unwrap_err().to_string();
        assert!(error.contains("`ctxfold config unset gemini`"), "{error}");
        let (_dir, env) = lab("keep = = 3\n");
        let error = edit(&env, "keep", "4").unwrap_err().to_string();
        assert!(error.contains("config.toml:1: "), "{error}");
    }
}
