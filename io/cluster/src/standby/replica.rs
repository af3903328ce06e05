//! The follower's copy: applies replication messages to its own data folder, or to a staging folder
//! beside it. Nothing is synced before this server takes over or ends; then everything is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pitlane_engine::index::index_usize;
use pitlane_gateway::fix::store;
use pitlane_journal::disk::Disk;

use super::manifest::Misfit;
use super::message::{FilePiece, ReplicationKind};
use super::node::REPLICATED;
use super::scan::STORES;

/// Maximum number of open files: the segments that grow, and some stores.
const OPEN_MAX: usize = 64;
/// Extension of a file whose last piece is missing.
pub(super) const PART: &str = "part";

#[derive(Debug)]
pub(super) struct Replica {
    data: PathBuf,
    open: BTreeMap<String, File>,
}

impl Replica {
    /// Creates a replica in this folder, which is empty or contains what was read before.
    pub(super) fn new(data: &Path) -> Replica {
        Replica { data: data.to_path_buf(), open: BTreeMap::new() }
    }

    pub(super) fn apply(&mut self, kind: &ReplicationKind) -> io::Result<()> {
        match kind {
            ReplicationKind::Lead { .. }
            | ReplicationKind::Release { .. }
            | ReplicationKind::Beat
            | ReplicationKind::Reserve { .. }
            | ReplicationKind::Complete => Ok(()),
            ReplicationKind::Append(piece) => {
                let file = self.file(&piece.path)?;
                // The file starts from its beginning. Otherwise it only grows, so the existing
                // bytes are right.
                if piece.offset == 0 {
                    file.set_len(0)?;
                }
                file.write_all_at(&piece.bytes, piece.offset)
            }
            ReplicationKind::Page(piece) => {
                let file = self.file(&piece.path)?;
                if file.metadata()?.len() != piece.total {
                    file.set_len(piece.total)?;
                }
                file.write_all_at(&piece.bytes, piece.offset)
            }
            ReplicationKind::Whole(piece) => self.replace(piece),
            ReplicationKind::Removed(path) => {
                self.open.remove(path);
                match fs::remove_file(self.data.join(path)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                    _ => Ok(()),
                }
            }
        }
    }

    fn replace(&mut self, piece: &FilePiece) -> io::Result<()> {
        let part = format!("{}.{PART}", piece.path);
        let file = self.file(&part)?;
        if piece.offset == 0 {
            file.set_len(0)?;
        }
        file.write_all_at(&piece.bytes, piece.offset)?;
        if piece.end() == piece.total {
            self.open.remove(&part);
            let (from, to) = (self.data.join(&part), self.data.join(&piece.path));
            fs::rename(&from, &to)?;
        }
        Ok(())
    }

    fn file(&mut self, path: &str) -> io::Result<&File> {
        if self.open.len() >= OPEN_MAX && !self.open.contains_key(path) {
            self.open.clear();
        }
        let full = self.data.join(path);
        if !self.open.contains_key(path) {
            if let Some(folder) = full.parent() {
                DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            }
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&full)?;
            self.open.insert(path.to_string(), file);
        }
        Ok(self.open.get(path).expect("the file was just inserted"))
    }

    /// Returns the part of a piece that is not yet written, if `held` bytes of the file exist
    /// already. The inner error means that the bytes differ.
    pub(super) fn trim(
        &mut self,
        piece: &FilePiece,
        held: u64,
    ) -> io::Result<Result<Option<FilePiece>, Misfit>> {
        if held <= piece.offset {
            return Ok(Ok(Some(piece.clone())));
        }
        let same = index_usize(held.min(piece.end()) - piece.offset);
        let mut found = vec![0; same];
        self.file(&piece.path)?.read_exact_at(&mut found, piece.offset)?;
        if found[..] != piece.bytes[..same] {
            return Ok(Err(Misfit));
        }
        let rest = FilePiece {
            offset: piece.offset + same as u64,
            bytes: piece.bytes.slice(same..),
            ..piece.clone()
        };
        Ok(Ok((!rest.bytes.is_empty()).then_some(rest)))
    }
}

/// Turns a copy into the folder of a server that takes over, with everything on disk. Unless the
/// previous leader shut down in good order, the last messages of sessions may have been lost, as in
/// a loss of power.
pub(super) fn finish(data: &Path, in_good_order: bool) -> io::Result<()> {
    let boot = if in_good_order { Disk::Real.boot() } else { 0 };
    for path in files(data)? {
        if has_extension(&path, PART) {
            fs::remove_file(path)?;
        } else if has_extension(&path, store::ENDING) {
            store::set_boot(&path, boot)?;
        }
    }
    for folder in STORES.iter().filter(|_| !in_good_order) {
        let folder = data.join(folder);
        Disk::Real.make_folder(&folder)?;
        Disk::Real.put(&folder.join(store::TAKEN_OVER), &[])?;
    }
    sync(data)
}

/// Syncs all files of a copy.
pub(super) fn sync(data: &Path) -> io::Result<()> {
    let mut folders = BTreeSet::new();
    for path in files(data)? {
        File::open(&path)?.sync_all()?;
        // The names of the file and of all folders up to the data folder are synced too.
        let above = path.ancestors().skip(1).take_while(|folder| folder.starts_with(data));
        folders.extend(above.map(Path::to_path_buf));
    }
    folders.iter().try_for_each(|folder| File::open(folder)?.sync_all())
}

/// Returns all files of a copy.
pub(super) fn files(data: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut folders, mut files): (Vec<PathBuf>, _) =
        (REPLICATED.iter().map(|name| data.join(name)).collect(), Vec::new());
    while let Some(folder) = folders.pop() {
        for name in Disk::Real.list(&folder)? {
            let path = folder.join(name);
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    Ok(files)
}

fn has_extension(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|found| found == ending)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn open_files_are_bounded_and_one_more_file_is_still_written() {
        let data = std::env::temp_dir().join(format!("pitlane-replica-{}", std::process::id()));
        let mut replica = Replica::new(&data);
        let path = |n: usize| format!("venue/{n}");
        let append = |replica: &mut Replica, n: usize, offset: u64| {
            let bytes = Bytes::from(format!("{n:03}"));
            let piece = FilePiece { path: path(n), offset, total: offset + 3, bytes };
            replica.apply(&ReplicationKind::Append(piece)).unwrap();
        };
        (0..OPEN_MAX).for_each(|n| append(&mut replica, n, 0));
        assert_eq!(replica.open.len(), OPEN_MAX);
        // The others are closed, and opened again when they grow.
        append(&mut replica, OPEN_MAX, 0);
        assert!(replica.open.len() <= OPEN_MAX);
        (0..=OPEN_MAX).for_each(|n| append(&mut replica, n, 3));
        assert!(replica.open.len() <= OPEN_MAX);
        finish(&data, true).unwrap();
        for n in 0..=OPEN_MAX {
            assert_eq!(fs::read_to_string(data.join(path(n))).unwrap(), format!("{n:03}{n:03}"));
        }
        fs::remove_dir_all(data).unwrap();
    }

    #[test]
    fn only_the_missing_part_of_a_piece_is_written() {
        let data = std::env::temp_dir().join(format!("pitlane-trim-{}", std::process::id()));
        let mut replica = Replica::new(&data);
        let piece = |offset: u64, text: &'static str| FilePiece {
            path: "venue/a".to_string(),
            offset,
            total: offset + text.len() as u64,
            bytes: Bytes::from_static(text.as_bytes()),
        };
        replica.apply(&ReplicationKind::Append(piece(0, "abcdef"))).unwrap();
        let mut trim = |offset, text| replica.trim(&piece(offset, text), 6).unwrap();
        assert_eq!(trim(0, "abc"), Ok(None));
        assert_eq!(trim(3, "def"), Ok(None));
        assert_eq!(trim(3, "defg"), Ok(Some(piece(6, "g"))));
        assert_eq!(trim(6, "g"), Ok(Some(piece(6, "g"))));
        assert_eq!(trim(3, "dxf"), Err(Misfit));
        fs::remove_dir_all(data).unwrap();
    }
}
