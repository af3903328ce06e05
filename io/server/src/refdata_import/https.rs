//! One GET request over HTTP/1.1, for answers of a public venue. Not on the path of orders: it
//! blocks, and needs no async runtime.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use pitlane_config::VenueUrl;
use pitlane_gateway::fix::venue::{addresses_of, tls_to};
use rustls::{ClientConnection, StreamOwned};

/// Time limit of a connect, and of each read and write.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit of the whole answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(120);
/// Longest line of a head, and of the line before a chunk.
const LINE_BYTES_MAX: u64 = 16 * 1024;
/// Lines of a head.
const HEAD_LINES_MAX: usize = 128;
/// Longest body: Binance sends some 20 MB for all of its symbols.
pub(super) const BODY_BYTES_MAX: usize = 128 << 20;

/// An answer with any status.
#[derive(Debug)]
pub(super) struct HttpAnswer {
    pub status: u16,
    /// Seconds of Retry-After.
    pub retry_after_s: Option<u64>,
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum HttpError {
    /// The address cannot be used.
    Address(String),
    Io(io::Error),
    /// The peer does not speak HTTP.
    NotHttp(&'static str),
    /// The answer ends before its own length.
    Truncated,
    TooLarge,
    TooSlow,
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HttpError::Address(problem) => f.write_str(problem),
            HttpError::Io(error) => error.fmt(f),
            HttpError::NotHttp(what) => write!(f, "the answer is not HTTP: {what}"),
            HttpError::Truncated => f.write_str("the answer is truncated"),
            HttpError::TooLarge => write!(f, "the answer is larger than {BODY_BYTES_MAX} bytes"),
            HttpError::TooSlow => {
                write!(f, "the answer takes longer than {} s", ANSWER_TIME_MAX.as_secs())
            }
        }
    }
}

impl From<io::Error> for HttpError {
    fn from(error: io::Error) -> HttpError {
        let is_end = error.kind() == io::ErrorKind::UnexpectedEof;
        if is_end { HttpError::Truncated } else { HttpError::Io(error) }
    }
}

/// Sends the request, and reads the answer.
pub(super) fn get(url: &VenueUrl, query: &str, authorities: &Path) -> Result<HttpAnswer, HttpError> {
    let stream = connect(url)?;
    let request = format!(
        "GET {}{query} HTTP/1.1\r\nHost: {}\r\nUser-Agent: pitlane/{}\r\nAccept: application/json\r\n\
         Connection: close\r\n\r\n",
        url.path,
        url.authority(),
        env!("CARGO_PKG_VERSION")
    );
    if !url.is_tls {
        return exchange(stream, &request);
    }
    let (config, name) = tls_to(&url.host, authorities).map_err(HttpError::Address)?;
    let session = ClientConnection::new(config, name)
        .map_err(|error| HttpError::Address(format!("{}: {error}", url.host)))?;
    exchange(StreamOwned::new(session, stream), &request)
}

/// Connects to the first address of the host that accepts.
fn connect(url: &VenueUrl) -> Result<TcpStream, HttpError> {
    let mut failure = None;
    for address in addresses_of(&url.host, url.port).map_err(HttpError::Address)? {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(stream) => {
                stream.set_read_timeout(Some(TIMEOUT))?;
                stream.set_write_timeout(Some(TIMEOUT))?;
                return Ok(stream);
            }
            Err(error) => failure = Some(HttpError::Address(format!("{address}: {error}"))),
        }
    }
    Err(failure.unwrap_or_else(|| HttpError::Address(format!("{}: it has no address", url.host))))
}

fn exchange(mut stream: impl Read + Write, request: &str) -> Result<HttpAnswer, HttpError> {
    stream.write_all(request.as_bytes())?;
    stream.flush()?;
    let end = Instant::now() + ANSWER_TIME_MAX;
    read_answer(&mut BufReader::with_capacity(64 * 1024, stream), &|| Instant::now() >= end)
}

fn read_answer(input: &mut impl BufRead, is_late: &dyn Fn() -> bool) -> Result<HttpAnswer, HttpError> {
    let status_line = read_line(input)?;
    let mut words = status_line.splitn(3, ' ');
    let is_http = words.next().is_some_and(|version| version.starts_with("HTTP/1."));
    let status = words.next().and_then(|word| word.parse().ok());
    let Some(status) = status.filter(|_| is_http) else {
        return Err(HttpError::NotHttp("it has no status line"));
    };
    let mut length = None;
    let mut is_chunked = false;
    let mut retry_after_s = None;
    for count in 0.. {
        let line = read_line(input)?;
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':').filter(|_| count < HEAD_LINES_MAX) else {
            return Err(HttpError::NotHttp("its head is none"));
        };
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            let parsed = value.parse::<usize>();
            length = Some(parsed.map_err(|_| HttpError::NotHttp("its length is no number"))?);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            is_chunked = value.eq_ignore_ascii_case("chunked");
            if !is_chunked {
                return Err(HttpError::NotHttp("its transfer encoding is unknown"));
            }
        } else if name.eq_ignore_ascii_case("retry-after") {
            retry_after_s = value.parse().ok();
        }
    }
    let mut body = Vec::new();
    match length {
        _ if is_chunked => read_chunks(input, &mut body, is_late)?,
        Some(length) => read_part(input, &mut body, length, is_late)?,
        None => {
            let count = read_up_to(input, &mut body, BODY_BYTES_MAX + 1, is_late)?;
            if count > BODY_BYTES_MAX {
                return Err(HttpError::TooLarge);
            }
        }
    }
    Ok(HttpAnswer { status, retry_after_s, body })
}

/// Reads a line without its end.
fn read_line(input: &mut impl BufRead) -> Result<String, HttpError> {
    let mut line = Vec::new();
    input.take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        let is_long = line.len() as u64 + 1 >= LINE_BYTES_MAX;
        return Err(if is_long { HttpError::NotHttp("a line is too long") } else { HttpError::Truncated });
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    String::from_utf8(line).map_err(|_| HttpError::NotHttp("its head is no text"))
}

fn read_chunks(
    input: &mut impl BufRead,
    body: &mut Vec<u8>,
    is_late: &dyn Fn() -> bool,
) -> Result<(), HttpError> {
    loop {
        let line = read_line(input)?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(digits, 16).ok().and_then(|size| usize::try_from(size).ok());
        let size = size.ok_or(HttpError::NotHttp("the size of a chunk is no number"))?;
        if size == 0 {
            return Ok(());
        }
        read_part(input, body, size, is_late)?;
        if !read_line(input)?.is_empty() {
            return Err(HttpError::NotHttp("a chunk is longer than its size"));
        }
    }
}

/// Reads exactly so many bytes.
fn read_part(
    input: &mut impl BufRead,
    body: &mut Vec<u8>,
    count: usize,
    is_late: &dyn Fn() -> bool,
) -> Result<(), HttpError> {
    if count > BODY_BYTES_MAX - body.len() {
        return Err(HttpError::TooLarge);
    }
    let read = read_up_to(input, body, count, is_late)?;
    if read == count { Ok(()) } else { Err(HttpError::Truncated) }
}

/// Reads up to so many bytes, or to the end. The memory grows with what has arrived, not with what
/// the peer has announced.
fn read_up_to(
    input: &mut impl BufRead,
    body: &mut Vec<u8>,
    count: usize,
    is_late: &dyn Fn() -> bool,
) -> Result<usize, HttpError> {
    let mut left = count;
    while left > 0 {
        if is_late() {
            return Err(HttpError::TooSlow);
        }
        let bytes = input.fill_buf()?;
        let part = bytes.len().min(left);
        if part == 0 {
            break;
        }
        body.extend_from_slice(&bytes[..part]);
        input.consume(part);
        left -= part;
    }
    Ok(count - left)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns status and body, or the error in words.
    fn answer(text: &str) -> Result<(u16, String), String> {
        let found = read_answer(&mut text.as_bytes(), &|| false).map_err(|error| error.to_string())?;
        Ok((found.status, String::from_utf8(found.body).unwrap()))
    }

    #[test]
    fn bodies_have_a_length_or_chunks_or_end_with_the_connection() {
        assert_eq!(answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}x"), Ok((200, "{}".into())));
        let chunks =
            "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n1\r\n{\r\nA;x=y\r\n012345678}\r\n0\r\n\r\n";
        assert_eq!(answer(chunks), Ok((200, "{012345678}".into())));
        assert_eq!(answer("HTTP/1.0 404 Not Found\r\n\r\nnone"), Ok((404, "none".into())));
        for end in 0..chunks.len() - 2 {
            assert!(answer(&chunks[..end]).is_err(), "{end}");
        }
        assert_eq!(
            answer("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}"),
            Err("the answer is truncated".into())
        );
    }

    #[test]
    fn a_ban_says_for_how_long() {
        let text = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 17\r\nContent-Length: 0\r\n\r\n";
        let found = read_answer(&mut text.as_bytes(), &|| false).unwrap();
        assert_eq!((found.status, found.retry_after_s), (429, Some(17)));
    }

    #[test]
    fn other_answers_are_refused() {
        for (text, wanted) in [
            ("SSH-2.0\r\n".to_string(), "no status line"),
            ("HTTP/1.1 two\r\n\r\n".to_string(), "no status line"),
            ("HTTP/1.1 200 OK\r\nnothing\r\n\r\n".to_string(), "its head is none"),
            ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n".to_string(), "its length is no number"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n".to_string(), "encoding is unknown"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n".to_string(), "size of a chunk"),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n".to_string(),
                "longer than its size",
            ),
            (format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(HEAD_LINES_MAX + 1)), "its head is none"),
            ("x".repeat(usize::try_from(LINE_BYTES_MAX).unwrap() + 1), "a line is too long"),
        ] {
            let error = answer(&text).unwrap_err();
            assert!(error.contains(wanted), "{wanted}: {error}");
        }
    }

    #[test]
    fn the_size_and_the_time_of_an_answer_are_bounded() {
        let long = BODY_BYTES_MAX + 1;
        let announced = format!("HTTP/1.1 200 OK\r\nContent-Length: {long}\r\n\r\n");
        assert!(answer(&announced).unwrap_err().contains("larger than"));
        let chunked = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{long:x}\r\n");
        assert!(answer(&chunked).unwrap_err().contains("larger than"));
        let head = "HTTP/1.1 200 OK\r\n\r\n".as_bytes();
        let endless = &mut BufReader::new(head.chain(io::repeat(b'x')));
        assert!(matches!(read_answer(endless, &|| false), Err(HttpError::TooLarge)));
        let slow = &mut BufReader::new(head.chain(io::repeat(b'x')));
        assert!(matches!(read_answer(slow, &|| true), Err(HttpError::TooSlow)));
    }
}
