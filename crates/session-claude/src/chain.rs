//! The branch that the client would take, in sending order: which row is the leaf, how the rows
//! that the last compaction preserves are linked, and which rows belong to a message though the
//! walk from the leaf does not pass them. Pure: rows in, order out.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use crate::live::{Live, SKIPS_OLD_ROWS};
use crate::row::{Kind, Row};

/// The branch.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    /// Indices of rows in sending order.
    pub(crate) rows: Vec<usize>,
    /// Rows before which something is missing: their parent is nowhere, or is a descendant.
    pub(crate) gaps: Vec<usize>,
    /// Whether the last compaction's preserved rows were dropped, because one is missing.
    pub(crate) lost_tail: bool,
}

struct Tree<'a> {
    rows: &'a [Row],
    index: HashMap<&'a str, usize>,
    parents: Vec<Option<usize>>,
    /// Rows that are there for the client.
    visible: Vec<bool>,
    /// Rows whose parent is named and missing.
    orphans: Vec<bool>,
    /// Whether the client goes on at another row where a parent is missing.
    bridges: bool,
    /// Order among the rows of one message: that of the list, then that of the file.
    rank: Vec<usize>,
}

/// Finds the newest row that is not newer than a given time and was not taken yet, in nearly
/// constant time. Of rows with one time it is the first in the file.
struct Clock {
    /// Times and rows, oldest first.
    rows: Vec<(i64, Reverse<usize>)>,
    /// For each position, where to look for the last free one before it.
    jump: Vec<usize>,
}

impl Clock {
    fn new(rows: &[Row], visible: &[bool]) -> Clock {
        let mut sorted: Vec<_> = rows
            .iter()
            .enumerate()
            .filter(|&(i, _)| visible[i])
            .filter_map(|(i, row)| Some((row.at_ms?, Reverse(i))))
            .collect();
        sorted.sort_unstable();
        Clock {
            jump: (0..=sorted.len()).collect(),
            rows: sorted,
        }
    }

    fn take(&mut self, at_ms: Option<i64>, row: usize) {
        let key = at_ms.map(|at| (at, Reverse(row)));
        if let Some(place) = key.and_then(|key| self.rows.binary_search(&key).ok()) {
            self.jump[place + 1] = place;
        }
    }

    fn before(&mut self, at_ms: Option<i64>) -> Option<usize> {
        let at_ms = at_ms?;
        let mut at = self.rows.partition_point(|(time, _)| *time <= at_ms);
        let mut root = at;
        while self.jump[root] != root {
            root = self.jump[root];
        }
        while self.jump[at] != root {
            at = std::mem::replace(&mut self.jump[at], root);
        }
        let (_, Reverse(row)) = self.rows[root.checked_sub(1)?];
        Some(row)
    }
}

/// The all-zero leaf by which the client says "forget what I noted before".
const ZERO: &str = "00000000-0000-0000-0000-000000000000";

/// Builds the branch.
pub(crate) fn chain(live: &Live, file_len: u64) -> Chain {
    let mut tree = Tree::new(live);
    let lost_tail = tree.relink(live, file_len);
    let Some(leaf) = tree.leaf(live) else {
        return Chain {
            lost_tail,
            ..Chain::default()
        };
    };
    let (walk, gaps) = tree.walk(leaf);
    Chain {
        rows: tree.with_siblings(&walk),
        gaps,
        lost_tail,
    }
}

impl<'a> Tree<'a> {
    fn new(live: &'a Live) -> Tree<'a> {
        let rows = &live.rows[..];
        let index: HashMap<&str, usize> = rows
            .iter()
            .enumerate()
            .map(|(i, r)| (&*r.uuid, i))
            .collect();
        let parents: Vec<Option<usize>> = rows
            .iter()
            .map(|r| r.parent.as_ref().and_then(|p| index.get(&**p).copied()))
            .collect();
        let orphans = rows
            .iter()
            .zip(&parents)
            .map(|(r, p)| r.parent.is_some() && p.is_none())
            .collect();
        Tree {
            rows,
            // A sub-agent's own file holds nothing but sidechain rows.
            visible: if rows.iter().all(|r| r.sidechain) {
                vec![true; rows.len()]
            } else {
                rows.iter().map(|r| !r.sidechain).collect()
            },
            orphans,
            index,
            parents,
            bridges: true,
            rank: (rows.len()..2 * rows.len()).collect(),
        }
    }

    /// Links the preserved rows of the last compaction; whether they had to be given up.
    fn relink(&mut self, live: &Live, file_len: u64) -> bool {
        let Some((at, boundary)) = live
            .boundary
            .and_then(|at| Some((at, self.rows[at].boundary.as_ref()?)))
        else {
            return false;
        };
        self.parents[at] = None;
        self.orphans[at] = false;
        if !boundary.preserves() {
            if file_len >= SKIPS_OLD_ROWS {
                self.visible[..at].fill(false);
                self.bridges = false;
            }
            return false;
        }
        let list: Option<Vec<usize>> = match (&boundary.list, &boundary.segment) {
            (Some(list), _) => list.iter().map(|u| self.index.get(&**u).copied()).collect(),
            (None, Some((head, tail))) => self.segment(head, tail),
            (None, None) => None,
        };
        let anchor = boundary
            .anchor
            .as_ref()
            .and_then(|a| self.index.get(&**a).copied());
        let (Some(list), Some(anchor)) = (list, anchor) else {
            self.visible[..at].fill(false);
            return true;
        };
        let listed: HashSet<usize> = list.iter().copied().collect();
        let (Some(&first), Some(&last)) = (list.first(), list.last()) else {
            return false;
        };
        for row in 0..self.rows.len() {
            if listed.contains(&row) {
                continue;
            }
            if row < at && row != anchor {
                self.visible[row] = false;
            } else if row > at
                && row != anchor
                && (self.parents[row] == Some(anchor)
                    || self.orphans[row]
                    || self.parents[row].is_some_and(|p| p < at && !listed.contains(&p)))
            {
                self.parents[row] = Some(last);
                self.orphans[row] = false;
            }
        }
        for (place, &row) in list.iter().enumerate() {
            self.rank[row] = place;
        }
        for pair in list.windows(2) {
            self.parents[pair[1]] = Some(pair[0]);
            self.orphans[pair[1]] = false;
        }
        self.parents[first] = Some(anchor);
        self.orphans[first] = false;
        false
    }

    /// The rows from `head` to `tail` by their parents.
    fn segment(&self, head: &str, tail: &str) -> Option<Vec<usize>> {
        let mut at = *self.index.get(tail)?;
        let mut list = vec![at];
        let mut seen = HashSet::from([at]);
        while &*self.rows[at].uuid != head {
            at = self.parents[at]?;
            if !seen.insert(at) {
                return None;
            }
            list.push(at);
        }
        list.reverse();
        Some(list)
    }

    fn leaf(&self, live: &Live) -> Option<usize> {
        let boundary = live.boundary;
        let preserves = boundary
            .and_then(|at| self.rows[at].boundary.as_ref())
            .is_some_and(crate::row::Boundary::preserves);
        let after = boundary.map_or(0, |at| self.rows[at].offset);
        for prompt in live.prompts.iter().rev().filter(|p| p.offset >= after) {
            let Some(leaf) = prompt.leaf.as_deref() else {
                continue;
            };
            if leaf == ZERO {
                break;
            }
            let Some(&row) = self.index.get(leaf) else {
                continue;
            };
            if !self.visible[row] {
                continue;
            }
            // A note over a row from before a compaction that preserves rows means nothing.
            if preserves && boundary.is_some_and(|at| row < at) {
                continue;
            }
            return Some(if prompt.explicit {
                row
            } else {
                self.deepest(row)
            });
        }
        let anchor = boundary
            .and_then(|at| self.rows[at].boundary.as_ref()?.anchor.as_deref())
            .and_then(|anchor| self.index.get(anchor).copied());
        let last = (0..self.rows.len()).rev().find(|&row| self.visible[row])?;
        // Preserved rows stand before the boundary in the file and behind it in the tree.
        Some(if boundary == Some(last) || anchor == Some(last) {
            self.deepest(last)
        } else {
            last
        })
    }

    /// The deepest row below `from`; of equally deep ones the last in the file.
    fn deepest(&self, from: usize) -> usize {
        let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
        for row in (0..self.rows.len()).filter(|&r| self.visible[r]) {
            if let Some(parent) = self.parents[row] {
                children.entry(parent).or_default().push(row);
            }
        }
        let mut best = (0, from);
        let mut seen = HashSet::from([from]);
        let mut stack = vec![(0, from)];
        while let Some((depth, row)) = stack.pop() {
            best = best.max((depth, row));
            for &child in children.get(&row).into_iter().flatten() {
                if seen.insert(child) {
                    stack.push((depth + 1, child));
                }
            }
        }
        best.1
    }

    /// From the leaf to the root. Where a parent is missing, or is a descendant, the client goes on
    /// at the newest row that is not newer; so do we, and say where.
    fn walk(&self, leaf: usize) -> (Vec<usize>, Vec<usize>) {
        let mut walk = Vec::new();
        let mut gaps = Vec::new();
        let mut seen = vec![false; self.rows.len()];
        let mut clock = Clock::new(self.rows, &self.visible);
        let mut next = Some(leaf);
        while let Some(row) = next {
            seen[row] = true;
            clock.take(self.rows[row].at_ms, row);
            walk.push(row);
            let cycle = self.parents[row].is_some_and(|p| seen[p]);
            next = self.parents[row].filter(|&p| !seen[p] && self.visible[p]);
            if next.is_none() && (cycle || self.orphans[row]) {
                gaps.push(row);
                next = clock.before(self.rows[row].at_ms).filter(|_| self.bridges);
            }
        }
        walk.reverse();
        gaps.reverse();
        (walk, gaps)
    }

    /// Adds what belongs to the walked messages: their other rows, and the results of their calls.
    fn with_siblings(&self, walk: &[usize]) -> Vec<usize> {
        let on_walk: HashSet<usize> = walk.iter().copied().collect();
        let messages: HashSet<&str> = walk
            .iter()
            .filter_map(|&r| self.rows[r].message_id.as_deref())
            .collect();
        let mut answers: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut owner: HashMap<usize, &str> = HashMap::new();
        for (i, row) in self
            .rows
            .iter()
            .enumerate()
            .filter(|&(i, _)| self.visible[i])
        {
            if let Some(id) = row.message_id.as_deref()
                && messages.contains(id)
            {
                answers.entry(id).or_default().push(i);
                owner.insert(i, id);
            }
        }
        let mut results: HashMap<&str, Vec<usize>> = HashMap::new();
        for (i, row) in self
            .rows
            .iter()
            .enumerate()
            .filter(|&(i, _)| self.visible[i])
        {
            if row.kind != Kind::User || !row.results {
                continue;
            }
            // The row's own parent, not the relinked one: that is the row of its call.
            let call = row.parent.as_deref().and_then(|p| self.index.get(p));
            if let Some(id) = call.and_then(|c| owner.get(c)) {
                results.entry(id).or_default().push(i);
            }
        }
        for group in answers.values_mut().chain(results.values_mut()) {
            group.sort_by_key(|&row| self.rank[row]);
        }
        let mut out = Vec::with_capacity(walk.len());
        let mut placed = vec![false; self.rows.len()];
        let put = |row: usize, out: &mut Vec<usize>, placed: &mut Vec<bool>| {
            if !std::mem::replace(&mut placed[row], true) {
                out.push(row);
            }
        };
        for &row in walk {
            let Some(id) = self.rows[row].message_id.as_deref() else {
                put(row, &mut out, &mut placed);
                continue;
            };
            if placed[row] {
                continue;
            }
            for &sibling in answers.get(id).into_iter().flatten() {
                put(sibling, &mut out, &mut placed);
            }
            for &result in results.get(id).into_iter().flatten() {
                if !on_walk.contains(&result) || answers.get(id).is_some_and(|a| a.len() > 1) {
                    put(result, &mut out, &mut placed);
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{Line, understand};
    use proptest::prelude::*;

    fn live(lines: &[String]) -> Live {
        let mut live = Live::default();
        let rows = lines.iter().enumerate().filter_map(|(i, line)| {
            match understand(line, i as u64).unwrap() {
                Line::Row(row) => Some(*row),
                Line::LastPrompt(prompt) => {
                    live.prompts.push(prompt);
                    None
                }
                _ => None,
            }
        });
        let rows: Vec<Row> = rows.collect();
        live.extend(rows);
        live
    }

    fn row(uuid: &str, parent: &str, more: &str) -> String {
        let second = uuid.trim_matches(|c: char| !c.is_ascii_digit());
        format!(
            r#"{{"type":"user","uuid":"{uuid}","parentUuid":{parent},"timestamp":"2026-12-01T00:00:{second:0>2}.000Z","message":{{"role":"user","content":"x"}}{more}}}"#
        )
    }

    fn parent(n: usize) -> String {
        format!("\"r{n}\"")
    }

    fn names(lines: &[String], len: u64) -> Vec<String> {
        let live = live(lines);
        chain(&live, len)
            .rows
            .iter()
            .map(|&r| live.rows[r].uuid.to_string())
            .collect()
    }

    fn plain(n: usize) -> Vec<String> {
        let first = [row("r0", "null", "")];
        first
            .into_iter()
            .chain((1..n).map(|i| row(&format!("r{i}"), &parent(i - 1), "")))
            .collect()
    }

    #[test]
    fn the_newest_note_of_the_leaf_chooses_the_branch() {
        let note = |leaf: &str, more: &str| {
            format!(r#"{{"type":"last-prompt","leafUuid":"{leaf}"{more}}}"#)
        };
        let mut lines = plain(4);
        lines.push(row("r9", &parent(1), ""));
        assert_eq!(names(&lines, 0), ["r0", "r1", "r9"]);
        let with = |notes: &[String]| names(&[&lines[..], notes].concat(), 0);
        assert_eq!(with(&[note("r2", "")]), ["r0", "r1", "r2", "r3"]);
        assert_eq!(
            with(&[note("r2", ",\"explicit\":true")]),
            ["r0", "r1", "r2"]
        );
        assert_eq!(with(&[note("unknown", "")]), ["r0", "r1", "r9"]);
        assert_eq!(with(&[note("r3", ""), note("r9", "")]), ["r0", "r1", "r9"]);
        assert_eq!(
            with(&[note("r3", ""), note(ZERO, ",\"explicit\":true")]),
            ["r0", "r1", "r9"]
        );
    }

    #[test]
    fn sidechains_are_never_mixed_in() {
        let mut lines = plain(3);
        lines.push(row("r8", &parent(2), ",\"isSidechain\":true"));
        assert_eq!(names(&lines, 0), ["r0", "r1", "r2"]);
        let only: Vec<String> = lines[3..].to_vec();
        assert_eq!(names(&only, 0), ["r8"]);
    }

    #[test]
    fn a_lost_parent_is_bridged_by_time_and_told() {
        let mut lines = plain(6);
        lines.remove(3);
        lines.insert(0, row("r9", &parent(0), ""));
        let live = live(&lines);
        let found = chain(&live, 0);
        let names: Vec<&str> = found.rows.iter().map(|&r| &*live.rows[r].uuid).collect();
        assert_eq!(names, ["r0", "r1", "r2", "r4", "r5"]);
        assert_eq!(found.gaps.len(), 1);
        assert_eq!(&*live.rows[found.gaps[0]].uuid, "r4");
    }

    #[test]
    fn many_gaps_and_cycles_take_no_quadratic_time() {
        let lines: Vec<String> = (0..20_000)
            .map(|i| {
                let parent = if i % 3 == 0 {
                    parent((i * 7) % 20_000)
                } else {
                    format!("\"lost{i}\"")
                };
                let text = row(&format!("r{i}"), &parent, "");
                text.replace("00:00:", &format!("{:02}:{:02}:", i / 3600, i / 60 % 60))
                    .replace(&format!(":{i:0>2}.000Z"), &format!(":{:02}.000Z", i % 60))
            })
            .collect();
        assert!(!names(&lines, 0).is_empty());
    }

    proptest! {
        /// Without compactions and messages of several rows the branch is what a walk over a map
        /// of names gives.
        #[test]
        fn agrees_with_a_walk_by_name(picks in proptest::collection::vec(0usize..1000, 1..40), note in 0usize..80) {
            let parents: Vec<Option<usize>> = picks.iter().enumerate().map(|(i, p)| (i > 0 && p % 7 != 0).then(|| p % i)).collect();
            let mut lines: Vec<String> = parents.iter().enumerate()
                .map(|(i, p)| row(&format!("r{i}"), &p.map_or("null".into(), parent), "")).collect();
            let mut leaf = parents.len() - 1;
            if note < parents.len() {
                lines.push(format!(r#"{{"type":"last-prompt","leafUuid":"r{note}"}}"#));
                let depth = |mut r: usize| { let mut d = 0; while r != note { match parents[r] { Some(p) => { r = p; d += 1; } None => return None } } Some(d) };
                leaf = (0..parents.len()).filter_map(|r| Some((depth(r)?, r))).max().unwrap().1;
            }
            let mut expected = vec![format!("r{leaf}")];
            while let Some(p) = parents[leaf] { expected.insert(0, format!("r{p}")); leaf = p; }
            prop_assert_eq!(names(&lines, 0), expected);
        }
    }
}
