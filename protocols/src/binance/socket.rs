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
