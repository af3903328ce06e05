//! More of the bench, for tests of several topics.

use super::*;
use crate::event::{Booking, Event};
use crate::sender::SenderId;

impl Bench {
    pub(super) fn with_rows(rows: RefDataRows) -> Bench {
        let reference = Arc::new(RefData::check(rows).unwrap());
        let mut bench = Bench::new();
        bench.shard = Shard::new(ShardId(0), 1, reference, ShardSettings::default());
        bench.send(CommandKind::Watch { port: PortId(0), what: WatchTarget::Everything, on: true });
        bench.send(CommandKind::Watch { port: PortId(0), what: WatchTarget::Venue(ADAPTER), on: true });
        bench.send(CommandKind::Adapter { adapter: ADAPTER, connected: true });
        bench
    }

    /// Applies a command of any source, and returns its events with their recipients.
    pub(super) fn apply(&mut self, command: &Command) -> Vec<(PortMask, Event)> {
        self.now += 1;
        let mut events = Vec::new();
        self.shard.apply(Timestamp(self.now), command, &mut self.out);
        loop {
            events.extend_from_slice(self.out.waiting());
            self.out.clear();
            if !self.shard.has_work() && !self.shard.has_background() {
                break;
            }
            self.shard.resume(&mut self.out);
        }
        self.shard.assert_consistent();
        events
    }

    /// Submits an order as this source and sender.
    pub(super) fn submit_as(&mut self, source: Source, sender: SenderId, terms: Terms) -> OrderHandle {
        let id = self.id();
        let command = Command { sender, ..Command::new(source, 5, CommandKind::Submit { id, terms }) };
        let events = self.apply(&command);
        let order = events.iter().find_map(|(_, event)| match event.body {
            EventKind::Order(order) if order.id == id => Some(order.order),
            _ => None,
        });
        order.unwrap()
    }

    /// Replaces the shard by one that has its saved state.
    pub(super) fn reload(&mut self) {
        self.shard = self.load(&self.snapshot_bytes()).unwrap();
    }

    pub(super) fn last(&mut self, security: SecurityId, last: &str) -> Vec<EventKind> {
        let trade = Trade { price: price(last), size: qty("1"), at: Timestamp(1) };
        self.send(CommandKind::Trade { security, trade })
    }

    pub(super) fn set_limits(&mut self, scope: Scope, limits: RiskLimits) {
        self.send(CommandKind::Limits { scope, limits });
    }

    /// Books a trade that no order made.
    pub(super) fn trade_by_hand(
        &mut self,
        strategy: u16,
        account: u16,
        security: SecurityId,
        q: &str,
    ) -> Vec<EventKind> {
        let is_buy = !q.starts_with('-');
        let movement = Movement {
            kind: if is_buy { MovementKind::Buy } else { MovementKind::Sell },
            strategy: StrategyId(strategy),
            account: AccountId(account),
            security: Some(security),
            qty: qty(q),
            price: price("9"),
            commission: Money::ZERO,
            currency: Currency::default(),
            uuid: Uuid(0),
        };
        let events = self.send(CommandKind::Transaction(movement));
        assert_eq!(reason(&events), Reason::None);
        events
    }
}

/// Returns the transactions among the events.
pub(super) fn bookings(events: &[EventKind]) -> Vec<Booking> {
    events
        .iter()
        .filter_map(|body| if let EventKind::Booked(booking) = body { Some(*booking) } else { None })
        .collect()
}

/// Returns what happened to orders.
pub(super) fn kinds(events: &[EventKind]) -> Vec<ExecType> {
    reports(events).into_iter().map(|(what, ..)| what).collect()
}

/// Returns the credit that an account uses.
pub(super) fn credit_of(bench: &Bench, account: u16) -> Money {
    let used = bench.shard.credit_used(AccountId(account)).unwrap();
    Money::from_raw(i64::try_from(used).unwrap())
}

/// Limits with a credit in dollars.
pub(super) fn credit(amount: &str) -> RiskLimits {
    RiskLimits { credit: money(amount), credit_currency: usd(), ..RiskLimits::default() }
}

pub(super) fn stop(side: Side, account: u16, at: &str) -> Terms {
    let plain = limit(side, account, "1", "1");
    Terms {
        kind: OrderKind::Stop,
        limit: Price::ZERO,
        limit_given: false,
        stop: price(at),
        stop_given: true,
        ..plain
    }
}

/// Reference data with so many strategies, which have to be started.
pub(super) fn strategies(count: u16) -> RefDataRows {
    let mut rows = rows();
    let names = (1..count).map(|id| (StrategyId(id), format!("STRATEGY{id}")));
    rows.strategies.extend(names.map(|(id, name)| StrategyInfo { id, name, auto_activate: true }));
    rows
}
