//! The event dispatcher: the event bus within one process. A listener registers for classes of
//! events; it works the same in every mode, whatever the origin of the events.

use std::fmt;

use pitlane_engine::command::StrategyPhase;
use pitlane_engine::event::{
    Adjustment, Booking, Depth, Event, EventKind, OrderReport, OrderTerms, PositionState, Tick,
};
use pitlane_engine::id::{AdapterId, Currency, SecurityId, ShardId, StrategyId};
use pitlane_engine::number::Money;
use pitlane_engine::time::Timestamp;

/// Listeners at once: each is called for each event of its classes.
pub const LISTENERS_MAX: usize = 64;

/// Class of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventClass {
    MarketData,
    /// An order was entered, or its terms have changed.
    Order,
    OrderStatus,
    Position,
    Transaction,
    Cash,
    ExternalSession,
    LifeCycle,
    Log,
    Generic,
}

impl EventClass {
    pub const ALL: [EventClass; 10] = [
        EventClass::MarketData,
        EventClass::Order,
        EventClass::OrderStatus,
        EventClass::Position,
        EventClass::Transaction,
        EventClass::Cash,
        EventClass::ExternalSession,
        EventClass::LifeCycle,
        EventClass::Log,
        EventClass::Generic,
    ];

    fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// Peer of an external session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionPeer<'a> {
    Adapter(AdapterId),
    Session(&'a str),
}

/// An event as listeners receive it.
#[derive(Clone, Copy, Debug)]
pub enum DispatchedEvent<'a> {
    Tick(&'a Tick),
    Depth(&'a Depth),
    Order(&'a OrderTerms),
    OrderStatus(&'a OrderReport),
    Position {
        strategy: StrategyId,
        security: SecurityId,
        state: &'a PositionState,
    },
    Transaction(&'a Booking),
    /// A shard's part of a strategy's cash.
    Cash {
        strategy: StrategyId,
        currency: Currency,
        shard: ShardId,
        amount: Money,
    },
    ExternalSession {
        peer: SessionPeer<'a>,
        connected: bool,
    },
    /// A shard reports the phase of a strategy; `reason` is set if it failed.
    LifeCycle {
        strategy: StrategyId,
        phase: StrategyPhase,
        reason: Option<&'a str>,
    },
    Log {
        level: &'a str,
        text: &'a str,
    },
    Generic {
        name: &'a str,
        body: &'a [u8],
    },
}

impl DispatchedEvent<'_> {
    pub fn class(&self) -> EventClass {
        match self {
            DispatchedEvent::Tick(_) | DispatchedEvent::Depth(_) => EventClass::MarketData,
            DispatchedEvent::Order(_) => EventClass::Order,
            DispatchedEvent::OrderStatus(_) => EventClass::OrderStatus,
            DispatchedEvent::Position { .. } => EventClass::Position,
            DispatchedEvent::Transaction(_) => EventClass::Transaction,
            DispatchedEvent::Cash { .. } => EventClass::Cash,
            DispatchedEvent::ExternalSession { .. } => EventClass::ExternalSession,
            DispatchedEvent::LifeCycle { .. } => EventClass::LifeCycle,
            DispatchedEvent::Log { .. } => EventClass::Log,
            DispatchedEvent::Generic { .. } => EventClass::Generic,
        }
    }
}

pub type EventListener = Box<dyn FnMut(Timestamp, &DispatchedEvent<'_>) + Send>;

/// Handle by which a listener unregisters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registration(u64);

/// Calls listeners in order of registration.
#[derive(Default)]
pub struct Dispatcher {
    listeners: Vec<ListenerEntry>,
    /// Classes with at least one listener.
    wanted: u16,
    registered: u64,
}

struct ListenerEntry {
    registration: Registration,
    classes: u16,
    listener: EventListener,
}

impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatcher").field("listeners", &self.listeners.len()).finish()
    }
}

impl Dispatcher {
    /// Registers a listener for these classes. Returns `None` if there are too many.
    pub fn register(&mut self, classes: &[EventClass], listener: EventListener) -> Option<Registration> {
        if self.listeners.len() >= LISTENERS_MAX {
            return None;
        }
        self.registered += 1;
        let registration = Registration(self.registered);
        let classes = classes.iter().fold(0, |mask, class| mask | class.bit());
        self.listeners.push(ListenerEntry { registration, classes, listener });
        self.wanted |= classes;
        Some(registration)
    }

    /// Removes a listener. Returns false if it was not registered.
    pub fn unregister(&mut self, registration: Registration) -> bool {
        let before = self.listeners.len();
        self.listeners.retain(|row| row.registration != registration);
        self.wanted = self.listeners.iter().fold(0, |mask, row| mask | row.classes);
        self.listeners.len() < before
    }

    #[inline]
    pub fn wants(&self, class: EventClass) -> bool {
        self.wanted & class.bit() != 0
    }

    #[inline]
    pub fn dispatch(&mut self, now: Timestamp, message: &DispatchedEvent<'_>) {
        let bit = message.class().bit();
        if self.wanted & bit == 0 {
            return;
        }
        for row in self.listeners.iter_mut().filter(|row| row.classes & bit != 0) {
            (row.listener)(now, message);
        }
    }

    /// Dispatches a shard's event in all classes it belongs to.
    #[inline]
    pub fn dispatch_event(&mut self, shard: ShardId, event: &Event) {
        if self.wanted == 0 {
            return;
        }
        let now = event.at;
        if let Some(report) = event.report() {
            if let EventKind::Order(terms) = &event.body {
                self.dispatch(now, &DispatchedEvent::Order(terms));
            }
            return self.dispatch(now, &DispatchedEvent::OrderStatus(&report));
        }
        match &event.body {
            EventKind::Tick(tick) => self.dispatch(now, &DispatchedEvent::Tick(tick)),
            EventKind::Depth(depth) => self.dispatch(now, &DispatchedEvent::Depth(depth)),
            EventKind::Order(terms) => self.dispatch(now, &DispatchedEvent::Order(terms)),
            EventKind::Booked(booking) => self.dispatch_booking(now, shard, booking),
            EventKind::Adjusted { strategy, what } => {
                let strategy = *strategy;
                match what {
                    Adjustment::Position { security, after, .. } => {
                        let (security, state) = (*security, after);
                        self.dispatch(now, &DispatchedEvent::Position { strategy, security, state });
                    }
                    Adjustment::Cash { currency, after, .. } => {
                        let (currency, amount) = (*currency, *after);
                        self.dispatch(now, &DispatchedEvent::Cash { strategy, currency, shard, amount });
                    }
                }
            }
            EventKind::Phase { strategy, phase } => {
                let (strategy, phase) = (*strategy, *phase);
                self.dispatch(now, &DispatchedEvent::LifeCycle { strategy, phase, reason: None });
            }
            EventKind::Adapter { adapter, connected } => {
                let (peer, connected) = (SessionPeer::Adapter(*adapter), *connected);
                self.dispatch(now, &DispatchedEvent::ExternalSession { peer, connected });
            }
            EventKind::Status(_)
            | EventKind::Levels(_)
            | EventKind::BookOrders(_)
            | EventKind::MarketTrade(_)
            | EventKind::Refused(_)
            | EventKind::Forgotten { .. }
            | EventKind::Subscription { .. }
            | EventKind::Session { .. }
            | EventKind::Halt { .. }
            | EventKind::TradingDay { .. }
            | EventKind::Limits { .. }
            | EventKind::Restrict { .. }
            | EventKind::Kill { .. }
            | EventKind::Directed { .. }
            | EventKind::Sender { .. }
            | EventKind::SpecialTerms(_)
            | EventKind::Sent { .. }
            | EventKind::Alert { .. }
            | EventKind::ToVenue(_)
            | EventKind::Budget(_)
            | EventKind::Exposure { .. }
            | EventKind::Done { .. }
            | EventKind::SnapshotBegin { .. }
            | EventKind::SnapshotEnd { .. }
            | EventKind::UsedIds(_) => {}
        }
    }

    fn dispatch_booking(&mut self, now: Timestamp, shard: ShardId, booking: &Booking) {
        let Booking { strategy, currency, cash: amount, .. } = *booking;
        self.dispatch(now, &DispatchedEvent::Transaction(booking));
        if let Some(security) = booking.security {
            self.dispatch(now, &DispatchedEvent::Position { strategy, security, state: &booking.position });
        }
        self.dispatch(now, &DispatchedEvent::Cash { strategy, currency, shard, amount });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn count() -> (Arc<AtomicU32>, EventListener) {
        let received = Arc::new(AtomicU32::new(0));
        let counted = received.clone();
        (received, Box::new(move |_, _| _ = counted.fetch_add(1, Ordering::Relaxed)))
    }

    #[test]
    fn a_listener_receives_its_classes_until_it_unregisters() {
        let samples = [
            DispatchedEvent::Tick(&Tick::default()),
            DispatchedEvent::Position {
                strategy: StrategyId(1),
                security: SecurityId(1),
                state: &PositionState::default(),
            },
            DispatchedEvent::ExternalSession { peer: SessionPeer::Session("A"), connected: true },
            DispatchedEvent::LifeCycle {
                strategy: StrategyId(1),
                phase: StrategyPhase::Stop,
                reason: Some("why"),
            },
            DispatchedEvent::Log { level: "WARN", text: "look" },
            DispatchedEvent::Generic { name: "spread", body: b"{}" },
        ];
        for wanted in EventClass::ALL {
            let mut dispatcher = Dispatcher::default();
            let (received, listener) = count();
            let registration = dispatcher.register(&[wanted], listener).unwrap();
            for message in &samples {
                dispatcher.dispatch(Timestamp(1), message);
            }
            let expected = samples.iter().filter(|message| message.class() == wanted).count() as u32;
            assert_eq!(received.load(Ordering::Relaxed), expected, "{wanted:?}");
            assert!(dispatcher.unregister(registration) && !dispatcher.unregister(registration));
            assert!(!dispatcher.wants(wanted));
            dispatcher.dispatch(Timestamp(1), &samples[0]);
            assert_eq!(received.load(Ordering::Relaxed), expected);
        }
    }

    #[test]
    fn each_listener_receives_its_own_classes_and_one_that_unregisters_leaves_the_others() {
        let mut dispatcher = Dispatcher::default();
        let tick = DispatchedEvent::Tick(&Tick::default());
        let log = DispatchedEvent::Log { level: "WARN", text: "look" };
        let mut listen = |classes: &[EventClass]| {
            let (received, listener) = count();
            (received, dispatcher.register(classes, listener).unwrap())
        };
        // A class that is named twice counts once.
        let (first, _) = listen(&[EventClass::MarketData, EventClass::MarketData]);
        let (second, _) = listen(&[EventClass::MarketData]);
        let (third, registration) = listen(&[EventClass::Log]);
        let received = |dispatcher: &mut Dispatcher| {
            for message in [&tick, &tick, &log] {
                dispatcher.dispatch(Timestamp(1), message);
            }
            [&first, &second, &third].map(|count| count.swap(0, Ordering::Relaxed))
        };
        assert!(dispatcher.wants(EventClass::MarketData) && dispatcher.wants(EventClass::Log));
        assert_eq!(received(&mut dispatcher), [2, 2, 1]);
        assert!(dispatcher.unregister(registration));
        assert!(dispatcher.wants(EventClass::MarketData) && !dispatcher.wants(EventClass::Log));
        assert_eq!(received(&mut dispatcher), [2, 2, 0]);
    }

    #[test]
    fn the_number_of_listeners_is_bounded() {
        let mut dispatcher = Dispatcher::default();
        for _ in 0..LISTENERS_MAX {
            assert!(dispatcher.register(&EventClass::ALL, count().1).is_some());
        }
        assert!(dispatcher.register(&EventClass::ALL, count().1).is_none());
    }
}
