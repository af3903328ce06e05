//! Events of the account, as reports for the shards.

use pitlane_engine::command::{ExecRef, VenueReport, VenueState};
use pitlane_engine::id::OrderHandle;
use pitlane_engine::reason::Reason;
use pitlane_engine::time::Timestamp;
use serde_json::value::RawValue;

use super::fees::TradeValues;
use super::held::{IdRole, TradeMark};
use super::message::{ExecutionBody, average, price, qty};
use super::session::BinanceSession;
use crate::fix::venue::id::fold_128;

impl BinanceSession {
    /// Handles the event `executionReport`.
    pub(super) fn handle_execution(&mut self, now: Timestamp, event: &RawValue) {
        let Ok(execution) = serde_json::from_str::<ExecutionBody<'_>>(event.get()) else {
            self.counts.incomplete += 1;
            return;
        };
        // A cancelled order has a new id, and its old one in another field.
        let ids = self.ids();
        let found = ids.order(execution.client_order_id);
        let orig = ids.order(execution.orig_client_order_id).map(|(order, _)| (order, IdRole::Live));
        let Some((order, role)) = found.or(orig) else {
            self.counts.unknown_orders += 1;
            return;
        };
        match execution.execution_type {
            "NEW" => self.queue_report(order, VenueReport::Accepted),
            "TRADE" => self.handle_trade(now, order, &execution),
            // The answer to our request says whether a new order took its place.
            "CANCELED" if role == IdRole::Replaced => {}
            "CANCELED" => self.handle_end(now, order, &execution, canceled_state(role)),
            "EXPIRED" | "TRADE_PREVENTION" if is_over(execution.status) => {
                let reason = expiry_reason(execution.status, execution.order_type, execution.time_in_force);
                self.handle_end(now, order, &execution, VenueState::Canceled(reason));
            }
            "REPLACED" => self.handle_replaced(order),
            "REJECTED" => {
                self.held.remove(order);
                self.queue_report(order, VenueReport::Rejected(Reason::VenueRejected));
            }
            _ => self.counts.unknown_values += 1,
        }
    }

    /// Handles a trade. If the order is being looked up, or a trade before this one is missing, the
    /// lookup reports all of them in order.
    fn handle_trade(&mut self, now: Timestamp, order: OrderHandle, execution: &ExecutionBody<'_>) {
        let trade = u64::try_from(execution.trade_id).ok();
        let values = (trade, qty(execution.last_qty), price(execution.last_price), qty(execution.cum_qty));
        let (Some(trade), Some(qty), Some(price), Some(cum)) = values else {
            self.counts.incomplete += 1;
            return;
        };
        if self.lookups.note_event(order, cum, is_over(execution.status)) {
            return;
        }
        let values = TradeValues { exec: exec_ref(execution.symbol, trade), qty, price, cum };
        let report = self.fill_report(values, &execution.commission, execution.commission_asset.as_deref());
        let Some(held) = self.held.get_mut(order) else {
            // The shard knows more of the order, and counts no execution twice.
            return self.queue_trade(order, TradeMark::default(), report);
        };
        held.cum = held.cum.max(cum);
        if trade < held.reported.next {
            return;
        }
        match held.reported.after(trade, qty).filter(|mark| mark.cum == cum) {
            Some(mark) => self.queue_trade(order, mark, report),
            None => return self.look_up_again(now, order),
        }
        if execution.status == "FILLED" {
            self.held.remove(order);
        }
    }

    fn handle_end(
        &mut self,
        now: Timestamp,
        order: OrderHandle,
        execution: &ExecutionBody<'_>,
        state: VenueState,
    ) {
        let Some(cum) = qty(execution.cum_qty) else {
            self.counts.incomplete += 1;
            return self.look_up_again(now, order);
        };
        if self.lookups.note_event(order, cum, true) {
            return;
        }
        if self.held.get(order).is_some_and(|held| held.reported.cum < cum) {
            // A trade is missing.
            return self.look_up_again(now, order);
        }
        let average = average(execution.cum_quote, cum);
        self.end(order, cum, average, state);
    }
}

/// Returns the state of a cancelled order; its id says who cancelled it.
pub(super) fn canceled_state(role: IdRole) -> VenueState {
    match role {
        IdRole::Canceled => VenueState::Canceled(Reason::Requested),
        IdRole::DayEnded => VenueState::Expired(Reason::ExpiredDay),
        IdRole::Live | IdRole::Replaced => VenueState::Canceled(Reason::VenueCancelled),
    }
}

/// Returns the id of a trade, which the venue counts for each symbol.
pub(super) fn exec_ref(symbol: &str, trade: u64) -> ExecRef {
    let mut digits = itoa::Buffer::new();
    ExecRef(fold_128(&[symbol.as_bytes(), b":", digits.format(trade).as_bytes()].concat()))
}

pub(super) fn is_over(status: &str) -> bool {
    matches!(status, "FILLED" | "CANCELED" | "REJECTED" | "EXPIRED" | "EXPIRED_IN_MATCH")
}

/// Returns why the venue ended an order.
pub(super) fn expiry_reason(status: &str, order_type: &str, time_in_force: &str) -> Reason {
    match (status, order_type, time_in_force) {
        ("EXPIRED_IN_MATCH", _, _) => Reason::SelfTrade,
        (_, "MARKET", _) => Reason::NoLiquidity,
        (_, _, "IOC") => Reason::Ioc,
        (_, _, "FOK") => Reason::Fok,
        _ => Reason::VenueCancelled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_order_has_its_reason() {
        for (status, order_type, time_in_force, reason) in [
            ("EXPIRED_IN_MATCH", "LIMIT", "GTC", Reason::SelfTrade),
            ("EXPIRED_IN_MATCH", "MARKET", "IOC", Reason::SelfTrade),
            ("EXPIRED", "MARKET", "GTC", Reason::NoLiquidity),
            ("EXPIRED", "LIMIT", "IOC", Reason::Ioc),
            ("EXPIRED", "LIMIT", "FOK", Reason::Fok),
            ("EXPIRED", "LIMIT", "GTC", Reason::VenueCancelled),
        ] {
            assert_eq!(expiry_reason(status, order_type, time_in_force), reason, "{status}");
        }
        for status in ["FILLED", "CANCELED", "REJECTED", "EXPIRED", "EXPIRED_IN_MATCH"] {
            assert!(is_over(status), "{status}");
        }
        for status in ["NEW", "PARTIALLY_FILLED", "PENDING_NEW", "PENDING_CANCEL", ""] {
            assert!(!is_over(status), "{status}");
        }
        assert_eq!(canceled_state(IdRole::Canceled), VenueState::Canceled(Reason::Requested));
        assert_eq!(canceled_state(IdRole::DayEnded), VenueState::Expired(Reason::ExpiredDay));
        for role in [IdRole::Live, IdRole::Replaced] {
            assert_eq!(canceled_state(role), VenueState::Canceled(Reason::VenueCancelled));
        }
    }
}
