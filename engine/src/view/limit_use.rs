//! Use of the risk limits, and what they have refused in the trading day.

use std::collections::BTreeMap;

use super::View;
use crate::command::Scope;
use crate::event::{OrderTerms, RequestKind, RequestRefusal};
use crate::id::{AccountId, SecurityId, ShardId, StrategyId};
use crate::number::{self, Qty};
use crate::reason::Reason;
use crate::terms::{Side, Status, Terms};
use crate::time::Timestamp;

/// What a strategy or an account uses of its limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitUse {
    pub open_orders: u64,
    /// The largest position that its open orders could lead to, as a magnitude: of a strategy, or
    /// of an account over all strategies. `None` without any.
    pub position: Option<(SecurityId, Qty)>,
}

/// Orders and modifications of a strategy or an account that one limit refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitRefusals {
    pub reason: Reason,
    pub count: u64,
    /// Time and security of the newest.
    pub last: Timestamp,
    pub security: SecurityId,
}

/// Refusals by their shard, strategy, account and reason. A limit is checked after the reference
/// data, so the strategy and the account exist, which bounds the table.
#[derive(Debug, Default)]
pub(super) struct RefusalTable {
    rows: BTreeMap<(ShardId, StrategyId, AccountId, Reason), LimitRefusals>,
}

impl RefusalTable {
    /// Counts a new order if a limit refused it.
    pub(super) fn count_order(&mut self, at: Timestamp, shard: ShardId, event: &OrderTerms) {
        if event.status == Status::Rejected {
            self.count(at, shard, &event.terms, event.reason);
        }
    }

    /// Counts a modification if a limit refused it. `terms` are those of its order.
    pub(super) fn count_request(
        &mut self,
        at: Timestamp,
        shard: ShardId,
        event: &RequestRefusal,
        terms: &Terms,
    ) {
        if event.request == RequestKind::Replace {
            self.count(at, shard, terms, event.reason);
        }
    }

    fn count(&mut self, at: Timestamp, shard: ShardId, terms: &Terms, reason: Reason) {
        if !reason.is_limit() {
            return;
        }
        let key = (shard, terms.strategy, terms.account, reason);
        let new = LimitRefusals { reason, count: 0, last: at, security: terms.security };
        let row = self.rows.entry(key).or_insert(new);
        row.count += 1;
        // A snapshot lists refused orders in any order.
        if row.last <= at {
            (row.last, row.security) = (at, terms.security);
        }
    }

    pub(super) fn day_over(&mut self, shard: ShardId) {
        self.rows.retain(|(of, _, _, _), _| *of != shard);
    }
}

impl View {
    /// Returns what each strategy and account uses, by scope; those that use nothing are absent.
    pub fn limit_uses(&self) -> BTreeMap<Scope, LimitUse> {
        let mut uses: BTreeMap<Scope, LimitUse> = BTreeMap::new();
        // Possible positions after all buys and after all sells.
        let mut reach: BTreeMap<(Scope, SecurityId), (i128, i128)> = BTreeMap::new();
        for position in self.positions() {
            let net = position.state.qty.raw() as i128;
            reach.insert((Scope::Strategy(position.id.strategy()), position.id.security()), (net, net));
        }
        for ((security, account), net) in self.ledger.exposures() {
            reach.insert((Scope::Account(account), security), (net, net));
        }
        for (terms, leaves) in self.orders.open_leaves() {
            for scope in [Scope::Strategy(terms.strategy), Scope::Account(terms.account)] {
                uses.entry(scope).or_default().open_orders += 1;
                let (bought, sold) = reach.entry((scope, terms.security)).or_default();
                match terms.side {
                    Side::Buy => *bought += leaves.raw() as i128,
                    Side::Sell => *sold -= leaves.raw() as i128,
                }
            }
        }
        for ((scope, security), (bought, sold)) in reach {
            let qty = Qty::from_raw(number::saturated(bought.abs().max(sold.abs())));
            if qty.is_zero() {
                continue;
            }
            let largest = &mut uses.entry(scope).or_default().position;
            if largest.is_none_or(|(_, other)| other < qty) {
                *largest = Some((security, qty));
            }
        }
        uses
    }

    /// Returns the refusals of a strategy or an account in the trading day, by reason.
    pub fn limit_refusals(&self, scope: Scope) -> Vec<LimitRefusals> {
        let mut sums: BTreeMap<Reason, LimitRefusals> = BTreeMap::new();
        for ((_, strategy, account, reason), row) in &self.refusals.rows {
            if scope != Scope::Strategy(*strategy) && scope != Scope::Account(*account) {
                continue;
            }
            let sum = sums.entry(*reason).or_insert(LimitRefusals { count: 0, ..*row });
            sum.count += row.count;
            if sum.last < row.last {
                (sum.last, sum.security) = (row.last, row.security);
            }
        }
        sums.into_values().collect()
    }
}
