//! The broker of one thread with all clients connected to it, whatever carries the connection.
//! Executes the broker's commands in one way for all; the sockets are in `platform/gateway/stomp`
//! and `http/websocket_broker`.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use pitlane_auth::{Credentials, RevocationWatch};
use pitlane_config::Secret;
use pitlane_engine::event::Event;
use pitlane_engine::id::ShardId;
use pitlane_engine::mesh::PortEnd;
use pitlane_engine::refdata::RefData;
use pitlane_engine::slot_table::SlotTable;
use pitlane_engine::time::Timestamp;
use pitlane_protocols::stomp::access::{Passcode, StompAccess};
use pitlane_protocols::stomp::broker::{BrokerCommand, SessionId, StompBroker};
use pitlane_protocols::stomp::session::Transport;
use pitlane_protocols::stomp::settings::BrokerSettings;

use super::subscriptions::{MarketWatch, Subscriptions};
use crate::notifications::{Notification, SessionInfo, SessionKind};

/// Maximum number of notifications that wait to be forwarded. They are taken in every cycle, so
/// only a flood reaches this bound; beyond it they are dropped and counted.
const NOTIFICATIONS_MAX: usize = 4_096;

#[derive(Debug)]
pub struct BrokerHost {
    pub broker: StompBroker,
    transport: Transport,
    watches: Subscriptions,
    /// `None` if clients do not log in here.
    revocations: Option<RevocationWatch>,
    clients: SlotTable<SessionId, ConnectedClient>,
    /// Number of connections so far.
    number: u64,
    /// Events of clients to all strategies, for other threads.
    notifications: VecDeque<Notification>,
    dropped: u64,
}

#[derive(Debug)]
struct ConnectedClient {
    number: u64,
    peer: SocketAddr,
    since: Timestamp,
    name: Option<Arc<str>>,
    /// Generation of the credentials at the time of the login.
    generation: u64,
}

impl BrokerHost {
    pub fn new(
        settings: BrokerSettings,
        reference: Arc<RefData>,
        transport: Transport,
        revocations: Option<RevocationWatch>,
    ) -> BrokerHost {
        BrokerHost {
            watches: Subscriptions::new(reference.clone(), settings.receives_all_ticks),
            broker: StompBroker::new(settings, reference),
            transport,
            revocations,
            clients: SlotTable::default(),
            number: 0,
            notifications: VecDeque::new(),
            dropped: 0,
        }
    }

    /// Takes new reference data, which are effective in all shards.
    pub fn set_reference(&mut self, reference: &Arc<RefData>) {
        self.broker.set_reference(reference.clone());
        self.watches.set_reference(reference);
    }

    /// Adds a connection. Returns `None` if the maximum number of sessions is reached.
    pub fn enter(&mut self, now: Timestamp, peer: SocketAddr) -> Option<SessionId> {
        let session = self.broker.open(now, self.transport)?;
        self.number += 1;
        let client = ConnectedClient { number: self.number, peer, since: now, name: None, generation: 0 };
        self.clients.insert(session, client);
        Some(session)
    }

    /// Removes a connection that is gone.
    pub fn leave(&mut self, session: SessionId) {
        if self.clients.remove(session).is_some() {
            self.broker.close(session);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    pub fn handle_event(&mut self, now: Timestamp, shard: ShardId, event: &Event) {
        if self.watches.may_repeat(event) && self.broker.repeats_newest(shard, event) {
            return;
        }
        self.broker.handle_event(now, shard, event);
    }

    /// Handles a notification of another thread.
    pub fn handle_notification(&mut self, now: Timestamp, notification: &Notification) {
        notification.publish(now, &mut self.broker);
        if let Notification::Kick { kind, number } = *notification
            && kind == self.kind()
        {
            self.kick(now, number);
        }
    }

    /// Executes the broker's commands. `ask` starts the verification of a client's credentials and
    /// returns false if that is not possible now.
    pub fn dispatch(&mut self, now: Timestamp, mut ask: impl FnMut(SessionId, Credentials) -> bool) {
        while let Some(command) = self.broker.poll_command() {
            match command {
                BrokerCommand::Watch { interest, on } => self.watches.set(interest, on),
                BrokerCommand::Login { session, login, passcode, .. } => {
                    let generation = self.revocations.as_ref().map_or(0, RevocationWatch::generation);
                    let peer = self.client(session).map(|client| {
                        client.generation = generation;
                        client.peer.ip()
                    });
                    // A client library may send an empty `login:` with a token. It means the same
                    // as none.
                    let login = login.filter(|login| !login.is_empty());
                    let credentials = peer.zip(passcode).map(|(peer, Passcode(passcode))| Credentials {
                        login,
                        secret: Secret::new(&passcode),
                        peer,
                    });
                    if !credentials.is_some_and(|credentials| ask(session, credentials)) {
                        self.broker.handle_login_result(now, session, None);
                    }
                }
                BrokerCommand::Generic { name, body, .. } => {
                    let notification = Notification::Generic { name: name.into(), body: body.into() };
                    notification.publish(now, &mut self.broker);
                    if self.notifications.len() < NOTIFICATIONS_MAX {
                        self.notifications.push_back(notification);
                    } else {
                        self.dropped += 1;
                    }
                }
            }
        }
    }

    /// Handles the result of a login; `None` if it was refused.
    pub fn handle_verdict(
        &mut self,
        now: Timestamp,
        session: SessionId,
        known: Option<(Arc<str>, StompAccess)>,
    ) {
        let generation = self.client(session).map_or(0, |client| client.generation);
        // The login may have been revoked since the verdict.
        let is_revoked = |name: &str| {
            self.revocations.as_ref().is_some_and(|revocations| revocations.is_revoked(name, generation))
        };
        let (name, access) = known.filter(|(name, _)| !is_revoked(name)).unzip();
        if let Some(client) = self.client(session) {
            client.name = name;
        }
        self.broker.handle_login_result(now, session, access);
    }

    /// Receives the depth of all securities from now on, whatever clients want.
    pub fn keep_depths(&mut self) {
        self.watches.keep_depths();
    }

    /// Sends the subscriptions of this thread to the shards while the lanes accept them; returns
    /// the amount of work.
    pub fn poll_watches(&mut self, port: &mut PortEnd) -> usize {
        self.watches.poll(port)
    }

    /// Sets what the FIX sessions of this thread want.
    pub(crate) fn set_watch_by_fix(&mut self, watch: MarketWatch, on: bool) {
        self.watches.set_by_fix(watch, on);
    }

    /// Returns the next event of a client to all strategies.
    pub fn take_notification(&mut self) -> Option<Notification> {
        self.notifications.pop_front()
    }

    /// Returns whether something has to be sent to shards or other threads.
    pub fn is_waiting(&self) -> bool {
        self.watches.is_waiting() || !self.notifications.is_empty()
    }

    /// Returns the number of dropped notifications.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the number of sessions closed because the client did not read fast enough.
    pub fn closed_slow(&self) -> u64 {
        self.broker.closed_slow()
    }

    /// Returns all sessions.
    pub fn rows(&self) -> impl Iterator<Item = SessionInfo> {
        self.clients.iter().filter_map(|(session, client)| {
            let row = SessionInfo::of_stomp(
                self.kind(),
                client.number,
                client.since,
                self.broker.session_status(session)?,
            );
            Some(SessionInfo { name: client.name.clone(), peer: Some(client.peer), ..row })
        })
    }

    /// Returns the number of messages sent to all connected clients.
    pub fn messages(&self) -> u64 {
        self.clients
            .iter()
            .filter_map(|(session, _)| self.broker.session_status(session))
            .map(|status| status.1.messages)
            .sum()
    }

    /// Ends the session of this number; returns false if there is none.
    pub fn kick(&mut self, now: Timestamp, number: u64) -> bool {
        let found = self.clients.iter().find(|(_, client)| client.number == number);
        let Some((session, _)) = found else { return false };
        self.broker.end(now, session);
        true
    }

    /// Ends each session whose login was removed or changed since its CONNECT. Returns how many
    /// were ended.
    pub fn revoke(&mut self, now: Timestamp) -> usize {
        let BrokerHost { revocations: Some(revocations), clients, broker, .. } = self else { return 0 };
        if !revocations.has_changed() {
            return 0;
        }
        let is_revoked = |client: &ConnectedClient| {
            client.name.as_ref().is_some_and(|name| revocations.is_revoked(name, client.generation))
        };
        let revoked = clients.iter().filter(|(_, client)| is_revoked(client));
        revoked.map(|(session, _)| broker.end(now, session)).count()
    }

    /// Ends all sessions, with a reason.
    pub fn end_all(&mut self, now: Timestamp) {
        for (session, _) in self.clients.iter() {
            self.broker.end(now, session);
        }
    }

    fn kind(&self) -> SessionKind {
        match self.transport {
            Transport::Tcp => SessionKind::Stomp,
            Transport::WebSocket => SessionKind::WebSocket,
        }
    }

    fn client(&mut self, session: SessionId) -> Option<&mut ConnectedClient> {
        self.clients.get_mut(session)
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::event::{DEPTH_LEVELS_MAX, Depth, DepthLevel, EventKind, Tick};
    use pitlane_engine::mesh::{Depths, PortClass, mesh};
    use pitlane_engine::number::Price;
    use pitlane_engine::reason::Reason;
    use pitlane_engine::refdata::RefDataRows;
    use pitlane_engine::terms::Side;

    use super::*;

    /// A shard answers a FIX session that begins to watch with the current tick and book. STOMP
    /// clients that have subscribed them before have them already.
    #[test]
    fn what_a_fix_session_begins_to_watch_is_not_published_again() {
        let now = Timestamp(1);
        let access = Some(StompAccess::default());
        let settings = BrokerSettings { anonymous_access: access, ..BrokerSettings::default() };
        let reference = Arc::new(pitlane_config::refdata::shipped().unwrap());
        let security = reference.securities()[0].id;
        let (mut ports, mut shards) = mesh(&[PortClass::Client], 1, Depths { commands: 8, events: 1 });
        let mut host = BrokerHost::new(settings, reference, Transport::Tcp, None);
        let session = host.enter(now, SocketAddr::from(([127, 0, 0, 1], 1))).unwrap();
        let frames = format!(
            "CONNECT\naccept-version:1.2\nhost:x\n\n\0\
             SUBSCRIBE\nid:1\ndestination:/topic/tick.{0}\n\n\0\
             SUBSCRIBE\nid:2\ndestination:/topic/book.{0}\n\n\0",
            security.0
        );
        host.broker.handle_bytes(now, session, frames.as_bytes());
        host.dispatch(now, |_, _| false);
        let mut answer = |host: &mut BrokerHost, price: i64| {
            host.poll_watches(&mut ports[0]);
            let tick = Tick { security, last: Price::from_raw(price), at: now, ..Tick::default() };
            let levels = [DepthLevel::default(); DEPTH_LEVELS_MAX];
            let sides = Side::BOTH.map(|side| EventKind::Depth(Depth { levels, security, side, count: 0 }));
            let mut bodies = Vec::from([EventKind::Tick(tick)]);
            bodies.extend(sides);
            while let Some(command) = shards[0].poll_command() {
                let (source, token) = (command.source, command.token);
                bodies.push(EventKind::Done { source, token, reason: Reason::None });
            }
            for body in bodies {
                host.handle_event(now, ShardId(0), &Event { seq: 7, at: now, body });
            }
            host.messages()
        };
        assert_eq!(answer(&mut host, 10), 2, "a tick and a book");
        for on in [true, false, true] {
            host.set_watch_by_fix(MarketWatch { security, book: false }, on);
            host.set_watch_by_fix(MarketWatch { security, book: true }, on);
            // The shard has nothing to say when FIX ceases to watch what STOMP still needs.
            let messages = if on { answer(&mut host, 10) } else { host.messages() };
            assert_eq!(messages, 2, "{on}");
        }
        assert_eq!(answer(&mut host, 11), 4, "a new tick, and a book that no command has asked for");
    }

    #[test]
    fn waiting_notifications_are_bounded_and_those_beyond_are_counted() {
        let now = Timestamp(1);
        let client = Some(StompAccess { may_send: true, ..StompAccess::default() });
        let settings = BrokerSettings { anonymous_access: client, ..BrokerSettings::default() };
        let reference = Arc::new(RefData::check(RefDataRows::default()).unwrap());
        let mut host = BrokerHost::new(settings, reference, Transport::Tcp, None);
        let session = host.enter(now, SocketAddr::from(([127, 0, 0, 1], 1))).unwrap();
        host.broker.handle_bytes(now, session, b"CONNECT\naccept-version:1.2\nhost:x\n\n\0");
        let send = |host: &mut BrokerHost, n: usize| {
            let frame = format!("SEND\ndestination:/topic/generic-event.a\n\n{n}\0");
            host.broker.handle_bytes(now, session, frame.as_bytes());
            host.dispatch(now, |_, _| false);
        };
        (0..NOTIFICATIONS_MAX).for_each(|n| send(&mut host, n));
        assert_eq!((host.notifications.len(), host.dropped()), (NOTIFICATIONS_MAX, 0));
        send(&mut host, NOTIFICATIONS_MAX);
        assert_eq!((host.notifications.len(), host.dropped()), (NOTIFICATIONS_MAX, 1));
        // The waiting notifications come in order, and then there is space again.
        let text = |notification| match notification {
            Some(Notification::Generic { body, .. }) => String::from_utf8(body.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        };
        assert_eq!(text(host.take_notification()), "0");
        send(&mut host, NOTIFICATIONS_MAX + 1);
        assert_eq!((host.notifications.len(), host.dropped()), (NOTIFICATIONS_MAX, 1));
        assert_eq!(text(host.notifications.pop_back()), (NOTIFICATIONS_MAX + 1).to_string());
    }
}
