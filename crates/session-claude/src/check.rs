//! Everything that is wrong with a file, each with its code, line and offset.
//!
//! Faults of lines come from `lines.rs`, facts about rows from `probe.rs`; here they are judged.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use ctxfold_transcript::{Mode, Plan};

use crate::lines::Place;
use crate::probe::{Half, Kind, Link, Probe, Seen};
use crate::scan::{MOST_FINDINGS, Scan, ScanOptions, run};
use crate::{Code, Error, Finding, Options, Session, image, secret};

/// Bytes that one request to the API may have.
const LARGEST_REQUEST: u64 = 20_000_000;

/// What a check found, and what the file holds.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// What is wrong, in file order; what concerns the whole file comes first.
    pub findings: Vec<Finding>,
    /// What is in the file.
    pub scan: Scan,
}

/// Checks a whole file. `progress` is told how many bytes are done, and of how many.
///
/// # Errors
/// When the file cannot be read. Damage inside it is what the report is about.
pub fn check(path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<Report, Error> {
    let (mut scan, probe) = run(path, &ScanOptions::default(), true, progress)?;
    let mut findings = std::mem::take(&mut scan.findings);
    text_findings(&probe, &mut findings);
    unknown_kinds(&scan, &mut findings);
    let tree = Tree::new(&probe.links);
    tree.findings(&mut findings);
    pairs(&probe, &mut findings);
    compactions(&probe, &tree, &mut findings);
    if probe
        .links
        .iter()
        .any(|l| matches!(l.kind, Kind::Prompt | Kind::Answer))
    {
        let all_sidechain = probe.links.iter().all(|l| l.sidechain);
        if !all_sidechain {
            live(path, &mut findings);
        }
    } else {
        let message = "no prompt and no answer in this file";
        findings.push(Finding::new(Code::NoConversation, message));
    }
    number_lines(path, &mut findings)?;
    findings.sort_by_key(|f| (f.offset, f.code));
    Ok(Report { findings, scan })
}

fn at(finding: Finding, place: Place) -> Finding {
    finding.at(place.line, place.offset)
}

fn text_findings(probe: &Probe, out: &mut Vec<Finding>) {
    let mut many = |seen: &Seen, code, what: &str| {
        if let Some(first) = seen.first {
            let message = format!("{} {what}, the first here", seen.count);
            out.push(at(Finding::new(code, message), first));
        }
    };
    many(
        &probe.invalid_utf8,
        Code::InvalidUtf8,
        "rows hold bytes that are no UTF-8",
    );
    many(
        &probe.surrogates,
        Code::LoneSurrogate,
        "rows hold half a surrogate pair",
    );
    many(
        &probe.carriage_returns,
        Code::CarriageReturns,
        "lines end with CR LF",
    );
    if let Some(place) = probe.open_end {
        let message = "the last row has no line end";
        out.push(at(Finding::new(Code::NoFinalNewline, message), place));
    }
    for (size, place) in probe.images.iter().take(MOST_FINDINGS) {
        let message = format!(
            "an image of {} x {} pixels; the API takes {} at most",
            size.width,
            size.height,
            image::LARGEST
        );
        out.push(at(Finding::new(Code::ImageTooLarge, message), *place));
    }
    let found = || probe.secrets.iter().filter(|s| s.count > 0);
    if let Some(first) = found().filter_map(|s| s.first).min_by_key(|p| p.offset) {
        let kinds: Vec<String> = probe
            .secrets
            .iter()
            .zip(secret::KINDS)
            .filter(|(seen, _)| seen.count > 0)
            .map(|(seen, kind)| format!("{} {kind}", seen.count))
            .collect();
        let total: u64 = found().map(|s| s.count).sum();
        let message = format!(
            "{total} places look like credentials ({}), the first here",
            kinds.join(", ")
        );
        out.push(at(Finding::new(Code::Credential, message), first));
    }
}

fn unknown_kinds(scan: &Scan, out: &mut Vec<Finding>) {
    for kind in scan.kinds.iter().filter(|k| !k.known) {
        let message = format!(
            "{} rows of the unknown kind {:?}, {} bytes",
            kind.rows, kind.kind, kind.bytes
        );
        out.push(Finding::new(Code::UnknownKind, message));
    }
}

/// The rows by identity, each in its newest version.
struct Tree<'a> {
    links: &'a [Link],
    newest: HashMap<u128, usize>,
}

impl<'a> Tree<'a> {
    fn new(links: &'a [Link]) -> Tree<'a> {
        let newest = links.iter().enumerate().map(|(i, l)| (l.uuid, i)).collect();
        Tree { links, newest }
    }

    fn get(&self, uuid: u128) -> Option<&'a Link> {
        self.newest.get(&uuid).map(|i| &self.links[*i])
    }

    fn findings(&self, out: &mut Vec<Finding>) {
        let dangling: Vec<&Link> = self
            .links
            .iter()
            .filter(|l| l.parent != 0 && !self.newest.contains_key(&l.parent))
            .collect();
        if let Some(first) = dangling.first() {
            let message = format!(
                "{} of {} rows name a parent that is not in the file, the first here",
                dangling.len(),
                self.links.len()
            );
            out.push(at(Finding::new(Code::DanglingParent, message), first.place));
        }
        let mut first: HashMap<u128, &Link> = HashMap::new();
        let mut told = HashSet::new();
        for link in self.links {
            let old = *first.entry(link.uuid).or_insert(link);
            // Prompts and results are versions of each other when a fold turns one into the other.
            let same =
                old.parent == link.parent && (old.kind == link.kind || user(old) && user(link));
            if !same && told.len() < MOST_FINDINGS && told.insert(link.uuid) {
                let line = old.place.line.unwrap_or(0);
                let message = format!("another row has the same uuid as line {line}");
                out.push(at(Finding::new(Code::DuplicateUuid, message), link.place));
            }
        }
        self.cycles(out);
    }

    /// Walks up from every row once; a walk that meets itself is a cycle.
    fn cycles(&self, out: &mut Vec<Finding>) {
        let mut walked_by = vec![usize::MAX; self.links.len()];
        for &start in self.newest.values() {
            let mut i = start;
            loop {
                if walked_by[i] == start {
                    self.cycle(i, out);
                    break;
                }
                if walked_by[i] != usize::MAX {
                    break;
                }
                walked_by[i] = start;
                match self.newest.get(&self.links[i].parent) {
                    Some(parent) => i = *parent,
                    None => break,
                }
            }
        }
    }

    fn cycle(&self, start: usize, out: &mut Vec<Finding>) {
        let (mut first, mut rows, mut i) = (start, 0, start);
        loop {
            rows += 1;
            if self.links[i].place.offset < self.links[first].place.offset {
                first = i;
            }
            i = self.newest[&self.links[i].parent];
            if i == start {
                break;
            }
        }
        let message = format!("{rows} rows are their own ancestors");
        out.push(at(
            Finding::new(Code::ParentCycle, message),
            self.links[first].place,
        ));
    }
}

fn user(link: &Link) -> bool {
    matches!(link.kind, Kind::Prompt | Kind::Results)
}

fn pairs(probe: &Probe, out: &mut Vec<Finding>) {
    let mut told: HashMap<Code, usize> = HashMap::new();
    let mut tell = |code, message: String, place| {
        let count = told.entry(code).or_default();
        *count += 1;
        if *count <= MOST_FINDINGS {
            out.push(at(Finding::new(code, message), place));
        }
    };
    let mut calls: HashMap<u128, &Half> = HashMap::new();
    for call in &probe.calls {
        if call.empty {
            tell(
                Code::EmptyToolId,
                "a call with an empty identifier".into(),
                call.place,
            );
        } else if let Some(old) = calls.insert(call.id, call) {
            // A newer version of the same row repeats its calls.
            // A compaction may write what it keeps again; the old one is not sent then.
            let compacted = |p: &Place| old.place.offset < p.offset && p.offset < call.place.offset;
            let same = old.row == call.row && old.row != 0;
            if !same && !probe.boundaries.iter().any(compacted) {
                let line = old.place.line.unwrap_or(0);
                let message = format!("a call has the same identifier as one in line {line}");
                tell(Code::DuplicateToolId, message, call.place);
            }
        }
    }
    let mut answered = HashSet::new();
    for result in &probe.results {
        if result.empty {
            tell(
                Code::EmptyToolId,
                "a result with an empty identifier".into(),
                result.place,
            );
        } else if calls.contains_key(&result.id) {
            answered.insert(result.id);
        } else {
            tell(
                Code::OrphanResult,
                "a result answers no call in this file".into(),
                result.place,
            );
        }
    }
    let mut open: Vec<&Half> = calls
        .into_iter()
        .filter(|(id, _)| !answered.contains(id))
        .map(|(_, call)| call)
        .collect();
    open.sort_by_key(|c| c.place.offset);
    for call in open {
        if goes_on(&probe.links, call) {
            tell(
                Code::MissingResult,
                "a call has no result".into(),
                call.place,
            );
        } else {
            tell(
                Code::PendingCall,
                "the last call has no result yet".into(),
                call.place,
            );
        }
    }
}

/// Whether something was said after a call. Links are in file order, so only the end is looked at.
fn goes_on(links: &[Link], call: &Half) -> bool {
    links
        .iter()
        .rev()
        .take_while(|l| l.place.offset > call.place.offset)
        .any(|l| {
            l.sidechain == call.sidechain
                && match l.kind {
                    Kind::Prompt => true,
                    Kind::Answer => l.message == 0 || l.message != call.message,
                    _ => false,
                }
        })
}

fn compactions(probe: &Probe, tree: &Tree<'_>, out: &mut Vec<Finding>) {
    for kept in &probe.kept {
        let missing = kept.rows.iter().filter(|r| tree.get(**r).is_none()).count();
        if missing > 0 {
            let message = format!(
                "the compaction keeps {} rows, of which {missing} are not in the file",
                kept.rows.len()
            );
            out.push(at(
                Finding::new(Code::PreservedMissing, message),
                kept.place,
            ));
        }
        if tree.get(kept.anchor).is_none() {
            let message = "the compaction's anchor is not in the file";
            out.push(at(Finding::new(Code::AnchorMissing, message), kept.place));
        }
    }
    repeated(probe, out);
    let last = probe.boundaries.last().map_or(0, |p| p.offset);
    let newest = probe.leaves.iter().rev().find(|(_, p)| p.offset >= last);
    if let Some((leaf, place)) = newest
        && tree.get(*leaf).is_some_and(|l| l.sidechain)
    {
        let message = "the newest last-prompt row names a row of a sub-agent";
        out.push(at(Finding::new(Code::SidechainLeaf, message), *place));
    }
}

/// Messages that a compaction repeats in rows that it made anew and does not list.
fn repeated(probe: &Probe, out: &mut Vec<Finding>) {
    let Some(first) = probe.boundaries.first() else {
        return;
    };
    let listed: HashSet<u128> = probe.kept.iter().flat_map(|k| &k.rows).copied().collect();
    let mut before: HashMap<u128, (&Link, HashSet<u128>)> = HashMap::new();
    let mut told = HashSet::new();
    let answers = probe.links.iter().filter(|l| l.kind == Kind::Answer);
    for link in answers.filter(|l| l.message != 0 && !l.sidechain) {
        if link.place.offset < first.offset {
            let (_, rows) = before.entry(link.message).or_insert((link, HashSet::new()));
            rows.insert(link.uuid);
        } else if let Some((old, rows)) = before.get(&link.message)
            && !rows.contains(&link.uuid)
            && !listed.contains(&link.uuid)
            && told.len() < MOST_FINDINGS
            && told.insert(link.message)
        {
            let line = old.place.line.unwrap_or(0);
            let message = format!("a message that stands in line {line} too, before a compaction");
            out.push(at(Finding::new(Code::RepeatedMessage, message), link.place));
        }
    }
}

/// What only the conversation that would be sent can tell.
fn live(path: &Path, out: &mut Vec<Finding>) {
    let Ok(session) = Session::open(path, &Options::default()) else {
        return;
    };
    if let Some(&leaf) = session.chain.rows.last() {
        let row = &session.live.rows[leaf];
        if row.at_ms.is_none() {
            let message = "the row from which the client resumes has no timestamp";
            out.push(Finding::new(Code::LeafWithoutTimestamp, message).at(None, row.offset));
        }
    }
    if let Some(boundary) = session.live.boundary
        && !session.chain.rows.is_empty()
        && !session.chain.rows.contains(&boundary)
    {
        let message = "the conversation goes on from a row before this compaction";
        let offset = session.live.rows[boundary].offset;
        out.push(Finding::new(Code::CompactionBypassed, message).at(None, offset));
    }
    let transcript = session.transcript();
    let mut plan = Plan::keep_all(transcript, Mode::Mask);
    plan.measure(transcript);
    if plan.before.bytes > LARGEST_REQUEST {
        let message = format!(
            "the conversation has {} bytes; one request may have {LARGEST_REQUEST}",
            plan.before.bytes
        );
        out.push(Finding::new(Code::RequestTooLarge, message));
    }
    // A result whose call lies before the last compaction is an orphan for the request alone.
    let known: HashSet<Option<u64>> = out
        .iter()
        .filter(|f| f.code == Code::OrphanResult)
        .map(|f| f.offset)
        .collect();
    for finding in session.findings() {
        if finding.code == Code::OrphanResult && !known.contains(&finding.offset) {
            out.push(finding.clone());
        }
    }
}

/// Gives line numbers to findings that have only an offset.
fn number_lines(path: &Path, findings: &mut [Finding]) -> Result<(), Error> {
    let mut open: Vec<&mut Finding> = findings
        .iter_mut()
        .filter(|f| f.line.is_none() && f.offset.is_some())
        .collect();
    open.sort_by_key(|f| f.offset);
    if open.is_empty() {
        return Ok(());
    }
    let io = |e: io::Error| Error::io(path, "cannot read the session", e);
    let mut file = File::open(path).map_err(io)?;
    let mut block = vec![0; 1 << 20];
    let (mut offset, mut line) = (0u64, 1u64);
    let mut open = open.into_iter().peekable();
    while open.peek().is_some() {
        let n = file.read(&mut block).map_err(io)?;
        let mut from = 0;
        while let Some(finding) = open.next_if(|f| n == 0 || f.offset < Some(offset + n as u64)) {
            let to = finding.offset.map_or(n, |o| (o - offset) as usize).min(n);
            line += memchr::memchr_iter(b'\n', &block[from..to]).count() as u64;
            from = to;
            finding.line = Some(line);
        }
        line += memchr::memchr_iter(b'\n', &block[from..n]).count() as u64;
        offset += n as u64;
    }
    Ok(())
}
