//! Prices of a venue: Market Data Request (V) out; snapshots (W), increments (X) and refusals (Y) in.
//!
//! Each security of the venue's exchanges is asked for by itself, best prices and trades, as soon as both sides are in touch: with the
//! connection the venue forgets what was asked. Its number stands before the `-` of MDReqID (262); whoever answers without one
//! is known by the symbol. A venue tells prices of its own securities only. What it says again of earlier times is history, and
//! prices are of now: it is passed over.

use crate::fix::msg_type;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pitlane_engine::command::{CommandKind, Quote, Trade};
use pitlane_engine::id::{AdapterId, SecurityId};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::refdata::{RefData, Security};
use pitlane_engine::text::parse_u64;
use pitlane_engine::time::Timestamp;

use super::ask;
use crate::fix::encode::Draft;
use crate::fix::fields::FixMessage;
use crate::fix::tag::{self, prefix};
use crate::fix::timestamp::parse_timestamp;

/// What we know of a venue's prices, and what waits for the shards.
#[derive(Debug)]
pub struct VenuePrices {
    /// Whose they are.
    adapter: AdapterId,
    /// Tells requests of one connection from those of another.
    round: u64,
    unasked: VecDeque<SecurityId>,
    asked: BTreeSet<SecurityId>,
    /// Best prices as far as they were told.
    board: BTreeMap<SecurityId, Quote>,
    /// For the shards. Bounded by the fields of one message: no other is read while something waits here.
    heard: VecDeque<CommandKind>,
}

/// MDEntryType, and the MDUpdateAction that takes an entry away.
const BID: &[u8] = b"0";
const OFFER: &[u8] = b"1";
const TRADE: &[u8] = b"2";
const DELETE: &[u8] = b"2";

/// An entry of a snapshot or an increment. What is no positive number counts as missing.
#[derive(Clone, Copy, Debug, Default)]
struct MarketDataEntry<'a> {
    action: Option<&'a [u8]>,
    kind: Option<&'a [u8]>,
    symbol: Option<&'a [u8]>,
    price: Option<Price>,
    size: Option<Qty>,
    position: Option<&'a [u8]>,
}

/// An entry lacks something that it needs.
struct Incomplete;

/// The entries of a message, one after the other.
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

/// How many entries of a message were passed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IgnoredEntries {
    /// Of no security of the venue.
    pub strange: u64,
    /// Without something that they need.
    pub incomplete: u64,
}

impl VenuePrices {
    pub fn new(adapter: AdapterId) -> VenuePrices {
        VenuePrices {
            adapter,
            round: 0,
            unasked: VecDeque::new(),
            asked: BTreeSet::new(),
            board: BTreeMap::new(),
            heard: VecDeque::new(),
        }
    }

    /// The connection is new: everything is asked for, and nothing is known.
    pub fn begin(&mut self, reference: &RefData, round: u64) {
        self.round = round;
        self.asked.clear();
        self.board.clear();
        self.want(reference);
    }

    /// The connection is gone.
    pub fn end(&mut self) {
        self.unasked.clear();
        self.asked.clear();
    }

    /// Other reference data, in the midst of a connection: what is new is asked for.
    pub fn want(&mut self, reference: &RefData) {
        let ours = reference.securities().iter().filter(|row| self.owns(reference, row) && row.tradeable);
        self.unasked = ours.map(|row| row.id).filter(|id| !self.asked.contains(id)).collect();
    }

    /// The security that is to be asked for next. It counts as asked.
    pub fn next_unasked(&mut self) -> Option<SecurityId> {
        let security = self.unasked.pop_front()?;
        self.asked.insert(security);
        Some(security)
    }

    /// The next price for a shard.
    pub fn poll(&mut self) -> Option<CommandKind> {
        self.heard.pop_front()
    }

    pub fn is_waiting(&self) -> bool {
        !self.heard.is_empty()
    }

    /// V: a snapshot now, and every change from then on.
    pub fn request(&self, draft: &mut Draft, reference: &RefData, security: SecurityId) {
        let (mut id, mut round) = (itoa::Buffer::new(), itoa::Buffer::new());
        let id = id.format(security.0).as_bytes();
        draft.pieces(prefix::MD_REQ_ID, &[id, b"-", round.format(self.round).as_bytes()]);
        draft.code(prefix::SUBSCRIPTION_REQUEST_TYPE, b'1');
        // The best of each side; changes as increments.
        draft.code(prefix::MARKET_DEPTH, b'1');
        draft.code(prefix::MD_UPDATE_TYPE, b'1');
        draft.number(prefix::NO_MD_ENTRY_TYPES, 3);
        [BID, OFFER, TRADE].iter().for_each(|kind| draft.text(prefix::MD_ENTRY_TYPE, kind));
        draft.number(prefix::NO_RELATED_SYM, 1);
        ask::instrument(draft, reference, security);
    }

    /// A snapshot (W) or an increment (X).
    pub fn read(&mut self, message: &FixMessage, reference: &RefData, now: Timestamp) -> IgnoredEntries {
        let at = message.header.sending_time.and_then(parse_timestamp).unwrap_or(now);
        let is_snapshot = message.type_code() == msg_type::MARKET_DATA_SNAPSHOT;
        let named = self.named(message, reference);
        let mut passed = IgnoredEntries::default();
        // Those whose quote is another now, in the order in which they are told.
        let mut quoted: Option<SecurityId> = None;
        if is_snapshot && let Some(security) = named {
            self.board.insert(security, Quote { at, ..Quote::default() });
            quoted = named;
        }
        for entry in entries(message, is_snapshot) {
            let told = entry.symbol.map_or(named, |symbol| self.by_symbol(symbol, reference));
            let Some(security) = told else {
                passed.strange += 1;
                continue;
            };
            if quoted != told {
                self.tell_quote(quoted);
                quoted = None;
            }
            match self.take(security, &entry, at) {
                Ok(is_quote) if is_quote => quoted = told,
                Ok(_) => {}
                Err(Incomplete) => passed.incomplete += 1,
            }
        }
        self.tell_quote(quoted);
        passed
    }

    /// Takes one entry over; whether it has changed the quote.
    fn take(
        &mut self,
        security: SecurityId,
        entry: &MarketDataEntry,
        at: Timestamp,
    ) -> Result<bool, Incomplete> {
        // Who tells more than the best of a side says which place an entry has.
        let is_best = entry.position.is_none_or(|position| position == b"1");
        let kind = entry.kind.ok_or(Incomplete)?;
        if kind == TRADE {
            let price = entry.price.ok_or(Incomplete)?;
            let trade = Trade { price, size: entry.size.unwrap_or(Qty::ZERO), at };
            self.heard.push_back(CommandKind::Trade { security, trade });
            return Ok(false);
        }
        if !is_best || (kind != BID && kind != OFFER) {
            return Ok(false);
        }
        let (price, size) = match entry.action {
            Some(DELETE) => (Price::ZERO, Qty::ZERO),
            _ => (entry.price.ok_or(Incomplete)?, entry.size.ok_or(Incomplete)?),
        };
        let quote = self.board.entry(security).or_default();
        quote.at = at;
        match kind == BID {
            true => (quote.bid, quote.bid_size) = (price, size),
            false => (quote.ask, quote.ask_size) = (price, size),
        }
        Ok(true)
    }

    fn tell_quote(&mut self, security: Option<SecurityId>) {
        if let Some(security) = security
            && let Some(&quote) = self.board.get(&security)
        {
            self.heard.push_back(CommandKind::Quote { security, quote });
        }
    }

    /// The security that a whole message is about: by the id of our request, or by its symbol.
    pub fn named(&self, message: &FixMessage, reference: &RefData) -> Option<SecurityId> {
        let asked = message.get(tag::MD_REQ_ID).and_then(|id| {
            let id = id.split(|&byte| byte == b'-').next()?;
            let id = SecurityId(u32::try_from(parse_u64(id).ok()?).ok()?);
            self.asked.contains(&id).then_some(id)
        });
        asked.or_else(|| self.by_symbol(message.get(tag::SYMBOL)?, reference))
    }

    fn by_symbol(&self, symbol: &[u8], reference: &RefData) -> Option<SecurityId> {
        let found = reference.by_symbol(std::str::from_utf8(symbol).ok()?);
        found.iter().copied().find(|id| self.asked.contains(id))
    }

    fn owns(&self, reference: &RefData, security: &Security) -> bool {
        reference.exchange_of(security).adapter == self.adapter
    }
}
