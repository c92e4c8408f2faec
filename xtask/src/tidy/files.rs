//! Single files: module pages, sizes, and words that don't belong here.

use super::File;

/// The most lines of a source file, its unit tests apart.
const MOST_LINES: usize = 600;
/// The largest file that may be tracked, in bytes.
const LARGEST: u64 = 1024 * 1024;

/// Text that no tracked file holds, and why. Split so that this file passes its own check.
const FORBIDDEN: &[(&str, &str)] = &[
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("/ro", "ot/"), "a path of one machine"),
    (
        concat!("registry.npm", "js.org"),
        "the address of a registry",
    ),
    (
        concat!("\"resol", "ved\": \"http"),
        "the address of a registry",
    ),
    (
        concat!("You are Claude Code, ", "Anthropic"),
        "the vendor's prompt text",
    ),
    (concat!("You are ", "Codex"), "the vendor's prompt text"),
    (
        concat!("Anthropic's Claude ", "Agent SDK"),
        "the vendor's prompt text",
    ),
    (
        concat!("You are powered ", "by the model"),
        "the vendor's prompt text",
    ),
    (concat!("BEGIN OPENSSH ", "PRIVATE KEY"), "a private key"),
];

/// Text that no source file holds, and why.
const FORBIDDEN_IN_SOURCE: &[(&str, &str)] = &[
    (concat!("/ TO", "DO"), "unfinished work"),
    (concat!("! TO", "DO"), "unfinished work"),
    (concat!("# TO", "DO"), "unfinished work"),
    (concat!("= \"TO", "DO\""), "unfinished work"),
    (concat!("/ FIX", "ME"), "unfinished work"),
    (concat!("dbg", "!("), "debugging output"),
    (concat!("#[ig", "nore"), "a test that does not run"),
];

pub(super) fn check(files: &[File]) -> Vec<String> {
    files.iter().flat_map(check_file).collect()
}

/// Finds files that are too large to track.
pub(super) fn check_sizes(paths: &[String], size: impl Fn(&str) -> u64) -> Vec<String> {
    let large = paths
        .iter()
        .map(|path| (path, size(path)))
        .filter(|(_, size)| *size > LARGEST);
    large
        .map(|(path, size)| format!("{path} has {size} bytes; generate it instead"))
        .collect()
}

fn check_file(file: &File) -> Vec<String> {
    let path = &file.path;
    let mut findings = find_words(file, FORBIDDEN);
    if path.contains(".github/workflows/") {
        findings.extend(movable_actions(file));
    }
    let is_rust = file.has_extension("rs");
    if is_rust || path.ends_with("Cargo.toml") {
        findings.extend(find_words(file, FORBIDDEN_IN_SOURCE));
    }
    if is_rust && !is_recorded(path) {
        // A `tests.rs` belongs to the module beside it.
        if !path.ends_with("/tests.rs") && !starts_with_a_page(&file.text) {
            findings.push(format!(
                "{path} does not start with a page (//!) on what it owns"
            ));
        }
        let lines = file
            .text
            .lines()
            .take_while(|line| *line != "#[cfg(test)]")
            .count();
        if path.contains("/src/") && lines > MOST_LINES {
            findings.push(format!(
                "{path} has {lines} lines; look for the second idea in it"
            ));
        }
    }
    findings
}

/// Actions of a workflow that a tag names: who owns the action may move a tag, but no commit.
fn movable_actions(file: &File) -> impl Iterator<Item = String> {
    let is_commit = |name: &str| {
        let commit = name.split_once('@').map(|(_, commit)| commit);
        commit.is_some_and(|c| c.len() == 40 && c.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    file.text
        .lines()
        .enumerate()
        .filter_map(move |(number, line)| {
            let name = line.split_once("uses: ")?.1.split_whitespace().next()?;
            let is_movable = !name.starts_with("./") && !is_commit(name);
            is_movable.then(|| {
                let place = format!("{}:{}", file.path, number + 1);
                format!("{place} uses {name}; name its commit, and the version in a comment")
            })
        })
}

/// Fixtures, and the sources of the template, which are a test subject of their own.
fn is_recorded(path: &str) -> bool {
    path.contains("/fixtures/") || path.starts_with("template/")
}

fn starts_with_a_page(text: &str) -> bool {
    let first = text
        .lines()
        .find(|line| !line.trim().is_empty() && !line.starts_with("#!["));
    first.is_some_and(|line| line.starts_with("//! "))
}

fn find_words(file: &File, words: &[(&str, &str)]) -> Vec<String> {
    let mut findings = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        for (word, why) in words.iter().filter(|(word, _)| line.contains(word)) {
            findings.push(format!(
                "{}:{} holds {word:?}: {why}",
                file.path,
                number + 1
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&[file(path, text)]).len()
    }

    #[test]
    fn each_forbidden_text_is_found_with_its_line() {
        for (word, _) in FORBIDDEN {
            let findings = check(&[file("docs/x.md", &format!("fine\nbad {word} here\n"))]);
            assert_eq!(findings.len(), 1, "{word}");
            assert!(findings[0].starts_with("docs/x.md:2 "), "{findings:?}");
        }
        for (word, _) in FORBIDDEN_IN_SOURCE {
            assert_eq!(
                count("crates/x/src/a.rs", &format!("//! A page.\n// {word}\n")),
                1
            );
            assert_eq!(count("docs/x.md", &format!("{word}\n")), 0);
        }
    }

    #[test]
    fn no_test_waits_to_be_asked() {
        let ignored = concat!("ig", "nore");
        for form in [
            "",
            " = \"slow\"",
            " = \"rewrites all\"",
            " = \"writes examples/demo\"",
        ] {
            let text = format!("//! A page.\n#[{ignored}{form}]\n");
            assert_eq!(count("crates/x/tests/it/a.rs", &text), 1, "{form}");
        }
    }

    #[test]
    fn actions_are_named_by_their_commits() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        let text = format!("- uses: a/b@{commit} # v1\n- uses: a/b@v1\n- uses: ./own\n");
        for path in [
            ".github/workflows/a.yml",
            "template/.github/workflows/a.yml",
        ] {
            let findings = check(&[file(path, &text)]);
            assert_eq!(findings.len(), 1, "{findings:?}");
            assert!(findings[0].starts_with(&format!("{path}:2 uses a/b@v1;")));
        }
        assert_eq!(count("docs/x.md", &text), 0);
    }

    #[test]
    fn modules_start_with_a_page() {
        assert_eq!(
            count("crates/x/src/a.rs", "//! What this owns.\nfn a() {}\n"),
            0
        );
        assert_eq!(
            count("crates/x/src/a.rs", "#![no_std]\n\n//! What this owns.\n"),
            0
        );
        assert_eq!(count("crates/x/src/a.rs", "fn a() {}\n//! Late.\n"), 1);
        assert_eq!(count("crates/x/src/a.rs", ""), 1);
        assert_eq!(count("crates/x/tests/fixtures/a.rs", "fn a() {}\n"), 0);
    }

    #[test]
    fn long_modules_are_found_and_their_tests_do_not_count() {
        let long = format!("//! A page.\n{}", "fn a() {}\n".repeat(MOST_LINES));
        assert_eq!(count("crates/x/src/a.rs", &long), 1);
        let body = "fn a() {}\n";
        let tested = format!("//! A page.\n#[cfg(test)]\n{}", body.repeat(MOST_LINES));
        assert_eq!(count("crates/x/src/a.rs", &tested), 0);
    }

    #[test]
    fn large_files_are_found() {
        let paths = ["a.jsonl".to_owned(), "b.jsonl".to_owned()];
        let sizes = |path: &str| {
            if path == "b.jsonl" {
                LARGEST + 1
            } else {
                LARGEST
            }
        };
        let findings = check_sizes(&paths, sizes);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].starts_with("b.jsonl "));
    }
}
