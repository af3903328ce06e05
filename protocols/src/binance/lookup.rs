//! Lookups: the venue is asked what became of an order, and which trades it had.
//!
//! ```text
//! order.status ─► found ─────────────► executed? ─► myTrades ─► fills ─► Standing
//!   │ no such order                       └── no ────────────────────► Standing
//!   ├─► the same, cancelled by us (C…) ─► found ─► as above
//!   ├─► the same, replaced (R…) ────────► found ─► as above
//!   ├─► of an order for the day: ended with it (D…) ─► found ─► as above
//!   └─► the receive window is over? ─ no ─► again when it is
//!                                   └ yes ─► Standing: the venue does not know the order
//! ```
//!
//! Lookups share the weight limit with everything else, and wait for the next interval if they
//! must.

use std::collections::BTreeMap;
use std::ops::Bound;

use pitlane_engine::command::{VenueReport, VenueState};
use pitlane_engine::event::Instruction;
use pitlane_engine::id::{OrderHandle, SecurityId};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::Tif;
use pitlane_engine::time::{NS_PER_MS, Timestamp};

use super::UNKNOWN_MARGIN_NS;
use super::answers::code;
use super::events::{canceled_state, exec_ref, expiry_reason, is_over};
use super::fees::TradeValues;
use super::held::{HeldOrder, IdRole, TradeMark};
use super::message::{Inbound, OrderBody, TradeBody, average, for_each, price, qty};
use super::session::{BinanceSession, RequestKind, cost};

/// Lookups with a request on the way: after a reconnect there may be thousands of orders, and new
/// orders must not wait behind all of them.
pub const LOOKUPS_IN_FLIGHT_MAX: usize = 16;

/// Trades of one answer: as many as the venue gives.
const TRADES_PER_PAGE: u64 = 1_000;

/// Time until a lookup is repeated whose answer was older than an event.
const STALE_RETRY_NS: u64 = 200 * NS_PER_MS;

/// Next request of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LookupStep {
    Status(IdRole),
    /// Reads the trades of an order after these; then the state is reported.
    Trades {
        venue_order: u64,
        mark: TradeMark,
        found: FoundState,
    },
}

/// State of the order at the venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FoundState {
    cum: Qty,
    average: Price,
    state: VenueState,
}

#[derive(Clone, Copy, Debug)]
struct Lookup {
    security: SecurityId,
    /// Whether the order is for the day.
    is_day: bool,
    step: LookupStep,
    is_sent: bool,
    not_before: Timestamp,
    /// Our time from which "no such order" is the truth.
    conclusive_at: Timestamp,
    /// What events have shown meanwhile: the filled quantity, and whether the order is over.
    seen: Qty,
    seen_over: bool,
}

/// The lookups: at most one for each open order.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    by_order: BTreeMap<OrderHandle, Lookup>,
    in_flight: usize,
    /// Our time from which nothing that an earlier connection has sent can arrive.
    conclusive_at: Timestamp,
    /// Our time until which a limit or a full output stops them.
    blocked_until: Timestamp,
    /// Where the search for the next one begins. It outlives the connection: connections that end
    /// early again and again must not look up the same orders each time.
    cursor: Option<Bound<OrderHandle>>,
}

impl Lookups {
    pub(super) fn handle_connect(&mut self, conclusive_at: Timestamp) {
        self.conclusive_at = conclusive_at;
    }

    pub(super) fn clear(&mut self) {
        self.by_order.clear();
        (self.in_flight, self.blocked_until) = (0, Timestamp::ZERO);
    }

    fn insert(
        &mut self,
        order: OrderHandle,
        (security, is_day): (SecurityId, bool),
        conclusive_at: Timestamp,
    ) {
        let step = LookupStep::Status(IdRole::Live);
        let conclusive_at = conclusive_at.max(self.conclusive_at);
        let (not_before, seen, seen_over, is_sent) = (Timestamp::ZERO, Qty::ZERO, false, false);
        let lookup = Lookup { security, is_day, step, is_sent, not_before, conclusive_at, seen, seen_over };
        let found = self.by_order.entry(order).or_insert(lookup);
        found.conclusive_at = found.conclusive_at.max(conclusive_at);
    }

    /// Notes what an event shows. Returns whether the order is being looked up.
    pub(super) fn note_event(&mut self, order: OrderHandle, cum: Qty, is_over: bool) -> bool {
        let Some(lookup) = self.by_order.get_mut(&order) else { return false };
        (lookup.seen, lookup.seen_over) = (lookup.seen.max(cum), lookup.seen_over || is_over);
        true
    }

    /// Sets the next request of a lookup.
    fn continue_with(&mut self, order: OrderHandle, step: LookupStep, not_before: Timestamp) {
        if let Some(lookup) = self.by_order.get_mut(&order) {
            (lookup.step, lookup.not_before) = (step, not_before);
            // A lookup that has begun is finished before others begin.
            self.cursor = Some(Bound::Included(order));
        }
    }

    /// Handles an answer, and returns the lookup that it belongs to.
    fn take_answered(&mut self, order: OrderHandle) -> Option<Lookup> {
        let lookup = self.by_order.get_mut(&order).filter(|lookup| lookup.is_sent)?;
        lookup.is_sent = false;
        self.in_flight = self.in_flight.saturating_sub(1);
        Some(*lookup)
    }

    fn next_due(&self, now: Timestamp) -> Option<(OrderHandle, Lookup)> {
        let is_due = |(_, lookup): &(&OrderHandle, &Lookup)| !lookup.is_sent && lookup.not_before <= now;
        let start = self.cursor.unwrap_or(Bound::Unbounded);
        let found = self.by_order.range((start, Bound::Unbounded)).find(is_due);
        let (order, lookup) = found.or_else(|| self.by_order.iter().find(is_due))?;
        Some((*order, *lookup))
    }

    fn deadline(&self) -> Timestamp {
        let waiting = self.by_order.values().filter(|lookup| !lookup.is_sent);
        waiting.map(|lookup| lookup.not_before).min().unwrap_or(Timestamp::MAX)
    }
}

impl BinanceSession {
    /// Looks an order up, on request of its shard. Without a connection the shard asks again after
    /// the next synchronization.
    pub(super) fn look_up(&mut self, instruction: &Instruction) {
        self.queue_report(instruction.order, VenueReport::Unsure);
        if self.is_ready() {
            // The shard asks for many orders at once; the requests follow with the next poll.
            let terms = &instruction.terms;
            let kind = (terms.security, terms.tif == Tif::Day);
            self.lookups.insert(instruction.order, kind, Timestamp::ZERO);
        }
    }

    /// Looks an order up of which a request may or may not have been executed.
    pub(super) fn look_up_again(&mut self, now: Timestamp, order: OrderHandle) {
        let kind = self.held.get(order).map(|held| (held.security, held.day_ends < Timestamp::MAX));
        let Some(kind) = kind else { return };
        self.queue_report(order, VenueReport::Unsure);
        let window_ns = self.settings.receive_window_ns() + UNKNOWN_MARGIN_NS;
        self.lookups.insert(order, kind, now.plus(window_ns));
        self.send_lookups(now);
    }

    /// Returns when the next lookup can be sent.
    pub(super) fn lookup_deadline(&self) -> Timestamp {
        if self.lookups.in_flight >= LOOKUPS_IN_FLIGHT_MAX {
            return Timestamp::MAX;
        }
        self.lookups.deadline().max(self.lookups.blocked_until)
    }

    /// Returns whether a lookup may be sent now; notes otherwise when to try again.
    fn may_look_up(&mut self, now: Timestamp) -> bool {
        if !self.is_ready() || self.lookups.in_flight >= LOOKUPS_IN_FLIGHT_MAX {
            return false;
        }
        let at = self.venue_time(now);
        if !self.has_room() {
            self.lookups.blocked_until = now.plus(STALE_RETRY_NS);
        } else if !self.limits.allows(at, cost::TRADES) {
            self.lookups.blocked_until = self.own_time(self.limits.next_interval(at));
        } else {
            return true;
        }
        false
    }

    pub(super) fn send_lookups(&mut self, now: Timestamp) {
        while let Some((order, lookup)) = self.lookups.next_due(now) {
            if !self.may_look_up(now) {
                return;
            }
            let Some(symbol) = self.symbol(lookup.security) else {
                // The security has left the reference data, so its orders cannot be asked for.
                self.lookups.by_order.remove(&order);
                continue;
            };
            match lookup.step {
                LookupStep::Status(role) => {
                    let id = self.ids().id(order, role);
                    self.send(
                        now,
                        RequestKind::Status(order),
                        cost::STATUS,
                        "order.status",
                        |draft, time| {
                            draft.text("origClientOrderId", &id);
                            time.write_window(draft);
                            draft.text("symbol", &symbol);
                            time.write_time(draft);
                        },
                    );
                }
                LookupStep::Trades { venue_order, mark, .. } => {
                    self.send(now, RequestKind::Trades(order), cost::TRADES, "myTrades", |draft, time| {
                        draft.number("fromId", mark.next);
                        draft.number("limit", TRADES_PER_PAGE);
                        draft.number("orderId", venue_order);
                        time.write_window(draft);
                        draft.text("symbol", &symbol);
                        time.write_time(draft);
                    });
                }
            }
            self.lookups.in_flight += 1;
            self.lookups.cursor = Some(Bound::Excluded(order));
            if let Some(lookup) = self.lookups.by_order.get_mut(&order) {
                lookup.is_sent = true;
            }
        }
    }

    pub(super) fn handle_status(&mut self, now: Timestamp, order: OrderHandle, inbound: &Inbound<'_>) {
        let Some(lookup) = self.lookups.take_answered(order) else { return };
        let LookupStep::Status(role) = lookup.step else { return };
        if let Some(error) = &inbound.error {
            match error.code {
                code::NO_SUCH_ORDER => self.handle_unknown(now, order, role, &lookup),
                // It ended long ago without a fill.
                code::ORDER_ARCHIVED => {
                    let state = VenueState::Canceled(Reason::VenueCancelled);
                    self.finish_lookup(order, FoundState { cum: Qty::ZERO, average: Price::ZERO, state });
                }
                _ => self.retry(now, order, lookup.step),
            }
            return self.send_lookups(now);
        }
        let body = inbound.result.and_then(|result| serde_json::from_str::<OrderBody<'_>>(result.get()).ok());
        let Some((body, found)) = body.and_then(|body| found_state(&body, role).map(|found| (body, found)))
        else {
            self.counts.incomplete += 1;
            return self.retry(now, order, lookup.step);
        };
        self.hold(order, &lookup, &body, &found);
        let known = self.held.get(order).map_or(TradeMark::default(), |held| held.reported);
        let is_outdated = lookup.seen_over && found.state == VenueState::Open;
        if is_outdated || known.cum.max(lookup.seen) > found.cum {
            // An event was newer than this answer.
            self.lookups.continue_with(order, lookup.step, now.plus(STALE_RETRY_NS));
        } else if found.cum > known.cum {
            let step = LookupStep::Trades { venue_order: body.order_id, mark: known, found };
            self.lookups.continue_with(order, step, now);
        } else {
            self.finish_lookup(order, found);
        }
        self.send_lookups(now);
    }

    /// Handles that the venue has no order with this id.
    fn handle_unknown(&mut self, now: Timestamp, order: OrderHandle, role: IdRole, lookup: &Lookup) {
        let next = match role {
            IdRole::Live => IdRole::Canceled,
            IdRole::Canceled => IdRole::Replaced,
            IdRole::Replaced if lookup.is_day => IdRole::DayEnded,
            IdRole::Replaced | IdRole::DayEnded if now < lookup.conclusive_at => {
                let step = LookupStep::Status(IdRole::Live);
                return self.lookups.continue_with(order, step, lookup.conclusive_at);
            }
            IdRole::Replaced | IdRole::DayEnded => {
                let state = VenueState::Rejected(Reason::UnknownOrder);
                return self.finish_lookup(order, FoundState { cum: Qty::ZERO, average: Price::ZERO, state });
            }
        };
        self.lookups.continue_with(order, LookupStep::Status(next), now);
    }

    /// Repeats a request that the venue could not answer.
    fn retry(&mut self, now: Timestamp, order: OrderHandle, step: LookupStep) {
        self.lookups.continue_with(order, step, now.plus(UNKNOWN_MARGIN_NS));
    }

    /// Remembers an order that works at the venue, with the terms that it has there.
    fn hold(&mut self, order: OrderHandle, lookup: &Lookup, body: &OrderBody<'_>, found: &FoundState) {
        let terms = (body.orig_qty.and_then(qty), body.price.and_then(price));
        let (VenueState::Open, (Some(qty), Some(limit))) = (found.state, terms) else { return };
        let placed = Timestamp(body.time.unwrap_or(0).saturating_mul(NS_PER_MS));
        let day_ends = match lookup.is_day {
            true => self.trading_day.ends(self.own_time(placed)),
            false => Timestamp::MAX,
        };
        let is_iceberg = body.iceberg_qty.and_then(self::qty).is_some_and(Qty::is_positive);
        match self.held.get_mut(order) {
            Some(held) => (held.qty, held.limit) = (qty, limit),
            None => {
                let held = HeldOrder::new(lookup.security, qty, limit);
                self.held.insert(order, HeldOrder { day_ends, is_iceberg, ..held });
            }
        }
    }

    pub(super) fn handle_trades(&mut self, now: Timestamp, order: OrderHandle, inbound: &Inbound<'_>) {
        let Some(lookup) = self.lookups.take_answered(order) else { return };
        let LookupStep::Trades { venue_order, mut mark, found } = lookup.step else { return };
        let Some(list) = inbound.result else { return self.retry(now, order, lookup.step) };
        let Some(symbol) = self.symbol(lookup.security) else { return };
        let mut count = 0;
        let is_list = for_each(list, |trade: TradeBody<'_>| {
            count += 1;
            let values = (qty(trade.qty), price(trade.price));
            let next = values.0.and_then(|qty| mark.after(trade.id, qty));
            let ((Some(qty), Some(price)), Some(next)) = (values, next) else {
                self.counts.incomplete += 1;
                return;
            };
            mark = next;
            let values = TradeValues { exec: exec_ref(&symbol, trade.id), qty, price, cum: mark.cum };
            let report = self.fill_report(values, &trade.commission, trade.commission_asset.as_deref());
            self.queue_trade(order, mark, report);
        });
        if !is_list {
            self.counts.incomplete += 1;
            return self.retry(now, order, lookup.step);
        }
        if count == TRADES_PER_PAGE {
            self.lookups.continue_with(order, LookupStep::Trades { venue_order, mark, found }, now);
        } else if mark.cum < found.cum || mark.cum < lookup.seen {
            // The trades lag behind the state, or the state behind the events.
            self.lookups.continue_with(order, LookupStep::Status(IdRole::Live), now.plus(STALE_RETRY_NS));
        } else {
            self.finish_lookup(order, FoundState { cum: mark.cum, ..found });
        }
        self.send_lookups(now);
    }

    /// Reports the state of an order, after its fills.
    fn finish_lookup(&mut self, order: OrderHandle, found: FoundState) {
        self.lookups.by_order.remove(&order);
        let FoundState { cum, average, state } = found;
        match state {
            VenueState::Open => self.queue_report(order, VenueReport::Standing { cum, average, state }),
            VenueState::Filled
            | VenueState::Canceled(_)
            | VenueState::Expired(_)
            | VenueState::Rejected(_) => self.end(order, cum, average, state),
        }
    }
}

/// Returns the state of an order; `None` if the answer is incomplete or unknown.
fn found_state(body: &OrderBody<'_>, role: IdRole) -> Option<FoundState> {
    let (status, cum) = (body.status?, qty(body.executed_qty?)?);
    let average = average(body.cummulative_quote_qty.unwrap_or_default(), cum);
    let state = match status {
        "NEW" | "PARTIALLY_FILLED" | "PENDING_NEW" | "PENDING_CANCEL" => VenueState::Open,
        "FILLED" => VenueState::Filled,
        "REJECTED" => VenueState::Rejected(Reason::VenueRejected),
        "CANCELED" => canceled_state(role),
        _ if is_over(status) => {
            let (order_type, time_in_force) = (body.order_type?, body.time_in_force?);
            VenueState::Canceled(expiry_reason(status, order_type, time_in_force))
        }
        _ => return None,
    };
    Some(FoundState { cum, average, state })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_of_an_order_is_understood() {
        let state_as = |role, status: &str| {
            let text = format!(
                r#"{{"orderId":1,"executedQty":"1","cummulativeQuoteQty":"10.5","status":"{status}",
                    "timeInForce":"IOC","type":"LIMIT"}}"#
            );
            found_state(&serde_json::from_str(&text).unwrap(), role)
        };
        let state = |status| state_as(IdRole::Live, status).map(|found| found.state);
        for status in ["NEW", "PARTIALLY_FILLED", "PENDING_NEW", "PENDING_CANCEL"] {
            assert_eq!(state(status), Some(VenueState::Open), "{status}");
        }
        assert_eq!(state("FILLED"), Some(VenueState::Filled));
        assert_eq!(state("REJECTED"), Some(VenueState::Rejected(Reason::VenueRejected)));
        assert_eq!(state("EXPIRED"), Some(VenueState::Canceled(Reason::Ioc)));
        assert_eq!(state("EXPIRED_IN_MATCH"), Some(VenueState::Canceled(Reason::SelfTrade)));
        assert_eq!(state("SLEEPING"), None);
        let found = state_as(IdRole::DayEnded, "CANCELED").unwrap();
        assert_eq!(found.state, VenueState::Expired(Reason::ExpiredDay));
        assert_eq!((found.cum.to_string(), found.average.to_string()), ("1".into(), "10.5".into()));
        let incomplete: OrderBody<'_> = serde_json::from_str(r#"{"orderId":1,"status":"FILLED"}"#).unwrap();
        assert!(found_state(&incomplete, IdRole::Live).is_none());
    }

    #[test]
    fn events_during_a_lookup_are_noted_and_never_taken_back() {
        let order = OrderHandle::NONE;
        let mut lookups = Lookups::default();
        assert!(!lookups.note_event(order, Qty::ZERO, true), "it is not looked up");
        lookups.insert(order, (SecurityId(1), false), Timestamp::ZERO);
        for (cum, is_over) in [(3, false), (5, true), (4, false)] {
            assert!(lookups.note_event(order, Qty::from_raw(cum), is_over));
        }
        let lookup = lookups.by_order[&order];
        assert_eq!((lookup.seen, lookup.seen_over), (Qty::from_raw(5), true));
        assert_eq!(lookups.deadline(), Timestamp::ZERO, "it can be sent at once");
        lookups.by_order.get_mut(&order).unwrap().is_sent = true;
        assert_eq!(lookups.deadline(), Timestamp::MAX, "it waits for an answer");
    }
}
