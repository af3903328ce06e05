//! Orders for the day. The venue trades around the clock and has none, so they are GTC there, and
//! are cancelled when our trading day is over. Their new client order id says so, so that a lookup
//! finds out why they ended.
//!
//! ```text
//! DAY ─► GTC at the venue ─► the day is over ─► order.cancel with the id D… ─► EXPIRED, expired-day
//!                                   └── no connection, a limit, an error ─► the next check
//! ```

use pitlane_engine::command::VenueState;
use pitlane_engine::id::OrderHandle;
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{Terms, Tif};
use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::answers::{code, is_outcome_unknown};
use super::held::{IdRole, PendingChange};
use super::message::{ErrorBody, Inbound};
use super::session::{BinanceSession, RequestKind, cost};

/// Time to the next check of orders that could not be cancelled, or whose cancel has no answer yet.
const RETRY_NS: u64 = NS_PER_S;

/// Cancels of one call, so that other work is done between them.
const CANCELS_PER_CALL_MAX: usize = 256;

impl BinanceSession {
    /// Returns when an order that was placed at this time ends by itself.
    pub(super) fn day_ends(&self, terms: &Terms, placed: Timestamp) -> Timestamp {
        if terms.tif == Tif::Day { self.trading_day.ends(placed) } else { Timestamp::MAX }
    }

    /// Returns when the orders for the day are checked.
    pub(super) fn day_deadline(&self) -> Timestamp {
        if self.is_ready() { self.held.day_check_at() } else { Timestamp::MAX }
    }

    /// Cancels the orders whose day is over.
    pub(super) fn end_day(&mut self, now: Timestamp) {
        if now < self.day_deadline() {
            return;
        }
        let retry = now.plus(RETRY_NS);
        for order in self.held.take_overdue(now, retry, CANCELS_PER_CALL_MAX) {
            let security = self.held.get(order).map(|held| held.security);
            let Some(symbol) = security.and_then(|security| self.symbol(security)) else {
                // The security has left the reference data, so its orders cannot be named.
                self.held.remove(order);
                continue;
            };
            if self.check_request(now, cost::CANCEL).is_err() {
                return self.held.delay_day_check(retry);
            }
            self.send_cancel_as(now, RequestKind::EndDay(order), order, &symbol, IdRole::DayEnded);
            if let Some(held) = self.held.get_mut(order) {
                held.change = Some(PendingChange::DayEnd);
            }
        }
    }

    /// Handles the answer to such a cancel.
    pub(super) fn handle_day_ended(&mut self, now: Timestamp, order: OrderHandle, inbound: &Inbound<'_>) {
        match &inbound.error {
            None => self.handle_canceled(now, order, inbound, VenueState::Expired(Reason::ExpiredDay)),
            Some(error) => {
                self.handle_day_end_error(now, order, inbound.status.unwrap_or(0), error);
            }
        }
    }

    fn handle_day_end_error(
        &mut self,
        now: Timestamp,
        order: OrderHandle,
        status: u16,
        error: &ErrorBody<'_>,
    ) {
        if let Some(held) = self.held.get_mut(order) {
            held.change = None;
        }
        self.held.check_day_at(now.plus(RETRY_NS));
        // It may have been filled or cancelled a moment ago.
        if is_outcome_unknown(status, error) || error.code == code::CANCEL_REJECTED {
            self.look_up_again(now, order);
        }
    }
}
