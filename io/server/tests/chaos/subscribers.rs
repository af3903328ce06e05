//! STOMP subscribers, over TCP and over WebSocket: each records every order status and every
//! transaction it receives.

use std::io;
use std::net::SocketAddr;

use pitlane_testkit::stomp_client::{StompClient, body, header};
use pitlane_testkit::web_socket::WebSocket;
use serde_json::Value;

use crate::received::{FINAL, ReceivedState, qty, text};
use crate::rest_trader;
use crate::traders::{ServiceAddresses, wire};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubscriberTransport {
    Tcp,
    WebSocket,
}

pub(crate) struct StatusSubscriber {
    over: SubscriberTransport,
    pub received: ReceivedState,
    /// Rows that arrived twice in one connection.
    pub twice: Vec<String>,
}

impl StatusSubscriber {
    pub(crate) fn new(over: SubscriberTransport) -> StatusSubscriber {
        StatusSubscriber { over, received: ReceivedState::default(), twice: Vec::new() }
    }

    /// Receives until the connection ends.
    pub(crate) fn session(&mut self, addresses: &ServiceAddresses) -> io::Result<()> {
        let mut client = connect(self.over, addresses)?;
        for topic in ["pitlane.>", "transaction.>"] {
            client.try_send_message(&format!("SUBSCRIBE|id:{topic}|destination:/topic/{topic}||"))?;
        }
        let mut received = ReceivedState::default();
        loop {
            let Some(frame) = client.try_receive()? else { return Ok(()) };
            let Some(topic) = header(&frame, "destination") else { continue };
            let row: Value = serde_json::from_str(body(&frame)).map_err(io::Error::other)?;
            if topic.starts_with("/topic/transaction.") {
                if received.transactions.contains_key(&text(&row, "uuid")) {
                    self.twice.push(frame.clone());
                }
                received.transaction(&row);
                self.received.transaction(&row);
            } else {
                self.record_status(&row);
            }
        }
    }
}

impl StatusSubscriber {
    /// A modified order has another id afterwards; only orders that have ended or are never
    /// modified are compared with the platform.
    fn record_status(&mut self, row: &Value) {
        let (id, status) = (text(row, "intId"), text(row, "status"));
        match FINAL.contains(&status.as_str()) || id.starts_with(rest_trader::PREFIX) {
            true => self.received.order(&id, &status, qty(row, "filledQuantity")),
            false => self.received.forget(&id),
        }
    }
}

/// Opens a session.
pub(crate) fn connect(over: SubscriberTransport, addresses: &ServiceAddresses) -> io::Result<StompClient> {
    let address: SocketAddr = if over == SubscriberTransport::Tcp { addresses.stomp } else { addresses.http };
    let socket = Box::new(wire(address)?);
    let mut client = match over {
        SubscriberTransport::Tcp => StompClient::new(socket),
        SubscriberTransport::WebSocket => {
            StompClient::new(Box::new(WebSocket::try_open(socket, address, "")?.0))
        }
    };
    client.try_send_message("CONNECT|accept-version:1.2|host:localhost||")?;
    match client.try_receive()? {
        Some(frame) if frame.starts_with("CONNECTED") => Ok(client),
        other => Err(io::Error::other(format!("no session: {other:?}"))),
    }
}
