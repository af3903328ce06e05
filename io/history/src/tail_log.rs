//! The newest rows of a series on disk: an append-only file of blocks, each with its checksum.
//!
//! ```text
//! magic (8) | block | block | …          block: length (4) | CRC-32C (4) | security, row; …
//! ```
//!
//! A block is written by one call after its rows have arrived, so a killed process loses at most
//! the rows of the last moment. The file is not forced to disk: after a power failure its end may
//! be missing. A start removes an incomplete end and skips blocks whose checksum is wrong.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use pitlane_engine::id::SecurityId;
use pitlane_engine::index::index_u32;

use super::rows::HistoryRow;

/// Mode of files: only the user that runs the service may read them, as those of the journal.
pub(crate) const PRIVATE: u32 = 0o600;
const MAGIC: [u8; 8] = *b"PLHLOG01";
/// Length and checksum of a block.
const HEAD_BYTES: usize = 8;
/// Bytes of the id before each row.
const ID_BYTES: usize = 4;
/// Maximum bytes of a block. A longer one is not ours, and its length cannot be trusted.
pub(crate) const BLOCK_BYTES_MAX: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct TailLog {
    file: File,
    /// Bytes of complete blocks, the magic included.
    bytes: u64,
    /// The block in preparation: room for its head, then rows.
    block: Vec<u8>,
}

/// What a start found in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogDamage {
    /// Blocks with a wrong checksum.
    pub blocks: u64,
    /// Bytes after the last complete block, which were removed.
    pub tail_bytes: u64,
}

impl TailLog {
    /// Opens or creates the file, repairs its end and passes each row to `row`, in order.
    pub(crate) fn open<R: HistoryRow>(
        path: &Path,
        mut row: impl FnMut(SecurityId, R),
    ) -> io::Result<(TailLog, LogDamage)> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(PRIVATE);
        let mut file = options.open(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let mut damage = LogDamage::default();
        let is_ours = bytes.starts_with(&MAGIC);
        let mut good = if is_ours { MAGIC.len() } else { 0 };
        let mut at = if is_ours { MAGIC.len() } else { bytes.len() };
        while let Some((payload, end)) = block_at::<R>(&bytes, at) {
            match payload {
                Some(payload) => {
                    for entry in payload.chunks_exact(ID_BYTES + R::BYTES) {
                        let (id, rest) = entry.split_at(ID_BYTES);
                        let id = u32::from_le_bytes([id[0], id[1], id[2], id[3]]);
                        if id <= SecurityId::MAX {
                            row(SecurityId(id), R::decode(rest));
                        }
                    }
                    good = end;
                }
                None => damage.blocks += 1,
            }
            at = end;
        }
        damage.tail_bytes = (bytes.len() - good) as u64;
        let mut log = TailLog { file, bytes: good as u64, block: vec![0; HEAD_BYTES] };
        if good == 0 {
            log.clear()?;
        } else if damage.tail_bytes > 0 {
            log.file.set_len(log.bytes)?;
        }
        log.file.seek(SeekFrom::Start(log.bytes))?;
        Ok((log, damage))
    }

    /// Adds a row to the block in preparation.
    pub(crate) fn push<R: HistoryRow>(&mut self, security: SecurityId, row: &R) {
        self.block.extend_from_slice(&security.0.to_le_bytes());
        row.encode(&mut self.block);
    }

    /// Returns whether the block in preparation has to be written before another row.
    pub(crate) fn is_full<R: HistoryRow>(&self) -> bool {
        self.block.len() + ID_BYTES + R::BYTES > BLOCK_BYTES_MAX
    }

    /// Writes the block in preparation. If that fails, its rows are not in the file, and the next
    /// block is written in their place.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let length = self.block.len() - HEAD_BYTES;
        if length == 0 {
            return Ok(());
        }
        let sum = crc32c::crc32c(&self.block[HEAD_BYTES..]);
        self.block[..4].copy_from_slice(&index_u32(length).to_le_bytes());
        self.block[4..HEAD_BYTES].copy_from_slice(&sum.to_le_bytes());
        let written =
            self.file.seek(SeekFrom::Start(self.bytes)).and_then(|_| self.file.write_all(&self.block));
        if written.is_ok() {
            self.bytes += self.block.len() as u64;
        }
        self.block.truncate(HEAD_BYTES);
        written
    }

    /// Removes all rows.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.block.truncate(HEAD_BYTES);
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&MAGIC)?;
        self.bytes = MAGIC.len() as u64;
        Ok(())
    }

    /// Forces the file to disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Returns the rows of the block at this place, `None` for rows with a wrong checksum, and the end
/// of the block. Returns `None` if no complete block is here.
fn block_at<R: HistoryRow>(bytes: &[u8], at: usize) -> Option<(Option<&[u8]>, usize)> {
    let head = bytes.get(at..at + HEAD_BYTES)?;
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
    let sum = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    let is_length = length > 0 && length <= BLOCK_BYTES_MAX && length.is_multiple_of(ID_BYTES + R::BYTES);
    if !is_length {
        return None;
    }
    let end = at + HEAD_BYTES + length;
    let payload = bytes.get(at + HEAD_BYTES..end)?;
    Some(((crc32c::crc32c(payload) == sum).then_some(payload), end))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use pitlane_engine::time::Timestamp;
    use pitlane_testkit::temp_folder::TestFolder;

    use super::*;
    use crate::rows::StoredBar;

    fn bar(at: u64) -> StoredBar {
        StoredBar { at: Timestamp(at), trades: at, ..StoredBar::default() }
    }

    /// Opens the file and returns the times of its rows.
    fn read(path: &Path) -> (TailLog, Vec<(u32, u64)>, LogDamage) {
        let mut rows = Vec::new();
        let (log, damage) =
            TailLog::open(path, |security, bar: StoredBar| rows.push((security.0, bar.trades))).unwrap();
        (log, rows, damage)
    }

    fn write(path: &Path, blocks: &[&[u64]]) {
        let (mut log, _, _) = read(path);
        for block in blocks {
            block.iter().for_each(|at| log.push(SecurityId(7), &bar(*at)));
            log.flush().unwrap();
        }
    }

    #[test]
    fn rows_are_read_back_in_order_and_more_can_follow() {
        let folder = TestFolder::new("history-log", "log");
        let path = folder.join("a.log");
        write(&path, &[&[1, 2], &[], &[3]]);
        write(&path, &[&[4]]);
        let (log, rows, damage) = read(&path);
        assert_eq!(rows, [(7, 1), (7, 2), (7, 3), (7, 4)]);
        assert_eq!(damage, LogDamage::default());
        assert_eq!(log.bytes(), fs::metadata(&path).unwrap().len());
    }

    #[test]
    fn a_file_that_was_cut_anywhere_keeps_its_complete_blocks() {
        let folder = TestFolder::new("history-log", "torn");
        let path = folder.join("a.log");
        write(&path, &[&[1, 2], &[3]]);
        let whole = fs::read(&path).unwrap();
        let second = MAGIC.len() + HEAD_BYTES + 2 * (ID_BYTES + StoredBar::BYTES);
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let expected: &[(u32, u64)] = if cut >= second { &[(7, 1), (7, 2)] } else { &[] };
            assert_eq!(read(&path).1, expected, "cut at {cut}");
            write(&path, &[&[9]]);
            let (_, rows, damage) = read(&path);
            assert_eq!((rows.last(), damage), (Some(&(7, 9)), LogDamage::default()), "cut at {cut}");
        }
    }

    #[test]
    fn a_flipped_bit_costs_its_block_or_what_follows_but_never_gives_a_wrong_row() {
        let folder = TestFolder::new("history-log", "flip");
        let path = folder.join("a.log");
        write(&path, &[&[1, 2], &[3], &[4]]);
        let whole = fs::read(&path).unwrap();
        let all = [(7, 1), (7, 2), (7, 3), (7, 4)];
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            fs::write(&path, &bytes).unwrap();
            let (_, rows, damage) = read(&path);
            assert!(rows.iter().all(|row| all.contains(row)) && rows.len() < all.len(), "{at}: {rows:?}");
            assert_ne!(damage, LogDamage::default(), "{at}");
        }
    }

    #[test]
    fn a_file_of_something_else_is_replaced() {
        let folder = TestFolder::new("history-log", "foreign");
        let path = folder.join("a.log");
        fs::write(&path, b"something else, and long enough").unwrap();
        let (log, rows, damage) = read(&path);
        assert_eq!((rows.len(), damage.tail_bytes, log.bytes()), (0, 31, 8));
        write(&path, &[&[1]]);
        assert_eq!(read(&path).1, [(7, 1)]);
    }

    #[test]
    fn a_block_has_a_largest_size() {
        let folder = TestFolder::new("history-log", "block");
        let (mut log, _, _) = read(&folder.join("a.log"));
        let mut rows = 0;
        while !log.is_full::<StoredBar>() {
            log.push(SecurityId(1), &bar(rows));
            rows += 1;
        }
        assert!(log.block.len() <= BLOCK_BYTES_MAX + HEAD_BYTES);
        log.flush().unwrap();
        assert_eq!(read(&folder.join("a.log")).1.len() as u64, rows);
    }
}
