//! The hub of notifications: a notification of a gateway goes to the other gateways and to the
//! clients of this thread; log events go to all. The hub also has the list of all sessions at the
//! gateways.

use std::cell::{Ref, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use pitlane_engine::id::{Origin, PortId, Source};
use pitlane_gateway::notifications::{
    Notification, NotificationChannel, SessionInfo, SessionKind, SessionList,
};
use pitlane_protocols::fix::positions::{PositionQuery, PositionRow};
use pitlane_runtime::log::Events;

use super::log_history::LogHistory;
use super::remote_strategies::RemoteStrategies;
use super::websocket_broker::WebSocketBroker;

/// Name of this thread in the ids of sessions.
pub(crate) const THREAD_NAME: &str = "http";
/// Maximum number of notifications forwarded in one cycle, for each source; the rest wait for the
/// next.
const NOTIFICATIONS_PER_CYCLE_MAX: usize = 256;

#[derive(Debug)]
pub(crate) struct NotificationHub {
    gateways: RefCell<Vec<GatewayChannel>>,
    log: RefCell<Option<Events>>,
    log_history: RefCell<LogHistory>,
    names: RefCell<FixSessionNames>,
    /// Queries of FIX sessions that are not answered yet: by gateway, number of the session, query.
    position_queries: RefCell<Vec<(usize, u16, PositionQuery)>>,
    /// By strategy: the reason of its last failure.
    failures: RefCell<BTreeMap<Arc<str>, Arc<str>>>,
}

/// Names of FIX sessions.
#[derive(Debug, Default)]
pub(crate) struct FixSessionNames {
    by_session: BTreeMap<(PortId, u16), Arc<str>>,
    changes: u64,
}

impl FixSessionNames {
    /// Returns a counter that grows with each name received.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    fn insert(&mut self, port: PortId, session: u16, name: Arc<str>) {
        self.by_session.insert((port, session), name);
        self.changes += 1;
    }

    /// Returns the name of the FIX session that is the source.
    pub(crate) fn of(&self, source: &Source) -> Option<&str> {
        let key = (source.port, source.session);
        if source.origin == Origin::Fix { self.by_session.get(&key).map(|name| &**name) } else { None }
    }
}

/// Channel to one gateway.
#[derive(Debug)]
struct GatewayChannel {
    name: String,
    channel: NotificationChannel,
    sessions: SessionList,
}

impl NotificationHub {
    /// Creates a hub with the channels of the gateways.
    pub(crate) fn new(channels: Vec<NotificationChannel>, log: Option<Events>) -> NotificationHub {
        let gateway = |(at, channel): (usize, NotificationChannel)| GatewayChannel {
            name: at.to_string(),
            channel,
            sessions: SessionList::default(),
        };
        let gateways = channels.into_iter().enumerate().map(gateway).collect();
        let (gateways, log) = (RefCell::new(gateways), RefCell::new(log));
        NotificationHub {
            gateways,
            log,
            log_history: RefCell::default(),
            names: RefCell::default(),
            position_queries: RefCell::default(),
            failures: RefCell::default(),
        }
    }

    /// Sends a notification of this thread to all.
    pub(crate) fn announce(&self, ws_broker: &Rc<WebSocketBroker>, notification: Notification) {
        if let Notification::Failed { strategy, reason } = &notification {
            self.failures.borrow_mut().insert(strategy.clone(), reason.clone());
        }
        send_to_all(&mut self.gateways.borrow_mut(), None, ws_broker, notification);
        ws_broker.flush();
    }

    /// Forwards notifications, up to a bound, and returns how many. Events between strategies also
    /// go to remote strategies.
    pub(crate) fn poll(
        &self,
        ws_broker: &Rc<WebSocketBroker>,
        remote_strategies: Option<&RemoteStrategies>,
    ) -> usize {
        let mut gateways = self.gateways.borrow_mut();
        let mut work = 0;
        while let Some(event) = self.log.borrow_mut().as_mut().and_then(Events::poll) {
            let event = Arc::new(event);
            self.log_history.borrow_mut().push(event.clone());
            send_to_all(&mut gateways, None, ws_broker, Notification::Log(event));
            work += 1;
            if work == NOTIFICATIONS_PER_CYCLE_MAX {
                break;
            }
        }
        for from in 0..gateways.len() {
            for _ in 0..NOTIFICATIONS_PER_CYCLE_MAX {
                let Some(notification) = gateways[from].channel.poll() else { break };
                work += 1;
                if let Notification::Sessions(sessions) = notification {
                    gateways[from].sessions = sessions;
                    continue;
                }
                if let Notification::PositionQuery { session, query } = notification {
                    self.position_queries.borrow_mut().push((from, session, query));
                    continue;
                }
                if let Notification::Named { port, session, name } = &notification {
                    self.names.borrow_mut().insert(*port, *session, name.clone());
                }
                send_to_remote_strategies(remote_strategies, &notification);
                if let Notification::Failed { strategy, reason } = &notification {
                    self.failures.borrow_mut().insert(strategy.clone(), reason.clone());
                }
                send_to_all(&mut gateways, Some(from), ws_broker, notification);
            }
        }
        // Notifications that clients of this thread send to all.
        while let Some(notification) = ws_broker.take_notification() {
            send_to_remote_strategies(remote_strategies, &notification);
            gateways.iter_mut().for_each(|gateway| gateway.channel.send(notification.clone()));
            work += 1;
        }
        if work > 0 {
            ws_broker.flush();
        }
        work
    }

    /// Answers the queries of FIX sessions and returns their number.
    pub(crate) fn answer_positions(&self, rows: impl Fn(&PositionQuery) -> Arc<[PositionRow]>) -> usize {
        let queries = std::mem::take(&mut *self.position_queries.borrow_mut());
        let mut gateways = self.gateways.borrow_mut();
        for (gateway, session, query) in &queries {
            let (session, token, rows) = (*session, query.token, rows(query));
            gateways[*gateway].channel.send(Notification::Positions { session, token, rows });
        }
        queries.len()
    }

    /// Sends a notification to the gateways only.
    pub(crate) fn send_to_gateways(&self, notification: &Notification) {
        let mut gateways = self.gateways.borrow_mut();
        gateways.iter_mut().for_each(|gateway| gateway.channel.send(notification.clone()));
    }

    pub(crate) fn for_each_session(&self, mut visit: impl FnMut(&str, &SessionInfo)) {
        for gateway in self.gateways.borrow().iter() {
            gateway.sessions.rows.iter().for_each(|session| visit(&gateway.name, session));
        }
    }

    /// Returns the number of STOMP sessions at the gateways that were closed because the client did
    /// not read fast enough.
    pub(crate) fn closed_slow(&self) -> u64 {
        self.gateways.borrow().iter().map(|gateway| gateway.sessions.closed_slow).sum()
    }

    /// Returns the last log events.
    pub(crate) fn log_history(&self) -> Ref<'_, LogHistory> {
        self.log_history.borrow()
    }

    /// Returns the number of log events that were dropped for lack of room.
    pub(crate) fn dropped_log(&self) -> u64 {
        self.log.borrow().as_ref().map_or(0, Events::dropped)
    }

    /// Calls `visit` for each gateway with the number of notifications dropped for lack of room.
    pub(crate) fn each_channel(&self, mut visit: impl FnMut(&str, u64)) {
        self.gateways.borrow().iter().for_each(|gateway| visit(&gateway.name, gateway.channel.dropped()));
    }

    /// Returns the reason of a strategy's last failure, if there was one.
    pub(crate) fn failure(&self, strategy: &str) -> Option<Arc<str>> {
        self.failures.borrow().get(strategy).cloned()
    }

    pub(crate) fn names(&self) -> Ref<'_, FixSessionNames> {
        self.names.borrow()
    }

    /// Resets the sequence numbers of the FIX session that `is_selected` selects; returns false if
    /// there is none.
    pub(crate) fn reset(&self, is_selected: impl Fn(&str, &SessionInfo) -> bool) -> bool {
        for gateway in self.gateways.borrow_mut().iter_mut() {
            let is_match = |session: &&SessionInfo| {
                matches!(session.kind, SessionKind::Fix | SessionKind::Venue)
                    && is_selected(&gateway.name, session)
            };
            if let Some(number) = gateway.sessions.rows.iter().find(is_match).map(|session| session.number) {
                gateway.channel.send(Notification::Reset { number });
                return true;
            }
        }
        false
    }

    /// Ends the session that `is_selected` selects; returns false if there is none.
    pub(crate) fn kick(&self, is_selected: impl Fn(&str, &SessionInfo) -> bool) -> bool {
        for gateway in self.gateways.borrow_mut().iter_mut() {
            let found = gateway.sessions.rows.iter().find(|session| is_selected(&gateway.name, session));
            if let Some(session) = found {
                let (kind, number) = (session.kind, session.number);
                gateway.channel.send(Notification::Kick { kind, number });
                return true;
            }
        }
        false
    }
}

fn send_to_remote_strategies(remote_strategies: Option<&RemoteStrategies>, notification: &Notification) {
    if let (Some(remote_strategies), Notification::Generic { name, body }) = (remote_strategies, notification)
    {
        remote_strategies.queue_generic(name, body);
    }
}

/// Sends a notification to all but the gateway it comes from, which has informed its own clients
/// already.
fn send_to_all(
    gateways: &mut [GatewayChannel],
    from: Option<usize>,
    ws_broker: &WebSocketBroker,
    notification: Notification,
) {
    for (at, gateway) in gateways.iter_mut().enumerate() {
        if Some(at) != from {
            gateway.channel.send(notification.clone());
        }
    }
    ws_broker.handle_notification(&notification);
}
