//! Market data of a venue: Market Data Request (V) out; snapshots (W), incremental refreshes (X)
//! and rejects (Y) in.
//!
//! Each security of the venue's exchanges is requested separately, with best prices and trades, as
//! soon as the session is synchronized, because the venue forgets requests with the connection. The
//! security's number precedes the `-` of MDReqID (262); a message without MDReqID is identified by
//! its symbol. A venue gives prices of its own securities only. Resent market data is history and
//! is ignored, because prices must be current.
//!
//! With a depth other than one the levels make a book ([`books`]), which gives the best prices.

mod books;
#[cfg(test)]
mod tests;

pub use books::BOOK_ENTRIES_MAX;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pitlane_engine::command::{CommandKind, Quote, Trade};
use pitlane_engine::id::{AdapterId, SecurityId};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::refdata::{RefData, Security};
use pitlane_engine::terms::Side;
use pitlane_engine::text::parse_u64;
use pitlane_engine::time::Timestamp;

use super::request;
use crate::fix::encode::Draft;
use crate::fix::fields::FixMessage;
use crate::fix::msg_type;
use crate::fix::tag::{self, prefix};
use crate::fix::timestamp::parse_timestamp;
use books::VenueBookSet;

/// State of a venue's market data, and prices that wait for the shards.
#[derive(Debug)]
pub struct VenuePrices {
    /// Adapter of the venue.
    adapter: AdapterId,
    /// Distinguishes requests of different connections.
    round: u64,
    unrequested: VecDeque<SecurityId>,
    requested: BTreeSet<SecurityId>,
    /// Best prices as far as they are known.
    quotes: BTreeMap<SecurityId, Quote>,
    /// Books, unless only the best prices are requested.
    books: Option<VenueBookSet>,
    /// Prices for the shards, bounded by the fields of one message: no other message is read while
    /// prices wait here.
    pending: VecDeque<CommandKind>,
}

/// MDEntryType, and the MDUpdateAction that deletes an entry.
const BID: &[u8] = b"0";
const OFFER: &[u8] = b"1";
const TRADE: &[u8] = b"2";
const DELETE: &[u8] = b"2";

/// An entry of a snapshot or refresh. A price or size that is not positive counts as missing.
#[derive(Clone, Copy, Debug, Default)]
struct MarketDataEntry<'a> {
    action: Option<&'a [u8]>,
    kind: Option<&'a [u8]>,
    symbol: Option<&'a [u8]>,
    price: Option<Price>,
    size: Option<Qty>,
    is_size_zero: bool,
    position: Option<&'a [u8]>,
    /// MDPriceLevel.
    level: Option<&'a [u8]>,
    id: Option<&'a [u8]>,
}

/// Why an entry is not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryFault {
    Incomplete,
    /// The level does not exist, or its neighbours have other prices.
    WrongLevel,
}

impl EntryFault {
    fn text(self) -> &'static str {
        match self {
            EntryFault::Incomplete => "an entry lacks a field",
            EntryFault::WrongLevel => "an entry names a level that does not fit the book",
        }
    }
}

/// Returns the entries of a message in order.
fn entries<'a>(message: &FixMessage<'a, '_>, is_snapshot: bool) -> impl Iterator<Item = MarketDataEntry<'a>> {
    let opens = if is_snapshot { tag::MD_ENTRY_TYPE } else { tag::MD_UPDATE_ACTION };
    let mut fields = message.all_fields().skip_while(move |(tag, _)| *tag != opens).peekable();
    std::iter::from_fn(move || {
        let (tag, value) = fields.next()?;
        let mut entry = MarketDataEntry::default();
        entry.set(tag, value);
        while let Some((tag, value)) = fields.next_if(|(tag, _)| *tag != opens) {
            entry.set(tag, value);
        }
        Some(entry)
    })
}

impl<'a> MarketDataEntry<'a> {
    fn set(&mut self, tag: u32, value: &'a [u8]) {
        match tag {
            tag::MD_UPDATE_ACTION => self.action = Some(value),
            tag::MD_ENTRY_TYPE => self.kind = Some(value),
            tag::SYMBOL => self.symbol = Some(value),
            tag::MD_ENTRY_PX => self.price = Price::parse(value).ok().filter(|price| price.is_positive()),
            tag::MD_ENTRY_SIZE => {
                let size = Qty::parse(value).ok();
                self.is_size_zero = size.is_some_and(Qty::is_zero);
                self.size = size.filter(|size| size.is_positive());
            }
            tag::MD_ENTRY_ID => self.id = Some(value),
            tag::MD_ENTRY_POSITION_NO => self.position = Some(value),
            tag::MD_PRICE_LEVEL => self.level = Some(value),
            _ => {}
        }
    }
}

/// Returns whether a message has as many entries as it says.
fn is_count_right(message: &FixMessage, is_snapshot: bool) -> bool {
    let counted = message.get(tag::NO_MD_ENTRIES).and_then(|count| parse_u64(count).ok());
    counted == Some(entries(message, is_snapshot).count() as u64)
}

/// A request for the market data of a security.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriceRequest {
    pub security: SecurityId,
    /// How many requests for it there were on this connection, with this one.
    pub number: u64,
}

/// Counts of ignored entries of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IgnoredEntries {
    /// Entries for no security of the venue.
    pub unknown: u64,
    /// Entries without a required field, or with a level that does not fit the book.
    pub incomplete: u64,
}

impl VenuePrices {
    /// Creates the state for MarketDepth (264): 1 for the best prices only, 0 for all levels.
    pub fn new(adapter: AdapterId, market_depth: u16) -> VenuePrices {
        VenuePrices {
            books: (market_depth != 1).then(|| VenueBookSet::new(market_depth.into())),
            adapter,
            round: 0,
            unrequested: VecDeque::new(),
            requested: BTreeSet::new(),
            quotes: BTreeMap::new(),
            pending: VecDeque::new(),
        }
    }

    /// Starts with a new connection: requests every security and forgets all prices.
    pub fn begin(&mut self, reference: &RefData, round: u64) {
        self.round = round;
        self.requested.clear();
        self.quotes.clear();
        self.books.iter_mut().for_each(|books| books.end(&mut self.pending));
        self.refresh(reference);
    }

    /// Ends the connection.
    pub fn end(&mut self) {
        self.unrequested.clear();
        self.requested.clear();
        self.books.iter_mut().for_each(|books| books.end(&mut self.pending));
    }

    /// Handles that messages of the venue may be lost: no book is known any more.
    pub fn handle_gap(&mut self) {
        let books = self.books.iter_mut();
        books.for_each(|books| books.lose_all("messages are missing", &mut self.pending));
    }

    /// Handles a snapshot or a refresh that cannot be read.
    pub fn handle_unreadable(&mut self, message: &FixMessage, reference: &RefData) {
        const REASON: &str = "a message cannot be read";
        let named = self.named(message, reference);
        match (&mut self.books, named) {
            (Some(books), Some(security)) => books.lose(security, REASON, &mut self.pending),
            (Some(books), None) => books.lose_all(REASON, &mut self.pending),
            (None, _) => {}
        }
    }

    /// Returns why a book is requested again, once.
    pub fn take_fault(&mut self) -> Option<String> {
        self.books.as_mut()?.take_fault()
    }

    /// Requests the new securities of changed reference data during a connection.
    pub fn refresh(&mut self, reference: &RefData) {
        let ours = reference.securities().iter().filter(|row| self.owns(reference, row) && row.tradeable);
        self.unrequested = ours.map(|row| row.id).filter(|id| !self.requested.contains(id)).collect();
    }

    /// Returns the next request, which counts as sent from then on.
    pub fn next_request(&mut self, now: Timestamp) -> Option<PriceRequest> {
        let retry = self.books.as_mut().and_then(|books| books.take_retry(now));
        let security = retry.or_else(|| self.unrequested.pop_front())?;
        self.requested.insert(security);
        let number = self.books.as_mut().map_or(1, |books| books.record_request(security, now));
        Some(PriceRequest { security, number })
    }

    /// Returns when a book must be requested again.
    pub fn next_retry(&self) -> Option<Timestamp> {
        self.books.as_ref()?.next_retry()
    }

    /// Delays requests that are due and cannot be sent now.
    pub fn delay_retries(&mut self, now: Timestamp) {
        self.books.iter_mut().for_each(|books| books.delay_retries(now));
    }

    /// Returns the next price for a shard.
    pub fn poll(&mut self) -> Option<CommandKind> {
        self.pending.pop_front()
    }

    pub fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Writes V: a snapshot now and every later change; or the end of that.
    pub fn request(&self, draft: &mut Draft, reference: &RefData, request: PriceRequest, on: bool) {
        let PriceRequest { security, number } = request;
        let mut buffers = [itoa::Buffer::new(), itoa::Buffer::new(), itoa::Buffer::new()];
        let [id, round, count] = &mut buffers;
        let (id, round) = (id.format(security.0).as_bytes(), round.format(self.round).as_bytes());
        let again = [b"-", count.format(number).as_bytes()];
        let again = if number > 1 { again } else { [b"" as &[u8]; 2] };
        draft.pieces(prefix::MD_REQ_ID, &[id, b"-", round, again[0], again[1]]);
        draft.code(prefix::SUBSCRIPTION_REQUEST_TYPE, if on { b'1' } else { b'2' });
        // Changes come as incremental refreshes.
        let market_depth = self.books.as_ref().map_or(1, |books| books.market_depth);
        draft.number(prefix::MARKET_DEPTH, market_depth as u64);
        draft.code(prefix::MD_UPDATE_TYPE, b'1');
        draft.number(prefix::NO_MD_ENTRY_TYPES, 3);
        [BID, OFFER, TRADE].iter().for_each(|kind| draft.text(prefix::MD_ENTRY_TYPE, kind));
        draft.number(prefix::NO_RELATED_SYM, 1);
        request::instrument(draft, reference, security);
    }

    /// Reads a snapshot (W) or an incremental refresh (X).
    pub fn read(&mut self, message: &FixMessage, reference: &RefData, now: Timestamp) -> IgnoredEntries {
        let at = message.header.sending_time.and_then(parse_timestamp).unwrap_or(now);
        let is_snapshot = message.type_code() == msg_type::MARKET_DATA_SNAPSHOT;
        let named = self.named(message, reference);
        let mut passed = IgnoredEntries::default();
        // The security whose quote has changed and is not queued yet; quotes are queued in the
        // order of the entries.
        let mut quoted: Option<SecurityId> = None;
        if self.books.is_some() && !is_count_right(message, is_snapshot) {
            passed.incomplete += 1;
            self.handle_unreadable(message, reference);
        } else if is_snapshot && let Some(security) = named {
            match &mut self.books {
                Some(books) => books.begin_snapshot(security),
                None => drop(self.quotes.insert(security, Quote { at, ..Quote::default() })),
            }
            quoted = named;
        }
        for entry in entries(message, is_snapshot) {
            let named_security = entry.symbol.map_or(named, |symbol| self.by_symbol(symbol, reference));
            let Some(security) = named_security else {
                passed.unknown += 1;
                continue;
            };
            if quoted != named_security {
                self.queue_quote(quoted, at);
                quoted = None;
            }
            match self.apply_entry(security, &entry, at) {
                Ok(is_quote) if is_quote => quoted = named_security,
                Ok(_) => {}
                Err(_) => passed.incomplete += 1,
            }
        }
        self.queue_quote(quoted, at);
        passed
    }

    /// Applies one entry and returns whether the quote has changed.
    fn apply_entry(
        &mut self,
        security: SecurityId,
        entry: &MarketDataEntry,
        at: Timestamp,
    ) -> Result<bool, EntryFault> {
        // A venue that sends more than the best of a side gives each entry its position or level.
        let is_best = entry.position.or(entry.level).is_none_or(|place| place == b"1");
        if entry.kind == Some(TRADE) {
            let price = entry.price.ok_or(EntryFault::Incomplete)?;
            let trade = Trade { price, size: entry.size.unwrap_or(Qty::ZERO), at };
            self.pending.push_back(CommandKind::Trade { security, trade });
            return Ok(false);
        }
        let side = match entry.kind {
            Some(BID) => Some(Side::Buy),
            Some(OFFER) => Some(Side::Sell),
            Some(_) => return Ok(false),
            None => None,
        };
        if let Some(books) = &mut self.books {
            let applied = books.apply(security, side, entry);
            if let Err(fault) = applied {
                books.lose(security, fault.text(), &mut self.pending);
            }
            return applied;
        }
        let side = side.ok_or(EntryFault::Incomplete)?;
        if !is_best {
            return Ok(false);
        }
        let (price, size) = match entry.action {
            Some(DELETE) => (Price::ZERO, Qty::ZERO),
            _ => (entry.price.ok_or(EntryFault::Incomplete)?, entry.size.ok_or(EntryFault::Incomplete)?),
        };
        let quote = self.quotes.entry(security).or_default();
        quote.at = at;
        match side {
            Side::Buy => (quote.bid, quote.bid_size) = (price, size),
            Side::Sell => (quote.ask, quote.ask_size) = (price, size),
        }
        Ok(true)
    }

    /// Queues the best prices, and what has changed in the book behind them.
    fn queue_quote(&mut self, security: Option<SecurityId>, at: Timestamp) {
        let Some(security) = security else { return };
        let known = self.quotes.get(&security).copied();
        let quote = match &mut self.books {
            Some(books) => books.publish(security, known.as_ref(), at, &mut self.pending),
            None => known,
        };
        if let Some(quote) = quote {
            self.quotes.insert(security, quote);
            self.pending.push_back(CommandKind::Quote { security, quote });
        }
    }

    /// Returns the security of a whole message: by the id of our request, or by its symbol.
    pub fn named(&self, message: &FixMessage, reference: &RefData) -> Option<SecurityId> {
        let requested = message.get(tag::MD_REQ_ID).and_then(|id| {
            let id = id.split(|&byte| byte == b'-').next()?;
            let id = SecurityId(u32::try_from(parse_u64(id).ok()?).ok()?);
            self.requested.contains(&id).then_some(id)
        });
        requested.or_else(|| self.by_symbol(message.get(tag::SYMBOL)?, reference))
    }

    fn by_symbol(&self, symbol: &[u8], reference: &RefData) -> Option<SecurityId> {
        let found = reference.by_symbol(symbol);
        found.iter().copied().find(|id| self.requested.contains(id))
    }

    fn owns(&self, reference: &RefData, security: &Security) -> bool {
        reference.exchange_of(security).adapter == self.adapter
    }
}
