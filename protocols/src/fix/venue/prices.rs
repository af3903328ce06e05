//! Market data of a venue: Market Data Request (V) out; snapshots (W), incremental refreshes (X)
//! and rejects (Y) in.
//!
//! Each security of the venue's exchanges is requested separately, with best prices and trades, as
//! soon as the session is synchronized, because the venue forgets requests with the connection. The
//! security's number precedes the `-` of MDReqID (262); a message without MDReqID is identified by
//! its symbol. A venue gives prices of its own securities only. Resent market data is history and
//! is ignored, because prices must be current.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pitlane_engine::command::{CommandKind, Quote, Trade};
use pitlane_engine::id::{AdapterId, SecurityId};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::refdata::{RefData, Security};
use pitlane_engine::text::parse_u64;
use pitlane_engine::time::Timestamp;

use super::request;
use crate::fix::encode::Draft;
use crate::fix::fields::FixMessage;
use crate::fix::msg_type;
use crate::fix::tag::{self, prefix};
use crate::fix::timestamp::parse_timestamp;

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
    position: Option<&'a [u8]>,
}

/// An entry lacks a required field.
struct Incomplete;

/// Returns the entries of a message in order.
fn entries<'a>(message: &FixMessage<'a, '_>, is_snapshot: bool) -> impl Iterator<Item = MarketDataEntry<'a>> {
    let opens = if is_snapshot { tag::MD_ENTRY_TYPE } else { tag::MD_UPDATE_ACTION };
    let mut fields = message.iter().skip_while(move |(tag, _)| *tag != opens).peekable();
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
            tag::MD_ENTRY_SIZE => self.size = Qty::parse(value).ok().filter(|size| size.is_positive()),
            tag::MD_ENTRY_POSITION_NO => self.position = Some(value),
            _ => {}
        }
    }
}

/// Counts of ignored entries of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IgnoredEntries {
    /// Entries for no security of the venue.
    pub unknown: u64,
    /// Entries without a required field.
    pub incomplete: u64,
}

impl VenuePrices {
    pub fn new(adapter: AdapterId) -> VenuePrices {
        VenuePrices {
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
        self.refresh(reference);
    }

    /// Ends the connection.
    pub fn end(&mut self) {
        self.unrequested.clear();
        self.requested.clear();
    }

    /// Requests the new securities of changed reference data during a connection.
    pub fn refresh(&mut self, reference: &RefData) {
        let ours = reference.securities().iter().filter(|row| self.owns(reference, row) && row.tradeable);
        self.unrequested = ours.map(|row| row.id).filter(|id| !self.requested.contains(id)).collect();
    }

    /// Returns the next security to request, which counts as requested from then on.
    pub fn next_unrequested(&mut self) -> Option<SecurityId> {
        let security = self.unrequested.pop_front()?;
        self.requested.insert(security);
        Some(security)
    }

    /// Returns the next price for a shard.
    pub fn poll(&mut self) -> Option<CommandKind> {
        self.pending.pop_front()
    }

    pub fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Writes V: a snapshot now and every later change.
    pub fn request(&self, draft: &mut Draft, reference: &RefData, security: SecurityId) {
        let (mut id, mut round) = (itoa::Buffer::new(), itoa::Buffer::new());
        let id = id.format(security.0).as_bytes();
        draft.pieces(prefix::MD_REQ_ID, &[id, b"-", round.format(self.round).as_bytes()]);
        draft.code(prefix::SUBSCRIPTION_REQUEST_TYPE, b'1');
        // The best of each side, with changes as incremental refreshes.
        draft.code(prefix::MARKET_DEPTH, b'1');
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
        if is_snapshot && let Some(security) = named {
            self.quotes.insert(security, Quote { at, ..Quote::default() });
            quoted = named;
        }
        for entry in entries(message, is_snapshot) {
            let named_security = entry.symbol.map_or(named, |symbol| self.by_symbol(symbol, reference));
            let Some(security) = named_security else {
                passed.unknown += 1;
                continue;
            };
            if quoted != named_security {
                self.queue_quote(quoted);
                quoted = None;
            }
            match self.apply_entry(security, &entry, at) {
                Ok(is_quote) if is_quote => quoted = named_security,
                Ok(_) => {}
                Err(Incomplete) => passed.incomplete += 1,
            }
        }
        self.queue_quote(quoted);
        passed
    }

    /// Applies one entry and returns whether the quote has changed.
    fn apply_entry(
        &mut self,
        security: SecurityId,
        entry: &MarketDataEntry,
        at: Timestamp,
    ) -> Result<bool, Incomplete> {
        // A venue that sends more than the best of a side gives each entry its position.
        let is_best = entry.position.is_none_or(|position| position == b"1");
        let kind = entry.kind.ok_or(Incomplete)?;
        if kind == TRADE {
            let price = entry.price.ok_or(Incomplete)?;
            let trade = Trade { price, size: entry.size.unwrap_or(Qty::ZERO), at };
            self.pending.push_back(CommandKind::Trade { security, trade });
            return Ok(false);
        }
        if !is_best || (kind != BID && kind != OFFER) {
            return Ok(false);
        }
        let (price, size) = match entry.action {
            Some(DELETE) => (Price::ZERO, Qty::ZERO),
            _ => (entry.price.ok_or(Incomplete)?, entry.size.ok_or(Incomplete)?),
        };
        let quote = self.quotes.entry(security).or_default();
        quote.at = at;
        match kind == BID {
            true => (quote.bid, quote.bid_size) = (price, size),
            false => (quote.ask, quote.ask_size) = (price, size),
        }
        Ok(true)
    }

    fn queue_quote(&mut self, security: Option<SecurityId>) {
        if let Some(security) = security
            && let Some(&quote) = self.quotes.get(&security)
        {
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
        let found = reference.by_symbol(std::str::from_utf8(symbol).ok()?);
        found.iter().copied().find(|id| self.requested.contains(id))
    }

    fn owns(&self, reference: &RefData, security: &Security) -> bool {
        reference.exchange_of(security).adapter == self.adapter
    }
}
