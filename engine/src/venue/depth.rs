//! Depth of a book: prices and sizes, best first. Only watched books are read, and of those only
//! the ones that may have changed.

use std::collections::VecDeque;

use crate::event::{DEPTH_LEVELS_MAX, DepthLevel};
#[cfg(test)]
use crate::number::Price;
use crate::number::Qty;
use crate::terms::Side;

use super::Venue;

/// The watched books, and those that may have changed since they were last read.
#[derive(Debug, Default)]
pub(super) struct WatchedBooks {
    /// By book; empty while none is watched, so that an order checks only that.
    marks: Vec<WatchMark>,
    /// Number of watched books.
    count: usize,
    /// Books at [`WatchMark::Touched`], in order of change; there is room for every watched one.
    touched: VecDeque<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WatchMark {
    Ignored,
    Still,
    Touched,
}

impl WatchedBooks {
    fn set(&mut self, book: u32, on: bool) {
        let at = book as usize;
        if self.marks.len() <= at {
            self.marks.resize(at + 1, WatchMark::Ignored);
        }
        match (self.marks[at], on) {
            (WatchMark::Ignored, true) => {
                self.marks[at] = WatchMark::Still;
                self.count += 1;
                self.touched.reserve(self.count - self.touched.len());
            }
            (WatchMark::Still | WatchMark::Touched, false) => {
                self.marks[at] = WatchMark::Ignored;
                self.touched.retain(|touched| *touched != book);
                self.count -= 1;
            }
            (WatchMark::Ignored, false) | (WatchMark::Still | WatchMark::Touched, true) => {}
        }
        if self.count == 0 {
            *self = WatchedBooks::default();
        }
    }

    #[inline]
    pub(super) fn touch(&mut self, book: u32) {
        if !self.marks.is_empty() {
            self.note(book);
        }
    }

    #[cold]
    #[inline(never)]
    fn note(&mut self, book: u32) {
        if let Some(mark @ WatchMark::Still) = self.marks.get_mut(book as usize) {
            *mark = WatchMark::Touched;
            self.touched.push_back(book);
        }
    }

    fn take(&mut self) -> Option<u32> {
        let book = self.touched.pop_front()?;
        self.marks[book as usize] = WatchMark::Still;
        Some(book)
    }
}

impl Venue {
    /// Sets whether changes of a book are recorded from now on.
    pub fn follow(&mut self, book: u32, on: bool) {
        self.watched.set(book, on);
    }

    /// Stops watching all books.
    pub fn follow_none(&mut self) {
        self.watched = WatchedBooks::default();
    }

    /// Returns whether a watched book may have changed.
    #[inline]
    pub fn has_touched(&self) -> bool {
        !self.watched.touched.is_empty()
    }

    /// Returns a watched book that may have changed since it was last taken; the one that waits
    /// longest.
    pub fn take_touched(&mut self) -> Option<u32> {
        self.watched.take()
    }

    /// Marks a book as changed.
    pub fn touch(&mut self, book: u32) {
        self.watched.touch(book);
    }

    /// Returns what an order that takes from this side would find, best first: orders of clients,
    /// and the rest of the feed's quote.
    pub fn price_levels(&self, book: u32, side: Side) -> impl Iterator<Item = DepthLevel> {
        let (front, detail) = (&self.books[book as usize], &self.details[book as usize]);
        let ladder = &front.sides[side as usize];
        let mut clients = ladder.levels(&self.nodes).peekable();
        let portions = detail.shown[side as usize].portions(side, &detail.spec.settings);
        let mut portions = portions.take_while(|(ticks, _)| front.is_price(*ticks)).peekable();
        std::iter::from_fn(move || {
            let next = |next: Option<&(i64, Qty)>| next.map(|(ticks, _)| ladder.rank(*ticks));
            let ranks = [next(clients.peek()), next(portions.peek())];
            let best = ranks.into_iter().flatten().min()?;
            let client = clients.next_if(|(ticks, _)| ladder.rank(*ticks) == best);
            let portion = portions.next_if(|(ticks, _)| ladder.rank(*ticks) == best);
            let sum = [client, portion].into_iter().flatten().map(|(_, qty)| qty.raw());
            // Each of the two fits; the sum saturates.
            let qty = Qty::from_raw(sum.fold(0, i64::saturating_add));
            Some(DepthLevel { price: front.price(ladder.rank(best)), qty })
        })
    }

    /// Returns the best of [`Venue::price_levels`], and their number.
    pub fn levels(&self, book: u32, side: Side) -> ([DepthLevel; DEPTH_LEVELS_MAX], usize) {
        let mut levels = [DepthLevel::default(); DEPTH_LEVELS_MAX];
        let mut count = 0;
        for (place, level) in levels.iter_mut().zip(self.price_levels(book, side)) {
            *place = level;
            count += 1;
        }
        (levels, count)
    }

    /// Returns the prices at which clients' orders rest, best first, and their quantities.
    #[cfg(test)]
    pub fn depth(&self, book: u32, side: Side, levels: usize) -> impl Iterator<Item = (Price, Qty)> {
        let book = &self.books[book as usize];
        let all = book.sides[side as usize].levels(&self.nodes);
        all.take(levels).map(|(ticks, qty)| (book.price(ticks), qty))
    }
}
