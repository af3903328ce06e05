//! The door of the venue: who may come in, where an order finds its place, and how it leaves. Most orders come to a book in
//! which there are only clients, and ask for no more than to meet them and to rest: they have a short way.

use crate::number::Qty;
use crate::order::NIL;
use crate::order_nodes::{Node, Place};
use crate::reason::Reason;
use crate::terms::Tif;

use super::book::{Mode, Stop, Taker};
use super::{Entry, Outcome, Venue, Work};

impl Venue {
    #[inline]
    pub(super) fn say(&mut self, slot: u32, outcome: Outcome) {
        self.outcomes.push((slot, outcome));
    }

    /// Whether only clients are in the book, and the order asks for no more than to meet them and to rest.
    #[inline]
    pub(super) fn is_plain(&self, entry: &Entry) -> bool {
        let Some(book) = self.books.get(entry.book as usize) else { return false };
        book.mode.is_plain()
            && entry.tif.is_plain()
            && entry.qty.is_positive()
            && entry.limit.is_none_or(|limit| book.is_price(limit))
    }

    /// A resting order with new terms, if these cost it its place in line and ask for nothing else that is rare.
    #[inline]
    pub(super) fn plain_change(&self, slot: u32, qty: Qty, limit: Option<i64>, tif: Tif) -> Option<Entry> {
        let node = self.nodes.get(slot).filter(|node| node.is_at(Place::Book))?;
        let entry =
            Entry { slot, book: node.book, side: node.side(), limit, qty, tif, account: node.account };
        let keeps = qty < node.qty && limit == Some(node.ticks) && tif == node.tif;
        (!keeps && self.is_plain(&entry)).then_some(entry)
    }

    #[inline]
    pub(super) fn reinsert(&mut self, entry: &Entry) {
        self.followed.touch(entry.book);
        self.books[entry.book as usize].sides[entry.side as usize].remove(&mut self.nodes, entry.slot);
        self.nodes[entry.slot].set_place(Place::Nowhere);
        self.arrive_fast(entry);
    }

    #[cold]
    #[inline(never)]
    pub(super) fn enter_slow(&mut self, entry: &Entry) {
        if let Some(reason) = self.refusal(entry) {
            return self.say(entry.slot, Outcome::Rejected(reason));
        }
        self.say(entry.slot, Outcome::Accepted);
        self.arrive(entry);
    }

    #[cold]
    #[inline(never)]
    pub(super) fn replace_slow(&mut self, slot: u32, qty: Qty, limit: Option<i64>, tif: Tif) {
        let entry = match self.changed(slot, qty, limit, tif) {
            Ok(entry) => entry,
            Err(reason) => return self.say(slot, Outcome::ReplaceRefused(reason)),
        };
        // Wherever it waited: it may come to the book now, or meet somebody there.
        self.followed.touch(entry.book);
        let node = &self.nodes[slot];
        let same_limit = match node.place() {
            Place::Book | Place::ParkedLimit => limit == Some(node.ticks),
            _ => limit.is_none(),
        };
        if qty < node.qty && same_limit && tif == node.tif {
            self.shrink(slot, qty);
            return self.say(slot, Outcome::Replaced);
        }
        match self.leave(slot) {
            Ok(()) => self.say(slot, Outcome::Replaced),
            Err(reason) => return self.say(slot, Outcome::ReplaceRefused(reason)),
        }
        self.arrive(&entry);
    }

    /// Why an order may not come in.
    fn refusal(&mut self, entry: &Entry) -> Option<Reason> {
        let Some(book) = self.books.get(entry.book as usize) else {
            return Some(Reason::UnknownSecurity);
        };
        let diced = book.mode.has(Mode::DICED);
        if self.nodes.place(entry.slot) != Place::Nowhere || entry.slot == NIL {
            return Some(Reason::DuplicateId);
        }
        if let Some(reason) = self.misshapen(entry) {
            return Some(reason);
        }
        (diced && self.dice_refuse(entry.book)).then_some(Reason::VenueRandomReject)
    }

    /// What is wrong with the terms themselves.
    fn misshapen(&self, entry: &Entry) -> Option<Reason> {
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
    fn dice_refuse(&mut self, book: u32) -> bool {
        let back = &mut self.backs[book as usize];
        back.rng.below(1000) < back.spec.settings.reject_permille as u64
    }

    /// The order with its new terms, or why it cannot have them.
    fn changed(&self, slot: u32, qty: Qty, limit: Option<i64>, tif: Tif) -> Result<Entry, Reason> {
        if !self.is_here(slot) {
            return Err(Reason::OrderFinished);
        }
        let node = &self.nodes[slot];
        let (side, account) = (node.side(), node.account);
        let entry = Entry { slot, book: node.book, side, limit, qty, tif, account };
        match self.misshapen(&entry) {
            Some(reason) => Err(reason),
            None => Ok(entry),
        }
    }

    #[inline]
    pub(super) fn is_here(&self, slot: u32) -> bool {
        match self.nodes.place(slot) {
            Place::Book | Place::Line | Place::ParkedLimit | Place::ParkedMarket | Place::Taking => true,
            Place::Nowhere | Place::Stop => false,
        }
    }

    /// Whether a book exists and may be told something. Work in progress is a caller's error.
    pub(super) fn is_idle(&self, book: u32) -> bool {
        assert!(!self.has_work(book), "a book with work left is told nothing");
        (book as usize) < self.books.len()
    }

    /// An accepted or changed order takes what it can, and finds its place.
    fn arrive(&mut self, entry: &Entry) {
        match self.is_plain(entry) {
            true => self.arrive_fast(entry),
            false => self.arrive_richly(entry),
        }
    }

    #[inline]
    pub(super) fn arrive_fast(&mut self, entry: &Entry) {
        let book = &mut self.books[entry.book as usize];
        if book.crosses(entry.side, entry.limit) {
            return self.sweep_plainly(entry);
        }
        let Some(limit) = entry.limit.filter(|_| entry.tif != Tif::Ioc) else {
            return self.stay(entry, entry.qty);
        };
        let own = &mut book.sides[entry.side as usize];
        if !own.insert(&mut self.nodes, entry.slot, entry.node(Place::Book, limit, entry.qty)) {
            self.say(entry.slot, Outcome::Canceled(Reason::Overflow));
        }
    }

    #[inline(never)]
    fn sweep_plainly(&mut self, entry: &Entry) {
        let mut taker = Taker::of(entry);
        let (book, market) = (&mut self.books[entry.book as usize], &mut self.markets[entry.book as usize]);
        match book.sweep(market, &mut self.nodes, &mut self.outcomes, &mut taker) {
            Stop::Filled => {}
            Stop::Dry => self.stay(entry, taker.left),
            Stop::Own => self.say(entry.slot, Outcome::Canceled(Reason::SelfTrade)),
            Stop::Tired => {
                let node = entry.node(Place::Taking, entry.limit.unwrap_or_default(), taker.left);
                self.nodes.set(entry.slot, node);
                let market = entry.limit.is_none();
                self.set_work(entry.book, Work::Take { slot: entry.slot, market });
            }
        }
    }

    /// What is left of an order in continuous trading goes on, or ends if it may not wait.
    pub(super) fn stay(&mut self, entry: &Entry, left: Qty) {
        match entry.tif {
            Tif::Ioc => self.say(entry.slot, Outcome::Canceled(Reason::Ioc)),
            Tif::Fok => self.say(entry.slot, Outcome::Canceled(Reason::Fok)),
            Tif::Day | Tif::Gtc | Tif::Gtd | Tif::Ato | Tif::Atc => self.settle(entry, left),
        }
    }

    /// An order finds its place: in the book if it has a limit, else in the line.
    pub(super) fn settle(&mut self, entry: &Entry, left: Qty) {
        let Some(limit) = entry.limit else {
            self.nodes.set(entry.slot, entry.node(Place::Line, 0, left));
            return self.wait(entry.slot);
        };
        if self.books[entry.book as usize].mode.has(Mode::QUOTED) {
            self.queue_up(entry.book, entry.side, limit);
        }
        let own = &mut self.books[entry.book as usize].sides[entry.side as usize];
        if !own.insert(&mut self.nodes, entry.slot, entry.node(Place::Book, limit, left)) {
            self.say(entry.slot, Outcome::Canceled(Reason::Overflow));
        }
    }

    /// A market order goes to the end of its line.
    fn wait(&mut self, slot: u32) {
        let Node { book, .. } = self.nodes[slot];
        let side = self.nodes[slot].side();
        let back = &mut self.backs[book as usize];
        back.arrivals += 1;
        self.nodes[slot].ticks = back.arrivals;
        self.nodes[slot].set_place(Place::Line);
        back.lines[side as usize].push_back(&mut self.nodes, slot);
        self.books[book as usize].mode.set(Mode::WAITING, true);
    }

    /// Takes an order away, wherever it is.
    #[inline]
    pub(super) fn leave(&mut self, slot: u32) -> Result<(), Reason> {
        let Some(node) = self.nodes.get(slot).filter(|node| node.is_at(Place::Book)) else {
            return self.leave_line(slot);
        };
        let (book, side) = (node.book as usize, node.side() as usize);
        self.books[book].sides[side].remove(&mut self.nodes, slot);
        self.nodes[slot].set_place(Place::Nowhere);
        self.followed.touch(book as u32);
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn leave_line(&mut self, slot: u32) -> Result<(), Reason> {
        if !self.is_here(slot) {
            return Err(Reason::OrderFinished);
        }
        let Node { book, .. } = self.nodes[slot];
        let (place, side) = (self.nodes[slot].place(), self.nodes[slot].side());
        let back = &mut self.backs[book as usize];
        match place {
            Place::Line => back.lines[side as usize].remove(&mut self.nodes, slot),
            Place::ParkedLimit | Place::ParkedMarket => back.parked.remove(&mut self.nodes, slot),
            Place::Taking => return Err(Reason::RequestPending),
            Place::Nowhere | Place::Book | Place::Stop => return Err(Reason::OrderFinished),
        };
        self.nodes[slot].set_place(Place::Nowhere);
        let waiting = self.backs[book as usize].lines.iter().any(|line| line.front().is_some());
        self.books[book as usize].mode.set(Mode::WAITING, waiting);
        Ok(())
    }

    /// A smaller quantity, and nothing else.
    #[inline]
    fn shrink(&mut self, slot: u32, qty: Qty) {
        let node = &mut self.nodes[slot];
        if node.place() != Place::Book {
            node.qty = qty;
            return;
        }
        let by = Qty::from_raw(node.qty.raw() - qty.raw());
        let (book, side) = (node.book, node.side());
        self.books[book as usize].sides[side as usize].reduce(&mut self.nodes, slot, by);
    }
}

impl Entry {
    #[inline]
    pub(super) fn node(&self, place: Place, ticks: i64, left: Qty) -> Node {
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
    /// Whether matching and resting are all there is to it.
    #[inline]
    fn is_plain(self) -> bool {
        match self {
            Tif::Day | Tif::Gtc | Tif::Gtd | Tif::Ioc => true,
            Tif::Fok | Tif::Ato | Tif::Atc => false,
        }
    }
}
