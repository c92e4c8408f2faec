//! Server-sent events: bytes in, the `data` of whole events out. Other fields are of no use here.

/// Reads a stream that arrives in pieces of any size.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// The line that is not yet ended.
    line: Vec<u8>,
    /// A `\n` that follows belongs to the `\r` before it.
    after_cr: bool,
    first_line_seen: bool,
    data: Option<Vec<u8>>,
}

impl Events {
    /// Takes the next bytes and gives the events that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut events = Vec::new();
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = rest.iter().position(|&byte| matches!(byte, b'\n' | b'\r')) {
            self.line.extend_from_slice(&rest[..end]);
            events.extend(self.end_line());
            let cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if cr {
                self.after_cr = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
        }
        self.line.extend_from_slice(rest);
        events
    }

    /// The event that the end of the stream leaves without its blank line. The standard drops it,
    /// but servers and proxies forget the line, and a whole JSON document speaks for itself.
    pub(crate) fn finish(mut self) -> Option<Vec<u8>> {
        let ended = self.end_line();
        ended.or(self.data).filter(|data| !data.is_empty())
    }

    fn end_line(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        let first = !std::mem::replace(&mut self.first_line_seen, true);
        let line = if first {
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line)
        } else {
            &line
        };
        if line.is_empty() {
            return self.data.take().filter(|data| !data.is_empty());
        }
        if let Some(value) = line
            .strip_prefix(b"data")
            .filter(|rest| rest.is_empty() || rest[0] == b':')
        {
            let value = value.strip_prefix(b":").unwrap_or(value);
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                none => *none = Some(value.to_vec()),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let mut events = Events::default();
        let mut data: Vec<_> = pieces.iter().flat_map(|piece| events.push(piece)).collect();
        data.extend(events.finish());
        data.into_iter()
            .map(|data| String::from_utf8(data).unwrap())
            .collect()
    }

    #[test]
    fn every_form_of_an_event_is_read() {
        let table: [(&str, &[&str]); 9] = [
            (
                "data: {\"a\":1}\n\ndata:{\"b\":2}\r\n\r\n",
                &["{\"a\":1}", "{\"b\":2}"],
            ),
            (": comment\n\nevent: x\nid: 3\ndata: a\n\n", &["a"]),
            ("data: a\ndata: b\n\n", &["a\nb"]),
            ("data: a\rdata: b\r\r", &["a\nb"]),
            ("\u{feff}data: a\n\n", &["a"]),
            ("data: a\n", &["a"]),
            ("data: a", &["a"]),
            ("database: a\n\n", &[]),
            ("data\n\n\n\n", &[]),
        ];
        for (text, expected) in table {
            assert_eq!(read(&[text.as_bytes()]), expected, "{text:?}");
        }
    }

    /// Reads the whole text at once, by normalising it first.
    fn oracle(text: &str) -> Vec<String> {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let blocks = text.split("\n\n").map(|block| {
            let lines = block
                .split('\n')
                .filter_map(|line| line.strip_prefix("data:"));
            lines
                .map(|value| value.strip_prefix(' ').unwrap_or(value))
                .collect::<Vec<_>>()
                .join("\n")
        });
        blocks.filter(|block| !block.is_empty()).collect()
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_give_the_same_events(
            lines in vec(
                prop_oneof![Just(String::new()), "data: ?[a-zé:]{0,5}", ":[a-z]{0,3}"],
                0..20,
            ),
            ends in vec(prop_oneof![Just("\n"), Just("\r\n"), Just("\r")], 20),
            cuts in vec(1usize..7, 1..30),
        ) {
            let ended = lines.iter().zip(&ends);
            let text: String = ended.flat_map(|(line, end)| [line.as_str(), *end]).collect();
            let mut rest = text.as_bytes();
            let mut pieces = Vec::new();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break; }
                let (piece, tail) = rest.split_at((*cut).min(rest.len()));
                pieces.push(piece);
                rest = tail;
            }
            prop_assert_eq!(read(&pieces), oracle(&text));
        }
    }
}
