//! Books of a venue, from snapshots (W) and incremental refreshes (X) of all their levels.
//!
//! ```text
//! Requested ── W ──► Whole ── X ──► Whole
//!     ▲                │ a fault, a gap in the session
//!     └── V ── Lost ◄──┘
//! ```
//!
//! An entry is identified by MDEntryID (278) where the venue sends it, and the entries of one price
//! are added up; otherwise by its level (1023), its side and price, or its position (290). A book
//! with a fault is unknown until the next snapshot, which is requested at a bounded rate.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pitlane_engine::command::{CommandKind, Quote};
use pitlane_engine::event::LEVELS_PER_SIDE_MAX;
use pitlane_engine::id::SecurityId;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::terms::Side;
use pitlane_engine::text::parse_u64;
use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::{DELETE, EntryFault, MarketDataEntry};
use crate::fix::venue::id::fold_128;
use crate::venue::depth_book::{BOOK_LEVELS_MAX, DepthBook, is_better};

/// Time between two requests for the same book, so that a venue whose messages are always faulty
/// is not flooded.
const REQUEST_INTERVAL_NS: u64 = 5 * NS_PER_S;

/// Entries with an id of one book, so that its memory is bounded: two for each level of both sides.
pub const BOOK_ENTRIES_MAX: usize = 4 * BOOK_LEVELS_MAX;

/// MDUpdateAction (279).
const NEW: &[u8] = b"0";
const CHANGE: &[u8] = b"1";

/// The books of one venue.
#[derive(Debug)]
pub(super) struct VenueBookSet {
    /// MarketDepth (264): levels of each side that the venue sends; 0: all.
    pub(super) market_depth: usize,
    books: BTreeMap<SecurityId, RequestedBook>,
    /// Books that must be requested again, with the earliest time.
    retries: BTreeSet<(Timestamp, SecurityId)>,
    /// Why a book is lost, for the log.
    fault: Option<String>,
}

#[derive(Debug)]
struct RequestedBook {
    book: DepthBook,
    /// Entries by their id.
    entries: BTreeMap<u128, BookEntry>,
    is_whole: bool,
    /// Number of requests on this connection, and the time of the last one.
    requests: u64,
    requested_at: Timestamp,
}

#[derive(Clone, Copy, Debug)]
struct BookEntry {
    side: Side,
    price: Price,
    qty: Qty,
}

impl VenueBookSet {
    pub(super) fn new(market_depth: usize) -> VenueBookSet {
        VenueBookSet { market_depth, books: BTreeMap::new(), retries: BTreeSet::new(), fault: None }
    }

    /// Records a request. Returns how many there were on this connection, with this one.
    pub(super) fn record_request(&mut self, security: SecurityId, now: Timestamp) -> u64 {
        let published_max = match self.market_depth {
            0 => LEVELS_PER_SIDE_MAX,
            levels => levels,
        };
        let requested = self.books.entry(security).or_insert_with(|| RequestedBook {
            book: DepthBook::new(published_max),
            entries: BTreeMap::new(),
            is_whole: false,
            requests: 0,
            requested_at: now,
        });
        requested.requests += 1;
        requested.requested_at = now;
        requested.requests
    }

    /// Returns a book whose next request is due.
    pub(super) fn take_retry(&mut self, now: Timestamp) -> Option<SecurityId> {
        let (_, security) = self.retries.first().copied().filter(|(at, _)| *at <= now)?;
        self.retries.pop_first();
        Some(security)
    }

    pub(super) fn next_retry(&self) -> Option<Timestamp> {
        self.retries.first().map(|(at, _)| *at)
    }

    /// Delays the requests that are due and cannot be sent.
    pub(super) fn delay_retries(&mut self, now: Timestamp) {
        while let Some(security) = self.take_retry(now) {
            self.retries.insert((now.plus(REQUEST_INTERVAL_NS), security));
        }
    }

    pub(super) fn take_fault(&mut self) -> Option<String> {
        self.fault.take()
    }

    /// Starts a snapshot: the book is empty, and whole with the entries that follow.
    pub(super) fn begin_snapshot(&mut self, security: SecurityId) {
        if let Some(requested) = self.books.get_mut(&security) {
            requested.book.clear();
            requested.entries.clear();
            requested.is_whole = true;
            self.retries.remove(&(requested.retry_at(), security));
        }
    }

    /// Applies a bid or an offer; an entry that is known by its id need not say which. Returns
    /// whether the book may have changed.
    pub(super) fn apply(
        &mut self,
        security: SecurityId,
        side: Option<Side>,
        entry: &MarketDataEntry<'_>,
    ) -> Result<bool, EntryFault> {
        match self.books.get_mut(&security) {
            Some(requested) if requested.is_whole => {
                requested.apply(side, entry, self.market_depth).map(|()| true)
            }
            Some(_) | None => Ok(false),
        }
    }

    /// Passes on what a message has changed in a book, and its best prices if they have changed.
    pub(super) fn publish(
        &mut self,
        security: SecurityId,
        known: Option<&Quote>,
        at: Timestamp,
        out: &mut VecDeque<CommandKind>,
    ) -> Option<Quote> {
        let requested = self.books.get_mut(&security).filter(|requested| requested.is_whole)?;
        if self.market_depth > 0 {
            // The venue does not always say which level has left.
            requested.book.truncate(self.market_depth);
        }
        requested.book.publish(security, out);
        if requested.book.is_thin() {
            self.retries.insert((requested.retry_at(), security));
        }
        let [bid, ask] = Side::BOTH.map(|side| requested.book.levels(side).next().unwrap_or_default());
        let quote = Quote { bid: bid.price, bid_size: bid.qty, ask: ask.price, ask_size: ask.qty, at };
        (known != Some(&Quote { at: known.map_or(at, |known| known.at), ..quote })).then_some(quote)
    }

    /// Forgets a book, which is requested again.
    pub(super) fn lose(&mut self, security: SecurityId, reason: &str, out: &mut VecDeque<CommandKind>) {
        let Some(requested) = self.books.get_mut(&security) else { return };
        requested.is_whole = false;
        requested.entries.clear();
        requested.book.lose(security, out);
        self.retries.insert((requested.retry_at(), security));
        self.fault = Some(format!("the book of security {} is requested again: {reason}", security.0));
    }

    /// Forgets all books, which are requested again.
    pub(super) fn lose_all(&mut self, reason: &str, out: &mut VecDeque<CommandKind>) {
        for security in self.books.keys().copied().collect::<Vec<_>>() {
            self.lose(security, reason, out);
        }
    }

    /// Forgets all books with the connection.
    pub(super) fn end(&mut self, out: &mut VecDeque<CommandKind>) {
        for (security, requested) in &mut self.books {
            requested.book.lose(*security, out);
        }
        self.books.clear();
        self.retries.clear();
    }
}

impl RequestedBook {
    /// Returns the earliest time of the next request.
    fn retry_at(&self) -> Timestamp {
        self.requested_at.plus(REQUEST_INTERVAL_NS)
    }

    fn apply(
        &mut self,
        side: Option<Side>,
        entry: &MarketDataEntry<'_>,
        market_depth: usize,
    ) -> Result<(), EntryFault> {
        let id = entry.id.map(fold_128);
        let known = id.and_then(|id| self.entries.get(&id).copied());
        let side = side.or(known.map(|known| known.side)).ok_or(EntryFault::Incomplete)?;
        // The entries of a snapshot have no action, and the order of their prices.
        if let (None, Some(level), Some(action)) = (id, entry.level, entry.action) {
            let levels_max = if market_depth == 0 { usize::MAX } else { market_depth };
            return self.apply_level(side, (level, action), entry, levels_max);
        }
        match entry.action {
            None | Some(NEW | CHANGE) if !entry.is_size_zero => {
                let price = entry.price.or(known.map(|known| known.price)).ok_or(EntryFault::Incomplete)?;
                let qty = entry.size.ok_or(EntryFault::Incomplete)?;
                let is_new = entry.action != Some(CHANGE);
                self.set(id, known, BookEntry { side, price, qty }, is_new)
            }
            Some(DELETE | NEW | CHANGE) | None => self.remove(id, known, side, entry),
            Some(_) => Err(EntryFault::Incomplete),
        }
    }

    /// Applies an entry that is named by its level (1023), which counts from one: a new level moves
    /// those behind it back by one, and a deleted level lets them move up.
    fn apply_level(
        &mut self,
        side: Side,
        (level, action): (&[u8], &[u8]),
        entry: &MarketDataEntry<'_>,
        levels_max: usize,
    ) -> Result<(), EntryFault> {
        let level = parse_u64(level).ok().and_then(|level| usize::try_from(level).ok());
        let place = level.and_then(|level| level.checked_sub(1)).filter(|place| *place < levels_max);
        let place = place.ok_or(EntryFault::WrongLevel)?;
        let (before, named, after) = {
            let mut levels = self.book.levels(side).map(|level| level.price).skip(place.saturating_sub(1));
            let before = if place > 0 { Some(levels.next().ok_or(EntryFault::WrongLevel)?) } else { None };
            (before, levels.next(), levels.next())
        };
        let is_between = |price, after: Option<Price>| {
            before.is_none_or(|before| is_better(side, before, price))
                && after.is_none_or(|after| is_better(side, price, after))
        };
        match action {
            NEW if !entry.is_size_zero => {
                let price = entry.price.ok_or(EntryFault::Incomplete)?;
                let qty = entry.size.ok_or(EntryFault::Incomplete)?;
                if !is_between(price, named) {
                    return Err(EntryFault::WrongLevel);
                }
                self.book.set(side, price, qty);
                // The last level left the venue's book, and does not come back when another leaves.
                self.book.truncate(levels_max);
            }
            CHANGE if !entry.is_size_zero => {
                let named = named.ok_or(EntryFault::WrongLevel)?;
                let price = entry.price.unwrap_or(named);
                let qty = entry.size.ok_or(EntryFault::Incomplete)?;
                if !is_between(price, after) {
                    return Err(EntryFault::WrongLevel);
                }
                self.book.set(side, named, Qty::ZERO);
                self.book.set(side, price, qty);
            }
            NEW | CHANGE | DELETE => {
                let is_named = |named: &Price| entry.price.is_none_or(|price| price == *named);
                let named = named.filter(is_named).ok_or(EntryFault::WrongLevel)?;
                self.book.set(side, named, Qty::ZERO);
            }
            _ => return Err(EntryFault::Incomplete),
        }
        Ok(())
    }

    fn set(
        &mut self,
        id: Option<u128>,
        known: Option<BookEntry>,
        entry: BookEntry,
        is_new: bool,
    ) -> Result<(), EntryFault> {
        let BookEntry { side, price, qty } = entry;
        let Some(id) = id else {
            self.book.set(side, price, qty);
            return Ok(());
        };
        if self.entries.len() >= BOOK_ENTRIES_MAX && known.is_none() {
            return Err(EntryFault::Incomplete);
        }
        self.take_out(known);
        self.entries.insert(id, entry);
        // A changed entry of a snapshot without ids is the whole level.
        let others = if known.is_some() || is_new { self.book.qty(side, price) } else { Qty::ZERO };
        self.book.set(side, price, others.checked_add(qty).ok_or(EntryFault::Incomplete)?);
        Ok(())
    }

    fn remove(
        &mut self,
        id: Option<u128>,
        known: Option<BookEntry>,
        side: Side,
        entry: &MarketDataEntry<'_>,
    ) -> Result<(), EntryFault> {
        if let (Some(id), Some(_)) = (id, known) {
            self.entries.remove(&id);
            self.take_out(known);
            return Ok(());
        }
        let price = entry.price.or_else(|| self.price_at(side, entry)).ok_or(EntryFault::Incomplete)?;
        self.book.set(side, price, Qty::ZERO);
        Ok(())
    }

    /// Takes the quantity of an entry out of its level.
    fn take_out(&mut self, known: Option<BookEntry>) {
        if let Some(BookEntry { side, price, qty }) = known {
            let rest = self.book.qty(side, price).checked_sub(qty).unwrap_or(Qty::ZERO);
            self.book.set(side, price, rest);
        }
    }

    /// Returns the price at the position of an entry, which counts from one.
    fn price_at(&self, side: Side, entry: &MarketDataEntry<'_>) -> Option<Price> {
        let position = usize::try_from(parse_u64(entry.position?).ok()?).ok()?;
        self.book.levels(side).nth(position.checked_sub(1)?).map(|level| level.price)
    }
}

#[cfg(test)]
mod tests;
