//! One file of market data of any format, or another source of rows. The format of a file is
//! detected from the first bytes, not from the name, unless the settings say it.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use pitlane_config::{DataFilesConfig, DataFormat, SimulationConfig};
use pitlane_engine::command::{CommandKind, FeedLevel};
use pitlane_engine::id::SecurityId;
use pitlane_engine::number::Price;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;

use super::bars::{BarExpansion, BarPath};
use super::binance::{self, BinanceFile, BinanceLayout};
use super::csv::CsvFile;
use super::dbn::{DbnFile, is_dbn};
use super::entry::{DataEntry, EntrySource, level_row};
use super::foreign_symbols::ForeignSymbols;
use super::input::{InputFile, ReadCount, RecordStream};
use super::itch::{ItchFile, day_in_name, is_itch};
use super::lines::LineReader;
use super::parquet::{PARQUET, ParquetFile};
use super::{DataError, TickRow};

/// How files are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    pub bars: BarPath,
    pub files: DataFilesConfig,
}

impl ReadOptions {
    /// Returns the options of a simulation.
    pub fn of(settings: &SimulationConfig) -> ReadOptions {
        ReadOptions { bars: BarPath::of(settings), files: settings.files.clone() }
    }
}

#[derive(Debug)]
pub struct DataFile {
    format: FileFormat,
    bars: BarExpansion,
    /// Rows that come before those of the file: the book at the beginning of the range.
    before: VecDeque<TickRow>,
    count: ReadCount,
}

#[derive(Debug)]
enum FileFormat {
    Csv(Box<CsvFile>),
    Parquet(Box<ParquetFile>),
    Other(Box<dyn EntrySource>),
}

impl DataFile {
    /// Opens a file. Parts of it that end before the range or begin after it may be skipped as a
    /// whole.
    pub fn open(
        path: &Path,
        reference: &Arc<RefData>,
        options: &ReadOptions,
        range: (Timestamp, Timestamp),
    ) -> Result<DataFile, DataError> {
        let (name, bars) = (path.display().to_string(), options.bars);
        let input = InputFile::open(path)?;
        let named = options.files.format;
        let format = if named == DataFormat::Auto { detect(&input.head) } else { named };
        if format == DataFormat::Parquet {
            let file = File::open(path).map_err(|error| DataError::whole(path.display(), error))?;
            let file = ParquetFile::new(name, file, reference, bars.interval_ns, range)?;
            return Ok(DataFile::new(FileFormat::Parquet(Box::new(file)), reference, bars));
        }
        let count = input.count.clone();
        let (format, interval_ns) = open_stream(path, format, input, reference, &options.files)?;
        let bars = BarPath { interval_ns: interval_ns.unwrap_or(bars.interval_ns), ..bars };
        Ok(DataFile { count, ..DataFile::new(format, reference, bars) })
    }

    fn new(format: FileFormat, reference: &Arc<RefData>, bars: BarPath) -> DataFile {
        let bars = BarExpansion::new(bars, reference.clone());
        DataFile { format, bars, before: VecDeque::new(), count: ReadCount::default() }
    }

    /// Wraps an open file.
    pub fn of_csv(file: CsvFile, reference: &Arc<RefData>, bars: BarPath) -> DataFile {
        DataFile::new(FileFormat::Csv(Box::new(file)), reference, bars)
    }

    /// Wraps a source that is no file.
    pub fn of_source(source: Box<dyn EntrySource>, reference: &Arc<RefData>, bars: BarPath) -> DataFile {
        DataFile::new(FileFormat::Other(source), reference, bars)
    }

    pub fn is_parquet(&self) -> bool {
        matches!(self.format, FileFormat::Parquet(_))
    }

    /// Returns the bytes of the file that were read.
    pub fn consumed(&self) -> u64 {
        match &self.format {
            FileFormat::Csv(_) | FileFormat::Other(_) => self.count.bytes(),
            FileFormat::Parquet(file) => file.consumed(),
        }
    }

    /// Passes the rows before a time. The levels that stand then come first, at that time: later
    /// rows only change them.
    pub(crate) fn skip_before(&mut self, from: Timestamp) -> Result<(), DataError> {
        let mut levels: BTreeMap<(SecurityId, usize, Price), FeedLevel> = BTreeMap::new();
        let first = loop {
            match self.next_row()? {
                Some(row) if row.at < from => {
                    if let CommandKind::Level { security, level } = row.body {
                        let key = (security, level.side as usize, level.price);
                        match level.size.is_positive() {
                            true => levels.insert(key, level),
                            false => levels.remove(&key),
                        };
                    }
                }
                first => break first,
            }
        };
        for ((security, ..), level) in levels {
            self.before.push_back(level_row(from, security, level.side, level.price, level.size));
        }
        self.before.extend(first);
        Ok(())
    }

    /// Returns the next row; `None` at the end.
    #[inline]
    pub fn next_row(&mut self) -> Result<Option<TickRow>, DataError> {
        if !self.before.is_empty() {
            return Ok(self.before.pop_front());
        }
        loop {
            if !self.bars.wants()
                && let Some(row) = self.poll_bars()?
            {
                return Ok(Some(row));
            }
            match self.next_entry()? {
                Some(DataEntry::Tick(row)) => return Ok(Some(row)),
                Some(DataEntry::Bar(bar)) => self.bars.put(bar),
                None => return self.poll_bars(),
            }
        }
    }

    #[inline]
    fn next_entry(&mut self) -> Result<Option<DataEntry>, DataError> {
        match &mut self.format {
            FileFormat::Csv(file) => file.next_entry(),
            FileFormat::Parquet(file) => file.next_entry(),
            FileFormat::Other(source) => source.next_entry(),
        }
    }

    fn poll_bars(&mut self) -> Result<Option<TickRow>, DataError> {
        self.bars.poll().map_err(|problem| match &self.format {
            FileFormat::Csv(file) => file.fault(&problem),
            FileFormat::Parquet(file) => file.fault(&problem),
            FileFormat::Other(source) => source.fault(&problem),
        })
    }
}

/// Returns the format of a file by its first bytes; CSV of ours if it is no other.
fn detect(head: &[u8]) -> DataFormat {
    if head.starts_with(&PARQUET) {
        return DataFormat::Parquet;
    }
    if is_dbn(head) {
        return DataFormat::Dbn;
    }
    if is_itch(head) {
        return DataFormat::Itch(None);
    }
    match binance::layout_of(head) {
        Some(BinanceLayout::Trades) => DataFormat::BinanceTrades,
        Some(BinanceLayout::AggTrades) => DataFormat::BinanceAggTrades,
        Some(BinanceLayout::Klines) => DataFormat::BinanceKlines,
        None => DataFormat::Csv,
    }
}

/// Opens a file of a format that is read from its beginning to its end. Also returns the length of
/// its bars, if it states one.
fn open_stream(
    path: &Path,
    format: DataFormat,
    input: InputFile,
    reference: &Arc<RefData>,
    options: &DataFilesConfig,
) -> Result<(FileFormat, Option<u64>), DataError> {
    let whole = |problem: String| DataError::whole(path.display(), problem);
    let name = path.display().to_string();
    let symbols = || ForeignSymbols::new(&options.symbols, reference).map_err(whole);
    let layout = match format {
        DataFormat::Csv | DataFormat::Auto | DataFormat::Parquet => {
            let file = CsvFile::new(name, input.bytes, reference)?;
            return Ok((FileFormat::Csv(Box::new(file)), None));
        }
        DataFormat::Dbn => {
            let stream = RecordStream::new(name, input.bytes);
            let file = DbnFile::new(stream, symbols()?, options.levels, options.trade_quotes)?;
            let interval_ns = file.interval_ns();
            return Ok((FileFormat::Other(Box::new(file)), interval_ns));
        }
        DataFormat::Itch(day) => {
            let file_name = path.file_name().unwrap_or_default().to_string_lossy();
            let day = day.or_else(|| day_in_name(&file_name)).ok_or_else(|| {
                whole(
                    "ITCH does not contain its day: name it, such as format = \"itch 2019-12-30\""
                        .to_string(),
                )
            })?;
            let stream = RecordStream::new(name, input.bytes);
            let file = ItchFile::new(stream, symbols()?, day, options.levels);
            return Ok((FileFormat::Other(Box::new(file)), None));
        }
        DataFormat::BinanceTrades => BinanceLayout::Trades,
        DataFormat::BinanceAggTrades => BinanceLayout::AggTrades,
        DataFormat::BinanceKlines => BinanceLayout::Klines,
    };
    let lines = LineReader::new(name, input.bytes);
    let file = BinanceFile::new(path, lines, layout, &symbols()?, options.trade_quotes)?;
    let interval_ns = file.interval_ns();
    Ok((FileFormat::Other(Box::new(file)), interval_ns))
}

#[cfg(test)]
mod tests;
