//! Writes ticks or levels into numbered Parquet files: a file is complete only when its footer is
//! written, and cannot be appended to afterwards.
//!
//! ```text
//! ticks.parquet  ─►  ticks-000001.parquet, ticks-000002.parquet, …     named .part until complete
//! ```

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use pitlane_engine::text::{parse_scaled, parse_u64};

use crate::recorded_rows::RecordedRows;

/// Rows of a group: they stay in memory until they are written, some 4 MiB.
const ROWS_PER_GROUP: usize = 65_536;
/// Groups of a file: a million rows, which is the most that a crash of the process loses.
const GROUPS_PER_FILE: usize = 16;
/// Highest file number.
const FILES_MAX: u32 = 999_999;
/// Integers and decimals, no floats: the values read back are exactly those that were traded.
const TICKS_SCHEMA: &str = "message ticks {
    REQUIRED INT64 time (TIMESTAMP(NANOS,true));
    REQUIRED INT32 security (INTEGER(32,false));
    OPTIONAL INT64 bid (DECIMAL(18,8));
    OPTIONAL INT64 bidSize (DECIMAL(18,8));
    OPTIONAL INT64 ask (DECIMAL(18,8));
    OPTIONAL INT64 askSize (DECIMAL(18,8));
    OPTIONAL INT64 last (DECIMAL(18,8));
    OPTIONAL INT64 lastSize (DECIMAL(18,8));
}";

const LEVELS_SCHEMA: &str = "message levels {
    REQUIRED INT64 time (TIMESTAMP(NANOS,true));
    REQUIRED INT32 security (INTEGER(32,false));
    REQUIRED BINARY side (STRING);
    OPTIONAL INT64 price (DECIMAL(18,8));
    OPTIONAL INT64 size (DECIMAL(18,8));
}";

/// Returns whether a path requests this format.
pub fn is_meant(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "parquet")
}

#[derive(Debug)]
pub struct RowWriter {
    path: PathBuf,
    content: RecordedRows,
    number: u32,
    times: Vec<i64>,
    securities: Vec<i32>,
    /// Only for levels.
    sides: Vec<ByteArray>,
    /// Columns: for each row whether it has a value, and the values.
    numbers: Vec<(Vec<i16>, Vec<i64>)>,
    file: Option<OpenColumns>,
}

/// A file that is not complete yet.
struct OpenColumns {
    writer: SerializedFileWriter<File>,
    groups: usize,
    part: PathBuf,
    whole: PathBuf,
}

impl std::fmt::Debug for OpenColumns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Growing")
            .field("part", &self.part)
            .field("groups", &self.groups)
            .finish_non_exhaustive()
    }
}

impl RowWriter {
    /// Creates the first file only with its first rows. Fails only in a build without Parquet.
    pub fn new(path: &Path, content: RecordedRows) -> io::Result<RowWriter> {
        let (times, securities, sides) = (Vec::new(), Vec::new(), Vec::new());
        let numbers = match content {
            RecordedRows::Ticks => vec![Default::default(); 6],
            RecordedRows::Levels => vec![Default::default(); 2],
        };
        let path = path.to_owned();
        Ok(RowWriter { path, content, number: 0, times, securities, sides, numbers, file: None })
    }

    /// Adds a row in the format of the CSV file.
    pub fn push(&mut self, line: &str) -> io::Result<()> {
        let unfit = || io::Error::other(format!("no row of the recording: {line}"));
        let mut cells = line.split(',').map(str::as_bytes);
        let mut number = || cells.next().and_then(|cell| parse_u64(cell).ok()).ok_or_else(unfit);
        self.times.push(i64::try_from(number()?).map_err(|_| unfit())?);
        self.securities.push(u32::try_from(number()?).map_err(|_| unfit())?.cast_signed());
        if self.content == RecordedRows::Levels {
            self.sides.push(cells.next().ok_or_else(unfit)?.into());
        }
        for (levels, values) in &mut self.numbers {
            let cell = cells.next().ok_or_else(unfit)?;
            levels.push(i16::from(!cell.is_empty()));
            if !cell.is_empty() {
                values.push(parse_scaled(cell).map_err(|_| unfit())?);
            }
        }
        if self.times.len() >= ROWS_PER_GROUP { self.write_group() } else { Ok(()) }
    }

    /// Writes the remaining rows, and completes the file.
    pub fn close(&mut self) -> io::Result<()> {
        if !self.times.is_empty() {
            self.write_group()?;
        }
        let Some(file) = self.file.take() else { return Ok(()) };
        file.writer.close().map_err(io::Error::other)?;
        fs::rename(&file.part, &file.whole)
    }

    fn write_group(&mut self) -> io::Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.begin()?,
        };
        self.write_columns(&mut file.writer).map_err(io::Error::other)?;
        self.times.clear();
        self.securities.clear();
        self.sides.clear();
        for (levels, values) in &mut self.numbers {
            levels.clear();
            values.clear();
        }
        file.groups += 1;
        let is_full = file.groups >= GROUPS_PER_FILE;
        self.file = Some(file);
        if is_full { self.close() } else { Ok(()) }
    }

    fn write_columns(&self, writer: &mut SerializedFileWriter<File>) -> parquet::errors::Result<()> {
        let mut group = writer.next_row_group()?;
        let mut numbers = self.numbers.iter();
        let mut nth = 0;
        while let Some(mut column) = group.next_column()? {
            match (nth, self.content) {
                (0, _) => _ = column.typed::<Int64Type>().write_batch(&self.times, None, None)?,
                (1, _) => _ = column.typed::<Int32Type>().write_batch(&self.securities, None, None)?,
                (2, RecordedRows::Levels) => {
                    column.typed::<ByteArrayType>().write_batch(&self.sides, None, None)?;
                }
                _ => {
                    if let Some((levels, values)) = numbers.next() {
                        column.typed::<Int64Type>().write_batch(values, Some(levels), None)?;
                    }
                }
            }
            column.close()?;
            nth += 1;
        }
        group.close()?;
        Ok(())
    }

    /// Creates the next file whose name is free.
    fn begin(&mut self) -> io::Result<OpenColumns> {
        let stem = self.path.with_extension("");
        let stem = stem.display();
        while self.number < FILES_MAX {
            self.number += 1;
            let whole = PathBuf::from(format!("{stem}-{:06}.parquet", self.number));
            let part = PathBuf::from(format!("{stem}-{:06}.parquet.part", self.number));
            if whole.exists() || part.exists() {
                continue;
            }
            let schema = match self.content {
                RecordedRows::Ticks => TICKS_SCHEMA,
                RecordedRows::Levels => LEVELS_SCHEMA,
            };
            let schema = parse_message_type(schema).map_err(io::Error::other)?;
            let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
            let file = File::create(&part)?;
            let writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))
                .map_err(io::Error::other)?;
            return Ok(OpenColumns { writer, groups: 0, part, whole });
        }
        Err(io::Error::other(format!("{stem}: all numbers are taken")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_numbers_are_bounded_and_running_out_is_an_error() {
        let stem = std::env::temp_dir().join(format!("pitlane-numbers-{}", std::process::id()));
        let mut writer = RowWriter::new(&stem.with_extension("parquet"), RecordedRows::Ticks).unwrap();
        writer.number = FILES_MAX - 1;
        let row = "1,7,1.5,3,,,,";
        writer.push(row).and_then(|()| writer.close()).unwrap();
        let last = format!("{}-{FILES_MAX}.parquet", stem.display());
        fs::remove_file(last).unwrap();
        let result = writer.push(row).and_then(|()| writer.close()).map_err(|error| error.to_string());
        assert!(result.is_err_and(|error| error.ends_with("all numbers are taken")));
    }
}
