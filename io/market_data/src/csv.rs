//! Reads a file of comma-separated ticks or bars, row by row and without a copy: millions of rows
//! per second.

use std::io::{self, Read};

use memchr::memchr;
use pitlane_engine::refdata::RefData;
use pitlane_engine::text::{self, TextError};
use pitlane_engine::time::Timestamp;
use pitlane_protocols::rest::Moment;

use super::bars::BarRow;
use super::entry::{DataEntry, TickCells, TimeOrder, bar_of};
use super::symbols::Symbols;
use super::{DataError, TickRow};

/// Bytes read at once: large enough that the system calls do not matter, small enough to stay in
/// the cache.
const BLOCK_BYTES: usize = 1 << 18;
/// Longest line in bytes: ten times a long line of the recorder.
const LINE_BYTES_MAX: usize = 2_048;

pub const TICKS: &str = "time,security,bid,bidSize,ask,askSize,last,lastSize";
pub const BARS: &str = "time,security,open,high,low,close,volume";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CsvLayout {
    Ticks,
    Bars,
}

/// One file.
#[derive(Debug)]
pub struct CsvFile {
    name: String,
    file: Box<dyn CsvSource>,
    symbols: Symbols,
    kind: CsvLayout,
    /// Buffer; the bytes from `from` to `to` are still to be processed.
    block: Vec<u8>,
    from: usize,
    to: usize,
    line: u64,
    /// Time of the previous row.
    order: TimeOrder,
    consumed: u64,
}

trait CsvSource: Read + Send + std::fmt::Debug {}
impl<T: Read + Send + std::fmt::Debug> CsvSource for T {}

impl CsvFile {
    pub fn new(
        name: String,
        file: impl Read + Send + std::fmt::Debug + 'static,
        reference: &RefData,
    ) -> Result<CsvFile, DataError> {
        let mut file = CsvFile {
            name,
            file: Box::new(file),
            symbols: Symbols::new(reference),
            kind: CsvLayout::Ticks,
            block: vec![0; BLOCK_BYTES],
            from: 0,
            to: 0,
            line: 0,
            order: TimeOrder::default(),
            consumed: 0,
        };
        file.read_header()?;
        Ok(file)
    }

    fn read_header(&mut self) -> Result<(), DataError> {
        let Some((from, to)) = self.next_line()? else { return Err(self.fault("it is empty")) };
        let header = self.block[from..to].strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.block[from..to]);
        self.kind = match header {
            header if header == TICKS.as_bytes() => CsvLayout::Ticks,
            header if header == BARS.as_bytes() => CsvLayout::Bars,
            _ => return Err(self.fault(&format!("the first line must be {TICKS} or {BARS}"))),
        };
        Ok(())
    }

    /// Returns the bytes of the file that were processed.
    pub fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Returns the next row; `None` at the end.
    #[inline]
    pub fn next_entry(&mut self) -> Result<Option<DataEntry>, DataError> {
        loop {
            let Some((from, to)) = self.next_line()? else { return Ok(None) };
            if from == to {
                continue;
            }
            let cells = TickCellReader::new(&self.block[from..self.to], to - from);
            let parsed = match self.kind {
                CsvLayout::Ticks => tick(cells, &mut self.symbols).map(DataEntry::Tick),
                CsvLayout::Bars => bar(cells, &mut self.symbols).map(DataEntry::Bar),
            };
            let checked = parsed.and_then(|entry| self.order.check(entry));
            return checked.map(Some).map_err(|problem| self.fault(&problem));
        }
    }

    /// Returns a line without its terminator; `None` at the end of the file.
    #[inline]
    fn next_line(&mut self) -> Result<Option<(usize, usize)>, DataError> {
        loop {
            let end = memchr(b'\n', &self.block[self.from..self.to]);
            if let Some(length) = end.filter(|length| *length <= LINE_BYTES_MAX) {
                return Ok(Some(self.take_line(length, 1)));
            }
            let left = self.to - self.from;
            if left > LINE_BYTES_MAX {
                self.line += 1;
                return Err(self.fault(&format!("a line has more than {LINE_BYTES_MAX} bytes")));
            }
            self.block.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, left);
            match self.file.read(&mut self.block[left..]) {
                Ok(0) if left == 0 => return Ok(None),
                // The last line may lack its terminator.
                Ok(0) => return Ok(Some(self.take_line(left, 0))),
                Ok(read) => self.to += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.fault(&error.to_string())),
            }
        }
    }

    #[inline]
    fn take_line(&mut self, length: usize, end: usize) -> (usize, usize) {
        let from = self.from;
        self.from += length + end;
        self.line += 1;
        self.consumed += (length + end) as u64;
        let is_crlf = length > 0 && self.block[from + length - 1] == b'\r';
        (from, from + length - is_crlf as usize)
    }

    #[cold]
    pub fn fault(&self, problem: &str) -> DataError {
        DataError { file: self.name.clone(), line: self.line, problem: problem.to_string() }
    }
}

#[inline]
fn tick(mut cells: TickCellReader<'_>, symbols: &mut Symbols) -> Result<TickRow, String> {
    let tick = TickCells {
        at: cells.time()?,
        security: symbols.find(cells.next("security")?)?,
        bid: cells.decimal("bid")?,
        bid_size: cells.decimal("bidSize")?,
        ask: cells.decimal("ask")?,
        ask_size: cells.decimal("askSize")?,
        last: cells.decimal("last")?,
        last_size: cells.decimal("lastSize")?,
    };
    cells.end()?;
    tick.row()
}

fn bar(mut cells: TickCellReader<'_>, symbols: &mut Symbols) -> Result<BarRow, String> {
    let at = cells.time()?;
    let security = symbols.find(cells.next("security")?)?;
    let mut price = |name| cells.decimal(name);
    let prices = [price("open")?, price("high")?, price("low")?, price("close")?];
    let volume = cells.decimal("volume")?;
    cells.end()?;
    bar_of(at, security, prices, volume)
}

/// The cells of a line, in order.
struct TickCellReader<'a> {
    /// The line and the bytes behind it, so that numbers can be read in whole words.
    text: &'a [u8],
    /// Offset of the line's end.
    end: usize,
    at: usize,
}

impl<'a> TickCellReader<'a> {
    fn new(text: &'a [u8], end: usize) -> TickCellReader<'a> {
        TickCellReader { text, end, at: 0 }
    }

    #[inline]
    fn next(&mut self, name: &str) -> Result<&'a [u8], String> {
        let rest = self.text[..self.end].get(self.at..).ok_or_else(|| format!("there is no {name}"))?;
        // Cells are short: a loop finishes before a vectorised search starts.
        let length = rest.iter().position(|byte| *byte == b',').unwrap_or(rest.len());
        self.at += length + 1;
        Ok(&rest[..length])
    }

    /// Skips a number that was read ahead, if the cell ends with it.
    #[inline]
    fn pass<T>(&mut self, (value, length): (T, usize)) -> Option<T> {
        let end = self.at + length;
        let is_all = end == self.end || end < self.end && self.text[end] == b',';
        if is_all {
            self.at = end + 1;
        }
        is_all.then_some(value)
    }

    #[inline]
    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    #[inline]
    fn time(&mut self) -> Result<Timestamp, String> {
        if let Some(ns) = text::u64_ahead(self.rest()).and_then(|read| self.pass(read)) {
            return Ok(Timestamp(ns));
        }
        let cell = self.next("time")?;
        if let Ok(ns) = text::parse_u64(cell) {
            return Ok(Timestamp(ns));
        }
        let parsed = std::str::from_utf8(cell).ok().and_then(|text| Moment::parse(text).ok());
        let problem = || format!("{:?} is no time", String::from_utf8_lossy(cell));
        parsed.map(|moment| moment.0).ok_or_else(problem)
    }

    /// Returns the decimal of a cell; `None` if it is empty.
    #[inline]
    fn decimal(&mut self, name: &str) -> Result<Option<i64>, String> {
        if let Some(raw) = text::scaled_ahead(self.rest()).and_then(|read| self.pass(read)) {
            return Ok(Some(raw));
        }
        let cell = self.next(name)?;
        match text::parse_scaled(cell) {
            Ok(raw) => Ok(Some(raw)),
            Err(TextError::Empty) if cell.is_empty() => Ok(None),
            Err(error) => Err(format!("{name}: {error}")),
        }
    }

    fn end(&self) -> Result<(), String> {
        if self.at <= self.end { Err("there are too many cells".to_string()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pitlane_config::refdata;
    use pitlane_engine::command::{CommandKind, Quote, Trade};
    use pitlane_engine::id::SecurityId;
    use pitlane_engine::number::{Price, Qty};

    use super::super::bars::BarPath;
    use super::super::file::DataFile;
    use super::*;

    const PATH: BarPath = BarPath { interval_ns: 60_000_000_000, volume_bp: 1_000 };

    /// Returns one byte per read.
    #[derive(Debug)]
    struct Drip(Vec<u8>, usize);

    impl Read for Drip {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let Some(byte) = self.0.get(self.1) else { return Ok(0) };
            into[0] = *byte;
            self.1 += 1;
            Ok(1)
        }
    }

    fn read(text: &str) -> Result<Vec<TickRow>, DataError> {
        let reference = Arc::new(refdata::shipped().unwrap());
        let whole = io::Cursor::new(text.as_bytes().to_vec());
        let rows = |file: Result<CsvFile, DataError>| {
            let mut file = DataFile::of_csv(file?, &reference, PATH);
            let mut rows = Vec::new();
            while let Some(row) = file.next_row()? {
                rows.push(row);
            }
            Ok(rows)
        };
        let at_once = rows(CsvFile::new("ticks".into(), whole, &reference));
        let dripping = rows(CsvFile::new("ticks".into(), Drip(text.as_bytes().to_vec(), 0), &reference));
        assert_eq!(at_once, dripping, "wherever the bytes are cut");
        at_once
    }

    #[test]
    fn rows_are_quotes_trades_or_both() {
        let text = format!(
            "{TICKS}\r\n1000,1,232.50,100,232.51,200,,\n\n2026-11-14T09:30:00Z,AAPL,,,,,232.505,7\n\
             1794648600000000001,MSFT,1,2,,,3,"
        );
        let rows = read(&text).unwrap();
        let price = |text: &str| Price::parse(text.as_bytes()).unwrap();
        let qty = |text: &str| Qty::parse(text.as_bytes()).unwrap();
        let security = SecurityId(1);
        let at = Timestamp(1_000);
        let quote = Quote {
            bid: price("232.50"),
            bid_size: qty("100"),
            ask: price("232.51"),
            ask_size: qty("200"),
            at,
        };
        assert_eq!(rows[0], TickRow { at, security, body: CommandKind::Quote { security, quote } });
        let at = Timestamp(1_794_648_600_000_000_000);
        let trade = Trade { price: price("232.505"), size: qty("7"), at };
        assert_eq!(rows[1], TickRow { at, security, body: CommandKind::Trade { security, trade } });
        let CommandKind::Tick { quote, trade, .. } = rows[2].body else { panic!("{:?}", rows[2]) };
        assert_eq!((quote.ask_size, trade.size, rows[2].security), (Qty::ZERO, Qty::ZERO, SecurityId(2)));
    }

    #[test]
    fn a_line_has_a_length_limit() {
        let row = |len: usize| {
            let row = "1000,1,232.50,100,232.51,200,,";
            format!("{TICKS}\n{}{row}\n", " ".repeat(len - row.len()))
        };
        let at_the_end = read(&row(LINE_BYTES_MAX)).unwrap_err();
        assert!(!at_the_end.problem.contains("more than"), "{at_the_end:?}");
        let beyond = read(&row(2 * LINE_BYTES_MAX)).unwrap_err();
        assert!(beyond.problem.contains("more than"), "{beyond:?}");
    }

    #[test]
    fn errors_are_reported_with_their_line() {
        let cases = [
            ("", 0, "empty"),
            ("time,security\n", 1, "the first line must be"),
            ("T\nx,1,1,1,2,1,,\n", 2, "no time"),
            ("T\n1,NOONE,1,1,2,1,,\n", 2, "no security NOONE"),
            ("T\n1,1,1,1,2,1,,\n\n0,1,1,1,2,1,,\n", 4, "before that of the row above"),
            ("T\n1,1,1,1,2,1,\n", 2, "there is no lastSize"),
            ("T\n1,1,1,1,2,1,,,\n", 2, "too many cells"),
            ("T\n1,1,1,,2,1,,\n", 2, "bidSize is missing"),
            ("T\n1,1,1,-1,2,1,,\n", 2, "bidSize is negative"),
            ("T\n1,1,,,,,,\n", 2, "neither"),
            ("T\n1,1,1.123456789,1,2,1,,\n", 2, "bid: too many decimals"),
            ("B\n1,1,5,4,3,4,1\n", 2, "do not fit together"),
            ("B\n1,1,5,,3,4,1\n", 2, "high is empty"),
        ];
        for (text, line, problem) in cases {
            let text = text.replacen('T', TICKS, 1).replacen('B', BARS, 1);
            let error = read(&text).unwrap_err();
            assert!(error.line == line && error.problem.contains(problem), "{text:?}: {error}");
        }
        let long = format!("{TICKS}\n{}", "1".repeat(5_000));
        assert!(read(&long).unwrap_err().problem.contains("more than"));
    }

    #[test]
    fn a_bar_is_four_rows() {
        let rows =
            read(&format!("{BARS}\n0,AAPL,10,12,9,11,4000\n60000000000,AAPL,10,12,9,11,4000\n")).unwrap();
        assert_eq!(rows.len(), 8);
        assert!(rows.is_sorted_by_key(|row| row.at));
        assert_eq!(rows[7].at, Timestamp(105_000_000_000));
    }

    /// Bars of several securities start together, and the resulting rows are in time order
    /// nevertheless.
    #[test]
    fn bars_of_several_securities_unfold_side_by_side() {
        let bars = ["0,AAPL", "0,MSFT", "30000000000,AAPL", "60000000000,MSFT"];
        let text = bars.map(|bar| format!("{bar},10,12,9,11,4000\n")).concat();
        let rows = read(&format!("{BARS}\n{text}")).unwrap();
        let found: Vec<(u64, u32)> =
            rows.iter().map(|row| (row.at.0 / 1_000_000_000, row.security.0)).collect();
        let expected = [
            [(0, 1), (0, 2), (15, 1), (15, 2)],
            [(30, 1), (30, 2), (30, 1), (45, 1)],
            [(45, 2), (45, 1), (60, 1), (60, 2)],
            [(75, 1), (75, 2), (90, 2), (105, 2)],
        ];
        assert_eq!(found, expected.concat());
    }
}
