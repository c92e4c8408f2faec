//! Lines of a file: found from its end without reading what lies before, and read from a place on.
//! A line may have any length; of one that is too long, and of a run of zeros, only the beginning is
//! held.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;

const CHUNK: u64 = 256 * 1024;
/// Bytes of a line's beginning that decide over its kind.
const HEAD: usize = 512;
/// The longest line that is held, in bytes.
pub(crate) const LONGEST: u64 = 256 * 1024 * 1024;

/// Where a line stands in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// First byte.
    pub(crate) start: u64,
    /// First byte behind the line and its line break.
    pub(crate) end: u64,
    /// Whether it ends in a line break.
    pub(crate) terminated: bool,
}

impl Extent {
    /// Bytes of the line with its line break.
    pub(crate) fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Whether only its beginning is held, whatever it is.
    pub(crate) fn is_too_long(&self) -> bool {
        self.len() > LONGEST
    }
}

/// Goes through a file's lines from the end.
pub(crate) struct Backward<'a> {
    file: &'a File,
    /// End of what is still to come.
    end: u64,
    chunk: Vec<u8>,
    chunk_start: u64,
    /// Bytes that were read.
    pub(crate) read: u64,
    limit: u64,
}

impl<'a> Backward<'a> {
    /// The lines before byte `end`.
    pub(crate) fn new(file: &'a File, end: u64) -> Backward<'a> {
        Backward {
            file,
            end,
            chunk: Vec::new(),
            chunk_start: end,
            read: 0,
            limit: u64::MAX,
        }
    }

    /// The same, ending where more than `limit` bytes would have to be read.
    pub(crate) fn limited(file: &'a File, end: u64, limit: u64) -> Backward<'a> {
        Backward {
            limit,
            ..Backward::new(file, end)
        }
    }

    /// The next line towards the beginning.
    pub(crate) fn next(&mut self) -> io::Result<Option<Extent>> {
        if self.end == 0 {
            return Ok(None);
        }
        let end = self.end;
        let terminated = self.byte(end - 1)? == b'\n';
        let mut from = if terminated { end - 1 } else { end };
        let start = loop {
            if from == 0 {
                break 0;
            }
            if from <= self.chunk_start {
                if self.read >= self.limit {
                    return Ok(None);
                }
                self.load(from)?;
            }
            let inside = (from - self.chunk_start) as usize;
            if let Some(at) = memchr::memrchr(b'\n', &self.chunk[..inside]) {
                break self.chunk_start + at as u64 + 1;
            }
            from = self.chunk_start;
        };
        self.end = start;
        Ok(Some(Extent {
            start,
            end,
            terminated,
        }))
    }

    fn byte(&mut self, at: u64) -> io::Result<u8> {
        if at < self.chunk_start || at >= self.chunk_start + self.chunk.len() as u64 {
            self.load(at + 1)?;
        }
        Ok(self.chunk[(at - self.chunk_start) as usize])
    }

    /// Loads the chunk that ends at `end`.
    fn load(&mut self, end: u64) -> io::Result<()> {
        let start = end.saturating_sub(CHUNK);
        self.chunk.resize((end - start) as usize, 0);
        self.file.read_exact_at(&mut self.chunk, start)?;
        self.chunk_start = start;
        self.read += end - start;
        Ok(())
    }
}

/// The beginning of a line.
pub(crate) fn head(file: &File, extent: Extent) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; (extent.len() as usize).min(HEAD)];
    file.read_exact_at(&mut bytes, extent.start)?;
    Ok(bytes)
}

/// A whole line without its line break. Of a line that is too long, or that begins with a zero and
/// so is no JSON, the beginning.
pub(crate) fn read(file: &File, extent: Extent) -> io::Result<Vec<u8>> {
    let mut bytes = head(file, extent)?;
    if extent.is_too_long() || bytes.first() == Some(&0) {
        return Ok(bytes);
    }
    bytes.resize(extent.len() as usize, 0);
    file.read_exact_at(&mut bytes, extent.start)?;
    trim(&mut bytes);
    Ok(bytes)
}

fn trim(bytes: &mut Vec<u8>) {
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
}

/// Calls `visit` with each line from `start` to `end`, which must be the starts of lines, until it
/// returns `false`. The line break is not in the bytes. Of what [`read`] does not hold, the bytes
/// are the beginning.
pub(crate) fn forward(
    file: &File,
    start: u64,
    end: u64,
    visit: &mut dyn FnMut(Extent, &[u8]) -> bool,
) -> io::Result<()> {
    let source = At { file, at: start }.take(end.saturating_sub(start));
    stream(source, start, visit)
}

/// As [`forward`], over anything that can be read.
pub(crate) fn stream(
    source: impl Read,
    start: u64,
    visit: &mut dyn FnMut(Extent, &[u8]) -> bool,
) -> io::Result<()> {
    stream_up_to(LONGEST, source, start, visit)
}

fn stream_up_to(
    longest: u64,
    source: impl Read,
    start: u64,
    visit: &mut dyn FnMut(Extent, &[u8]) -> bool,
) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(CHUNK as usize, source);
    let mut at = start;
    let mut line = Vec::new();
    loop {
        line.clear();
        // One huge line must not keep its memory for the rest of the file.
        line.shrink_to(4 * CHUNK as usize);
        let (len, terminated) = next_line(longest, &mut reader, &mut line)?;
        if len == 0 {
            return Ok(());
        }
        let extent = Extent {
            start: at,
            end: at + len,
            terminated,
        };
        at += len;
        if line.len() as u64 == len {
            trim(&mut line);
        }
        if !visit(extent, &line) {
            return Ok(());
        }
    }
}

/// Reads to the end of a line and says how long it is, and whether it ends in a line break.
fn next_line(
    longest: u64,
    reader: &mut impl BufRead,
    line: &mut Vec<u8>,
) -> io::Result<(u64, bool)> {
    let mut len = 0;
    loop {
        let chunk = match reader.fill_buf() {
            Ok(chunk) => chunk,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        if chunk.is_empty() {
            return Ok((len, false));
        }
        let end = memchr::memchr(b'\n', chunk);
        let part = &chunk[..end.map_or(chunk.len(), |at| at + 1)];
        len += part.len() as u64;
        if len > longest || line.first().or(part.first()) == Some(&0) {
            line.truncate(HEAD);
            let room = HEAD - line.len();
            line.extend_from_slice(&part[..part.len().min(room)]);
            line.shrink_to(HEAD);
        } else {
            line.extend_from_slice(part);
        }
        let taken = part.len();
        reader.consume(taken);
        if end.is_some() {
            return Ok((len, true));
        }
    }
}

/// Reads a shared file from a place on, without a position of the file's own.
pub(crate) struct At<'a> {
    pub(crate) file: &'a File,
    pub(crate) at: u64,
}

impl Read for At<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read_at(buf, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

/// The kind that a line's beginning names, where it names it before the payload.
pub(crate) fn kind(head: &[u8]) -> Option<&[u8]> {
    const KEY: &[u8] = b"\"type\":";
    let limit = memchr::memmem::find(head, b"\"payload\"").unwrap_or(head.len());
    let at = memchr::memmem::find(&head[..limit], KEY)? + KEY.len();
    let rest = head.get(at..)?.trim_ascii_start().strip_prefix(b"\"")?;
    let end = memchr::memchr(b'"', rest)?;
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    proptest! {
        /// The oracle splits the bytes at line breaks.
        #[test]
        fn both_directions_agree_with_splitting(lines in proptest::collection::vec("[a-c\r]{0,9}", 0..9), tail in "[a-c]{0,3}") {
            let mut bytes = Vec::new();
            for line in &lines {
                bytes.extend_from_slice(line.as_bytes());
                bytes.push(b'\n');
            }
            bytes.extend_from_slice(tail.as_bytes());
            let file = file(&bytes);
            let len = bytes.len() as u64;
            let mut expected = Vec::new();
            let mut at = 0;
            for part in bytes.split_inclusive(|b| *b == b'\n') {
                expected.push((at, at + part.len() as u64, part.ends_with(b"\n")));
                at += part.len() as u64;
            }
            let mut ahead = Vec::new();
            forward(&file, 0, len, &mut |e, _| { ahead.push((e.start, e.end, e.terminated)); true }).unwrap();
            prop_assert_eq!(&ahead, &expected);
            let mut back = Vec::new();
            let mut backward = Backward::new(&file, len);
            while let Some(e) = backward.next().unwrap() {
                back.push((e.start, e.end, e.terminated));
            }
            back.reverse();
            prop_assert_eq!(&back, &expected);
        }
    }

    #[test]
    fn lines_longer_than_a_chunk_are_found() {
        let mut bytes = vec![b'x'; 3 * CHUNK as usize];
        bytes.push(b'\n');
        bytes.extend_from_slice(b"end\n");
        let file = file(&bytes);
        let mut backward = Backward::new(&file, bytes.len() as u64);
        let last = backward.next().unwrap().unwrap();
        assert_eq!(read(&file, last).unwrap(), b"end");
        let long = backward.next().unwrap().unwrap();
        assert_eq!((long.start, long.len()), (0, 3 * CHUNK + 1));
        assert_eq!(backward.next().unwrap(), None);
    }

    /// Of what is not held only the beginning comes; the lines around it come whole.
    #[test]
    fn what_is_too_long_or_begins_with_a_zero_is_held_in_part() {
        let long = "x".repeat(5000);
        let zeros = "\0".repeat(3000);
        let text = format!("one\n{long}\ntwo\n{zeros}\n{zeros}{{}}\nthree\n{zeros}");
        let mut found = Vec::new();
        let visit = &mut |e: Extent, bytes: &[u8]| {
            found.push((e.len(), bytes.len(), e.terminated));
            true
        };
        stream_up_to(4000, text.as_bytes(), 0, visit).unwrap();
        assert_eq!(
            found,
            [
                (4, 3, true),
                (5001, HEAD, true),
                (4, 3, true),
                (3001, HEAD, true),
                (3003, HEAD, true),
                (6, 5, true),
                (3000, HEAD, false),
            ]
        );
    }

    #[test]
    fn the_kind_is_the_lines_own() {
        let line = br#"{"timestamp":"t","ordinal":7,"type":"event_msg","payload":{"type":"x"}}"#;
        assert_eq!(kind(line), Some(&b"event_msg"[..]));
        assert_eq!(kind(br#"{"payload":{"type":"x"},"type":"y"}"#), None);
        assert_eq!(kind(b"\0\0\0"), None);
    }
}
