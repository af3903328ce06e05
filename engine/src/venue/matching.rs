//! Taking: an order trades with clients, waiting market orders, and the quote's portions, the best
//! price first.
//!
//! Rules: docs/engine-rules.md#matching.

use crate::command::TradingSession;
use crate::number::{Price, Qty};
use crate::order::NIL;
use crate::order_nodes::{Node, NodePlace};
use crate::reason::Reason;
use crate::settings::SelfTrade;
use crate::terms::{Side, Tif};

use super::book::{BookMode, Taker};
use super::quote_side::QuoteSide;
use super::{BookWork, EFFORT_REPORTED, OrderEntry, Venue, VenueOutcome};

/// The next counterparty of a taker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counterparty {
    /// A waiting market order, at the taker's own limit.
    Waiting(u32),
    /// An order that rests at its limit.
    Resting(u32),
    /// A portion of the quote: its price, and its rest.
    Portion(i64, Qty),
    Nothing,
    /// An order of the same account.
    Own,
    /// A price outside the band.
    Band,
}

impl Venue {
    /// Handles an order for a book with more than clients, or an order with special terms.
    #[cold]
    pub(super) fn arrive_slow(&mut self, entry: &OrderEntry) {
        let book = entry.book;
        if entry.tif == Tif::Atc && self.details[book as usize].session != TradingSession::ClosingAuction {
            return self.park(entry);
        }
        self.remember_auction(book, entry.tif);
        if self.books[book as usize].mode.has(BookMode::COLLECTING) {
            return match entry.tif.is_immediate() {
                true => self.push_outcome(entry.slot, VenueOutcome::Canceled(Reason::NoLiquidity)),
                false => self.enqueue(entry, entry.qty),
            };
        }
        self.details[book as usize].band = self.band(book);
        if entry.tif == Tif::Fok && !self.is_fully_fillable(book, &Taker::of(entry)) {
            return self.push_outcome(entry.slot, VenueOutcome::Canceled(Reason::Fok));
        }
        self.nodes.set(entry.slot, entry.node(NodePlace::Taking, entry.limit.unwrap_or_default(), entry.qty));
        self.set_work(book, BookWork::Take { slot: entry.slot, market: entry.limit.is_none() });
        self.run(book);
    }

    /// Does one part of [`BookWork::Take`].
    pub(super) fn work_take(&mut self, book: u32, slot: u32, market: bool) -> u32 {
        let taker = self.taker(slot, market);
        let next = self.next_for(book, &taker);
        let node = self.nodes[slot];
        let end = match next {
            Counterparty::Waiting(_) | Counterparty::Resting(_) | Counterparty::Portion(..) => {
                let left = self.take_next(book, taker, next);
                self.nodes[slot].qty = left;
                if left.is_positive() {
                    return EFFORT_REPORTED;
                }
                None
            }
            Counterparty::Own => Some(Reason::SelfTrade),
            Counterparty::Band => Some(Reason::PriceBand),
            Counterparty::Nothing => {
                self.set_work(book, BookWork::None);
                self.nodes[slot].set_place(NodePlace::Nowhere);
                self.rest_or_cancel(&entry_of(slot, &node, market), node.qty);
                return EFFORT_REPORTED;
            }
        };
        self.set_work(book, BookWork::None);
        self.nodes[slot].set_place(NodePlace::Nowhere);
        if let Some(reason) = end {
            self.push_outcome(slot, VenueOutcome::Canceled(reason));
        }
        EFFORT_REPORTED
    }

    /// Does one part of [`BookWork::MarketQueue`]: waiting market orders trade as if they arrived
    /// now, the oldest first.
    pub(super) fn work_market_queue(&mut self, book: u32, taking: u32, mut next: [u32; 2]) -> u32 {
        if taking == NIL {
            let Some(slot) = self.older_of(next) else {
                self.set_work(book, BookWork::None);
                return 0;
            };
            next[self.nodes[slot].side() as usize] = self.nodes[slot].next().unwrap_or(NIL);
            self.details[book as usize].band = self.band(book);
            self.set_work(book, BookWork::MarketQueue { taking: slot, next });
            return 1;
        }
        let taker = self.taker(taking, true);
        let met = self.next_for(book, &taker);
        let end = match met {
            Counterparty::Waiting(_) | Counterparty::Resting(_) | Counterparty::Portion(..) => {
                let left = self.take_next(book, taker, met);
                if left.is_positive() {
                    self.nodes[taking].qty = left;
                    return EFFORT_REPORTED;
                }
                None
            }
            Counterparty::Own => Some(Reason::SelfTrade),
            Counterparty::Band => Some(Reason::PriceBand),
            Counterparty::Nothing => {
                self.set_work(book, BookWork::MarketQueue { taking: NIL, next });
                return 1;
            }
        };
        self.take_out(taking).expect("it is in the queue");
        if let Some(reason) = end {
            self.push_outcome(taking, VenueOutcome::Canceled(reason));
        }
        self.set_work(book, BookWork::MarketQueue { taking: NIL, next });
        EFFORT_REPORTED
    }

    /// Lets the waiting market orders take what they can.
    pub(super) fn start_market_queue(&mut self, book: u32) {
        let next = self.details[book as usize].market_queues.map(|line| line.front().unwrap_or(NIL));
        self.set_work(book, BookWork::MarketQueue { taking: NIL, next });
    }

    /// Returns the older of the two.
    fn older_of(&self, next: [u32; 2]) -> Option<u32> {
        let waiting = next.into_iter().filter(|&slot| slot != NIL);
        waiting.min_by_key(|&slot| self.nodes[slot].ticks)
    }

    fn taker(&self, slot: u32, market: bool) -> Taker {
        let node = &self.nodes[slot];
        let limit = (!market).then_some(node.ticks);
        Taker { slot, side: node.side(), account: node.account, limit, left: node.qty }
    }

    fn next_for(&self, book: u32, taker: &Taker) -> Counterparty {
        let (front, detail) = (&self.books[book as usize], &self.details[book as usize]);
        let (low, high) = detail.band;
        let other = taker.side.opposite();
        let own = |slot: u32| front.is_own(taker.account, self.nodes[slot].account);
        if let (Some(limit), Some(slot)) = (taker.limit, detail.market_queues[other as usize].front()) {
            return match (low <= limit && limit <= high, own(slot)) {
                (false, _) => Counterparty::Band,
                (true, true) => Counterparty::Own,
                (true, false) => Counterparty::Waiting(slot),
            };
        }
        let ladder = &front.sides[other as usize];
        let portion = detail.shown[other as usize].portion(other, &detail.spec.settings);
        let quoted = portion.map_or(i64::MAX, |(ticks, _)| ladder.rank(ticks));
        let best = quoted.min(ladder.best_rank());
        let ticks = ladder.rank(best);
        if best > front.bound(taker) {
            return Counterparty::Nothing;
        }
        if ticks < low || ticks > high {
            return Counterparty::Band;
        }
        match (portion, ladder.best_front(&self.nodes)) {
            (Some((ticks, left)), _) if quoted == best => Counterparty::Portion(ticks, left),
            (_, Some(slot)) if own(slot) => Counterparty::Own,
            (_, Some(slot)) => Counterparty::Resting(slot),
            (_, None) => Counterparty::Nothing,
        }
    }

    /// Trades once. Returns what the taker has left.
    fn take_next(&mut self, book: u32, mut taker: Taker, next: Counterparty) -> Qty {
        let b = book as usize;
        match next {
            Counterparty::Resting(maker) => {
                let front = &mut self.books[b];
                let (qty, price) = front.trade_with(&mut self.nodes, &mut self.outcomes, &mut taker, maker);
                self.print_trade(book, price, qty, Some(taker.side));
                taker.left
            }
            Counterparty::Waiting(maker) => {
                let limit = taker.limit.expect("only a limit order meets waiting orders");
                let (price, qty) = (self.books[b].price(limit), taker.left.min(self.nodes[maker].qty));
                self.push_outcome(taker.slot, VenueOutcome::Filled { qty, price });
                self.fill_waiting(maker, qty, price);
                self.print_trade(book, price, qty, Some(taker.side));
                Qty::from_raw(taker.left.raw() - qty.raw())
            }
            Counterparty::Portion(ticks, left) => {
                let qty = self.take_portion(book, &taker, left);
                let price = self.books[b].price(ticks);
                self.push_outcome(taker.slot, VenueOutcome::Filled { qty, price });
                self.print_trade(book, price, qty, Some(taker.side));
                Qty::from_raw(taker.left.raw() - qty.raw())
            }
            Counterparty::Nothing | Counterparty::Own | Counterparty::Band => taker.left,
        }
    }

    /// Returns how much of a portion the taker gets. With random partial fills, the rest of the
    /// portion is gone too, as if another trader was faster.
    fn take_portion(&mut self, book: u32, taker: &Taker, left: Qty) -> Qty {
        let detail = &mut self.details[book as usize];
        let shown = &mut detail.shown[taker.side.opposite() as usize];
        // A FOK order was promised the whole.
        if !detail.spec.settings.partial_fill || self.nodes[taker.slot].tif == Tif::Fok {
            let qty = left.min(taker.left);
            shown.take(qty, left);
            return qty;
        }
        let lot = detail.spec.lot.raw();
        let lots = (left.raw() / lot).max(1) as u64;
        let drawn = (detail.rng.below(lots) as i64 + 1).saturating_mul(lot).min(left.raw());
        if taker.left.raw() < drawn {
            shown.take(taker.left, left);
            return taker.left;
        }
        shown.next_portion();
        Qty::from_raw(drawn)
    }

    /// Fills a waiting market order with this quantity at this price.
    pub(super) fn fill_waiting(&mut self, slot: u32, qty: Qty, price: Price) {
        let node = &mut self.nodes[slot];
        let left = Qty::from_raw(node.qty.raw() - qty.raw());
        node.qty = left;
        self.push_outcome(slot, VenueOutcome::Filled { qty, price });
        if left.is_zero() {
            self.take_out(slot).expect("it is in the queue");
        }
    }

    /// Returns the lowest and the highest price, in ticks, that the band allows now.
    fn band(&self, book: u32) -> (i64, i64) {
        let (front, detail) = (&self.books[book as usize], &self.details[book as usize]);
        let bp = detail.spec.settings.band_bp;
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

/// Look-ahead for FOK.
impl Venue {
    /// Returns whether the whole quantity can be filled at once, without trading with an own order.
    fn is_fully_fillable(&self, book: u32, taker: &Taker) -> bool {
        let detail = &self.details[book as usize];
        let want = taker.left.raw() as i128;
        let Some(waiting) = self.fillable_from_waiting(book, taker, want) else {
            return false;
        };
        let own_matters = detail.spec.settings.self_trade == SelfTrade::CancelNewest;
        let bound = self.bound_in_band(book, taker);
        let ladder = &self.books[book as usize].sides[taker.side.opposite() as usize];
        // A price can also be too good for the band; then nothing behind it is reached.
        let mut quote = detail.shown[taker.side.opposite() as usize];
        let portion = quote.portion(taker.side.opposite(), &detail.spec.settings);
        let first = portion.map_or(i64::MAX, |(ticks, _)| ladder.rank(ticks));
        let good_edge = match taker.side {
            Side::Buy => detail.band.0,
            Side::Sell => detail.band.1,
        };
        if waiting < want && first.min(ladder.best_rank()) < ladder.rank(good_edge) {
            return false;
        }
        let (mut clients, mut quoted) = (waiting, 0);
        for (ticks, qty) in ladder.levels(&self.nodes).take_while(|&(ticks, _)| ladder.rank(ticks) <= bound) {
            quoted += self.take_quoted(book, taker, &mut quote, ladder.rank(ticks));
            let short = want - clients - quoted;
            if short <= 0 {
                return true;
            }
            if own_matters && self.is_own_ahead(ladder.front(&self.nodes, ticks), taker, short) {
                return false;
            }
            clients += qty.raw() as i128;
        }
        quoted += self.take_quoted(book, taker, &mut quote, bound);
        clients + quoted >= want
    }

    /// Returns what waiting market orders give to a limit order, up to `want`; `None` if one of
    /// them belongs to the same account.
    fn fillable_from_waiting(&self, book: u32, taker: &Taker, want: i128) -> Option<i128> {
        let detail = &self.details[book as usize];
        let Some(limit) = taker.limit else {
            return Some(0);
        };
        let mut next = detail.market_queues[taker.side.opposite() as usize].front();
        let mut have = 0;
        if next.is_some() && !(detail.band.0..=detail.band.1).contains(&limit) {
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

    /// Returns whether an order of the taker's account is among those that give the first `short`.
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

    /// Takes the quantity at this rank and better from a copy of the quote, and returns it.
    fn take_quoted(&self, book: u32, taker: &Taker, quote: &mut QuoteSide, rank: i64) -> i128 {
        let (front, detail) = (&self.books[book as usize], &self.details[book as usize]);
        let (side, settings) = (taker.side.opposite(), &detail.spec.settings);
        let Some((ticks, _)) = quote.portion(side, settings) else {
            return 0;
        };
        let first = front.sides[side as usize].rank(ticks);
        match first <= rank {
            true => quote.take_within(side, settings, rank.abs_diff(first)),
            false => 0,
        }
    }

    /// Returns the worst rank that a taker accepts and the band allows.
    fn bound_in_band(&self, book: u32, taker: &Taker) -> i64 {
        let (front, detail) = (&self.books[book as usize], &self.details[book as usize]);
        let ladder = &front.sides[taker.side.opposite() as usize];
        let edge = match taker.side {
            Side::Buy => detail.band.1,
            Side::Sell => detail.band.0,
        };
        front.bound(taker).min(ladder.rank(edge))
    }
}

pub(super) fn entry_of(slot: u32, node: &Node, market: bool) -> OrderEntry {
    OrderEntry {
        slot,
        book: node.book,
        side: node.side(),
        limit: (!market).then_some(node.ticks),
        qty: node.qty,
        tif: node.tif,
        account: node.account,
    }
}

/// Converts a price to ticks, rounded up.
pub(super) fn ticks_up(price: i64, tick: i64) -> i64 {
    price.div_euclid(tick) + (price.rem_euclid(tick) != 0) as i64
}
