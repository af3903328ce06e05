//! The account's credit, computed from the first transaction on at each request.

use pitlane_engine::command::{BudgetKind, Scope};
use pitlane_engine::id::{AccountId, SecurityId};
use pitlane_engine::number::{Money, Notional, Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{OrderKind, Side, Terms};

use super::{Twin, TwinOrder, TwinPosition};

impl Twin {
    /// Checks that the credit which an order adds fits beside the credit in use.
    pub(super) fn check_credit(&self, terms: &Terms, old: Option<usize>) -> Reason {
        let budget = self.budgets.get(&(Scope::Account(terms.account), BudgetKind::Credit));
        let Some(&budget) = budget.filter(|_| self.counts(terms.account, terms.security)) else {
            return Reason::None;
        };
        let held = (terms.account, terms.security, terms.side);
        let grows = (terms.qty.raw() - old.map_or(0, |order| self.orders[order].terms.qty.raw())).max(0);
        if self.credit_price(terms).is_none() {
            let opens = self.opening_qty(held, grows) > self.opening_qty(held, 0);
            return if opens { Reason::NoReferencePrice } else { Reason::None };
        }
        let reserve = self.reserve_for(terms, old);
        let more = self.opening(held, grows, reserve) - self.opening(held, 0, 0);
        let short = more > 0 && self.credit_used(terms.account) + more > budget as i128;
        if short { Reason::InsufficientFunds } else { Reason::None }
    }

    /// Returns the credit that an account uses: for each security in the credit's currency the cost
    /// of the position, long or short, less its profit, and what is reserved for orders that open a
    /// position.
    pub fn credit_used(&self, account: AccountId) -> i128 {
        let counted = self.known_securities().into_iter().filter(|&security| self.counts(account, security));
        counted.map(|security| self.credit_used_by(account, security)).sum()
    }

    fn credit_used_by(&self, account: AccountId, security: SecurityId) -> i128 {
        let (position, fees) = self.account_position(account, security);
        let held = (position.cost.raw().abs() - position.realized.raw() + fees) as i128;
        let opening = |side| self.opening((account, security, side), 0, 0);
        held + opening(Side::Buy) + opening(Side::Sell)
    }

    /// Returns whether a security is in the currency of the account's credit.
    fn counts(&self, account: AccountId, security: SecurityId) -> bool {
        let (Some(limits), Some(row)) =
            (self.limits.get(&Scope::Account(account)), self.reference.security(security))
        else {
            return false;
        };
        self.reference.family_of(row).currency == limits.credit_currency
    }

    /// Returns the position of an account in a security over all strategies, and the commissions
    /// paid. An expiry closes it, whichever strategies it belongs to.
    pub(super) fn account_position(&self, account: AccountId, security: SecurityId) -> (TwinPosition, i64) {
        let size = self.contract_size(security);
        let mut position = TwinPosition::default();
        let mut fees = 0;
        for at in 0..=self.transactions.len() {
            for &(_, _, price) in self.expiries.iter().filter(|e| (e.0, e.1) == (at, security)) {
                position = position.after(Qty::from_raw(-position.qty.raw()), price, size);
            }
            let Some(t) = self.transactions.get(at) else { break };
            if t.account == account && t.security == Some(security) {
                position = position.after(t.qty, t.price, size);
                fees += t.commission.raw();
            }
        }
        (position, fees)
    }

    /// Returns the quantity of open orders of a side that remains after closing the position.
    fn opening_qty(&self, (account, security, side): (AccountId, SecurityId, Side), more: i64) -> i128 {
        let held = self.account_qty(account, security) as i128;
        let closable = if side == Side::Buy { -held } else { held }.max(0);
        (self.open_qty(account, security, side) + more as i128 - closable).max(0)
    }

    /// Returns the share of the reserved credit that belongs to the opening quantity, rounded up.
    fn opening(&self, held: (AccountId, SecurityId, Side), more: i64, reserve: i64) -> i128 {
        let (account, security, side) = held;
        let open = self.open_qty(account, security, side) + more as i128;
        let opening = self.opening_qty(held, more);
        let all = self.mine(held).map(|o| (o.reserved + o.requested_reserve) as i128).sum::<i128>()
            + reserve as i128;
        if open == 0 { all } else { (all * opening + open - 1).div_euclid(open) }
    }

    fn open_qty(&self, account: AccountId, security: SecurityId, side: Side) -> i128 {
        self.mine((account, security, side)).map(|o| o.open() as i128).sum()
    }

    fn mine(
        &self,
        (account, security, side): (AccountId, SecurityId, Side),
    ) -> impl Iterator<Item = &TwinOrder> {
        let same = move |o: &&TwinOrder| {
            (o.terms.account, o.terms.security, o.terms.side) == (account, security, side)
        };
        self.orders.iter().filter(same)
    }

    /// Returns the credit to be reserved for an order, or in addition for its modification.
    pub(super) fn reserve_for(&self, terms: &Terms, old: Option<usize>) -> i64 {
        let filled = old.map_or(0, |order| self.orders[order].cum);
        let before = old.map_or(0, |order| self.orders[order].reserved);
        (self.reserve_cost(terms, terms.qty.raw() - filled) - before).max(0)
    }

    /// Returns the credit to be reserved for a part of an order; zero where it does not count or
    /// has no price.
    fn reserve_cost(&self, terms: &Terms, qty: i64) -> i64 {
        let price = self.credit_price(terms).filter(|_| self.counts(terms.account, terms.security));
        price.map_or(0, |price| self.cost(terms, qty, price))
    }

    /// Returns the credit to be reserved for a part of an order that is open again.
    pub(super) fn credit_again(&self, terms: &Terms, qty: i64) -> i64 {
        self.reserve_cost(terms, qty)
    }

    /// Returns the price by which a modification will be trimmed; for a market order it is unknown.
    pub(super) fn trim_price(&self, terms: &Terms) -> Option<i64> {
        let is_priced = terms.kind != OrderKind::Market && self.counts(terms.account, terms.security);
        self.credit_price(terms).filter(|_| is_priced)
    }

    /// Frees the credit that a modification no longer needs.
    pub(super) fn trim_credit(&mut self, order: usize) {
        let o = &self.orders[order];
        if let Some(price) = o.asked_price {
            let cost = self.cost(&o.terms, o.leaves(), price);
            self.orders[order].reserved = self.orders[order].reserved.min(cost);
        }
    }

    /// Returns the price for the credit. A sale may bring more than its limit: the last price, or
    /// its stop price, if that is higher.
    fn credit_price(&self, terms: &Terms) -> Option<i64> {
        let price = self.reference_price(terms)?;
        let other = match (terms.side, terms.kind) {
            (Side::Sell, OrderKind::Limit) => self.markets[&terms.security].last,
            (Side::Sell, OrderKind::StopLimit) => Some(terms.stop.raw()),
            _ => None,
        };
        Some(if other.is_some_and(|other| other.abs() > price.abs()) { other? } else { price })
    }

    fn cost(&self, terms: &Terms, qty: i64, price: i64) -> i64 {
        let row = self.reference.security(terms.security).expect("the reference was checked");
        let family = self.reference.family_of(row);
        let qty = Qty::from_raw(qty);
        let value = Notional::of(Price::from_raw(price), qty).money(family.contract_size);
        let commission = Money::per_unit(family.commission, qty);
        value.expect("runs use small numbers").raw().abs() + commission.expect("runs use small numbers").raw()
    }
}
