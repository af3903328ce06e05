//! Reads a file of comma-separated ticks, levels or bars, row by row and without a copy: millions
//! of rows per second.

use pitlane_engine::refdata::RefData;

use super::bars::BarRow;
use super::entry::{DataEntry, TickCells, TimeOrder, bar_of, level_of, side_of};
use super::input::ByteSource;
use super::lines::{CellReader, LineReader};
use super::row_layout::{BARS, LEVELS, RowLayout, TICKS};
use super::symbols::Symbols;
use super::{DataError, TickRow};

/// One file.
#[derive(Debug)]
pub struct CsvFile {
    lines: LineReader,
    symbols: Symbols,
    kind: RowLayout,
    /// Time of the previous row.
    order: TimeOrder,
}

impl CsvFile {
    pub fn new(
        name: String,
        file: impl ByteSource + 'static,
        reference: &RefData,
    ) -> Result<CsvFile, DataError> {
        let mut file = CsvFile {
            lines: LineReader::new(name, Box::new(file)),
            symbols: Symbols::new(reference),
            kind: RowLayout::Ticks,
            order: TimeOrder::default(),
        };
        file.read_header()?;
        Ok(file)
    }

    fn read_header(&mut self) -> Result<(), DataError> {
        let Some(line) = self.lines.next_line()? else { return Err(self.fault("it is empty")) };
        let header = self.lines.text(line);
        self.kind = match header.strip_prefix(b"\xef\xbb\xbf").unwrap_or(header) {
            header if header == TICKS.as_bytes() => RowLayout::Ticks,
            header if header == LEVELS.as_bytes() => RowLayout::Levels,
            header if header == BARS.as_bytes() => RowLayout::Bars,
            _ => {
                let problem = format!("the first line must be {TICKS}, {LEVELS} or {BARS}");
                return Err(self.fault(&problem));
            }
        };
        Ok(())
    }

    /// Returns the next row; `None` at the end.
    #[inline]
    pub fn next_entry(&mut self) -> Result<Option<DataEntry>, DataError> {
        loop {
            let Some(line) = self.lines.next_line()? else { return Ok(None) };
            if line.0 == line.1 {
                continue;
            }
            let cells = self.lines.cells(line);
            let parsed = match self.kind {
                RowLayout::Ticks => tick(cells, &mut self.symbols).map(DataEntry::Tick),
                RowLayout::Levels => level(cells, &mut self.symbols).map(DataEntry::Tick),
                RowLayout::Bars => bar(cells, &mut self.symbols).map(DataEntry::Bar),
            };
            let checked = parsed.and_then(|entry| self.order.check(entry));
            return checked.map(Some).map_err(|problem| self.fault(&problem));
        }
    }

    #[cold]
    pub fn fault(&self, problem: &str) -> DataError {
        self.lines.fault(problem)
    }
}

#[inline]
fn tick(mut cells: CellReader<'_>, symbols: &mut Symbols) -> Result<TickRow, String> {
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

fn level(mut cells: CellReader<'_>, symbols: &mut Symbols) -> Result<TickRow, String> {
    let at = cells.time()?;
    let security = symbols.find(cells.next("security")?)?;
    let side = side_of(cells.next("side")?)?;
    let price = cells.decimal("price")?;
    let size = cells.decimal("size")?;
    cells.end()?;
    level_of(at, security, side, price, size)
}

fn bar(mut cells: CellReader<'_>, symbols: &mut Symbols) -> Result<BarRow, String> {
    let at = cells.time()?;
    let security = symbols.find(cells.next("security")?)?;
    let mut price = |name| cells.decimal(name);
    let prices = [price("open")?, price("high")?, price("low")?, price("close")?];
    let volume = cells.decimal("volume")?;
    cells.end()?;
    bar_of(at, security, prices, volume)
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read};
    use std::sync::Arc;

    use pitlane_config::refdata;
    use pitlane_engine::command::{CommandKind, Quote, Trade};
    use pitlane_engine::id::SecurityId;
    use pitlane_engine::number::{Price, Qty};
    use pitlane_engine::terms::Side;
    use pitlane_engine::time::Timestamp;

    use super::super::bars::BarPath;
    use super::super::entry::level_row;
    use super::super::file::DataFile;
    use super::super::lines::LINE_BYTES_MAX;
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
            ("L\n1,1,X,5,3\n", 2, "side must be B (bid) or A (ask), not \"X\""),
            ("L\n1,1,B,,3\n", 2, "price is empty"),
            ("L\n1,1,B,5,\n", 2, "size is empty"),
            ("L\n1,1,B,5,-3\n", 2, "size is negative"),
            ("L\n1,1,B,5,3,\n", 2, "too many cells"),
        ];
        for (text, line, problem) in cases {
            let header = match text.get(..1) {
                Some("T") => TICKS,
                Some("B") => BARS,
                Some("L") => LEVELS,
                _ => text.get(..1).unwrap_or(""),
            };
            let text = format!("{header}{}", text.get(1..).unwrap_or(""));
            let error = read(&text).unwrap_err();
            assert!(error.line == line && error.problem.contains(problem), "{text:?}: {error}");
        }
        let long = format!("{TICKS}\n{}", "1".repeat(5_000));
        assert!(read(&long).unwrap_err().problem.contains("more than"));
    }

    #[test]
    fn a_level_has_a_side_and_a_size_of_zero_removes_it() {
        let rows = read(&format!("{LEVELS}\n1000,AAPL,B,232.50,100\n1001,1,A,232.51,0\n")).unwrap();
        let level = |at: u64, side, price: &str, size: &str| {
            let price = Price::parse(price.as_bytes()).unwrap();
            level_row(Timestamp(at), SecurityId(1), side, price, Qty::parse(size.as_bytes()).unwrap())
        };
        let expected = [level(1_000, Side::Buy, "232.5", "100"), level(1_001, Side::Sell, "232.51", "0")];
        assert_eq!(rows, expected);
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
