//! Closes a position: cancels its other orders and, when the last of them has ended, sends an order
//! for the remaining quantity.
//!
//! ```text
//! Close ──► cancels ──► all ended: the order, of the size of the position
//!              ├─ a cancel is refused: the close is refused
//!              ├─ the venue is slow: the close waits, in the shard's state
//!              └─ the venue is lost: the close is refused
//! ```
//!
//! While a close waits, new orders of its position are refused (`close-in-progress`): otherwise the
//! close might never be sent.
//!
//! Rules: docs/engine-rules.md#reduce-only-and-closing.

use super::Shard;
use crate::codec::codec;
use crate::id::{AccountId, IntId, SecurityId, Source, StrategyId};
use crate::number::Qty;
use crate::outbox::Outbox;
use crate::reason::Reason;
use crate::sender::SenderId;
use crate::terms::{Side, Terms};

/// Positions of a shard that wait to be closed. An operator who closes everything has as many as
/// there are positions; beyond it a close is refused with `busy`.
pub(super) const PENDING_CLOSES_MAX: usize = 4_096;

/// A position that is to be closed completely.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingClose {
    pub local: u32,
    pub source: Source,
    pub id: IntId,
    pub terms: Terms,
    pub sender: SenderId,
    /// Reason of its refusal, if a cancel was refused.
    pub refused: Reason,
}

codec!(PendingClose { local, source, id, terms, sender, refused });

impl Shard {
    /// Closes a position. To close it completely, the shard cancels its open orders first and
    /// leaves the rest to the continuation.
    #[expect(clippy::too_many_arguments, reason = "they are the command's own fields")]
    pub(super) fn close(
        &mut self,
        source: Source,
        id: &IntId,
        strategy: StrategyId,
        account: AccountId,
        security: SecurityId,
        qty: Qty,
        out: &mut Outbox,
    ) {
        let mut terms = Terms { qty, security, strategy, account, reduce_only: true, ..Terms::default() };
        let Some(local) = self.directory.local(security) else {
            return self.submit(source, id, &terms, out);
        };
        let held = self.ledger.positions(local).iter().find(|held| held.strategy == strategy);
        let (net, reducing) = held.map_or((Qty::ZERO, Qty::ZERO), |held| (held.state.qty, held.reducing));
        terms.side = closing_side(net);
        // A flat position needs no closing order, so nothing is cancelled for it either.
        if !qty.is_zero() || net.is_zero() {
            return self.submit(source, id, &terms, out);
        }
        if reducing.is_positive() || self.is_closing(strategy, local) {
            return self.record_refused(source, id, &terms, Reason::CloseInProgress, out);
        }
        if self.pending_closes.len() >= PENDING_CLOSES_MAX {
            return self.record_refused(source, id, &terms, Reason::LaneFull, out);
        }
        let closing =
            PendingClose { local, source, id: *id, terms, sender: self.sender, refused: Reason::None };
        self.continuation.begin_close(closing);
    }

    /// Stores a close until the other orders of the position, which are being cancelled, have
    /// ended.
    pub(super) fn await_cancels(&mut self, closing: PendingClose) {
        self.pending_closes.push(closing);
        self.continuation.recheck_closes();
    }

    /// Returns whether a close of this position waits.
    #[inline]
    pub(super) fn is_closing(&self, strategy: StrategyId, local: u32) -> bool {
        let is_meant = |closing: &PendingClose| closing.terms.strategy == strategy && closing.local == local;
        !self.pending_closes.is_empty() && self.pending_closes.iter().any(is_meant)
    }

    /// Refuses a close that waits for this order, because the cancel of the order was refused: the
    /// close would collide with what the order still trades.
    pub(super) fn refuse_close(&mut self, slot: u32, reason: Reason) {
        let order = self.orders.get(slot);
        let (strategy, local) = (order.terms.strategy, order.local);
        let is_meant =
            |closing: &&mut PendingClose| closing.terms.strategy == strategy && closing.local == local;
        if let Some(closing) = self.pending_closes.iter_mut().find(is_meant) {
            closing.refused = reason;
            self.continuation.recheck_closes();
        }
    }

    /// Releases one waiting close: its other orders have ended, a cancel was refused, or its venue
    /// is disconnected.
    pub(super) fn release_close(&mut self, out: &mut Outbox) {
        let Some(at) = self.pending_closes.iter().position(|closing| self.can_release(closing)) else {
            return self.continuation.closes_checked();
        };
        let PendingClose { local, source, id, mut terms, sender, refused } = self.pending_closes.remove(at);
        // The current command may be from another client, or from a venue.
        self.sender = sender;
        let held = self.ledger.positions(local).iter().find(|held| held.strategy == terms.strategy);
        let (net, is_open) = held.map_or((Qty::ZERO, false), |held| {
            (held.state.qty, held.open.buy.is_positive() || held.open.sell.is_positive())
        });
        (terms.side, terms.qty) = (closing_side(net), net.abs());
        match (refused, is_open) {
            (Reason::None, true) => self.record_refused(source, &id, &terms, Reason::VenueUnavailable, out),
            (Reason::None, false) | (_, false) => self.submit(source, &id, &terms, out),
            (refused, true) => self.record_refused(source, &id, &terms, refused, out),
        }
    }

    fn can_release(&self, closing: &PendingClose) -> bool {
        let strategy = closing.terms.strategy;
        let held = self.ledger.positions(closing.local).iter().find(|held| held.strategy == strategy);
        let is_open = held.is_some_and(|held| held.open.buy.is_positive() || held.open.sell.is_positive());
        let adapter = self.directory.locals[closing.local as usize].adapter;
        !is_open || closing.refused != Reason::None || !self.is_connected(adapter)
    }

    /// Checks after a fill whether reduce-only orders ask for more than the rest of the position.
    /// If other orders have filled first, they are cancelled.
    #[inline]
    pub(super) fn check_excess(&mut self, slot: u32) {
        let order = self.orders.get(slot);
        let position = self.ledger.position(order.local, order.position);
        if position.reducing.is_positive() {
            let (local, strategy) = (order.local, order.terms.strategy);
            let (net, reducing) = (position.state.qty, position.reducing);
            // They were entered against the position; after the position has turned they have
            // nothing to reduce.
            let open = position.open.of(closing_side(net));
            if net.abs() < reducing || open < reducing {
                self.continuation.reduce_later(local, strategy);
            }
        }
    }
}

/// Returns the side of an order that closes a position.
fn closing_side(net: Qty) -> Side {
    if net.is_positive() { Side::Sell } else { Side::Buy }
}
