//! Finds where one request on a connection ends and the next begins, beside hyper and more
//! strictly.
//!
//! A proxy between a client and us may parse an ambiguous request in another way than we do, which
//! can hide a second request in it. hyper resolves such requests silently: it drops a
//! Content-Length beside a Transfer-Encoding, and one of two equal Content-Lengths. So the bytes
//! are checked before hyper has them, and a connection on which anything ambiguous was seen gets
//! 400 and is closed.
//!
//! ```text
//! Start ─line─► Head ─empty line─┬─ no body ──────────────────────────────► Start
//!                                ├─ Content-Length ─► Body ───────────────► Start
//!                                └─ chunked ─► Size ─► Data ─► End ─► Size
//!                                               └─ 0 ─► Trailer ─empty──► Start
//! ```
//!
//! The bytes arrive in pieces of any length, so each line is parsed byte by byte (`line`) and only
//! that state is kept: how a request is split never changes the verdict. An earlier version kept 64
//! bytes of a split line, and missed a header that ended after them.

mod line;

use std::fmt;

use pitlane_engine::index::index_usize;

use self::line::{LineEnd, LineParser};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FramingFault {
    LengthTwice,
    LengthAndCoding,
    BadLength,
    BadCoding,
    BadChunk,
    BareLineFeed,
}

impl fmt::Display for FramingFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FramingFault::LengthTwice => "more than one Content-Length",
            FramingFault::LengthAndCoding => "Content-Length and Transfer-Encoding together",
            FramingFault::BadLength => "Content-Length is not a number",
            FramingFault::BadCoding => "Transfer-Encoding is other than one 'chunked'",
            FramingFault::BadChunk => "a chunk is not well formed",
            FramingFault::BareLineFeed => "a line ends without a carriage return",
        })
    }
}

#[derive(Debug)]
pub(crate) struct Framing {
    state: FramingState,
    /// The line that has begun.
    line: LineParser,
    /// Content-Length of the head being read.
    length: Option<u64>,
    chunked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FramingState {
    Start,
    Head,
    Body(u64),
    ChunkSize,
    ChunkData(u64),
    ChunkEnd,
    Trailer,
}

impl Default for Framing {
    fn default() -> Framing {
        Framing { state: FramingState::Start, line: LineParser::plain(), length: None, chunked: false }
    }
}

impl Framing {
    /// Returns whether the head of a request has begun and not ended.
    pub(crate) fn is_in_head(&self) -> bool {
        self.state == FramingState::Head || self.state == FramingState::Start && self.line.has_begun()
    }

    /// Takes the next bytes of the connection. It must not be called again after a fault.
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) -> Result<(), FramingFault> {
        while !bytes.is_empty() {
            if let FramingState::Body(left) | FramingState::ChunkData(left) = self.state {
                let skipped = left.min(bytes.len() as u64);
                bytes = &bytes[index_usize(skipped)..];
                self.skip(left - skipped);
                continue;
            }
            let Some(end) = memchr::memchr(b'\n', bytes) else {
                self.line.take(bytes);
                return Ok(());
            };
            self.line.take(&bytes[..end]);
            self.end_line()?;
            bytes = &bytes[end + 1..];
        }
        Ok(())
    }

    fn skip(&mut self, left: u64) {
        self.state = match (self.state, left) {
            (FramingState::Body(_), 0) => FramingState::Start,
            (FramingState::Body(_), left) => FramingState::Body(left),
            (_, 0) => FramingState::ChunkEnd,
            (_, left) => FramingState::ChunkData(left),
        };
    }

    /// Handles a line feed.
    fn end_line(&mut self) -> Result<(), FramingFault> {
        let end = self.line.end();
        // RFC 9112, 2.2 allows a bare line feed as a line end. A proxy may not accept it, and then
        // sees other headers.
        if end == LineEnd::Bare {
            return Err(FramingFault::BareLineFeed);
        }
        let is_empty = end == LineEnd::Empty;
        match self.state {
            FramingState::Start if is_empty => {}
            FramingState::Start => {
                (self.state, self.length, self.chunked) = (FramingState::Head, None, false);
            }
            FramingState::Head if is_empty => self.state = self.after_head(),
            FramingState::Head => self.header(end)?,
            FramingState::ChunkSize => {
                let LineEnd::ChunkSize(Some(size)) = end else { return Err(FramingFault::BadChunk) };
                self.state = if size == 0 { FramingState::Trailer } else { FramingState::ChunkData(size) };
            }
            FramingState::ChunkEnd if is_empty => self.state = FramingState::ChunkSize,
            FramingState::ChunkEnd => return Err(FramingFault::BadChunk),
            FramingState::Trailer if is_empty => self.state = FramingState::Start,
            FramingState::Trailer => {}
            FramingState::Body(_) | FramingState::ChunkData(_) => {
                unreachable!("these are skipped, not read by lines")
            }
        }
        self.line = match self.state {
            FramingState::Head => LineParser::header(),
            FramingState::ChunkSize => LineParser::chunk_size(),
            FramingState::Start
            | FramingState::Body(_)
            | FramingState::ChunkData(_)
            | FramingState::ChunkEnd
            | FramingState::Trailer => LineParser::plain(),
        };
        Ok(())
    }

    fn after_head(&self) -> FramingState {
        match self.length {
            _ if self.chunked => FramingState::ChunkSize,
            None | Some(0) => FramingState::Start,
            Some(length) => FramingState::Body(length),
        }
    }

    fn header(&mut self, end: LineEnd) -> Result<(), FramingFault> {
        match end {
            LineEnd::ContentLength(length) => {
                let length = length.ok_or(FramingFault::BadLength)?;
                if self.length.replace(length).is_some() {
                    return Err(FramingFault::LengthTwice);
                }
            }
            LineEnd::TransferEncoding { is_chunked } => {
                let again = std::mem::replace(&mut self.chunked, true);
                if again || !is_chunked {
                    return Err(FramingFault::BadCoding);
                }
            }
            LineEnd::Bare | LineEnd::Empty | LineEnd::ChunkSize(_) | LineEnd::Other => return Ok(()),
        }
        if self.chunked && self.length.is_some() { Err(FramingFault::LengthAndCoding) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
