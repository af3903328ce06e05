//! The manifest: what the stream holds of every file. Whoever leads sends what differs from it; it comes from the parcels alone.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::path::Path;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::message::{Piece, What};
use super::overlap::{folder_of, number_of};
use super::replica::{PART, files};
use super::scan::STORES;
use crate::fix::store;
use crate::journal::disk::{Disk, PAGE_BYTES};
use crate::journal::scan::segment_number;

/// Removed files of which the stream says so: more than anybody misses who follows.
pub const REMOVED_MAX: usize = 1_000;

#[derive(Clone, Debug, Default)]
pub struct Manifest {
    files: BTreeMap<String, Held>,
    /// Files that were removed, the first one first, of which the stream still says so.
    removed: VecDeque<String>,
    /// Whether all of a folder is there.
    pub complete: bool,
}

/// What is there of one file.
#[derive(Clone)]
enum Held {
    /// It grows.
    Growing {
        bytes: u64,
        hash: Box<Xxh3>,
    },
    /// It is made anew; the last piece is not there yet.
    Partial {
        bytes: u64,
        hash: Box<Xxh3>,
    },
    Whole {
        hash: u64,
    },
    /// Hashes of its pages, by number; zero: all zeroes, or nothing came yet.
    Paged {
        total: u64,
        pages: Vec<u64>,
    },
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Held::Growing { bytes, .. } => write!(f, "Growing({bytes})"),
            Held::Partial { bytes, .. } => write!(f, "Partial({bytes})"),
            Held::Whole { hash } => write!(f, "Whole({hash:016x})"),
            Held::Paged { total, .. } => write!(f, "Paged({total})"),
        }
    }
}

/// Why a parcel does not fit behind those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misfit;

impl Manifest {
    /// Takes one more parcel in.
    pub fn note(&mut self, what: &What) -> Result<(), Misfit> {
        match what {
            What::Lead { .. } | What::Release { .. } | What::Beat | What::Reserve { .. } => {}
            What::Complete => self.complete = true,
            What::Append(piece) => return self.append(piece),
            What::Whole(piece) => return self.renew(piece),
            What::Page(piece) => return self.turn_page(piece),
            What::Removed(path) => {
                self.files.remove(path);
                self.removed.push_back(path.clone());
            }
        }
        Ok(())
    }

    fn append(&mut self, piece: &Piece) -> Result<(), Misfit> {
        if piece.offset == 0 {
            let hash = Box::default();
            self.files.insert(piece.path.clone(), Held::Growing { bytes: 0, hash });
        }
        match self.files.get_mut(&piece.path) {
            Some(Held::Growing { bytes, hash }) if *bytes == piece.offset => {
                *bytes = piece.end();
                hash.update(&piece.bytes);
                Ok(())
            }
            _ => Err(Misfit),
        }
    }

    fn renew(&mut self, piece: &Piece) -> Result<(), Misfit> {
        if piece.offset == 0 {
            let hash = Box::default();
            self.files.insert(piece.path.clone(), Held::Partial { bytes: 0, hash });
        }
        let Some(held) = self.files.get_mut(&piece.path) else { return Err(Misfit) };
        match held {
            Held::Partial { bytes, hash } if *bytes == piece.offset => {
                *bytes = piece.end();
                hash.update(&piece.bytes);
                if piece.end() == piece.total {
                    *held = Held::Whole { hash: hash.digest() };
                }
                Ok(())
            }
            _ => Err(Misfit),
        }
    }

    fn turn_page(&mut self, piece: &Piece) -> Result<(), Misfit> {
        let page = PAGE_BYTES as u64;
        let (at, count) = ((piece.offset / page) as usize, piece.total.div_ceil(page) as usize);
        if !piece.offset.is_multiple_of(page) || piece.bytes.len() > PAGE_BYTES || at >= count {
            return Err(Misfit);
        }
        let held = self.files.entry(piece.path.clone());
        let held = held.or_insert_with(|| Held::Paged { total: 0, pages: Vec::new() });
        if let Held::Paged { total, pages } = held {
            // A store grows as it is used; those who follow keep the pages they have. Pages beyond the end of one that was made shorter
            // are still in the stream, and are sent again should it grow.
            *total = piece.total;
            if pages.len() < count {
                pages.resize(count, 0);
            }
            pages[at] = page_hash(&piece.bytes);
            return Ok(());
        }
        Err(Misfit)
    }

    /// Bytes that are there of a file that grows.
    pub fn grown(&self, path: &str) -> u64 {
        match self.files.get(path) {
            Some(Held::Growing { bytes, .. }) => *bytes,
            Some(Held::Partial { .. } | Held::Whole { .. } | Held::Paged { .. }) | None => 0,
        }
    }

    /// Whether all of a file is there, and is this.
    pub fn holds(&self, path: &str, hash: u64) -> bool {
        matches!(self.files.get(path), Some(Held::Whole { hash: held }) if *held == hash)
    }

    /// Whether anything of a file is there.
    pub fn has(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Whether all of a file that never changes is there.
    pub fn holds_any(&self, path: &str) -> bool {
        matches!(self.files.get(path), Some(Held::Whole { .. }))
    }

    /// Whether a page of a file of so many bytes is there as it is. The first page of a file of another length is not: with it the length
    /// is told.
    pub fn holds_page(&self, path: &str, total: u64, at: usize, bytes: &[u8]) -> bool {
        match self.files.get(path) {
            Some(Held::Paged { total: held, .. }) if *held != total && at == 0 => false,
            Some(Held::Paged { pages, .. }) => pages.get(at).copied().unwrap_or(0) == page_hash(bytes),
            _ => page_hash(bytes) == 0,
        }
    }

    /// A file that was removed before so many others that the stream need not say so any longer.
    pub fn next_forgotten(&mut self) -> Option<String> {
        if self.removed.len() > REMOVED_MAX { self.removed.pop_front() } else { None }
    }

    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// What a copy holds, by its files. An unfinished one is begun anew.
    pub fn of_copy(data: &Path, complete: bool) -> io::Result<Manifest> {
        let mut manifest = Manifest { complete, ..Manifest::default() };
        for file in files(data)? {
            let Some(path) = file.strip_prefix(data).ok().and_then(Path::to_str) else { continue };
            if file.extension().is_some_and(|ending| ending == PART) {
                fs::remove_file(&file)?;
                continue;
            }
            let bytes = fs::read(&file)?;
            let held = if number_of(path) > 0 {
                let mut hash: Box<Xxh3> = Box::default();
                hash.update(&bytes);
                Held::Growing { bytes: bytes.len() as u64, hash }
            } else if STORES.iter().any(|folder| folder_of(path) == *folder)
                && file.extension().is_some_and(|ending| ending == store::ENDING)
            {
                let pages = bytes.chunks(PAGE_BYTES).map(page_hash).collect();
                Held::Paged { total: bytes.len() as u64, pages }
            } else {
                Held::Whole { hash: xxh3_64(&bytes) }
            };
            manifest.files.insert(path.to_string(), held);
        }
        Ok(manifest)
    }

    /// Forgets a file of which the stream lacks a part, so that it is sent from its beginning.
    pub fn drop_file(&mut self, path: &str) {
        self.files.remove(path);
    }

    /// Forgets files that grow and are others in this folder, so that they are sent from their beginning: an operator has decided that
    /// this folder counts.
    pub fn drop_foreign(&mut self, folder: &Path) -> io::Result<()> {
        let mut foreign = Vec::new();
        for (path, held) in &self.files {
            let Held::Growing { bytes, hash } = held else { continue };
            match fs::read(folder.join(path)) {
                Ok(found)
                    if found.get(..*bytes as usize).is_some_and(|same| xxh3_64(same) == hash.digest()) => {}
                Ok(_) => foreign.push(path.clone()),
                // That it is gone is told.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        foreign.iter().for_each(|path| _ = self.files.remove(path));
        Ok(())
    }

    /// Whether the files that grow are in this folder as far as the stream has them: then the folder knows all that the stream does.
    pub fn is_within(&self, folder: &Path) -> io::Result<bool> {
        for (path, held) in &self.files {
            let Held::Growing { bytes, hash } = held else { continue };
            let found = match fs::read(folder.join(path)) {
                Ok(found) => found,
                // It was no longer needed, and the stream has not heard of it yet. Then a later one is there.
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
            let Some(same) = found.get(..*bytes as usize) else { return Ok(false) };
            if xxh3_64(same) != hash.digest() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Of a page; zero only if all of it is.
fn page_hash(bytes: &[u8]) -> u64 {
    if bytes.iter().all(|&byte| byte == 0) { 0 } else { xxh3_64(bytes).max(1) }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn piece(offset: u64, total: u64, bytes: &'static [u8]) -> Piece {
        Piece { path: "a/b".to_string(), offset, total, bytes: Bytes::from_static(bytes) }
    }

    #[test]
    fn a_file_that_grows_is_known_by_its_length() {
        let mut manifest = Manifest::default();
        assert_eq!(manifest.note(&What::Append(piece(3, 5, b"xx"))), Err(Misfit), "the beginning is missing");
        manifest.note(&What::Append(piece(0, 3, b"abc"))).unwrap();
        manifest.note(&What::Append(piece(3, 5, b"de"))).unwrap();
        assert_eq!(manifest.grown("a/b"), 5);
        assert_eq!(manifest.note(&What::Append(piece(3, 5, b"de"))), Err(Misfit), "it was there already");
        manifest.note(&What::Removed("a/b".to_string())).unwrap();
        assert_eq!(manifest.grown("a/b"), 0);
    }

    #[test]
    fn a_file_is_there_with_its_last_piece() {
        let mut manifest = Manifest::default();
        manifest.note(&What::Whole(piece(0, 5, b"abc"))).unwrap();
        assert!(!manifest.holds_any("a/b"));
        manifest.note(&What::Whole(piece(3, 5, b"de"))).unwrap();
        assert!(manifest.holds("a/b", xxh3_64(b"abcde")));
        manifest.note(&What::Whole(piece(0, 1, b"x"))).unwrap();
        assert!(manifest.holds("a/b", xxh3_64(b"x")));
    }

    #[test]
    fn a_page_is_known_by_its_hash() {
        let mut manifest = Manifest::default();
        let total = 3 * PAGE_BYTES as u64;
        assert!(manifest.holds_page("a/b", total, 1, &[0; 8]), "nothing is as good as zeroes");
        manifest.note(&What::Page(piece(PAGE_BYTES as u64, total, b"x"))).unwrap();
        assert!(manifest.holds_page("a/b", total, 1, b"x"));
        assert!(!manifest.holds_page("a/b", total, 2, b"x"));
        // A file that has grown: what is there stays there, and its length is told with the first page.
        assert!(manifest.holds_page("a/b", total + 1, 1, b"x"));
        assert!(!manifest.holds_page("a/b", total + 1, 0, &[0; 8]));
        manifest.note(&What::Page(piece(0, total + PAGE_BYTES as u64, b"y"))).unwrap();
        assert!(manifest.holds_page("a/b", total + PAGE_BYTES as u64, 1, b"x"));
        for wrong in [piece(1, total, b"x"), piece(total, total, b"")] {
            assert_eq!(manifest.note(&What::Page(wrong)), Err(Misfit));
        }
    }

    #[test]
    fn so_many_removed_files_are_remembered_and_then_the_first_are_forgotten() {
        let mut manifest = Manifest::default();
        let mut remove = |n: usize| {
            manifest.note(&What::Removed(format!("notes/{n}"))).unwrap();
            manifest.next_forgotten()
        };
        for n in 0..REMOVED_MAX {
            assert_eq!(remove(n), None);
        }
        assert_eq!(remove(REMOVED_MAX).as_deref(), Some("notes/0"));
        assert_eq!(manifest.removed.len(), REMOVED_MAX);
    }
}
