//! STOMP subscribers, over TCP and over WebSocket: each records every order status and every
//! transaction it receives.

use std::io;
use std::net::SocketAddr;

use serde_json::Value;

use crate::people::{Doors, wire};
use crate::rest_trader;
use crate::stomp::client::{Client, body, header};
use crate::stomp::socket::WebSocket;
use crate::told::{FINAL, Told, qty, text};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    Tcp,
    WebSocket,
}

pub struct Ear {
    over: Over,
    pub told: Told,
    /// Rows that arrived twice in one connection.
    pub twice: Vec<String>,
}

impl Ear {
    pub fn new(over: Over) -> Ear {
        Ear { over, told: Told::default(), twice: Vec::new() }
    }

    /// Receives until the connection ends.
    pub fn session(&mut self, doors: &Doors) -> io::Result<()> {
        let mut client = connect(self.over, doors)?;
        for topic in ["pitlane.>", "transaction.>"] {
            client.try_say(&format!("SUBSCRIBE|id:{topic}|destination:/topic/{topic}||"))?;
        }
        let mut heard = Told::default();
        loop {
            let Some(frame) = client.try_hear()? else { return Ok(()) };
            let Some(topic) = header(&frame, "destination") else { continue };
            let row: Value = serde_json::from_str(body(&frame)).map_err(io::Error::other)?;
            if topic.starts_with("/topic/transaction.") {
                if heard.transactions.contains_key(&text(&row, "uuid")) {
                    self.twice.push(frame.clone());
                }
                heard.transaction(&row);
                self.told.transaction(&row);
            } else {
                self.hear_status(&row);
            }
        }
    }
}

impl Ear {
    /// A modified order has another id afterwards; only orders that have ended or are never
    /// modified are compared with the platform.
    fn hear_status(&mut self, row: &Value) {
        let (id, status) = (text(row, "intId"), text(row, "status"));
        match FINAL.contains(&status.as_str()) || id.starts_with(rest_trader::PREFIX) {
            true => self.told.order(&id, &status, qty(row, "filledQuantity")),
            false => self.told.forget(&id),
        }
    }
}

/// Opens a session.
pub fn connect(over: Over, doors: &Doors) -> io::Result<Client> {
    let address: SocketAddr = if over == Over::Tcp { doors.stomp } else { doors.http };
    let socket = Box::new(wire(address)?);
    let mut client = match over {
        Over::Tcp => Client::new(socket),
        Over::WebSocket => Client::new(Box::new(WebSocket::try_open(socket, address, "")?.0)),
    };
    client.try_say("CONNECT|accept-version:1.2|host:localhost||")?;
    match client.try_hear()? {
        Some(frame) if frame.starts_with("CONNECTED") => Ok(client),
        other => Err(io::Error::other(format!("no session: {other:?}"))),
    }
}
