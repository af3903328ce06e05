//! A broker alone, without sockets: the test receives its output.

use std::collections::VecDeque;

use pitlane_dialogue::stomp_frames;
use pitlane_engine::time::Timestamp;
use pitlane_protocols::stomp::access::{StompAccess, StrategyAccess};
use pitlane_protocols::stomp::broker::{BrokerCommand, SessionId, StompBroker};
use pitlane_protocols::stomp::payload::system::LogEventPayload;
use pitlane_protocols::stomp::session::{BufferUsage, StompClose, StompCounters, Transport};

use super::host::{ConnectionEnd, HostPlan, LoginVerdict, Publication, ReceivedFrames, StompHost};
use crate::test_market;

pub struct BareHost {
    broker: StompBroker,
    transport: Transport,
    clients: Vec<BareClient>,
    logins: VecDeque<(SessionId, String)>,
    asked: Option<SessionId>,
}

struct BareClient {
    id: SessionId,
    wire: Vec<u8>,
    received: ReceivedFrames,
    is_stalled: bool,
}

impl BareHost {
    pub fn open(plan: HostPlan) -> Box<dyn StompHost> {
        Box::new(BareHost {
            broker: StompBroker::new(plan.settings, test_market::reference()),
            transport: plan.transport,
            clients: Vec::new(),
            logins: VecDeque::new(),
            asked: None,
        })
    }

    /// Does what a gateway does in a cycle: commands, then every session with something to write.
    fn drain(&mut self, now: Timestamp) {
        while let Some(command) = self.broker.poll_command() {
            match command {
                BrokerCommand::Login { session, login, passcode, host } => {
                    let fields = [login, passcode.map(|secret| secret.0), host]
                        .map(|field| field.unwrap_or("-".to_string()));
                    self.logins.push_back((session, fields.join(" ")));
                }
                BrokerCommand::Generic { name, body, .. } => {
                    self.broker.publish_generic_event(now, &name, &body)
                }
                BrokerCommand::Watch { .. } => {}
            }
        }
        while let Some(id) = self.broker.poll_active() {
            let client = self.clients.iter().position(|client| client.id == id).expect("it was opened here");
            if !self.clients[client].is_stalled {
                self.take(now, client, usize::MAX);
            }
            self.look_for_end(now, client);
        }
    }

    fn take(&mut self, now: Timestamp, client: usize, most: usize) {
        let id = self.clients[client].id;
        let mut left = most;
        while let Some(transmit) = self.broker.transmit(id) {
            let whole: usize = transmit.frames().map(<[u8]>::len).sum();
            assert_eq!(whole, transmit.bytes.len(), "octets are made of frames");
            let count = transmit.bytes.len().min(left);
            if count == 0 {
                break;
            }
            self.clients[client].wire.extend_from_slice(&transmit.bytes[..count]);
            self.broker.handle_transmitted(now, id, count);
            left -= count;
        }
        let BareClient { wire, received, .. } = &mut self.clients[client];
        received.frames.extend(stomp_frames::frames(wire));
        self.look_for_end(now, client);
    }

    fn look_for_end(&mut self, now: Timestamp, client: usize) {
        let BareClient { id, received, .. } = &mut self.clients[client];
        let end = self.broker.poll_close(now, *id).map(|close| {
            let (cause, at_once) = match close {
                StompClose::Graceful(cause) => (cause, false),
                StompClose::Immediate(cause) => (cause, true),
            };
            ConnectionEnd { at_once: Some(at_once), code: Some(cause.close_code()) }
        });
        received.end = received.end.or(end);
    }
}

impl StompHost for BareHost {
    fn connect(&mut self, now: Timestamp) -> Result<(), String> {
        let id = self.broker.open(now, self.transport).ok_or("there is no room for a session")?;
        self.clients.push(BareClient {
            id,
            wire: Vec::new(),
            received: ReceivedFrames::default(),
            is_stalled: false,
        });
        self.drain(now);
        Ok(())
    }

    fn send(&mut self, now: Timestamp, client: usize, bytes: &[u8]) {
        self.broker.handle_bytes(now, self.clients[client].id, bytes);
        self.drain(now);
    }

    fn publish(&mut self, now: Timestamp, publications: &[Publication]) {
        for publications in publications {
            match publications {
                Publication::Event(shard, event) => self.broker.handle_event(now, *shard, event),
                Publication::Log { level, message, fields } => {
                    let event = LogEventPayload { level: *level, logger: "test", message, fields };
                    self.broker.publish_log_event(now, now, &event);
                }
                Publication::Link { name, link } => self.broker.publish_session(now, name, *link),
                Publication::Rates(throttle) => self.broker.set_throttle(now, *throttle),
                Publication::Ended(client) => self.broker.end(now, self.clients[*client].id),
            }
            self.drain(now);
        }
    }

    /// Advances from deadline to deadline, as a loop that sleeps until the next one would.
    fn wait(&mut self, from: Timestamp, to: Timestamp) {
        let mut now = from;
        while let Some(at) = self.broker.poll_timeout().filter(|at| *at <= to) {
            now = now.max(at);
            self.broker.handle_timeout(now);
            self.drain(now);
        }
        self.broker.handle_timeout(to);
        self.drain(to);
    }

    fn stall(&mut self, _: Timestamp, client: usize) -> Result<(), String> {
        self.clients[client].is_stalled = true;
        Ok(())
    }

    fn read(&mut self, now: Timestamp, client: usize, bytes_max: Option<usize>) {
        self.clients[client].is_stalled &= bytes_max.is_some();
        self.take(now, client, bytes_max.unwrap_or(usize::MAX));
        self.drain(now);
    }

    fn hang_up(&mut self, now: Timestamp, client: usize) {
        self.broker.close(self.clients[client].id);
        self.drain(now);
    }

    fn received(&mut self, client: usize) -> &mut ReceivedFrames {
        &mut self.clients[client].received
    }

    fn end(&mut self, _: Timestamp, client: usize) -> Option<ConnectionEnd> {
        let end = self.clients[client].received.end.take()?;
        self.broker.close(self.clients[client].id);
        Some(end)
    }

    fn login(&mut self) -> Option<String> {
        let (session, fields) = self.logins.pop_front()?;
        self.asked = Some(session);
        Some(fields)
    }

    fn decide(&mut self, now: Timestamp, verdict: &LoginVerdict) -> Result<(), String> {
        let session = self.asked.take().ok_or("no login is pending")?;
        let access = match verdict {
            LoginVerdict::Refused => None,
            LoginVerdict::Reads => Some(StompAccess::default()),
            LoginVerdict::Sends => Some(StompAccess { may_send: true, ..StompAccess::default() }),
            LoginVerdict::Only(name) => {
                Some(StompAccess { strategies: StrategyAccess::Only(vec![name.clone()]), may_send: false })
            }
        };
        self.broker.handle_login_result(now, session, access);
        self.drain(now);
        Ok(())
    }

    fn look(&mut self, client: usize) -> Option<(StompCounters, BufferUsage)> {
        let (_, counters, fill) = self.broker.session_status(self.clients[client].id)?;
        Some((counters, fill))
    }
}
