//! Reads a file of ticks, levels or bars in Parquet, as pandas, pyarrow, polars and our recorder
//! write it: the columns of the CSV files, by name and in any order; other columns are ignored.
//!
//! ```text
//! file ─► row groups, without those outside the time range ─► batches of every column ─► Entry
//! ```
//!
//! It is read page by page, so a file may be larger than the memory. The decoder is a third-party
//! crate and a file may contain anything: a panic in the decoder is reported as an error of the
//! file.

mod budget;
mod column;
mod guarded;
mod pages;
pub(crate) mod table;
pub mod writer;

use std::fmt;
use std::fs::File;

use parquet::column::reader::ColumnReader;
use parquet::errors::Result as Decoded;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{FileReader, Length, SerializedFileReader};
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;

use self::budget::ReadBudget;
use self::column::{ColumnBatch, ParquetColumn};
use self::guarded::{GuardedFile, guarded};
use self::pages::decompressed_bytes;
use super::DataError;
use super::entry::{DataEntry, TickCells, TimeOrder, bar_of, level_of};
use super::row_layout::RowLayout;
use super::symbols::Symbols;

/// Magic bytes at the beginning and the end of a Parquet file.
pub const PARQUET: [u8; 4] = *b"PAR1";

/// Rows of a batch: enough that a call to the decoder does not matter, few enough to stay in the
/// cache.
const ROWS_PER_BATCH: usize = 2_048;

/// One file.
pub struct ParquetFile {
    name: String,
    /// The stored bytes.
    stored: GuardedFile,
    file: SerializedFileReader<GuardedFile>,
    symbols: Symbols,
    layout: RowLayout,
    /// Columns in the order of the CSV header: time, security, and the others.
    columns: Vec<ParquetColumn>,
    /// Row groups still to be read, last first, each with the number of rows before it.
    groups: Vec<(usize, u64)>,
    /// Readers of the current row group, one for each column.
    readers: Vec<ColumnReader>,
    batch: ColumnBatch,
    /// Next row of the batch, and its number in the file, from 1.
    at: usize,
    row: u64,
    /// Time of the previous row.
    order: TimeOrder,
    consumed: u64,
    budget: ReadBudget,
}

impl fmt::Debug for ParquetFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetFile")
            .field("name", &self.name)
            .field("row", &self.row)
            .finish_non_exhaustive()
    }
}

impl ParquetFile {
    /// Opens a file. A bar extends `bar_ns` beyond its time.
    pub fn new(
        name: String,
        file: File,
        reference: &RefData,
        bar_ns: u64,
        range: (Timestamp, Timestamp),
    ) -> Result<ParquetFile, DataError> {
        let fault = |problem: String| DataError { file: name.clone(), line: 0, problem };
        let stored = GuardedFile::new(file).map_err(fault)?;
        let budget = ReadBudget::of(stored.len());
        let file = guarded(|| SerializedFileReader::new(stored.clone())).map_err(fault)?;
        let (columns, layout) = columns(&file).map_err(fault)?;
        let reach_ns = match layout {
            RowLayout::Ticks => 0,
            RowLayout::Bars => bar_ns,
            // A level stands until it is changed.
            RowLayout::Levels => u64::MAX,
        };
        check_declared(file.metadata(), &columns, budget).map_err(fault)?;
        let groups = groups(&file, &columns[0], reach_ns, range);
        Ok(ParquetFile {
            symbols: Symbols::new(reference),
            batch: ColumnBatch::new(columns.len()),
            name,
            stored,
            file,
            layout,
            columns,
            groups,
            readers: Vec::new(),
            at: 0,
            row: 0,
            order: TimeOrder::default(),
            consumed: 0,
            budget,
        })
    }

    /// Returns the bytes of the row groups that were started.
    pub fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Returns the next row; `None` at the end.
    #[inline]
    pub fn next_entry(&mut self) -> Result<Option<DataEntry>, DataError> {
        while self.at == self.batch.rows() {
            if !self.next_batch()? {
                return Ok(None);
            }
        }
        let at = self.at;
        self.at += 1;
        self.row += 1;
        let checked = self.entry(at).and_then(|entry| self.order.check(entry));
        checked.map(Some).map_err(|problem| self.fault(&problem))
    }

    /// Returns the row at this position of the batch.
    fn entry(&mut self, place: usize) -> Result<DataEntry, String> {
        let ParquetFile { columns, batch, symbols, .. } = self;
        let at = columns[0].time(batch.cell(0, place)).map_err(|why| format!("time: {why}"))?;
        let security = columns[1].security(batch.cell(1, place), symbols)?;
        let number = |nth: usize| {
            let column = &columns[nth];
            column.number(batch.cell(nth, place)).map_err(|why| format!("{}: {why}", column.name()))
        };
        match self.layout {
            RowLayout::Ticks => {}
            RowLayout::Levels => {
                let side = columns[2].side(batch.cell(2, place))?;
                return level_of(at, security, side, number(3)?, number(4)?).map(DataEntry::Tick);
            }
            RowLayout::Bars => {
                let prices = [number(2)?, number(3)?, number(4)?, number(5)?];
                return bar_of(at, security, prices, number(6)?).map(DataEntry::Bar);
            }
        }
        let tick = TickCells {
            at,
            security,
            bid: number(2)?,
            bid_size: number(3)?,
            ask: number(4)?,
            ask_size: number(5)?,
            last: number(6)?,
            last_size: number(7)?,
        };
        tick.row().map(DataEntry::Tick)
    }

    /// Reads the next batch; returns false at the end.
    fn next_batch(&mut self) -> Result<bool, DataError> {
        self.at = 0;
        self.batch.clear();
        loop {
            if !self.readers.is_empty() {
                let ParquetFile { readers, batch, .. } = self;
                guarded(|| batch.read(readers, ROWS_PER_BATCH)).map_err(|problem| self.fault(&problem))?;
                if self.batch.rows() > 0 {
                    // Metadata that states fewer rows than there are does not evade the budget.
                    let taken = self.budget.take_rows(self.batch.rows() as u64);
                    taken.map_err(|problem| self.fault(&problem))?;
                    return Ok(true);
                }
            }
            let Some((group, rows_before)) = self.groups.pop() else {
                self.readers.clear();
                return Ok(false);
            };
            self.row = rows_before;
            let metadata = self.file.metadata().row_group(group);
            self.consumed += u64::try_from(metadata.compressed_size()).unwrap_or(0);
            let chunks = chunks(metadata, &self.columns);
            // Metadata that states fewer bytes than there are does not evade the budget either.
            let bytes =
                guarded(|| chunks.map(|chunk| decompressed_bytes(&self.stored, chunk)).sum::<Decoded<u64>>());
            let taken = bytes.and_then(|bytes| self.budget.take_bytes(bytes));
            taken.map_err(|problem| self.fault(&problem))?;
            let open = || {
                let group = self.file.get_row_group(group)?;
                self.columns.iter().map(|column| group.get_column_reader(column.nth())).collect()
            };
            self.readers = guarded(open).map_err(|problem| self.fault(&problem))?;
        }
    }

    #[cold]
    pub fn fault(&self, problem: &str) -> DataError {
        DataError { file: self.name.clone(), line: self.row, problem: problem.to_string() }
    }
}

/// Returns the columns of a tick, a level or a bar, whichever exist.
fn columns(file: &SerializedFileReader<GuardedFile>) -> Result<(Vec<ParquetColumn>, RowLayout), String> {
    let schema = file.metadata().file_metadata().schema_descr();
    let has = |name| ParquetColumn::find(schema, name).is_ok();
    // A file that has bids is treated as one of ticks, so that its missing columns are reported.
    let layout = match (has("bid"), has("open"), has("side")) {
        (false, true, _) => RowLayout::Bars,
        (false, false, true) => RowLayout::Levels,
        _ => RowLayout::Ticks,
    };
    let columns = layout.header().split(',').map(|name| ParquetColumn::find(schema, name));
    Ok((columns.collect::<Result<_, String>>()?, layout))
}

/// Returns the stored columns of a row group that are read.
fn chunks<'a>(
    group: &'a RowGroupMetaData,
    columns: &'a [ParquetColumn],
) -> impl Iterator<Item = &'a ColumnChunkMetaData> {
    columns.iter().filter_map(|column| group.columns().get(column.nth()))
}

/// Checks, before anything is read, that the file states no more rows and bytes than its size
/// allows, and that no two of the columns are stored in the same place: each of very many row
/// groups could otherwise be the same few bytes.
fn check_declared(
    metadata: &ParquetMetaData,
    columns: &[ParquetColumn],
    mut budget: ReadBudget,
) -> Result<(), String> {
    let positive = |number: i64| u64::try_from(number).unwrap_or(0);
    let rows = metadata.row_groups().iter().map(|group| positive(group.num_rows()));
    budget.take_rows(rows.fold(0, u64::saturating_add))?;
    let all = || metadata.row_groups().iter().flat_map(|group| chunks(group, columns));
    let bytes = all().map(|chunk| positive(chunk.uncompressed_size()));
    budget.take_bytes(bytes.fold(0, u64::saturating_add))?;
    // The decoder panics if a position is negative.
    let mut places = guarded(|| Ok(all().map(ColumnChunkMetaData::byte_range).collect::<Vec<_>>()))?;
    places.sort_unstable();
    let overlaps = |pair: &[(u64, u64)]| pair[0].0.saturating_add(pair[0].1) > pair[1].0;
    if places.windows(2).any(overlaps) {
        return Err("two of its columns or row groups are stored in the same place".to_string());
    }
    Ok(())
}

/// Returns the row groups that may have rows in the range, according to the file's statistics of
/// their times, last first.
fn groups(
    file: &SerializedFileReader<GuardedFile>,
    time: &ParquetColumn,
    reach_ns: u64,
    (from, to): (Timestamp, Timestamp),
) -> Vec<(usize, u64)> {
    let mut rows = 0;
    let mut kept = Vec::new();
    for (nth, group) in file.metadata().row_groups().iter().enumerate() {
        let is_outside = group
            .columns()
            .get(time.nth())
            .and_then(|chunk| time.span(chunk.statistics()?))
            .is_some_and(|(first, last)| last.plus(reach_ns) < from || first >= to);
        if !is_outside {
            kept.push((nth, rows));
        }
        rows = u64::saturating_add(rows, u64::try_from(group.num_rows()).unwrap_or(0));
    }
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests;
