//! Closing a position: its other orders end first, and reduce-only orders never request more than
//! is left.

use pitlane_engine::id::{AccountId, IntId, SecurityId, Source, StrategyId};
use pitlane_engine::number::Qty;
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{OrderKind, Side, Terms, Tif};

use super::{Closing, Twin, TwinEvent};

impl Twin {
    pub(super) fn close(
        &mut self,
        source: Source,
        id: IntId,
        strategy: StrategyId,
        account: AccountId,
        security: SecurityId,
        qty: Qty,
    ) {
        let held = match self.reference.security(security) {
            Some(_) => self.position(strategy, security).qty,
            None => Qty::ZERO,
        };
        let terms = Terms {
            qty: if qty.is_zero() { held.abs() } else { qty },
            security,
            strategy,
            account,
            side: if held.is_positive() { Side::Sell } else { Side::Buy },
            kind: OrderKind::Market,
            tif: Tif::Day,
            reduce_only: true,
            ..Terms::default()
        };
        if id.is_none() {
            return self.events.push(TwinEvent::Unrecorded(Reason::BadId));
        }
        let whole = qty.is_zero() && !held.is_zero();
        let reducing = self.reducing(strategy, security);
        if whole && (reducing > 0 || self.is_closing(&terms)) {
            let order = self.enter(source, id, Terms { qty, ..terms });
            return self.reject(order, Reason::CloseInProgress);
        }
        if whole {
            self.cancel_for_close(strategy, security);
            return self.closings.push(Closing { source, id, terms, refused: Reason::None });
        }
        self.close_now(source, id, terms);
    }

    fn close_now(&mut self, source: Source, id: IntId, terms: Terms) {
        let known = self.reference.security(terms.security).is_some();
        let held = if known { self.position(terms.strategy, terms.security).qty } else { Qty::ZERO };
        let reason = self.close_reject(&terms, held, self.reducing(terms.strategy, terms.security));
        let order = self.enter(source, id, terms);
        if reason != Reason::None {
            return self.reject(order, reason);
        }
        self.send(order);
    }

    /// Returns whether a close of this position waits.
    pub(super) fn is_closing(&self, terms: &Terms) -> bool {
        let position = (terms.strategy, terms.security);
        self.closings.iter().any(|closing| (closing.terms.strategy, closing.terms.security) == position)
    }

    /// Marks a close of this position as failed: another order of the position continues.
    pub(super) fn refuse_closing(&mut self, terms: &Terms, reason: Reason) {
        let position = (terms.strategy, terms.security);
        let meant = |c: &&mut Closing| (c.terms.strategy, c.terms.security) == position;
        self.closings.iter_mut().find(meant).into_iter().for_each(|c| c.refused = reason);
    }

    /// Performs one close whose position has no other open orders, or rejects one that has failed.
    /// Returns whether there was one.
    fn release_closing(&mut self) -> bool {
        let is_open = |twin: &Twin, closing: &Closing| {
            let position = (closing.terms.strategy, closing.terms.security);
            twin.orders.iter().any(|o| !o.is_over() && (o.terms.strategy, o.terms.security) == position)
        };
        let may_end = |closing: &Closing| {
            let away =
                !self.is_simulated(closing.terms.security) && !self.is_connected(closing.terms.security);
            !is_open(self, closing) || closing.refused != Reason::None || away
        };
        let Some(at) = self.closings.iter().position(may_end) else { return false };
        let closing = self.closings.remove(at);
        let (open, mut terms) = (is_open(self, &closing), closing.terms);
        let held = self.position(terms.strategy, terms.security).qty;
        terms.side = if held.is_positive() { Side::Sell } else { Side::Buy };
        terms.qty = held.abs();
        if !open {
            self.close_now(closing.source, closing.id, terms);
            return true;
        }
        let away = closing.refused == Reason::None;
        let order = self.enter(closing.source, closing.id, terms);
        self.reject(order, if away { Reason::VenueUnavailable } else { closing.refused });
        true
    }

    /// Does what a command leaves to do after its own consequences.
    pub(super) fn settle_closings(&mut self) {
        loop {
            if let Some((strategy, security)) = self.excess.pop() {
                self.cancel_where(Reason::ReduceOnly, |_, terms| {
                    terms.reduce_only && (terms.strategy, terms.security) == (strategy, security)
                });
            } else if !self.release_closing() {
                return;
            }
        }
    }

    /// Checks that reduce-only orders of a position request no more than is left of it.
    pub(super) fn check_excess(&mut self, strategy: StrategyId, security: SecurityId) {
        let reducing = self.reducing(strategy, security);
        if reducing == 0 {
            return;
        }
        let held = self.position(strategy, security).qty;
        let side = if held.is_positive() { Side::Sell } else { Side::Buy };
        let mine = |o: &&super::TwinOrder| (o.terms.strategy, o.terms.security) == (strategy, security);
        let open: i64 =
            self.orders.iter().filter(mine).filter(|o| o.terms.side == side).map(|o| o.leaves()).sum();
        let more = (strategy, security);
        if (held.abs().raw() < reducing || open < reducing) && !self.excess.contains(&more) {
            self.excess.push(more);
        }
    }

    /// Returns the quantity that open orders of a strategy are closing already.
    fn reducing(&self, strategy: StrategyId, security: SecurityId) -> i64 {
        let mine = |o: &&super::TwinOrder| (o.terms.strategy, o.terms.security) == (strategy, security);
        self.orders.iter().filter(|o| o.terms.reduce_only).filter(mine).map(|o| o.leaves()).sum()
    }

    fn close_reject(&self, terms: &Terms, held: Qty, reducing: i64) -> Reason {
        let reference = self.check_reference(terms);
        if reference != Reason::None {
            return reference;
        }
        if self.is_closing(terms) {
            return Reason::CloseInProgress;
        }
        if held.is_zero() {
            return Reason::PositionFlat;
        }
        if terms.qty.raw() > held.abs().raw() - reducing {
            return Reason::PositionTooSmall;
        }
        self.check(terms, None)
    }

    fn cancel_for_close(&mut self, strategy: StrategyId, security: SecurityId) {
        self.cancel_where(Reason::Requested, |_, terms| {
            (terms.strategy, terms.security) == (strategy, security)
        });
    }
}
