//! Turns events of the shards into messages of topics.

use std::collections::BTreeMap;

use pitlane_engine::command::StrategyPhase;
use pitlane_engine::event::{
    Adjustment, Booking, Event, EventKind, ExecType, OrderReport, OrderTerms, PositionState,
};
use pitlane_engine::id::{AdapterId, Currency, IntId, OrderHandle, Origin, SecurityId, ShardId, StrategyId};
use pitlane_engine::number::Money;
use pitlane_engine::terms::SpecialTerms;
use pitlane_engine::time::Timestamp;

use super::StompBroker;
use crate::sbe;
use crate::stomp::payload::orders::{OrderContext, OrderHistory};
use crate::stomp::payload::system::ExternalSessionState;
use crate::stomp::payload::{EventStamp, ledger, orders, system};
use crate::stomp::topic::Topic;

impl StompBroker {
    /// Publishes an event of a shard to its subscribers. Snapshot images are not news and are not
    /// published.
    pub fn handle_event(&mut self, now: Timestamp, shard: ShardId, event: &Event) {
        let stamp = EventStamp { seq: event.seq, at: event.at };
        match &event.body {
            EventKind::Tick(tick) => self.publish_tick(now, event.seq, event.at, tick),
            EventKind::Depth(depth) => self.publish_depth_update(now, shard, stamp, depth),
            EventKind::Levels(part) => self.publish_levels_update(now, stamp, part),
            EventKind::BookOrders(part) => self.publish_book_orders_update(now, stamp, part),
            EventKind::MarketTrade(trade) => self.publish_trade(now, stamp, trade),
            EventKind::Order(order_terms) => match event.report() {
                Some(report) => {
                    self.order_histories.begin(order_terms.order, event.at);
                    let special = self.take_special(shard, order_terms);
                    self.publish_order_update(now, stamp, (order_terms, special), &report);
                    self.publish_status_update(now, stamp, &report);
                }
                None => self.handle_terms(shard, stamp, order_terms),
            },
            EventKind::Status(report) => {
                self.order_histories.note(report);
                self.publish_change_update(now, shard, report);
                self.publish_status_update(now, stamp, report);
            }
            EventKind::Booked(booking) => self.publish_booking_update(now, shard, stamp, booking),
            EventKind::Adjusted { strategy, what } => {
                self.publish_adjustment_update(now, shard, stamp, *strategy, what)
            }
            EventKind::Subscription { strategy, security, on, subscribers } => {
                let reference = self.reference.clone();
                let Some(row) = reference.strategy(*strategy) else { return };
                let topic = Topic::Subscription { strategy: &row.name, security: *security };
                self.publish(now, &topic, stamp.at, |out| {
                    system::subscription(out, stamp, (*strategy, *security), *on, *subscribers, &reference)
                });
            }
            EventKind::Phase { strategy, phase } => self.publish_phase_update(now, stamp, *strategy, *phase),
            EventKind::Adapter { adapter, connected } => {
                self.publish_adapter_update(now, shard, stamp, *adapter, *connected)
            }
            EventKind::Session { exchange, session } => {
                self.publish_session_change(now, stamp, *exchange, *session)
            }
            EventKind::Halt { security, on } => self.publish_halt(now, stamp, *security, *on),
            EventKind::Forgotten { order, .. } => self.own_ids.forget(*order),
            EventKind::SpecialTerms(special) => self.reported.put(shard, special),
            // These have no topic: a refusal belongs to the requester, and the others are internal.
            EventKind::Refused(_)
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
            | EventKind::Exposure { .. }
            | EventKind::Done { .. }
            | EventKind::SnapshotBegin { .. }
            | EventKind::SnapshotEnd { .. }
            | EventKind::UsedIds(_) => {}
        }
    }

    /// Handles changed terms, whose status comes in the next event, or an order's image.
    fn handle_terms(&mut self, shard: ShardId, stamp: EventStamp, order_terms: &OrderTerms) {
        if !order_terms.orig_id.is_none() {
            self.own_ids.set(order_terms.order, order_terms.id);
        }
        let special = self.take_special(shard, order_terms);
        if order_terms.what == ExecType::Snapshot {
            self.order_histories.begin(order_terms.order, stamp.at);
        } else if !self.index.is_empty() {
            self.changed.insert(shard, (stamp, *order_terms, special));
        }
    }

    /// Takes the special terms that came before the event of their order.
    fn take_special(&mut self, shard: ShardId, order_terms: &OrderTerms) -> Option<SpecialTerms> {
        self.reported.take(shard, order_terms.order, &order_terms.terms).map(|reported| reported.special)
    }

    fn publish_change_update(&mut self, now: Timestamp, shard: ShardId, report: &OrderReport) {
        if report.what == ExecType::Replaced
            && let Some((stamp, order_terms, special)) = self.changed.remove(&shard)
            && order_terms.order == report.order
        {
            self.publish_order_update(now, stamp, (&order_terms, special), report);
        }
    }

    fn publish_order_update(
        &mut self,
        now: Timestamp,
        stamp: EventStamp,
        (order_terms, special): (&OrderTerms, Option<SpecialTerms>),
        report: &OrderReport,
    ) {
        // Often there are no subscribers; then nothing is rendered.
        if self.index.is_empty() {
            return;
        }
        let reference = self.reference.clone();
        let Some(strategy) = reference.strategy(order_terms.terms.strategy) else { return };
        let topic = Topic::Order { strategy: &strategy.name, order: order_terms.id };
        let source = order_terms.source;
        let known = self.fix_sessions.get(&(source.port, source.session));
        let name = known.filter(|_| source.origin == Origin::Fix).cloned();
        let past = self
            .order_histories
            .of(order_terms.order)
            .unwrap_or(OrderHistory { submitted: stamp.at, ..OrderHistory::default() });
        let context = OrderContext { report, special, past, session: name.as_deref() };
        self.publish(now, &topic, stamp.at, |out| {
            orders::order(out, stamp, order_terms, context, &reference)
        });
    }

    fn publish_status_update(&mut self, now: Timestamp, stamp: EventStamp, report: &OrderReport) {
        let (id, orig_id) = self.own_ids.of(report);
        if report.what == ExecType::Snapshot || self.index.is_empty() {
            return;
        }
        let reference = self.reference.clone();
        let Some(strategy) = reference.strategy(report.strategy) else { return };
        let topic = Topic::OrderStatus { strategy: &strategy.name, order: id };
        let ids = (&id, &orig_id);
        self.publish_forms(
            now,
            &topic,
            stamp.at,
            |out| orders::status(out, stamp, ids, report, &reference),
            |out| sbe::order_status(out, stamp, ids, report, &reference),
        );
    }

    fn publish_booking_update(
        &mut self,
        now: Timestamp,
        shard: ShardId,
        stamp: EventStamp,
        booking: &Booking,
    ) {
        let reference = self.reference.clone();
        let cash = self.record_cash(shard, booking.strategy, booking.currency, booking.cash);
        let Some(strategy) = reference.strategy(booking.strategy) else { return };
        let instance = self.settings.instance;
        let topic = Topic::Transaction { strategy: &strategy.name };
        self.publish(now, &topic, stamp.at, |out| {
            ledger::transaction(out, stamp, booking, instance, &reference)
        });
        if let Some(security) = booking.security {
            self.publish_position_update(now, stamp, booking.strategy, security, &booking.position);
        }
        self.publish_cash_update(now, stamp, booking.strategy, booking.currency, cash);
    }

    /// Publishes a value that a reset has corrected, with a warning for the operator.
    fn publish_adjustment_update(
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
                self.publish_position_update(now, stamp, strategy, security, &after);
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
                let cash = self.record_cash(shard, strategy, currency, after);
                if before == after {
                    return;
                }
                self.publish_cash_update(now, stamp, strategy, currency, cash);
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

    fn publish_position_update(
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

    fn publish_cash_update(
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

    /// Records a shard's part and returns the sum of all, or `None` if it overflows.
    fn record_cash(
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

    /// Publishes a phase. Every shard reports it; the first report counts.
    fn publish_phase_update(
        &mut self,
        now: Timestamp,
        stamp: EventStamp,
        strategy: StrategyId,
        phase: StrategyPhase,
    ) {
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

    /// Publishes the change of a failed strategy to STOP with its reason. If a shard has reported
    /// the change before, it is published again with the reason.
    pub fn publish_failure(&mut self, now: Timestamp, name: &str, reason: &str) {
        let reference = self.reference.clone();
        let Some(row) = reference.strategies().iter().find(|row| row.name == name) else { return };
        self.phases.insert(row.id, StrategyPhase::Stop);
        let stamp = EventStamp { seq: self.next_seq(), at: now };
        let topic = Topic::Lifecycle { strategy: name };
        let why = Some(reason);
        self.publish(now, &topic, now, |out| {
            system::lifecycle(out, stamp, row.id, name, StrategyPhase::Stop, why)
        });
    }

    /// Publishes when an adapter's state changes. An adapter is connected when every shard that
    /// reported it says so.
    fn publish_adapter_update(
        &mut self,
        now: Timestamp,
        shard: ShardId,
        stamp: EventStamp,
        adapter: AdapterId,
        connected: bool,
    ) {
        let connected_by_shard = self.adapters.entry(adapter).or_default();
        let before = (!connected_by_shard.is_empty())
            .then(|| connected_by_shard.values().all(|is_connected| *is_connected));
        connected_by_shard.insert(shard, connected);
        let after = connected_by_shard.values().all(|is_connected| *is_connected);
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

/// Own ids of orders whose reports carry another id: modified orders, and orders being cancelled,
/// whose reports carry the id of the request.
#[derive(Debug, Default)]
pub(super) struct OwnIds {
    ids: BTreeMap<OrderHandle, IntId>,
}

/// Orders known at once, 64 octets each. Above it those with the lowest handles are forgotten, and
/// the end of their cancel is published under the request's id.
const OWN_IDS_MAX: usize = 1 << 18;

impl OwnIds {
    /// Returns the order's own id, and the id before its modification if the report has it.
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
    fn own_ids_are_bounded_and_the_lowest_handles_are_forgotten() {
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
        // A finished order makes room.
        own_ids.forget(order(last));
        assert_eq!(own_ids.ids.len(), OWN_IDS_MAX - 1);
    }
}
