//! Events of the shards as messages of topics.

use std::collections::BTreeMap;

use pitlane_engine::command::Phase;
use pitlane_engine::event::{
    Adjustment, Booking, Event, EventKind, ExecType, OrderReport, OrderTerms, PositionState,
};
use pitlane_engine::id::{AdapterId, Currency, IntId, OrderHandle, Origin, SecurityId, ShardId, StrategyId};
use pitlane_engine::number::Money;
use pitlane_engine::time::Timestamp;

use super::StompBroker;
use crate::stomp::payload::orders::{OrderContext, OrderHistory};
use crate::stomp::payload::system::ExternalSessionState;
use crate::stomp::payload::{EventStamp, ledger, orders, system};
use crate::stomp::topic::Topic;

impl StompBroker {
    /// Tells everybody who wants it what a shard said. Images in snapshots are no news, and are not told.
    pub fn handle_event(&mut self, now: Timestamp, shard: ShardId, event: &Event) {
        let stamp = EventStamp { seq: event.seq, at: event.at };
        match &event.body {
            EventKind::Tick(tick) => self.publish_tick(now, event.seq, event.at, tick),
            EventKind::Depth(depth) => self.tell_depth(now, shard, stamp, depth),
            EventKind::Order(told) => match event.report() {
                Some(report) => {
                    self.pasts.begin(told.order, event.at);
                    self.tell_order(now, stamp, told, &report);
                    self.tell_status(now, stamp, &report);
                }
                None => self.terms_are(shard, stamp, told),
            },
            EventKind::Status(report) => {
                self.pasts.note(report);
                self.tell_change(now, shard, report);
                self.tell_status(now, stamp, report);
            }
            EventKind::Booked(booking) => self.tell_booking(now, shard, stamp, booking),
            EventKind::Adjusted { strategy, what } => {
                self.tell_adjustment(now, shard, stamp, *strategy, what)
            }
            EventKind::Subscription { strategy, security, on, subscribers } => {
                let reference = self.reference.clone();
                let Some(row) = reference.strategy(*strategy) else { return };
                let topic = Topic::Subscription { strategy: &row.name, security: *security };
                self.publish(now, &topic, stamp.at, |out| {
                    system::subscription(out, stamp, (*strategy, *security), *on, *subscribers, &reference)
                });
            }
            EventKind::Phase { strategy, phase } => self.tell_phase(now, stamp, *strategy, *phase),
            EventKind::Adapter { adapter, connected } => {
                self.tell_adapter(now, shard, stamp, *adapter, *connected)
            }
            EventKind::Forgotten { order, .. } => self.own_ids.forget(*order),
            // Nothing of these has a topic: refusals of requests are the requester's, the rest is ours.
            EventKind::Refused(_)
            | EventKind::Session { .. }
            | EventKind::Halt { .. }
            | EventKind::TradingDay { .. }
            | EventKind::Limits { .. }
            | EventKind::Restrict { .. }
            | EventKind::Kill { .. }
            | EventKind::Directed { .. }
            | EventKind::Sender { .. }
            | EventKind::Sent { .. }
            | EventKind::Alert { .. }
            | EventKind::ToVenue(_)
            | EventKind::Budget(_)
            | EventKind::Done { .. }
            | EventKind::SnapshotBegin { .. }
            | EventKind::SnapshotEnd { .. }
            | EventKind::UsedIds(_) => {}
        }
    }

    /// Terms have changed, and how the order stands with them is told right behind; or this is an order's image.
    fn terms_are(&mut self, shard: ShardId, stamp: EventStamp, told: &OrderTerms) {
        if !told.orig_id.is_none() {
            self.own_ids.set(told.order, told.id);
        }
        if told.what == ExecType::Snapshot {
            self.pasts.begin(told.order, stamp.at);
        } else if !self.index.is_empty() {
            self.changed.insert(shard, (stamp, *told));
        }
    }

    fn tell_change(&mut self, now: Timestamp, shard: ShardId, report: &OrderReport) {
        if report.what == ExecType::Replaced
            && let Some((stamp, told)) = self.changed.remove(&shard)
            && told.order == report.order
        {
            self.tell_order(now, stamp, &told, report);
        }
    }

    fn tell_order(&mut self, now: Timestamp, stamp: EventStamp, told: &OrderTerms, report: &OrderReport) {
        // Nobody is here, as often: then nothing is worded.
        if self.index.is_empty() {
            return;
        }
        let reference = self.reference.clone();
        let Some(strategy) = reference.strategy(told.terms.strategy) else { return };
        let topic = Topic::Order { strategy: &strategy.name, order: told.id };
        let source = told.source;
        let known = self.fix_sessions.get(&(source.port, source.session));
        let name = known.filter(|_| source.origin == Origin::Fix).cloned();
        let past = self
            .pasts
            .of(told.order)
            .unwrap_or(OrderHistory { submitted: stamp.at, ..OrderHistory::default() });
        let standing = OrderContext { report, past, session: name.as_deref() };
        self.publish(now, &topic, stamp.at, |out| orders::order(out, stamp, told, standing, &reference));
    }

    fn tell_status(&mut self, now: Timestamp, stamp: EventStamp, report: &OrderReport) {
        let (id, orig_id) = self.own_ids.of(report);
        if report.what == ExecType::Snapshot || self.index.is_empty() {
            return;
        }
        let reference = self.reference.clone();
        let Some(strategy) = reference.strategy(report.strategy) else { return };
        let topic = Topic::OrderStatus { strategy: &strategy.name, order: id };
        self.publish(now, &topic, stamp.at, |out| {
            orders::status(out, stamp, (&id, &orig_id), report, &reference)
        });
    }

    fn tell_booking(&mut self, now: Timestamp, shard: ShardId, stamp: EventStamp, booking: &Booking) {
        let reference = self.reference.clone();
        let cash = self.cash_is(shard, booking.strategy, booking.currency, booking.cash);
        let Some(strategy) = reference.strategy(booking.strategy) else { return };
        let instance = self.settings.instance;
        let topic = Topic::Transaction { strategy: &strategy.name };
        self.publish(now, &topic, stamp.at, |out| {
            ledger::transaction(out, stamp, booking, instance, &reference)
        });
        if let Some(security) = booking.security {
            self.tell_position(now, stamp, booking.strategy, security, &booking.position);
        }
        self.tell_cash(now, stamp, booking.strategy, booking.currency, cash);
    }

    /// A reset found another value: the new one is told, and a person should know.
    fn tell_adjustment(
        &mut self,
        now: Timestamp,
        shard: ShardId,
        stamp: EventStamp,
        strategy: StrategyId,
        what: &Adjustment,
    ) {
        match *what {
            Adjustment::Position { before, after, .. } if before == after => {}
            Adjustment::Position { security, before, after } => {
                self.tell_position(now, stamp, strategy, security, &after);
                let fields = [
                    ("strategyId", strategy.to_string()),
                    ("securityId", security.to_string()),
                    ("before", before.qty.to_string()),
                    ("after", after.qty.to_string()),
                ];
                self.warn(
                    now,
                    "position recomputed",
                    &fields.each_ref().map(|(name, text)| (*name, text.as_str())),
                );
            }
            Adjustment::Cash { currency, before, after } => {
                let cash = self.cash_is(shard, strategy, currency, after);
                if before == after {
                    return;
                }
                self.tell_cash(now, stamp, strategy, currency, cash);
                let fields = [
                    ("strategyId", strategy.to_string()),
                    ("currency", currency.to_string()),
                    ("before", before.to_string()),
                    ("after", after.to_string()),
                ];
                self.warn(
                    now,
                    "cash recomputed",
                    &fields.each_ref().map(|(name, text)| (*name, text.as_str())),
                );
            }
        }
    }

    fn tell_position(
        &mut self,
        now: Timestamp,
        stamp: EventStamp,
        strategy: StrategyId,
        security: SecurityId,
        state: &PositionState,
    ) {
        let reference = self.reference.clone();
        let Some(row) = reference.strategy(strategy) else { return };
        let topic = Topic::Position { strategy: &row.name, security };
        let tick = self.market.tick(security).copied();
        self.publish(now, &topic, stamp.at, |out| {
            ledger::position(out, stamp, (strategy, security), state, tick.as_ref(), &reference)
        });
    }

    fn tell_cash(
        &mut self,
        now: Timestamp,
        stamp: EventStamp,
        strategy: StrategyId,
        currency: Currency,
        amount: Option<Money>,
    ) {
        let reference = self.reference.clone();
        let Some(row) = reference.strategy(strategy) else { return };
        let topic = Topic::CashBalance { strategy: &row.name, currency };
        self.publish(now, &topic, stamp.at, |out| {
            ledger::cash_balance(out, stamp, strategy, currency, amount, &reference)
        });
    }

    /// Notes a shard's part, and gives the sum of all; None if it cannot be counted.
    fn cash_is(
        &mut self,
        shard: ShardId,
        strategy: StrategyId,
        currency: Currency,
        part: Money,
    ) -> Option<Money> {
        let parts = self.cash.entry((strategy, currency)).or_default();
        parts.insert(shard, part);
        let sum: i128 = parts.values().map(|part| part.raw() as i128).sum();
        i64::try_from(sum).ok().map(Money::from_raw)
    }

    /// Every shard tells it; the first is heard.
    fn tell_phase(&mut self, now: Timestamp, stamp: EventStamp, strategy: StrategyId, phase: Phase) {
        if self.phases.insert(strategy, phase) == Some(phase) {
            return;
        }
        let reference = self.reference.clone();
        let Some(row) = reference.strategy(strategy) else { return };
        let topic = Topic::Lifecycle { strategy: &row.name };
        self.publish(now, &topic, stamp.at, |out| {
            system::lifecycle(out, stamp, strategy, &row.name, phase, None)
        });
    }

    /// A strategy has failed: the change to STOP is told with its reason. If a shard has told of the change already, it is told once
    /// more, with the reason.
    pub fn publish_failure(&mut self, now: Timestamp, name: &str, reason: &str) {
        let reference = self.reference.clone();
        let Some(row) = reference.strategies().iter().find(|row| row.name == name) else { return };
        self.phases.insert(row.id, Phase::Stop);
        let stamp = EventStamp { seq: self.next_seq(), at: now };
        let topic = Topic::Lifecycle { strategy: name };
        let why = Some(reason);
        self.publish(now, &topic, now, |out| system::lifecycle(out, stamp, row.id, name, Phase::Stop, why));
    }

    /// An adapter is connected when every shard that spoke of it says so; told when that changes.
    fn tell_adapter(
        &mut self,
        now: Timestamp,
        shard: ShardId,
        stamp: EventStamp,
        adapter: AdapterId,
        connected: bool,
    ) {
        let words = self.adapters.entry(adapter).or_default();
        let before = (!words.is_empty()).then(|| words.values().all(|word| *word));
        words.insert(shard, connected);
        let after = words.values().all(|word| *word);
        if before == Some(after) {
            return;
        }
        let reference = self.reference.clone();
        let Some(exchange) = reference.exchanges().iter().find(|row| row.adapter == adapter) else { return };
        let name = exchange.adapter_type.as_str();
        let link = if after { ExternalSessionState::Connected } else { ExternalSessionState::Disconnected };
        self.publish(now, &Topic::Session(name), stamp.at, |out| system::session(out, stamp, name, link));
    }
}

/// Orders whose own id cannot be told from a report alone: those that were modified, and those that are being cancelled, whose
/// reports carry the id of the request.
#[derive(Debug, Default)]
pub(super) struct OwnIds {
    ids: BTreeMap<OrderHandle, IntId>,
}

/// Known at once, 64 octets each. Of more those with the lowest handles are forgotten, and the end of their cancel is told under the
/// request's id.
const OWN_IDS_MAX: usize = 1 << 18;

impl OwnIds {
    /// The order's own id, and the one before its modification where the report tells it.
    fn of(&mut self, report: &OrderReport) -> (IntId, IntId) {
        let is_request = matches!(report.what, ExecType::CancelPending | ExecType::ReplacePending);
        let own = match self.ids.get(&report.order) {
            Some(own) => *own,
            None if is_request && !report.orig_id.is_none() => report.orig_id,
            None => report.id,
        };
        let own = if report.what == ExecType::Replaced { report.id } else { own };
        if report.status.is_finished() {
            self.forget(report.order);
        } else if is_request || report.what == ExecType::Replaced {
            self.set(report.order, own);
        }
        (own, if own == report.id { report.orig_id } else { IntId::NONE })
    }

    fn set(&mut self, order: OrderHandle, own: IntId) {
        self.ids.insert(order, own);
        if self.ids.len() > OWN_IDS_MAX {
            self.ids.pop_first();
        }
    }

    fn forget(&mut self, order: OrderHandle) {
        self.ids.remove(&order);
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::id::{AccountId, PortId, Source};
    use pitlane_engine::number::{Price, Qty};
    use pitlane_engine::reason::Reason;
    use pitlane_engine::terms::{OrderKind, Side, Status, Tif};

    use super::*;

    #[test]
    fn ids_of_so_many_orders_are_known_and_then_the_lowest_are_forgotten() {
        let order = |slot| OrderHandle::new(ShardId(0), 1, slot);
        let canceled = |slot| OrderReport {
            what: ExecType::Canceled,
            order: order(slot),
            id: IntId::numbered(b'c', slot as u64),
            orig_id: IntId::NONE,
            qty: Qty::ZERO,
            cum_qty: Qty::ZERO,
            avg_price: Price::ZERO,
            last_qty: Qty::ZERO,
            last_price: Price::ZERO,
            source: Source { origin: Origin::Rest, port: PortId(0), session: 0 },
            sender: Default::default(),
            security: SecurityId(1),
            strategy: StrategyId::SERVER,
            account: AccountId(1),
            status: Status::New,
            reason: Reason::None,
            side: Side::Buy,
            kind: OrderKind::Limit,
            tif: Tif::Day,
            in_doubt: false,
        };
        let own = |slot| IntId::numbered(b'o', slot as u64);
        let mut own_ids = OwnIds::default();
        let last = OWN_IDS_MAX as u32;
        (0..last).for_each(|slot| own_ids.set(order(slot), own(slot)));
        assert_eq!(own_ids.of(&canceled(0)).0, own(0), "all that fit are known");
        own_ids.set(order(last), own(last));
        assert_eq!(own_ids.ids.len(), OWN_IDS_MAX);
        assert_eq!(own_ids.of(&canceled(0)).0, canceled(0).id, "under the id of the request");
        for slot in [1, last] {
            assert_eq!(own_ids.of(&canceled(slot)).0, own(slot));
        }
        // Whoever is finished makes room.
        own_ids.forget(order(last));
        assert_eq!(own_ids.ids.len(), OWN_IDS_MAX - 1);
    }
}
