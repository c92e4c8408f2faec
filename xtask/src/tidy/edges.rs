//! Which crate may use which: the table of ARCHITECTURE.md, exactly.

use cargo_metadata::{DependencyKind, Metadata};

/// What each crate of the workspace may link, tests apart.
const ALLOWED: &[(&str, &[&str])] = &[
    ("ctxfold-transcript", &[]),
    ("ctxfold-session-claude", &["ctxfold-transcript"]),
    ("ctxfold-session-codex", &["ctxfold-transcript"]),
    ("ctxfold-compactor", &["ctxfold-transcript"]),
    ("ctxfold-gemini-client", &[]),
    ("ctxfold-monitor", &[]),
    ("ctxfold-hook", &[]),
    (
        "ctxfold",
        &[
            "ctxfold-transcript",
            "ctxfold-session-claude",
            "ctxfold-session-codex",
            "ctxfold-compactor",
            "ctxfold-gemini-client",
            "ctxfold-monitor",
            "ctxfold-hook",
        ],
    ),
    ("ctxfold-test-support", &[]),
    // The benchmarks write their sessions with the generators of the test support.
    ("xtask", &[TEST_SUPPORT]),
];

const TEST_SUPPORT: &str = "ctxfold-test-support";

/// Libraries that give away what a crate must never know, with the crates that may link them.
const LIBRARIES: &[(&str, &[&str])] = &[
    ("tokio", &["ctxfold-gemini-client", "ctxfold"]),
    ("reqwest", &["ctxfold-gemini-client", "ctxfold"]),
    ("clap", &["ctxfold"]),
    ("toml_edit", &["ctxfold"]),
    ("rusqlite", &["ctxfold-session-codex"]),
];

/// An edge between two packages, and whether only tests use it.
struct Edge<'a> {
    from: &'a str,
    to: &'a str,
    for_tests: bool,
}

pub(super) fn check(metadata: &Metadata) -> Vec<String> {
    let packages = metadata.workspace_packages();
    let names: Vec<&str> = packages
        .iter()
        .map(|package| package.name.as_str())
        .collect();
    let edges = packages.iter().flat_map(|package| {
        package.dependencies.iter().map(|dependency| Edge {
            from: package.name.as_str(),
            to: dependency.name.as_str(),
            for_tests: dependency.kind == DependencyKind::Development,
        })
    });
    let mut findings: Vec<String> = edges.filter_map(|edge| judge(&edge, &names)).collect();
    findings.extend(
        names
            .iter()
            .filter(|name| allowed(name).is_none())
            .map(|name| {
                format!("{name} is not in the table of allowed edges (xtask/src/tidy/edges.rs)")
            }),
    );
    findings
}

fn allowed(name: &str) -> Option<&'static [&'static str]> {
    ALLOWED
        .iter()
        .find(|(from, _)| *from == name)
        .map(|(_, to)| *to)
}

/// What is wrong with an edge, if anything.
fn judge(edge: &Edge<'_>, workspace: &[&str]) -> Option<String> {
    let Edge {
        from,
        to,
        for_tests,
    } = *edge;
    if let Some((_, users)) = LIBRARIES.iter().find(|(library, _)| *library == to) {
        let fine = for_tests || users.contains(&from);
        return (!fine).then(|| format!("{from} must not use the library {to}"));
    }
    if !workspace.contains(&to) {
        return None;
    }
    let listed = allowed(from).is_some_and(|list| list.contains(&to));
    let fine = listed || (for_tests && to == TEST_SUPPORT);
    (!fine).then(|| format!("{from} must not know {to} (see ARCHITECTURE.md)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(from: &str, to: &str, for_tests: bool) -> Option<String> {
        let names: Vec<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
        judge(
            &Edge {
                from,
                to,
                for_tests,
            },
            &names,
        )
    }

    /// The whole table, as pairs: everything that is not listed here is forbidden.
    #[test]
    fn every_edge_of_the_table_and_no_other_is_allowed() {
        let sessions = [
            "ctxfold-session-claude",
            "ctxfold-session-codex",
            "ctxfold-compactor",
        ];
        for (from, _) in ALLOWED {
            for (to, _) in ALLOWED {
                let expected = match (*from, *to) {
                    ("ctxfold", "ctxfold" | "xtask" | TEST_SUPPORT) => false,
                    ("ctxfold", _) | ("xtask", TEST_SUPPORT) => true,
                    (from, to) => sessions.contains(&from) && to == "ctxfold-transcript",
                };
                assert_eq!(
                    verdict(from, to, false).is_none(),
                    expected,
                    "{from} -> {to}"
                );
            }
        }
    }

    #[test]
    fn tests_may_use_the_test_support_and_nothing_else_more() {
        assert!(verdict("ctxfold-monitor", TEST_SUPPORT, true).is_none());
        assert!(verdict("ctxfold-monitor", TEST_SUPPORT, false).is_some());
        assert!(verdict("ctxfold-session-claude", "ctxfold-compactor", true).is_some());
    }

    #[test]
    fn network_and_command_line_stay_where_they_belong() {
        assert!(verdict("ctxfold-compactor", "reqwest", false).is_some());
        assert!(verdict("ctxfold-monitor", "tokio", false).is_some());
        assert!(verdict("ctxfold-gemini-client", "tokio", false).is_none());
        assert!(verdict("ctxfold-hook", "serde", false).is_none());
    }
}
