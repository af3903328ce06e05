//! Taking: an order meets clients, market orders that wait, and the quote's portions, the best price first.

use crate::command::Session;
use crate::number::{Price, Qty};
use crate::order::NIL;
use crate::order_nodes::{Node, Place};
use crate::reason::Reason;
use crate::settings::SelfTrade;
use crate::terms::{Side, Tif};

use super::book::{Mode, Taker};
use super::{EFFORT_TOLD, Entry, Outcome, Venue, Work};

/// What a taker meets next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// A market order that waits, at the taker's own limit.
    Waiting(u32),
    /// An order that rests at its limit.
    Resting(u32),
    /// A portion of the quote: its price, what is left of it.
    Portion(i64, Qty),
    Nothing,
    /// An order of the same account.
    Own,
    /// A price outside the band.
    Band,
}

impl Venue {
    /// An order comes to a book in which there is more than clients, or is one that asks for more.
    #[cold]
    pub(super) fn arrive_richly(&mut self, entry: &Entry) {
        let book = entry.book;
        if entry.tif == Tif::Atc && self.backs[book as usize].session != Session::ClosingAuction {
            return self.park(entry);
        }
        self.remember_auction(book, entry.tif);
        if self.books[book as usize].mode.has(Mode::COLLECTING) {
            return match entry.tif.is_immediate() {
                true => self.say(entry.slot, Outcome::Canceled(Reason::NoLiquidity)),
                false => self.settle(entry, entry.qty),
            };
        }
        self.backs[book as usize].band = self.band(book);
        if entry.tif == Tif::Fok && !self.can_fill_whole(book, &Taker::of(entry)) {
            return self.say(entry.slot, Outcome::Canceled(Reason::Fok));
        }
        self.nodes.set(entry.slot, entry.node(Place::Taking, entry.limit.unwrap_or_default(), entry.qty));
        self.set_work(book, Work::Take { slot: entry.slot, market: entry.limit.is_none() });
        self.run(book);
    }

    /// One piece of [`Work::Take`].
    pub(super) fn work_take(&mut self, book: u32, slot: u32, market: bool) -> u32 {
        let taker = self.taker(slot, market);
        let next = self.next_for(book, &taker);
        let node = self.nodes[slot];
        let end = match next {
            Next::Waiting(_) | Next::Resting(_) | Next::Portion(..) => {
                let left = self.take_next(book, taker, next);
                self.nodes[slot].qty = left;
                if left.is_positive() {
                    return EFFORT_TOLD;
                }
                None
            }
            Next::Own => Some(Reason::SelfTrade),
            Next::Band => Some(Reason::PriceBand),
            Next::Nothing => {
                self.set_work(book, Work::None);
                self.nodes[slot].set_place(Place::Nowhere);
                self.stay(&entry_of(slot, &node, market), node.qty);
                return EFFORT_TOLD;
            }
        };
        self.set_work(book, Work::None);
        self.nodes[slot].set_place(Place::Nowhere);
        if let Some(reason) = end {
            self.say(slot, Outcome::Canceled(reason));
        }
        EFFORT_TOLD
    }

    /// One piece of [`Work::Line`]: market orders that wait trade as if they arrived now, the oldest first.
    pub(super) fn work_line(&mut self, book: u32, taking: u32, mut next: [u32; 2]) -> u32 {
        if taking == NIL {
            let Some(slot) = self.oldest(next) else {
                self.set_work(book, Work::None);
                return 0;
            };
            next[self.nodes[slot].side() as usize] = self.nodes[slot].next().unwrap_or(NIL);
            self.backs[book as usize].band = self.band(book);
            self.set_work(book, Work::Line { taking: slot, next });
            return 1;
        }
        let taker = self.taker(taking, true);
        let met = self.next_for(book, &taker);
        let end = match met {
            Next::Waiting(_) | Next::Resting(_) | Next::Portion(..) => {
                let left = self.take_next(book, taker, met);
                if left.is_positive() {
                    self.nodes[taking].qty = left;
                    return EFFORT_TOLD;
                }
                None
            }
            Next::Own => Some(Reason::SelfTrade),
            Next::Band => Some(Reason::PriceBand),
            Next::Nothing => {
                self.set_work(book, Work::Line { taking: NIL, next });
                return 1;
            }
        };
        self.leave(taking).expect("it stands in the line");
        if let Some(reason) = end {
            self.say(taking, Outcome::Canceled(reason));
        }
        self.set_work(book, Work::Line { taking: NIL, next });
        EFFORT_TOLD
    }

    /// Lets the market orders that wait take what they can.
    pub(super) fn start_line(&mut self, book: u32) {
        let next = self.backs[book as usize].lines.map(|line| line.front().unwrap_or(NIL));
        self.set_work(book, Work::Line { taking: NIL, next });
    }

    /// Whoever came first of the two.
    fn oldest(&self, next: [u32; 2]) -> Option<u32> {
        let waiting = next.into_iter().filter(|&slot| slot != NIL);
        waiting.min_by_key(|&slot| self.nodes[slot].ticks)
    }

    fn taker(&self, slot: u32, market: bool) -> Taker {
        let node = &self.nodes[slot];
        let limit = (!market).then_some(node.ticks);
        Taker { slot, side: node.side(), account: node.account, limit, left: node.qty }
    }

    fn next_for(&self, book: u32, taker: &Taker) -> Next {
        let (front, back) = (&self.books[book as usize], &self.backs[book as usize]);
        let (low, high) = back.band;
        let other = taker.side.opposite();
        let own = |slot: u32| front.is_own(taker.account, self.nodes[slot].account);
        if let (Some(limit), Some(slot)) = (taker.limit, back.lines[other as usize].front()) {
            return match (low <= limit && limit <= high, own(slot)) {
                (false, _) => Next::Band,
                (true, true) => Next::Own,
                (true, false) => Next::Waiting(slot),
            };
        }
        let ladder = &front.sides[other as usize];
        let portion = back.shown[other as usize].portion(other, &back.spec.settings);
        let quoted = portion.map_or(i64::MAX, |(ticks, _)| ladder.rank(ticks));
        let best = quoted.min(ladder.best_rank());
        let ticks = ladder.rank(best);
        if best > front.bound(taker) {
            return Next::Nothing;
        }
        if ticks < low || ticks > high {
            return Next::Band;
        }
        match (portion, ladder.best_front(&self.nodes)) {
            (Some((ticks, left)), _) if quoted == best => Next::Portion(ticks, left),
            (_, Some(slot)) if own(slot) => Next::Own,
            (_, Some(slot)) => Next::Resting(slot),
            (_, None) => Next::Nothing,
        }
    }

    /// Trades once; what the taker has left.
    fn take_next(&mut self, book: u32, mut taker: Taker, next: Next) -> Qty {
        let b = book as usize;
        match next {
            Next::Resting(maker) => {
                let book = &mut self.books[b];
                let (qty, price) = book.meet(&mut self.nodes, &mut self.outcomes, &mut taker, maker);
                self.markets[b].print(price, qty);
                taker.left
            }
            Next::Waiting(maker) => {
                let limit = taker.limit.expect("only a limit order meets those who wait");
                let (price, qty) = (self.books[b].price(limit), taker.left.min(self.nodes[maker].qty));
                self.say(taker.slot, Outcome::Filled { qty, price });
                self.fill_waiting(maker, qty, price);
                self.markets[b].print(price, qty);
                Qty::from_raw(taker.left.raw() - qty.raw())
            }
            Next::Portion(ticks, left) => {
                let qty = self.take_portion(book, &taker, left);
                let price = self.books[b].price(ticks);
                self.say(taker.slot, Outcome::Filled { qty, price });
                self.markets[b].print(price, qty);
                Qty::from_raw(taker.left.raw() - qty.raw())
            }
            Next::Nothing | Next::Own | Next::Band => taker.left,
        }
    }

    /// How much of a portion the taker gets. With dice, what it does not get is gone too: somebody else was faster.
    fn take_portion(&mut self, book: u32, taker: &Taker, left: Qty) -> Qty {
        let back = &mut self.backs[book as usize];
        let shown = &mut back.shown[taker.side.opposite() as usize];
        // FOK has been promised the whole.
        if !back.spec.settings.partial_fill || self.nodes[taker.slot].tif == Tif::Fok {
            let qty = left.min(taker.left);
            shown.take(qty);
            return qty;
        }
        let lot = back.spec.lot.raw();
        let lots = (left.raw() / lot).max(1) as u64;
        let drawn = (back.rng.below(lots) as i64 + 1).saturating_mul(lot).min(left.raw());
        if taker.left.raw() < drawn {
            shown.take(taker.left);
            return taker.left;
        }
        shown.pass();
        Qty::from_raw(drawn)
    }

    /// A market order that waits gets this quantity at this price.
    pub(super) fn fill_waiting(&mut self, slot: u32, qty: Qty, price: Price) {
        let node = &mut self.nodes[slot];
        let left = Qty::from_raw(node.qty.raw() - qty.raw());
        node.qty = left;
        self.say(slot, Outcome::Filled { qty, price });
        if left.is_zero() {
            self.leave(slot).expect("it stands in the line");
        }
    }

    /// The lowest and the highest price, in ticks, that the band allows now.
    fn band(&self, book: u32) -> (i64, i64) {
        let (front, back) = (&self.books[book as usize], &self.backs[book as usize]);
        let bp = back.spec.settings.band_bp;
        let market = &self.markets[book as usize];
        if bp == 0 || !market.traded {
            return (i64::MIN, i64::MAX);
        }
        let last = market.last.raw();
        let width = market.last.abs().basis_points(bp as i64).map_or(i64::MAX, Price::raw);
        let tick = front.tick().raw();
        let low = ticks_up(last.saturating_sub(width), tick);
        let high = last.saturating_add(width).div_euclid(tick);
        (low, high)
    }
}

/// Looking ahead for FOK.
impl Venue {
    /// Whether the whole quantity can be had in one go, without meeting an own order.
    fn can_fill_whole(&self, book: u32, taker: &Taker) -> bool {
        let back = &self.backs[book as usize];
        let want = taker.left.raw() as i128;
        let Some(waiting) = self.can_have_waiting(book, taker, want) else {
            return false;
        };
        let own_matters = back.spec.settings.self_trade == SelfTrade::CancelNewest;
        let bound = self.bound_in_band(book, taker);
        let ladder = &self.books[book as usize].sides[taker.side.opposite() as usize];
        // A price can also be too good for the band; then nothing behind it is reached.
        let portion =
            back.shown[taker.side.opposite() as usize].portion(taker.side.opposite(), &back.spec.settings);
        let quoted = portion.map_or(i64::MAX, |(ticks, _)| ladder.rank(ticks));
        let good_edge = match taker.side {
            Side::Buy => back.band.0,
            Side::Sell => back.band.1,
        };
        if waiting < want && quoted.min(ladder.best_rank()) < ladder.rank(good_edge) {
            return false;
        }
        let mut clients = waiting;
        for (ticks, qty) in ladder.levels(&self.nodes).take_while(|&(ticks, _)| ladder.rank(ticks) <= bound) {
            let short = want - clients - self.quoted_within(book, taker, ladder.rank(ticks));
            if short <= 0 {
                return true;
            }
            if own_matters && self.is_own_ahead(ladder.front(&self.nodes, ticks), taker, short) {
                return false;
            }
            clients += qty.raw() as i128;
        }
        clients + self.quoted_within(book, taker, bound) >= want
    }

    /// What market orders that wait give to a limit order, up to `want`; None if one of them is its own.
    fn can_have_waiting(&self, book: u32, taker: &Taker, want: i128) -> Option<i128> {
        let back = &self.backs[book as usize];
        let Some(limit) = taker.limit else {
            return Some(0);
        };
        let mut next = back.lines[taker.side.opposite() as usize].front();
        let mut have = 0;
        if next.is_some() && !(back.band.0..=back.band.1).contains(&limit) {
            return None;
        }
        while let Some(slot) = next.filter(|_| have < want) {
            if self.books[book as usize].is_own(taker.account, self.nodes[slot].account) {
                return None;
            }
            have += self.nodes[slot].qty.raw() as i128;
            next = self.nodes[slot].next();
        }
        Some(have)
    }

    /// Whether an order of the taker's account is among those that give the first `short`.
    fn is_own_ahead(&self, front: Option<u32>, taker: &Taker, mut short: i128) -> bool {
        let mut next = front;
        while let Some(slot) = next.filter(|_| short > 0) {
            let node = &self.nodes[slot];
            if node.account == taker.account {
                return true;
            }
            short -= node.qty.raw() as i128;
            next = node.next();
        }
        false
    }

    /// What the quote has at this rank and better.
    fn quoted_within(&self, book: u32, taker: &Taker, rank: i64) -> i128 {
        let (front, back) = (&self.books[book as usize], &self.backs[book as usize]);
        let (side, settings) = (taker.side.opposite(), &back.spec.settings);
        let shown = &back.shown[side as usize];
        let Some((ticks, _)) = shown.portion(side, settings) else {
            return 0;
        };
        let first = front.sides[side as usize].rank(ticks);
        match first <= rank {
            true => shown.within(settings, rank.abs_diff(first)),
            false => 0,
        }
    }

    /// The worst rank a taker accepts and the band allows.
    fn bound_in_band(&self, book: u32, taker: &Taker) -> i64 {
        let (front, back) = (&self.books[book as usize], &self.backs[book as usize]);
        let ladder = &front.sides[taker.side.opposite() as usize];
        let edge = match taker.side {
            Side::Buy => back.band.1,
            Side::Sell => back.band.0,
        };
        front.bound(taker).min(ladder.rank(edge))
    }
}

pub(super) fn entry_of(slot: u32, node: &Node, market: bool) -> Entry {
    Entry {
        slot,
        book: node.book,
        side: node.side(),
        limit: (!market).then_some(node.ticks),
        qty: node.qty,
        tif: node.tif,
        account: node.account,
    }
}

/// A price in ticks, rounded up.
pub(super) fn ticks_up(price: i64, tick: i64) -> i64 {
    price.div_euclid(tick) + (price.rem_euclid(tick) != 0) as i64
}
