//! The endpoint of the gateway that publishes: STOMP or FIX.

use std::sync::Arc;

use pitlane_auth::{Auth, AuthSettings, Role};
use pitlane_config::Config;
use pitlane_engine::desk::IdBlock;
use pitlane_engine::event::Event;
use pitlane_engine::id::{PortId, ShardId};
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_gateway::GATEWAYS;
use pitlane_gateway::fix::handoff::ConnectionHandoff;
use pitlane_gateway::fix::message_log::FixLogWriter;
use pitlane_gateway::fix::session_registry::{SessionAssignments, SessionRegistry};
use pitlane_gateway::fix::settings::FixSettings;
use pitlane_gateway::gateway::fix::{FixEndpoint, FixParts, SessionRecovery};
use pitlane_gateway::gateway::stomp::StompEndpoint;
use pitlane_gateway::notifications::{Notification, SessionInfo};
use pitlane_gateway::stomp::Logins;
use pitlane_journal::Level;
use pitlane_net::Net;
use pitlane_net::event::SocketEvent;
use pitlane_protocols::stomp::settings::BrokerSettings;
use pitlane_runtime::wakeup::Wakeup;

const SHARD: ShardId = ShardId(0);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FanOutProtocol {
    Stomp,
    Fix,
}

pub(super) enum FanOutEndpoint {
    Stomp(Box<StompEndpoint>),
    Fix(Box<FixEndpoint>),
}

impl FanOutEndpoint {
    pub(super) fn new(protocol: FanOutProtocol, now: Timestamp, reference: Arc<RefData>) -> FanOutEndpoint {
        match protocol {
            FanOutProtocol::Stomp => {
                let logins = Logins::new(None, Role::Trade);
                let endpoint = StompEndpoint::new(BrokerSettings::default(), reference, logins);
                FanOutEndpoint::Stomp(Box::new(endpoint))
            }
            FanOutProtocol::Fix => FanOutEndpoint::Fix(Box::new(fix_endpoint(now, reference))),
        }
    }

    pub(super) fn handle_event(&mut self, now: Timestamp, event: &Event) {
        match self {
            FanOutEndpoint::Stomp(stomp) => stomp.handle_event(now, SHARD, event),
            FanOutEndpoint::Fix(fix) => fix.handle_watched_event(now, SHARD, event),
        }
    }

    pub(super) fn handle_notification(&mut self, now: Timestamp, notification: &Notification) {
        match self {
            FanOutEndpoint::Stomp(stomp) => stomp.handle_notification(now, notification),
            FanOutEndpoint::Fix(fix) => fix.handle_notification(now, notification),
        }
    }

    /// Reads and writes the sockets once.
    pub(super) fn run_cycle(&mut self, now: Timestamp, net: &mut Net) {
        net.run_cycle(now, |sockets, happening| match (&mut *self, happening) {
            (FanOutEndpoint::Stomp(stomp), SocketEvent::EndOfCycle) => {
                stomp.poll(now, sockets, None, |_| {});
            }
            (FanOutEndpoint::Stomp(stomp), happening) => stomp.handle(now, sockets, happening),
            (FanOutEndpoint::Fix(fix), SocketEvent::EndOfCycle) => {
                fix.poll(now, sockets, None, None);
                // No shard is there to watch: every tick is published anyway.
                fix.pass_market_changes(None, None);
                drop(fix.take_notifications());
            }
            (FanOutEndpoint::Fix(fix), happening) => fix.handle(now, sockets, happening, 0, None),
        });
    }

    /// Returns the messages sent to all consumers.
    pub(super) fn messages(&self) -> u64 {
        match self {
            FanOutEndpoint::Stomp(stomp) => stomp.messages(),
            FanOutEndpoint::Fix(fix) => fix.rows().map(|row| row.messages_out).sum(),
        }
    }

    /// Returns the most bytes that wait for one consumer.
    pub(super) fn queued_bytes_max(&self) -> u64 {
        let queued_bytes =
            |row: SessionInfo| row.queue_bytes + row.stomp.map_or(0, |stomp| stomp.backlog_bytes);
        match self {
            FanOutEndpoint::Stomp(stomp) => stomp.rows().map(queued_bytes).max(),
            FanOutEndpoint::Fix(fix) => fix.rows().map(queued_bytes).max(),
        }
        .unwrap_or(0)
    }
}

/// Returns the endpoint of a gateway that accepts every session of the load generator.
fn fix_endpoint(now: Timestamp, reference: Arc<RefData>) -> FixEndpoint {
    let mut config = Config::default();
    // The clock of the bench does not count from 1970.
    config.fix.sending_time_s_max = 0;
    config.fix.sessions.truncate(1);
    config.fix.sessions[0].target_comp_id = "BENCH*".to_string();
    let recovery = SessionRecovery {
        level: Level::None,
        store_bytes: config.fix.store_bytes,
        reported: vec![0],
        missed: Vec::new(),
    };
    let mut auth = Auth::open(AuthSettings::off()).expect("no files");
    let parts = FixParts {
        gateway: 0,
        port: PortId(GATEWAYS),
        shards: 1,
        settings: Arc::new(FixSettings::of(&config, &reference)),
        assignments: Arc::new(SessionAssignments::read(None, 1).expect("nothing is stored")),
        registry: SessionRegistry::open(None, 0).expect("nothing is stored"),
        reference,
        recovery,
        handoff: ConnectionHandoff::between(&[Wakeup::new(|| {})]).remove(0),
        fix_log: FixLogWriter::default().handle(),
        auth: auth.client(Wakeup::new(|| {})),
        numbers: IdBlock { next: 1, end: 2 },
    };
    let mut endpoint = FixEndpoint::new(now, parts).expect("its stores are in memory");
    endpoint.complete(now);
    endpoint.set_ready(true);
    endpoint
}
