//! Entry to the venue: which orders are accepted, where an order is placed, and how it is removed.
//! Most orders enter a book with only clients, and only match and rest: they take a fast path.

use crate::index::index_u32;
use crate::number::Qty;
use crate::order::NIL;
use crate::order_nodes::{Node, NodePlace};
use crate::reason::Reason;
use crate::terms::Tif;

use super::book::{BookMode, SweepEnd, Taker};
use super::{BookWork, OrderEntry, Venue, VenueOutcome};

impl Venue {
    #[inline]
    pub(super) fn push_outcome(&mut self, slot: u32, outcome: VenueOutcome) {
        self.outcomes.push((slot, outcome));
    }

    /// Returns whether only clients are in the book, and the order only matches and rests.
    #[inline]
    pub(super) fn is_plain(&self, entry: &OrderEntry) -> bool {
        let Some(book) = self.books.get(entry.book as usize) else { return false };
        book.mode.is_plain()
            && entry.tif.is_plain()
            && entry.qty.is_positive()
            && entry.limit.is_none_or(|limit| book.is_price(limit))
    }

    /// Returns a resting order with new terms, if these cost it its place in the queue and need
    /// nothing rare.
    #[inline]
    pub(super) fn plain_change(
        &self,
        slot: u32,
        qty: Qty,
        limit: Option<i64>,
        tif: Tif,
    ) -> Option<OrderEntry> {
        let node = self.nodes.get(slot).filter(|node| node.is_at(NodePlace::Book))?;
        let entry =
            OrderEntry { slot, book: node.book, side: node.side(), limit, qty, tif, account: node.account };
        let keeps = qty < node.qty && limit == Some(node.ticks) && tif == node.tif;
        (!keeps && self.is_plain(&entry)).then_some(entry)
    }

    #[inline]
    pub(super) fn reinsert(&mut self, entry: &OrderEntry) {
        self.watched.touch(entry.book);
        self.books[entry.book as usize].sides[entry.side as usize].remove(&mut self.nodes, entry.slot);
        self.nodes[entry.slot].set_place(NodePlace::Nowhere);
        self.arrive_fast(entry);
    }

    #[cold]
    #[inline(never)]
    pub(super) fn enter_slow(&mut self, entry: &OrderEntry) {
        if let Some(reason) = self.refusal(entry) {
            return self.push_outcome(entry.slot, VenueOutcome::Rejected(reason));
        }
        self.push_outcome(entry.slot, VenueOutcome::Accepted);
        self.arrive(entry);
    }

    #[cold]
    #[inline(never)]
    pub(super) fn replace_slow(&mut self, slot: u32, qty: Qty, limit: Option<i64>, tif: Tif) {
        let entry = match self.changed(slot, qty, limit, tif) {
            Ok(entry) => entry,
            Err(reason) => return self.push_outcome(slot, VenueOutcome::ReplaceRefused(reason)),
        };
        // Wherever it waited: it may move to the book now, or trade there.
        self.watched.touch(entry.book);
        let node = &self.nodes[slot];
        let same_limit = match node.place() {
            NodePlace::Book | NodePlace::ParkedLimit => limit == Some(node.ticks),
            NodePlace::Nowhere
            | NodePlace::MarketQueue
            | NodePlace::ParkedMarket
            | NodePlace::Taking
            | NodePlace::Stop => limit.is_none(),
        };
        if qty < node.qty && same_limit && tif == node.tif {
            self.shrink(slot, qty);
            return self.push_outcome(slot, VenueOutcome::Replaced);
        }
        match self.take_out(slot) {
            Ok(()) => self.push_outcome(slot, VenueOutcome::Replaced),
            Err(reason) => return self.push_outcome(slot, VenueOutcome::ReplaceRefused(reason)),
        }
        self.arrive(&entry);
    }

    /// Returns the reason why an order is rejected.
    fn refusal(&mut self, entry: &OrderEntry) -> Option<Reason> {
        let Some(book) = self.books.get(entry.book as usize) else {
            return Some(Reason::UnknownSecurity);
        };
        let rejects_randomly = book.mode.has(BookMode::RANDOM_REJECTS);
        if self.nodes.place(entry.slot) != NodePlace::Nowhere || entry.slot == NIL {
            return Some(Reason::DuplicateId);
        }
        if let Some(reason) = self.malformed(entry) {
            return Some(reason);
        }
        (rejects_randomly && self.rejects_at_random(entry.book)).then_some(Reason::VenueRandomReject)
    }

    /// Returns the error in the terms themselves.
    fn malformed(&self, entry: &OrderEntry) -> Option<Reason> {
        if !entry.qty.is_positive() {
            return Some(Reason::QuantityNotPositive);
        }
        if entry.limit.is_some_and(|limit| !self.books[entry.book as usize].is_price(limit)) {
            return Some(Reason::Overflow);
        }
        (entry.tif.is_auction() && !self.auction_ahead(entry.book, entry.tif))
            .then_some(Reason::NoAuctionAhead)
    }

    #[cold]
    fn rejects_at_random(&mut self, book: u32) -> bool {
        let detail = &mut self.details[book as usize];
        detail.rng.below(1000) < detail.spec.settings.reject_permille as u64
    }

    /// Returns the order with its new terms, or the reason why it cannot have them.
    fn changed(&self, slot: u32, qty: Qty, limit: Option<i64>, tif: Tif) -> Result<OrderEntry, Reason> {
        if !self.is_here(slot) {
            return Err(Reason::OrderFinished);
        }
        let node = &self.nodes[slot];
        let (side, account) = (node.side(), node.account);
        let entry = OrderEntry { slot, book: node.book, side, limit, qty, tif, account };
        match self.malformed(&entry) {
            Some(reason) => Err(reason),
            None => Ok(entry),
        }
    }

    #[inline]
    pub(super) fn is_here(&self, slot: u32) -> bool {
        match self.nodes.place(slot) {
            NodePlace::Book
            | NodePlace::MarketQueue
            | NodePlace::ParkedLimit
            | NodePlace::ParkedMarket
            | NodePlace::Taking => true,
            NodePlace::Nowhere | NodePlace::Stop => false,
        }
    }

    /// Returns whether a book exists and may be changed. Work in progress is a caller's error.
    pub(super) fn is_idle(&self, book: u32) -> bool {
        assert!(!self.has_work(book), "a book with work left takes no call");
        (book as usize) < self.books.len()
    }

    /// Lets an accepted or changed order take what it can, and places it.
    fn arrive(&mut self, entry: &OrderEntry) {
        match self.is_plain(entry) {
            true => self.arrive_fast(entry),
            false => self.arrive_slow(entry),
        }
    }

    #[inline]
    pub(super) fn arrive_fast(&mut self, entry: &OrderEntry) {
        let book = &mut self.books[entry.book as usize];
        if book.crosses(entry.side, entry.limit) {
            return self.sweep_fast(entry);
        }
        let Some(limit) = entry.limit.filter(|_| entry.tif != Tif::Ioc) else {
            return self.rest_or_cancel(entry, entry.qty);
        };
        let own = &mut book.sides[entry.side as usize];
        if !own.insert(&mut self.nodes, entry.slot, entry.node(NodePlace::Book, limit, entry.qty)) {
            self.push_outcome(entry.slot, VenueOutcome::Canceled(Reason::Overflow));
        }
    }

    #[inline(never)]
    fn sweep_fast(&mut self, entry: &OrderEntry) {
        let mut taker = Taker::of(entry);
        let (book, market) = (&mut self.books[entry.book as usize], &mut self.markets[entry.book as usize]);
        let reported_before = self.outcomes.len();
        let end = book.sweep(market, &mut self.nodes, &mut self.outcomes, &mut taker);
        self.record_sweep(entry.book, entry.side, reported_before);
        match end {
            SweepEnd::Filled => {}
            SweepEnd::NoLiquidity => self.rest_or_cancel(entry, taker.left),
            SweepEnd::OwnOrder => self.push_outcome(entry.slot, VenueOutcome::Canceled(Reason::SelfTrade)),
            SweepEnd::StepDone => {
                let node = entry.node(NodePlace::Taking, entry.limit.unwrap_or_default(), taker.left);
                self.nodes.set(entry.slot, node);
                let market = entry.limit.is_none();
                self.set_work(entry.book, BookWork::Take { slot: entry.slot, market });
            }
        }
    }

    /// Places the rest of an order in continuous trading, or cancels it if it may not wait.
    pub(super) fn rest_or_cancel(&mut self, entry: &OrderEntry, left: Qty) {
        match entry.tif {
            Tif::Ioc => self.push_outcome(entry.slot, VenueOutcome::Canceled(Reason::Ioc)),
            Tif::Fok => self.push_outcome(entry.slot, VenueOutcome::Canceled(Reason::Fok)),
            Tif::Day | Tif::Gtc | Tif::Gtd | Tif::Ato | Tif::Atc => self.enqueue(entry, left),
        }
    }

    /// Places an order: in the book if it has a limit, otherwise in the queue of market orders.
    pub(super) fn enqueue(&mut self, entry: &OrderEntry, left: Qty) {
        let Some(limit) = entry.limit else {
            self.nodes.set(entry.slot, entry.node(NodePlace::MarketQueue, 0, left));
            return self.enqueue_market(entry.slot);
        };
        if self.books[entry.book as usize].mode.has(BookMode::QUOTED) {
            self.add_queue_ahead(entry.book, entry.side, limit);
        }
        let own = &mut self.books[entry.book as usize].sides[entry.side as usize];
        if !own.insert(&mut self.nodes, entry.slot, entry.node(NodePlace::Book, limit, left)) {
            self.push_outcome(entry.slot, VenueOutcome::Canceled(Reason::Overflow));
        }
    }

    /// Adds a market order to the end of its queue.
    fn enqueue_market(&mut self, slot: u32) {
        let Node { book, .. } = self.nodes[slot];
        let side = self.nodes[slot].side();
        let detail = &mut self.details[book as usize];
        detail.arrivals += 1;
        self.nodes[slot].ticks = detail.arrivals;
        self.nodes[slot].set_place(NodePlace::MarketQueue);
        detail.market_queues[side as usize].push_back(&mut self.nodes, slot);
        self.books[book as usize].mode.set(BookMode::WAITING, true);
    }

    /// Removes an order, wherever it is.
    #[inline]
    pub(super) fn take_out(&mut self, slot: u32) -> Result<(), Reason> {
        let Some(node) = self.nodes.get(slot).filter(|node| node.is_at(NodePlace::Book)) else {
            return self.take_out_queued(slot);
        };
        let (book, side) = (node.book as usize, node.side() as usize);
        self.books[book].sides[side].remove(&mut self.nodes, slot);
        self.nodes[slot].set_place(NodePlace::Nowhere);
        self.watched.touch(index_u32(book));
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn take_out_queued(&mut self, slot: u32) -> Result<(), Reason> {
        if !self.is_here(slot) {
            return Err(Reason::OrderFinished);
        }
        let Node { book, .. } = self.nodes[slot];
        let (place, side) = (self.nodes[slot].place(), self.nodes[slot].side());
        let detail = &mut self.details[book as usize];
        match place {
            NodePlace::MarketQueue => detail.market_queues[side as usize].remove(&mut self.nodes, slot),
            NodePlace::ParkedLimit | NodePlace::ParkedMarket => detail.parked.remove(&mut self.nodes, slot),
            NodePlace::Taking => return Err(Reason::RequestPending),
            NodePlace::Nowhere | NodePlace::Book | NodePlace::Stop => return Err(Reason::OrderFinished),
        };
        self.nodes[slot].set_place(NodePlace::Nowhere);
        let waiting = self.details[book as usize].market_queues.iter().any(|line| line.front().is_some());
        self.books[book as usize].mode.set(BookMode::WAITING, waiting);
        Ok(())
    }

    /// Reduces the quantity, and nothing else.
    #[inline]
    fn shrink(&mut self, slot: u32, qty: Qty) {
        let node = &mut self.nodes[slot];
        if node.place() != NodePlace::Book {
            node.qty = qty;
            return;
        }
        let by = Qty::from_raw(node.qty.raw() - qty.raw());
        let (book, side) = (node.book, node.side());
        self.books[book as usize].sides[side as usize].reduce(&mut self.nodes, slot, by);
    }
}

impl OrderEntry {
    #[inline]
    pub(super) fn node(&self, place: NodePlace, ticks: i64, left: Qty) -> Node {
        let mut node = Node::new(place, self.side);
        node.ticks = ticks;
        node.qty = left;
        node.book = self.book;
        node.account = self.account;
        node.tif = self.tif;
        node
    }
}

impl Tif {
    /// Returns whether it only matches and rests.
    #[inline]
    fn is_plain(self) -> bool {
        match self {
            Tif::Day | Tif::Gtc | Tif::Gtd | Tif::Ioc => true,
            Tif::Fok | Tif::Ato | Tif::Atc => false,
        }
    }
}
