//! Writes ticks or levels into numbered Parquet files: a file is complete only when its footer is
//! written, and cannot be appended to afterwards.
//!
//! ```text
//! ticks.parquet  ─►  ticks-000001.parquet, ticks-000002.parquet, …     named .part until complete
//! ```

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use parquet::file::writer::SerializedFileWriter;
use pitlane_engine::id::SecurityId;
use pitlane_engine::text::{parse_scaled, parse_u64};
use pitlane_engine::time::Timestamp;

use super::table;
use crate::column_role::TableLayout;
use crate::entry::side_of;
use crate::recorded_rows::RecordedRows;
use crate::row_layout::RowLayout;
use crate::row_table::{RowTable, TICK_NUMBERS};

/// Rows of a group: they stay in memory until they are written, some 4 MiB.
const ROWS_PER_GROUP: usize = 65_536;
/// Groups of a file: a million rows, which is the most that a crash of the process loses.
const GROUPS_PER_FILE: usize = 16;
/// Highest file number.
const FILES_MAX: u32 = 999_999;

/// Returns whether a path requests this format.
pub fn is_meant(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "parquet")
}

#[derive(Debug)]
pub struct RowWriter {
    path: PathBuf,
    number: u32,
    /// The rows of the next group.
    table: RowTable,
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
        let table = RowTable::new(TableLayout::Rows(content.layout()));
        Ok(RowWriter { path: path.to_owned(), number: 0, table, file: None })
    }

    /// Adds a row in the format of the CSV file.
    pub fn push(&mut self, line: &str) -> io::Result<()> {
        let unfit = || io::Error::other(format!("no row of the recording: {line}"));
        let mut cells = line.split(',').map(str::as_bytes);
        let mut number = || cells.next().and_then(|cell| parse_u64(cell).ok()).ok_or_else(unfit);
        let at = Timestamp(number()?);
        let security = SecurityId(u32::try_from(number()?).map_err(|_| unfit())?);
        if self.table.layout == TableLayout::Rows(RowLayout::Levels) {
            let side = cells.next().and_then(|cell| side_of(cell).ok());
            self.table.sides.push(side.ok_or_else(unfit)?);
        }
        let mut numbers = [None; TICK_NUMBERS];
        let numbers = &mut numbers[..self.table.optionals.len()];
        for number in numbers.iter_mut() {
            let cell = cells.next().ok_or_else(unfit)?;
            *number = if cell.is_empty() { None } else { Some(parse_scaled(cell).map_err(|_| unfit())?) };
        }
        self.table.push(at, security, numbers)?;
        if self.table.rows() >= ROWS_PER_GROUP { self.write_group() } else { Ok(()) }
    }

    /// Writes the remaining rows, and completes the file.
    pub fn close(&mut self) -> io::Result<()> {
        if self.table.rows() > 0 {
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
        table::write_group(&self.table, &mut file.writer).map_err(io::Error::other)?;
        self.table.clear();
        file.groups += 1;
        let is_full = file.groups >= GROUPS_PER_FILE;
        self.file = Some(file);
        if is_full { self.close() } else { Ok(()) }
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
            let file = File::create(&part)?;
            let writer = table::begin(self.table.layout, file).map_err(io::Error::other)?;
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
