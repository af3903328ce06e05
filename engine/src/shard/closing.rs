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
use crate::ledger::Ledger;
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

/// Positions that wait to be closed, at most [`PENDING_CLOSES_MAX`].
#[derive(Debug, Default)]
pub(super) struct PendingCloses {
    closes: Vec<PendingClose>,
}

codec!(PendingCloses { closes });

impl PendingCloses {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.closes.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.closes.len()
    }

    fn has_room(&self) -> bool {
        self.closes.len() < PENDING_CLOSES_MAX
    }

    /// Returns whether a close of this position waits.
    #[inline]
    pub(super) fn contains(&self, strategy: StrategyId, local: u32) -> bool {
        !self.closes.is_empty() && self.closes.iter().any(|closing| closing.is_of(strategy, local))
    }

    pub(super) fn push(&mut self, closing: PendingClose) {
        self.closes.push(closing);
    }

    /// Refuses the close of this position. Returns whether there is one.
    fn refuse(&mut self, strategy: StrategyId, local: u32, reason: Reason) -> bool {
        let meant = self.closes.iter_mut().find(|closing| closing.is_of(strategy, local));
        meant.map(|closing| closing.refused = reason).is_some()
    }

    /// Removes the first close that can be released.
    fn take_first(&mut self, can_release: impl Fn(&PendingClose) -> bool) -> Option<PendingClose> {
        let at = self.closes.iter().position(can_release)?;
        Some(self.closes.remove(at))
    }

    /// Returns the senders of the closes.
    pub(super) fn senders(&self) -> impl Iterator<Item = SenderId> {
        self.closes.iter().map(|closing| closing.sender)
    }

    /// Forgets the senders that are not known.
    pub(super) fn forget_senders(&mut self, is_known: impl Fn(SenderId) -> bool) {
        for closing in self.closes.iter_mut().filter(|closing| !is_known(closing.sender)) {
            closing.sender = SenderId::NONE;
        }
    }

    /// Returns whether decoded closes are within their bound, and concern securities below
    /// `securities`.
    pub(super) fn are_valid(&self, securities: usize) -> bool {
        let is_known = |closing: &PendingClose| (closing.local as usize) < securities;
        self.closes.len() <= PENDING_CLOSES_MAX && self.closes.iter().all(is_known)
    }
}

impl PendingClose {
    fn is_of(&self, strategy: StrategyId, local: u32) -> bool {
        self.terms.strategy == strategy && self.local == local
    }
}

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
        if reducing.is_positive() || self.closes.contains(strategy, local) {
            return self.record_refused(source, id, &terms, Reason::CloseInProgress, out);
        }
        if !self.closes.has_room() {
            return self.record_refused(source, id, &terms, Reason::LaneFull, out);
        }
        let closing = PendingClose {
            local,
            source,
            id: *id,
            terms,
            sender: self.requests.sender(),
            refused: Reason::None,
        };
        self.continuation.begin_close(closing);
    }

    /// Stores a close until the other orders of the position, which are being cancelled, have
    /// ended.
    pub(super) fn await_cancels(&mut self, closing: PendingClose) {
        self.closes.push(closing);
        self.continuation.recheck_closes();
    }

    /// Refuses a close that waits for this order, because the cancel of the order was refused: the
    /// close would collide with what the order still trades.
    pub(super) fn refuse_close(&mut self, slot: u32, reason: Reason) {
        let order = self.orders.get(slot);
        if self.closes.refuse(order.terms.strategy, order.local, reason) {
            self.continuation.recheck_closes();
        }
    }

    /// Releases one waiting close: its other orders have ended, a cancel was refused, or its venue
    /// is disconnected.
    pub(super) fn release_close(&mut self, out: &mut Outbox) {
        let (ledger, directory, adapters) = (&self.ledger, &self.directory, &self.adapters);
        let Some(closing) = self.closes.take_first(|closing| {
            let is_connected = adapters.is_connected(directory.locals[closing.local as usize].adapter);
            closing.refused != Reason::None || !is_connected || !has_open_orders(ledger, closing)
        }) else {
            return self.continuation.closes_checked();
        };
        let PendingClose { local, source, id, mut terms, sender, refused } = closing;
        // The current command may be from another client, or from a venue.
        self.requests.continue_request(sender);
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

    /// Checks after a change of a position, such as a fill, its correction or a manual trade,
    /// whether reduce-only orders ask for more than the rest of it. Then they are cancelled.
    #[inline]
    pub(super) fn check_excess(&mut self, local: u32, at: u16) {
        let position = self.ledger.position(local, at);
        if position.reducing.is_positive() {
            let (net, reducing) = (position.state.qty, position.reducing);
            // They were entered against the position; after the position has turned they have
            // nothing to reduce.
            let open = position.open.of(closing_side(net));
            if net.abs() < reducing || open < reducing {
                self.continuation.reduce_later(local, position.strategy);
            }
        }
    }
}

/// Returns whether the position that is to be closed has open orders.
fn has_open_orders(ledger: &Ledger, closing: &PendingClose) -> bool {
    let held = ledger.positions(closing.local).iter().find(|held| held.strategy == closing.terms.strategy);
    held.is_some_and(|held| held.open.buy.is_positive() || held.open.sell.is_positive())
}

/// Returns the side of an order that closes a position.
fn closing_side(net: Qty) -> Side {
    if net.is_positive() { Side::Sell } else { Side::Buy }
}
