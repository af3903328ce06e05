//! The client's end of a WebSocket, below the STOMP client.

use std::io::{self, Read, Write};
use std::net::SocketAddr;

use pitlane_engine::index::{index_u8, index_u16};

use crate::stomp_client::StompStream;

/// The client's end of a WebSocket. As a stream it writes each call as one message, and reads the
/// payload of messages.
pub struct WebSocket {
    wire: Box<dyn StompStream>,
    payload: Vec<u8>,
    /// Code of the close frame that was read.
    pub code: Option<u16>,
}

impl WebSocket {
    /// Performs the opening handshake; returns the head of the response.
    pub fn open(wire: Box<dyn StompStream>, address: SocketAddr, further: &str) -> (WebSocket, String) {
        WebSocket::try_open(wire, address, further).unwrap()
    }

    /// Does the same with a server that may disconnect at any moment.
    pub fn try_open(
        mut wire: Box<dyn StompStream>,
        address: SocketAddr,
        further: &str,
    ) -> io::Result<(WebSocket, String)> {
        let request = format!(
            "GET /stomp HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{further}\r\n"
        );
        wire.write_all(request.as_bytes())?;
        wire.flush()?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            wire.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        Ok((WebSocket { wire, payload: Vec::new(), code: None }, head))
    }

    pub fn send(&mut self, first: u8, payload: &[u8]) {
        let mask = [1, 2, 3, 4];
        let mut frame = vec![first];
        match payload.len() {
            len @ 0..=125 => frame.push(0x80 | index_u8(len)),
            len @ 126..=0xffff => {
                frame.push(0x80 | 126);
                frame.extend_from_slice(&index_u16(len).to_be_bytes());
            }
            len => {
                frame.push(0x80 | 127);
                frame.extend_from_slice(&(len as u64).to_be_bytes());
            }
        }
        frame.extend_from_slice(&mask);
        frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        // A client that was disconnected may find that the server is gone.
        let _ = self.wire.write_all(&frame).and_then(|()| self.wire.flush());
    }

    /// Sends raw bytes.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        let _ = self.wire.write_all(bytes).and_then(|()| self.wire.flush());
    }

    /// Returns opcode and payload of the next frame; None at the end.
    pub fn receive(&mut self) -> Option<(u8, Vec<u8>)> {
        self.try_receive().unwrap()
    }

    fn try_receive(&mut self) -> io::Result<Option<(u8, Vec<u8>)>> {
        let mut head = [0; 2];
        if self.wire.read(&mut head[..1])? == 0 {
            return Ok(None);
        }
        self.wire.read_exact(&mut head[1..])?;
        assert_eq!(head[0] & 0x70, 0, "no reserved bit is set");
        assert_eq!(head[0] & 0x80, 0x80, "our messages have one fragment");
        assert_eq!(head[1] & 0x80, 0, "a server does not mask");
        let len = match head[1] {
            126 => {
                let mut len = [0; 2];
                self.wire.read_exact(&mut len)?;
                u16::from_be_bytes(len) as usize
            }
            127 => panic!("no message is so long"),
            len => len as usize,
        };
        let mut payload = vec![0; len];
        self.wire.read_exact(&mut payload)?;
        Ok(Some((head[0] & 0x0f, payload)))
    }

    /// Returns the code of the close frame, which must be the next frame after messages, and must
    /// be followed by the end.
    pub fn closed(&mut self) -> Option<u16> {
        loop {
            match self.receive() {
                Some((8, payload)) => {
                    let code = payload.first_chunk::<2>().map(|code| u16::from_be_bytes(*code));
                    self.send(0x88, &payload);
                    assert_eq!(self.receive(), None, "nothing comes after a close");
                    return code;
                }
                Some(_) => {}
                None => panic!("the end came without a close frame"),
            }
        }
    }
}

impl Write for WebSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Bytes that are no text are sent as binary.
        self.send(if std::str::from_utf8(bytes).is_ok() { 0x81 } else { 0x82 }, bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for WebSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.payload.is_empty() {
            let Some((opcode, payload)) = self.try_receive()? else { return Ok(0) };
            match opcode {
                1 => {
                    let ends = payload.iter().filter(|byte| **byte == 0).count();
                    assert!(
                        payload == b"\n" || ends == 1 && payload.ends_with(&[0]),
                        "a frame, whole and alone"
                    );
                    self.payload = payload;
                }
                // A binary body may contain NUL.
                2 => {
                    assert!(payload.ends_with(&[0]), "a frame, whole and alone");
                    self.payload = payload;
                }
                8 => {
                    self.code = payload.first_chunk::<2>().map(|code| u16::from_be_bytes(*code));
                    self.send(0x88, &payload);
                }
                other => panic!("a frame of kind {other}"),
            }
        }
        let count = buffer.len().min(self.payload.len());
        buffer[..count].copy_from_slice(&self.payload[..count]);
        self.payload.drain(..count);
        Ok(count)
    }
}
