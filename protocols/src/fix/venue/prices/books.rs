//! Books of a venue, from snapshots (W) and incremental refreshes (X) of all their levels.
//!
//! ```text
//! Requested ── W ──► Whole ── X ──► Whole
//!     ▲                │ a fault, a gap in the session
//!     └── V ── Lost ◄──┘
//! ```
//!
//! An entry is identified by MDEntryID (278) where the venue sends it, and the entries of one price
//! are added up; otherwise by its side and price, or by its position (290). A book with a fault is
//! unknown until the next snapshot, which is requested at a bounded rate.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pitlane_engine::command::{CommandKind, Quote};
use pitlane_engine::event::LEVELS_PER_SIDE_MAX;
use pitlane_engine::id::SecurityId;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::terms::Side;
use pitlane_engine::text::parse_u64;
use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::{DELETE, Incomplete, MarketDataEntry};
use crate::fix::venue::id::fold_128;
use crate::venue::depth_book::{BOOK_LEVELS_MAX, DepthBook};

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
    ) -> Result<bool, Incomplete> {
        match self.books.get_mut(&security) {
            Some(requested) if requested.is_whole => requested.apply(side, entry).map(|()| true),
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

    fn apply(&mut self, side: Option<Side>, entry: &MarketDataEntry<'_>) -> Result<(), Incomplete> {
        let id = entry.id.map(fold_128);
        let known = id.and_then(|id| self.entries.get(&id).copied());
        let side = side.or(known.map(|known| known.side)).ok_or(Incomplete)?;
        match entry.action {
            None | Some(NEW | CHANGE) if !entry.is_size_zero => {
                let price = entry.price.or(known.map(|known| known.price)).ok_or(Incomplete)?;
                let qty = entry.size.ok_or(Incomplete)?;
                let is_new = entry.action != Some(CHANGE);
                self.set(id, known, BookEntry { side, price, qty }, is_new)
            }
            Some(DELETE | NEW | CHANGE) | None => self.remove(id, known, side, entry),
            Some(_) => Err(Incomplete),
        }
    }

    fn set(
        &mut self,
        id: Option<u128>,
        known: Option<BookEntry>,
        entry: BookEntry,
        is_new: bool,
    ) -> Result<(), Incomplete> {
        let BookEntry { side, price, qty } = entry;
        let Some(id) = id else {
            self.book.set(side, price, qty);
            return Ok(());
        };
        if self.entries.len() >= BOOK_ENTRIES_MAX && known.is_none() {
            return Err(Incomplete);
        }
        self.take_out(known);
        self.entries.insert(id, entry);
        // A changed entry of a snapshot without ids is the whole level.
        let others = if known.is_some() || is_new { self.book.qty(side, price) } else { Qty::ZERO };
        self.book.set(side, price, others.checked_add(qty).ok_or(Incomplete)?);
        Ok(())
    }

    fn remove(
        &mut self,
        id: Option<u128>,
        known: Option<BookEntry>,
        side: Side,
        entry: &MarketDataEntry<'_>,
    ) -> Result<(), Incomplete> {
        if let (Some(id), Some(_)) = (id, known) {
            self.entries.remove(&id);
            self.take_out(known);
            return Ok(());
        }
        let price = entry.price.or_else(|| self.price_at(side, entry)).ok_or(Incomplete)?;
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
mod tests {
    use super::*;

    fn entry(id: &[u8]) -> MarketDataEntry<'_> {
        let (price, size) = (Price::parse(b"10").ok(), Qty::parse(b"2").ok());
        MarketDataEntry { id: Some(id), price, size, ..MarketDataEntry::default() }
    }

    #[test]
    fn entries_with_an_id_are_bounded() {
        let (security, now) = (SecurityId(8), Timestamp(1));
        let mut books = VenueBookSet::new(0);
        books.record_request(security, now);
        books.begin_snapshot(security);
        for number in 0..BOOK_ENTRIES_MAX {
            assert!(books.apply(security, Some(Side::Buy), &entry(number.to_string().as_bytes())).is_ok());
        }
        let mut out = VecDeque::new();
        books.publish(security, None, now, &mut out);
        assert_eq!(
            books.books[&security].book.qty(Side::Buy, Price::parse(b"10").unwrap()).to_string(),
            "40000"
        );
        assert!(books.apply(security, Some(Side::Buy), &entry(b"0")).is_ok(), "a known one may change");
        assert!(books.apply(security, Some(Side::Buy), &entry(b"one more")).is_err());
    }
}
