//! A disk in memory, with a page cache in front of it and injected faults.
//!
//! ```text
//! write ─► cache ── sync ──► medium          kill:        the cache survives
//! name  ─► names ── sync of the folder ──►   power loss:  any sectors of unsynced data may survive
//! ```
//!
//! As on Linux, a failed sync leaves the cache clean: the same sync again succeeds and writes
//! nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pitlane_engine::index::index_usize;
use pitlane_engine::rng::Rng;

/// Smallest unit that a disk writes atomically.
const SECTOR_BYTES: usize = 512;

/// A handle to the disk; all clones share the same disk.
#[derive(Clone, Debug)]
pub struct Simulated {
    world: Arc<Mutex<SimulatedWorld>>,
}

#[derive(Clone, Debug)]
pub struct SimulatedFile {
    disk: Simulated,
    inode: usize,
}

#[derive(Clone, Debug)]
struct SimulatedWorld {
    inodes: Vec<Inode>,
    /// Names as a process sees them.
    names: BTreeMap<PathBuf, usize>,
    /// Names as they are on the medium.
    names_kept: BTreeMap<PathBuf, usize>,
    chance: Rng,
    boot: u128,
    /// Maximum total size of all files, in bytes.
    bytes_max: u64,
    /// Number of changes until the disk is copied.
    fuse: Option<u64>,
    wreck: Option<Box<SimulatedWorld>>,
    changes: u64,
    /// Number of syncs of files until one fails.
    failing: Option<u64>,
    syncs: u64,
}

#[derive(Clone, Debug, Default)]
struct Inode {
    cache: Vec<u8>,
    medium: Vec<u8>,
    /// Sectors written since the last sync.
    dirty: BTreeSet<usize>,
}

impl Simulated {
    pub fn new(seed: u64) -> Simulated {
        let mut chance = Rng::new(seed);
        let boot = random(&mut chance);
        Simulated::of(SimulatedWorld {
            inodes: Vec::new(),
            names: BTreeMap::new(),
            names_kept: BTreeMap::new(),
            chance,
            boot,
            bytes_max: u64::MAX,
            fuse: None,
            wreck: None,
            changes: 0,
            failing: None,
            syncs: 0,
        })
    }

    fn of(world: SimulatedWorld) -> Simulated {
        Simulated { world: Arc::new(Mutex::new(world)) }
    }

    /// Returns the disk as it is after a loss of power.
    pub fn power_loss(&self) -> Simulated {
        let mut world = self.world().clone();
        world.lose_power();
        Simulated::of(world)
    }

    /// Returns the disk as the next process finds it, with nothing lost. Writes through old handles
    /// do not reach the returned disk.
    pub fn kill(&self) -> Simulated {
        let mut world = self.world().clone();
        (world.fuse, world.wreck) = (None, None);
        Simulated::of(world)
    }

    /// Arms a copy of the disk: after `changes` changes, the disk is copied in the middle of the
    /// next one.
    pub fn light_fuse(&self, changes: u64) {
        self.world().fuse = Some(changes);
    }

    /// Returns whether the copy was made.
    pub fn is_wrecked(&self) -> bool {
        self.world().wreck.is_some()
    }

    /// Returns the copy, as the next process finds it.
    pub fn wreck(&self) -> Option<Simulated> {
        self.world().wreck.clone().map(|world| Simulated::of(*world))
    }

    /// Returns the number of changes so far: writes, syncs, files created, renamed and removed.
    pub fn changes(&self) -> u64 {
        self.world().changes
    }

    pub fn syncs(&self) -> u64 {
        self.world().syncs
    }

    /// Makes one sync of a file fail, after `after` successful ones.
    pub fn fail_sync(&self, after: u64) {
        self.world().failing = Some(after);
    }

    /// Sets the maximum total size of all files.
    pub fn set_bytes_max(&self, bytes: u64) {
        self.world().bytes_max = bytes;
    }

    pub fn bytes_used(&self) -> u64 {
        self.world().used()
    }

    /// Removes a file without the knowledge of the process.
    pub fn lose(&self, path: &Path) {
        let mut world = self.world();
        world.names.remove(path);
        world.names_kept.remove(path);
    }

    /// Changes bytes on the medium without the knowledge of the process.
    pub fn meddle(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let mut world = self.world();
        let inode = world.names[path];
        let inode = &mut world.inodes[inode];
        change(&mut inode.cache);
        inode.medium.clone_from(&inode.cache);
    }

    pub fn exists(&self, path: &Path) -> bool {
        self.world().names.contains_key(path)
    }

    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let world = self.world();
        let inode = world.names.get(path).ok_or_else(|| error(io::ErrorKind::NotFound, "no such file"))?;
        Ok(world.inodes[*inode].cache.clone())
    }

    /// Returns the paths of all files.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.world().names.keys().cloned().collect()
    }

    pub fn list(&self, folder: &Path) -> Vec<String> {
        let world = self.world();
        let inside = world.names.keys().filter(|path| path.parent() == Some(folder));
        inside.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect()
    }

    pub(super) fn create(&self, path: &Path, bytes: Vec<u8>) -> io::Result<SimulatedFile> {
        let mut world = self.world();
        world.tick();
        if world.names.contains_key(path) {
            return Err(error(io::ErrorKind::AlreadyExists, "the file exists"));
        }
        if world.used() + bytes.len() as u64 > world.bytes_max {
            return Err(io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error()));
        }
        let dirty = (0..bytes.len().div_ceil(SECTOR_BYTES)).collect();
        world.inodes.push(Inode { cache: bytes, medium: Vec::new(), dirty });
        let inode = world.inodes.len() - 1;
        world.names.insert(path.to_path_buf(), inode);
        Ok(SimulatedFile { disk: self.clone(), inode })
    }

    pub(super) fn open(&self, path: &Path) -> io::Result<SimulatedFile> {
        let world = self.world();
        let inode = world.names.get(path).ok_or_else(|| error(io::ErrorKind::NotFound, "no such file"))?;
        Ok(SimulatedFile { disk: self.clone(), inode: *inode })
    }

    pub(super) fn remove(&self, path: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.tick();
        let gone = world.names.remove(path);
        gone.map(|_| ()).ok_or_else(|| error(io::ErrorKind::NotFound, "no such file"))
    }

    pub(super) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.tick();
        let inode = world.names.remove(from).ok_or_else(|| error(io::ErrorKind::NotFound, "no such file"))?;
        world.names.insert(to.to_path_buf(), inode);
        Ok(())
    }

    pub(super) fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.tick();
        let SimulatedWorld { names, names_kept, .. } = &mut *world;
        names_kept.retain(|path, _| path.parent() != Some(folder));
        let inside = names.iter().filter(|(path, _)| path.parent() == Some(folder));
        names_kept.extend(inside.map(|(path, inode)| (path.clone(), *inode)));
        Ok(())
    }

    pub(super) fn boot(&self) -> u128 {
        self.world().boot
    }

    pub(super) fn random(&self) -> u128 {
        random(&mut self.world().chance)
    }

    fn world(&self) -> MutexGuard<'_, SimulatedWorld> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SimulatedFile {
    pub(super) fn write(&self, at: usize, bytes: &[u8]) {
        let mut world = self.disk.world();
        if world.fuse == Some(0) {
            // The process ends in the middle of the copy.
            let through = index_usize(world.chance.below(bytes.len() as u64 + 1));
            let mut wreck = world.clone();
            wreck.write(self.inode, at, &bytes[..through]);
            world.keep(wreck);
        }
        world.tick();
        world.write(self.inode, at, bytes);
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.disk.world().inodes[self.inode].cache.clone()
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        let mut world = self.disk.world();
        world.tick();
        world.syncs += 1;
        let fails = world.failing == Some(0);
        world.failing = world.failing.and_then(|left| left.checked_sub(1));
        let inode = &mut world.inodes[self.inode];
        let dirty = std::mem::take(&mut inode.dirty);
        if fails {
            return Err(io::Error::from_raw_os_error(rustix::io::Errno::IO.raw_os_error()));
        }
        inode.medium.resize(inode.cache.len(), 0);
        for sector in dirty {
            inode.keep_sector(sector);
        }
        Ok(())
    }

    pub(super) fn extend(&self, bytes: usize) -> io::Result<()> {
        let mut world = self.disk.world();
        world.tick();
        let more = (bytes - world.inodes[self.inode].cache.len()) as u64;
        if world.used() + more > world.bytes_max {
            return Err(io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error()));
        }
        world.inodes[self.inode].cache.resize(bytes, 0);
        Ok(())
    }

    pub(super) fn cut(&self, bytes: u64) -> io::Result<()> {
        let mut world = self.disk.world();
        world.tick();
        world.inodes[self.inode].cache.resize(index_usize(bytes), 0);
        Ok(())
    }
}

impl SimulatedWorld {
    /// Counts a change that is about to be made.
    fn tick(&mut self) {
        self.changes += 1;
        if self.fuse == Some(0) && self.wreck.is_none() {
            let wreck = self.clone();
            self.keep(wreck);
        }
        self.fuse = self.fuse.and_then(|left| left.checked_sub(1));
    }

    fn keep(&mut self, mut wreck: SimulatedWorld) {
        if self.wreck.is_none() {
            (wreck.fuse, wreck.wreck) = (None, None);
            self.wreck = Some(Box::new(wreck));
        }
    }

    fn write(&mut self, inode: usize, at: usize, bytes: &[u8]) {
        let inode = &mut self.inodes[inode];
        inode.cache[at..at + bytes.len()].copy_from_slice(bytes);
        if !bytes.is_empty() {
            inode.dirty.extend(at / SECTOR_BYTES..=(at + bytes.len() - 1) / SECTOR_BYTES);
        }
    }

    fn used(&self) -> u64 {
        self.names.values().map(|&inode| self.inodes[inode].cache.len() as u64).sum()
    }

    fn lose_power(&mut self) {
        // Disks write sectors; most file systems write pages of eight sectors.
        let run = if self.chance.below(2) == 0 { 1 } else { 8 };
        // The share that is already written varies from nothing to everything.
        let percent = self.chance.below(101);
        for inode in &mut self.inodes {
            let long = inode.cache.len();
            let kept = if self.chance.below(2) == 0 { long } else { inode.medium.len() };
            inode.medium.resize(long.max(inode.medium.len()), 0);
            let mut page = None;
            for sector in std::mem::take(&mut inode.dirty) {
                let (last, mut through) = page.unwrap_or((usize::MAX, false));
                if last != sector / run {
                    through = self.chance.below(100) < percent;
                    page = Some((sector / run, through));
                }
                if through {
                    inode.keep_sector(sector);
                }
            }
            inode.medium.truncate(kept);
            inode.cache.clone_from(&inode.medium);
        }
        let paths: BTreeSet<PathBuf> = self.names.keys().chain(self.names_kept.keys()).cloned().collect();
        for path in paths {
            let (now, kept) = (self.names.get(&path).copied(), self.names_kept.get(&path).copied());
            if now != kept && self.chance.below(100) < percent {
                match now {
                    Some(inode) => self.names_kept.insert(path, inode),
                    None => self.names_kept.remove(&path),
                };
            }
        }
        self.names.clone_from(&self.names_kept);
        self.boot = random(&mut self.chance);
        (self.fuse, self.wreck, self.failing) = (None, None, None);
    }
}

impl Inode {
    fn keep_sector(&mut self, sector: usize) {
        let from = sector * SECTOR_BYTES;
        let to = (from + SECTOR_BYTES).min(self.cache.len()).min(self.medium.len());
        if from < to {
            self.medium[from..to].copy_from_slice(&self.cache[from..to]);
        }
    }
}

fn random(chance: &mut Rng) -> u128 {
    (chance.next_u64() as u128) << 64 | chance.next_u64() as u128
}

fn error(kind: io::ErrorKind, text: &'static str) -> io::Error {
    io::Error::new(kind, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(disk: &Simulated) -> SimulatedFile {
        let file = disk.create(Path::new("f"), vec![0; 4_096]).unwrap();
        file.sync().unwrap();
        disk.sync_folder(Path::new("")).unwrap();
        file
    }

    #[test]
    fn synced_data_survives_and_the_rest_may_not() {
        let mut lost = 0;
        for seed in 0..100 {
            let disk = Simulated::new(seed);
            let file = file(&disk);
            file.write(0, &[1; 512]);
            file.sync().unwrap();
            file.write(512, &[2; 1_024]);
            assert_eq!(disk.kill().read(Path::new("f")).unwrap()[512..1_536], [2; 1_024]);
            let found = disk.power_loss().read(Path::new("f")).unwrap();
            assert_eq!(found[..512], [1; 512]);
            lost += usize::from(found[512] == 0) + usize::from(found[1_024] == 0);
        }
        assert!((20..180).contains(&lost), "{lost} of 200 sectors");
    }

    #[test]
    fn a_failed_sync_forgets_the_data_and_the_next_one_succeeds() {
        let disk = Simulated::new(1);
        let file = file(&disk);
        file.write(0, &[1; 512]);
        disk.fail_sync(0);
        assert!(file.sync().is_err());
        assert!(file.sync().is_ok());
        assert_eq!(disk.power_loss().read(Path::new("f")).unwrap()[..512], [0; 512]);
    }

    #[test]
    fn a_full_disk_accepts_no_file() {
        let disk = Simulated::new(1);
        let _file = file(&disk);
        disk.set_bytes_max(5_000);
        let full = disk.create(Path::new("g"), vec![0; 4_096]).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        disk.remove(Path::new("f")).unwrap();
        assert!(disk.create(Path::new("g"), vec![0; 4_096]).is_ok());
    }

    #[test]
    fn the_armed_copy_shows_the_disk_in_the_middle_of_a_write() {
        let disk = Simulated::new(3);
        let file = file(&disk);
        disk.light_fuse(1);
        file.write(0, &[1; 100]);
        assert!(!disk.is_wrecked());
        file.write(100, &[2; 100]);
        let found = disk.wreck().unwrap().read(Path::new("f")).unwrap();
        assert_eq!(found[..100], [1; 100]);
        assert!(found[100..200] != [2; 100]);
        assert_eq!(found[200], 0);
    }
}
