//! The rows of the history, a tick and a bar, and their bytes in files: words of 64 bits, least
//! significant byte first.

use std::fmt;

use pitlane_engine::event::Tick;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::time::Timestamp;

/// Bytes of a word in a file.
const WORD: usize = size_of::<u64>();

/// A row of a series. The times of one security increase from row to row.
pub(crate) trait HistoryRow: Copy + fmt::Debug + 'static {
    /// Bytes of a row in a file.
    const BYTES: usize;

    /// Returns the time by which rows are ordered.
    fn at(&self) -> Timestamp;

    /// Appends [`Self::BYTES`] bytes.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads [`Self::BYTES`] bytes, whose checksum was verified.
    fn decode(bytes: &[u8]) -> Self;
}

/// A change of the market of one security, as it was published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoredTick {
    pub at: Timestamp,
    pub bid: Price,
    pub bid_size: Qty,
    pub ask: Price,
    pub ask_size: Qty,
    /// Price of the last trade; zero before the first one.
    pub last: Price,
    pub last_size: Qty,
    /// Quantity traded since the tick before; zero if nothing was.
    pub traded: Qty,
    pub has_quote: bool,
    pub has_trade: bool,
}

impl StoredTick {
    const HAS_QUOTE: u64 = 1;
    const HAS_TRADE: u64 = 2;
    const WORDS: usize = 9;

    /// Returns whether the quote is that of a tick; `shows_trade` likewise.
    pub(crate) fn shows_quote(&self, tick: &Tick) -> bool {
        (self.bid, self.bid_size, self.ask, self.ask_size)
            == (tick.bid, tick.bid_size, tick.ask, tick.ask_size)
    }

    pub(crate) fn shows_trade(&self, tick: &Tick) -> bool {
        (self.last, self.last_size) == (tick.last, tick.last_size)
    }
}

impl HistoryRow for StoredTick {
    const BYTES: usize = StoredTick::WORDS * WORD;

    fn at(&self) -> Timestamp {
        self.at
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let flag = |is_set: bool, flag| if is_set { flag } else { 0 };
        let flags = flag(self.has_quote, StoredTick::HAS_QUOTE) | flag(self.has_trade, StoredTick::HAS_TRADE);
        let words: [u64; StoredTick::WORDS] = [
            self.at.0,
            self.bid.raw().cast_unsigned(),
            self.bid_size.raw().cast_unsigned(),
            self.ask.raw().cast_unsigned(),
            self.ask_size.raw().cast_unsigned(),
            self.last.raw().cast_unsigned(),
            self.last_size.raw().cast_unsigned(),
            self.traded.raw().cast_unsigned(),
            flags,
        ];
        push_words(out, &words);
    }

    fn decode(bytes: &[u8]) -> StoredTick {
        let [at, bid, bid_size, ask, ask_size, last, last_size, traded, flags] =
            words::<{ StoredTick::WORDS }>(bytes);
        StoredTick {
            at: Timestamp(at),
            bid: price(bid),
            bid_size: qty(bid_size),
            ask: price(ask),
            ask_size: qty(ask_size),
            last: price(last),
            last_size: qty(last_size),
            traded: qty(traded),
            has_quote: flags & StoredTick::HAS_QUOTE != 0,
            has_trade: flags & StoredTick::HAS_TRADE != 0,
        }
    }
}

/// The trades of one security in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoredBar {
    /// Begin of the interval.
    pub at: Timestamp,
    pub open: Price,
    pub high: Price,
    pub low: Price,
    pub close: Price,
    /// Quantity of all trades; it saturates.
    pub volume: Qty,
    /// Number of ticks that showed a trade.
    pub trades: u64,
}

impl StoredBar {
    const WORDS: usize = 7;

    /// Creates the bar of a single trade.
    pub(crate) fn of_trade(at: Timestamp, price: Price, volume: Qty) -> StoredBar {
        StoredBar { at, open: price, high: price, low: price, close: price, volume, trades: 1 }
    }

    /// Adds a bar that follows this one.
    pub(crate) fn add(&mut self, later: &StoredBar) {
        self.high = self.high.max(later.high);
        self.low = self.low.min(later.low);
        self.close = later.close;
        self.volume = Qty::from_raw(self.volume.raw().saturating_add(later.volume.raw()));
        self.trades += later.trades;
    }
}

impl HistoryRow for StoredBar {
    const BYTES: usize = StoredBar::WORDS * WORD;

    fn at(&self) -> Timestamp {
        self.at
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let words: [u64; StoredBar::WORDS] = [
            self.at.0,
            self.open.raw().cast_unsigned(),
            self.high.raw().cast_unsigned(),
            self.low.raw().cast_unsigned(),
            self.close.raw().cast_unsigned(),
            self.volume.raw().cast_unsigned(),
            self.trades,
        ];
        push_words(out, &words);
    }

    fn decode(bytes: &[u8]) -> StoredBar {
        let [at, open, high, low, close, volume, trades] = words::<{ StoredBar::WORDS }>(bytes);
        StoredBar {
            at: Timestamp(at),
            open: price(open),
            high: price(high),
            low: price(low),
            close: price(close),
            volume: qty(volume),
            trades,
        }
    }
}

pub(crate) fn push_words(out: &mut Vec<u8>, words: &[u64]) {
    words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
}

/// Reads words from the front of the bytes; words beyond the end are zero.
pub(crate) fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let (chunks, _) = bytes.as_chunks::<WORD>();
    let mut words = [0; N];
    words.iter_mut().zip(chunks).for_each(|(word, chunk)| *word = u64::from_le_bytes(*chunk));
    words
}

fn price(word: u64) -> Price {
    Price::from_raw(word.cast_signed())
}

fn qty(word: u64) -> Qty {
    Qty::from_raw(word.cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_what_they_were_after_encoding() {
        let tick = StoredTick {
            at: Timestamp(u64::MAX - 1),
            bid: Price::from_raw(-1),
            bid_size: Qty::from_raw(2),
            ask: Price::from_raw(i64::MAX),
            ask_size: Qty::from_raw(i64::MIN),
            last: Price::from_raw(5),
            last_size: Qty::from_raw(6),
            traded: Qty::from_raw(7),
            has_quote: true,
            has_trade: false,
        };
        let bar = StoredBar {
            at: Timestamp(1),
            open: Price::from_raw(2),
            high: Price::from_raw(3),
            low: Price::from_raw(-4),
            close: Price::from_raw(5),
            volume: Qty::from_raw(6),
            trades: 7,
        };
        let mut bytes = Vec::new();
        tick.encode(&mut bytes);
        bar.encode(&mut bytes);
        assert_eq!(bytes.len(), StoredTick::BYTES + StoredBar::BYTES);
        assert_eq!(StoredTick::decode(&bytes), tick);
        assert_eq!(StoredBar::decode(&bytes[StoredTick::BYTES..]), bar);
    }
}
