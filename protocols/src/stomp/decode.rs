//! Decodes octets into frames, wherever they are cut. The decoder remembers how far it has read, so
//! a frame that arrives octet by octet is read once, and a limit or an error is reported as soon as
//! it is visible.
//!
//! An error in a header is reported at the end of the head, so that the answer can name the
//! requested receipt; limits and unknown commands are reported at once.

use std::borrow::Cow;

use pitlane_engine::text;

use super::escape;
use super::frame::{ClientCommand, Escaping, StompFrame, StompVersion, find};
use crate::decoded::Decoded;

/// Octets of a command. The longest has eleven letters; garbage and HTTP are recognised by this
/// length at the latest.
pub const COMMAND_BYTES_MAX: usize = 16;
/// Octets before the session is connected, so that an unauthenticated client holds no more of our
/// memory.
pub const CONNECT_BYTES_MAX: usize = 4 * 1_024;

/// Limits of a client's frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimits {
    /// A header line without its end, in octets. A longer line is an attack and not an id.
    pub line_bytes_max: usize,
    pub headers_max: usize,
    /// Command and headers of one frame in octets, line ends included.
    pub head_bytes_max: usize,
    pub body_bytes_max: usize,
}

impl Default for FrameLimits {
    fn default() -> FrameLimits {
        FrameLimits {
            line_bytes_max: 8 * 1_024,
            headers_max: 64,
            head_bytes_max: 64 * 1_024,
            body_bytes_max: 64 * 1_024,
        }
    }
}

const CONTENT_LENGTH: &[u8] = b"content-length:";

/// Why octets are not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StompFrameError {
    CommandTooLong,
    UnknownCommand,
    LineTooLong,
    TooManyHeaders,
    HeadTooLong,
    BodyTooLong,
    ConnectTooLong,
    NoColon,
    NoName,
    Escape,
    Utf8,
    NulInHead,
    ContentLength,
    NoNulAfterBody,
}

impl StompFrameError {
    pub const ALL: [StompFrameError; 14] = [
        StompFrameError::CommandTooLong,
        StompFrameError::UnknownCommand,
        StompFrameError::LineTooLong,
        StompFrameError::TooManyHeaders,
        StompFrameError::HeadTooLong,
        StompFrameError::BodyTooLong,
        StompFrameError::ConnectTooLong,
        StompFrameError::NoColon,
        StompFrameError::NoName,
        StompFrameError::Escape,
        StompFrameError::Utf8,
        StompFrameError::NulInHead,
        StompFrameError::ContentLength,
        StompFrameError::NoNulAfterBody,
    ];

    pub fn text(self) -> &'static str {
        match self {
            StompFrameError::CommandTooLong => "the command is longer than 16 octets, this is not STOMP",
            StompFrameError::UnknownCommand => "unknown command",
            StompFrameError::LineTooLong => "a header line is too long",
            StompFrameError::TooManyHeaders => "there are too many headers",
            StompFrameError::HeadTooLong => "the head of the frame is too long",
            StompFrameError::BodyTooLong => "the body is too long",
            StompFrameError::ConnectTooLong => "more than 4 KiB before CONNECTED",
            StompFrameError::NoColon => "a header line has no colon",
            StompFrameError::NoName => "a header has no name",
            StompFrameError::Escape => "a header has an escape that this version does not know",
            StompFrameError::Utf8 => "a header is not UTF-8",
            StompFrameError::NulInHead => "the frame ends within its head",
            StompFrameError::ContentLength => "content-length is not a number",
            StompFrameError::NoNulAfterBody => "the body is not followed by a NUL, content-length is wrong",
        }
    }
}

/// State in the frame at the front of the buffer. All offsets count from the start of that frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct Decoder {
    limits: FrameLimits,
    /// Version; `None` before CONNECT.
    version: Option<StompVersion>,
    part: DecoderPart,
    /// Octets read so far.
    seen: usize,
    /// Offset of the current line.
    line: usize,
    /// Offset of the first header.
    head: usize,
    headers: usize,
    command: Option<ClientCommand>,
    defect: Option<StompFrameError>,
    /// Offsets of the value of the first content-length.
    length: Option<(usize, usize)>,
    body: usize,
    body_len: Option<usize>,
    /// Octets before CONNECTED that are no longer in the buffer.
    connect_bytes: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum DecoderPart {
    /// Line ends between frames.
    #[default]
    Gap,
    Command,
    Headers,
    Body,
}

impl Decoder {
    pub fn new(limits: FrameLimits) -> Decoder {
        Decoder { limits, ..Decoder::default() }
    }

    /// Sets the version of the following frames.
    pub fn set_version(&mut self, version: StompVersion) {
        self.version = Some(version);
    }

    /// Decodes the next frame of a buffer that begins where the last frame ended. After an error it
    /// decodes nothing more.
    pub fn decode<'a>(&mut self, bytes: &'a [u8]) -> Result<Decoded<StompFrame<'a>>, StompFrameError> {
        loop {
            let is_done = match self.part {
                DecoderPart::Gap => self.gap(bytes)?,
                DecoderPart::Command => self.command(bytes)?,
                DecoderPart::Headers => self.header(bytes)?,
                DecoderPart::Body => {
                    let Some(end) = self.body_end(bytes)? else { return Ok(Decoded::Incomplete) };
                    return Ok(self.frame(bytes, end));
                }
            };
            if !is_done {
                return Ok(Decoded::Incomplete);
            }
        }
    }

    /// Returns the number of read line ends between frames, which can leave the buffer.
    pub fn skip(&mut self) -> usize {
        if self.part != DecoderPart::Gap {
            return 0;
        }
        self.connect_bytes += self.seen;
        std::mem::take(&mut self.seen)
    }

    /// Returns the receipt that the frame at the front has requested so far.
    pub fn receipt<'a>(&self, bytes: &'a [u8]) -> Option<Cow<'a, str>> {
        let lines = bytes.get(self.head..self.line.min(bytes.len()))?;
        if self.part == DecoderPart::Gap || self.part == DecoderPart::Command {
            return None;
        }
        find(std::str::from_utf8(lines).ok()?, "receipt", self.escaping())
    }

    fn gap(&mut self, bytes: &[u8]) -> Result<bool, StompFrameError> {
        loop {
            let rest = &bytes[self.seen..];
            self.check_connect_bytes(self.seen)?;
            match rest {
                [b'\n', ..] => self.seen += 1,
                [b'\r', b'\n', ..] => self.seen += 2,
                [] | [b'\r'] => return Ok(false),
                _ => break,
            }
        }
        (self.part, self.line) = (DecoderPart::Command, self.seen);
        Ok(true)
    }

    fn command(&mut self, bytes: &[u8]) -> Result<bool, StompFrameError> {
        let Some(line) = self.next_line(bytes, COMMAND_BYTES_MAX, StompFrameError::CommandTooLong)? else {
            return Ok(false);
        };
        self.command = Some(ClientCommand::from_wire_name(line).ok_or(StompFrameError::UnknownCommand)?);
        (self.part, self.head) = (DecoderPart::Headers, self.line);
        Ok(true)
    }

    fn header(&mut self, bytes: &[u8]) -> Result<bool, StompFrameError> {
        let start = self.line;
        let Some(line) = self.next_line(bytes, self.limits.line_bytes_max, StompFrameError::LineTooLong)?
        else {
            return Ok(false);
        };
        if line.is_empty() {
            // The blank line is not a header.
            self.end_head(bytes, start)?;
            return Ok(true);
        }
        self.headers += 1;
        if self.headers > self.limits.headers_max {
            return Err(StompFrameError::TooManyHeaders);
        }
        self.defect = self.defect.or_else(|| self.defect_of(line));
        if self.length.is_none() && line.starts_with(CONTENT_LENGTH) {
            self.length = Some((start + CONTENT_LENGTH.len(), start + line.len()));
        }
        Ok(true)
    }

    fn defect_of(&self, line: &[u8]) -> Option<StompFrameError> {
        match memchr::memchr(b':', line) {
            None => Some(StompFrameError::NoColon),
            Some(0) => Some(StompFrameError::NoName),
            Some(_) if !escape::is_sound(line, self.escaping()) => Some(StompFrameError::Escape),
            Some(_) => None,
        }
    }

    fn end_head(&mut self, bytes: &[u8], end: usize) -> Result<(), StompFrameError> {
        if let Some(defect) = self.defect {
            return Err(defect);
        }
        std::str::from_utf8(&bytes[self.head..end]).map_err(|_| StompFrameError::Utf8)?;
        if let Some((from, to)) = self.length {
            let text = &bytes[from..to];
            if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
                return Err(StompFrameError::ContentLength);
            }
            let len = text::parse_u64(text).ok().and_then(|len| usize::try_from(len).ok());
            let len = len.filter(|len| *len <= self.limits.body_bytes_max);
            self.body_len = Some(len.ok_or(StompFrameError::BodyTooLong)?);
        }
        (self.part, self.body) = (DecoderPart::Body, self.seen);
        self.check_connect_bytes(self.seen + self.body_len.unwrap_or(0))
    }

    /// Returns the offset of the NUL after the body.
    fn body_end(&mut self, bytes: &[u8]) -> Result<Option<usize>, StompFrameError> {
        if let Some(len) = self.body_len {
            return match bytes.get(self.body + len) {
                None => Ok(None),
                Some(0) => Ok(Some(self.body + len)),
                Some(_) => Err(StompFrameError::NoNulAfterBody),
            };
        }
        let found = memchr::memchr(0, &bytes[self.seen..]).map(|at| self.seen + at);
        self.seen = found.unwrap_or(bytes.len());
        // The first limit reached decides, so that the result is the same wherever the octets are
        // cut.
        let body_max = self.body + self.limits.body_bytes_max;
        self.check_connect_bytes(self.seen.min(body_max))?;
        if self.seen > body_max {
            return Err(StompFrameError::BodyTooLong);
        }
        Ok(found)
    }

    /// Returns the next complete line without its end and moves after it, or `None` if it is
    /// incomplete. `self.line` is then the start of the following line.
    fn next_line<'a>(
        &mut self,
        bytes: &'a [u8],
        max: usize,
        too_long: StompFrameError,
    ) -> Result<Option<&'a [u8]>, StompFrameError> {
        let found = memchr::memchr2(b'\n', 0, &bytes[self.seen..]).map(|at| self.seen + at);
        let end = found.unwrap_or(bytes.len());
        let line = &bytes[self.line..end];
        // A CR at the end may be the first half of a line end.
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // The first limit reached must not depend on where the octets are cut, so each is compared
        // by its offset.
        let connect_end = if self.version.is_none() { end } else { 0 };
        let connect_max = CONNECT_BYTES_MAX.saturating_sub(self.connect_bytes);
        let limits = [
            (self.line + max, self.line + line.len(), too_long),
            (connect_max, connect_end, StompFrameError::ConnectTooLong),
            (self.limits.head_bytes_max, end, StompFrameError::HeadTooLong),
        ];
        let reached = limits.into_iter().filter(|(at, end, _)| end > at);
        if let Some((_, _, error)) = reached.min_by_key(|(at, _, _)| *at) {
            return Err(error);
        }
        self.seen = end;
        let Some(end) = found else { return Ok(None) };
        if bytes[end] == 0 {
            return Err(self.defect.unwrap_or(StompFrameError::NulInHead));
        }
        (self.seen, self.line) = (end + 1, end + 1);
        Ok(Some(line))
    }

    fn frame<'a>(&mut self, bytes: &'a [u8], end: usize) -> Decoded<StompFrame<'a>> {
        let blank = if bytes[..self.body].ends_with(b"\r\n") { 2 } else { 1 };
        let head = std::str::from_utf8(&bytes[self.head..self.body - blank]).unwrap_or_default();
        let body = &bytes[self.body..end];
        let command = self.command.expect("a body comes behind a command");
        let escaping = self.escaping();
        let (version, connect_bytes) = (self.version, self.connect_bytes + end + 1);
        *self = Decoder { version, connect_bytes, ..Decoder::new(self.limits) };
        Decoded::Message { message: StompFrame { command, head, escaping, body }, consumed: end + 1 }
    }

    /// CONNECT is never escaped, so that a client can negotiate the version.
    fn escaping(&self) -> Escaping {
        match self.command {
            Some(ClientCommand::Connect) => Escaping::None,
            _ => Escaping::of(self.version),
        }
    }

    fn check_connect_bytes(&self, len: usize) -> Result<(), StompFrameError> {
        let is_too_long = self.version.is_none() && self.connect_bytes + len > CONNECT_BYTES_MAX;
        if is_too_long { Err(StompFrameError::ConnectTooLong) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
