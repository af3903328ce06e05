//! An HTTP client that writes exact bytes and parses responses strictly.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use crate::patience::PATIENCE;

pub struct HttpClient {
    socket: BufReader<TcpStream>,
}

impl HttpClient {
    pub fn new(socket: TcpStream) -> HttpClient {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        HttpClient { socket: BufReader::new(socket) }
    }

    pub fn send(&mut self, text: &str) {
        self.send_bytes(text.as_bytes()).unwrap();
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.socket.get_mut().write_all(bytes)
    }

    /// Reads the next response; `bare` if it has no body, as after a HEAD.
    pub fn receive(&mut self, bare: bool) -> Response {
        self.try_receive(bare).unwrap()
    }

    /// Does the same with a server that may be gone.
    pub fn try_receive(&mut self, bare: bool) -> io::Result<Response> {
        Response::try_read(&mut self.socket, bare)
    }

    /// Returns whether the server closes the connection without a further byte.
    pub fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.socket.read_to_end(&mut rest) {
            Ok(_) => rest.is_empty(),
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Decoded if it was compressed; empty if it is no text.
    pub body: String,
    /// The body if it is no text.
    pub bytes: Vec<u8>,
    /// Bytes of the body as it was sent.
    pub sent_bytes: usize,
}

impl Response {
    pub fn read(socket: &mut impl BufRead, bare: bool) -> Response {
        Response::try_read(socket, bare).unwrap()
    }

    fn try_read(socket: &mut impl BufRead, bare: bool) -> io::Result<Response> {
        let status = line(socket)?;
        let mut parts = status.split(' ');
        assert_eq!(parts.next(), Some("HTTP/1.1"), "{status:?}");
        let status = parts.next().unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let header = line(socket)?;
            let Some((name, value)) = header.split_once(": ") else {
                assert_eq!(header, "");
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.to_string()));
        }
        let mut response =
            Response { status, headers, body: String::new(), bytes: Vec::new(), sent_bytes: 0 };
        if !bare && status != 304 {
            let sent = response.read_body(socket)?;
            response.sent_bytes = sent.len();
            let decoded = response.decode(sent)?;
            match response.header("content-type") {
                Some(name) if name.starts_with("application/vnd.apache.") => response.bytes = decoded,
                _ => response.body = String::from_utf8(decoded).unwrap(),
            }
        }
        Ok(response)
    }

    fn read_body(&self, socket: &mut impl BufRead) -> io::Result<Vec<u8>> {
        let mut whole = Vec::new();
        if self.header("transfer-encoding") == Some("chunked") {
            loop {
                let size = usize::from_str_radix(&line(socket)?, 16).unwrap();
                let mut chunk = vec![0; size];
                socket.read_exact(&mut chunk)?;
                assert_eq!(line(socket)?, "");
                if size == 0 {
                    break;
                }
                whole.extend(chunk);
            }
        } else {
            let length = self.header("content-length").expect("a length or chunks").parse().unwrap();
            whole.resize(length, 0);
            socket.read_exact(&mut whole)?;
        }
        Ok(whole)
    }

    fn decode(&self, sent: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut plain = Vec::new();
        match self.header("content-encoding") {
            None => return Ok(sent),
            Some("gzip") => flate2::read::GzDecoder::new(&sent[..]).read_to_end(&mut plain)?,
            Some("zstd") => zstd::stream::read::Decoder::new(&sent[..])?.read_to_end(&mut plain)?,
            Some(other) => panic!("an unknown coding: {other}"),
        };
        Ok(plain)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(other, _)| other == name);
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} twice");
        value
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Returns the machine-readable code of a problem.
    pub fn code(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        self.json()["code"].as_str().unwrap().to_string()
    }
}

fn line(socket: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    socket.read_line(&mut line)?;
    let whole = line.strip_suffix("\r\n").map(str::to_string);
    whole.ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, format!("a cut line: {line:?}")))
}
