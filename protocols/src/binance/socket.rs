//! One WebSocket connection to the venue with its buffers: output that waits for the gateway, and
//! the messages of one read.

use crate::venue::ConnectRandom;
use crate::websocket::client::{ClientFault, WebSocketClient};
use crate::websocket::code;

#[derive(Debug, Default)]
pub(super) struct VenueSocket {
    client: Option<WebSocketClient>,
    output: Vec<u8>,
    /// Bytes of `output` that are transmitted.
    transmitted: usize,
    /// Empty between two reads; kept for its memory.
    inbox: Inbox,
}

/// Messages of one read.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Inbox {
    pub(super) fn messages(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end])
    }
}

impl VenueSocket {
    /// Starts the handshake.
    pub(super) fn connect(&mut self, host: &str, path: &str, random: ConnectRandom) {
        self.disconnect();
        let client = WebSocketClient::connect(host, path, random.key, random.seed, &mut self.output);
        self.client = Some(client);
    }

    pub(super) fn disconnect(&mut self) {
        self.client = None;
        self.output.clear();
        self.transmitted = 0;
    }

    /// Returns whether the handshake is done.
    pub(super) fn is_open(&self) -> bool {
        self.client.as_ref().is_some_and(WebSocketClient::is_open)
    }

    /// Sends a message. Returns false without a connection.
    pub(super) fn send(&mut self, text: &[u8]) -> bool {
        let Some(client) = &mut self.client else { return false };
        client.send(text, &mut self.output);
        true
    }

    /// Sends the close frame.
    pub(super) fn close(&mut self) {
        if let Some(client) = &mut self.client {
            client.close(Some(code::NORMAL), &mut self.output);
        }
    }

    /// Handles received bytes. The caller gives the messages back with [`VenueSocket::reuse`].
    pub(super) fn receive(&mut self, bytes: &mut [u8]) -> (Inbox, Result<(), ClientFault>) {
        let mut inbox = std::mem::take(&mut self.inbox);
        let Some(client) = &mut self.client else { return (inbox, Ok(())) };
        let outcome = client.handle_bytes(bytes, &mut self.output, |message| {
            inbox.bytes.extend_from_slice(message);
            inbox.ends.push(inbox.bytes.len());
        });
        (inbox, outcome)
    }

    pub(super) fn reuse(&mut self, mut inbox: Inbox) {
        inbox.bytes.clear();
        inbox.ends.clear();
        self.inbox = inbox;
    }

    /// Returns the output that is not transmitted yet.
    pub(super) fn unsent(&self) -> &[u8] {
        &self.output[self.transmitted..]
    }

    pub(super) fn handle_transmitted(&mut self, count: usize) {
        self.transmitted += count;
        if self.transmitted == self.output.len() {
            self.output.clear();
            self.transmitted = 0;
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::websocket::client::WebSocketKey;

    /// Returns values with which a connection begins: those of section 1.3 of RFC 6455.
    pub(in super::super) fn random() -> ConnectRandom {
        let accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=".to_string();
        ConnectRandom { key: WebSocketKey { key: "dGhlIHNhbXBsZSBub25jZQ==".to_string(), accept }, seed: 5 }
    }

    /// Returns the answer of the venue to the handshake.
    pub(in super::super) fn answer() -> Vec<u8> {
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
          Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
            .to_vec()
    }

    #[test]
    fn output_waits_until_all_of_it_is_transmitted() {
        let mut socket = VenueSocket::default();
        assert!(!socket.is_open() && !socket.send(b"x"), "there is no connection");
        socket.connect("venue:443", "/ws", random());
        let handshake = socket.unsent().to_vec();
        assert!(handshake.starts_with(b"GET /ws HTTP/1.1\r\n") && !socket.is_open());
        socket.handle_transmitted(10);
        assert_eq!(socket.unsent(), &handshake[10..]);
        socket.handle_transmitted(handshake.len() - 10);
        assert!(socket.unsent().is_empty());
        let (inbox, outcome) = socket.receive(&mut answer());
        assert_eq!((inbox.messages().count(), outcome), (0, Ok(())));
        assert!(socket.is_open() && socket.send(b"x"));
        let message = socket.unsent().len();
        socket.close();
        assert!(socket.unsent().len() > message, "the close frame follows");
        socket.disconnect();
        assert!(socket.unsent().is_empty() && !socket.is_open());
    }

    #[test]
    fn the_messages_of_a_read_are_those_of_no_other() {
        let mut socket = VenueSocket::default();
        socket.connect("venue:443", "/ws", random());
        let mut bytes = answer();
        bytes.extend_from_slice(b"\x81\x02ab\x81\x00\x81\x01c");
        let (inbox, _) = socket.receive(&mut bytes);
        assert_eq!(inbox.messages().collect::<Vec<_>>(), [&b"ab"[..], b"", b"c"]);
        socket.reuse(inbox);
        let (inbox, _) = socket.receive(&mut b"\x81\x01d".to_vec());
        assert_eq!(inbox.messages().collect::<Vec<_>>(), [b"d"]);
    }
}
