//! Reads the archives of public data of Binance: trades, aggregated trades and klines, of spot and
//! futures markets, with and without a header.
//!
//! ```text
//! trades      id, price, quantity, quote quantity, time, buyer is maker[, best match]
//! aggTrades   id, price, quantity, first id, last id, time, buyer is maker[, best match]
//! klines      open time, open, high, low, close, volume, close time, and five more
//! ```
//!
//! Times are milliseconds or microseconds, told apart by their size. The rows do not name the
//! symbol: the file's name begins with it, such as `BTCUSDT-trades-2024-01-01.csv`.

use std::path::Path;

use pitlane_engine::id::SecurityId;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::terms::Side;
use pitlane_engine::text;
use pitlane_engine::time::{NS_PER_MS, Timestamp};

use super::entry::{DataEntry, EntrySource, TimeOrder, bar_of};
use super::foreign_symbols::{ForeignSymbols, no_symbol_is_known};
use super::lines::{CellReader, LineReader};
use super::top_levels::{quoted_trade_row, trade_row};
use super::{DataError, TickRow};

const NS_PER_US: u64 = 1_000;
/// Times below are milliseconds, and those from here on microseconds: the year 5138, or 1973.
const MICROSECONDS_FROM: u64 = 100_000_000_000_000;
/// Times from here on would be nanoseconds.
const MICROSECONDS_TO: u64 = 100_000_000_000_000_000;

/// What a file contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BinanceLayout {
    Trades,
    AggTrades,
    Klines,
}

/// Returns the layout of a file by its first line; `None` if it has none of them.
pub(crate) fn layout_of(head: &[u8]) -> Option<BinanceLayout> {
    let line = head.split(|byte| *byte == b'\n').next()?;
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let cells: Vec<&[u8]> = line.split(|byte| *byte == b',').collect();
    let is_flag = |nth: usize| cells.get(nth).is_some_and(|cell| flag(cell).is_ok());
    let is_number = |nth: usize| cells.get(nth).is_some_and(|cell| text::parse_u64(cell).is_ok());
    match (cells.first()?, cells.len()) {
        (&b"id", 6 | 7) => Some(BinanceLayout::Trades),
        (&b"agg_trade_id", 7 | 8) => Some(BinanceLayout::AggTrades),
        (&b"open_time", 12) => Some(BinanceLayout::Klines),
        (_, 12) if is_number(0) && is_number(6) && is_number(8) => Some(BinanceLayout::Klines),
        (_, 6 | 7) if is_number(0) && is_number(4) && is_flag(5) => Some(BinanceLayout::Trades),
        (_, 7 | 8) if is_number(0) && is_number(5) && is_flag(6) => Some(BinanceLayout::AggTrades),
        _ => None,
    }
}

#[derive(Debug)]
pub struct BinanceFile {
    lines: LineReader,
    layout: BinanceLayout,
    security: SecurityId,
    /// Tick size, if a trade makes a quote.
    quote_tick: Option<Price>,
    /// Length of the bars, from the first one.
    interval_ns: Option<u64>,
    /// The first row, which was read to know that length.
    first: Option<DataEntry>,
    order: TimeOrder,
    /// Whether a row was read, so that no header follows.
    has_rows: bool,
}

impl BinanceFile {
    pub(crate) fn new(
        path: &Path,
        lines: LineReader,
        layout: BinanceLayout,
        symbols: &ForeignSymbols,
        trade_quotes: bool,
    ) -> Result<BinanceFile, DataError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let symbol = name.split(['-', '.']).next().unwrap_or_default();
        let security = symbols
            .find(symbol)
            .and_then(|security| security.ok_or_else(|| no_symbol_is_known([symbol].into_iter())));
        let security = security.map_err(|problem| DataError::whole(path.display(), problem))?;
        let quote_tick = trade_quotes.then(|| symbols.tick_size(security));
        let (interval_ns, first, order, has_rows) = (None, None, TimeOrder::default(), false);
        let mut file =
            BinanceFile { lines, layout, security, quote_tick, interval_ns, first, order, has_rows };
        file.first = file.read_row()?;
        Ok(file)
    }

    /// Returns the length of bars; `None` if there are none.
    pub(crate) fn interval_ns(&self) -> Option<u64> {
        self.interval_ns
    }

    fn read_row(&mut self) -> Result<Option<DataEntry>, DataError> {
        loop {
            let Some(line) = self.lines.next_line()? else { return Ok(None) };
            // A header begins with a letter, perhaps after a byte order mark.
            let is_header = !self.has_rows
                && self
                    .lines
                    .text(line)
                    .iter()
                    .find(|byte| byte.is_ascii())
                    .is_some_and(u8::is_ascii_alphabetic);
            if line.0 == line.1 || is_header {
                continue;
            }
            let cells = self.lines.cells(line);
            let parsed = match self.layout {
                BinanceLayout::Trades => self.trade(cells, 1),
                BinanceLayout::AggTrades => self.trade(cells, 2),
                BinanceLayout::Klines => self.kline(cells),
            };
            let (entry, interval_ns) = parsed.map_err(|problem| self.lines.fault(&problem))?;
            if let Some(ns) = interval_ns
                && *self.interval_ns.get_or_insert(ns) != ns
            {
                return Err(self.lines.fault("its length is another than that of the first bar"));
            }
            self.has_rows = true;
            return self.order.check(entry).map(Some).map_err(|problem| self.lines.fault(&problem));
        }
    }

    /// Parses a trade, with so many cells between quantity and time.
    fn trade(&self, mut cells: CellReader<'_>, between: usize) -> Result<(DataEntry, Option<u64>), String> {
        cells.next("id")?;
        let price = cells.decimal("price")?.ok_or("price is empty")?;
        let size =
            cells.decimal("quantity")?.filter(|size| *size >= 0).ok_or("quantity is empty or negative")?;
        for _ in 0..between {
            cells.next("cell before time")?;
        }
        let at = time(cells.next("time")?)?;
        let is_buyer_maker = flag(cells.next("isBuyerMaker")?)?;
        let row: TickRow = trade_row(at, self.security, Price::from_raw(price), Qty::from_raw(size));
        let taker = if is_buyer_maker { Side::Sell } else { Side::Buy };
        let row = match self.quote_tick {
            Some(tick) => quoted_trade_row(&row, tick, Some(taker)),
            None => row,
        };
        Ok((DataEntry::Tick(row), None))
    }

    fn kline(&self, mut cells: CellReader<'_>) -> Result<(DataEntry, Option<u64>), String> {
        let at = time(cells.next("open time")?)?;
        let mut price = |name| cells.decimal(name);
        let prices = [price("open")?, price("high")?, price("low")?, price("close")?];
        let volume = cells.decimal("volume")?;
        let close = cells.next("close time")?;
        // The close time is the last unit before the next bar.
        let unit_ns = if text::parse_u64(close).is_ok_and(|time| time < MICROSECONDS_FROM) {
            NS_PER_MS
        } else {
            NS_PER_US
        };
        let interval_ns = time(close)?.plus(unit_ns).0.checked_sub(at.0).filter(|ns| *ns > 0);
        let interval_ns = interval_ns.ok_or("the close time is not after the open time")?;
        Ok((DataEntry::Bar(bar_of(at, self.security, prices, volume)?), Some(interval_ns)))
    }
}

impl EntrySource for BinanceFile {
    fn next_entry(&mut self) -> Result<Option<DataEntry>, DataError> {
        match self.first.take() {
            Some(first) => Ok(Some(first)),
            None => self.read_row(),
        }
    }

    fn fault(&self, problem: &str) -> DataError {
        self.lines.fault(problem)
    }
}

fn time(cell: &[u8]) -> Result<Timestamp, String> {
    let problem =
        || format!("{:?} is no time in milliseconds or microseconds", String::from_utf8_lossy(cell));
    let ns = match text::parse_u64(cell) {
        Ok(time) if time < MICROSECONDS_FROM => time.checked_mul(NS_PER_MS),
        Ok(time) if time < MICROSECONDS_TO => time.checked_mul(NS_PER_US),
        Ok(_) | Err(_) => None,
    };
    ns.map(Timestamp).ok_or_else(problem)
}

fn flag(cell: &[u8]) -> Result<bool, String> {
    match cell {
        b"true" | b"True" | b"TRUE" => Ok(true),
        b"false" | b"False" | b"FALSE" => Ok(false),
        _ => Err(format!("{:?} is neither true nor false", String::from_utf8_lossy(cell))),
    }
}
