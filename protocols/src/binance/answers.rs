//! Answers of the venue to requests about orders, as reports for the shards.

use pitlane_engine::command::{VenueReport, VenueState};
use pitlane_engine::id::OrderHandle;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::time::Timestamp;

use super::held::PendingChange;
use super::message::{ErrorBody, Inbound, OrderBody, average, qty};
use super::session::{BinanceSession, RequestKind, SentRequest};

/// Error codes of `errors.md`.
pub(super) mod code {
    pub(in super::super) const UNEXPECTED_RESPONSE: i64 = -1006;
    pub(in super::super) const TIMEOUT: i64 = -1007;
    pub(in super::super) const TOO_MANY_REQUESTS: i64 = -1003;
    pub(in super::super) const TOO_MANY_ORDERS: i64 = -1015;
    pub(in super::super) const TIMESTAMP: i64 = -1021;
    pub(in super::super) const CANCEL_REJECTED: i64 = -2011;
    pub(in super::super) const NO_SUCH_ORDER: i64 = -2013;
    pub(in super::super) const ORDER_ARCHIVED: i64 = -2026;
}

impl BinanceSession {
    pub(super) fn handle_answer(&mut self, now: Timestamp, sent: &SentRequest, inbound: &Inbound<'_>) {
        let status = inbound.status.unwrap_or(0);
        match (sent.kind, &inbound.error) {
            (RequestKind::Place(order), None) => self.queue_report(order, VenueReport::Accepted),
            (RequestKind::Place(order), Some(error)) => self.handle_place_error(now, order, status, error),
            (RequestKind::Cancel(order), None) => {
                self.handle_canceled(now, order, inbound, VenueState::Canceled(Reason::Requested));
            }
            (RequestKind::EndDay(order), _) => self.handle_day_ended(now, order, inbound),
            (RequestKind::Cancel(order), Some(error)) => self.handle_cancel_error(now, order, status, error),
            (RequestKind::Amend(order) | RequestKind::Replace(order), None) => self.handle_replaced(order),
            (RequestKind::Amend(order) | RequestKind::Replace(order), Some(error)) => {
                self.handle_replace_error(now, order, status, error);
            }
            (RequestKind::Status(order), _) => self.handle_status(now, order, inbound),
            (RequestKind::Trades(order), _) => self.handle_trades(now, order, inbound),
            (RequestKind::Snapshot(security), _) => {
                self.handle_snapshot(now, security, inbound.result);
            }
            (
                RequestKind::Time | RequestKind::Logon | RequestKind::Subscribe | RequestKind::OrderLimits,
                _,
            ) => {}
        }
    }

    fn handle_place_error(&mut self, now: Timestamp, order: OrderHandle, status: u16, error: &ErrorBody<'_>) {
        // An open order with this id is ours: the venue has it.
        let is_there = error.msg.starts_with("Duplicate order");
        if is_outcome_unknown(status, error) || is_there {
            return self.look_up_again(now, order);
        }
        self.held.remove(order);
        self.queue_report(order, VenueReport::Rejected(reason_of(error)));
    }

    /// Handles that an order was cancelled, and reports the state that is given.
    pub(super) fn handle_canceled(
        &mut self,
        now: Timestamp,
        order: OrderHandle,
        inbound: &Inbound<'_>,
        state: VenueState,
    ) {
        let body = inbound.result.and_then(|result| serde_json::from_str::<OrderBody<'_>>(result.get()).ok());
        let cum = body.as_ref().and_then(|body| qty(body.executed_qty?));
        let (Some(body), Some(cum)) = (body, cum) else {
            self.counts.incomplete += 1;
            return self.look_up_again(now, order);
        };
        // The fills arrive as events, before or after this answer: those in between are looked up.
        let known = self.held.get(order).map_or(Qty::ZERO, |held| held.reported.cum);
        if cum > known {
            return self.look_up_again(now, order);
        }
        let average = average(body.cummulative_quote_qty.unwrap_or_default(), cum);
        self.end(order, cum, average, state);
    }

    fn handle_cancel_error(
        &mut self,
        now: Timestamp,
        order: OrderHandle,
        status: u16,
        error: &ErrorBody<'_>,
    ) {
        let change = self.held.get_mut(order).and_then(|held| held.change.take());
        if is_outcome_unknown(status, error) {
            return self.look_up_again(now, order);
        }
        if change != Some(PendingChange::Cancel) && self.held.get(order).is_some() {
            return;
        }
        let reason = match error.code {
            // It was filled or ended a moment ago; the shard asks what became of it.
            code::CANCEL_REJECTED if error.msg.starts_with("Unknown order") => Reason::UnknownOrder,
            _ => reason_of(error),
        };
        self.queue_report(order, VenueReport::CancelRefused(reason));
    }

    /// Handles that the new terms apply: by the answer, or by the event if that comes first.
    pub(super) fn handle_replaced(&mut self, order: OrderHandle) {
        let Some(held) = self.held.get_mut(order) else { return };
        if let Some(PendingChange::Replace { qty, limit, day_ends }) = held.change {
            (held.qty, held.limit, held.change) = (qty, limit, None);
            self.set_day_end(order, day_ends);
            self.queue_report(order, VenueReport::Replaced);
        }
    }

    fn handle_replace_error(
        &mut self,
        now: Timestamp,
        order: OrderHandle,
        status: u16,
        error: &ErrorBody<'_>,
    ) {
        if let Some(held) = self.held.get_mut(order) {
            held.change = None;
        }
        let data = error.data.as_ref();
        let is_canceled = data.is_some_and(|data| data.cancel_result == Some("SUCCESS"));
        if is_outcome_unknown(status, error)
            || data.is_some_and(|data| data.new_order_result == Some("SUCCESS"))
        {
            return self.look_up_again(now, order);
        }
        let refused = data.and_then(|data| data.new_order_response);
        let refused = refused.and_then(|body| serde_json::from_str::<ErrorBody<'_>>(body.get()).ok());
        let reason = reason_of(refused.as_ref().unwrap_or(error));
        self.queue_report(order, VenueReport::ReplaceRefused(reason));
        if is_canceled {
            // The old order is gone, and the venue did not take the new one.
            self.end(order, Qty::ZERO, Price::ZERO, VenueState::Canceled(Reason::VenueCancelled));
        }
    }

    /// Reports the end of an order, with everything that was filled.
    pub(super) fn end(&mut self, order: OrderHandle, cum: Qty, average: Price, state: VenueState) {
        self.held.remove(order);
        self.queue_report(order, VenueReport::Standing { cum, average, state });
    }
}

/// Returns whether the request may have been executed all the same.
pub(super) fn is_outcome_unknown(status: u16, error: &ErrorBody<'_>) -> bool {
    status >= 500 || matches!(error.code, code::UNEXPECTED_RESPONSE | code::TIMEOUT)
}

/// Returns the reason for a client. The venue's own text is in the log.
fn reason_of(error: &ErrorBody<'_>) -> Reason {
    const TEXTS: [(&str, Reason); 6] = [
        ("insufficient balance", Reason::InsufficientFunds),
        ("Market is closed", Reason::Halted),
        ("Filter failure: PRICE_FILTER", Reason::BadTick),
        ("Filter failure: LOT_SIZE", Reason::BadLot),
        ("Filter failure: MARKET_LOT_SIZE", Reason::BadLot),
        ("Filter failure: PERCENT_PRICE", Reason::PriceBand),
    ];
    if matches!(error.code, code::TOO_MANY_REQUESTS | code::TOO_MANY_ORDERS) {
        return Reason::VenueRate;
    }
    let known = TEXTS.iter().find(|(text, _)| error.msg.contains(text));
    known.map_or(Reason::VenueRejected, |(_, reason)| *reason)
}
