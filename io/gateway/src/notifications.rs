//! Messages that do not come from a shard and that every thread with clients needs: log events,
//! states of external sessions, events between strategies, failures of strategies, the lists of
//! connected sessions, and what FIX sessions ask of the http thread.
//!
//! ```text
//! gateway-0 ◄──channel──► http ◄──channel──► gateway-1          log ──► http
//! ```
//!
//! The http thread is the hub: it forwards the notifications of one gateway to the others and to
//! its own clients. Notifications are rare, so they may allocate; a channel is a mailbox in each
//! direction, with a queue before it.

mod session_info;

use std::collections::VecDeque;
use std::sync::Arc;

use pitlane_engine::command::TradingSession;
use pitlane_engine::id::{ExchangeId, PortId};
use pitlane_engine::time::Timestamp;
use pitlane_protocols::fix::positions::{PositionQuery, PositionRow};
use pitlane_protocols::stomp::broker::StompBroker;
use pitlane_protocols::stomp::payload::system::{self, ExternalSessionState, LogLevel};
use pitlane_runtime::log::{LogEvent, Severity};
use pitlane_runtime::mailbox::{MailboxFull, MailboxReceiver, MailboxSender, mailbox};
use pitlane_runtime::wakeup::Wakeup;

pub use self::session_info::{SessionInfo, SessionKind, SessionList, StompUsage};

/// Notifications in a mailbox: more than a thread receives between two polls.
const NOTIFICATIONS_MAX: usize = 1_024;
/// Notifications that wait for room in the mailbox. When these are used up too, the newest are
/// dropped and counted: a sender does not wait for a thread that has not polled for so long.
const WAITING_MAX: usize = 4_096;

#[derive(Clone, Debug)]
pub enum Notification {
    /// An event between strategies; the body is JSON.
    Generic {
        name: Arc<str>,
        body: Arc<[u8]>,
    },
    /// A strategy of this process has failed and is stopped.
    Failed {
        strategy: Arc<str>,
        reason: Arc<str>,
    },
    /// The state of an external session has changed.
    Link {
        name: Arc<str>,
        link: ExternalSessionState,
    },
    Log(Arc<LogEvent>),
    /// The name of a FIX session, by which clients know its orders.
    Named {
        port: PortId,
        session: u16,
        name: Arc<str>,
    },
    /// All sessions of a gateway, once per second.
    Sessions(SessionList),
    /// To a gateway: end the session of this kind and number.
    Kick {
        kind: SessionKind,
        number: u64,
    },
    /// To http: the FIX session with this number asks for positions.
    PositionQuery {
        session: u16,
        query: PositionQuery,
    },
    /// To a gateway: the positions that its session with this number has asked for.
    Positions {
        session: u16,
        /// Number of the query.
        token: u32,
        rows: Arc<[PositionRow]>,
    },
    /// To a gateway: the trading session of an exchange, at the start and at every change.
    TradingSession {
        exchange: ExchangeId,
        session: TradingSession,
    },
    /// To a gateway: reset the sequence numbers of the FIX session with this number to one.
    Reset {
        number: u64,
    },
}

impl Notification {
    /// Publishes the notification to the clients of a broker, if it is meant for them.
    pub fn publish(&self, now: Timestamp, broker: &mut StompBroker) {
        match self {
            Notification::Generic { name, body } => broker.publish_generic_event(now, name, body),
            Notification::Failed { strategy, reason } => broker.publish_failure(now, strategy, reason),
            Notification::Link { name, link } => broker.publish_session(now, name, *link),
            Notification::Log(event) => publish_log(now, broker, event),
            Notification::Named { port, session, name } => broker.set_fix_session_name(*port, *session, name),
            Notification::Sessions(_)
            | Notification::Kick { .. }
            | Notification::PositionQuery { .. }
            | Notification::Positions { .. }
            | Notification::TradingSession { .. }
            | Notification::Reset { .. } => {}
        }
    }

    /// Returns the number of the session of this kind that an operator ends or resets, and whether
    /// it is reset.
    pub(crate) fn ended_or_reset(&self, kind: SessionKind) -> Option<(u64, bool)> {
        match *self {
            Notification::Kick { kind: kicked, number } => (kicked == kind).then_some((number, false)),
            Notification::Reset { number } => Some((number, true)),
            Notification::Generic { .. }
            | Notification::Failed { .. }
            | Notification::Link { .. }
            | Notification::Log(_)
            | Notification::Named { .. }
            | Notification::PositionQuery { .. }
            | Notification::Positions { .. }
            | Notification::TradingSession { .. }
            | Notification::Sessions(_) => None,
        }
    }
}

fn publish_log(now: Timestamp, broker: &mut StompBroker, event: &LogEvent) {
    let level = match event.level {
        Severity::Warn => LogLevel::Warn,
        Severity::Error => LogLevel::Error,
    };
    let fields: Vec<(&str, &str)> = event.fields.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let payload =
        system::LogEventPayload { level, logger: &event.target, message: &event.message, fields: &fields };
    broker.publish_log_event(now, event.time, &payload);
}

/// One end of a channel.
#[derive(Debug)]
pub struct NotificationChannel {
    to: MailboxSender<Notification>,
    from: MailboxReceiver<Notification>,
    waiting: VecDeque<Notification>,
    dropped: u64,
}

/// Creates both ends. `first` and `second` wake the threads that hold the first and the second end.
pub fn channels(first: Wakeup, second: Wakeup) -> (NotificationChannel, NotificationChannel) {
    let (to_second, from_first) = mailbox(NOTIFICATIONS_MAX, second);
    let (to_first, from_second) = mailbox(NOTIFICATIONS_MAX, first);
    let end = |to, from| NotificationChannel { to, from, waiting: VecDeque::new(), dropped: 0 };
    (end(to_second, from_second), end(to_first, from_first))
}

impl NotificationChannel {
    /// Sends a notification, or queues it if the mailbox is full.
    pub fn send(&mut self, notification: Notification) {
        self.to.send_from(&mut self.waiting);
        if self.waiting.is_empty() {
            if let Err(MailboxFull(notification)) = self.to.send(notification) {
                self.waiting.push_back(notification);
            }
        } else if self.waiting.len() < WAITING_MAX {
            self.waiting.push_back(notification);
        } else {
            self.dropped += 1;
        }
    }

    /// Returns the next notification received.
    pub fn poll(&mut self) -> Option<Notification> {
        self.to.send_from(&mut self.waiting);
        self.from.poll()
    }

    /// Returns the number of notifications dropped since the start.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns whether notifications wait for room in the mailbox.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn notification(number: u64) -> Notification {
        Notification::Kick { kind: SessionKind::Stomp, number }
    }

    #[test]
    fn notifications_arrive_in_order_and_none_is_lost_below_the_bound() {
        let silent = Wakeup::new(|| {});
        let (mut first, mut second) = channels(silent.clone(), silent);
        let all = (NOTIFICATIONS_MAX + WAITING_MAX) as u64;
        for number in 0..all + 3 {
            first.send(notification(number));
        }
        assert_eq!((first.dropped(), first.is_waiting()), (3, true));
        for expected in 0..all {
            first.poll();
            let Some(Notification::Kick { number, .. }) = second.poll() else {
                panic!("{expected} is missing")
            };
            assert_eq!(number, expected);
        }
        assert!(second.poll().is_none());
        assert!(!first.is_waiting());
    }

    #[test]
    fn sending_wakes_a_blocked_receiver() {
        let wakeups = Arc::new(AtomicU32::new(0));
        let count = wakeups.clone();
        let wakeup = Wakeup::new(move || _ = count.fetch_add(1, Ordering::Relaxed));
        let (mut first, mut second) = channels(Wakeup::new(|| {}), wakeup.clone());
        wakeup.prepare_sleep();
        first.send(notification(1));
        assert_eq!(wakeups.load(Ordering::Relaxed), 1);
        assert!(second.poll().is_some());
    }
}
