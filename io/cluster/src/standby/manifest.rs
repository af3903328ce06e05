//! The manifest: what the stream contains of every file, derived from the replication messages
//! alone. The leader sends what differs from it.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::path::Path;

use pitlane_engine::index::index_usize;
use pitlane_gateway::fix::store;
use pitlane_journal::disk::{Disk, PAGE_BYTES};
use pitlane_journal::scan::segment_number;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::message::{FilePiece, ReplicationKind};
use super::overlap::{folder_of, number_of};
use super::replica::{PART, files};
use super::scan::STORES;

/// Number of removed files that the stream remembers: more than a follower can miss.
pub(super) const REMOVED_MAX: usize = 1_000;

#[derive(Clone, Debug, Default)]
pub(super) struct Manifest {
    files: BTreeMap<String, FileContent>,
    /// Removed files that the stream still records, oldest first.
    removed: VecDeque<String>,
    /// Whether the stream contains a whole folder.
    pub complete: bool,
}

/// What the stream contains of one file.
#[derive(Clone)]
enum FileContent {
    /// The file grows.
    Growing {
        bytes: u64,
        hash: Box<Xxh3>,
    },
    /// The file is being replaced; its last piece is still missing.
    Partial {
        bytes: u64,
        hash: Box<Xxh3>,
    },
    Whole {
        hash: u64,
    },
    /// Hashes of its pages, by number; zero if the page is all zeroes, or nothing arrived yet.
    Paged {
        total: u64,
        pages: Vec<u64>,
    },
}

impl std::fmt::Debug for FileContent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FileContent::Growing { bytes, .. } => write!(f, "Growing({bytes})"),
            FileContent::Partial { bytes, .. } => write!(f, "Partial({bytes})"),
            FileContent::Whole { hash } => write!(f, "Whole({hash:016x})"),
            FileContent::Paged { total, .. } => write!(f, "Paged({total})"),
        }
    }
}

/// A message does not fit behind those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Misfit;

impl Manifest {
    /// Applies a message; an error means that it does not fit behind those before it.
    pub(super) fn note(&mut self, kind: &ReplicationKind) -> Result<(), Misfit> {
        match kind {
            ReplicationKind::Lead { .. }
            | ReplicationKind::Release { .. }
            | ReplicationKind::Beat
            | ReplicationKind::Reserve { .. } => {}
            ReplicationKind::Complete => self.complete = true,
            ReplicationKind::Append(piece) => return self.append(piece),
            ReplicationKind::Whole(piece) => return self.replace(piece),
            ReplicationKind::Page(piece) => return self.replace_page(piece),
            ReplicationKind::Removed(path) => {
                self.files.remove(path);
                self.removed.push_back(path.clone());
            }
        }
        Ok(())
    }

    fn append(&mut self, piece: &FilePiece) -> Result<(), Misfit> {
        if piece.offset == 0 {
            let hash = Box::default();
            self.files.insert(piece.path.clone(), FileContent::Growing { bytes: 0, hash });
        }
        match self.files.get_mut(&piece.path) {
            Some(FileContent::Growing { bytes, hash }) if *bytes == piece.offset => {
                *bytes = piece.end();
                hash.update(&piece.bytes);
                Ok(())
            }
            _ => Err(Misfit),
        }
    }

    fn replace(&mut self, piece: &FilePiece) -> Result<(), Misfit> {
        if piece.offset == 0 {
            let hash = Box::default();
            self.files.insert(piece.path.clone(), FileContent::Partial { bytes: 0, hash });
        }
        let Some(content) = self.files.get_mut(&piece.path) else { return Err(Misfit) };
        let FileContent::Partial { bytes, hash } = content else { return Err(Misfit) };
        if *bytes != piece.offset {
            return Err(Misfit);
        }
        *bytes = piece.end();
        hash.update(&piece.bytes);
        if piece.end() == piece.total {
            *content = FileContent::Whole { hash: hash.digest() };
        }
        Ok(())
    }

    fn replace_page(&mut self, piece: &FilePiece) -> Result<(), Misfit> {
        let page = PAGE_BYTES as u64;
        let (at, count) = (index_usize(piece.offset / page), index_usize(piece.total.div_ceil(page)));
        if !piece.offset.is_multiple_of(page) || piece.bytes.len() > PAGE_BYTES || at >= count {
            return Err(Misfit);
        }
        let content = self.files.entry(piece.path.clone());
        let content = content.or_insert_with(|| FileContent::Paged { total: 0, pages: Vec::new() });
        if let FileContent::Paged { total, pages } = content {
            // A store grows as it is used; followers keep the pages they have. Pages beyond the end
            // of a shortened store are still in the stream, and are sent again if it grows.
            *total = piece.total;
            if pages.len() < count {
                pages.resize(count, 0);
            }
            pages[at] = page_hash(&piece.bytes);
            return Ok(());
        }
        Err(Misfit)
    }

    /// Returns the bytes that the stream contains of a file that grows.
    pub(super) fn grown(&self, path: &str) -> u64 {
        match self.files.get(path) {
            Some(FileContent::Growing { bytes, .. }) => *bytes,
            Some(FileContent::Partial { .. } | FileContent::Whole { .. } | FileContent::Paged { .. })
            | None => 0,
        }
    }

    /// Returns whether the stream contains the whole file with this hash.
    pub(super) fn holds(&self, path: &str, hash: u64) -> bool {
        matches!(self.files.get(path), Some(FileContent::Whole { hash: content }) if *content == hash)
    }

    /// Returns whether the stream contains anything of a file.
    pub(super) fn has(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Returns whether the stream contains all of a file that never changes.
    pub(super) fn holds_any(&self, path: &str) -> bool {
        matches!(self.files.get(path), Some(FileContent::Whole { .. }))
    }

    /// Returns whether the stream contains the current version of a page of a file of `total`
    /// bytes. It is false for the first page of a file of another length, because that page carries
    /// the length.
    pub(super) fn holds_page(&self, path: &str, total: u64, at: usize, bytes: &[u8]) -> bool {
        match self.files.get(path) {
            Some(FileContent::Paged { total: content, .. }) if *content != total && at == 0 => false,
            Some(FileContent::Paged { pages, .. }) => pages.get(at).copied().unwrap_or(0) == page_hash(bytes),
            _ => page_hash(bytes) == 0,
        }
    }

    /// Returns a file whose removal is so old that the stream need not remember it any longer.
    pub(super) fn next_forgotten(&mut self) -> Option<String> {
        if self.removed.len() > REMOVED_MAX { self.removed.pop_front() } else { None }
    }

    /// Returns the files that grow, in the order of their names, with their bytes in the stream.
    pub(super) fn growing(&self) -> impl Iterator<Item = (&str, u64)> {
        self.files.iter().filter_map(|(path, content)| match content {
            FileContent::Growing { bytes, .. } => Some((path.as_str(), *bytes)),
            FileContent::Partial { .. } | FileContent::Whole { .. } | FileContent::Paged { .. } => None,
        })
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Creates the manifest of a copy from its files. An unfinished file is removed, and starts
    /// from its beginning.
    pub(super) fn of_copy(data: &Path, complete: bool) -> io::Result<Manifest> {
        let mut manifest = Manifest { complete, ..Manifest::default() };
        for file in files(data)? {
            let Some(path) = file.strip_prefix(data).ok().and_then(Path::to_str) else { continue };
            if file.extension().is_some_and(|ending| ending == PART) {
                fs::remove_file(&file)?;
                continue;
            }
            let bytes = fs::read(&file)?;
            let content = if number_of(path) > 0 {
                let mut hash: Box<Xxh3> = Box::default();
                hash.update(&bytes);
                FileContent::Growing { bytes: bytes.len() as u64, hash }
            } else if STORES.iter().any(|folder| folder_of(path) == *folder)
                && file.extension().is_some_and(|ending| ending == store::ENDING)
            {
                let pages = bytes.chunks(PAGE_BYTES).map(page_hash).collect();
                FileContent::Paged { total: bytes.len() as u64, pages }
            } else {
                FileContent::Whole { hash: xxh3_64(&bytes) }
            };
            manifest.files.insert(path.to_string(), content);
        }
        Ok(manifest)
    }

    /// Drops a file of which the stream lacks a part, so that it is sent from its beginning.
    pub(super) fn drop_file(&mut self, path: &str) {
        self.files.remove(path);
    }

    /// Drops growing files that differ in this folder, so that they are sent from their beginning:
    /// an operator has decided that this folder is authoritative.
    pub(super) fn drop_foreign(&mut self, folder: &Path) -> io::Result<()> {
        let mut foreign = Vec::new();
        for (path, content) in &self.files {
            let FileContent::Growing { bytes, hash } = content else { continue };
            match fs::read(folder.join(path)) {
                Ok(found)
                    if found
                        .get(..index_usize(*bytes))
                        .is_some_and(|same| xxh3_64(same) == hash.digest()) => {}
                Ok(_) => foreign.push(path.clone()),
                // The removal of the file is sent separately.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        foreign.iter().for_each(|path| _ = self.files.remove(path));
        Ok(())
    }

    /// Returns whether this folder contains the growing files as far as the stream has them: then
    /// it has every record of the stream.
    pub(super) fn is_within(&self, folder: &Path) -> io::Result<bool> {
        for (path, content) in &self.files {
            let FileContent::Growing { bytes, hash } = content else { continue };
            let found = match fs::read(folder.join(path)) {
                Ok(found) => found,
                // The segment was no longer needed, and the stream does not record its removal yet.
                // Then a later one exists.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let names = Disk::Real.list(&folder.join(folder_of(path)))?;
                    if names
                        .iter()
                        .filter_map(|name| segment_number(name))
                        .any(|number| number > number_of(path))
                    {
                        continue;
                    }
                    return Ok(false);
                }
                Err(error) => return Err(error),
            };
            let Some(same) = found.get(..index_usize(*bytes)) else { return Ok(false) };
            if xxh3_64(same) != hash.digest() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Returns the hash of a page; zero only if the page is all zeroes.
fn page_hash(bytes: &[u8]) -> u64 {
    if bytes.iter().all(|&byte| byte == 0) { 0 } else { xxh3_64(bytes).max(1) }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn piece(offset: u64, total: u64, bytes: &'static [u8]) -> FilePiece {
        FilePiece { path: "a/b".to_string(), offset, total, bytes: Bytes::from_static(bytes) }
    }

    #[test]
    fn a_growing_file_is_known_by_its_length() {
        let mut manifest = Manifest::default();
        assert_eq!(
            manifest.note(&ReplicationKind::Append(piece(3, 5, b"xx"))),
            Err(Misfit),
            "the beginning is missing"
        );
        manifest.note(&ReplicationKind::Append(piece(0, 3, b"abc"))).unwrap();
        manifest.note(&ReplicationKind::Append(piece(3, 5, b"de"))).unwrap();
        assert_eq!(manifest.grown("a/b"), 5);
        assert_eq!(
            manifest.note(&ReplicationKind::Append(piece(3, 5, b"de"))),
            Err(Misfit),
            "it was there already"
        );
        manifest.note(&ReplicationKind::Removed("a/b".to_string())).unwrap();
        assert_eq!(manifest.grown("a/b"), 0);
    }

    #[test]
    fn a_file_is_complete_with_its_last_piece() {
        let mut manifest = Manifest::default();
        manifest.note(&ReplicationKind::Whole(piece(0, 5, b"abc"))).unwrap();
        assert!(!manifest.holds_any("a/b"));
        manifest.note(&ReplicationKind::Whole(piece(3, 5, b"de"))).unwrap();
        assert!(manifest.holds("a/b", xxh3_64(b"abcde")));
        manifest.note(&ReplicationKind::Whole(piece(0, 1, b"x"))).unwrap();
        assert!(manifest.holds("a/b", xxh3_64(b"x")));
    }

    #[test]
    fn a_page_is_known_by_its_hash() {
        let mut manifest = Manifest::default();
        let total = 3 * PAGE_BYTES as u64;
        assert!(manifest.holds_page("a/b", total, 1, &[0; 8]), "nothing is as good as zeroes");
        manifest.note(&ReplicationKind::Page(piece(PAGE_BYTES as u64, total, b"x"))).unwrap();
        assert!(manifest.holds_page("a/b", total, 1, b"x"));
        assert!(!manifest.holds_page("a/b", total, 2, b"x"));
        // The file has grown: existing pages stay valid, and the new length is sent with the first
        // page.
        assert!(manifest.holds_page("a/b", total + 1, 1, b"x"));
        assert!(!manifest.holds_page("a/b", total + 1, 0, &[0; 8]));
        manifest.note(&ReplicationKind::Page(piece(0, total + PAGE_BYTES as u64, b"y"))).unwrap();
        assert!(manifest.holds_page("a/b", total + PAGE_BYTES as u64, 1, b"x"));
        for wrong in [piece(1, total, b"x"), piece(total, total, b"")] {
            assert_eq!(manifest.note(&ReplicationKind::Page(wrong)), Err(Misfit));
        }
    }

    #[test]
    fn removed_files_are_remembered_up_to_the_bound_and_the_oldest_are_dropped() {
        let mut manifest = Manifest::default();
        let mut remove = |n: usize| {
            manifest.note(&ReplicationKind::Removed(format!("notes/{n}"))).unwrap();
            manifest.next_forgotten()
        };
        for n in 0..REMOVED_MAX {
            assert_eq!(remove(n), None);
        }
        assert_eq!(remove(REMOVED_MAX).as_deref(), Some("notes/0"));
        assert_eq!(manifest.removed.len(), REMOVED_MAX);
    }
}
