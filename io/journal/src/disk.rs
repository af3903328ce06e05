//! The disk as the journal uses it: either the real one, or one in memory that loses unsynced data,
//! tears writes, fails and runs full when a test asks for it. All file operations of the journal go
//! through this module.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::thread;

use pitlane_runtime::fault_injection;
use pitlane_sys::map::MappedFile;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::simulated_disk::{Simulated, SimulatedFile};

/// Unit of mapping and of segment size, in bytes.
pub const PAGE_BYTES: usize = 4_096;
/// Bytes of a new file whose pages are touched before the thread gives way to others on its core:
/// some 0.3 ms of work.
const POPULATED_BYTES: usize = 1 << 20;
/// Mode of files: trading data is readable only by the user that runs the service, wherever the
/// folder is.
const PRIVATE: u32 = 0o600;

#[derive(Clone, Debug)]
pub enum Disk {
    Real,
    Simulated(Simulated),
}

impl Disk {
    /// Creates a file of `bytes` zeroes, with disk space reserved for all of them, and maps it.
    /// Fails if the file exists. When this returns, the name is on disk; if `synced` is set, so are
    /// the zeroes, and a later sync has no metadata to write. Touches every page once, so that
    /// later writes do not fault.
    pub fn create(&self, path: &Path, bytes: usize, synced: bool) -> io::Result<(File, Region)> {
        assert!(bytes > 0 && bytes.is_multiple_of(PAGE_BYTES), "a segment is some whole pages");
        let made = match self {
            Disk::Real => self.create_real(path, bytes),
            Disk::Simulated(disk) => self.create_simulated(disk, path, bytes),
        };
        let made =
            made.and_then(
                |(file, region)| {
                    if synced { file.sync().map(|()| (file, region)) } else { Ok((file, region)) }
                },
            );
        // A partial file is removed, so that it does not block the next attempt.
        made.inspect_err(|_| drop(self.remove(path)))
    }

    fn create_real(&self, path: &Path, bytes: usize) -> io::Result<(File, Region)> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(PRIVATE).open(path)?;
        reserve(&file, 0, bytes)?;
        // The folder is synced before the pages are touched: the sync may write pages back, and a
        // page that was written back faults again.
        self.sync_folder(folder_of(path))?;
        let mut mapped = MappedFile::new(&file, bytes)?;
        for from in (0..bytes).step_by(POPULATED_BYTES) {
            mapped.populate(from..bytes.min(from + POPULATED_BYTES));
            thread::yield_now();
        }
        Ok((File::Real(file), Region(RegionMemory::Mapped(mapped))))
    }

    fn create_simulated(&self, disk: &Simulated, path: &Path, bytes: usize) -> io::Result<(File, Region)> {
        let file = disk.create(path, vec![0; bytes])?;
        self.sync_folder(folder_of(path))?;
        Ok((File::Simulated(file.clone()), Region(RegionMemory::Simulated(file, bytes))))
    }

    /// Creates or replaces a small file. After a crash the old or the new version exists, complete.
    pub fn put(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let beside = path.with_extension("new");
        match self {
            Disk::Real => {
                let mut file =
                    OpenOptions::new().write(true).create(true).truncate(true).mode(PRIVATE).open(&beside)?;
                file.write_all(bytes)?;
                file.sync_all()?;
                fs::rename(&beside, path)?;
            }
            Disk::Simulated(disk) => {
                if disk.exists(&beside) {
                    disk.remove(&beside)?;
                }
                disk.create(&beside, bytes.to_vec())?.sync()?;
                disk.rename(&beside, path)?;
            }
        }
        self.sync_folder(folder_of(path))
    }

    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self {
            Disk::Real => fs::read(path),
            Disk::Simulated(disk) => disk.read(path),
        }
    }

    /// Returns the first bytes of a file, fewer if the file is shorter.
    pub fn read_head(&self, path: &Path, bytes: usize) -> io::Result<Vec<u8>> {
        match self {
            Disk::Real => {
                let mut head = Vec::new();
                io::Read::read_to_end(&mut io::Read::take(fs::File::open(path)?, bytes as u64), &mut head)?;
                Ok(head)
            }
            Disk::Simulated(disk) => {
                let mut head = disk.read(path)?;
                head.truncate(bytes);
                Ok(head)
            }
        }
    }

    /// Returns the size of a file in bytes.
    pub fn len(&self, path: &Path) -> io::Result<u64> {
        match self {
            Disk::Real => Ok(fs::metadata(path)?.len()),
            Disk::Simulated(disk) => Ok(disk.read(path)?.len() as u64),
        }
    }

    /// Returns the sorted names of the files in a folder; none if the folder does not exist.
    pub fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let mut names = match self {
            Disk::Real => match fs::read_dir(folder) {
                Ok(entries) => entries
                    .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
                    .collect::<io::Result<Vec<String>>>()?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
                Err(error) => return Err(error),
            },
            Disk::Simulated(disk) => disk.list(folder),
        };
        names.sort();
        Ok(names)
    }

    pub fn exists(&self, path: &Path) -> bool {
        match self {
            Disk::Real => path.exists(),
            Disk::Simulated(disk) => disk.exists(path),
        }
    }

    /// Renames a file, replacing any existing target. The new name is on disk when this returns.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        match self {
            Disk::Real => fs::rename(from, to)?,
            Disk::Simulated(disk) => disk.rename(from, to)?,
        }
        self.sync_folder(folder_of(to))
    }

    pub fn remove(&self, path: &Path) -> io::Result<()> {
        match self {
            Disk::Real => fs::remove_file(path),
            Disk::Simulated(disk) => disk.remove(path),
        }
    }

    /// Syncs a file that another process or thread has written.
    pub fn sync_file(&self, path: &Path) -> io::Result<()> {
        match self {
            Disk::Real => fs::File::open(path)?.sync_all(),
            Disk::Simulated(disk) => disk.open(path)?.sync(),
        }
    }

    /// Creates the folder and its parents. Their names are on disk when this returns.
    pub fn make_folder(&self, folder: &Path) -> io::Result<()> {
        match self {
            Disk::Real => {
                if folder.is_dir() {
                    return Ok(());
                }
                if let Some(parent) = folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                    self.make_folder(parent)?;
                    fs::create_dir(folder).or_else(ignore_exists)?;
                    return self.sync_folder(parent);
                }
                fs::create_dir(folder).or_else(ignore_exists)
            }
            // Folders of the simulated disk exist as soon as a path names them.
            Disk::Simulated(_) => Ok(()),
        }
    }

    /// Syncs a folder: names created, changed and removed in it are on disk when this returns.
    pub fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        match self {
            Disk::Real => fs::File::open(folder)?.sync_all(),
            Disk::Simulated(disk) => disk.sync_folder(folder),
        }
    }

    /// Returns a number that changes with every boot of the machine. While it is the same,
    /// everything that was written is still there, synced or not. If it cannot be read, the result
    /// is random, which is the safe answer.
    pub fn boot(&self) -> u128 {
        match self {
            Disk::Real => uuid_in("/proc/sys/kernel/random/boot_id").unwrap_or_else(|| self.random()),
            Disk::Simulated(disk) => disk.boot(),
        }
    }

    /// Returns a number that was never used before.
    pub fn random(&self) -> u128 {
        match self {
            Disk::Real => uuid_in("/proc/sys/kernel/random/uuid").unwrap_or_else(random_of_std),
            Disk::Simulated(disk) => disk.random(),
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// Reserves disk space for a range of a file. A shorter file grows.
fn reserve(file: &fs::File, from: usize, to: usize) -> io::Result<()> {
    match rustix::fs::fallocate(file, FallocateFlags::empty(), from as u64, (to - from) as u64) {
        Ok(()) => Ok(()),
        // The file system cannot reserve space; writing zeroes has the same effect.
        Err(Errno::OPNOTSUPP) => {
            (from..to).step_by(PAGE_BYTES).try_for_each(|at| file.write_all_at(&[0; PAGE_BYTES], at as u64))
        }
        Err(error) => Err(error.into()),
    }
}

fn ignore_exists(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) }
}

fn uuid_in(path: &str) -> Option<u128> {
    let text = fs::read_to_string(path).ok()?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(&digits, 16).ok()
}

/// Returns a random number, from the random seeds of std's hash maps.
fn random_of_std() -> u128 {
    use std::hash::{BuildHasher, RandomState};
    let half = || RandomState::new().hash_one(0) as u128;
    half() << 64 | half()
}

/// A file created by [`Disk::create`], for all operations except writing through its [`Region`].
#[derive(Debug)]
pub enum File {
    Real(fs::File),
    Simulated(SimulatedFile),
}

impl File {
    /// Syncs all written data to disk. After an error it is unknown what is on disk, and this must
    /// not be called again.
    pub fn sync(&self) -> io::Result<()> {
        match self {
            File::Real(file) => fault_injection::before_sync().and_then(|()| file.sync_data()),
            File::Simulated(file) => file.sync(),
        }
    }

    /// Truncates the file to the bytes that were used. The file's region must not be in use any
    /// more.
    pub fn cut(&self, bytes: u64) -> io::Result<()> {
        match self {
            File::Real(file) => file.set_len(bytes),
            File::Simulated(file) => file.cut(bytes),
        }
    }
}

/// A mapped file. A write is a copy in memory, and the copied bytes outlive the process.
///
/// The mapped file was created by this process and is reserved to the last byte, and nothing
/// shortens it while it is mapped. That prevents the kernel from raising SIGBUS on access.
#[derive(Debug)]
pub struct Region(RegionMemory);

#[derive(Debug)]
enum RegionMemory {
    Mapped(MappedFile),
    Simulated(SimulatedFile, usize),
}

impl Region {
    /// Extends the file to `bytes`, a whole number of pages. The contents stay; the new bytes are
    /// zero, have disk space, and were touched once. If there is no space, nothing changes.
    pub fn grow(&mut self, file: &File, bytes: usize) -> io::Result<()> {
        let from = self.capacity();
        assert!(bytes > from && bytes.is_multiple_of(PAGE_BYTES), "a segment grows by whole pages");
        match (&mut self.0, file) {
            (RegionMemory::Mapped(mapped), File::Real(file)) => {
                let longer = reserve(file, from, bytes).and_then(|()| MappedFile::new(file, bytes));
                // Only the new end is removed again, and no mapping covers it.
                *mapped = longer.inspect_err(|_| drop(file.set_len(from as u64)))?;
                mapped.populate(from..bytes);
                Ok(())
            }
            (RegionMemory::Simulated(simulated, usable), _) => {
                simulated.extend(bytes)?;
                *usable = bytes;
                Ok(())
            }
            (RegionMemory::Mapped(_), File::Simulated(_)) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    pub fn capacity(&self) -> usize {
        match &self.0 {
            RegionMemory::Mapped(mapped) => mapped.len(),
            RegionMemory::Simulated(_, bytes) => *bytes,
        }
    }

    #[inline]
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        match &mut self.0 {
            RegionMemory::Mapped(mapped) => mapped.write(at, bytes),
            RegionMemory::Simulated(file, _) => file.write(at, bytes),
        }
    }

    /// Appends a copy of a range to `into`.
    pub fn read_into(&self, from: usize, to: usize, into: &mut Vec<u8>) {
        match &self.0 {
            RegionMemory::Mapped(mapped) => mapped.read_into(from..to, into),
            RegionMemory::Simulated(file, _) => into.extend_from_slice(&file.bytes()[from..to]),
        }
    }

    /// Returns a copy of a range.
    pub fn read(&self, from: usize, to: usize) -> Vec<u8> {
        let mut copy = Vec::new();
        self.read_into(from, to, &mut copy);
        copy
    }
}
