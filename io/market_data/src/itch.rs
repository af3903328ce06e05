//! Reads NASDAQ TotalView-ITCH 5.0: messages with a length of two bytes in front, as in the files
//! that NASDAQ publishes. Numbers are big-endian, prices have four decimals, and times are
//! nanoseconds after midnight in New York.
//!
//! ```text
//! R ─► security of a locate code      A F E C X D U ─► orders ─► levels, quotes
//! E C P Q ─► trades                   others are skipped
//! ```

use std::collections::{BTreeMap, VecDeque};

use pitlane_config::time_zone::Zone;
use pitlane_engine::id::SecurityId;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::terms::Side;
use pitlane_engine::text;
use pitlane_engine::time::{Day, NS_PER_DAY, TimeOfDay, Timestamp};

use super::entry::{DataEntry, EntrySource};
use super::foreign_symbols::{ForeignSymbols, no_symbol_is_known};
use super::input::{RecordStream, field};
use super::order_levels::{BookOutput, OrderLevels, RestingOrder};
use super::top_levels::{TopLevels, trade_row};
use super::{DataError, TickRow};

/// Lengths of the messages that are used.
const LENGTHS: [(u8, usize); 13] = [
    (b'S', 12),
    (b'R', 39),
    (b'A', 36),
    (b'F', 40),
    (b'E', 31),
    (b'C', 36),
    (b'X', 23),
    (b'D', 19),
    (b'U', 35),
    (b'P', 44),
    (b'Q', 40),
    (b'H', 25),
    (b'B', 19),
];
/// Raw units of a price with four decimals, and of one share.
const PRICE_UNIT: i64 = 10_000;
const SHARE: i64 = 100_000_000;
/// Symbols that are remembered to name them in an error.
const NAMED_MAX: usize = 3;

#[derive(Debug)]
pub struct ItchFile {
    stream: RecordStream,
    symbols: ForeignSymbols,
    /// Midnight in New York.
    midnight: Timestamp,
    levels: usize,
    /// Books by locate code.
    books: BTreeMap<u16, OrderLevels>,
    orders: usize,
    rows: VecDeque<TickRow>,
    last: Timestamp,
    /// Some symbols without a security.
    foreign: Vec<String>,
}

/// Returns whether a file begins as ITCH does: with the system event of its start.
pub(crate) fn is_itch(head: &[u8]) -> bool {
    head.starts_with(&[0, 12, b'S']) && head.len() > 13 && head[13] == b'O'
}

/// Returns the day that a file name contains, as NASDAQ writes it: `12302019.NASDAQ_ITCH50`,
/// `S081321-v50.txt`, or `20191230`.
pub(crate) fn day_in_name(name: &str) -> Option<Day> {
    let number = |text: &str| text.parse::<u32>().ok();
    let date = |year: &str, month: &str, day: &str| {
        let year = i32::try_from(number(year)?).ok()?;
        text::days_of(year, number(month)?, number(day)?).filter(|_| (1_990..2_200).contains(&year)).map(Day)
    };
    name.split(|byte: char| !byte.is_ascii_digit()).find_map(|digits| match digits.len() {
        8 => date(&digits[4..], &digits[..2], &digits[2..4])
            .or_else(|| date(&digits[..4], &digits[4..6], &digits[6..])),
        6 => date(&format!("20{}", &digits[4..]), &digits[..2], &digits[2..4]),
        _ => None,
    })
}

impl ItchFile {
    pub(crate) fn new(stream: RecordStream, symbols: ForeignSymbols, day: Day, levels: usize) -> ItchFile {
        let zone = Zone::parse("America/New_York").unwrap_or_default();
        ItchFile {
            stream,
            symbols,
            midnight: zone.instant(day, TimeOfDay(0)),
            levels,
            books: BTreeMap::new(),
            orders: 0,
            rows: VecDeque::new(),
            last: Timestamp::ZERO,
            foreign: Vec::new(),
        }
    }

    /// Reads one message; returns false at the end.
    fn read_message(&mut self) -> Result<bool, DataError> {
        let head = self.stream.peek(2)?;
        let &[high, low] = head else {
            let is_end = head.is_empty();
            if !is_end {
                return Err(self.stream.fault("the length of a message is cut"));
            }
            return self.end();
        };
        let length = usize::from(u16::from_be_bytes([high, low]));
        let message = self.stream.peek(2 + length)?;
        if message.len() < 2 + length {
            let problem = format!("a message of {length} bytes is cut");
            return Err(self.stream.fault(&problem));
        }
        let done = Message::new(&message[2..]).and_then(|message| {
            let Some(message) = message else { return Ok(()) };
            let at = self.midnight.plus(message.time_ns);
            if at < self.last {
                return Err("its time is before that of the message before".to_string());
            }
            self.last = at;
            let out = BookOutput { at, rows: &mut self.rows, orders: &mut self.orders };
            match message.kind {
                b'R' => {
                    let (symbols, books) = (&self.symbols, &mut self.books);
                    let symbol = String::from_utf8_lossy(&message.bytes[11..19]).trim_end().to_string();
                    match symbols.find(&symbol)? {
                        Some(security) => {
                            let book = || OrderLevels::new(TopLevels::new(security, self.levels));
                            books.entry(message.locate).or_insert_with(book);
                        }
                        None if self.foreign.len() < NAMED_MAX => self.foreign.push(symbol),
                        None => {}
                    }
                    Ok(())
                }
                _ => match self.books.get_mut(&message.locate) {
                    Some(book) => apply(&message, book, out),
                    None => Ok(()),
                },
            }
        });
        done.map_err(|problem| self.stream.fault(&problem))?;
        self.stream.skip(2 + length);
        Ok(true)
    }

    /// Ends the file; a file without a known symbol is an error.
    fn end(&mut self) -> Result<bool, DataError> {
        if self.books.is_empty() {
            let problem = no_symbol_is_known(self.foreign.iter().map(String::as_str));
            return Err(self.stream.fault(&problem));
        }
        Ok(false)
    }
}

impl EntrySource for ItchFile {
    fn next_entry(&mut self) -> Result<Option<DataEntry>, DataError> {
        loop {
            if let Some(row) = self.rows.pop_front() {
                return Ok(Some(DataEntry::Tick(row)));
            }
            if !self.read_message()? {
                return Ok(None);
            }
        }
    }

    fn fault(&self, problem: &str) -> DataError {
        self.stream.fault(problem)
    }
}

/// A message whose length is that of its kind.
struct Message<'a> {
    kind: u8,
    locate: u16,
    time_ns: u64,
    bytes: &'a [u8],
}

impl Message<'_> {
    /// Returns a message; `None` if its kind is not used.
    fn new(bytes: &[u8]) -> Result<Option<Message<'_>>, String> {
        let Some(kind) = bytes.first() else { return Err("a message is empty".to_string()) };
        let Some((_, length)) = LENGTHS.iter().find(|(known, _)| known == kind) else { return Ok(None) };
        if bytes.len() != *length {
            let kind = char::from(*kind).escape_default();
            return Err(format!("a message {kind} has {length} bytes, not {}", bytes.len()));
        }
        let [a, b, c, d, e, f] = field(bytes, 5);
        let time_ns = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        // A day with the change from summer time has 25 hours.
        if time_ns > NS_PER_DAY + NS_PER_DAY / 24 {
            return Err(format!("a time of {time_ns} ns is after the end of the day"));
        }
        Ok(Some(Message { kind: *kind, locate: u16::from_be_bytes(field(bytes, 1)), time_ns, bytes }))
    }

    fn order(&self) -> u64 {
        u64::from_be_bytes(field(self.bytes, 11))
    }

    fn shares(&self, at: usize) -> Qty {
        Qty::from_raw(i64::from(u32::from_be_bytes(field(self.bytes, at))) * SHARE)
    }

    fn price(&self, at: usize) -> Price {
        Price::from_raw(i64::from(u32::from_be_bytes(field(self.bytes, at))) * PRICE_UNIT)
    }

    fn side(&self, at: usize) -> Result<Side, String> {
        match self.bytes[at] {
            b'B' => Ok(Side::Buy),
            b'S' => Ok(Side::Sell),
            other => Err(format!("a side must be B or S, not {:?}", char::from(other))),
        }
    }
}

/// Applies a message to the book of its security.
fn apply(message: &Message<'_>, book: &mut OrderLevels, mut out: BookOutput<'_>) -> Result<(), String> {
    let (at, id) = (out.at, message.order());
    let security: SecurityId = book.levels().security();
    match message.kind {
        b'A' | b'F' => {
            let order =
                RestingOrder { side: message.side(19)?, price: message.price(32), size: message.shares(20) };
            book.add(id, order, &mut out)?;
        }
        b'E' | b'C' => {
            let (size, resting) = (message.shares(19), book.order(id));
            let resting = resting.ok_or_else(|| format!("order {id} is not in the book"))?;
            // An execution at another price may be part of a print that is reported elsewhere.
            let (price, is_printed) = match message.kind {
                b'E' => (resting.price, true),
                _ => (message.price(32), message.bytes[31] == b'Y'),
            };
            if is_printed {
                out.rows.push_back(trade_row(at, security, price, size));
            }
            book.reduce(id, size, &mut out)?;
        }
        b'X' => _ = book.reduce(id, message.shares(19), &mut out)?,
        b'D' => _ = book.remove(id, &mut out)?,
        b'U' => {
            let old = book.remove(id, &mut out)?;
            let new = u64::from_be_bytes(field(message.bytes, 19));
            let order = RestingOrder { side: old.side, price: message.price(31), size: message.shares(27) };
            book.add(new, order, &mut out)?;
        }
        b'P' => out.rows.push_back(trade_row(at, security, message.price(32), message.shares(20))),
        b'Q' => {
            let shares = u64::from_be_bytes(field(message.bytes, 11));
            let raw = i64::try_from(shares).ok().and_then(|shares| shares.checked_mul(SHARE));
            let size = Qty::from_raw(raw.ok_or("the size of a cross does not fit")?);
            if size.is_positive() {
                out.rows.push_back(trade_row(at, security, message.price(27), size));
            }
        }
        _ => {}
    }
    book.levels().quote(at, out.rows);
    Ok(())
}
