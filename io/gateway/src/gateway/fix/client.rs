//! One session with its connection, if it has one, and the request that waits for a free slot of a
//! lane.

use std::net::SocketAddr;
use std::sync::Arc;

use pitlane_engine::desk::Desk;
use pitlane_engine::mesh::PortEnd;
use pitlane_engine::refdata::RefData;
use pitlane_engine::sender::{Protocol, Sender, SenderAddress, SenderId, SenderText};
use pitlane_engine::time::Timestamp;
use pitlane_net::ConnectionId;
use pitlane_net::sockets::Sockets;
use pitlane_protocols::fix::entry::ClientRequest;
use pitlane_protocols::fix::session::{FixSession, FixSessionSettings, FixSessionState};
use pitlane_protocols::fix::store::MessageStore;
use pitlane_protocols::stomp::payload::system::ExternalSessionState;

use super::is_full;
use super::latency::DriveTiming;
use crate::address_of;
use crate::fix::message_log;
use crate::gateway::transmit::transmit;
use crate::notifications::Notification;

/// Maximum number of requests of one session per cycle, so that the other sessions are served too.
const REQUESTS_PER_ROUND_MAX: usize = 256;

#[derive(Debug)]
pub(super) struct FixClient {
    pub name: String,
    pub session: FixSession,
    pub connection: Option<ConnectionId>,
    pub peer: Option<SocketAddr>,
    /// Time of the connection, or zero before the first one.
    pub since: Timestamp,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// The state of the last notification.
    notified_state: ExternalSessionState,
    /// A request that the lane did not accept; it is sent before any other.
    pub held: Option<ClientRequest>,
    /// Whether the session is in the list of sessions with work to do.
    pub queued: bool,
    /// Whether reading from its connection is paused.
    pub paused: bool,
    /// Whether its messages are logged.
    pub logged: bool,
    /// The login and the generation of the credentials it was verified against; `None` without a
    /// login of the credential files.
    pub admitted: Option<(Arc<str>, u64)>,
    /// The user name of its Logon, where the config has its password.
    pub login: Option<String>,
    /// The sender registered at the port; `NONE` if nothing was sent since the session connected.
    pub sender: SenderId,
}

pub(super) struct DriveOutcome {
    pub work: usize,
    /// Whether there is more to do, now or when a lane accepts more.
    pub again: bool,
}

impl FixClient {
    pub(super) fn new(
        name: &str,
        settings: FixSessionSettings,
        store: Box<dyn MessageStore>,
        reference: Arc<RefData>,
    ) -> FixClient {
        FixClient {
            name: name.to_string(),
            session: FixSession::new(settings, store, reference),
            connection: None,
            peer: None,
            since: Timestamp::ZERO,
            bytes_in: 0,
            bytes_out: 0,
            notified_state: ExternalSessionState::Disconnected,
            held: None,
            queued: false,
            paused: false,
            logged: false,
            admitted: None,
            login: None,
            sender: SenderId::NONE,
        }
    }

    /// Adds the session to the list of sessions with work to do, once.
    pub(super) fn queue(&mut self, number: u16, active: &mut Vec<u16>) {
        if !std::mem::replace(&mut self.queued, true) {
            active.push(number);
        }
    }

    pub(super) fn disconnect(&mut self, now: Timestamp) {
        self.session.disconnect(now);
        (self.connection, self.paused, self.admitted) = (None, false, None);
    }

    /// Returns a notification if the state has changed since the last one.
    pub(super) fn take_state_change(&mut self) -> Option<Notification> {
        let link = match self.session.state() {
            FixSessionState::Disconnected => ExternalSessionState::Disconnected,
            FixSessionState::AwaitingLogon | FixSessionState::LoggingOut | FixSessionState::Closing => {
                ExternalSessionState::Connected
            }
            FixSessionState::LoggedOn => ExternalSessionState::LoggedOn,
        };
        if std::mem::replace(&mut self.notified_state, link) == link {
            return None;
        }
        let name = ["FIX:", &self.session.settings().target_comp_id].concat();
        Some(Notification::Link { name: name.into(), link })
    }

    /// Passes the client's requests to the desk.
    pub(super) fn drive(
        &mut self,
        now: Timestamp,
        desk: &mut Desk,
        port: Option<&mut PortEnd>,
        timing: &mut DriveTiming<'_>,
    ) -> DriveOutcome {
        let Some(port) = port else {
            // No command is sent any more. Input is still read, because the client's Logout may be
            // in it.
            if self.held.is_none() {
                self.held = self.session.poll_command(now, desk);
            }
            return DriveOutcome { work: 0, again: false };
        };
        for work in 0..REQUESTS_PER_ROUND_MAX {
            let Some(request) = self.held.take().or_else(|| self.session.poll_command(now, desk)) else {
                return DriveOutcome { work, again: false };
            };
            timing.decoded();
            let sender = self.sender(port);
            match request.send(desk, port, sender) {
                Ok(id) => {
                    if let ClientRequest::CancelOrders { .. } = request {
                        self.session.handle_mass_cancel_sent(id);
                    }
                    timing.sent(id);
                }
                Err(declined) if is_full(declined.reason) => {
                    self.held = Some(request);
                    return DriveOutcome { work, again: true };
                }
                Err(declined) => self.session.handle_declined(now, &request, &declined),
            }
        }
        DriveOutcome { work: REQUESTS_PER_ROUND_MAX, again: true }
    }

    /// Returns the sender for this session, with the login and address of the connection.
    fn sender(&mut self, port: &mut PortEnd) -> SenderId {
        if self.sender == SenderId::NONE {
            let by_config = self.login.as_deref();
            let login = self.admitted.as_ref().map(|(login, _)| &**login).or(by_config);
            self.sender = port.register_sender(Sender {
                protocol: Protocol::Fix,
                address: self.peer.map_or(SenderAddress::NONE, |peer| address_of(peer.ip())),
                login: SenderText::new(login.unwrap_or_default()),
                session: SenderText::new(&self.session.settings().target_comp_id),
            });
        }
        self.sender
    }

    /// Writes once. Returns whether the socket took any bytes.
    pub(super) fn write(
        &mut self,
        now: Timestamp,
        number: u16,
        id: ConnectionId,
        sockets: &mut Sockets,
        fix_log: &mut message_log::FixLogHandle,
    ) -> usize {
        let log = self.logged.then_some(number);
        let taken = transmit(now, &mut self.session, id, sockets, fix_log, log);
        self.bytes_out += taken as u64;
        usize::from(taken > 0)
    }
}
