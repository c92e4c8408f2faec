//! `bin/`: a launcher and a binary for each target behind it.

use std::fs;
use std::io::Read as _;

use super::{Findings, Part};

/// The systems that launchers know, and how a program for each begins.
const SYSTEMS: [(&str, &[&[u8]]); 5] = [
    ("-unknown-linux-gnu", &[b"\x7fELF"]),
    ("-unknown-linux-musl", &[b"\x7fELF"]),
    ("-apple-darwin", &[b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"]),
    ("-pc-windows-msvc", &[b"MZ"]),
    ("-pc-windows-gnu", &[b"MZ"]),
];
/// The processors that launchers know, with the number by which ELF calls them.
const PROCESSORS: [(&str, u16); 2] = [("x86_64", 62), ("aarch64", 183)];

pub(super) fn check(part: &Part, findings: &mut Findings) {
    let in_bin = |path: &str| path.strip_prefix("bin/").map(str::to_owned);
    let paths: Vec<String> = part.tree.files().filter_map(|e| in_bin(&e.path)).collect();
    let launchers: Vec<&String> = paths.iter().filter(|path| !path.contains('/')).collect();
    let mut triples: Vec<&str> = paths
        .iter()
        .filter_map(|path| Some(path.split_once('/')?.0))
        .collect();
    triples.dedup();
    for name in &launchers {
        check_launcher(part, name, triples.is_empty(), findings);
    }
    for triple in triples {
        check_target(part, triple, &launchers, findings);
    }
}

fn check_launcher(part: &Part, name: &str, is_alone: bool, findings: &mut Findings) {
    let path = format!("bin/{name}");
    let file = part.named(&path);
    if part
        .tree
        .find(&path)
        .is_some_and(|entry| !entry.is_executable)
    {
        findings.add(&file, "can't be run", format!("chmod 755 {path}"));
    }
    let bytes = fs::read(part.tree.root().join(&path)).unwrap_or_default();
    if !bytes.starts_with(b"#!") {
        return;
    }
    if bytes.contains(&b'\r') {
        findings.add(
            &file,
            "has Windows line ends",
            "save it with \\n: a shell reads \\r as a word",
        );
    }
    if is_alone && bytes.windows(7).any(|part| part == b"uname -") {
        findings.add(
            &file,
            "starts a binary for each target, but there is none",
            format!("put one into bin/TARGET/{name}: run `cargo xtask package`"),
        );
    }
}

fn check_target(part: &Part, triple: &str, launchers: &[&String], findings: &mut Findings) {
    let folder = part.named(&format!("bin/{triple}"));
    let system = SYSTEMS.iter().find(|(system, _)| triple.ends_with(system));
    let processor = PROCESSORS.iter().find(|(name, _)| triple.starts_with(name));
    let (Some((_, beginnings)), Some((_, machine))) = (system, processor) else {
        findings.add(
            &folder,
            "is no target that the launcher knows",
            "name it after the target, as in x86_64-unknown-linux-musl",
        );
        return;
    };
    let ending = if triple.contains("windows") {
        ".exe"
    } else {
        ""
    };
    for launcher in launchers {
        let path = format!("bin/{triple}/{launcher}{ending}");
        let file = part.named(&path);
        let Some(entry) = part.tree.find(&path) else {
            findings.add(
                &file,
                "is missing",
                format!("build it for {triple}, or remove the folder"),
            );
            continue;
        };
        if !entry.is_executable {
            findings.add(&file, "can't be run", format!("chmod 755 {path}"));
        }
        let mut head = [0; 20];
        let read = fs::File::open(part.tree.root().join(&path))
            .and_then(|mut file| file.read_exact(&mut head));
        let starts_well = read.is_ok() && beginnings.iter().any(|b| head.starts_with(b));
        let is_elf = head.starts_with(b"\x7fELF");
        let fits = !is_elf || u16::from_le_bytes([head[18], head[19]]) == *machine;
        if !starts_well || !fits {
            findings.add(
                &file,
                format!("is no program for {triple}"),
                "build it for its folder's target",
            );
        }
    }
}
