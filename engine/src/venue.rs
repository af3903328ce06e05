//! The simulated venue: the books of one shard, and their matching. The rules are in the crate's
//! README.
//!
//! Each call does a bounded amount of work and returns its results, by slot, in
//! [`Venue::outcomes`]. The rest is stored in the book, and [`Venue::work`] continues it:
//!
//! ```text
//! enter, replace ─► take ────────────────────────────────► rest, wait, or be cancelled
//! quote ──────────► through (buys, sells) ─► line
//! trade ──────────► print (buys, sells)
//! session, halt ──► join ─► uncross ─► expire ───────────► line
//! ```
//!
//! Delays, stops and everything before an order is sent belong to the shard.

mod auction;
mod book;
mod book_orders;
mod depth;
mod entry;
mod feed;
mod feed_levels;
mod codec;
mod matching;
mod portion_sizes;
mod quote_side;
mod tape;
#[cfg(test)]
mod tests;

use crate::command::{Quote, Trade, TradingSession};
use crate::id::{AccountId, SecurityId};
use crate::number::{Price, Qty};
use crate::order_nodes::{NodePlace, NodeQueue, Nodes};
use crate::pages::LargePages;
use crate::prefetch::fetch;
use crate::reason::Reason;
use crate::rng::Rng;
use crate::settings::VenueSettings;
use crate::terms::{Side, Tif};

use auction::{Candidate, ExpiryPass, OrderSet};
pub use book::MarketState;
use book::{BookMode, FeedQueue, OrderBook};
pub use book_orders::{RestingOrder, RestingOwner};
use depth::WatchedBooks;
pub use feed_levels::FEED_LEVELS_MAX;
use feed_levels::FeedLevels;
use quote_side::QuoteSide;
use tape::Tape;
pub use tape::TapeTrade;

/// Most executions of one call. Each may cause two statuses, two bookings and a tick, and all of
/// them stay below [`crate::event::EVENTS_PER_COMMAND_MAX`].
pub const FILLS_PER_STEP: u32 = 8;
/// Most outcomes of one call: an acceptance, two sides of each execution, an end.
pub const OUTCOMES_PER_STEP_MAX: usize = 2 + 2 * FILLS_PER_STEP as usize;
/// Effort of one call. A reported row costs `EFFORT_REPORTED`, a row that is only visited costs 1.
const EFFORT_PER_STEP: u32 = FILLS_PER_STEP * EFFORT_REPORTED;
const EFFORT_REPORTED: u32 = 64;

/// Specification of a book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookSpec {
    pub security: SecurityId,
    /// Above zero.
    pub tick_size: Price,
    /// Above zero; random sizes are whole lots.
    pub lot: Qty,
    /// Whether the exchange holds auctions, so that ATO and ATC are allowed.
    pub auctions: bool,
    pub settings: VenueSettings,
}

/// An order that enters the venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderEntry {
    /// Chosen by the caller, free until now.
    pub slot: u32,
    pub book: u32,
    pub side: Side,
    /// In ticks; none for a market order.
    pub limit: Option<i64>,
    pub qty: Qty,
    pub tif: Tif,
    pub account: AccountId,
}

/// Result of a call for one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VenueOutcome {
    Accepted,
    Rejected(Reason),
    Filled {
        qty: Qty,
        price: Price,
    },
    /// The order ended: as requested ([`Reason::Requested`]), or by a rule.
    Canceled(Reason),
    Expired(Reason),
    CancelRefused(Reason),
    Replaced,
    ReplaceRefused(Reason),
}

/// All books of one shard.
#[derive(Debug)]
pub struct Venue {
    books: Vec<OrderBook>,
    /// In the same order as `books`; separate, so that the books are closer together in memory.
    markets: Vec<MarketState>,
    /// Data that a plain book never needs, in the same order.
    details: Vec<BookDetail>,
    nodes: Nodes,
    outcomes: Vec<(u32, VenueOutcome)>,
    scratch: Vec<Candidate>,
    watched: WatchedBooks,
    tape: Tape,
}

/// The part of a book that is needed when there is more than orders of clients in continuous
/// trading.
#[derive(Debug)]
struct BookDetail {
    spec: BookSpec,
    session: TradingSession,
    halted: bool,
    /// The feed's quote: bid, ask.
    shown: [QuoteSide; 2],
    queues: [Option<FeedQueue>; 2],
    /// The feed's book: bids, asks.
    levels: [FeedLevels; 2],
    /// Waiting market orders.
    market_queues: [NodeQueue; 2],
    arrivals: i64,
    /// ATC orders before their auction.
    parked: NodeQueue,
    /// Whether orders for an auction have arrived since the last one ended.
    ato: bool,
    atc: bool,
    /// Lowest and highest price, in ticks, at which the current order may trade.
    band: (i64, i64),
    rng: Rng,
    work: BookWork,
}

/// Remaining work of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BookWork {
    None,
    /// A new or changed order takes what it can.
    Take {
        slot: u32,
        market: bool,
    },
    /// The quote fills resting orders of this side that it has traded through.
    Through {
        side: Side,
    },
    /// A trade of the feed, of this size (zero: unknown), fills resting orders of this side with
    /// its remaining size.
    Print {
        side: Side,
        price: Price,
        size: Qty,
        left: Qty,
        /// Whether the queue at exactly this price has had its part.
        queued: bool,
    },
    /// Waiting market orders take what they can: the current one, and the next on each side.
    MarketQueue {
        taking: u32,
        next: [u32; 2],
    },
    /// Parked orders move to the book.
    Join,
    /// Collected orders trade at one price.
    Uncross {
        ticks: i64,
        left: i128,
    },
    /// Orders of a kind end; `slot` is the next to check.
    Expire {
        pass: ExpiryPass,
        set: OrderSet,
        slot: u32,
    },
}

impl Venue {
    pub fn new(books: Vec<BookSpec>, orders_capacity: usize, pages: LargePages) -> Venue {
        let mut venue = Venue {
            books: Vec::with_capacity(books.len()),
            markets: Vec::with_capacity(books.len()),
            details: Vec::with_capacity(books.len()),
            nodes: Nodes::with_capacity(orders_capacity, pages),
            outcomes: Vec::with_capacity(2 * OUTCOMES_PER_STEP_MAX),
            scratch: Vec::new(),
            watched: WatchedBooks::default(),
            tape: Tape::default(),
        };
        venue.reserve_books(books.len(), pages);
        for spec in books {
            venue.add_book(spec);
        }
        venue
    }

    /// Reserves room for this many books in all.
    pub fn reserve_books(&mut self, books: usize, pages: LargePages) {
        self.nodes.pages.reserve(2 * books, pages);
    }

    /// Opens a book, in continuous trading, and returns its index.
    pub fn add_book(&mut self, spec: BookSpec) -> u32 {
        assert!(spec.tick_size.is_positive(), "a tick is above zero");
        assert!(spec.lot.is_positive(), "a lot is above zero");
        self.books.push(OrderBook::new(&spec, &mut self.nodes));
        self.markets.push(MarketState::default());
        self.details.push(BookDetail {
            rng: Rng::named(spec.settings.seed, spec.security.0 as u64),
            shown: Side::BOTH.map(|side| QuoteSide::new(&spec, side)),
            spec,
            session: TradingSession::Continuous,
            halted: false,
            queues: [None; 2],
            levels: Default::default(),
            market_queues: [NodeQueue::default(); 2],
            arrivals: 0,
            parked: NodeQueue::default(),
            ato: false,
            atc: false,
            band: (i64::MIN, i64::MAX),
            work: BookWork::None,
        });
        u32::try_from(self.books.len() - 1).expect("ids of securities have 20 bits")
    }

    /// Changes the settings of a book without work. The consumed part of the quote stays consumed,
    /// and the random stream continues.
    pub fn set_up(&mut self, book: u32, settings: VenueSettings) {
        assert!(!self.has_work(book), "a book with work left takes no call");
        self.watched.touch(book);
        let detail = &mut self.details[book as usize];
        self.books[book as usize].set_self_trade(settings.self_trade);
        detail.set_up(settings);
        self.update_mode(book);
    }

    /// Enters a new order.
    #[inline]
    pub fn enter(&mut self, entry: &OrderEntry) {
        self.watched.touch(entry.book);
        // A slot that was never used makes the slab grow, and need not be fast.
        let free = self.nodes.get(entry.slot).is_some_and(|node| node.is_at(NodePlace::Nowhere));
        if !free || !self.is_plain(entry) {
            return self.enter_slow(entry);
        }
        self.push_outcome(entry.slot, VenueOutcome::Accepted);
        self.arrive_fast(entry);
    }

    /// Enters a new order that only has to rest. Returns true if it rests, which is then its only
    /// result; returns false, and changes nothing, if there is more to do.
    #[inline]
    pub fn rest(&mut self, entry: &OrderEntry) -> bool {
        let free = self.nodes.get(entry.slot).is_some_and(|node| node.is_at(NodePlace::Nowhere));
        if !free || !self.is_plain(entry) || entry.tif == Tif::Ioc {
            return false;
        }
        let book = &mut self.books[entry.book as usize];
        let Some(limit) = entry.limit.filter(|_| !book.crosses(entry.side, entry.limit)) else {
            return false;
        };
        self.watched.touch(entry.book);
        let own = &mut book.sides[entry.side as usize];
        own.insert(&mut self.nodes, entry.slot, entry.node(NodePlace::Book, limit, entry.qty))
    }

    /// Prefetches a book.
    #[inline]
    pub fn fetch(&self, book: u32) {
        if let (Some(front), Some(market)) = (self.books.get(book as usize), self.markets.get(book as usize))
        {
            fetch(front);
            fetch(market);
        }
    }

    /// Prefetches the memory of a price, for an order that will arrive at it.
    #[inline]
    pub fn fetch_level(&self, book: u32, side: Side, limit: i64) {
        if let Some(book) = self.books.get(book as usize) {
            book.sides[side as usize].fetch(&self.nodes, limit);
        }
    }

    /// Prefetches the order that the next incoming order will trade with, or queue behind. Returns
    /// the slot of the one it trades with.
    #[inline]
    pub fn expect(&self, book: u32, side: Side, limit: Option<i64>) -> Option<u32> {
        let book = self.books.get(book as usize)?;
        if book.crosses(side, limit) {
            let maker = book.sides[side.opposite() as usize].best_front(&self.nodes)?;
            self.nodes.fetch(maker);
            return Some(maker);
        }
        self.nodes.fetch(book.sides[side as usize].tail(&self.nodes, limit?));
        None
    }

    /// Prefetches the memory that the removal of an order needs.
    #[inline]
    pub fn prefetch_near(&self, slot: u32) {
        if let Some(node) = self.nodes.get(slot).filter(|node| node.is_at(NodePlace::Book)) {
            self.nodes.fetch(node.prev);
            self.nodes.fetch(node.next);
            self.books[node.book as usize].sides[node.side() as usize].fetch(&self.nodes, node.ticks);
        }
    }

    /// Removes a resting order. Returns false, and changes nothing, if it does not rest.
    #[inline]
    pub fn withdraw(&mut self, slot: u32) -> bool {
        self.nodes.get(slot).is_some_and(|node| node.is_at(NodePlace::Book)) && self.take_out(slot).is_ok()
    }

    /// Cancels an order.
    #[inline]
    pub fn cancel(&mut self, slot: u32) {
        match self.take_out(slot) {
            Ok(()) => self.push_outcome(slot, VenueOutcome::Canceled(Reason::Requested)),
            Err(reason) => self.push_outcome(slot, VenueOutcome::CancelRefused(reason)),
        }
    }

    /// Gives an order other terms; `qty` is its new remaining quantity.
    #[inline]
    pub fn replace(&mut self, slot: u32, qty: Qty, limit: Option<i64>, tif: Tif) {
        match self.plain_change(slot, qty, limit, tif) {
            Some(entry) => {
                self.push_outcome(slot, VenueOutcome::Replaced);
                self.reinsert(&entry);
            }
            None => self.replace_slow(slot, qty, limit, tif),
        }
    }

    /// Gives a resting order other terms if it only has to be queued again at its new price.
    /// Returns true if it was, and then only its trades are outcomes; returns false, and changes
    /// nothing, if there is more to do.
    #[inline]
    pub fn requeue(&mut self, slot: u32, qty: Qty, limit: Option<i64>, tif: Tif) -> bool {
        let change = self.plain_change(slot, qty, limit, tif);
        if let Some(entry) = &change {
            self.reinsert(entry);
        }
        change.is_some()
    }

    /// Ends an order whose time is over. There is no outcome if the order is not here.
    pub fn expire(&mut self, slot: u32, reason: Reason) {
        if self.take_out(slot).is_ok() {
            self.push_outcome(slot, VenueOutcome::Expired(reason));
        }
    }

    /// Applies a quote of the feed.
    pub fn quote(&mut self, book: u32, quote: &Quote) {
        if self.is_idle(book) {
            self.watched.touch(book);
            self.show(book, quote);
            self.run(book);
        }
    }

    /// Applies a trade of the feed.
    pub fn trade(&mut self, book: u32, trade: &Trade) {
        if self.is_idle(book) {
            self.watched.touch(book);
            self.print(book, trade);
            self.run(book);
        }
    }

    /// Moves the exchange to another session.
    pub fn session(&mut self, book: u32, session: TradingSession) {
        if self.is_idle(book) {
            self.watched.touch(book);
            self.change_session(book, session);
            self.run(book);
        }
    }

    pub fn halt(&mut self, book: u32, on: bool) {
        if self.is_idle(book) {
            self.watched.touch(book);
            self.change_halt(book, on);
            self.run(book);
        }
    }

    /// Continues the remaining work of a book. Returns whether there is still more.
    pub fn work(&mut self, book: u32) -> bool {
        if self.has_work(book) {
            self.watched.touch(book);
            self.run(book);
        }
        self.has_work(book)
    }

    #[inline]
    pub fn has_work(&self, book: u32) -> bool {
        self.books.get(book as usize).is_some_and(|book| book.mode.has(BookMode::WORKING))
    }

    /// Returns the outcomes since [`Venue::clear_outcomes`], by slot and in order.
    #[inline]
    pub fn outcomes(&self) -> &[(u32, VenueOutcome)] {
        &self.outcomes
    }

    #[inline]
    pub fn clear_outcomes(&mut self) {
        self.outcomes.clear();
    }

    /// Returns the state of the market, from the feed and the executions here.
    #[inline]
    pub fn market(&self, book: u32) -> &MarketState {
        &self.markets[book as usize]
    }

    /// Returns the price of the last trade, if there was one.
    #[inline]
    pub fn last_price(&self, book: u32) -> Option<Price> {
        let market = self.market(book);
        market.traded.then_some(market.last)
    }

    #[inline]
    pub fn market_mut(&mut self, book: u32) -> &mut MarketState {
        &mut self.markets[book as usize]
    }

    /// Returns the quantity of clients that rests at a price, in ticks.
    pub fn resting_qty(&self, book: u32, side: Side, ticks: i64) -> Qty {
        self.books[book as usize].sides[side as usize].qty(&self.nodes, ticks)
    }

    /// Returns the remaining quantity of an order at the venue.
    #[inline]
    pub fn remaining(&self, slot: u32) -> Option<Qty> {
        self.is_here(slot).then(|| self.nodes[slot].qty)
    }

    /// Returns the book of an order; `None` if it is not here.
    #[inline]
    pub fn book_of(&self, slot: u32) -> Option<u32> {
        self.is_here(slot).then(|| self.nodes[slot].book)
    }

    /// Returns the slab, for the shard's own ladders; their nodes are at [`NodePlace::Stop`].
    #[inline]
    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    #[inline]
    pub fn nodes_mut(&mut self) -> &mut Nodes {
        &mut self.nodes
    }
}

/// Work that takes several steps.
impl Venue {
    fn set_work(&mut self, book: u32, work: BookWork) {
        self.details[book as usize].work = work;
        self.books[book as usize].mode.set(BookMode::WORKING, work != BookWork::None);
    }

    /// Continues until nothing is left or the step has done enough.
    fn run(&mut self, book: u32) {
        let mut effort = 0;
        while effort < EFFORT_PER_STEP {
            effort += match self.details[book as usize].work {
                BookWork::None => return,
                BookWork::Take { slot, market } => self.work_take(book, slot, market),
                BookWork::Through { side } => self.work_through(book, side),
                BookWork::Print { side, price, size, left, queued } => {
                    self.work_print(book, side, price, size, left, queued)
                }
                BookWork::MarketQueue { taking, next } => self.work_market_queue(book, taking, next),
                BookWork::Join => self.work_join(book),
                BookWork::Uncross { ticks, left } => self.work_uncross(book, ticks, left),
                BookWork::Expire { pass, set, slot } => self.work_expire(book, pass, set, slot),
            };
        }
    }
}
