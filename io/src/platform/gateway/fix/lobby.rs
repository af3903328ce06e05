//! Connections that have not said yet whose they are: few, for a short time, with few bytes.

use pitlane_protocols::decoded::Decoded;
use pitlane_protocols::fix::greeting::identify;

use crate::fix::settings::{Arrival, FixSettings};
use crate::net::ConnectionId;

/// Connections without a Logon, at once; the next is closed. Clients that mean it are through in a moment.
const LOBBY_MAX: usize = 1_024;

#[derive(Debug, Default)]
pub struct Lobby {
    /// By slot of the connection.
    seats: Vec<Option<(ConnectionId, Arrival)>>,
    len: usize,
    /// Connections that were closed without a word.
    pub refused: u64,
}

impl Lobby {
    /// Answers whether there was room.
    pub fn enter(&mut self, id: ConnectionId, arrival: Arrival) -> bool {
        if self.len == LOBBY_MAX {
            self.refused += 1;
            return false;
        }
        if self.seats.len() <= id.slot() {
            self.seats.resize(id.slot() + 1, None);
        }
        self.seats[id.slot()] = Some((id, arrival));
        self.len += 1;
        true
    }

    pub fn has(&self, id: ConnectionId) -> bool {
        self.arrival(id).is_some()
    }

    pub fn arrival(&self, id: ConnectionId) -> Option<Arrival> {
        let seat = self.seats.get(id.slot()).copied().flatten();
        seat.filter(|(seat, _)| *seat == id).map(|(_, arrival)| arrival)
    }

    pub fn leave(&mut self, id: ConnectionId) -> Option<Arrival> {
        let arrival = self.arrival(id)?;
        self.seats[id.slot()] = None;
        self.len -= 1;
        Some(arrival)
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn drain(&mut self) -> Vec<ConnectionId> {
        self.len = 0;
        self.seats.iter_mut().filter_map(|seat| seat.take().map(|(id, _)| id)).collect()
    }
}

/// Where a connection belongs.
#[derive(Debug, PartialEq, Eq)]
pub enum Whither {
    /// There is no whole message yet.
    Wait,
    /// To the session of this name.
    To(String),
    /// Nobody of ours: closed without a word.
    Out,
}

pub fn whither(settings: &FixSettings, arrival: Arrival, bytes: &[u8]) -> Whither {
    let greeting = match identify(bytes) {
        Ok(Decoded::Message { message, .. }) => message,
        Ok(Decoded::Incomplete) if bytes.len() <= settings.logon_bytes_max => return Whither::Wait,
        Ok(Decoded::Incomplete) | Err(_) => return Whither::Out,
    };
    let name = settings.family(greeting.sender_comp_id, greeting.target_comp_id).and_then(|family| {
        let client = std::str::from_utf8(greeting.sender_comp_id).ok()?;
        family.name(client).filter(|_| family.admits(arrival))
    });
    name.map_or(Whither::Out, Whither::To)
}
