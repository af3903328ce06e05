//! A STOMP client that sends given frames, over TCP, TLS or WebSocket, and reads frames.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::patience::PATIENCE;

pub trait StompStream: Read + Write + Send {}
impl<T: Read + Write + Send> StompStream for T {}

pub fn plain(address: SocketAddr) -> Box<dyn StompStream> {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_nodelay(true).unwrap();
    Box::new(socket)
}

/// Opens a connection that trusts the certificate which the service made in its folder.
pub fn tls(address: SocketAddr, data: &Path) -> Box<dyn StompStream> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(data.join("self-signed.pem")).unwrap() {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    Box::new(StreamOwned::new(ClientConnection::new(config, name).unwrap(), socket))
}

pub struct StompClient {
    wire: Box<dyn StompStream>,
    input: Vec<u8>,
}

impl StompClient {
    pub fn new(wire: Box<dyn StompStream>) -> StompClient {
        StompClient { wire, input: Vec::new() }
    }

    /// Sends `CONNECT|accept-version:1.2||body`, with a NUL at the end.
    pub fn send_message(&mut self, frame: &str) {
        self.try_send_message(frame).unwrap();
    }

    /// Does the same with a server that may be gone.
    pub fn try_send_message(&mut self, frame: &str) -> io::Result<()> {
        let mut bytes = frame.replace('|', "\n").into_bytes();
        bytes.push(0);
        self.wire.write_all(&bytes)?;
        self.wire.flush()
    }

    /// Returns the next frame, in the same form; None at the end. Heart-beats are skipped.
    pub fn receive(&mut self) -> Option<String> {
        self.try_receive().unwrap_or_else(|error| panic!("the next frame does not come: {error}"))
    }

    /// Does the same with a server that may be gone.
    pub fn try_receive(&mut self) -> io::Result<Option<String>> {
        loop {
            self.skip_heart_beats();
            if let Some(end) = self.input.iter().position(|byte| *byte == 0) {
                let frame: Vec<u8> = self.input.drain(..=end).collect();
                return Ok(Some(String::from_utf8(frame[..end].to_vec()).unwrap().replace('\n', "|")));
            }
            if !self.read_more()? {
                return Ok(None);
            }
        }
    }

    /// Returns head and body of the next frame. The body may have any octets; `content-length` of
    /// the head says how many.
    pub fn receive_binary(&mut self) -> (String, Vec<u8>) {
        loop {
            self.skip_heart_beats();
            if let Some(end) = self.input.windows(2).position(|pair| pair == b"\n\n") {
                let head = std::str::from_utf8(&self.input[..end]).unwrap().replace('\n', "|");
                let length = header(&head, "content-length").map_or(0, |length| length.parse().unwrap());
                let body_end = end + 2 + length;
                if self.input.len() > body_end {
                    assert_eq!(self.input[body_end], 0, "a frame ends after its body: {head}");
                    let body = self.input[end + 2..body_end].to_vec();
                    self.input.drain(..=body_end);
                    return (head, body);
                }
            }
            assert!(self.read_more().unwrap(), "the end came instead of a frame");
        }
    }

    fn skip_heart_beats(&mut self) {
        let begin = self.input.iter().position(|byte| *byte != b'\n').unwrap_or(self.input.len());
        self.input.drain(..begin);
    }

    /// Reads what has arrived, and returns whether the stream goes on.
    fn read_more(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 16 * 1024];
        loop {
            match self.wire.read(&mut buffer) {
                Ok(count) => {
                    self.input.extend_from_slice(&buffer[..count]);
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Skips frames until one has this beginning.
    pub fn receive_until(&mut self, begin: &str) -> String {
        let late = Instant::now() + PATIENCE;
        loop {
            let frame = self.receive().unwrap_or_else(|| panic!("the end came before {begin}"));
            if frame.starts_with(begin) {
                return frame;
            }
            assert!(Instant::now() < late, "{begin} does not come");
        }
    }

    pub fn connect(&mut self) {
        self.send_message("CONNECT|accept-version:1.2|host:localhost||");
        self.receive_until("CONNECTED|version:1.2");
    }

    /// Subscribes, and waits until the subscription is active.
    pub fn subscribe(&mut self, id: &str, topic: &str) {
        self.send_message(&format!("SUBSCRIBE|id:{id}|destination:/topic/{topic}|receipt:sub-{id}||"));
        self.receive_until(&format!("RECEIPT|receipt-id:sub-{id}"));
    }
}

/// Returns the value of a header.
pub fn header<'a>(frame: &'a str, name: &str) -> Option<&'a str> {
    let head = frame.split("||").next()?;
    head.split('|').skip(1).find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}

pub fn body(frame: &str) -> &str {
    frame.split_once("||").map_or("", |(_, body)| body)
}
