//! The trades of the books, one by one, for those who watch them. The market state has only the
//! last trade.

use crate::number::{Price, Qty};
use crate::terms::Side;

use super::book::MarketState;
use super::{Venue, VenueOutcome};

/// One trade of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TapeTrade {
    pub book: u32,
    pub price: Price,
    /// Zero if the feed does not say it.
    pub qty: Qty,
    /// Side of the order that took; absent in an auction, and if the feed does not say it.
    pub aggressor: Option<Side>,
}

/// The trades of watched books in the current step.
#[derive(Debug, Default)]
pub(super) struct Tape {
    /// By book; empty while none is watched, so that a trade checks only that.
    watched: Vec<bool>,
    trades: Vec<TapeTrade>,
}

impl Tape {
    #[inline]
    fn is_on(&self) -> bool {
        !self.watched.is_empty()
    }

    #[cold]
    #[inline(never)]
    fn record(&mut self, trade: TapeTrade) {
        if self.watched.get(trade.book as usize).is_some_and(|watched| *watched) {
            self.trades.push(trade);
        }
    }

    fn watch(&mut self, book: u32, on: bool) {
        let at = book as usize;
        if self.watched.len() <= at {
            self.watched.resize(at + 1, false);
        }
        self.watched[at] = on;
        if !self.watched.contains(&true) {
            *self = Tape::default();
        }
    }
}

impl Venue {
    /// Sets whether the trades of a book are recorded from now on.
    pub fn watch_trades(&mut self, book: u32, on: bool) {
        self.tape.watch(book, on);
    }

    /// Returns whether trades were recorded since [`Venue::clear_trades`].
    #[inline]
    pub fn has_trades(&self) -> bool {
        !self.tape.trades.is_empty()
    }

    /// Returns the recorded trades in order. One call of the venue makes as many as it has
    /// executions, and one more for a trade of the feed.
    pub fn trades(&self) -> &[TapeTrade] {
        &self.tape.trades
    }

    pub fn clear_trades(&mut self) {
        self.tape.trades.clear();
    }

    /// Applies a trade to the market, and records it.
    #[inline]
    pub(super) fn print_trade(&mut self, book: u32, price: Price, qty: Qty, aggressor: Option<Side>) {
        MarketState::print(&mut self.markets[book as usize], price, qty);
        if self.tape.is_on() {
            self.tape.record(TapeTrade { book, price, qty, aggressor });
        }
    }

    /// Records the trades of a sweep. It reports each of them twice: for the taker, whose side this
    /// is, and then for the order that rested.
    #[inline]
    pub(super) fn record_sweep(&mut self, book: u32, side: Side, reported_before: usize) {
        if !self.tape.is_on() {
            return;
        }
        for at in (reported_before..self.outcomes.len()).step_by(2) {
            if let (_, VenueOutcome::Filled { qty, price }) = self.outcomes[at] {
                self.tape.record(TapeTrade { book, price, qty, aggressor: Some(side) });
            }
        }
    }
}
