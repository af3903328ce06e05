//! The follower's copy: what the parcels say, written into its own data folder. Nothing of it is asked for before this server takes over;
//! then all of it is put on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::parcel::{Piece, What};
use super::scan::STORES;
use crate::fix::store;
use crate::journal::disk::Disk;

/// Files held open: the segments that grow, and some stores.
const OPEN_MAX: usize = 64;
/// Beside a file of which the last piece is missing.
const PART: &str = "part";

#[derive(Debug)]
pub struct Replica {
    data: PathBuf,
    open: BTreeMap<String, File>,
    /// What was written and not yet synced.
    unsynced: BTreeSet<PathBuf>,
}

impl Replica {
    /// Into this folder, of which [`super::member::Member::clear`] has made room.
    pub fn new(data: &Path) -> Replica {
        Replica { data: data.to_path_buf(), open: BTreeMap::new(), unsynced: BTreeSet::new() }
    }

    pub fn apply(&mut self, what: &What) -> io::Result<()> {
        match what {
            What::Lead { .. } | What::Release { .. } | What::Beat | What::Complete => Ok(()),
            What::Append(piece) | What::Page(piece) => {
                let file = self.file(&piece.path)?;
                if file.metadata()?.len() != piece.total {
                    file.set_len(piece.total)?;
                }
                file.write_all_at(&piece.bytes, piece.offset)
            }
            What::Whole(piece) => self.renew(piece),
            What::Removed(path) => {
                self.open.remove(path);
                let path = self.data.join(path);
                self.unsynced.remove(&path);
                match fs::remove_file(path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                    _ => Ok(()),
                }
            }
        }
    }

    fn renew(&mut self, piece: &Piece) -> io::Result<()> {
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
            self.unsynced.remove(&from);
            self.unsynced.insert(to);
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
        self.unsynced.insert(full);
        Ok(self.open.get(path).expect("it was just put there"))
    }

    /// Puts all of it on disk, as the folder of a server that takes over. Unless the one before has ended in good order, what sessions sent
    /// last may have been lost on the way, as with the power.
    pub fn finish(mut self, in_good_order: bool) -> io::Result<()> {
        self.open.clear();
        let boot = if in_good_order { Disk::Real.boot() } else { 0 };
        let mut folders = BTreeSet::new();
        for path in &self.unsynced {
            if path.extension().is_some_and(|ending| ending == PART) {
                fs::remove_file(path)?;
                continue;
            }
            if path.extension().is_some_and(|ending| ending == store::ENDING) {
                store::set_boot(path, boot)?;
            }
            File::open(path)?.sync_all()?;
            // Of the file, and of all folders up to ours.
            let above = path.ancestors().skip(1).take_while(|folder| folder.starts_with(&self.data));
            folders.extend(above.map(Path::to_path_buf));
        }
        for folder in STORES.iter().filter(|_| !in_good_order) {
            let folder = self.data.join(folder);
            Disk::Real.make_folder(&folder)?;
            Disk::Real.put(&folder.join(store::TAKEN_OVER), &[])?;
        }
        folders.iter().try_for_each(|folder| File::open(folder)?.sync_all())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn so_many_files_are_held_open_and_one_more_is_written_as_well() {
        let data = std::env::temp_dir().join(format!("pitlane-replica-{}", std::process::id()));
        let mut replica = Replica::new(&data);
        let path = |n: usize| format!("venue/{n}");
        let append = |replica: &mut Replica, n: usize, offset: u64| {
            let bytes = Bytes::from(format!("{n:03}"));
            let piece = Piece { path: path(n), offset, total: offset + 3, bytes };
            replica.apply(&What::Append(piece)).unwrap();
        };
        (0..OPEN_MAX).for_each(|n| append(&mut replica, n, 0));
        assert_eq!(replica.open.len(), OPEN_MAX);
        // The others are closed, and opened again when they grow.
        append(&mut replica, OPEN_MAX, 0);
        assert!(replica.open.len() <= OPEN_MAX);
        (0..=OPEN_MAX).for_each(|n| append(&mut replica, n, 3));
        assert!(replica.open.len() <= OPEN_MAX);
        replica.finish(true).unwrap();
        for n in 0..=OPEN_MAX {
            assert_eq!(fs::read_to_string(data.join(path(n))).unwrap(), format!("{n:03}{n:03}"));
        }
        fs::remove_dir_all(data).unwrap();
    }
}
