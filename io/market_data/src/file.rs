//! One file of market data of any format, or another source of rows. The format of a file is
//! detected from the first bytes, not from the name.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::sync::Arc;

use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;

use super::bars::{BarExpansion, BarPath};
use super::csv::CsvFile;
use super::entry::{DataEntry, EntrySource};
use super::parquet::{PARQUET, ParquetFile};
use super::{DataError, TickRow};

#[derive(Debug)]
pub struct DataFile {
    format: FileFormat,
    bars: BarExpansion,
}

#[derive(Debug)]
enum FileFormat {
    Csv(CsvFile),
    Parquet(Box<ParquetFile>),
    Other(Box<dyn EntrySource>),
}

impl DataFile {
    /// Opens a file. Parts of it that end before the range or begin after it may be skipped as a
    /// whole.
    pub fn open(
        path: &Path,
        reference: &Arc<RefData>,
        bars: BarPath,
        range: (Timestamp, Timestamp),
    ) -> Result<DataFile, DataError> {
        let name = path.display().to_string();
        let whole = |error: std::io::Error| DataError {
            file: path.display().to_string(),
            line: 0,
            problem: error.to_string(),
        };
        let mut file = File::open(path).map_err(whole)?;
        let mut first = [0; PARQUET.len()];
        let is_parquet = file.read_exact(&mut first).is_ok() && first == PARQUET;
        file.rewind().map_err(whole)?;
        let format = if is_parquet {
            FileFormat::Parquet(Box::new(ParquetFile::new(name, file, reference, bars.interval_ns, range)?))
        } else {
            FileFormat::Csv(CsvFile::new(name, file, reference)?)
        };
        Ok(DataFile { format, bars: BarExpansion::new(bars, reference.clone()) })
    }

    /// Wraps an open file.
    pub fn of_csv(file: CsvFile, reference: &Arc<RefData>, bars: BarPath) -> DataFile {
        DataFile { format: FileFormat::Csv(file), bars: BarExpansion::new(bars, reference.clone()) }
    }

    /// Wraps a source that is no file.
    pub fn of_source(source: Box<dyn EntrySource>, reference: &Arc<RefData>, bars: BarPath) -> DataFile {
        DataFile { format: FileFormat::Other(source), bars: BarExpansion::new(bars, reference.clone()) }
    }

    pub fn is_parquet(&self) -> bool {
        matches!(self.format, FileFormat::Parquet(_))
    }

    /// Returns the bytes of the file that were processed.
    pub fn consumed(&self) -> u64 {
        match &self.format {
            FileFormat::Csv(file) => file.consumed(),
            FileFormat::Parquet(file) => file.consumed(),
            FileFormat::Other(_) => 0,
        }
    }

    /// Returns the next row; `None` at the end.
    #[inline]
    pub fn next_row(&mut self) -> Result<Option<TickRow>, DataError> {
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
