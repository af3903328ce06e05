//! What is seen of a book: prices and sizes, best first. Only books that somebody follows are looked at, and of those only the ones
//! that may have changed.

use std::collections::VecDeque;

use crate::event::{DEPTH_LEVELS_MAX, Level};
use crate::number::Qty;
use crate::terms::Side;

use super::Venue;

/// The books that are followed, and which of them may have changed since they were last looked at.
#[derive(Debug, Default)]
pub(super) struct Followed {
    /// By book; empty while nobody follows any, so that an order asks nothing but that.
    marks: Vec<Mark>,
    /// How many are followed.
    count: usize,
    /// Those at [`Mark::Touched`], in the order in which they were; there is room for every one that is followed.
    touched: VecDeque<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Ignored,
    Still,
    Touched,
}

impl Followed {
    fn set(&mut self, book: u32, on: bool) {
        let at = book as usize;
        if self.marks.len() <= at {
            self.marks.resize(at + 1, Mark::Ignored);
        }
        match (self.marks[at], on) {
            (Mark::Ignored, true) => {
                self.marks[at] = Mark::Still;
                self.count += 1;
                self.touched.reserve(self.count - self.touched.len());
            }
            (Mark::Still | Mark::Touched, false) => {
                self.marks[at] = Mark::Ignored;
                self.touched.retain(|touched| *touched != book);
                self.count -= 1;
            }
            (Mark::Ignored, false) | (Mark::Still | Mark::Touched, true) => {}
        }
        if self.count == 0 {
            *self = Followed::default();
        }
    }

    #[inline]
    pub fn touch(&mut self, book: u32) {
        if !self.marks.is_empty() {
            self.note(book);
        }
    }

    #[cold]
    #[inline(never)]
    fn note(&mut self, book: u32) {
        if let Some(mark @ Mark::Still) = self.marks.get_mut(book as usize) {
            *mark = Mark::Touched;
            self.touched.push_back(book);
        }
    }

    fn take(&mut self) -> Option<u32> {
        let book = self.touched.pop_front()?;
        self.marks[book as usize] = Mark::Still;
        Some(book)
    }
}

impl Venue {
    /// Whether changes of a book are to be noted from now on.
    pub fn follow(&mut self, book: u32, on: bool) {
        self.followed.set(book, on);
    }

    /// Nobody follows any book.
    pub fn follow_none(&mut self) {
        self.followed = Followed::default();
    }

    /// Whether a book that is followed may have changed.
    #[inline]
    pub fn has_touched(&self) -> bool {
        !self.followed.touched.is_empty()
    }

    /// A book that is followed and may have changed since it was last taken; the one that waits longest.
    pub fn take_touched(&mut self) -> Option<u32> {
        self.followed.take()
    }

    /// Has a book looked at again.
    pub fn touch(&mut self, book: u32) {
        self.followed.touch(book);
    }

    /// What somebody who takes from this side would find, best first: orders of clients, and what is left of the feed's quote.
    pub fn levels(&self, book: u32, side: Side) -> ([Level; DEPTH_LEVELS_MAX], usize) {
        let (front, back) = (&self.books[book as usize], &self.backs[book as usize]);
        let ladder = &front.sides[side as usize];
        let mut clients = ladder.levels(&self.nodes).peekable();
        let portions = back.shown[side as usize].portions(side, &back.spec.settings);
        let mut portions = portions.take_while(|(ticks, _)| front.is_price(*ticks)).peekable();
        let mut levels = [Level::default(); DEPTH_LEVELS_MAX];
        for (count, level) in levels.iter_mut().enumerate() {
            let next = |next: Option<&(i64, Qty)>| next.map(|(ticks, _)| ladder.rank(*ticks));
            let ranks = [next(clients.peek()), next(portions.peek())];
            let Some(best) = ranks.into_iter().flatten().min() else { return (levels, count) };
            let client = clients.next_if(|(ticks, _)| ladder.rank(*ticks) == best);
            let portion = portions.next_if(|(ticks, _)| ladder.rank(*ticks) == best);
            let sum = [client, portion].into_iter().flatten().map(|(_, qty)| qty.raw());
            // Both are counted; together they may be more than can be.
            let qty = Qty::from_raw(sum.fold(0, i64::saturating_add));
            *level = Level { price: front.price(ladder.rank(best)), qty };
        }
        (levels, DEPTH_LEVELS_MAX)
    }
}
