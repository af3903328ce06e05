//! Reads files of Databento (DBN, versions 1 to 3): trades, mbp-1, tbbo, mbp-10, mbo and ohlcv.
//! Numbers are little-endian, prices have nine decimals.
//!
//! ```text
//! metadata ─► instrument ids of securities
//! record: length in words 1 · type 1 · publisher 2 · instrument 4 · ts_event 8 · body ─► rows
//! ```
//!
//! The time of a row is the time at which Databento received it (`ts_recv`), by which files are
//! ordered; that of a bar is its start.

mod metadata;

use std::collections::{BTreeMap, VecDeque};

use pitlane_engine::id::SecurityId;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::terms::Side;
use pitlane_engine::time::{NS_PER_DAY, NS_PER_S, Timestamp};

use super::bars::BarRow;
use super::entry::{DataEntry, EntrySource, bar_of, rescaled};
use super::foreign_symbols::{ForeignSymbols, no_symbol_is_known};
use super::input::{RecordStream, field};
use super::order_levels::{BookOutput, OrderLevels, RestingOrder};
use super::top_levels::{TopLevels, quoted_trade_row, trade_row};
use super::{DataError, TickRow};

pub(crate) use self::metadata::is_dbn;
use self::metadata::{DbnMetadata, c_text};

const HEADER_BYTES: usize = 16;
/// Price that stands for none.
const UNDEFINED_PRICE: i64 = i64::MAX;
const UNDEFINED_TIME: u64 = u64::MAX;
const PRICE_DECIMALS: u32 = 9;
const UNIT: i64 = 100_000_000;
/// Length of a level: bid, ask, their sizes and numbers of orders.
const LEVEL_BYTES: usize = 32;
const LEVELS_AT: usize = 48;

/// Types of records.
mod rtype {
    pub(super) const TRADE: u8 = 0x00;
    pub(super) const MBP_1: u8 = 0x01;
    pub(super) const MBP_10: u8 = 0x0a;
    pub(super) const SYMBOL_MAPPING: u8 = 0x16;
    pub(super) const OHLCV_1S: u8 = 0x20;
    pub(super) const OHLCV_1M: u8 = 0x21;
    pub(super) const OHLCV_1H: u8 = 0x22;
    pub(super) const OHLCV_1D: u8 = 0x23;
    pub(super) const MBO: u8 = 0xa0;
    /// Records without prices: status, definition, imbalance, error, system, statistics.
    pub(super) const SKIPPED: [u8; 6] = [0x12, 0x13, 0x14, 0x15, 0x17, 0x18];
}

mod flag {
    /// Last record of an event.
    pub(super) const LAST: u8 = 0x80;
    /// The record is the best price of a side, not an order.
    pub(super) const TOP_OF_BOOK: u8 = 0x40;
}

#[derive(Debug)]
pub struct DbnFile {
    stream: RecordStream,
    symbols: ForeignSymbols,
    metadata: DbnMetadata,
    levels: usize,
    trade_quotes: bool,
    books: BTreeMap<(u32, SecurityId), InstrumentBook>,
    /// Instrument that a security has now; a continuous future changes it.
    current: BTreeMap<SecurityId, u32>,
    orders: usize,
    /// The current record.
    record: Vec<u8>,
    rows: VecDeque<TickRow>,
    last: Timestamp,
    interval_ns: Option<u64>,
    /// Whether a record had a security, and a symbol that had none.
    is_used: bool,
    foreign: Option<String>,
}

/// The book of an instrument.
#[derive(Debug)]
struct InstrumentBook {
    publisher: u16,
    orders: OrderLevels,
    /// Whether the book was complete once: before, orders from before the file are unknown.
    is_complete: bool,
}

/// The fields that every record has.
#[derive(Clone, Copy, Debug)]
struct RecordHeader {
    rtype: u8,
    publisher: u16,
    instrument: u32,
    at: Timestamp,
}

impl DbnFile {
    pub(crate) fn new(
        mut stream: RecordStream,
        symbols: ForeignSymbols,
        levels: usize,
        trade_quotes: bool,
    ) -> Result<DbnFile, DataError> {
        let metadata = DbnMetadata::read(&mut stream, &symbols)?;
        let mut file = DbnFile {
            stream,
            symbols,
            metadata,
            levels,
            trade_quotes,
            books: BTreeMap::new(),
            current: BTreeMap::new(),
            orders: 0,
            record: Vec::new(),
            rows: VecDeque::new(),
            last: Timestamp::ZERO,
            interval_ns: None,
            is_used: false,
            foreign: None,
        };
        // The type of the first record says how long bars are.
        let head = file.stream.peek(HEADER_BYTES)?;
        file.interval_ns = head.get(1).and_then(|rtype| interval_ns(*rtype));
        Ok(file)
    }

    /// Returns the length of bars; `None` if there are none.
    pub(crate) fn interval_ns(&self) -> Option<u64> {
        self.interval_ns
    }

    /// Reads one record; returns false at the end. A bar is returned, other rows are queued.
    fn read_record(&mut self) -> Result<Option<Option<BarRow>>, DataError> {
        let head = self.stream.peek(HEADER_BYTES)?;
        let Some(words) = head.first() else { return self.end() };
        let length = usize::from(*words) * 4;
        if length < HEADER_BYTES {
            let problem = format!("a record has {length} bytes, less than its header");
            return Err(self.stream.fault(&problem));
        }
        let record = self.stream.peek(length)?;
        if record.len() < length {
            let problem = format!("a record of {length} bytes is cut");
            return Err(self.stream.fault(&problem));
        }
        self.record.clear();
        self.record.extend_from_slice(record);
        let record = std::mem::take(&mut self.record);
        let done = self.apply(&record).map_err(|problem| self.stream.fault(&problem))?;
        self.record = record;
        self.stream.skip(length);
        Ok(Some(done))
    }

    /// Ends the file; a file with records and without a known symbol is an error.
    fn end(&mut self) -> Result<Option<Option<BarRow>>, DataError> {
        match &self.foreign {
            Some(symbol) if !self.is_used => {
                Err(self.stream.fault(&no_symbol_is_known([symbol.as_str()].into_iter())))
            }
            _ => Ok(None),
        }
    }

    fn apply(&mut self, record: &[u8]) -> Result<Option<BarRow>, String> {
        let rtype = record[1];
        let (length, time_at) = match rtype {
            rtype::TRADE => (LEVELS_AT, 32),
            rtype::MBP_1 => (LEVELS_AT + LEVEL_BYTES, 32),
            rtype::MBP_10 => (LEVELS_AT + 10 * LEVEL_BYTES, 32),
            rtype::MBO => (56, 40),
            rtype::OHLCV_1S | rtype::OHLCV_1M | rtype::OHLCV_1H | rtype::OHLCV_1D => (56, 8),
            rtype::SYMBOL_MAPPING => return self.map_symbol(record).map(|()| None),
            _ if rtype::SKIPPED.contains(&rtype) => return Ok(None),
            _ => return Err(format!("records of the type {rtype:#04x} are not read")),
        };
        if record.len() < length {
            return Err(format!(
                "a record of the type {rtype:#04x} has {length} bytes, not {}",
                record.len()
            ));
        }
        let time = match u64::from_le_bytes(field(record, time_at)) {
            UNDEFINED_TIME => u64::from_le_bytes(field(record, 8)),
            time => time,
        };
        let header = RecordHeader {
            rtype,
            publisher: u16::from_le_bytes(field(record, 2)),
            instrument: u32::from_le_bytes(field(record, 4)),
            at: Timestamp(time),
        };
        if time == UNDEFINED_TIME {
            return Err("a record has no time".to_string());
        }
        if header.at < self.last {
            return Err("its time is before that of the record before".to_string());
        }
        self.last = header.at;
        let Some(security) = self.metadata.instruments.find(header.instrument, header.at) else {
            return Ok(None);
        };
        self.is_used = true;
        self.change_instrument(&header, security);
        match rtype {
            rtype::TRADE => self.trade(&header, security, record, self.trade_quotes)?,
            rtype::MBP_1 | rtype::MBP_10 => self.levels(&header, security, record)?,
            rtype::MBO => self.order(&header, security, record)?,
            _ => return self.bar(&header, security, record).map(Some),
        }
        Ok(None)
    }

    /// Removes the levels of the instrument that a security had before.
    fn change_instrument(&mut self, header: &RecordHeader, security: SecurityId) {
        let before = self.current.insert(security, header.instrument);
        if let Some(before) = before.filter(|before| *before != header.instrument)
            && let Some(mut book) = self.books.remove(&(before, security))
        {
            let (at, rows) = (header.at, &mut self.rows);
            book.orders.clear(&mut BookOutput { at, rows, orders: &mut self.orders });
        }
    }

    /// Applies a record that gives an instrument id its symbol, as live data have them.
    fn map_symbol(&mut self, record: &[u8]) -> Result<(), String> {
        let bytes = self.metadata.symbol_bytes;
        // From version 2 on, the symbology of each symbol stands before it.
        let at = if self.metadata.version == 1 { HEADER_BYTES } else { HEADER_BYTES + 1 };
        let symbol = record.get(at..at + bytes).ok_or("a record with a symbol is too short")?;
        let symbol = c_text(symbol)?;
        let security = self.symbols.find(symbol)?;
        if security.is_none() && self.foreign.is_none() {
            self.foreign = Some(symbol.to_string());
        }
        self.metadata.instruments.set(u32::from_le_bytes(field(record, 4)), security);
        Ok(())
    }

    /// Adds the trade of a record.
    fn trade(
        &mut self,
        header: &RecordHeader,
        security: SecurityId,
        record: &[u8],
        is_quoted: bool,
    ) -> Result<(), String> {
        let (price_at, size_at, side_at) =
            if header.rtype == rtype::MBO { (24, 32, 39) } else { (16, 24, 29) };
        let Some(price) = price(record, price_at)? else { return Ok(()) };
        let row = trade_row(header.at, security, price, size(record, size_at));
        let taker = side(record[side_at])?;
        self.rows.push_back(match is_quoted {
            true => quoted_trade_row(&row, self.symbols.tick_size(security), taker),
            false => row,
        });
        Ok(())
    }

    /// Applies a record with the best levels of both sides.
    fn levels(&mut self, header: &RecordHeader, security: SecurityId, record: &[u8]) -> Result<(), String> {
        let mut sides = [Vec::with_capacity(10), Vec::with_capacity(10)];
        let count = if header.rtype == rtype::MBP_1 { 1 } else { 10 };
        for level in 0..count {
            let at = LEVELS_AT + level * LEVEL_BYTES;
            for (nth, side) in sides.iter_mut().enumerate() {
                let size = size(record, at + 16 + 4 * nth);
                if let Some(price) = price(record, at + 8 * nth)?.filter(|_| size.is_positive()) {
                    side.push((price, size));
                }
            }
        }
        // Of one level only the best price is known, and no levels.
        let shown = if count == 1 { 0 } else { self.levels };
        let book = book(&mut self.books, header, security, shown)?;
        let levels = book.orders.levels();
        for (side, prices) in [Side::Buy, Side::Sell].into_iter().zip(&sides) {
            levels.replace(header.at, side, prices, &mut self.rows);
        }
        levels.quote(header.at, &mut self.rows);
        // The levels are those before the trade.
        if record[28] == b'T' {
            self.trade(header, security, record, false)?;
        }
        Ok(())
    }

    /// Applies a record of a single order.
    fn order(&mut self, header: &RecordHeader, security: SecurityId, record: &[u8]) -> Result<(), String> {
        let (flags, action) = (record[36], record[38]);
        let (id, size) = (u64::from_le_bytes(field(record, 16)), size(record, 32));
        let book = book(&mut self.books, header, security, self.levels)?;
        let InstrumentBook { orders, is_complete, .. } = book;
        let mut out = BookOutput { at: header.at, rows: &mut self.rows, orders: &mut self.orders };
        let order = || -> Result<Option<RestingOrder>, String> {
            let (side, price) = (side(record[39])?, price(record, 24)?);
            Ok(side.zip(price).map(|(side, price)| RestingOrder { side, price, size }))
        };
        // Orders that came before the file are unknown until the book is cleared once.
        let is_known = |orders: &OrderLevels| *is_complete || orders.order(id).is_some();
        match action {
            b'R' => {
                orders.clear(&mut out);
                *is_complete = true;
            }
            b'A' if flags & flag::TOP_OF_BOOK != 0 => {
                if let Some(side) = side(record[39])? {
                    let best = order()?.map(|order| (order.price, order.size));
                    let best = best.filter(|(_, size)| size.is_positive());
                    orders.levels().replace(header.at, side, best.as_slice(), out.rows);
                }
            }
            b'A' => {
                if let Some(order) = order()?.filter(|order| order.size.is_positive()) {
                    orders.add(id, order, &mut out)?;
                }
            }
            b'C' if is_known(orders) => _ = orders.reduce(id, size, &mut out)?,
            b'M' => {
                if orders.order(id).is_some() {
                    orders.remove(id, &mut out)?;
                }
                if let Some(order) = order()?.filter(|order| order.size.is_positive()) {
                    orders.add(id, order, &mut out)?;
                }
            }
            b'T' | b'F' | b'N' | b'C' => {}
            _ => return Err(format!("an action {:?} is unknown", char::from(action))),
        }
        if flags & flag::LAST != 0 {
            orders.levels().quote(header.at, &mut self.rows);
        }
        if action == b'T' {
            self.trade(header, security, record, false)?;
        }
        Ok(())
    }

    fn bar(&mut self, header: &RecordHeader, security: SecurityId, record: &[u8]) -> Result<BarRow, String> {
        if interval_ns(header.rtype) != self.interval_ns {
            return Err("it has bars of several lengths".to_string());
        }
        let raw = |at| price(record, at).map(|price| price.map(Price::raw));
        let volume = i128::from(u64::from_le_bytes(field(record, 48)));
        bar_of(header.at, security, [raw(16)?, raw(24)?, raw(32)?, raw(40)?], Some(rescaled(volume, 0)?))
    }
}

impl EntrySource for DbnFile {
    fn next_entry(&mut self) -> Result<Option<DataEntry>, DataError> {
        loop {
            if let Some(row) = self.rows.pop_front() {
                return Ok(Some(DataEntry::Tick(row)));
            }
            match self.read_record()? {
                Some(Some(bar)) => return Ok(Some(DataEntry::Bar(bar))),
                Some(None) => {}
                None => return Ok(None),
            }
        }
    }

    fn fault(&self, problem: &str) -> DataError {
        self.stream.fault(problem)
    }
}

/// Returns the book of an instrument; an instrument of several publishers has several books, and no
/// best price.
fn book<'a>(
    books: &'a mut BTreeMap<(u32, SecurityId), InstrumentBook>,
    header: &RecordHeader,
    security: SecurityId,
    shown: usize,
) -> Result<&'a mut InstrumentBook, String> {
    let book = books.entry((header.instrument, security)).or_insert_with(|| InstrumentBook {
        publisher: header.publisher,
        orders: OrderLevels::new(TopLevels::new(security, shown)),
        is_complete: false,
    });
    if book.publisher != header.publisher {
        return Err(format!(
            "instrument {} has books of the publishers {} and {}: use a file of one",
            header.instrument, book.publisher, header.publisher
        ));
    }
    Ok(book)
}

fn interval_ns(rtype: u8) -> Option<u64> {
    match rtype {
        rtype::OHLCV_1S => Some(NS_PER_S),
        rtype::OHLCV_1M => Some(60 * NS_PER_S),
        rtype::OHLCV_1H => Some(3_600 * NS_PER_S),
        rtype::OHLCV_1D => Some(NS_PER_DAY),
        _ => None,
    }
}

/// Returns the price at an offset; `None` if there is none.
fn price(record: &[u8], at: usize) -> Result<Option<Price>, String> {
    match i64::from_le_bytes(field(record, at)) {
        UNDEFINED_PRICE => Ok(None),
        raw => rescaled(i128::from(raw), PRICE_DECIMALS)
            .map(|raw| Some(Price::from_raw(raw)))
            .map_err(|problem| format!("a price of {raw} · 10⁻⁹: {problem}")),
    }
}

fn size(record: &[u8], at: usize) -> Qty {
    Qty::from_raw(i64::from(u32::from_le_bytes(field(record, at))) * UNIT)
}

/// Returns a side; `None` if it is not known.
fn side(code: u8) -> Result<Option<Side>, String> {
    match code {
        b'B' => Ok(Some(Side::Buy)),
        b'A' => Ok(Some(Side::Sell)),
        b'N' => Ok(None),
        _ => Err(format!("a side {:?} is unknown", char::from(code))),
    }
}
