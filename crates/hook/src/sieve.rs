//! Finds the end of a JSON document in a stream and keeps a bounded part of it. Pure; the reading
//! itself is in `read.rs`, the parsing in `json.rs`.
//!
//! The sieve knows just enough JSON to see where strings, members and the document end. A member
//! that would take the kept text past its limit is replaced by `null`, so that the members behind
//! a huge tool result are still read.

use crate::error::{Error, ErrorKind};

const BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// Whether the document is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// More bytes are needed.
    Open,
    /// The last byte of the document was seen.
    Complete,
}

/// Takes a stream in pieces of any size and keeps at most `limit` bytes of its one JSON object.
#[derive(Debug)]
pub struct Sieve {
    kept: Vec<u8>,
    limit: usize,
    bom_seen: usize,
    depth: u32,
    in_string: bool,
    escaped: bool,
    /// Where the value of the current top-level member starts in `kept`.
    value_at: Option<usize>,
    /// Start and end, in `kept`, of the earlier values that are large enough to give up.
    large: Vec<(usize, usize)>,
    dropping: bool,
    dropped: usize,
    complete: bool,
}

impl Sieve {
    /// A sieve that keeps at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            kept: Vec::new(),
            limit,
            bom_seen: 0,
            depth: 0,
            in_string: false,
            escaped: false,
            value_at: None,
            large: Vec::new(),
            dropping: false,
            dropped: 0,
            complete: false,
        }
    }

    /// Takes the next piece of the stream.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnObject`] when the document is no object or when anything but white space
    /// follows it, [`ErrorKind::TooLarge`] when keys alone exceed the limit.
    pub fn push(&mut self, piece: &[u8]) -> Result<Status, Error> {
        let mut rest = piece;
        while let Some((&byte, behind)) = rest.split_first() {
            if self.in_string && !self.escaped {
                let plain = rest
                    .iter()
                    .position(|b| matches!(b, b'"' | b'\\'))
                    .unwrap_or(rest.len());
                if plain > 0 {
                    self.keep_run(&rest[..plain])?;
                    rest = &rest[plain..];
                    continue;
                }
            }
            if self.complete {
                if !byte.is_ascii_whitespace() {
                    return Err(Error::new(
                        ErrorKind::NotAnObject,
                        "text follows the JSON object",
                    ));
                }
            } else if self.depth == 0 {
                self.start(byte)?;
            } else {
                self.step(byte)?;
            }
            rest = behind;
        }
        Ok(if self.complete {
            Status::Complete
        } else {
            Status::Open
        })
    }

    /// How many top-level members were replaced by `null` so far.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// The kept text; broken UTF-8 is replaced.
    ///
    /// # Errors
    /// [`ErrorKind::Incomplete`] when the document did not end.
    pub fn finish(self) -> Result<String, Error> {
        if !self.complete {
            return Err(Error::new(
                ErrorKind::Incomplete,
                "the input ends inside the JSON object",
            ));
        }
        Ok(match String::from_utf8(self.kept) {
            Ok(text) => text,
            Err(broken) => String::from_utf8_lossy(broken.as_bytes()).into_owned(),
        })
    }

    fn start(&mut self, byte: u8) -> Result<(), Error> {
        if self.bom_seen < BOM.len() && byte == BOM[self.bom_seen] {
            self.bom_seen += 1;
        } else if byte == b'{' {
            self.depth = 1;
            self.kept.push(byte);
        } else if !byte.is_ascii_whitespace() {
            return Err(Error::new(
                ErrorKind::NotAnObject,
                "the input is not a JSON object",
            ));
        }
        Ok(())
    }

    fn step(&mut self, byte: u8) -> Result<(), Error> {
        if self.in_string {
            if self.escaped {
                self.escaped = false;
            } else if byte == b'\\' {
                self.escaped = true;
            } else if byte == b'"' {
                self.in_string = false;
            }
            return self.keep(byte);
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => {
                self.depth -= 1;
                if self.depth == 0 {
                    self.end_value();
                    self.complete = true;
                }
            }
            b',' if self.depth == 1 => self.end_value(),
            b':' if self.depth == 1 && self.value_at.is_none() => {
                self.keep(byte)?;
                self.value_at = Some(self.kept.len());
                return Ok(());
            }
            _ => {}
        }
        self.keep(byte)
    }

    fn end_value(&mut self) {
        let end = self.kept.len();
        if let Some(start) = self.value_at.take()
            && !self.dropping
            && end - start >= self.worth_dropping()
        {
            self.large.push((start, end));
        }
        self.dropping = false;
    }

    /// Keeps a part of a string: at once where it fits.
    fn keep_run(&mut self, run: &[u8]) -> Result<(), Error> {
        if self.dropping {
            return Ok(());
        }
        if self.kept.len() + run.len() + 5 <= self.limit {
            self.kept.extend_from_slice(run);
            return Ok(());
        }
        run.iter().try_for_each(|byte| self.keep(*byte))
    }

    fn keep(&mut self, byte: u8) -> Result<(), Error> {
        if self.dropping {
            return Ok(());
        }
        // Five bytes of room: `null` and the brace that ends the object.
        if self.kept.len() + 5 >= self.limit && !self.complete {
            self.drop_largest()?;
            if self.dropping {
                return Ok(());
            }
        }
        self.kept.push(byte);
        Ok(())
    }

    /// Smaller values are not given up, so that each one given up makes room for a while.
    fn worth_dropping(&self) -> usize {
        (self.limit / 64).max(b"null".len() + 1)
    }

    /// Replaces the largest value so far, the unfinished one included, by `null`.
    fn drop_largest(&mut self) -> Result<(), Error> {
        let largest = (0..self.large.len()).max_by_key(|&i| self.large[i].1 - self.large[i].0);
        let earlier = largest.map_or(0, |i| self.large[i].1 - self.large[i].0);
        let current = self.value_at.map_or(0, |start| self.kept.len() - start);
        if let Some(start) = self.value_at
            && current >= earlier
            && current >= self.worth_dropping()
        {
            self.kept.truncate(start);
            self.kept.extend_from_slice(b"null");
            self.dropping = true;
        } else if let Some(index) = largest {
            let (start, end) = self.large.remove(index);
            self.kept.splice(start..end, *b"null");
            let shift = earlier - b"null".len();
            for (from, to) in self.large.iter_mut().filter(|(from, _)| *from > start) {
                *from -= shift;
                *to -= shift;
            }
            self.value_at = self.value_at.map(|at| at - shift);
        } else {
            return Err(Error::new(
                ErrorKind::TooLarge,
                "the input exceeds the size limit",
            ));
        }
        self.dropped += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &[u8], limit: usize) -> Result<(String, usize), ErrorKind> {
        let mut sieve = Sieve::new(limit);
        sieve.push(text).map_err(|e| e.kind())?;
        let dropped = sieve.dropped();
        sieve.finish().map(|t| (t, dropped)).map_err(|e| e.kind())
    }

    #[test]
    fn the_end_of_the_object_is_the_end() {
        let mut sieve = Sieve::new(1024);
        assert_eq!(sieve.push(br#"{"a":"}\"]","b":[{}"#).unwrap(), Status::Open);
        assert_eq!(sieve.push(b"]}").unwrap(), Status::Complete);
        assert_eq!(sieve.push(b" \r\n").unwrap(), Status::Complete);
        assert_eq!(sieve.finish().unwrap(), r#"{"a":"}\"]","b":[{}]}"#);
    }

    #[test]
    fn a_large_member_is_dropped_and_the_next_ones_are_kept() {
        let large = "x".repeat(5000);
        let text = format!(r#"{{"a":1,"big":{{"k":["{large}"]}},"also":"{large}","z":"end"}}"#);
        let (kept, dropped) = whole(text.as_bytes(), 1000).unwrap();
        assert_eq!(kept, r#"{"a":1,"big":null,"also":null,"z":"end"}"#);
        assert_eq!(dropped, 2);
    }

    #[test]
    fn keys_that_exceed_the_limit_are_an_error() {
        let text = format!(r#"{{"{}":1}}"#, "k".repeat(2000));
        assert_eq!(whole(text.as_bytes(), 1000), Err(ErrorKind::TooLarge));
    }

    #[test]
    fn other_documents_and_trailing_text_are_refused() {
        for text in ["null", "[]", "\"x\"", "hello", "{}{}", "{} x"] {
            assert_eq!(
                whole(text.as_bytes(), 100),
                Err(ErrorKind::NotAnObject),
                "{text}"
            );
        }
        for text in ["", "{", "{\"a", "\u{feff}"] {
            assert_eq!(
                whole(text.as_bytes(), 100),
                Err(ErrorKind::Incomplete),
                "{text}"
            );
        }
    }

    #[test]
    fn a_byte_order_mark_and_broken_utf8_are_survived() {
        assert_eq!(whole("\u{feff}{}".as_bytes(), 100).unwrap().0, "{}");
        assert_eq!(
            whole(b"{\"a\":\"\x80\xff\"}", 100).unwrap().0,
            "{\"a\":\"\u{fffd}\u{fffd}\"}"
        );
    }
}
