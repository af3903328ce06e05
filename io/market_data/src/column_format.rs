//! Formats that store rows by columns, for answers that hold a whole table.

use std::io;

use pitlane_engine::id::SecurityId;
use pitlane_engine::time::Timestamp;

use super::row_layout::{QuoteRow, RowLayout};
#[cfg(feature = "parquet")]
use super::{arrow_stream, column_role::TableLayout, parquet::table, row_table::RowTable};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnFormat {
    Parquet,
    /// The streaming format of Arrow IPC.
    ArrowStream,
}

impl ColumnFormat {
    /// Whether this build can write them.
    pub const IS_BUILT: bool = cfg!(feature = "parquet");

    /// Returns the name in the registry of media types.
    pub fn media_type(self) -> &'static str {
        match self {
            ColumnFormat::Parquet => "application/vnd.apache.parquet",
            ColumnFormat::ArrowStream => "application/vnd.apache.arrow.stream",
        }
    }

    /// Returns ticks or bars as a whole file or stream, also if there are none. A row has a cell in
    /// units of 10⁻⁸ for each column after `security`.
    #[cfg(feature = "parquet")]
    pub fn encode<const CELLS: usize>(
        self,
        layout: RowLayout,
        rows: impl Iterator<Item = (Timestamp, SecurityId, [Option<i64>; CELLS])>,
    ) -> io::Result<Vec<u8>> {
        let mut all = RowTable::new(TableLayout::Rows(layout));
        for (at, security, cells) in rows {
            all.push(at, security, &cells)?;
        }
        self.write(&all)
    }

    /// Returns quotes as a whole file or stream.
    #[cfg(feature = "parquet")]
    pub fn encode_quotes(self, rows: impl Iterator<Item = QuoteRow>) -> io::Result<Vec<u8>> {
        let mut all = RowTable::new(TableLayout::Quotes);
        for quote in rows {
            all.push_quote(&quote)?;
        }
        self.write(&all)
    }

    #[cfg(feature = "parquet")]
    fn write(self, all: &RowTable) -> io::Result<Vec<u8>> {
        match self {
            ColumnFormat::Parquet => table::encode(all).map_err(io::Error::other),
            ColumnFormat::ArrowStream => arrow_stream::encode(all).map_err(io::Error::other),
        }
    }

    #[cfg(not(feature = "parquet"))]
    pub fn encode<const CELLS: usize>(
        self,
        _: RowLayout,
        _: impl Iterator<Item = (Timestamp, SecurityId, [Option<i64>; CELLS])>,
    ) -> io::Result<Vec<u8>> {
        Err(not_built())
    }

    #[cfg(not(feature = "parquet"))]
    pub fn encode_quotes(self, _: impl Iterator<Item = QuoteRow>) -> io::Result<Vec<u8>> {
        Err(not_built())
    }
}

#[cfg(not(feature = "parquet"))]
fn not_built() -> io::Error {
    io::Error::other("this binary was built without the feature `parquet`")
}

#[cfg(test)]
mod tests;
