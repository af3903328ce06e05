//! Recounts positions and cash from the opening balance and the kept transactions, and folds old
//! transactions into that balance.

use super::arithmetic::CountedTrade;
use super::{FOLD_AHEAD, KeptTransaction, Ledger, Position};
use crate::event::PositionState;
use crate::index::index_u32;
use crate::number::Money;
use crate::prefetch::fetch;

/// Positions, by security, and cash while kept transactions are counted again.
struct Balances {
    positions: Vec<Vec<PositionState>>,
    cash: Vec<Money>,
}

impl Balances {
    /// Counts a transaction, and returns its position and cash. Returns `None` if they cannot be
    /// counted.
    fn count(&mut self, kept: &KeptTransaction) -> Option<(PositionState, Money)> {
        let booking = &kept.booking;
        let cash = &mut self.cash[kept.cash as usize];
        if booking.security.is_none() {
            *cash = cash.checked_add(Money::from_raw(booking.price.raw()))?;
            return Some((booking.position, *cash));
        }
        let trade = CountedTrade::new(booking.qty, booking.price, booking.commission, kept.size)?;
        let held = &mut self.positions[kept.local as usize][kept.position as usize];
        *held = trade.position_after(held)?;
        *cash = trade.cash_after(*cash)?;
        Some((*held, *cash))
    }
}

impl Ledger {
    /// Recounts everything from the opening balance and the transactions kept.
    pub fn recount(&mut self) {
        let mut balances = self.opening();
        for kept in &mut self.transactions {
            (kept.booking.position, kept.booking.cash) =
                balances.count(kept).expect("what was counted once can be counted again");
        }
        for (held, recount) in self.positions.iter_mut().flatten().zip(balances.positions.iter().flatten()) {
            held.recount = *recount;
        }
        for (cash, recount) in self.cash.iter_mut().zip(balances.cash) {
            cash.recount = recount;
        }
    }

    /// Returns whether a recount gives what was booked, transaction by transaction.
    pub(super) fn agrees_with_recount(&self) -> bool {
        let mut balances = self.opening();
        let is_same =
            |kept: &KeptTransaction| balances.count(kept) == Some((kept.booking.position, kept.booking.cash));
        self.transactions.iter().all(is_same)
            && self.positions.iter().flatten().map(|held| &held.state).eq(balances.positions.iter().flatten())
            && self.cash.iter().map(|cash| &cash.amount).eq(&balances.cash)
    }

    fn opening(&self) -> Balances {
        let of_security = |list: &Vec<Position>| list.iter().map(|held| held.opening).collect();
        Balances {
            positions: self.positions.iter().map(of_security).collect(),
            cash: self.cash.iter().map(|cash| cash.opening).collect(),
        }
    }

    /// Corrects a position after [`Ledger::recount`]. Returns the states before and after if they
    /// differ.
    pub fn adjust_position(&mut self, local: u32, at: u16) -> Option<(PositionState, PositionState)> {
        let position = self.position_mut(local, at);
        let before = position.state;
        position.state = position.recount;
        (before != position.recount).then_some((before, position.recount))
    }

    /// Corrects a cash balance after [`Ledger::recount`]. Returns the amounts before and after if
    /// they differ.
    pub fn adjust_cash(&mut self, at: usize) -> Option<(Money, Money)> {
        let cash = &mut self.cash[at];
        let before = cash.amount;
        cash.amount = cash.recount;
        (before != cash.recount).then_some((before, cash.recount))
    }

    /// Folds every kept transaction into the opening balance, at the end of the day.
    pub fn fold_all(&mut self) {
        while !self.transactions.is_empty() {
            self.fold_oldest();
        }
    }

    /// Returns whether both sides of every booking add up to zero, currency by currency, and flat
    /// positions have no cost.
    pub fn is_balanced(&self) -> bool {
        let flat = self.positions.iter().flatten().all(|p| !p.state.qty.is_zero() || p.state.cost.is_zero());
        let sums = self.contras.iter().enumerate().all(|(at, contra)| {
            let ours = self.cash.iter().filter(|cash| cash.contra == index_u32(at));
            ours.map(|cash| cash.amount.raw() as i128).sum::<i128>().checked_add(contra.amount) == Some(0)
        });
        flat && sums
    }

    /// Folds the oldest kept transaction: the opening balance becomes the position and cash after
    /// it.
    pub(super) fn fold_oldest(&mut self) {
        let Some(oldest) = self.transactions.front() else {
            return;
        };
        if oldest.booking.security.is_some() {
            self.positions[oldest.local as usize][oldest.position as usize].opening = oldest.booking.position;
        }
        self.cash[oldest.cash as usize].opening = oldest.booking.cash;
        self.folded += 1;
        self.transactions.pop_front();
        // The next transactions to fold have not been read since they were written.
        if let Some(coming) = self.transactions.get(FOLD_AHEAD) {
            fetch(coming);
            fetch(&coming.booking.order_id);
            fetch(&coming.booking.position);
            fetch(&coming.cash);
        }
    }
}
