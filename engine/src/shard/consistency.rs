//! Invariants between commands, recounted from the orders themselves. The check walks over
//! everything, so it is for tests, for the verification of a journal and for a loaded state, not
//! for the path of an order.

use std::collections::BTreeMap;
use std::fmt::Debug;

use super::Shard;
use crate::command::{BudgetKind, Scope, VenueReport};
use crate::id::AccountId;
use crate::index::index_u32;
use crate::ledger::OpenQty;
use crate::number::{self, Money, Qty};
use crate::order::{NIL, Order, Replace};
use crate::settings::Delays;
use crate::terms::{Terms, Tif};
use crate::timers::Timed;

/// By security, and within it by index, as in the ledger.
#[derive(Default)]
struct Counted {
    positions: Vec<Vec<(OpenQty, Qty)>>,
    exposures: Vec<Vec<(OpenQty, [i128; 2])>>,
    open: BTreeMap<Scope, i64>,
    dated: usize,
}

/// Reports of the simulated venue about an order that have not arrived.
#[derive(Clone, Copy, Default)]
struct InTransit {
    filled: i128,
    has_ended: bool,
}

/// A text if the invariant does not hold.
type Consistency = Result<(), String>;

fn holds(is_so: bool, what: &str) -> Consistency {
    if is_so { Ok(()) } else { Err(what.to_string()) }
}

fn agree<T: PartialEq + Debug>(held: T, counted: T, what: &str) -> Consistency {
    if held == counted { Ok(()) } else { Err(format!("{what}: {held:?}, counted {counted:?}")) }
}

impl Shard {
    /// Panics with a text if an invariant does not hold.
    pub fn assert_consistent(&self) {
        if let Err(text) = self.verify() {
            panic!("{text}");
        }
    }

    /// Checks all invariants and returns the first that does not hold.
    pub(super) fn verify(&self) -> Consistency {
        let locals = 0..self.directory.local_count();
        let mut counted = Counted::default();
        for local in locals.clone() {
            counted.positions.push(vec![Default::default(); self.ledger.positions(local).len()]);
            counted.exposures.push(vec![Default::default(); self.ledger.exposures(local).len()]);
        }
        let in_transit = self.in_transit();
        for slot in 0..self.orders.len() {
            let order = self.orders.get(slot);
            if !self.orders.in_use(slot) || order.base.is_finished() {
                agree(self.venue.remaining(slot), None, "nothing that has ended is at the venue")?;
            }
            if !self.orders.in_use(slot) {
                continue;
            }
            self.verify_order(slot, order, in_transit.get(&slot))?;
            if !order.base.is_finished() {
                self.count(slot, order, &mut counted).ok_or("open quantities cannot be counted")?;
            }
        }
        holds(self.orders.special_terms_agree(), "special terms belong to the orders that have some")?;
        holds(self.ledger.is_balanced(), "both sides of every booking add up to zero")?;
        agree(self.deadlines.dated(), counted.dated, "open orders with a date")?;
        for local in locals {
            let at = local as usize;
            for (held, (open, reducing)) in self.ledger.positions(local).iter().zip(&counted.positions[at]) {
                agree(held.open, *open, "open quantities of a position")?;
                agree(held.reducing, *reducing, "what reduces a position")?;
            }
            for (held, (open, reserved)) in self.ledger.exposures(local).iter().zip(&counted.exposures[at]) {
                agree(held.open, *open, "open quantities of an account")?;
                let held_reserved = held.reserved.map(|money| money.raw() as i128);
                agree(held_reserved, *reserved, "credit reserved for the open orders of an account")?;
            }
        }
        self.verify_credit()?;
        let strategies =
            self.directory.strategies.iter().map(|entry| (Scope::Strategy(entry.id), &entry.guard));
        let accounts = self.directory.accounts.iter().map(|entry| (Scope::Account(entry.id), &entry.guard));
        for (scope, guard) in strategies.chain(accounts) {
            let open = counted.open.get(&scope).copied().unwrap_or(0);
            agree((scope, guard.share(BudgetKind::OpenOrders).used), (scope, open), "open orders")?;
        }
        Ok(())
    }

    /// Returns what is in transit from the simulated venue, by slot.
    fn in_transit(&self) -> BTreeMap<u32, InTransit> {
        let mut found: BTreeMap<u32, InTransit> = BTreeMap::new();
        for timed in self.deadlines.timed() {
            if let Timed::FromVenue { order, report } = timed
                && let Some(slot) = self.orders.find(*order)
            {
                let sum = found.entry(slot).or_default();
                if let VenueReport::Filled { qty, .. } = report {
                    sum.filled += i128::from(qty.raw());
                }
                sum.has_ended |= matches!(
                    report,
                    VenueReport::Canceled(_) | VenueReport::Expired(_) | VenueReport::Rejected(_)
                );
            }
        }
        found
    }

    /// Checks that the credit in use follows from the account's positions and open orders alone.
    fn verify_credit(&self) -> Consistency {
        let mut sums: BTreeMap<AccountId, i128> = BTreeMap::new();
        for local in 0..self.directory.local_count() {
            for held in self.ledger.exposures(local) {
                let counts = self.counts_credit(held.account, local);
                let used = if counts { held.credit_used() } else { 0 };
                agree(held.used, used, "credit that an account uses by a security")?;
                *sums.entry(held.account).or_default() += used;
            }
        }
        for entry in &self.directory.accounts {
            let sum = sums.get(&entry.id).copied().unwrap_or(0);
            let used = number::saturated(sum);
            agree(entry.guard.credit_sum(), sum, "credit that an account uses")?;
            agree(entry.guard.share(BudgetKind::Credit).used, used, "its share of the credit in use")?;
        }
        Ok(())
    }

    /// Returns the number of open orders of a scope in this shard.
    pub fn open_orders(&self, scope: Scope) -> u32 {
        let all =
            (0..self.orders.len()).filter(|&slot| self.orders.in_use(slot)).map(|slot| self.orders.get(slot));
        let open = all.filter(|order| !order.base.is_finished()).filter(|order| match scope {
            Scope::Global => true,
            Scope::Strategy(id) => order.terms.strategy == id,
            Scope::Account(id) => order.terms.account == id,
            Scope::Security(id) => order.terms.security == id,
            Scope::Adapter(id) => self.directory.locals[order.local as usize].adapter == id,
        });
        index_u32(open.count())
    }

    fn verify_order(&self, slot: u32, order: &Order, in_transit: Option<&InTransit>) -> Consistency {
        let finished = order.base.is_finished();
        agree(order.leaves().is_zero(), finished, "nothing is left exactly when an order has ended")?;
        holds(!order.cum.is_negative(), "what is filled is not below zero")?;
        holds(finished || order.cum <= order.terms.qty, "an open order is not overfilled")?;
        holds(!finished || self.orders.requests(slot).is_none(), "an ended order has no request left")?;
        holds(!order.reserved.is_negative(), "reserved credit is not below zero")?;
        holds(!finished || order.reserved.is_zero(), "no credit is reserved for an ended order")?;
        holds(
            self.orders.remembered_qty(slot) <= order.cum.raw().into(),
            "executions are part of what is filled",
        )?;
        if finished || order.local == NIL {
            return Ok(());
        }
        self.verify_open_order(slot, order, in_transit)
    }

    fn verify_open_order(&self, slot: u32, order: &Order, in_transit: Option<&InTransit>) -> Consistency {
        let local = &self.directory.locals[order.local as usize];
        let is_on_grid = |terms: &Terms| {
            (!terms.kind.has_limit() || local.ticks.steps(terms.limit.raw()).is_some())
                && (!terms.kind.has_stop() || local.ticks.steps(terms.stop.raw()).is_some())
        };
        holds(is_on_grid(&order.terms), "the prices of an open order are on the grid")?;
        if let Some(replace) = self.orders.pending_replace(slot) {
            holds(is_modification(&order.terms, &replace), "a replace keeps what no modification changes")?;
            holds(is_on_grid(&replace.terms), "the prices of a pending replace are on the grid")?;
        }
        let (is_stop, is_here) = (self.venue.nodes().is_stop(slot), self.venue.remaining(slot).is_some());
        agree(is_stop, order.waits_for_trigger(), "the shard holds the stops that wait")?;
        let is_simulated = self.directory.is_simulated(order.local);
        agree(order.outside(), !is_simulated, "an order is outside where its venue is")?;
        holds(!is_here || is_simulated && order.at_venue(), "an order is where it was sent")?;
        if let Some(remaining) = self.venue.remaining(slot) {
            let InTransit { filled, has_ended } = in_transit.copied().unwrap_or_default();
            holds(!has_ended, "an order that the venue has ended is not there")?;
            // The report of a modification may be in transit.
            let all = i128::from(remaining.raw()) + i128::from(order.cum.raw()) + filled;
            let is_whole = |qty: Qty| i128::from(qty.raw()) == all;
            let replaced = self.orders.pending_replace(slot).map(|replace| replace.terms.qty);
            let is_sound = is_whole(order.terms.qty) || replaced.is_some_and(is_whole);
            holds(is_sound, "the venue has what is left after the fills in transit")?;
        }
        if is_simulated && order.at_venue() && self.delays(order.local) == Delays::default() {
            agree(
                self.venue.remaining(slot),
                Some(order.leaves()),
                "the venue has what is left of an order",
            )?;
        }
        Ok(())
    }

    /// Counts an open order. Returns `None` if it has no place in the ledger, or a sum does not
    /// fit.
    fn count(&self, slot: u32, order: &Order, counted: &mut Counted) -> Option<()> {
        let grown = self.orders.pending_replace(slot).map_or(Qty::ZERO, |r| r.grown);
        let open = order.leaves().checked_add(grown)?;
        let (position, reducing) =
            counted.positions.get_mut(order.local as usize)?.get_mut(order.position as usize)?;
        position.checked_add(order.terms.side, open)?;
        if order.terms.reduce_only {
            *reducing = reducing.checked_add(order.leaves())?;
        }
        let (exposure, reserved) =
            counted.exposures.get_mut(order.local as usize)?.get_mut(order.exposure as usize)?;
        exposure.checked_add(order.terms.side, open)?;
        let requested = self.orders.pending_replace(slot);
        let requested = requested.map_or(Money::ZERO, |replace| replace.reserved);
        reserved[order.terms.side as usize] += order.reserved.raw() as i128 + requested.raw() as i128;
        *counted.open.entry(Scope::Strategy(order.terms.strategy)).or_default() += 1;
        *counted.open.entry(Scope::Account(order.terms.account)).or_default() += 1;
        counted.dated += (order.terms.tif == Tif::Gtd) as usize;
        Some(())
    }
}

/// Returns whether a pending replace is a modification of these terms: it keeps what belongs to the
/// order itself, and the growth of the quantity is counted.
fn is_modification(terms: &Terms, replace: &Replace) -> bool {
    let new = &replace.terms;
    let kept = |terms: &Terms| {
        (terms.security, terms.strategy, terms.account, terms.side, terms.kind, terms.reduce_only)
    };
    let grown = new.qty.checked_sub(terms.qty).map(|grown| grown.max(Qty::ZERO));
    kept(new) == kept(terms)
        && new.qty.is_positive()
        && grown == Some(replace.grown)
        && !replace.reserved.is_negative()
}
