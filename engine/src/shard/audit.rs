//! What must hold between commands, counted again from the orders themselves. Costs a walk over everything, so it is for
//! tests and for the end of a recovery, not for the way of an order.

use std::collections::BTreeMap;

use super::Shard;
use crate::command::{BudgetKind, Scope};
use crate::ledger::OpenQty;
use crate::number::Qty;
use crate::order::{NIL, Order};
use crate::settings::Delays;
use crate::terms::Tif;

#[derive(Default)]
struct Counted {
    positions: BTreeMap<(u32, u16), (OpenQty, Qty)>,
    exposures: BTreeMap<(u32, u16), OpenQty>,
    open: BTreeMap<Scope, i64>,
    dated: usize,
}

impl Shard {
    /// Panics with words if something does not add up.
    pub fn audit(&self) {
        let mut counted = Counted::default();
        for slot in 0..self.orders.len() {
            let order = self.orders.get(slot);
            if !self.orders.in_use(slot) || order.base.is_finished() {
                assert_eq!(self.venue.remaining(slot), None, "nothing that has ended is at the venue");
            }
            if !self.orders.in_use(slot) {
                continue;
            }
            self.audit_order(slot, order);
            if !order.base.is_finished() {
                self.count(slot, order, &mut counted);
            }
        }
        assert!(self.ledger.is_balanced(), "both sides of every booking add up to zero");
        assert_eq!(self.dated, counted.dated, "open orders with a date");
        for local in 0..self.directory.locals.len() as u32 {
            for (at, held) in self.ledger.positions(local).iter().enumerate() {
                let (open, reducing) = counted.positions.remove(&(local, at as u16)).unwrap_or_default();
                assert_eq!(held.open, open, "open quantities of a position");
                assert_eq!(held.reducing, reducing, "what reduces a position");
            }
            for (at, held) in self.ledger.exposures(local).iter().enumerate() {
                let open = counted.exposures.remove(&(local, at as u16)).unwrap_or_default();
                assert_eq!(held.open, open, "open quantities of an account");
            }
        }
        let strategies =
            self.directory.strategies.iter().map(|entry| (Scope::Strategy(entry.id), &entry.guard));
        let accounts = self.directory.accounts.iter().map(|entry| (Scope::Account(entry.id), &entry.guard));
        for (scope, guard) in strategies.chain(accounts) {
            let open = counted.open.get(&scope).copied().unwrap_or(0);
            assert_eq!(guard.share(BudgetKind::OpenOrders).used, open, "open orders of {scope:?}");
        }
    }

    /// Open orders of a strategy or an account in this shard.
    pub fn open_orders(&self, scope: Scope) -> u32 {
        let all =
            (0..self.orders.len()).filter(|&slot| self.orders.in_use(slot)).map(|slot| self.orders.get(slot));
        all.filter(|order| !order.base.is_finished())
            .filter(|order| match scope {
                Scope::Global => true,
                Scope::Strategy(id) => order.terms.strategy == id,
                Scope::Account(id) => order.terms.account == id,
                Scope::Security(id) => order.terms.security == id,
                Scope::Adapter(id) => self.directory.locals[order.local as usize].adapter == id,
            })
            .count() as u32
    }

    fn audit_order(&self, slot: u32, order: &Order) {
        let finished = order.base.is_finished();
        assert_eq!(order.leaves().is_zero(), finished, "nothing is left exactly when an order has ended");
        assert!(!order.cum.is_negative(), "what is filled is not below zero");
        assert!(finished || order.cum <= order.terms.qty, "an open order is not overfilled");
        assert_eq!(order.counted, !finished, "an order counts as open while it is");
        assert!(!finished || self.orders.requests(slot).is_none(), "an ended order has no request left");
        if finished || order.local == NIL || !self.is_simulated(order.local) {
            return;
        }
        if order.at_venue && self.delays(order.local) == Delays::default() {
            assert_eq!(
                self.venue.remaining(slot),
                Some(order.leaves()),
                "the venue has what is left of an order"
            );
        }
    }

    fn count(&self, slot: u32, order: &Order, counted: &mut Counted) {
        let grown =
            self.orders.requests(slot).and_then(|requests| requests.replace).map_or(Qty::ZERO, |r| r.grown);
        let open = order.leaves().checked_add(grown).expect("headroom was checked");
        let (position, reducing) = counted.positions.entry((order.local, order.position)).or_default();
        position.add(order.terms.side, open);
        if order.terms.reduce_only {
            *reducing = reducing.checked_add(order.leaves()).expect("headroom was checked");
        }
        counted.exposures.entry((order.local, order.exposure)).or_default().add(order.terms.side, open);
        *counted.open.entry(Scope::Strategy(order.terms.strategy)).or_default() += 1;
        *counted.open.entry(Scope::Account(order.terms.account)).or_default() += 1;
        counted.dated += (order.terms.tif == Tif::Gtd) as usize;
    }
}
