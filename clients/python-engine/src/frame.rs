//! Frames of pandas, polars, pyarrow and others as market data, through the Arrow C stream
//! interface: their memory is read in place, and Python handles no row.

mod cells;

use std::fmt;

use arrow_array::ffi_stream::RecordBatchStreamReader;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_pyarrow::FromPyArrow;
use arrow_schema::SchemaRef;
use pitlane_engine::id::SecurityId;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_market_data::DataError;
use pitlane_market_data::entry::{DataEntry, EntrySource, TickCells, TimeOrder, bar_of};
use pitlane_market_data::row_layout::{BARS, TICKS};
use pitlane_market_data::symbols::Symbols;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Rows that are converted at once: few enough to stay in the cache. A frame may be one batch of
/// millions of rows.
const ROWS_MAX: usize = 4_096;

/// An error at a row of a batch.
pub(crate) struct CellError {
    pub(crate) row: usize,
    pub(crate) problem: String,
}

/// A frame, read batch by batch.
pub(crate) struct ArrowTable {
    /// Name in errors and in the report.
    name: String,
    reader: RecordBatchStreamReader,
    /// Columns in the order of the CSV header: position and name.
    columns: Vec<(usize, &'static str)>,
    is_bars: bool,
    symbols: Symbols,
    /// The current batch, and the rows of it that were converted.
    batch: Option<RecordBatch>,
    converted: usize,
    /// Converted rows.
    times: Vec<Timestamp>,
    securities: Vec<SecurityId>,
    numbers: Vec<Vec<Option<i64>>>,
    /// Next converted row, and its number in the frame, from 1.
    at: usize,
    row: u64,
    order: TimeOrder,
}

impl fmt::Debug for ArrowTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrowTable").field("name", &self.name).field("row", &self.row).finish_non_exhaustive()
    }
}

impl ArrowTable {
    /// Reads an object with the method `__arrow_c_stream__`.
    pub(crate) fn new(frame: &Bound<'_, PyAny>, name: String, reference: &RefData) -> PyResult<ArrowTable> {
        let reader = RecordBatchStreamReader::from_pyarrow_bound(frame)?;
        let (columns, is_bars) = columns(&reader.schema())
            .map_err(|problem| PyValueError::new_err(format!("{name}: {problem}")))?;
        Ok(ArrowTable {
            numbers: vec![Vec::new(); columns.len() - 2],
            name,
            reader,
            columns,
            is_bars,
            symbols: Symbols::new(reference),
            batch: None,
            converted: 0,
            times: Vec::new(),
            securities: Vec::new(),
            at: 0,
            row: 0,
            order: TimeOrder::default(),
        })
    }

    /// Converts the next rows; returns false at the end.
    fn convert(&mut self) -> Result<bool, DataError> {
        let batch = loop {
            match self.batch.take().filter(|batch| self.converted < batch.num_rows()) {
                Some(batch) => break batch,
                None => self.converted = 0,
            }
            match self.reader.next() {
                Some(Ok(batch)) => self.batch = Some(batch),
                Some(Err(error)) => return Err(self.fault(&error.to_string())),
                None => return Ok(false),
            }
        };
        let count = ROWS_MAX.min(batch.num_rows() - self.converted);
        let rows = batch.slice(self.converted, count);
        self.at = 0;
        self.convert_rows(&rows).map_err(|(error, column)| {
            let line = self.row + error.row as u64 + 1;
            DataError { file: self.name.clone(), line, problem: format!("{column}: {}", error.problem) }
        })?;
        self.converted += count;
        self.batch = Some(batch);
        Ok(true)
    }

    fn convert_rows(&mut self, rows: &RecordBatch) -> Result<(), (CellError, &'static str)> {
        let ArrowTable { columns, symbols, times, securities, numbers, .. } = self;
        cells::times(rows.column(columns[0].0), times).map_err(|error| (error, columns[0].1))?;
        cells::securities(rows.column(columns[1].0), symbols, securities)
            .map_err(|error| (error, columns[1].1))?;
        for ((place, name), cells) in columns[2..].iter().zip(numbers) {
            cells::numbers(rows.column(*place), cells).map_err(|error| (error, *name))?;
        }
        Ok(())
    }

    fn entry(&self, at: usize) -> Result<DataEntry, String> {
        let (time, security) = (self.times[at], self.securities[at]);
        let number = |nth: usize| self.numbers[nth][at];
        if self.is_bars {
            let prices = [number(0), number(1), number(2), number(3)];
            return bar_of(time, security, prices, number(4)).map(DataEntry::Bar);
        }
        let tick = TickCells {
            at: time,
            security,
            bid: number(0),
            bid_size: number(1),
            ask: number(2),
            ask_size: number(3),
            last: number(4),
            last_size: number(5),
        };
        tick.row().map(DataEntry::Tick)
    }
}

impl EntrySource for ArrowTable {
    fn next_entry(&mut self) -> Result<Option<DataEntry>, DataError> {
        while self.at == self.times.len() {
            if !self.convert()? {
                return Ok(None);
            }
        }
        let at = self.at;
        self.at += 1;
        self.row += 1;
        let checked = self.entry(at).and_then(|entry| self.order.check(entry));
        checked.map(Some).map_err(|problem| self.fault(&problem))
    }

    #[cold]
    fn fault(&self, problem: &str) -> DataError {
        DataError { file: self.name.clone(), line: self.row, problem: problem.to_string() }
    }
}

/// Place and name of a column.
type NamedColumn = (usize, &'static str);

/// Returns the columns of a tick or of a bar, whichever exist; the flag is true for a bar. A name
/// may be written as in files (`bidSize`) or as in Python (`bid_size`).
fn columns(schema: &SchemaRef) -> Result<(Vec<NamedColumn>, bool), String> {
    let position = |name: &str| {
        let snake = snake_case(name);
        schema.fields().iter().position(|field| field.name() == name || *field.name() == snake)
    };
    let is_bars = position("open").is_some() && position("bid").is_none();
    let header = if is_bars { BARS } else { TICKS };
    let find = |name: &'static str| {
        let place = position(name).ok_or_else(|| format!("there is no column {name}"))?;
        let kind = schema.field(place).data_type();
        match name {
            "time" => cells::check_time(kind),
            "security" => cells::check_security(kind),
            _ => cells::check_number(kind),
        }
        .map_err(|()| format!("{name}: a column of type {kind} cannot be read as that"))?;
        Ok((place, name))
    };
    Ok((header.split(',').map(find).collect::<Result<_, String>>()?, is_bars))
}

fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}
