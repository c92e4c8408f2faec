//! The branch of a working folder, read from git's own files: no process is started.

use std::path::{Path, PathBuf};

use crate::files;

/// The branch that is checked out in a folder, or the first seven digits of a detached commit.
/// `None` outside of a repository and before a branch's first commit.
pub fn branch(folder: &Path) -> Option<String> {
    let dir = folder.ancestors().find_map(git_dir)?;
    let head = files::read_settings(&dir.join("HEAD"))?;
    let head = head.trim();
    let Some(reference) = head.strip_prefix("ref: ") else {
        let is_commit = head.len() >= 40 && head.bytes().all(|b| b.is_ascii_hexdigit());
        return is_commit.then(|| head[..7].to_owned());
    };
    let name = reference.strip_prefix("refs/heads/")?;
    if name.split('/').any(|part| part == "..") {
        return None;
    }
    is_born(&dir, reference).then(|| name.to_owned())
}

/// The git folder of a working folder; in a linked work tree `.git` is a file that names it.
fn git_dir(folder: &Path) -> Option<PathBuf> {
    let dot = folder.join(".git");
    if dot.is_dir() {
        return Some(dot);
    }
    let text = files::read_settings(&dot)?;
    Some(folder.join(text.strip_prefix("gitdir: ")?.trim()))
}

fn is_born(dir: &Path, reference: &str) -> bool {
    // A linked work tree keeps its branches in the main one.
    let common = files::read_settings(&dir.join("commondir"))
        .map_or_else(|| dir.to_owned(), |text| dir.join(text.trim()));
    if files::exists(&common.join(reference)) {
        return true;
    }
    let packed = files::read_settings(&common.join("packed-refs")).unwrap_or_default();
    packed.lines().any(|line| {
        line.split_once(' ')
            .is_some_and(|(_, name)| name == reference)
    })
}

/// The branch and its marks from the output of `git status --porcelain=v2 --branch`: `!` for
/// conflicts, `+` staged, `*` changed, `?` untracked, `↑` and `↓` with the commits ahead and behind.
pub fn branch_with_marks(porcelain: &str) -> Option<String> {
    let header = |name: &str| {
        porcelain
            .lines()
            .find_map(|line| line.strip_prefix("# branch.")?.strip_prefix(name))
    };
    let mut text = match header("head ")? {
        "(detached)" => header("oid ")?.get(..7)?.to_owned(),
        name => name.to_owned(),
    };
    let entries = || {
        porcelain
            .lines()
            .filter_map(|line| line.strip_prefix("1 ").or(line.strip_prefix("2 ")))
    };
    let marks = [
        ('!', porcelain.lines().any(|line| line.starts_with("u "))),
        ('+', entries().any(|entry| !entry.starts_with('.'))),
        (
            '*',
            entries().any(|entry| entry.get(1..2).is_some_and(|c| c != ".")),
        ),
        ('?', porcelain.lines().any(|line| line.starts_with("? "))),
    ];
    text.extend(
        marks
            .into_iter()
            .filter_map(|(mark, is_set)| is_set.then_some(mark)),
    );
    let (ahead, behind) = header("ab ")
        .and_then(|counts| counts.split_once(' '))
        .unwrap_or_default();
    for (mark, count) in [
        ('↑', ahead.trim_start_matches('+')),
        ('↓', behind.trim_start_matches('-')),
    ] {
        if !matches!(count, "" | "0") {
            text.push(mark);
            text.push_str(count);
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_say_what_git_says() {
        let clean = "# branch.oid (initial)\n# branch.head main\n";
        assert_eq!(branch_with_marks(clean).as_deref(), Some("main"));
        let busy = "# branch.oid abc\n# branch.head dev\n# branch.ab +2 -1\n\
            1 M. N... a\n1 .M N... b\nu UU N... c\n? d\n";
        assert_eq!(branch_with_marks(busy).as_deref(), Some("dev!+*?↑2↓1"));
        let detached = "# branch.oid 0123456789\n# branch.head (detached)\n";
        assert_eq!(branch_with_marks(detached).as_deref(), Some("0123456"));
        assert_eq!(branch_with_marks("fatal: not a git repository"), None);
    }
}
