//! What a check needs of every row beside its size: identities, links, pairs, and the places of
//! what does not belong in a transcript. Judged in `check.rs`.

use crate::glance::Glance;
use crate::json::{self, Array, Object};
use crate::lines::Place;
use crate::{image, secret};

/// A row's place in the tree. An identity of 0 is none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    pub(crate) uuid: u128,
    pub(crate) parent: u128,
    /// The message that an answer's row belongs to.
    pub(crate) message: u128,
    pub(crate) place: Place,
    pub(crate) kind: Kind,
    pub(crate) sidechain: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Words of the user, or what the client put in their place.
    Prompt,
    /// Results of calls.
    Results,
    Answer,
    Attachment,
    System,
    Other,
}

/// A call or a result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Half {
    pub(crate) id: u128,
    pub(crate) empty: bool,
    /// The row's identity: newer versions of a row share it.
    pub(crate) row: u128,
    pub(crate) message: u128,
    pub(crate) sidechain: bool,
    pub(crate) place: Place,
}

/// What a compaction says that it keeps.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) anchor: u128,
    pub(crate) rows: Vec<u128>,
    pub(crate) place: Place,
}

/// How often something was seen, and where first.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seen {
    pub(crate) count: u64,
    pub(crate) first: Option<Place>,
}

#[derive(Debug, Default)]
pub(crate) struct Probe {
    pub(crate) links: Vec<Link>,
    pub(crate) calls: Vec<Half>,
    pub(crate) results: Vec<Half>,
    pub(crate) kept: Vec<Kept>,
    /// Places of compactions.
    pub(crate) boundaries: Vec<Place>,
    /// Leaves that the client wrote down.
    pub(crate) leaves: Vec<(u128, Place)>,
    pub(crate) images: Vec<(image::Size, Place)>,
    pub(crate) secrets: [Seen; secret::KINDS.len()],
    pub(crate) invalid_utf8: Seen,
    pub(crate) surrogates: Seen,
    pub(crate) carriage_returns: Seen,
    /// The last line, when it is whole and has no line end.
    pub(crate) open_end: Option<Place>,
}

impl Seen {
    fn add(&mut self, count: u64, place: Place) {
        if count > 0 {
            self.count += count;
            self.first.get_or_insert(place);
        }
    }

    fn append(&mut self, other: Seen, lines: u64) {
        if let Some(place) = other.first {
            self.add(other.count, moved(place, lines));
        }
    }
}

fn moved(place: Place, lines: u64) -> Place {
    Place {
        line: place.line.map(|n| n + lines),
        ..place
    }
}

/// The identity of some bytes; 0 for none. Two different ones are taken for the same with a
/// chance of one in 2^128 (FNV-1a).
pub(crate) fn key(bytes: &[u8]) -> u128 {
    if bytes.is_empty() {
        return 0;
    }
    bytes
        .iter()
        .fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |h: u128, b| {
            (h ^ u128::from(*b)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
        })
}

impl Probe {
    /// Takes a line in: `body` is the line without its end.
    pub(crate) fn line(&mut self, line: &[u8], body: &[u8], place: Place) {
        if line.ends_with(b"\r\n") {
            self.carriage_returns.add(1, place);
        }
        if line.ends_with(b"\n") {
            self.open_end = None;
        } else if body.last() == Some(&b'}') {
            self.open_end = Some(place);
        }
    }

    /// Takes a row in.
    pub(crate) fn row(&mut self, look: &Glance<'_>, row: &[u8], place: Place) {
        if let Err(e) = std::str::from_utf8(row) {
            let offset = place.offset + e.valid_up_to() as u64;
            self.invalid_utf8.add(1, Place { offset, ..place });
        }
        self.surrogates
            .add(u64::from(has_lone_surrogate(row)), place);
        for (seen, count) in self.secrets.iter_mut().zip(secret::count(row)) {
            seen.add(count, place);
        }
        if look.kind == b"last-prompt" {
            self.leaves.push((key(look.leaf), place));
        }
        if look.is_boundary() {
            self.boundaries.push(place);
            self.kept.extend(kept(look, place));
        }
        let message = look
            .message
            .and_then(|m| json::field(m, "id"))
            .map_or(0, key);
        let results = self.results.len();
        for block in look.content().into_iter().flat_map(Array::new) {
            self.block(block, look, message, place);
        }
        if look.uuid.is_empty() {
            return;
        }
        let kind = match look.kind {
            b"user" if self.results.len() > results => Kind::Results,
            b"user" => Kind::Prompt,
            b"assistant" => Kind::Answer,
            b"attachment" => Kind::Attachment,
            b"system" => Kind::System,
            _ => Kind::Other,
        };
        self.links.push(Link {
            uuid: key(look.uuid),
            parent: key(look.parent),
            message,
            place,
            kind,
            sidechain: look.sidechain,
        });
    }

    fn block(&mut self, block: &[u8], look: &Glance<'_>, message: u128, place: Place) {
        let (mut kind, mut id, mut content, mut source) = (&b""[..], None, None, None);
        for (name, value) in Object::new(block) {
            match name {
                b"type" => kind = value,
                b"id" | b"tool_use_id" => id = json::raw_text(value),
                b"content" => content = Some(value),
                b"source" => source = Some(value),
                _ => {}
            }
        }
        let half = || Half {
            id: key(id.unwrap_or_default()),
            empty: id.is_none_or(<[u8]>::is_empty),
            row: key(look.uuid),
            message,
            sidechain: look.sidechain,
            place,
        };
        match (look.kind, kind) {
            (b"assistant", b"\"tool_use\"") => self.calls.push(half()),
            (b"user", b"\"tool_result\"") => {
                self.results.push(half());
                for part in content.into_iter().flat_map(Array::new) {
                    self.image(json::field(part, "source"), place);
                }
            }
            (b"user", _) => self.image(source, place),
            _ => {}
        }
    }

    fn image(&mut self, source: Option<&[u8]>, place: Place) {
        let data = source
            .and_then(|s| json::field(s, "data"))
            .and_then(json::raw_text);
        if let Some(size) = data.and_then(image::size_of_base64)
            && size.width.max(size.height) > image::LARGEST
        {
            self.images.push((size, place));
        }
    }

    /// Takes in what the next chunk saw, whose lines begin with number `lines`.
    pub(crate) fn append(&mut self, mut next: Probe, lines: u64) {
        let shift = |place: &mut Place| *place = moved(*place, lines);
        next.links.iter_mut().for_each(|l| shift(&mut l.place));
        next.calls.iter_mut().for_each(|l| shift(&mut l.place));
        next.results.iter_mut().for_each(|l| shift(&mut l.place));
        next.kept.iter_mut().for_each(|l| shift(&mut l.place));
        next.boundaries.iter_mut().for_each(shift);
        next.leaves.iter_mut().for_each(|l| shift(&mut l.1));
        next.images.iter_mut().for_each(|l| shift(&mut l.1));
        next.open_end.iter_mut().for_each(shift);
        self.links.append(&mut next.links);
        self.calls.append(&mut next.calls);
        self.results.append(&mut next.results);
        self.kept.append(&mut next.kept);
        self.boundaries.append(&mut next.boundaries);
        self.leaves.append(&mut next.leaves);
        self.images.append(&mut next.images);
        for (seen, other) in self.secrets.iter_mut().zip(next.secrets) {
            seen.append(other, lines);
        }
        self.invalid_utf8.append(next.invalid_utf8, lines);
        self.surrogates.append(next.surrogates, lines);
        self.carriage_returns.append(next.carriage_returns, lines);
        self.open_end = next.open_end;
    }
}

/// The rows that a compaction keeps: those of its list; of a segment only both ends are named.
fn kept(look: &Glance<'_>, place: Place) -> Option<Kept> {
    let compact = look.compact?;
    let name = |object, field| {
        json::field(object, field)
            .and_then(json::raw_text)
            .map_or(0, key)
    };
    if let Some(list) = json::field(compact, "preservedMessages").filter(|l| l.starts_with(b"{")) {
        let uuids = json::field(list, "uuids");
        return Some(Kept {
            anchor: name(list, "anchorUuid"),
            rows: uuids
                .into_iter()
                .flat_map(Array::new)
                .filter_map(json::raw_text)
                .map(key)
                .collect(),
            place,
        });
    }
    let segment = json::field(compact, "preservedSegment").filter(|s| s.starts_with(b"{"))?;
    Some(Kept {
        anchor: name(segment, "anchorUuid"),
        rows: vec![name(segment, "headUuid"), name(segment, "tailUuid")],
        place,
    })
}

/// Whether an escape stands for half of a surrogate pair without its other half.
fn has_lone_surrogate(row: &[u8]) -> bool {
    let mut at = 0;
    while let Some(n) = memchr::memchr(b'\\', &row[at..]) {
        let escape = at + n;
        at = (escape + 2).min(row.len());
        let Some(unit) = unit(row, escape) else {
            continue;
        };
        match unit {
            0xd800..=0xdbff => {
                if !matches!(self::unit(row, escape + 6), Some(0xdc00..=0xdfff)) {
                    return true;
                }
                at = escape + 12;
            }
            0xdc00..=0xdfff => return true,
            _ => {}
        }
    }
    false
}

/// The value of a `\uXXXX` escape at `at`.
fn unit(row: &[u8], at: usize) -> Option<u32> {
    let digits = row.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::has_lone_surrogate;

    #[test]
    fn only_halves_without_their_other_half_are_lone() {
        for whole in [
            r"a\ud83d\ude00b",
            r"\\ud83d",
            r"\u00e9",
            "plain",
            r"\",
            r"\ud83",
        ] {
            assert!(!has_lone_surrogate(whole.as_bytes()), "{whole}");
        }
        for lone in [r"a\ud83d", r"\ude00", r"\ud83d\ud83d\ude00", r"\\\ud83dx"] {
            assert!(has_lone_surrogate(lone.as_bytes()), "{lone}");
        }
    }
}
