//! Finds changes in the data folder other than segments: small files that are replaced, snapshots,
//! and stores that change in place.
//!
//! The shipper looks for changed small files before it sends records: so everything that a record
//! depends on (numbers that were reserved, reference data) is in the stream before it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use pitlane_engine::index::index_usize;
use pitlane_gateway::fix::store;
use pitlane_journal::disk::{Disk, PAGE_BYTES};
use pitlane_journal::scan::segment_number;
use xxhash_rust::xxh3::xxh3_64;

use super::manifest::Manifest;
use super::message::{BYTES_MAX, FilePiece};

/// Folders of small files that are replaced as a whole.
pub(super) const SMALL: [&str; 2] = ["notes", "journal/refdata"];
pub(super) const IDENTITY: &str = "journal/identity";
/// Folders of stores that change in place.
pub(super) const STORES: [&str; 2] = ["fix", "venue"];
/// Extension of a snapshot's name.
const SNAPSHOT: &str = "snap";
/// Extensions of files that are not complete yet.
const UNFINISHED: [&str; 2] = ["new", "fresh"];
/// Bytes of stores examined at once: a millisecond or two. More stores than that take turns.
const EXAMINE_BYTES: u64 = 4 << 20;
/// A store whose first page, with its sequence numbers, is unchanged is examined as a whole only
/// once in this many rounds.
const ROUNDS_PER_WHOLE: u64 = 20;

#[derive(Debug)]
pub(super) struct Scan {
    data: PathBuf,
    /// Small files as they were when they were last found to be in the stream.
    seen: BTreeMap<String, FileStamp>,
    /// Stores that were not in the stream when their folder was last examined.
    new_stores: BTreeSet<String>,
    /// Stores still to be examined in this round.
    stores: VecDeque<String>,
    /// Number of rounds through all stores.
    pub rounds: u64,
    /// Snapshot that is being sent.
    sending: Option<Sending>,
    snapshots: VecDeque<String>,
}

/// Identifies a version of a file: a replaced file has another stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileStamp {
    inode: u64,
    modified: (i64, i64),
    bytes: u64,
}

#[derive(Debug)]
struct Sending {
    path: String,
    file: File,
    at: u64,
    total: u64,
}

impl Scan {
    pub(super) fn new(data: &Path) -> Scan {
        Scan {
            data: data.to_path_buf(),
            seen: BTreeMap::new(),
            new_stores: BTreeSet::new(),
            stores: VecDeque::new(),
            rounds: 0,
            sending: None,
            snapshots: VecDeque::new(),
        }
    }

    /// Returns the pages of a store that is not in the stream: of a session that has just been
    /// created.
    pub(super) fn next_new_store(&mut self, sent: &Manifest) -> io::Result<Option<Vec<FilePiece>>> {
        for folder in STORES {
            let Some(stamp) = found(FileStamp::of(&self.data.join(folder)))? else { continue };
            if self.seen.insert(folder.to_string(), stamp) == Some(stamp) {
                continue;
            }
            let stores = self.list_stores(folder)?.into_iter().filter(|path| !sent.has(path));
            self.new_stores.extend(stores);
        }
        while let Some(path) = self.new_stores.pop_first() {
            let pages = self.pages_of(&path, sent)?;
            if !pages.is_empty() {
                return Ok(Some(pages));
            }
        }
        Ok(None)
    }

    /// Returns a small file that is not in the stream in its current version, in pieces.
    pub(super) fn next_small(&mut self, sent: &Manifest) -> io::Result<Option<Vec<FilePiece>>> {
        for folder in SMALL {
            for name in Disk::Real.list(&self.data.join(folder))? {
                if let Some(pieces) = self.read_if_changed(&format!("{folder}/{name}"), sent)? {
                    return Ok(Some(pieces));
                }
            }
        }
        for folder in STORES {
            if let Some(pieces) = self.read_if_changed(&format!("{folder}/{}", store::TAKEN_OVER), sent)? {
                return Ok(Some(pieces));
            }
        }
        self.read_if_changed(IDENTITY, sent)
    }

    fn read_if_changed(&mut self, path: &str, sent: &Manifest) -> io::Result<Option<Vec<FilePiece>>> {
        let full = self.data.join(path);
        if is_unfinished(&full) {
            return Ok(None);
        }
        let Some(stamp) = found(FileStamp::of(&full))? else { return Ok(None) };
        if self.seen.get(path) == Some(&stamp) {
            return Ok(None);
        }
        let Some(bytes) = found(fs::read(&full))? else { return Ok(None) };
        let is_sent = sent.holds(path, xxh3_64(&bytes));
        self.seen.insert(path.to_string(), stamp);
        Ok((!is_sent).then(|| in_pieces(path, &bytes.into())))
    }

    /// Looks for snapshots that are not in the stream.
    pub(super) fn find_snapshots(&mut self, shards: usize, sent: &Manifest) -> io::Result<()> {
        for shard in 0..shards {
            let folder = format!("journal/shard-{shard:02}");
            for name in Disk::Real.list(&self.data.join(&folder))? {
                let path = format!("{folder}/{name}");
                let is_sent = sent.holds_any(&path) || self.snapshots.contains(&path);
                let is_here = self.sending.as_ref().is_some_and(|sending| sending.path == path);
                if has_extension(Path::new(&name), SNAPSHOT) && !is_sent && !is_here {
                    self.snapshots.push_back(path);
                }
            }
        }
        Ok(())
    }

    /// Returns a piece of a snapshot, if one is to be sent.
    pub(super) fn next_of_snapshot(&mut self) -> io::Result<Option<FilePiece>> {
        while self.sending.is_none() {
            let Some(path) = self.snapshots.pop_front() else { return Ok(None) };
            let Some(file) = found(File::open(self.data.join(&path)))? else { continue };
            let total = file.metadata()?.len();
            self.sending = Some(Sending { path, file, at: 0, total });
        }
        let Some(sending) = &mut self.sending else { return Ok(None) };
        let mut bytes = vec![0; BYTES_MAX.min(index_usize(sending.total - sending.at))];
        sending.file.read_exact_at(&mut bytes, sending.at)?;
        let (path, offset, total) = (sending.path.clone(), sending.at, sending.total);
        sending.at += bytes.len() as u64;
        if sending.at == total {
            self.sending = None;
        }
        Ok(Some(FilePiece { path, offset, total, bytes: bytes.into() }))
    }

    pub(super) fn has_snapshots(&self) -> bool {
        self.sending.is_some() || !self.snapshots.is_empty()
    }

    /// Returns whether the stream lacks a snapshot that a copy of a shard needs. A copy needs none
    /// if the journal is whole, or if the stream has an older snapshot of the folder: segments are
    /// kept from the oldest snapshot on.
    pub(super) fn needs_snapshots(&self, shards: usize, sent: &Manifest) -> io::Result<bool> {
        for shard in 0..shards {
            let folder = format!("journal/shard-{shard:02}");
            let names = Disk::Real.list(&self.data.join(&folder))?;
            let is_whole = names.iter().filter_map(|name| segment_number(name)).min() == Some(1);
            let is_sent = |name: &String| {
                has_extension(Path::new(name), SNAPSHOT) && sent.holds_any(&format!("{folder}/{name}"))
            };
            if !is_whole && !names.iter().any(is_sent) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes the next round examine whole stores, even if little seems to have changed.
    pub(super) fn begin_whole_round(&mut self) {
        self.rounds = ROUNDS_PER_WHOLE - 1;
        self.stores.clear();
    }

    pub(super) fn is_whole_round_over(&self) -> bool {
        self.rounds > ROUNDS_PER_WHOLE
    }

    /// Returns changed pages of stores, for as many stores as may be examined at once. The first
    /// page of a store, with its sequence numbers, comes last.
    pub(super) fn changed_pages(&mut self, sent: &Manifest) -> io::Result<Vec<FilePiece>> {
        let mut pages = Vec::new();
        let mut examined = 0;
        while examined < EXAMINE_BYTES {
            let Some(path) = self.stores.pop_front() else {
                self.rounds += 1;
                for folder in STORES {
                    let stores = self.list_stores(folder)?;
                    self.stores.extend(stores);
                }
                break;
            };
            if !self.rounds.is_multiple_of(ROUNDS_PER_WHOLE) && self.is_first_page_sent(&path, sent)? {
                examined += PAGE_BYTES as u64;
                continue;
            }
            examined += fs::metadata(self.data.join(&path)).map_or(0, |metadata| metadata.len());
            pages.extend(self.pages_of(&path, sent)?);
        }
        Ok(pages)
    }

    /// Returns the changed pages of one store, its first page last.
    fn pages_of(&self, path: &str, sent: &Manifest) -> io::Result<Vec<FilePiece>> {
        let Some(bytes) = found(fs::read(self.data.join(path)))? else { return Ok(Vec::new()) };
        let bytes = Bytes::from(bytes);
        let total = bytes.len() as u64;
        let page = |at: usize| bytes.slice(at * PAGE_BYTES..((at + 1) * PAGE_BYTES).min(bytes.len()));
        let changed = (0..bytes.len().div_ceil(PAGE_BYTES))
            .rev()
            .filter(|&at| !sent.holds_page(path, total, at, &page(at)))
            .map(|at| FilePiece {
                path: path.to_string(),
                offset: (at * PAGE_BYTES) as u64,
                total,
                bytes: page(at),
            });
        Ok(changed.collect())
    }

    /// Returns whether the first page of a store is in the stream in its current version.
    fn is_first_page_sent(&self, path: &str, sent: &Manifest) -> io::Result<bool> {
        let Some(file) = found(File::open(self.data.join(path)))? else { return Ok(true) };
        let mut page = [0; PAGE_BYTES];
        file.read_exact_at(&mut page, 0)?;
        Ok(sent.holds_page(path, file.metadata()?.len(), 0, &page))
    }

    fn list_stores(&self, folder: &str) -> io::Result<Vec<String>> {
        let names = Disk::Real.list(&self.data.join(folder))?;
        let stores = names.iter().filter(|name| has_extension(Path::new(name), store::ENDING));
        Ok(stores.map(|name| format!("{folder}/{name}")).collect())
    }

    /// Returns a file that the stream contains and that no longer exists.
    pub(super) fn next_removed<'a>(&self, sent: &'a Manifest) -> Option<&'a str> {
        sent.paths().find(|path| !self.data.join(path).exists())
    }
}

impl FileStamp {
    fn of(path: &Path) -> io::Result<FileStamp> {
        let metadata = fs::metadata(path)?;
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        Ok(FileStamp { inode: metadata.ino(), modified, bytes: metadata.len() })
    }
}

fn in_pieces(path: &str, bytes: &Bytes) -> Vec<FilePiece> {
    let total = bytes.len();
    let piece = |start: usize| FilePiece {
        path: path.to_string(),
        offset: start as u64,
        total: total as u64,
        bytes: bytes.slice(start..(start + BYTES_MAX).min(total)),
    };
    // An empty file is one piece too.
    (0..total.max(1)).step_by(BYTES_MAX).map(piece).collect()
}

/// Converts "not found" into `None`: the owner of the folder may remove files at any time.
fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_unfinished(path: &Path) -> bool {
    UNFINISHED.iter().any(|ending| has_extension(path, ending))
}

fn has_extension(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|found| found == ending)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_no_larger_than_fits_into_a_message() {
        for (bytes, pieces) in [
            (0, vec![0]),
            (BYTES_MAX, vec![BYTES_MAX]),
            (BYTES_MAX + 1, vec![BYTES_MAX, 1]),
            (3 * BYTES_MAX, vec![BYTES_MAX; 3]),
        ] {
            let cut = in_pieces("notes/a.note", &vec![7; bytes].into());
            assert_eq!(cut.iter().map(|piece| piece.bytes.len()).collect::<Vec<_>>(), pieces);
            assert!(cut.iter().all(|piece| piece.total == bytes as u64));
            assert_eq!(cut.last().map(FilePiece::end), Some(bytes as u64));
        }
    }
}
