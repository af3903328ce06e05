//! Positions, cash and the transactions of the day.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::{ShardFacts, SnapshotMark, View};
use crate::command::{ExecRef, MovementKind};
use crate::event::{Booking, PositionState};
use crate::id::{
    AccountId, Currency, IntId, OrderHandle, PositionId, SecurityId, ShardId, StrategyId, TransactionId, Uuid,
};
use crate::ledger::NO_ACCOUNT;
use crate::number::{Money, Price, Qty};
use crate::time::Timestamp;

/// Current state of a position; flat ones stay, with their realized profit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionView {
    pub id: PositionId,
    pub state: PositionState,
    pub updated: Timestamp,
}

/// The cash of one strategy in one currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CashBalance {
    pub strategy: StrategyId,
    pub currency: Currency,
    /// `None` if the shards' parts add up to more than can be counted.
    pub amount: Option<Money>,
}

/// A transaction as it was booked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionView {
    pub id: TransactionId,
    pub at: Timestamp,
    pub shard: ShardId,
    /// Number of the event that reported it.
    pub seq: u64,
    pub order: OrderHandle,
    pub order_id: IntId,
    pub exec: ExecRef,
    pub kind: MovementKind,
    pub strategy: StrategyId,
    pub account: AccountId,
    pub security: Option<SecurityId>,
    /// Signed.
    pub qty: Qty,
    pub price: Price,
    pub commission: Money,
    pub currency: Currency,
}

impl TransactionView {
    /// Returns the UUID that the client gave to a manual transaction.
    fn given_uuid(&self) -> Option<Uuid> {
        let is_named = self.order == OrderHandle::NONE && self.order_id.is_none() && self.exec.0 != 0;
        is_named.then_some(Uuid(self.exec.0))
    }
}

impl View {
    pub fn position(&self, id: PositionId) -> Option<PositionView> {
        self.ledger.positions.get(&id).copied()
    }

    /// Returns all positions, by security and strategy, including flat ones.
    pub fn positions(&self) -> impl Iterator<Item = PositionView> {
        self.ledger.positions.iter().map(|(_, position)| *position)
    }

    /// Returns all balances, by strategy and currency.
    pub fn cash_balances(&self) -> impl Iterator<Item = CashBalance> {
        let mut parts = self.ledger.cash.iter().peekable();
        std::iter::from_fn(move || {
            let ((strategy, currency, _), part) = parts.next()?;
            let mut sum = part.raw() as i128;
            while let Some((_, part)) = parts.next_if(|((s, c, _), _)| (*s, *c) == (strategy, currency)) {
                sum += part.raw() as i128;
            }
            Some(CashBalance { strategy, currency, amount: i64::try_from(sum).ok().map(Money::from_raw) })
        })
    }

    /// Returns the cash of one strategy in one currency; `None` if nothing was ever booked.
    pub fn cash(&self, strategy: StrategyId, currency: Currency) -> Option<CashBalance> {
        self.cash_balances().find(|cash| (cash.strategy, cash.currency) == (strategy, currency))
    }

    /// Returns the shards' parts of a strategy's cash.
    pub fn cash_parts(&self, strategy: StrategyId) -> impl Iterator<Item = (Currency, ShardId, Money)> {
        let parts = self.ledger.cash.iter().filter(move |((owner, _, _), _)| *owner == strategy);
        parts.map(|((_, currency, shard), part)| (currency, shard, *part))
    }

    pub fn transaction(&self, id: TransactionId) -> Option<&TransactionView> {
        self.ledger.transactions.find(id)
    }

    /// Returns the manual transaction of the trading day with this UUID.
    pub fn transaction_with_uuid(&self, uuid: Uuid) -> Option<&TransactionView> {
        self.ledger.transactions.find(*self.ledger.transactions.uuids.get(&uuid)?)
    }

    /// Returns the transactions of the trading day, newest first; of one strategy, or of all.
    pub fn transactions(&self, strategy: Option<StrategyId>) -> impl Iterator<Item = &TransactionView> {
        let all = self.ledger.transactions.by_time.values().rev();
        all.filter(move |transaction| strategy.is_none_or(|strategy| transaction.strategy == strategy))
    }
}

#[derive(Debug)]
pub(super) struct LedgerView {
    positions: ShardFacts<PositionId, PositionView>,
    /// Positions of accounts over all strategies, as raw quantities; most of them are not flat.
    exposures: ShardFacts<(SecurityId, AccountId), i128>,
    /// Each shard's part.
    cash: ShardFacts<(StrategyId, Currency, ShardId), Money>,
    transactions: Transactions,
    /// Shards whose first transactions of the day are missing here.
    cut: BTreeSet<ShardId>,
}

impl LedgerView {
    pub(super) fn new(transactions_max: usize) -> LedgerView {
        let transactions = Transactions {
            by_time: BTreeMap::new(),
            times: BTreeMap::new(),
            uuids: BTreeMap::new(),
            len_max: transactions_max,
        };
        LedgerView {
            positions: ShardFacts::default(),
            exposures: ShardFacts::default(),
            cash: ShardFacts::default(),
            transactions,
            cut: BTreeSet::new(),
        }
    }

    /// Returns whether transactions of the day may be missing for a position.
    pub(super) fn is_day_cut(&self, position: PositionId) -> bool {
        self.positions.facts.get(&position).is_some_and(|(_, mark)| self.cut.contains(&mark.shard))
    }

    /// Returns the positions that are not flat, with their shards.
    pub(super) fn held(&self) -> impl Iterator<Item = (PositionId, ShardId)> {
        let held = self.positions.facts.iter().filter(|(_, (position, _))| !position.state.qty.is_zero());
        held.map(|(id, (_, mark))| (*id, mark.shard))
    }

    /// Handles the end of a shard's first snapshot. The shard keeps so many transactions: if they
    /// are all here, it may have dropped earlier ones.
    pub(super) fn loaded(&mut self, shard: ShardId, shard_transactions_max: usize) {
        let known = self.transactions.by_time.values().filter(|row| row.shard == shard);
        if known.count() >= shard_transactions_max {
            self.cut.insert(shard);
        }
    }

    pub(super) fn booked(&mut self, at: Timestamp, seq: u64, booking: &Booking, mark: SnapshotMark) {
        let (is_repeated, dropped) = self.transactions.insert(TransactionView {
            id: booking.id,
            at,
            shard: mark.shard,
            seq,
            order: booking.order,
            order_id: booking.order_id,
            exec: booking.exec,
            kind: booking.kind,
            strategy: booking.strategy,
            account: booking.account,
            security: booking.security,
            qty: booking.qty,
            price: booking.price,
            commission: booking.commission,
            currency: booking.currency,
        });
        self.cut.extend(dropped);
        self.cash_is(booking.strategy, booking.currency, booking.cash, mark);
        if let Some(security) = booking.security {
            self.position_is(at, booking.strategy, security, booking.position, mark);
            // A snapshot repeats the transactions of the day, and states their sum afterwards.
            if booking.account != NO_ACCOUNT && !is_repeated {
                let key = (security, booking.account);
                let before = self.exposures.get(&key).copied().unwrap_or_default();
                self.exposures.set(key, before + booking.qty.raw() as i128, mark);
            }
            // It closes the positions of all accounts.
            if booking.kind == MovementKind::Expiration {
                self.exposure_is(None, security, Qty::ZERO, mark);
            }
        }
    }

    pub(super) fn position_is(
        &mut self,
        at: Timestamp,
        strategy: StrategyId,
        security: SecurityId,
        state: PositionState,
        mark: SnapshotMark,
    ) {
        let id = PositionId::new(strategy, security);
        self.positions.set(id, PositionView { id, state, updated: at }, mark);
    }

    /// Sets the position of one account in a security, or of all accounts.
    pub(super) fn exposure_is(
        &mut self,
        account: Option<AccountId>,
        security: SecurityId,
        qty: Qty,
        mark: SnapshotMark,
    ) {
        let raw = qty.raw() as i128;
        if let Some(account) = account {
            return self.exposures.set((security, account), raw, mark);
        }
        let all = (security, AccountId(0))..=(security, AccountId(u16::MAX));
        self.exposures.facts.range_mut(all).for_each(|(_, (held, _))| *held = raw);
    }

    /// Returns the positions of accounts, as raw quantities.
    pub(super) fn exposures(&self) -> impl Iterator<Item = ((SecurityId, AccountId), i128)> {
        self.exposures.iter().map(|(key, qty)| (key, *qty))
    }

    pub(super) fn cash_is(
        &mut self,
        strategy: StrategyId,
        currency: Currency,
        part: Money,
        mark: SnapshotMark,
    ) {
        self.cash.set((strategy, currency, mark.shard), part, mark);
    }

    pub(super) fn cash_parts(&self) -> impl Iterator<Item = ((StrategyId, Currency, ShardId), &Money)> {
        self.cash.iter()
    }

    pub(super) fn transactions_before(
        &self,
        last: Option<(Timestamp, TransactionId)>,
        strategy: Option<StrategyId>,
    ) -> impl Iterator<Item = &TransactionView> {
        let end = last.map_or(Bound::Unbounded, Bound::Excluded);
        let earlier = self.transactions.by_time.range((Bound::Unbounded, end)).rev().map(|(_, row)| row);
        earlier.filter(move |row| strategy.is_none_or(|strategy| row.strategy == strategy))
    }

    pub(super) fn day_over(&mut self, shard: ShardId) {
        self.transactions.drop_all_of(shard);
        self.cut.remove(&shard);
    }

    pub(super) fn sweep(&mut self, mark: SnapshotMark) {
        self.positions.sweep(mark);
        self.exposures.sweep(mark);
        self.cash.sweep(mark);
    }
}

/// Invariant: the first two maps hold the same transactions, at most `len_max`, and the third those
/// of them with a client's UUID.
#[derive(Debug)]
struct Transactions {
    by_time: BTreeMap<(Timestamp, TransactionId), TransactionView>,
    times: BTreeMap<TransactionId, Timestamp>,
    uuids: BTreeMap<Uuid, TransactionId>,
    len_max: usize,
}

impl Transactions {
    /// Adds a transaction. A repeated one keeps its time. Returns whether it is repeated, and the
    /// shard of the transaction that was dropped for it.
    fn insert(&mut self, mut transaction: TransactionView) -> (bool, Option<ShardId>) {
        let is_repeated = match self.times.entry(transaction.id) {
            Entry::Occupied(entry) => {
                transaction.at = *entry.get();
                true
            }
            Entry::Vacant(entry) => {
                entry.insert(transaction.at);
                false
            }
        };
        self.by_time.insert((transaction.at, transaction.id), transaction);
        if let Some(uuid) = transaction.given_uuid() {
            self.uuids.insert(uuid, transaction.id);
        }
        if self.by_time.len() > self.len_max
            && let Some(((_, id), oldest)) = self.by_time.pop_first()
        {
            self.times.remove(&id);
            oldest.given_uuid().map(|uuid| self.uuids.remove(&uuid));
            return (is_repeated, Some(oldest.shard));
        }
        (is_repeated, None)
    }

    fn drop_all_of(&mut self, shard: ShardId) {
        let Transactions { by_time, times, uuids, .. } = self;
        for ((_, id), transaction) in by_time.extract_if(.., |_, transaction| transaction.shard == shard) {
            times.remove(&id);
            transaction.given_uuid().map(|uuid| uuids.remove(&uuid));
        }
    }

    fn find(&self, id: TransactionId) -> Option<&TransactionView> {
        self.by_time.get(&(*self.times.get(&id)?, id))
    }
}
