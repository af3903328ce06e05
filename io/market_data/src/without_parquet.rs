//! Takes the place of the module `parquet` in a build without that feature: recognises the format
//! and says what is missing. Its types have no values, so nothing else of the format is needed.

use std::convert::Infallible;
use std::fs::File;

use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;

use super::DataError;
use super::entry::DataEntry;

/// Magic bytes at the beginning of a Parquet file.
pub(crate) const PARQUET: [u8; 4] = *b"PAR1";

const MISSING: &str = "this is Parquet, and the binary was built without the feature `parquet`: \
                       use CSV, or a binary of `make install` or `cargo build --features parquet`";

#[derive(Debug)]
pub(crate) struct ParquetFile(Infallible);

impl ParquetFile {
    /// Refuses the file.
    pub(crate) fn new(
        name: String,
        _: File,
        _: &RefData,
        _: u64,
        _: (Timestamp, Timestamp),
    ) -> Result<ParquetFile, DataError> {
        Err(DataError { file: name, line: 0, problem: MISSING.to_string() })
    }

    pub(crate) fn consumed(&self) -> u64 {
        match self.0 {}
    }

    pub(crate) fn next_entry(&mut self) -> Result<Option<DataEntry>, DataError> {
        match self.0 {}
    }

    pub(crate) fn fault(&self, _: &str) -> DataError {
        match self.0 {}
    }
}

pub(crate) mod writer {
    //! The writer of the recorder.

    use std::convert::Infallible;
    use std::io;
    use std::path::Path;

    use super::MISSING;
    use crate::recorded_rows::RecordedRows;

    /// Returns whether a path requests this format.
    pub(crate) fn is_meant(path: &Path) -> bool {
        path.extension().is_some_and(|extension| extension == "parquet")
    }

    #[derive(Debug)]
    pub(crate) struct RowWriter(Infallible);

    impl RowWriter {
        /// Refuses the path.
        pub(crate) fn new(path: &Path, _: RecordedRows) -> io::Result<RowWriter> {
            Err(io::Error::other(format!("{}: {MISSING}", path.display())))
        }

        pub(crate) fn push(&mut self, _: &str) -> io::Result<()> {
            match self.0 {}
        }

        pub(crate) fn close(&mut self) -> io::Result<()> {
            match self.0 {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pitlane_config::refdata;

    use super::*;
    use crate::file::{DataFile, ReadOptions};
    use crate::recorded_rows::RecordedRows;
    use crate::{BarPath, record};

    #[test]
    fn a_build_without_parquet_names_the_missing_feature() {
        let path = std::env::temp_dir().join(format!("pitlane-without-{}.parquet", std::process::id()));
        std::fs::write(&path, b"PAR1 and more").unwrap();
        let range = (Timestamp::ZERO, Timestamp::ZERO);
        let reference = Arc::new(refdata::shipped().unwrap());
        let bars = BarPath { interval_ns: 1, volume_bp: 0 };
        let options = ReadOptions { bars, files: Default::default() };
        let read = DataFile::open(&path, &reference, &options, range);
        std::fs::remove_file(&path).unwrap();
        assert!(read.is_err_and(|error| error.to_string().contains("without the feature `parquet`")));
        let written = record::start(&path, RecordedRows::Ticks).map_err(|error| error.to_string());
        assert!(written.is_err_and(|error| error.contains("without the feature `parquet`")));
        assert!(!path.exists());
    }
}
