//! Merges several files into one stream in time order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;
use std::sync::Arc;

use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;

use super::file::{DataFile, ReadOptions};
use super::{DataError, TickRow};

/// Maximum number of files at once: each has a buffer and an open handle.
pub const FILES_MAX: usize = 1_024;
/// Maximum number of Parquet files among them: each holds a page of every column, usually of a
/// megabyte.
pub const PARQUET_FILES_MAX: usize = 128;

/// Invariant: a file is in `heads` as long as it has a row, under the time of that row.
#[derive(Debug)]
pub struct Merge {
    files: Vec<DataFile>,
    /// Next row of each file.
    rows: Vec<Option<TickRow>>,
    heads: BinaryHeap<Reverse<(Timestamp, usize)>>,
    bytes: u64,
    until: Timestamp,
}

/// Opens files; rows before `from` and from `to` on are skipped.
pub fn open(
    paths: &[PathBuf],
    reference: &Arc<RefData>,
    options: &ReadOptions,
    (from, to): (Timestamp, Timestamp),
) -> Result<Merge, DataError> {
    let whole = |problem: String| DataError { file: "simulation.data".into(), line: 0, problem };
    if paths.is_empty() {
        return Err(whole("no file is named".to_string()));
    }
    if paths.len() > FILES_MAX {
        return Err(whole(format!("there are more than {FILES_MAX} files")));
    }
    let mut merge = Merge::new(to);
    for path in paths {
        merge.bytes += std::fs::metadata(path).map_or(0, |data| data.len());
        merge.add(DataFile::open(path, reference, options, (from, to))?, from)?;
        if merge.files.iter().filter(|file| file.is_parquet()).count() > PARQUET_FILES_MAX {
            return Err(whole(format!("there are more than {PARQUET_FILES_MAX} files of Parquet")));
        }
    }
    Ok(merge)
}

impl Merge {
    /// Creates a merge of nothing; rows from `until` on are skipped.
    pub fn new(until: Timestamp) -> Merge {
        Merge { files: Vec::new(), rows: Vec::new(), heads: BinaryHeap::new(), bytes: 0, until }
    }

    /// Adds a file or another source; its rows before `from` are skipped.
    pub fn add(&mut self, mut file: DataFile, from: Timestamp) -> Result<(), DataError> {
        file.skip_before(from)?;
        let first = file.next_row()?;
        self.heads.extend(first.map(|row| Reverse((row.at, self.files.len()))));
        self.files.push(file);
        self.rows.push(first);
        Ok(())
    }

    /// Returns the size of all files together, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn consumed(&self) -> u64 {
        self.files.iter().map(DataFile::consumed).sum()
    }

    /// Returns the time of the next row; `None` at the end.
    pub fn peek(&self) -> Option<Timestamp> {
        self.heads.peek().map(|Reverse((at, _))| *at).filter(|at| *at < self.until)
    }

    /// Returns the next row; `None` at the end.
    #[inline]
    pub fn next_row(&mut self) -> Result<Option<TickRow>, DataError> {
        let Some(mut head) = self.heads.peek_mut() else { return Ok(None) };
        let Reverse((at, file)) = *head;
        if at >= self.until {
            return Ok(None);
        }
        let row = std::mem::replace(&mut self.rows[file], self.files[file].next_row()?);
        match &self.rows[file] {
            // The heap is reordered when `head` is dropped.
            Some(next) => head.0.0 = next.at,
            None => _ = std::collections::binary_heap::PeekMut::pop(head),
        }
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use pitlane_config::refdata;
    use pitlane_engine::command::CommandKind;
    use pitlane_engine::id::SecurityId;

    use super::*;
    use crate::entry::{DataEntry, EntrySource};
    use crate::row_layout::TICKS;
    use crate::{BarPath, DataError};

    fn options() -> ReadOptions {
        ReadOptions { bars: BarPath { interval_ns: 1, volume_bp: 1 }, files: Default::default() }
    }

    #[test]
    fn the_number_of_files_is_limited() {
        let reference = Arc::new(refdata::shipped().unwrap());
        let paths = vec![PathBuf::from("/nowhere.csv"); FILES_MAX + 1];
        let opened = |count: usize| {
            let range = (Timestamp::ZERO, Timestamp::MAX);
            open(&paths[..count], &reference, &options(), range).map(|_| ()).unwrap_err().problem
        };
        assert_eq!(opened(FILES_MAX + 1), format!("there are more than {FILES_MAX} files"));
        assert!(opened(FILES_MAX).contains("No such file"), "they are looked for");
    }

    #[test]
    fn rows_of_several_files_come_in_time_order() {
        let folder = std::env::temp_dir().join(format!("pitlane-merge-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let plan: [(u32, &[u64]); 3] = [(1, &[5, 10, 10, 40]), (2, &[10, 20, 30]), (3, &[])];
        let paths: Vec<PathBuf> = plan
            .iter()
            .map(|(security, times)| {
                let path = folder.join(format!("{security}.csv"));
                let rows: String = times.iter().map(|at| format!("{at},{security},1,1,2,1,,\n")).collect();
                fs::write(&path, format!("{TICKS}\n{rows}")).unwrap();
                path
            })
            .collect();
        let reference = Arc::new(refdata::shipped().unwrap());
        let range = (Timestamp(10), Timestamp(40));
        let mut merge = open(&paths, &reference, &options(), range).unwrap();
        let mut merged = Vec::new();
        while let Some(peeked) = merge.peek() {
            let row = merge.next_row().unwrap().unwrap();
            assert_eq!(row.at, peeked);
            merged.push((row.at.0, row.security.0));
        }
        assert_eq!(merged, [(10, 1), (10, 1), (10, 2), (20, 2), (30, 2)]);
        assert_eq!(merge.next_row(), Ok(None));
        assert!(merge.consumed() <= merge.bytes());
        let none = open(&[], &reference, &options(), range).unwrap_err();
        assert_eq!(none.to_string(), "simulation.data: no file is named");
        let missing = [folder.join("missing.csv")];
        assert!(open(&missing, &reference, &options(), range).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }

    /// Rows of one security at these times.
    #[derive(Debug)]
    struct Times(Vec<u64>);

    impl EntrySource for Times {
        fn next_entry(&mut self) -> Result<Option<DataEntry>, DataError> {
            let Some(at) = self.0.pop() else { return Ok(None) };
            let security = SecurityId(7);
            let body = CommandKind::Trade { security, trade: Default::default() };
            Ok(Some(DataEntry::Tick(TickRow { at: Timestamp(at), security, body })))
        }

        fn fault(&self, problem: &str) -> DataError {
            DataError { file: "times".into(), line: 0, problem: problem.to_string() }
        }
    }

    #[test]
    fn a_source_that_is_no_file_is_merged_like_one() {
        let reference = Arc::new(refdata::shipped().unwrap());
        let bars = BarPath { interval_ns: 1, volume_bp: 1 };
        let mut merge = Merge::new(Timestamp(9));
        for times in [vec![8, 4, 1], vec![9, 5, 3]] {
            let file = DataFile::of_source(Box::new(Times(times)), &reference, bars);
            merge.add(file, Timestamp(2)).unwrap();
        }
        let mut merged = Vec::new();
        while let Some(row) = merge.next_row().unwrap() {
            merged.push(row.at.0);
        }
        assert_eq!(merged, [3, 4, 5, 8]);
    }
}
