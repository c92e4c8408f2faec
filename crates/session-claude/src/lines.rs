//! Splits a file's bytes into rows, whatever happened to them.
//!
//! Lines end with `\n` and with nothing else. Every byte of the input comes back in exactly one
//! [`Piece`], in order, so that printing the pieces is the identity. What is inside a row is not
//! looked at here beyond "it is one JSON object".

use memchr::{memchr, memmem};
use serde::de::IgnoredAny;

use crate::{Code, Finding};

const BOM: &[u8] = b"\xef\xbb\xbf";

/// What a piece of the file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PieceKind {
    /// One whole JSON object.
    Row,
    /// Line ends, white space, byte order marks.
    Space,
    /// Bytes that could not be read as a row.
    Lost,
}

/// A stretch of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    /// What it is.
    pub kind: PieceKind,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Line in the file, from 1, where it is known.
    pub line: Option<u64>,
}

/// Splits a whole file, or the end of one that begins at `offset`, which must be the start of a
/// line. `line` is the number of that line, from 1, where it is known.
pub fn split(bytes: &[u8], offset: u64, line: Option<u64>) -> (Vec<Piece<'_>>, Vec<Finding>) {
    let (mut pieces, mut findings) = (Vec::new(), Vec::new());
    let mut start = 0;
    let mut number = line;
    while start < bytes.len() {
        let end = memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |n| start + n + 1);
        let at = Place {
            offset: offset + start as u64,
            line: number,
        };
        split_line(
            &bytes[start..end],
            at,
            &mut |p| pieces.push(p),
            &mut findings,
        );
        start = end;
        number = number.map(|n| n + 1);
    }
    (pieces, findings)
}

/// Where a line begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Offset in the file, in bytes.
    pub(crate) offset: u64,
    /// Number from 1, where it is known.
    pub(crate) line: Option<u64>,
}

/// Whether the bytes are exactly one JSON object. Invalid UTF-8 and lone surrogates inside its
/// strings do not matter.
pub(crate) fn is_object(bytes: &[u8]) -> bool {
    bytes.first() == Some(&b'{') && serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

/// Splits one line, which ends with its `\n` unless it is the file's last. Linear in its length.
pub(crate) fn split_line<'a>(
    line: &'a [u8],
    at: Place,
    emit: &mut dyn FnMut(Piece<'a>),
    findings: &mut Vec<Finding>,
) {
    let mut head = 0;
    while line[head..].starts_with(BOM) {
        head += BOM.len();
    }
    if head > 0 {
        findings.push(
            Finding::new(
                Code::ByteOrderMark,
                format!("{head} bytes of byte order marks"),
            )
            .at(at.line, at.offset),
        );
    }
    head += blanks(&line[head..]);
    let tail = line.len() - trailing_blanks(&line[head..]);
    let mut piece = |kind, from: usize, to: usize| {
        if from < to {
            emit(Piece {
                kind,
                bytes: &line[from..to],
                offset: at.offset + from as u64,
                line: at.line,
            });
        }
    };
    piece(PieceKind::Space, 0, head);
    let body = &line[head..tail];
    if is_object(body) {
        piece(PieceKind::Row, head, tail);
    } else {
        salvage(line, head, tail, at, &mut piece, findings);
    }
    piece(PieceKind::Space, tail, line.len());
}

/// Reads what can be read of a damaged line, between `from` and `to`.
fn salvage(
    line: &[u8],
    from: usize,
    to: usize,
    at: Place,
    piece: &mut dyn FnMut(PieceKind, usize, usize),
    findings: &mut Vec<Finding>,
) {
    let terminated = line.last() == Some(&b'\n');
    let mut pos = from;
    let mut rows = 0;
    // The next NUL at or after `pos`, once it was looked for.
    let mut nul = 0;
    // Every attempt to read an object is paid from this, so that a hostile line stays linear.
    let mut budget = 16 * (to - from) + 4096;
    while pos < to {
        let body = &line[pos..to];
        let space = blanks(body);
        if space > 0 {
            piece(PieceKind::Space, pos, pos + space);
            pos += space;
            continue;
        }
        let nuls = body.iter().take_while(|b| **b == 0).count();
        if nuls > 0 {
            piece(PieceKind::Lost, pos, pos + nuls);
            findings.push(
                Finding::new(Code::NulRun, format!("{nuls} NUL bytes"))
                    .at(at.line, at.offset + pos as u64),
            );
            pos += nuls;
            continue;
        }
        if let Ok(len) = object_len(body, &mut budget) {
            rows += 1;
            if rows == 2 {
                findings.push(
                    Finding::new(Code::GluedLines, "more than one row on this line")
                        .at(at.line, at.offset + pos as u64),
                );
            }
            piece(PieceKind::Row, pos, pos + len);
            pos += len;
            continue;
        }
        if nul <= pos {
            nul = memchr(0, body).map_or(to, |n| pos + n);
        }
        let body = &line[pos..nul];
        let next = next_row(body, &mut budget);
        let lost = next.map_or(body.len(), |n| n.0);
        piece(PieceKind::Lost, pos, pos + lost);
        let ends_here = terminated || nul < to;
        findings.push(
            lost_finding(&body[..lost], next.is_some(), ends_here)
                .at(at.line, at.offset + pos as u64),
        );
        pos += lost;
        if let Some((_, len)) = next {
            rows += 1;
            piece(PieceKind::Row, pos, pos + len);
            pos += len;
        }
    }
}

/// Names the fault of bytes that were given up.
fn lost_finding(lost: &[u8], row_follows: bool, terminated: bool) -> Finding {
    let n = lost.len();
    if lost[0] != b'{' {
        return Finding::new(Code::Garbage, format!("{n} bytes that are no row"));
    }
    if row_follows {
        return Finding::new(
            Code::SplicedLine,
            format!("a row was cut after {n} bytes and another begins on its line"),
        );
    }
    match serde_json::from_slice::<IgnoredAny>(lost) {
        Err(e) if !e.is_eof() => {
            Finding::new(Code::Garbage, format!("{n} bytes that are no valid JSON"))
        }
        _ if terminated => Finding::new(Code::TornLine, format!("a row was cut after {n} bytes")),
        _ => Finding::new(
            Code::TornTail,
            format!("the last row was cut after {n} bytes"),
        ),
    }
}

/// Length of the JSON object at the start of `bytes`.
fn object_len(bytes: &[u8], budget: &mut usize) -> Result<usize, ()> {
    if bytes.first() != Some(&b'{') || *budget == 0 {
        return Err(());
    }
    let mut stream = serde_json::Deserializer::from_slice(bytes).into_iter::<IgnoredAny>();
    match stream.next() {
        Some(Ok(_)) => {
            let len = stream.byte_offset();
            *budget = budget.saturating_sub(len);
            Ok(len)
        }
        Some(Err(e)) => {
            // The column counts bytes, and the line was split at its line ends before.
            let read = if e.is_eof() { bytes.len() } else { e.column() };
            *budget = budget.saturating_sub(read.max(1));
            Err(())
        }
        None => Err(()),
    }
}

/// Start and length of the next whole object in `body`, after its first byte, that is a row and
/// not a part of one.
fn next_row(body: &[u8], budget: &mut usize) -> Option<(usize, usize)> {
    let mut from = 1;
    while let Some(n) = body.get(from..).and_then(|b| memmem::find(b, b"{\"")) {
        let start = from + n;
        if let Ok(len) = object_len(&body[start..], budget)
            && is_row(&body[start..start + len])
        {
            return Some((start, len));
        }
        if *budget == 0 {
            return None;
        }
        from = start + 1;
    }
    None
}

/// Whether a whole object is a row by itself: parts of messages have neither of these keys.
fn is_row(object: &[u8]) -> bool {
    let (mut kind, mut identity) = (false, false);
    for (key, _) in crate::json::Object::new(object) {
        match key {
            b"type" => kind = true,
            b"uuid" | b"sessionId" | b"parentUuid" | b"messageId" => identity = true,
            _ => {}
        }
    }
    kind && identity
}

fn blanks(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|b| is_blank(**b)).count()
}

fn trailing_blanks(bytes: &[u8]) -> usize {
    bytes.iter().rev().take_while(|b| is_blank(**b)).count()
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}
