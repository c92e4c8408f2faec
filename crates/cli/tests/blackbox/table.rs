//! The black-box table, run against the binary.

use crate::call::PROGRAM;
use crate::runner::{Commands, Status, run};

fn check(profile: &str, statusline: &[&str], at_least: usize) {
    let commands = Commands {
        monitor: vec![PROGRAM.into(), "hook".into(), "--until-eof".into()],
        statusline: [PROGRAM, "statusline"]
            .iter()
            .chain(statusline)
            .map(ToString::to_string)
            .collect(),
    };
    let outcomes = run(&commands, profile, &["breadcrumb", "gsd"]);
    let failed: Vec<_> = outcomes
        .iter()
        .filter(|o| o.status == Status::Fail)
        .collect();
    assert!(
        failed.is_empty(),
        "{} of {} failed: {failed:#?}",
        failed.len(),
        outcomes.len()
    );
    assert!(outcomes.len() >= at_least, "only {} cases", outcomes.len());
}

#[test]
fn the_table_passes_on_the_scale_of_the_compaction() {
    check("next", &[], 258);
}

#[test]
fn the_table_passes_on_the_scale_of_the_window() {
    check("1.14", &["--scale", "window"], 242);
}

#[test]
fn a_program_that_says_nothing_or_echoes_fails_the_table() {
    for (program, at_least) in [("true", 150), ("cat", 200)] {
        let command = vec![program.to_owned()];
        let commands = Commands {
            monitor: command.clone(),
            statusline: command,
        };
        let outcomes = run(&commands, "next", &["breadcrumb", "gsd", "slow"]);
        let failed = outcomes.iter().filter(|o| o.status == Status::Fail).count();
        assert!(
            failed >= at_least,
            "{program}: {failed} of {}",
            outcomes.len()
        );
    }
}
