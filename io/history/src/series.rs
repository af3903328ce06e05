//! A series of rows of one kind, by security and time: the newest in memory and in a log, the rest
//! in part files.
//!
//! ```text
//! push ─► rows in memory ─► log (each flush) ─► part file (every ROWS_MAX rows) ─► removed by age
//! or size
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pitlane_engine::id::SecurityId;
use pitlane_engine::time::Timestamp;

use super::part_file::{PartChunk, PartFile};
use super::rows::HistoryRow;
use super::tail_log::TailLog;

/// Maximum number of rows in memory and in the log: some 10 MB. Then they become a part file.
const ROWS_MAX: usize = 1 << 17;

#[derive(Debug)]
pub(crate) struct Series<R> {
    folder: PathBuf,
    name: &'static str,
    rows: BTreeMap<SecurityId, Vec<R>>,
    rows_len: usize,
    rows_max: usize,
    log: TailLog,
    /// Oldest first. The rows of a security in one part are older than those in the next.
    parts: VecDeque<PartFile>,
    /// Number of the next part file.
    next_part: u64,
}

/// Which rows of a security are wanted: those in the half-open range, from its begin or, backwards,
/// from its end. They are returned in order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowRange {
    pub from: Timestamp,
    pub to: Timestamp,
    pub limit: usize,
    pub is_backwards: bool,
}

impl<R: HistoryRow> Series<R> {
    /// Opens the files of a series, or creates them. Damage is repaired and logged.
    pub(crate) fn open(folder: &Path, name: &'static str) -> io::Result<Series<R>> {
        let mut parts = BTreeMap::new();
        let mut next_part = 1;
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let Some(number) = part_number(&path, name) else { continue };
            next_part = next_part.max(number + 1);
            match PartFile::open::<R>(&path)? {
                Some(part) => _ = parts.insert(number, part),
                // One such file of each series is kept for inspection.
                None => {
                    tracing::error!(file = %path.display(), "a file of the history is damaged: its rows are left out");
                    fs::rename(&path, folder.join(format!("{name}.damaged")))?;
                }
            }
        }
        let mut series_rows: BTreeMap<SecurityId, Vec<R>> = BTreeMap::new();
        let path = folder.join(format!("{name}.log"));
        let (log, damage) = TailLog::open(&path, |security, row: R| {
            series_rows.entry(security).or_default().push(row);
        })?;
        if damage.blocks > 0 {
            let (file, blocks) = (path.display(), damage.blocks);
            tracing::error!(%file, blocks, "blocks of the history are damaged: their rows are left out");
        }
        if damage.tail_bytes > 0 {
            let (file, bytes) = (path.display(), damage.tail_bytes);
            tracing::warn!(%file, bytes, "the history ended in an incomplete block, which was removed");
        }
        let mut series = Series {
            folder: folder.to_path_buf(),
            name,
            rows: BTreeMap::new(),
            rows_len: 0,
            rows_max: ROWS_MAX,
            log,
            parts: parts.into_values().collect(),
            next_part,
        };
        series.take_rows_of_log(series_rows);
        Ok(series)
    }

    /// Takes the rows that are in no part file yet: a process may have been killed between writing
    /// a part file and clearing the log. Rows out of order, which we never write, are left out.
    fn take_rows_of_log(&mut self, rows: BTreeMap<SecurityId, Vec<R>>) {
        let mut newest: BTreeMap<SecurityId, Timestamp> = BTreeMap::new();
        for chunk in self.parts.iter().flat_map(|part| part.chunks()) {
            let newest = newest.entry(chunk.security).or_default();
            *newest = (*newest).max(chunk.last);
        }
        for (security, mut rows) in rows {
            let mut last = newest.get(&security).copied();
            rows.retain(|row| {
                let is_new = last.is_none_or(|last| row.at() > last);
                if is_new {
                    last = Some(row.at());
                }
                is_new
            });
            self.rows_len += rows.len();
            self.rows.insert(security, rows);
        }
        self.rows.retain(|_, rows| !rows.is_empty());
    }

    /// Adds a row. It is later than the rows of the security before it.
    pub(crate) fn push(&mut self, security: SecurityId, row: R) -> io::Result<()> {
        let full = if self.log.is_full::<R>() { self.log.flush() } else { Ok(()) };
        self.log.push(security, &row);
        self.rows.entry(security).or_default().push(row);
        self.rows_len += 1;
        if self.rows_len >= self.rows_max { full.and(self.write_part()) } else { full }
    }

    /// Writes the rows that are only in memory to the log.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.log.flush()
    }

    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.log.flush()?;
        self.log.sync()
    }

    /// Moves all rows of the log into a part file. If the disk does not take them, they are
    /// dropped: memory is bounded.
    fn write_part(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.rows);
        self.rows_len = 0;
        let path = self.folder.join(format!("{}-{:08}.part", self.name, self.next_part));
        let written = PartFile::write(&path, &rows);
        self.next_part += 1;
        let cleared = self.log.clear();
        self.parts.push_back(written?);
        cleared
    }

    /// Returns the bytes on disk.
    pub(crate) fn bytes(&self) -> u64 {
        self.log.bytes() + self.parts.iter().map(PartFile::bytes).sum::<u64>()
    }

    /// Returns the newest time of all rows.
    pub(crate) fn newest(&self) -> Timestamp {
        let parts = self.parts.iter().map(PartFile::newest);
        let memory = self.rows.values().filter_map(|rows| rows.last()).map(HistoryRow::at);
        parts.chain(memory).max().unwrap_or_default()
    }

    /// Returns the securities that have rows.
    pub(crate) fn securities(&self) -> impl Iterator<Item = SecurityId> {
        let of_parts = self.parts.iter().flat_map(|part| part.chunks()).map(|chunk| chunk.security);
        of_parts.chain(self.rows.keys().copied())
    }

    /// Removes the oldest part file if all its rows are before this time.
    pub(crate) fn remove_before(&mut self, oldest: Timestamp) -> io::Result<bool> {
        if self.parts.front().is_some_and(|part| part.newest() < oldest) {
            self.remove_oldest()
        } else {
            Ok(false)
        }
    }

    /// Removes the oldest part file, if there is one.
    pub(crate) fn remove_oldest(&mut self) -> io::Result<bool> {
        let Some(part) = self.parts.pop_front() else { return Ok(false) };
        fs::remove_file(part.path())?;
        Ok(true)
    }

    /// Returns the newest row of a security. Rows that cannot be read count as absent.
    pub(crate) fn last(&self, security: SecurityId) -> Option<R> {
        let range = RowRange { from: Timestamp::ZERO, to: Timestamp::MAX, limit: 1, is_backwards: true };
        self.range(security, range).ok()?.pop()
    }

    /// Returns the rows of a security in a range, in order of time.
    pub(crate) fn range(&self, security: SecurityId, range: RowRange) -> io::Result<Vec<R>> {
        let mut damaged = 0;
        let mut left = range.limit;
        let mut pieces: Vec<Vec<R>> = Vec::new();
        let memory = self.rows.get(&security).map_or(&[][..], Vec::as_slice);
        let of_part = |part| PartFile::chunks_of(part, security, range.from, range.to).iter();
        let mut chunks: Vec<(&PartFile, &PartChunk)> =
            self.parts.iter().flat_map(|part| of_part(part).map(move |chunk| (part, chunk))).collect();
        if range.is_backwards {
            pieces.push(wanted(memory, &range, &mut left));
            chunks.reverse();
        }
        for (part, chunk) in chunks {
            if left == 0 {
                break;
            }
            match part.read(chunk)? {
                Some(rows) => pieces.push(wanted(&rows, &range, &mut left)),
                None => damaged += 1,
            }
        }
        match range.is_backwards {
            true => pieces.reverse(),
            false => pieces.push(wanted(memory, &range, &mut left)),
        }
        if damaged > 0 {
            tracing::error!(
                series = self.name,
                security = security.0,
                damaged,
                "a part of the history is damaged: its rows are left out"
            );
        }
        Ok(pieces.into_iter().flatten().collect())
    }
}

/// Returns those of the rows that are in the range, as many as are left to take.
fn wanted<R: HistoryRow>(rows: &[R], range: &RowRange, left: &mut usize) -> Vec<R> {
    let begin = rows.partition_point(|row| row.at() < range.from);
    let end = rows.partition_point(|row| row.at() < range.to).max(begin);
    let rows = &rows[begin..end];
    let count = rows.len().min(*left);
    *left -= count;
    let rows = if range.is_backwards { &rows[rows.len() - count..] } else { &rows[..count] };
    rows.to_vec()
}

/// Returns the number of a part file of a series.
fn part_number(path: &Path, name: &str) -> Option<u64> {
    let file = path.file_name()?.to_str()?;
    file.strip_prefix(name)?
        .strip_prefix('-')?
        .strip_suffix(".part")?
        .parse()
        .ok()
        .filter(|number| *number < u64::MAX)
}

#[cfg(test)]
mod tests {
    use pitlane_testkit::temp_folder::TestFolder;

    use super::*;
    use crate::rows::StoredBar;

    const ALL: RowRange =
        RowRange { from: Timestamp::ZERO, to: Timestamp::MAX, limit: usize::MAX, is_backwards: false };

    fn open(folder: &Path) -> Series<StoredBar> {
        let series = Series::open(folder, "bars").unwrap();
        Series { rows_max: 10, ..series }
    }

    fn push(series: &mut Series<StoredBar>, security: u32, at: u64) {
        let bar = StoredBar { at: Timestamp(at), trades: at, ..StoredBar::default() };
        series.push(SecurityId(security), bar).unwrap();
    }

    fn times(series: &Series<StoredBar>, security: u32, range: RowRange) -> Vec<u64> {
        series.range(SecurityId(security), range).unwrap().iter().map(|bar| bar.at.0).collect()
    }

    #[test]
    fn rows_of_log_and_parts_are_one_series_also_after_a_restart() {
        let folder = TestFolder::new("history-series", "restart");
        let mut series = open(&folder);
        for at in 1..=35 {
            push(&mut series, 1 + u32::from(at % 5 == 0), at);
        }
        series.flush().unwrap();
        let ones: Vec<u64> = (1..=35).filter(|at| at % 5 != 0).collect();
        for _ in 0..2 {
            assert_eq!((series.parts.len(), series.rows_len), (3, 5));
            assert_eq!(times(&series, 1, ALL), ones);
            assert_eq!(times(&series, 2, ALL), [5, 10, 15, 20, 25, 30, 35]);
            assert_eq!(times(&series, 3, ALL), [0; 0]);
            let last = series.last(SecurityId(2)).map(|bar| bar.at);
            assert_eq!(last, Some(Timestamp(35)));
            series = open(&folder);
        }
    }

    #[test]
    fn a_range_is_half_open_and_its_limit_counts_from_either_end() {
        let folder = TestFolder::new("history-series", "range");
        let mut series = open(&folder);
        (1..=25).for_each(|at| push(&mut series, 1, at));
        let range = |from, to, limit, is_backwards| RowRange {
            from: Timestamp(from),
            to: Timestamp(to),
            limit,
            is_backwards,
        };
        assert_eq!(times(&series, 1, range(9, 13, 100, false)), [9, 10, 11, 12]);
        assert_eq!(times(&series, 1, range(9, 13, 100, true)), [9, 10, 11, 12]);
        assert_eq!(times(&series, 1, range(9, 25, 3, false)), [9, 10, 11]);
        assert_eq!(times(&series, 1, range(9, 25, 3, true)), [22, 23, 24]);
        assert_eq!(times(&series, 1, range(1, 22, 3, true)), [19, 20, 21]);
        assert_eq!(times(&series, 1, range(13, 9, 100, false)), [0; 0]);
        assert_eq!(times(&series, 1, range(26, 99, 100, false)), [0; 0]);
        for from in 0..27 {
            for to in 0..27 {
                for limit in [1, 4, 30] {
                    let all: Vec<u64> = (1..=25).filter(|at| (from..to).contains(at)).collect();
                    let count = all.len().min(limit);
                    assert_eq!(times(&series, 1, range(from, to, limit, false)), all[..count]);
                    assert_eq!(times(&series, 1, range(from, to, limit, true)), all[all.len() - count..]);
                }
            }
        }
    }

    #[test]
    fn a_process_killed_before_its_log_was_cleared_has_no_row_twice() {
        let folder = TestFolder::new("history-series", "twice");
        let mut series = open(&folder);
        (1..=9).for_each(|at| push(&mut series, 1, at));
        series.flush().unwrap();
        let log = fs::read(folder.join("bars.log")).unwrap();
        push(&mut series, 1, 10);
        assert_eq!((series.parts.len(), series.rows_len), (1, 0));
        drop(series);
        fs::write(folder.join("bars.log"), &log).unwrap();
        let mut series = open(&folder);
        assert_eq!(series.rows_len, 0);
        push(&mut series, 1, 11);
        assert_eq!(times(&series, 1, ALL), (1..=11).collect::<Vec<u64>>());
    }

    #[test]
    fn the_oldest_part_goes_first_and_only_when_all_of_it_is_old() {
        let folder = TestFolder::new("history-series", "age");
        let mut series = open(&folder);
        (1..=25).for_each(|at| push(&mut series, 1, at));
        let bytes = series.bytes();
        assert!(!series.remove_before(Timestamp(10)).unwrap());
        assert!(series.remove_before(Timestamp(11)).unwrap());
        assert!(!series.remove_before(Timestamp(11)).unwrap());
        assert!(series.bytes() < bytes);
        assert_eq!(times(&series, 1, ALL), (11..=25).collect::<Vec<u64>>());
        assert!(series.remove_oldest().unwrap() && !series.remove_oldest().unwrap());
        assert_eq!(times(&open(&folder), 1, ALL), [0; 0], "rows that were not flushed are lost");
    }

    #[test]
    fn a_damaged_part_is_set_aside_and_the_rest_is_read() {
        let folder = TestFolder::new("history-series", "damaged");
        let mut series = open(&folder);
        (1..=20).for_each(|at| push(&mut series, 1, at));
        drop(series);
        let first = folder.join("bars-00000001.part");
        let bytes = fs::read(&first).unwrap();
        fs::write(&first, &bytes[..bytes.len() - 1]).unwrap();
        let mut series = open(&folder);
        assert_eq!(times(&series, 1, ALL), (11..=20).collect::<Vec<u64>>());
        assert!(folder.join("bars.damaged").exists() && !first.exists());
        // The number of a damaged file is not used again.
        (21..=30).for_each(|at| push(&mut series, 1, at));
        assert!(folder.join("bars-00000003.part").exists());
    }
}
