//! One line of a request, parsed byte by byte: what it determines about the length of a body, if
//! anything. Nothing of its text is kept.
//!
//! ```text
//! header:  Name ─ all letters ─► Colon ─ `:` ─► Number, Word       any other letter ─► Rest
//! chunk:   Number ─ `;` ─► Size
//! value:   Before ─► Inside ─► After                               any other letter ─► Bad
//! ```

/// State of a line that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    part: Part,
    /// Bytes so far: none, one, or more.
    bytes: u8,
    last: u8,
}

/// Meaning of a line that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnd {
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
enum Part {
    /// `matched` letters of the name have arrived. The two names differ in their first letter.
    Name {
        header: Option<Header>,
        matched: u8,
    },
    /// The whole name has arrived.
    Colon(Header),
    Length(Number),
    Coding(Word),
    /// The size of a chunk; everything after the semicolon is ignored.
    Size {
        size: Number,
        is_over: bool,
    },
    Rest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Header {
    ContentLength,
    TransferEncoding,
}

impl Header {
    fn name(self) -> &'static [u8] {
        match self {
            Header::ContentLength => b"content-length",
            Header::TransferEncoding => b"transfer-encoding",
        }
    }
}

impl Line {
    /// Creates a line of which only matters whether it is empty.
    pub fn plain() -> Line {
        Line { part: Part::Rest, bytes: 0, last: 0 }
    }

    pub fn header() -> Line {
        Line { part: Part::Name { header: None, matched: 0 }, ..Line::plain() }
    }

    pub fn chunk_size() -> Line {
        Line { part: Part::Size { size: Number::Before, is_over: false }, ..Line::plain() }
    }

    pub fn has_begun(&self) -> bool {
        self.bytes > 0
    }

    /// Takes more of the line, without its line feed.
    pub fn take(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        for &byte in bytes {
            // Most headers begin with another letter.
            if self.part == Part::Rest {
                break;
            }
            self.part = self.part.after(byte);
        }
        self.bytes = self.bytes.saturating_add(bytes.len().min(2) as u8);
        self.last = *last;
    }

    /// Returns the meaning of the line, at its line feed.
    pub fn end(&self) -> LineEnd {
        if self.last != b'\r' || !self.has_begun() {
            return LineEnd::Bare;
        }
        if self.bytes == 1 {
            return LineEnd::Empty;
        }
        match self.part {
            Part::Length(number) => LineEnd::ContentLength(number.value()),
            Part::Coding(word) => LineEnd::TransferEncoding { is_chunked: word.is_chunked() },
            Part::Size { size, .. } => LineEnd::ChunkSize(size.value()),
            Part::Name { .. } | Part::Colon(_) | Part::Rest => LineEnd::Other,
        }
    }
}

impl Part {
    fn after(self, byte: u8) -> Part {
        match self {
            Part::Name { header, matched } => name_after(header, matched, byte),
            // A space before the colon makes no valid header; hyper refuses it, and here it counts
            // as the header that it resembles.
            Part::Colon(_) if byte.is_ascii_whitespace() => self,
            Part::Colon(Header::ContentLength) if byte == b':' => Part::Length(Number::Before),
            Part::Colon(Header::TransferEncoding) if byte == b':' => Part::Coding(Word::Before),
            Part::Colon(_) => Part::Rest,
            Part::Length(number) => Part::Length(number.after(byte, 10)),
            Part::Coding(word) => Part::Coding(word.after(byte)),
            Part::Size { is_over: true, .. } => self,
            Part::Size { size, .. } if byte == b';' => Part::Size { size, is_over: true },
            Part::Size { size, .. } => Part::Size { size: size.after(byte, 16), is_over: false },
            Part::Rest => Part::Rest,
        }
    }
}

fn name_after(header: Option<Header>, matched: u8, byte: u8) -> Part {
    let letter = byte.to_ascii_lowercase();
    let header = match header {
        Some(header) => header,
        None if letter == b'c' => Header::ContentLength,
        None if letter == b't' => Header::TransferEncoding,
        None => return Part::Rest,
    };
    let name = header.name();
    match name.get(matched as usize) {
        Some(expected) if *expected == letter => {}
        Some(_) | None => return Part::Rest,
    }
    let matched = matched + 1;
    if matched as usize == name.len() {
        Part::Colon(header)
    } else {
        Part::Name { header: Some(header), matched }
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
enum Word {
    Before,
    /// This many letters of it have arrived.
    Inside(u8),
    After,
    Bad,
}

impl Word {
    fn after(self, byte: u8) -> Word {
        let is_blank = byte.is_ascii_whitespace();
        match self {
            Word::Before if is_blank => Word::Before,
            Word::Before => Word::Inside(0).after(byte),
            Word::Inside(matched) => match CHUNKED.get(matched as usize) {
                Some(letter) if byte.eq_ignore_ascii_case(letter) => Word::Inside(matched + 1),
                None if is_blank => Word::After,
                Some(_) | None => Word::Bad,
            },
            Word::After if is_blank => Word::After,
            Word::After | Word::Bad => Word::Bad,
        }
    }

    fn is_chunked(self) -> bool {
        match self {
            Word::Inside(matched) => matched as usize == CHUNKED.len(),
            Word::After => true,
            Word::Before | Word::Bad => false,
        }
    }
}
