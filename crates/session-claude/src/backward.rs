//! Lines of a file from its end to its start, in memory bounded by the longest line that is kept.

use std::io::{self, Read, Seek, SeekFrom};

/// Lines longer than this are described first and loaded only when they are wanted.
const LONG: usize = 4 << 20;
const BLOCK: usize = 256 << 10;

/// Reads lines backwards.
#[derive(Debug)]
pub(crate) struct Backward<R> {
    file: R,
    /// Offset of `buffer[0]`.
    at: u64,
    buffer: Vec<u8>,
    /// End of what is not yet given out.
    end: usize,
    done: bool,
}

/// Where a line stands, without its line break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// Its bytes.
    Bytes(&'a [u8]),
    /// Too long to be held without need: see [`Backward::load`] and [`Backward::stream`].
    Long,
}

impl<R: Read + Seek> Backward<R> {
    /// Reads the first `len` bytes of a file from their end.
    pub(crate) fn new(file: R, len: u64) -> Backward<R> {
        Backward {
            file,
            at: len,
            buffer: Vec::new(),
            end: 0,
            done: false,
        }
    }

    /// The line before the one given last.
    pub(crate) fn line(&mut self) -> io::Result<Option<(Extent, Found<'_>)>> {
        if self.done {
            return Ok(None);
        }
        let mut searched = self.end;
        loop {
            if let Some(i) = memchr::memrchr(b'\n', &self.buffer[..searched]) {
                let (start, end) = (i + 1, self.end);
                self.end = i;
                return Ok(Some(self.piece(start, end)));
            }
            if self.at == 0 {
                self.done = true;
                let end = self.end;
                return Ok(Some(self.piece(0, end)));
            }
            if self.end > LONG {
                return self.long().map(Some);
            }
            searched = self.extend()?;
        }
    }

    fn piece(&self, start: usize, end: usize) -> (Extent, Found<'_>) {
        let extent = Extent {
            offset: self.at + start as u64,
            len: (end - start) as u64,
        };
        (extent, Found::Bytes(&self.buffer[start..end]))
    }

    /// Reads the block before the buffer into its front; the number of new bytes.
    fn extend(&mut self) -> io::Result<usize> {
        let block = (BLOCK.max(self.end) as u64).min(self.at);
        self.buffer.truncate(self.end);
        let mut grown = Vec::with_capacity(block as usize + self.end);
        self.file.seek(SeekFrom::Start(self.at - block))?;
        (&mut self.file).take(block).read_to_end(&mut grown)?;
        if grown.len() as u64 != block {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        grown.extend_from_slice(&self.buffer);
        self.buffer = grown;
        self.at -= block;
        self.end = self.buffer.len();
        Ok(block as usize)
    }

    /// Finds the start of a long line without keeping it.
    fn long(&mut self) -> io::Result<(Extent, Found<'_>)> {
        let line_end = self.at + self.end as u64;
        self.buffer = Vec::new();
        self.end = 0;
        loop {
            if self.at == 0 {
                self.done = true;
                let extent = Extent {
                    offset: 0,
                    len: line_end,
                };
                return Ok((extent, Found::Long));
            }
            self.end = 0;
            self.extend()?;
            if let Some(i) = memchr::memrchr(b'\n', &self.buffer) {
                self.end = i;
                let offset = self.at + i as u64 + 1;
                let extent = Extent {
                    offset,
                    len: line_end - offset,
                };
                return Ok((extent, Found::Long));
            }
        }
    }

    /// The bytes of a line.
    pub(crate) fn load(&mut self, extent: Extent) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.stream(extent)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// A reader over a line.
    pub(crate) fn stream(&mut self, extent: Extent) -> io::Result<impl Read + '_> {
        self.file.seek(SeekFrom::Start(extent.offset))?;
        Ok((&mut self.file).take(extent.len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    fn all(data: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut reader = Backward::new(Cursor::new(data), data.len() as u64);
        let mut out = Vec::new();
        loop {
            let (extent, bytes) = match reader.line().unwrap() {
                None => return out,
                Some((extent, Found::Bytes(bytes))) => (extent, Some(bytes.to_vec())),
                Some((extent, Found::Long)) => (extent, None),
            };
            let bytes = bytes.unwrap_or_else(|| reader.load(extent).unwrap());
            assert_eq!(bytes.len() as u64, extent.len);
            out.push((extent.offset, bytes));
        }
    }

    /// Splits forwards.
    fn oracle(data: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut at = 0;
        let mut out: Vec<(u64, Vec<u8>)> = data
            .split(|b| *b == b'\n')
            .map(|line| {
                let offset = at;
                at += line.len() as u64 + 1;
                (offset, line.to_vec())
            })
            .collect();
        out.reverse();
        out
    }

    #[test]
    fn lines_longer_than_any_buffer_are_found() {
        let mut data = b"first\n".to_vec();
        data.extend(std::iter::repeat_n(b'x', 2 * LONG + 17));
        data.extend_from_slice(b"\nlast\n");
        assert_eq!(all(&data), oracle(&data));
        let data = vec![b'y'; 2 * LONG];
        assert_eq!(all(&data), oracle(&data));
    }

    proptest! {
        #[test]
        fn agrees_with_splitting_forwards(lines in proptest::collection::vec(0usize..400_000, 0..6), end: bool) {
            let mut data = Vec::new();
            for (i, n) in lines.iter().enumerate() {
                data.extend(std::iter::repeat_n(b'a' + i as u8, *n));
                data.push(b'\n');
            }
            if end { data.pop(); }
            prop_assert_eq!(all(&data), oracle(&data));
        }
    }
}
