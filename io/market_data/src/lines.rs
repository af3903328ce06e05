//! Lines of a text file and the cells of a line, without a copy.

use std::io;

use memchr::memchr;
use pitlane_engine::text::{self, TextError};
use pitlane_engine::time::Timestamp;
use pitlane_protocols::rest::Moment;

use super::DataError;
use super::input::ByteSource;

/// Bytes read at once: large enough that the system calls do not matter, small enough to stay in
/// the cache.
const BLOCK_BYTES: usize = 1 << 18;
/// Longest line in bytes: ten times a long line of the recorder.
pub(crate) const LINE_BYTES_MAX: usize = 2_048;

#[derive(Debug)]
pub(crate) struct LineReader {
    name: String,
    file: Box<dyn ByteSource>,
    /// Buffer; the bytes from `from` to `to` are still to be processed.
    block: Vec<u8>,
    from: usize,
    to: usize,
    line: u64,
}

impl LineReader {
    pub(crate) fn new(name: String, file: Box<dyn ByteSource>) -> LineReader {
        LineReader { name, file, block: vec![0; BLOCK_BYTES], from: 0, to: 0, line: 0 }
    }

    /// Returns a line without its terminator; `None` at the end of the file.
    #[inline]
    pub(crate) fn next_line(&mut self) -> Result<Option<(usize, usize)>, DataError> {
        loop {
            let end = memchr(b'\n', &self.block[self.from..self.to]);
            if let Some(length) = end.filter(|length| *length <= LINE_BYTES_MAX) {
                return Ok(Some(self.take_line(length, 1)));
            }
            let left = self.to - self.from;
            if left > LINE_BYTES_MAX {
                self.line += 1;
                return Err(self.fault(&format!("a line has more than {LINE_BYTES_MAX} bytes")));
            }
            self.block.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, left);
            match self.file.read(&mut self.block[left..]) {
                Ok(0) if left == 0 => return Ok(None),
                // The last line may lack its terminator.
                Ok(0) => return Ok(Some(self.take_line(left, 0))),
                Ok(read) => self.to += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.fault(&error.to_string())),
            }
        }
    }

    #[inline]
    fn take_line(&mut self, length: usize, end: usize) -> (usize, usize) {
        let from = self.from;
        self.from += length + end;
        self.line += 1;
        let is_crlf = length > 0 && self.block[from + length - 1] == b'\r';
        (from, from + length - is_crlf as usize)
    }

    /// Returns bytes of the buffer, and those behind them.
    #[inline]
    pub(crate) fn cells(&self, (from, to): (usize, usize)) -> CellReader<'_> {
        CellReader::new(&self.block[from..self.to], to - from)
    }

    /// Returns a line.
    pub(crate) fn text(&self, (from, to): (usize, usize)) -> &[u8] {
        &self.block[from..to]
    }

    #[cold]
    pub(crate) fn fault(&self, problem: &str) -> DataError {
        DataError { file: self.name.clone(), line: self.line, problem: problem.to_string() }
    }
}

/// The cells of a line, in order.
pub(crate) struct CellReader<'a> {
    /// The line and the bytes behind it, so that numbers can be read in whole words.
    text: &'a [u8],
    /// Offset of the line's end.
    end: usize,
    at: usize,
}

impl<'a> CellReader<'a> {
    fn new(text: &'a [u8], end: usize) -> CellReader<'a> {
        CellReader { text, end, at: 0 }
    }

    #[inline]
    pub(crate) fn next(&mut self, name: &str) -> Result<&'a [u8], String> {
        let rest = self.text[..self.end].get(self.at..).ok_or_else(|| format!("there is no {name}"))?;
        // Cells are short: a loop finishes before a vectorised search starts.
        let length = rest.iter().position(|byte| *byte == b',').unwrap_or(rest.len());
        self.at += length + 1;
        Ok(&rest[..length])
    }

    /// Skips a number that was read ahead, if the cell ends with it.
    #[inline]
    fn pass<T>(&mut self, (value, length): (T, usize)) -> Option<T> {
        let end = self.at + length;
        let is_all = end == self.end || end < self.end && self.text[end] == b',';
        if is_all {
            self.at = end + 1;
        }
        is_all.then_some(value)
    }

    #[inline]
    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn time(&mut self) -> Result<Timestamp, String> {
        if let Some(ns) = text::u64_ahead(self.rest()).and_then(|read| self.pass(read)) {
            return Ok(Timestamp(ns));
        }
        let cell = self.next("time")?;
        if let Ok(ns) = text::parse_u64(cell) {
            return Ok(Timestamp(ns));
        }
        let parsed = std::str::from_utf8(cell).ok().and_then(|text| Moment::parse(text).ok());
        let problem = || format!("{:?} is no time", String::from_utf8_lossy(cell));
        parsed.map(|moment| moment.0).ok_or_else(problem)
    }

    /// Returns the decimal of a cell; `None` if it is empty.
    #[inline]
    pub(crate) fn decimal(&mut self, name: &str) -> Result<Option<i64>, String> {
        if let Some(raw) = text::scaled_ahead(self.rest()).and_then(|read| self.pass(read)) {
            return Ok(Some(raw));
        }
        let cell = self.next(name)?;
        match text::parse_scaled(cell) {
            Ok(raw) => Ok(Some(raw)),
            Err(TextError::Empty) if cell.is_empty() => Ok(None),
            Err(error) => Err(format!("{name}: {error}")),
        }
    }

    pub(crate) fn end(&self) -> Result<(), String> {
        if self.at <= self.end { Err("there are too many cells".to_string()) } else { Ok(()) }
    }
}
