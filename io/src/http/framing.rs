//! Where one request on a connection ends and the next begins, judged beside hyper and more strictly.
//!
//! Whoever stands between a client and us may read an ambiguous request in another way than we do, and hide a second one
//! in it. hyper resolves such requests silently: it drops a Content-Length beside a Transfer-Encoding, and one of
//! two equal Content-Lengths. So the bytes are looked at before hyper has them, and a connection on which anything
//! ambiguous was seen gets 400 and its end.
//!
//! ```text
//! Start ─line─► Head ─empty line─┬─ no body ──────────────────────────────► Start
//!                                ├─ Content-Length ─► Body ───────────────► Start
//!                                └─ chunked ─► Size ─► Data ─► End ─► Size
//!                                               └─ 0 ─► Trailer ─empty──► Start
//! ```

use std::fmt;

/// Kept of a line that is cut between two reads: enough for the two headers that matter and a sane value.
const CARRY_BYTES: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    LengthTwice,
    LengthAndCoding,
    BadLength,
    BadCoding,
    BadChunk,
    BareLineFeed,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::LengthTwice => "more than one Content-Length",
            Fault::LengthAndCoding => "Content-Length and Transfer-Encoding together",
            Fault::BadLength => "Content-Length is not a number",
            Fault::BadCoding => "Transfer-Encoding is other than one 'chunked'",
            Fault::BadChunk => "a chunk is not well formed",
            Fault::BareLineFeed => "a line ends without a carriage return",
        })
    }
}

#[derive(Debug)]
pub struct Framing {
    state: State,
    /// The beginning of a line whose end has not come.
    carry: [u8; CARRY_BYTES],
    carried: usize,
    /// The byte before those that come next.
    last: u8,
    /// Of the head being read.
    length: Option<u64>,
    chunked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
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
        Framing {
            state: State::Start,
            carry: [0; CARRY_BYTES],
            carried: 0,
            last: 0,
            length: None,
            chunked: false,
        }
    }
}

impl Framing {
    /// Whether the head of a request has begun and not ended.
    pub fn is_in_head(&self) -> bool {
        self.state == State::Head || self.state == State::Start && self.carried > 0
    }

    /// Takes the next bytes of the connection. After a fault it may not be fed again.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<(), Fault> {
        while !bytes.is_empty() {
            if let State::Body(left) | State::ChunkData(left) = self.state {
                let skipped = left.min(bytes.len() as u64);
                bytes = &bytes[skipped as usize..];
                self.skip(left - skipped);
                continue;
            }
            let Some(end) = memchr::memchr(b'\n', bytes) else {
                self.carry(bytes);
                self.last = bytes[bytes.len() - 1];
                return Ok(());
            };
            let before = end.checked_sub(1).map_or(self.last, |at| bytes[at]);
            if before != b'\r' {
                // RFC 9112, 2.2 lets us take it for a line end. Whoever stands between may not, and then sees other headers.
                return Err(Fault::BareLineFeed);
            }
            self.last = b'\n';
            self.line(&bytes[..end])?;
            bytes = &bytes[end + 1..];
        }
        Ok(())
    }

    fn skip(&mut self, left: u64) {
        self.state = match (self.state, left) {
            (State::Body(_), 0) => State::Start,
            (State::Body(_), left) => State::Body(left),
            (_, 0) => State::ChunkEnd,
            (_, left) => State::ChunkData(left),
        };
    }

    fn carry(&mut self, bytes: &[u8]) {
        let kept = bytes.len().min(CARRY_BYTES - self.carried);
        self.carry[self.carried..self.carried + kept].copy_from_slice(&bytes[..kept]);
        self.carried += kept;
    }

    /// The rest of a line came, without its line feed.
    fn line(&mut self, rest: &[u8]) -> Result<(), Fault> {
        if self.carried == 0 {
            return self.whole_line(rest);
        }
        self.carry(rest);
        let (line, carried) = (self.carry, std::mem::take(&mut self.carried));
        self.whole_line(&line[..carried])
    }

    fn whole_line(&mut self, line: &[u8]) -> Result<(), Fault> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match self.state {
            State::Start if line.is_empty() => {}
            State::Start => {
                (self.state, self.length, self.chunked) = (State::Head, None, false);
            }
            State::Head if line.is_empty() => self.state = self.after_head(),
            State::Head => self.header(line)?,
            State::ChunkSize => {
                let size = chunk_size(line).ok_or(Fault::BadChunk)?;
                self.state = if size == 0 { State::Trailer } else { State::ChunkData(size) };
            }
            State::ChunkEnd if line.is_empty() => self.state = State::ChunkSize,
            State::ChunkEnd => return Err(Fault::BadChunk),
            State::Trailer if line.is_empty() => self.state = State::Start,
            State::Trailer => {}
            State::Body(_) | State::ChunkData(_) => unreachable!("these are skipped, not read by lines"),
        }
        Ok(())
    }

    fn after_head(&self) -> State {
        match self.length {
            _ if self.chunked => State::ChunkSize,
            None | Some(0) => State::Start,
            Some(length) => State::Body(length),
        }
    }

    fn header(&mut self, line: &[u8]) -> Result<(), Fault> {
        // Most headers begin with another letter.
        match line[0] | 0x20 {
            b'c' => {
                let Some(value) = value_of(line, b"content-length") else { return Ok(()) };
                let length = digits(value, 10).ok_or(Fault::BadLength)?;
                if self.length.replace(length).is_some() {
                    return Err(Fault::LengthTwice);
                }
            }
            b't' => {
                let Some(value) = value_of(line, b"transfer-encoding") else { return Ok(()) };
                let again = std::mem::replace(&mut self.chunked, true);
                if again || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(Fault::BadCoding);
                }
            }
            _ => return Ok(()),
        }
        if self.chunked && self.length.is_some() { Err(Fault::LengthAndCoding) } else { Ok(()) }
    }
}

/// The trimmed value, if the line is this header's.
fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = line.split_at_checked(name.len())?;
    if !start.eq_ignore_ascii_case(name) {
        return None;
    }
    // A space before the colon is no header; hyper refuses it, and we take it for what it pretends to be.
    Some(rest.trim_ascii_start().strip_prefix(b":")?.trim_ascii())
}

/// The size at the beginning of a chunk; extensions after it are nobody's.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let size = line.split(|&b| b == b';').next().unwrap_or_default();
    digits(size.trim_ascii(), 16)
}

/// A number of digits only: no sign, no prefix, no separators.
fn digits(text: &[u8], radix: u32) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |value, &b| {
        let digit = (b as char).to_digit(radix)?;
        value.checked_mul(radix as u64)?.checked_add(digit as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of the bytes, however they are cut: the fault, or whether a head is open at the end.
    fn check(text: &str, expected: Result<bool, Fault>) {
        let bytes = text.as_bytes();
        let told = |cuts: &[usize]| {
            let mut framing = Framing::default();
            let mut start = 0;
            for &cut in cuts.iter().chain([&bytes.len()]) {
                framing.feed(&bytes[start..cut])?;
                start = cut;
            }
            Ok(framing.is_in_head())
        };
        assert_eq!(told(&[]), expected, "{text:?}");
        for cut in 0..=bytes.len() {
            assert_eq!(told(&[cut]), expected, "{text:?} cut at {cut}");
        }
        let everywhere: Vec<_> = (1..bytes.len()).collect();
        assert_eq!(told(&everywhere), expected, "{text:?} byte by byte");
    }

    #[test]
    fn requests_follow_each_other() {
        check("", Ok(false));
        check("GET / HTTP/1.1\r\nHost: a\r\n\r\n", Ok(false));
        check("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET", Ok(true));
        check("GET / HTTP/1.1\r\nHost: a\r\n", Ok(true));
        check("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", Ok(false));
        check("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET", Ok(true));
        check("POST / HTTP/1.1\r\ncontent-length:3\r\n\r\nabc", Ok(false));
        check("POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\nGET / HTTP/1.1\r\n\r\n", Ok(false));
    }

    #[test]
    fn a_chunked_body_is_followed_to_its_end() {
        let head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        check(&format!("{head}3\r\nabc\r\nA;x=1\r\n0123456789\r\n0\r\n\r\n"), Ok(false));
        check(&format!("{head}0\r\nTrailer: 1\r\n\r\nGET"), Ok(true));
        check(&format!("{head}3\r\nabc\r\n"), Ok(false));
        check(&format!("{head}3\r\nabcd\r\n"), Err(Fault::BadChunk));
        check(&format!("{head}x\r\n"), Err(Fault::BadChunk));
        check(&format!("{head}-1\r\n"), Err(Fault::BadChunk));
        check(&format!("{head}10000000000000000\r\n"), Err(Fault::BadChunk));
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_a_fault() {
        let cases = [
            ("X: 1\nY: 2", Fault::BareLineFeed),
            ("X: 1\n", Fault::BareLineFeed),
            ("Content-Length: 3\r\nTransfer-Encoding: chunked", Fault::LengthAndCoding),
            ("Transfer-Encoding: chunked\r\nX: 1\r\nContent-Length: 3", Fault::LengthAndCoding),
            ("Content-Length: 3\r\nContent-Length: 3", Fault::LengthTwice),
            ("Content-Length: 3\r\nCONTENT-LENGTH: 4", Fault::LengthTwice),
            ("Content-Length: 3, 3", Fault::BadLength),
            ("Content-Length: +3", Fault::BadLength),
            ("Content-Length:", Fault::BadLength),
            ("Content-Length: 99999999999999999999", Fault::BadLength),
            ("Transfer-Encoding: gzip, chunked", Fault::BadCoding),
            ("Transfer-Encoding: identity", Fault::BadCoding),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", Fault::BadCoding),
            ("Transfer-Encoding: xchunked", Fault::BadCoding),
        ];
        for (headers, fault) in cases {
            check(&format!("POST / HTTP/1.1\r\nHost: a\r\n{headers}\r\n\r\n"), Err(fault));
        }
    }

    #[test]
    fn what_merely_looks_like_it_is_none() {
        let head = "POST / HTTP/1.1\r\nContent-Lengthy: x\r\nX: Content-Length: 3\r\nContent: 1\r\nT: 1\r\n";
        check(&format!("{head}\r\n"), Ok(false));
        let body = "Content-Length: 1\r\nContent-Length: 2\r\nTransfer-Encoding: x\r\n";
        check(&format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()), Ok(false));
        // A line longer than what is kept of it.
        check(&format!("GET /{} HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(300), "y".repeat(300)), Ok(false));
    }
}
