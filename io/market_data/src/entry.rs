//! A line of a file, independent of the file's format, and its conversion.

use std::fmt;

use pitlane_engine::command::{CommandKind, FeedLevel, Quote, Trade};
use pitlane_engine::id::SecurityId;
use pitlane_engine::index::index_u32;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::terms::Side;
use pitlane_engine::text::{self, DECIMALS, SCALE};
use pitlane_engine::time::Timestamp;

use super::bars::BarRow;
use super::{DataError, TickRow};

/// Bound below which a float represents every whole number exactly.
const EXACT_MAX: f64 = (1_u64 << 53) as f64;

/// Lines from elsewhere than a file, such as a table in memory.
pub trait EntrySource: fmt::Debug + Send {
    /// Returns the next line, in time order; `None` at the end.
    fn next_entry(&mut self) -> Result<Option<DataEntry>, DataError>;

    /// Returns an error of the line that `next_entry` returned last.
    fn fault(&self, problem: &str) -> DataError;
}

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataEntry {
    Tick(TickRow),
    Bar(BarRow),
}

impl DataEntry {
    #[inline]
    pub fn at(&self) -> Timestamp {
        match self {
            DataEntry::Tick(row) => row.at,
            DataEntry::Bar(bar) => bar.at,
        }
    }
}

/// Checks that lines come in the order of their times.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimeOrder {
    last: Timestamp,
}

impl TimeOrder {
    /// Returns the line, or what is wrong if it is earlier than the one before it.
    #[inline]
    pub fn check(&mut self, entry: DataEntry) -> Result<DataEntry, String> {
        if entry.at() < self.last {
            return Err("its time is before that of the row above".to_string());
        }
        self.last = entry.at();
        Ok(entry)
    }
}

/// The cells of a tick, scaled; `None` for an empty cell.
#[derive(Clone, Copy, Debug)]
pub struct TickCells {
    pub at: Timestamp,
    pub security: SecurityId,
    pub bid: Option<i64>,
    pub bid_size: Option<i64>,
    pub ask: Option<i64>,
    pub ask_size: Option<i64>,
    pub last: Option<i64>,
    pub last_size: Option<i64>,
}

impl TickCells {
    /// Converts the cells into a quote, a trade or both.
    #[inline]
    pub fn row(&self) -> Result<TickRow, String> {
        let TickCells { at, security, .. } = *self;
        let (bid, bid_size) = side(self.bid, self.bid_size, "bid")?;
        let (ask, ask_size) = side(self.ask, self.ask_size, "ask")?;
        let last_size = self.last_size.unwrap_or(0);
        if self.last.is_some() && last_size < 0 {
            return Err("lastSize is negative".to_string());
        }
        let quote = Quote { bid, bid_size, ask, ask_size, at };
        let trade = |price| Trade { price: Price::from_raw(price), size: Qty::from_raw(last_size), at };
        let is_quoted = bid_size.is_positive() || ask_size.is_positive();
        let body = match (is_quoted, self.last) {
            (true, Some(last)) => CommandKind::Tick { security, quote, trade: trade(last) },
            (true, None) => CommandKind::Quote { security, quote },
            (false, Some(last)) => CommandKind::Trade { security, trade: trade(last) },
            (false, None) => return Err("there is neither a quote nor a trade".to_string()),
        };
        Ok(TickRow { at, security, body })
    }
}

/// Returns one side of a quote; a side without a size does not exist.
#[inline]
fn side(price: Option<i64>, size: Option<i64>, name: &str) -> Result<(Price, Qty), String> {
    match (price, size) {
        (Some(price), Some(size)) if size >= 0 => Ok((Price::from_raw(price), Qty::from_raw(size))),
        (None, None | Some(0)) => Ok((Price::ZERO, Qty::ZERO)),
        (_, Some(size)) if size < 0 => Err(format!("{name}Size is negative")),
        (Some(_), None) => Err(format!("{name}Size is missing")),
        (_, Some(_)) => Err(format!("{name} is missing")),
    }
}

/// Returns a bar of open, high, low and close, if they are consistent.
pub fn bar_of(
    at: Timestamp,
    security: SecurityId,
    prices: [Option<i64>; 4],
    volume: Option<i64>,
) -> Result<BarRow, String> {
    let names = ["open", "high", "low", "close"];
    if let Some(nth) = prices.iter().position(Option::is_none) {
        return Err(format!("{} is empty", names[nth]));
    }
    let [open, high, low, close] = prices.map(|price| Price::from_raw(price.unwrap_or_default()));
    let volume = Qty::from_raw(volume.unwrap_or(0));
    let is_between = |price: Price| (low..=high).contains(&price);
    if volume.is_negative() || high < low || !is_between(open) || !is_between(close) {
        return Err("low, open, close and high do not fit together".to_string());
    }
    Ok(BarRow { at, security, open, high, low, close, volume })
}

/// Returns the decimal of eight places that is nearest to a float: what was written, unless that
/// had more places.
pub fn nearest(value: f64) -> Result<i64, String> {
    let scaled = value * SCALE as f64;
    if scaled.abs() < EXACT_MAX {
        #[expect(clippy::cast_possible_truncation, reason = "below the bound every float is exact")]
        let rounded = scaled.round() as i64;
        return Ok(rounded);
    }
    if !value.is_finite() {
        return Err("it is infinite".to_string());
    }
    // The value is so large that it has few decimals: its own text is exact.
    text::parse_scaled(format!("{value}").as_bytes()).map_err(|error| error.to_string())
}

/// Returns a whole number with so many decimals in units of 10⁻⁸.
pub fn rescaled(value: i128, decimals: u32) -> Result<i64, String> {
    let scaled = match decimals as usize {
        decimals if decimals <= DECIMALS => value.checked_mul(10_i128.pow(index_u32(DECIMALS - decimals))),
        decimals => {
            let much = 10_i128.checked_pow(index_u32(decimals - DECIMALS)).ok_or("too many decimals")?;
            if value % much != 0 {
                return Err("too many decimals".to_string());
            }
            Some(value / much)
        }
    };
    scaled.and_then(|scaled| i64::try_from(scaled).ok()).ok_or_else(|| "out of range".to_string())
}

/// Returns the side of a level: `B` or `A`.
pub fn side_of(text: &[u8]) -> Result<Side, String> {
    match text {
        b"B" => Ok(Side::Buy),
        b"A" => Ok(Side::Sell),
        _ => Err(format!("side must be B (bid) or A (ask), not {:?}", String::from_utf8_lossy(text))),
    }
}

/// Returns the text of a side in files.
pub(crate) fn side_name(side: Side) -> &'static str {
    match side {
        Side::Buy => "B",
        Side::Sell => "A",
    }
}

/// Returns a level of the book; a size of zero removes it.
pub fn level_of(
    at: Timestamp,
    security: SecurityId,
    side: Side,
    price: Option<i64>,
    size: Option<i64>,
) -> Result<TickRow, String> {
    let price = Price::from_raw(price.ok_or("price is empty")?);
    let size = Qty::from_raw(size.ok_or("size is empty")?);
    if size.is_negative() {
        return Err("size is negative".to_string());
    }
    Ok(level_row(at, security, side, price, size))
}

pub(crate) fn level_row(at: Timestamp, security: SecurityId, side: Side, price: Price, size: Qty) -> TickRow {
    let level = FeedLevel { side, price, size, at };
    TickRow { at, security, body: CommandKind::Level { security, level } }
}
