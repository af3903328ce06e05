//! One line of a request, parsed byte by byte: what it determines about the length of a body, if
//! anything. Nothing of its text is kept.
//!
//! ```text
//! header:  Name ─ all letters ─► Colon ─ `:` ─► Number, ChunkedToken   any other letter ─► Rest
//! chunk:   Number ─ `;` ─► Size
//! value:   Before ─► Inside ─► After                             any other letter ─► Bad
//! ```

use pitlane_engine::index::index_u8;

/// State of a line that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineParser {
    part: LinePart,
    /// Bytes so far: none, one, or more.
    bytes: u8,
    last: u8,
}

/// Meaning of a line that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineEnd {
    /// The line feed had no carriage return before it.
    Bare,
    Empty,
    /// Its value; `None` if it is no number.
    ContentLength(Option<u64>),
    TransferEncoding {
        is_chunked: bool,
    },
    /// Its value; `None` if it is no number.
    ChunkSize(Option<u64>),
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinePart {
    /// `matched` letters of the name have arrived. The two names differ in their first letter.
    Name {
        header: Option<FramingHeader>,
        matched: u8,
    },
    /// The whole name has arrived.
    Colon(FramingHeader),
    Length(Number),
    Coding(ChunkedToken),
    /// The size of a chunk; everything after the semicolon is ignored.
    Size {
        size: Number,
        is_over: bool,
    },
    Rest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FramingHeader {
    ContentLength,
    TransferEncoding,
}

impl FramingHeader {
    fn name(self) -> &'static [u8] {
        match self {
            FramingHeader::ContentLength => b"content-length",
            FramingHeader::TransferEncoding => b"transfer-encoding",
        }
    }
}

impl LineParser {
    /// Creates a line of which only matters whether it is empty.
    pub(super) fn plain() -> LineParser {
        LineParser { part: LinePart::Rest, bytes: 0, last: 0 }
    }

    pub(super) fn header() -> LineParser {
        LineParser { part: LinePart::Name { header: None, matched: 0 }, ..LineParser::plain() }
    }

    pub(super) fn chunk_size() -> LineParser {
        LineParser { part: LinePart::Size { size: Number::Before, is_over: false }, ..LineParser::plain() }
    }

    pub(super) fn has_begun(&self) -> bool {
        self.bytes > 0
    }

    /// Takes more of the line, without its line feed.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        for &byte in bytes {
            // Most headers begin with another letter.
            if self.part == LinePart::Rest {
                break;
            }
            self.part = self.part.after(byte);
        }
        self.bytes = self.bytes.saturating_add(index_u8(bytes.len().min(2)));
        self.last = *last;
    }

    /// Returns the meaning of the line, at its line feed.
    pub(super) fn end(&self) -> LineEnd {
        if self.last != b'\r' || !self.has_begun() {
            return LineEnd::Bare;
        }
        if self.bytes == 1 {
            return LineEnd::Empty;
        }
        match self.part {
            LinePart::Length(number) => LineEnd::ContentLength(number.value()),
            LinePart::Coding(token) => LineEnd::TransferEncoding { is_chunked: token.is_chunked() },
            LinePart::Size { size, .. } => LineEnd::ChunkSize(size.value()),
            LinePart::Name { .. } | LinePart::Colon(_) | LinePart::Rest => LineEnd::Other,
        }
    }
}

impl LinePart {
    fn after(self, byte: u8) -> LinePart {
        match self {
            LinePart::Name { header, matched } => name_after(header, matched, byte),
            // A space before the colon makes no valid header; hyper refuses it, and here it counts
            // as the header that it resembles.
            LinePart::Colon(_) if byte.is_ascii_whitespace() => self,
            LinePart::Colon(FramingHeader::ContentLength) if byte == b':' => LinePart::Length(Number::Before),
            LinePart::Colon(FramingHeader::TransferEncoding) if byte == b':' => {
                LinePart::Coding(ChunkedToken::Before)
            }
            LinePart::Colon(_) => LinePart::Rest,
            LinePart::Length(number) => LinePart::Length(number.after(byte, 10)),
            LinePart::Coding(token) => LinePart::Coding(token.after(byte)),
            LinePart::Size { is_over: true, .. } => self,
            LinePart::Size { size, .. } if byte == b';' => LinePart::Size { size, is_over: true },
            LinePart::Size { size, .. } => LinePart::Size { size: size.after(byte, 16), is_over: false },
            LinePart::Rest => LinePart::Rest,
        }
    }
}

fn name_after(header: Option<FramingHeader>, matched: u8, byte: u8) -> LinePart {
    let letter = byte.to_ascii_lowercase();
    let header = match header {
        Some(header) => header,
        None if letter == b'c' => FramingHeader::ContentLength,
        None if letter == b't' => FramingHeader::TransferEncoding,
        None => return LinePart::Rest,
    };
    let name = header.name();
    match name.get(matched as usize) {
        Some(expected) if *expected == letter => {}
        Some(_) | None => return LinePart::Rest,
    }
    let matched = matched + 1;
    if matched as usize == name.len() {
        LinePart::Colon(header)
    } else {
        LinePart::Name { header: Some(header), matched }
    }
}

/// A number of digits only, with blanks around it: no sign, no prefix, no separators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Before,
    Inside(u64),
    After(u64),
    Bad,
}

impl Number {
    fn after(self, byte: u8, radix: u32) -> Number {
        let digit = (byte as char).to_digit(radix).map(u64::from);
        let is_blank = byte.is_ascii_whitespace();
        match (self, digit) {
            (Number::Before, None) if is_blank => Number::Before,
            (Number::Before, Some(digit)) => Number::Inside(digit),
            (Number::Inside(value), Some(digit)) => {
                let more = value.checked_mul(radix.into()).and_then(|value| value.checked_add(digit));
                more.map_or(Number::Bad, Number::Inside)
            }
            (Number::Inside(value) | Number::After(value), None) if is_blank => Number::After(value),
            (Number::Before | Number::Inside(_) | Number::After(_) | Number::Bad, _) => Number::Bad,
        }
    }

    fn value(self) -> Option<u64> {
        match self {
            Number::Inside(value) | Number::After(value) => Some(value),
            Number::Before | Number::Bad => None,
        }
    }
}

const CHUNKED: &[u8] = b"chunked";

/// A value that should be `chunked`, with blanks around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkedToken {
    Before,
    /// This many letters of it have arrived.
    Inside(u8),
    After,
    Bad,
}

impl ChunkedToken {
    fn after(self, byte: u8) -> ChunkedToken {
        let is_blank = byte.is_ascii_whitespace();
        match self {
            ChunkedToken::Before if is_blank => ChunkedToken::Before,
            ChunkedToken::Before => ChunkedToken::Inside(0).after(byte),
            ChunkedToken::Inside(matched) => match CHUNKED.get(matched as usize) {
                Some(letter) if byte.eq_ignore_ascii_case(letter) => ChunkedToken::Inside(matched + 1),
                None if is_blank => ChunkedToken::After,
                Some(_) | None => ChunkedToken::Bad,
            },
            ChunkedToken::After if is_blank => ChunkedToken::After,
            ChunkedToken::After | ChunkedToken::Bad => ChunkedToken::Bad,
        }
    }

    fn is_chunked(self) -> bool {
        match self {
            ChunkedToken::Inside(matched) => matched as usize == CHUNKED.len(),
            ChunkedToken::After => true,
            ChunkedToken::Before | ChunkedToken::Bad => false,
        }
    }
}
