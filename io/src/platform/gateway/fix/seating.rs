//! How a connection comes to its session: by the first frame, here or on the gateway where the session lives.

use pitlane_engine::id::{Origin, Source};
use pitlane_engine::sender::SenderId;
use pitlane_engine::time::Timestamp;

use super::client::Client;
use super::lobby::{self, Whither};
use super::{FixRoom, client_of};
use crate::bulletin::Note;
use crate::journal::Fault;
use crate::net::ConnectionId;
use crate::net::sockets::Sockets;

impl FixRoom {
    /// The first frame, once it is there, says whose connection it is.
    pub(super) fn greet(&mut self, now: Timestamp, sockets: &mut Sockets, id: ConnectionId) {
        let Some(arrival) = self.lobby.arrival(id) else { return };
        match lobby::whither(&self.settings, arrival, sockets.input(id)) {
            Whither::Wait => {}
            Whither::Out => {
                self.lobby.leave(id);
                self.lobby.refused += 1;
                sockets.close(id);
            }
            Whither::To(name) => {
                self.lobby.leave(id);
                sockets.set_deadline(id, None);
                let home = self.homes.gateway(&name);
                if home == self.gateway {
                    self.seat(now, sockets, id, &name);
                } else if let Some(detached) = sockets.release(id)
                    && !self.passage.send(home, (name, detached))
                {
                    self.lobby.refused += 1;
                }
            }
        }
    }

    /// Connections that others have accepted for sessions of ours.
    pub(super) fn adopt(&mut self, now: Timestamp, sockets: &mut Sockets) {
        while let Some((name, detached)) = self.passage.receive() {
            let id = sockets.adopt(detached);
            self.seat(now, sockets, id, &name);
        }
    }

    /// Gives a connection to its session; a second one is refused without a word, and the first is not disturbed.
    fn seat(&mut self, now: Timestamp, sockets: &mut Sockets, id: ConnectionId, name: &str) {
        let number = match self.admit(now, name) {
            Ok(Some(number)) => number,
            Ok(None) => return sockets.close(id),
            Err(fault) => {
                tracing::error!(session = name, %fault, "a FIX session cannot be opened");
                return sockets.close(id);
            }
        };
        let ready = self.ready;
        let schedule = self.settings.family_of(name).map(|(family, _)| family.schedule(now));
        let client = client_of(&mut self.clients, number);
        let Some(client) = client.and_then(|client| client.session.connect(now).then_some(client)) else {
            self.lobby.refused += 1;
            return sockets.close(id);
        };
        client.session.set_ready(ready);
        schedule.into_iter().for_each(|schedule| client.session.set_schedule(schedule));
        client.connection = Some(id);
        client.peer = sockets.peer(id);
        client.sender = SenderId::NONE;
        client.since = now;
        if self.seats.len() <= id.slot() {
            self.seats.resize(id.slot() + 1, None);
        }
        self.seats[id.slot()] = Some((id, number));
        self.receive(now, sockets, id);
    }

    /// The number of a session, which is made if this is its first time.
    pub(super) fn admit(&mut self, now: Timestamp, name: &str) -> Result<Option<u16>, Fault> {
        let Some((family, comp_id)) = self.settings.family_of(name) else { return Ok(None) };
        let Some(number) = self.ledger.number(name)? else { return Ok(None) };
        let at = number as usize - 1;
        if self.clients.len() <= at {
            self.clients.resize_with(at + 1, || None);
        }
        if self.clients[at].is_none() {
            let source = Source { origin: Origin::Fix, port: self.port, session: number };
            let settings = family.session(now, &self.settings, &comp_id, source);
            let store = self.past.open_store(now, name, family, &mut self.clerk)?;
            let mut client = Client::new(name, settings, store, self.reference.clone());
            client.login = family.login().map(|(login, secret)| (login.to_string(), secret.clone()));
            if let Some(folder) = &family.log_folder {
                client.logged = self.clerk.open_log(number, folder.join(format!("{name}.log")));
            }
            let (port, session) = (self.port, number);
            self.notes.push(Note::Named { port, session, name: comp_id.into() });
            self.clients[at] = Some(Box::new(client));
        }
        Ok(Some(number))
    }
}
