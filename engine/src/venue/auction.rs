//! Sessions and halts: orders collect, trade at one price, and some of them end.
//!
//! Rules: docs/engine-rules.md#auctions.

use crate::command::TradingSession;
use crate::number::Qty;
use crate::order::NIL;
use crate::order_nodes::NodePlace;
use crate::reason::Reason;
use crate::terms::{Side, Tif};

use super::book::BookMode;
use super::matching::entry_of;
use super::{BookWork, EFFORT_REPORTED, OrderEntry, Venue, VenueOutcome};

/// A price at which the collected orders could trade: the demand and supply at exactly this price.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    ticks: i64,
    demand: i128,
    supply: i128,
}

/// Orders that end, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpiryPass {
    Ato,
    Atc,
    Day,
    /// ATC orders that were never in an auction.
    Parked,
}

/// Sets of orders that a pass checks, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrderSet {
    Bids,
    Asks,
    Buyers,
    Sellers,
    Parked,
}

/// The next party to trade in an uncross.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UncrossParty {
    Waiting(u32),
    Resting(u32),
    Quote,
}

impl Venue {
    /// Sets whether the exchange holds auctions from now on.
    pub fn set_auctions(&mut self, book: u32, auctions: bool) {
        self.details[book as usize].spec.auctions = auctions;
    }

    /// Returns whether an order for this auction may arrive now.
    pub(super) fn auction_ahead(&self, book: u32, tif: Tif) -> bool {
        let detail = &self.details[book as usize];
        let collects = match detail.session {
            TradingSession::Closed | TradingSession::OpeningAuction => true,
            TradingSession::Continuous | TradingSession::ClosingAuction => false,
        };
        detail.spec.auctions && (tif == Tif::Atc || collects)
    }

    /// Holds an ATC order for its auction.
    pub(super) fn park(&mut self, entry: &OrderEntry) {
        let place = if entry.limit.is_some() { NodePlace::ParkedLimit } else { NodePlace::ParkedMarket };
        self.nodes.set(entry.slot, entry.node(place, entry.limit.unwrap_or_default(), entry.qty));
        self.details[entry.book as usize].parked.push_back(&mut self.nodes, entry.slot);
    }

    pub(super) fn remember_auction(&mut self, book: u32, tif: Tif) {
        let detail = &mut self.details[book as usize];
        detail.ato |= tif == Tif::Ato;
        detail.atc |= tif == Tif::Atc;
    }

    pub(super) fn change_session(&mut self, book: u32, session: TradingSession) {
        let detail = &mut self.details[book as usize];
        let old = std::mem::replace(&mut detail.session, session);
        if old == session {
            return;
        }
        let halted = detail.halted;
        self.update_collecting(book);
        if session == TradingSession::ClosingAuction {
            self.set_work(book, BookWork::Join);
        } else if !halted && (session == TradingSession::Continuous || old == TradingSession::ClosingAuction)
        {
            self.start_uncross(book);
        } else {
            self.start_pass(book, Some(ExpiryPass::Ato));
        }
    }

    pub(super) fn change_halt(&mut self, book: u32, on: bool) {
        let detail = &mut self.details[book as usize];
        let old = std::mem::replace(&mut detail.halted, on);
        let reopens = old && !on && detail.session == TradingSession::Continuous;
        self.update_collecting(book);
        if reopens {
            self.start_uncross(book);
        }
    }

    pub(super) fn update_collecting(&mut self, book: u32) {
        let detail = &self.details[book as usize];
        let collecting = detail.session != TradingSession::Continuous || detail.halted;
        self.books[book as usize].mode.set(BookMode::COLLECTING, collecting);
    }

    /// Does one part of [`BookWork::Join`]: moves a parked order to its place.
    pub(super) fn work_join(&mut self, book: u32) -> u32 {
        let Some(slot) = self.details[book as usize].parked.front() else {
            self.set_work(book, BookWork::None);
            return 0;
        };
        let node = self.nodes[slot];
        let entry = entry_of(slot, &node, node.place() == NodePlace::ParkedMarket);
        self.take_out(slot).expect("it was parked");
        self.remember_auction(book, entry.tif);
        self.enqueue(&entry, entry.qty);
        EFFORT_REPORTED
    }
}

/// The uncross.
impl Venue {
    fn start_uncross(&mut self, book: u32) {
        let (ticks, left) = self.clearing(book).unwrap_or_default();
        self.set_work(book, BookWork::Uncross { ticks, left });
    }

    /// Returns the price at which the collected orders trade, in ticks, and the volume: the largest
    /// volume, then the smallest surplus, then nearest to the last price, then the lowest. `None`
    /// if nothing can trade.
    fn clearing(&mut self, book: u32) -> Option<(i64, i128)> {
        self.gather(book);
        let market = &self.markets[book as usize];
        let last = market.last.raw().div_euclid(self.books[book as usize].tick().raw());
        let mut demand: i128 =
            self.waiting(book, Side::Buy) + self.scratch.iter().map(|c| c.demand).sum::<i128>();
        let mut supply = self.waiting(book, Side::Sell);
        let mut best = None;
        for same in self.scratch.chunk_by(|a, b| a.ticks == b.ticks) {
            supply += same.iter().map(|c| c.supply).sum::<i128>();
            let (ticks, volume, surplus) = (same[0].ticks, demand.min(supply), (demand - supply).abs());
            let distance = if market.traded { ticks.abs_diff(last) } else { 0 };
            let merit = (-volume, surplus, distance, ticks);
            if volume > 0 && best.is_none_or(|best| merit < best) {
                best = Some(merit);
            }
            demand -= same.iter().map(|c| c.demand).sum::<i128>();
        }
        best.map(|(volume, _, _, ticks)| (ticks, -volume))
    }

    /// Collects the candidates, lowest price first: limits in the book, the quote, the last price.
    fn gather(&mut self, book: u32) {
        let (front, detail) = (&self.books[book as usize], &self.details[book as usize]);
        let candidates = &mut self.scratch;
        candidates.clear();
        for side in Side::BOTH {
            let shown = &detail.shown[side as usize];
            let quote = Some((shown.ticks, shown.first())).filter(|(_, qty)| qty.is_positive());
            for (ticks, qty) in front.sides[side as usize].levels(&self.nodes).chain(quote) {
                let qty = qty.raw() as i128;
                let (demand, supply) = match side {
                    Side::Buy => (qty, 0),
                    Side::Sell => (0, qty),
                };
                candidates.push(Candidate { ticks, demand, supply });
            }
        }
        let market = &self.markets[book as usize];
        let last = market.last.raw().div_euclid(front.tick().raw());
        if market.traded && last.checked_mul(front.tick().raw()).is_some() {
            candidates.push(Candidate { ticks: last, demand: 0, supply: 0 });
        }
        candidates.sort_unstable_by_key(|candidate| candidate.ticks);
    }

    /// Returns the quantity of the market orders of one side.
    fn waiting(&self, book: u32, side: Side) -> i128 {
        let first = self.details[book as usize].market_queues[side as usize].front();
        let line = std::iter::successors(first, |&slot| self.nodes[slot].next());
        line.map(|slot| self.nodes[slot].qty.raw() as i128).sum()
    }

    /// Does one part of [`BookWork::Uncross`]: the next buyer trades with the next seller.
    pub(super) fn work_uncross(&mut self, book: u32, ticks: i64, left: i128) -> u32 {
        let parties = match left > 0 {
            true => self.next_party(book, Side::Buy, ticks).zip(self.next_party(book, Side::Sell, ticks)),
            false => None,
        };
        let Some((buyer, seller)) = parties else {
            assert!(left == 0, "the volume was counted before");
            self.start_pass(book, Some(ExpiryPass::Ato));
            return 1;
        };
        let qty = self.party_qty(book, Side::Buy, buyer).min(self.party_qty(book, Side::Sell, seller));
        let qty = i64::try_from(left).map_or(qty, |left| qty.min(Qty::from_raw(left)));
        self.party_trades(book, Side::Buy, buyer, qty, ticks);
        self.party_trades(book, Side::Sell, seller, qty, ticks);
        if (buyer, seller) != (UncrossParty::Quote, UncrossParty::Quote) {
            let price = self.books[book as usize].price(ticks);
            self.print_trade(book, price, qty, None);
        }
        self.set_work(book, BookWork::Uncross { ticks, left: left - qty.raw() as i128 });
        EFFORT_REPORTED
    }

    /// Returns the next party: market orders first, then better limits, then arrival; the quote
    /// after the clients at its price.
    fn next_party(&self, book: u32, side: Side, ticks: i64) -> Option<UncrossParty> {
        let (front, detail) = (&self.books[book as usize], &self.details[book as usize]);
        if let Some(slot) = detail.market_queues[side as usize].front() {
            return Some(UncrossParty::Waiting(slot));
        }
        let ladder = &front.sides[side as usize];
        let shown = &detail.shown[side as usize];
        let quoted = if shown.first().is_positive() { ladder.rank(shown.ticks) } else { i64::MAX };
        let best = ladder.best_rank();
        match best.min(quoted) <= ladder.rank(ticks) {
            false => None,
            true if best <= quoted => ladder.best_front(&self.nodes).map(UncrossParty::Resting),
            true => Some(UncrossParty::Quote),
        }
    }

    fn party_qty(&self, book: u32, side: Side, next_party: UncrossParty) -> Qty {
        match next_party {
            UncrossParty::Waiting(slot) | UncrossParty::Resting(slot) => self.nodes[slot].qty,
            UncrossParty::Quote => self.details[book as usize].shown[side as usize].first(),
        }
    }

    fn party_trades(&mut self, book: u32, side: Side, next_party: UncrossParty, qty: Qty, ticks: i64) {
        let front = &mut self.books[book as usize];
        let price = front.price(ticks);
        match next_party {
            UncrossParty::Waiting(slot) => self.fill_waiting(slot, qty, price),
            UncrossParty::Resting(slot) => front.fill(&mut self.nodes, &mut self.outcomes, slot, qty, price),
            UncrossParty::Quote => {
                let shown = &mut self.details[book as usize].shown[side as usize];
                shown.take(qty, shown.first());
            }
        }
    }
}

/// Orders that end.
impl Venue {
    /// Starts the first due pass from this one on; after the last, waiting market orders trade with
    /// the quote.
    fn start_pass(&mut self, book: u32, first: Option<ExpiryPass>) {
        let mut pass = first;
        while let Some(this) = pass {
            if self.is_due(book, this) {
                let set = if this == ExpiryPass::Parked { OrderSet::Parked } else { OrderSet::Bids };
                let slot = self.first_in(book, set);
                return self.set_work(book, BookWork::Expire { pass: this, set, slot });
            }
            pass = this.next();
        }
        match self.books[book as usize].mode.has(BookMode::COLLECTING) {
            true => self.set_work(book, BookWork::None),
            false => self.start_market_queue(book),
        }
    }

    fn is_due(&mut self, book: u32, pass: ExpiryPass) -> bool {
        let open = !self.books[book as usize].mode.has(BookMode::COLLECTING);
        let detail = &mut self.details[book as usize];
        match pass {
            ExpiryPass::Ato => open && std::mem::take(&mut detail.ato),
            ExpiryPass::Atc => std::mem::take(&mut detail.atc),
            ExpiryPass::Day | ExpiryPass::Parked => detail.session == TradingSession::Closed,
        }
    }

    /// Does one part of [`BookWork::Expire`].
    pub(super) fn work_expire(&mut self, book: u32, pass: ExpiryPass, set: OrderSet, slot: u32) -> u32 {
        if slot == NIL {
            match set.next() {
                Some(set) => {
                    let slot = self.first_in(book, set);
                    self.set_work(book, BookWork::Expire { pass, set, slot });
                }
                None => self.start_pass(book, pass.next()),
            }
            return 1;
        }
        let next = self.after(book, set, slot);
        self.set_work(book, BookWork::Expire { pass, set, slot: next });
        let (tif, reason) = pass.ends();
        if self.nodes[slot].tif != tif {
            return 1;
        }
        self.take_out(slot).expect("it is linked while it waits");
        self.push_outcome(slot, VenueOutcome::Expired(reason));
        EFFORT_REPORTED
    }

    fn first_in(&self, book: u32, set: OrderSet) -> u32 {
        let (front, detail) = (&self.books[book as usize], &self.details[book as usize]);
        let first = match set {
            OrderSet::Bids => front.sides[0].best_front(&self.nodes),
            OrderSet::Asks => front.sides[1].best_front(&self.nodes),
            OrderSet::Buyers => detail.market_queues[0].front(),
            OrderSet::Sellers => detail.market_queues[1].front(),
            OrderSet::Parked => detail.parked.front(),
        };
        first.unwrap_or(NIL)
    }

    /// Returns the next order of a set.
    fn after(&self, book: u32, set: OrderSet, slot: u32) -> u32 {
        let front = &self.books[book as usize];
        let behind = |side: usize| {
            let ladder = &front.sides[side];
            ladder
                .worse(&self.nodes, self.nodes[slot].ticks)
                .and_then(|ticks| ladder.front(&self.nodes, ticks))
        };
        let next = self.nodes[slot].next().or_else(|| match set {
            OrderSet::Bids => behind(0),
            OrderSet::Asks => behind(1),
            OrderSet::Buyers | OrderSet::Sellers | OrderSet::Parked => None,
        });
        next.unwrap_or(NIL)
    }
}

impl ExpiryPass {
    fn next(self) -> Option<ExpiryPass> {
        match self {
            ExpiryPass::Ato => Some(ExpiryPass::Atc),
            ExpiryPass::Atc => Some(ExpiryPass::Day),
            ExpiryPass::Day => Some(ExpiryPass::Parked),
            ExpiryPass::Parked => None,
        }
    }

    /// Returns the orders that it ends, and the reason.
    fn ends(self) -> (Tif, Reason) {
        match self {
            ExpiryPass::Ato => (Tif::Ato, Reason::ExpiredAuction),
            ExpiryPass::Atc | ExpiryPass::Parked => (Tif::Atc, Reason::ExpiredAuction),
            ExpiryPass::Day => (Tif::Day, Reason::ExpiredDay),
        }
    }
}

impl OrderSet {
    fn next(self) -> Option<OrderSet> {
        match self {
            OrderSet::Bids => Some(OrderSet::Asks),
            OrderSet::Asks => Some(OrderSet::Buyers),
            OrderSet::Buyers => Some(OrderSet::Sellers),
            OrderSet::Sellers | OrderSet::Parked => None,
        }
    }
}
