//! Files of a plugin: readme, licence, programs, leftovers, links.

use std::fs;
use std::os::unix::fs::symlink;

use super::{BINARY, HOOKS, LAUNCHER, Mistake, mode};
use crate::package::archive;
use crate::package::mistakes::{TRIPLE, program};

pub(super) const MISTAKES: &[Mistake] = &[
    (
        "no README",
        |d| fs::remove_file(d.join("plugins/ctxfold-core/README.md")).unwrap(),
        "plugins/ctxfold-core/README.md",
        "how to use it",
    ),
    (
        "a short README",
        |d| fs::write(d.join("plugins/ctxfold-core/README.md"), "# Core\n").unwrap(),
        "plugins/ctxfold-core/README.md",
        "at least 40",
    ),
    (
        "a placeholder",
        |d| {
            fs::write(
                d.join("plugins/ctxfold-core/README.md"),
                "{{name}} ".repeat(50),
            )
            .unwrap();
        },
        "plugins/ctxfold-core/README.md",
        "fill it in",
    ),
    (
        "no licence",
        |d| {
            for l in ["LICENSE-MIT", "LICENSE-APACHE"] {
                fs::remove_file(d.join("plugins/ctxfold-core").join(l)).unwrap();
            }
        },
        "plugins/ctxfold-core/LICENSE",
        "add the licence",
    ),
    (
        "no launcher",
        |d| fs::remove_file(d.join(LAUNCHER)).unwrap(),
        HOOKS,
        "add the file",
    ),
    (
        "a launcher that can't be run",
        |d| mode(&d.join(LAUNCHER), 0o644),
        LAUNCHER,
        "chmod 755",
    ),
    (
        "a launcher with Windows line ends",
        |d| fs::write(d.join(LAUNCHER), "#!/bin/sh\r\n").unwrap(),
        LAUNCHER,
        "\\n",
    ),
    (
        "no binary behind the launcher",
        |d| fs::remove_dir_all(d.join("plugins/ctxfold-core/bin").join(TRIPLE)).unwrap(),
        "plugins/ctxfold-core/bin/ctxfold",
        "cargo xtask package",
    ),
    (
        "a target without its binary",
        |d| fs::rename(d.join(BINARY), d.join(BINARY).with_file_name("other")).unwrap(),
        BINARY,
        "build it for",
    ),
    (
        "a binary that can't be run",
        |d| mode(&d.join(BINARY), 0o644),
        BINARY,
        "chmod 755",
    ),
    (
        "a binary for another processor",
        |d| {
            fs::copy(program(d, 183), d.join(BINARY)).unwrap();
            fs::remove_file(d.join("program-183")).unwrap();
        },
        BINARY,
        "its folder's target",
    ),
    (
        "a script in a binary's place",
        |d| fs::write(d.join(BINARY), "#!/bin/sh\necho a script, not a binary\n").unwrap(),
        BINARY,
        "its folder's target",
    ),
    (
        "a target nobody knows",
        |d| {
            fs::rename(
                d.join("plugins/ctxfold-core/bin").join(TRIPLE),
                d.join("plugins/ctxfold-core/bin/linux"),
            )
            .unwrap();
        },
        "plugins/ctxfold-core/bin/linux",
        "after the target",
    ),
    (
        "a leftover",
        |d| fs::write(d.join("plugins/ctxfold-core/README.md.orig"), "").unwrap(),
        "plugins/ctxfold-core/README.md.orig",
        "remove it",
    ),
    (
        "types that a client laid",
        |d| {
            fs::create_dir(d.join("plugins/ctxfold-core/.claude-plugin/types")).unwrap();
            fs::write(
                d.join("plugins/ctxfold-core/.claude-plugin/types/index.d.ts"),
                "",
            )
            .unwrap();
        },
        "plugins/ctxfold-core/.claude-plugin/types/index.d.ts",
        "remove it",
    ),
    (
        "a link that leaves the plugin",
        |d| symlink("../../README.md", d.join("plugins/ctxfold-core/MORE.md")).unwrap(),
        "plugins/ctxfold-core/MORE.md",
        "copy the file",
    ),
    (
        "a link to a path of the machine",
        |d| symlink("/etc/hostname", d.join("plugins/ctxfold-core/name")).unwrap(),
        "plugins/ctxfold-core/name",
        "copy the file",
    ),
    (
        "a link to nothing",
        |d| symlink("MORE.md", d.join("plugins/ctxfold-core/name")).unwrap(),
        "plugins/ctxfold-core/name",
        "remove the link",
    ),
    (
        "names that differ in case",
        |d| fs::write(d.join("plugins/ctxfold-core/readme.md"), "x ".repeat(50)).unwrap(),
        "plugins/ctxfold-core/readme.md",
        "rename one",
    ),
    (
        "a link to nothing after packaging",
        |d| {
            archive::write_sums(d).unwrap();
            symlink("MORE.md", d.join("plugins/ctxfold-core/name")).unwrap();
        },
        "SHA256SUMS",
        "package again",
    ),
    (
        "a change after packaging",
        |d| {
            archive::write_sums(d).unwrap();
            fs::write(d.join("README.md"), "changed").unwrap();
        },
        "SHA256SUMS",
        "package again",
    ),
];
