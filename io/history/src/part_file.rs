//! Older rows of a series on disk: a file that is written once, sorted by security and time.
//!
//! ```text
//! magic (8) | rows of a chunk | … | index: one entry for each chunk | trailer
//! ```
//!
//! A chunk has rows of one security. The index names its security, rows, first and last time,
//! place and checksum, and stays in memory, so a query reads only the chunks that it needs.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pitlane_engine::id::SecurityId;
use pitlane_engine::index::index_u32;
use pitlane_engine::time::Timestamp;

use super::rows::{HistoryRow, push_words, words};
use super::tail_log::PRIVATE;

const MAGIC: [u8; 8] = *b"PLHPART1";
/// Maximum number of rows of a chunk: a query for a few rows reads at most that many.
const CHUNK_ROWS_MAX: usize = 4_096;
/// Words of an index entry: security and rows, first, last, place, checksum.
const ENTRY_WORDS: usize = 5;
const ENTRY_BYTES: usize = ENTRY_WORDS * size_of::<u64>();
/// Entries, checksum of the index, magic.
const TRAILER_BYTES: usize = 24;

/// A file and its index.
#[derive(Debug)]
pub(crate) struct PartFile {
    path: PathBuf,
    bytes: u64,
    /// By security and time.
    chunks: Vec<PartChunk>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartChunk {
    pub security: SecurityId,
    pub first: Timestamp,
    pub last: Timestamp,
    rows: u32,
    place: u64,
    sum: u32,
}

impl PartFile {
    /// Writes the rows of all securities under a temporary name, forces them to disk and renames
    /// the file.
    pub(crate) fn write<R: HistoryRow>(
        path: &Path,
        rows: &BTreeMap<SecurityId, Vec<R>>,
    ) -> io::Result<PartFile> {
        let mut bytes = MAGIC.to_vec();
        let mut chunks = Vec::new();
        for (security, rows) in rows {
            for chunk in rows.chunks(CHUNK_ROWS_MAX) {
                let ([first, ..], [.., last]) = (chunk, chunk) else { continue };
                let place = bytes.len();
                chunk.iter().for_each(|row| row.encode(&mut bytes));
                chunks.push(PartChunk {
                    security: *security,
                    first: first.at(),
                    last: last.at(),
                    rows: index_u32(chunk.len()),
                    place: place as u64,
                    sum: crc32c::crc32c(&bytes[place..]),
                });
            }
        }
        let index = bytes.len();
        for chunk in &chunks {
            let PartChunk { security, first, last, rows, place, sum } = *chunk;
            let ids = u64::from(security.0) << 32 | u64::from(rows);
            push_words(&mut bytes, &[ids, first.0, last.0, place, u64::from(sum)]);
        }
        let sum = crc32c::crc32c(&bytes[index..]);
        push_words(&mut bytes, &[chunks.len() as u64, u64::from(sum)]);
        bytes.extend_from_slice(&MAGIC);
        let fresh = path.with_extension("new");
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(PRIVATE).open(&fresh)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&fresh, path)?;
        if let Some(folder) = path.parent() {
            File::open(folder)?.sync_all()?;
        }
        Ok(PartFile { path: path.to_path_buf(), bytes: bytes.len() as u64, chunks })
    }

    /// Opens a file. Returns `None` if its index is damaged.
    pub(crate) fn open<R: HistoryRow>(path: &Path) -> io::Result<Option<PartFile>> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        let chunks = read_index::<R>(&file, bytes)?;
        Ok(chunks.map(|chunks| PartFile { path: path.to_path_buf(), bytes, chunks }))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the newest time of all rows.
    pub(crate) fn newest(&self) -> Timestamp {
        self.chunks.iter().map(|chunk| chunk.last).max().unwrap_or_default()
    }

    /// Returns the chunks, by security and time.
    pub(crate) fn chunks(&self) -> &[PartChunk] {
        &self.chunks
    }

    /// Returns the chunks of a security with rows in the half-open range.
    pub(crate) fn chunks_of(&self, security: SecurityId, from: Timestamp, to: Timestamp) -> &[PartChunk] {
        let begin = self.chunks.partition_point(|chunk| (chunk.security, chunk.last) < (security, from));
        let end = self.chunks.partition_point(|chunk| (chunk.security, chunk.first) < (security, to));
        self.chunks.get(begin..end).unwrap_or_default()
    }

    /// Reads the rows of a chunk of this file. Returns `None` if they are damaged.
    pub(crate) fn read<R: HistoryRow>(&self, chunk: &PartChunk) -> io::Result<Option<Vec<R>>> {
        let mut bytes = vec![0; chunk.rows as usize * R::BYTES];
        File::open(&self.path)?.read_exact_at(&mut bytes, chunk.place)?;
        let is_sound = crc32c::crc32c(&bytes) == chunk.sum;
        Ok(is_sound.then(|| bytes.chunks_exact(R::BYTES).map(R::decode).collect()))
    }
}

/// Returns `None` if the index is not as it was written.
fn read_index<R: HistoryRow>(file: &File, bytes: u64) -> io::Result<Option<Vec<PartChunk>>> {
    let least = (MAGIC.len() + TRAILER_BYTES) as u64;
    let Some(trailer_at) = bytes.checked_sub(TRAILER_BYTES as u64).filter(|_| bytes >= least) else {
        return Ok(None);
    };
    let mut trailer = [0; TRAILER_BYTES];
    file.read_exact_at(&mut trailer, trailer_at)?;
    let [count, sum] = words(&trailer);
    let index_bytes = count.checked_mul(ENTRY_BYTES as u64);
    let index_at = index_bytes.and_then(|length| trailer_at.checked_sub(length));
    let Some(index_at) = index_at.filter(|at| *at >= MAGIC.len() as u64 && trailer.ends_with(&MAGIC)) else {
        return Ok(None);
    };
    let mut index = vec![0; usize::try_from(trailer_at - index_at).map_err(io::Error::other)?];
    file.read_exact_at(&mut index, index_at)?;
    if u64::from(crc32c::crc32c(&index)) != sum {
        return Ok(None);
    }
    let chunks = index.chunks_exact(ENTRY_BYTES).map(|entry| {
        let [ids, first, last, place, sum] = words(entry);
        Some(PartChunk {
            security: SecurityId(u32::try_from(ids >> 32).ok()?),
            first: Timestamp(first),
            last: Timestamp(last),
            rows: u32::try_from(ids & u64::from(u32::MAX)).ok()?,
            place,
            sum: u32::try_from(sum).ok()?,
        })
    });
    let is_inside = |chunk: &PartChunk| {
        let length = chunk.rows as usize * R::BYTES;
        chunk.rows as usize <= CHUNK_ROWS_MAX && chunk.place.checked_add(length as u64) <= Some(index_at)
    };
    let chunks: Option<Vec<PartChunk>> = chunks.collect();
    Ok(chunks.filter(|chunks| chunks.iter().all(is_inside)))
}

#[cfg(test)]
mod tests {
    use pitlane_testkit::temp_folder::TestFolder;

    use super::*;
    use crate::rows::StoredBar;

    fn rows(times: std::ops::Range<u64>) -> Vec<StoredBar> {
        times.map(|at| StoredBar { at: Timestamp(at), trades: at, ..StoredBar::default() }).collect()
    }

    fn chunk_rows(part: &PartFile, security: u32, from: u64, to: u64) -> Vec<StoredBar> {
        let chunks = part.chunks_of(SecurityId(security), Timestamp(from), Timestamp(to));
        chunks.iter().flat_map(|chunk| part.read(chunk).unwrap().expect("it is sound")).collect()
    }

    #[test]
    fn chunks_are_bounded_and_found_by_security_and_time() {
        let folder = TestFolder::new("history-part", "chunks");
        let path = folder.join("a-00000001.part");
        let many = CHUNK_ROWS_MAX as u64 + 10;
        let all = BTreeMap::from([(SecurityId(3), rows(0..many)), (SecurityId(5), rows(7..9))]);
        let written = PartFile::write(&path, &all).unwrap();
        let part = PartFile::open::<StoredBar>(&path).unwrap().unwrap();
        assert_eq!((part.chunks(), part.bytes()), (written.chunks(), fs::metadata(&path).unwrap().len()));
        assert_eq!(part.chunks().len(), 3, "no chunk has more than {CHUNK_ROWS_MAX} rows");
        assert_eq!(part.newest(), Timestamp(many - 1));
        assert_eq!(chunk_rows(&part, 3, 0, many), all[&SecurityId(3)]);
        assert_eq!(chunk_rows(&part, 5, 0, many), all[&SecurityId(5)]);
        assert_eq!(chunk_rows(&part, 3, many - 1, many).len(), 10, "one chunk of two");
        assert_eq!(chunk_rows(&part, 5, 9, many), []);
        assert_eq!(chunk_rows(&part, 5, 0, 7), []);
        assert_eq!(chunk_rows(&part, 4, 0, many), []);
    }

    #[test]
    fn damage_anywhere_is_noticed() {
        let folder = TestFolder::new("history-part", "damage");
        let path = folder.join("a-00000001.part");
        let all = BTreeMap::from([(SecurityId(3), rows(0..2)), (SecurityId(5), rows(7..8))]);
        PartFile::write(&path, &all).unwrap();
        let whole = fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            assert!(PartFile::open::<StoredBar>(&path).unwrap().is_none(), "cut at {cut}");
        }
        for at in MAGIC.len()..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(&path, &bytes).unwrap();
            let Some(part) = PartFile::open::<StoredBar>(&path).unwrap() else { continue };
            let read = part.chunks().iter().map(|chunk| part.read::<StoredBar>(chunk).unwrap());
            let damaged = read.filter(Option::is_none).count();
            assert_eq!(damaged, 1, "the bit at {at} is in the rows of one chunk");
        }
    }
}
