//! A file mapped into memory: a write is a copy in memory, and the copied bytes outlive the
//! process.
//!
//! The memory is never exposed as a slice. Another process, or another handle of the file, can
//! change or shorten it at any time. With copies only, the worst result of a change is different
//! bytes, and that of shortening is a signal (SIGBUS) that ends the process.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::ptr::{self, NonNull};

use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mmap, msync, munmap};

use crate::span::Span;

/// Smallest page size, in bytes: with larger pages some are touched more than once.
const PAGE_BYTES: usize = 4_096;

/// How a mapped file will be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// From the beginning to the end: the system reads ahead.
    Sequential,
    /// At random positions: the system reads only what is requested.
    Random,
    /// All of it soon: the system starts to read now.
    Soon,
}

/// A file in memory, shared with the file: readable and writable, from its first byte on.
#[derive(Debug)]
pub struct MappedFile(Span);

impl MappedFile {
    /// Maps the first `bytes` bytes of a file that is open for reading and writing. Fails if
    /// `bytes` is zero or the file is shorter.
    pub fn new(file: &File, bytes: usize) -> io::Result<MappedFile> {
        let too_short = file.metadata()?.len() < bytes as u64;
        if bytes == 0 || too_short || isize::try_from(bytes).is_err() {
            let error = format!("a file cannot be mapped for {bytes} bytes that it does not have");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
        }
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: no address is requested, so the kernel chooses one where nothing is mapped.
        let start = unsafe { mmap(ptr::null_mut(), bytes, protection, MapFlags::SHARED, file, 0) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        // SAFETY: the mapping is new, so nothing refers to it; it can be read and written, and
        // stays until this value is dropped. Its length was checked above.
        Ok(MappedFile(unsafe { Span::new(start, bytes) }))
    }

    /// Returns the number of mapped bytes.
    #[expect(clippy::len_without_is_empty, reason = "an empty file is not mapped")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Copies bytes in. Panics if they do not fit.
    #[inline]
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        self.0.write(at, bytes);
    }

    /// Makes every page of a range present and writable, so that later writes do not fault. No byte
    /// changes. Panics if the range does not lie within the file.
    pub fn populate(&mut self, range: Range<usize>) {
        assert!(range.start <= range.end && range.end <= self.len(), "the range lies within the file");
        let first = range.start - range.start % PAGE_BYTES;
        let start = self.0.as_ptr().wrapping_add(first);
        // SAFETY: the range lies within this mapping (checked above), and this advice changes no
        // byte of it.
        let populated = unsafe { madvise(start.cast(), range.end - first, Advice::LinuxPopulateWrite) };
        if populated.is_err() {
            // Linux before 5.14.
            self.touch(first..range.end);
        }
    }

    fn touch(&mut self, range: Range<usize>) {
        let mut byte = Vec::with_capacity(1);
        for at in range.step_by(PAGE_BYTES) {
            byte.clear();
            self.0.read_into(at..at + 1, &mut byte);
            self.0.write(at, &byte);
        }
    }

    /// Appends a copy of a range. Panics if it does not lie within the file.
    #[inline]
    pub fn read_into(&self, range: Range<usize>, into: &mut Vec<u8>) {
        self.0.read_into(range, into);
    }

    /// Writes all changes to disk, and returns when they are there. It costs as much as
    /// [`File::sync_data`], which does the same and needs no mapping.
    pub fn sync(&self) -> io::Result<()> {
        // SAFETY: the range is exactly this mapping, and `msync` changes no byte of it.
        unsafe { msync(self.0.as_ptr().cast(), self.0.len(), MsyncFlags::SYNC) }?;
        Ok(())
    }

    /// Advises the system how the file will be read.
    pub fn advise(&self, access: Access) -> io::Result<()> {
        let advice = match access {
            Access::Sequential => Advice::Sequential,
            Access::Random => Advice::Random,
            Access::Soon => Advice::WillNeed,
        };
        // SAFETY: the range is exactly this mapping, and none of these advices changes a byte of
        // it.
        unsafe { madvise(self.0.as_ptr().cast(), self.0.len(), advice) }?;
        Ok(())
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: the range is exactly this mapping, and nothing refers to it: the span is private
        // and only copies. An error would mean that the range is not ours, which is impossible.
        _ = unsafe { munmap(self.0.as_ptr().cast(), self.0.len()) };
    }
}

// Miri does not map files.
#[cfg(all(test, not(miri)))]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::path::PathBuf;

    use super::*;

    const PAGE: usize = PAGE_BYTES;

    /// Creates a new file of `bytes` bytes, and returns it with its path.
    fn file(name: &str, bytes: u64) -> (File, PathBuf) {
        let path = std::env::temp_dir().join(format!("pitlane-sys-{}-{name}", std::process::id()));
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(true).open(&path);
        let file = file.expect("the folder for temporary files can be written");
        file.set_len(bytes).expect("a file can be made longer");
        (file, path)
    }

    #[test]
    fn written_bytes_are_in_the_file_and_outlive_the_mapping() {
        let (file, path) = file("kept", 2 * PAGE as u64);
        let mut map = MappedFile::new(&file, 2 * PAGE).expect("the file is long enough");
        map.write(PAGE - 2, b"over");
        map.populate(1..2 * PAGE);
        map.touch(0..2 * PAGE);
        let mut back = Vec::new();
        map.read_into(PAGE - 3..PAGE + 3, &mut back);
        assert_eq!((back.as_slice(), map.len()), (&b"\0over\0"[..], 2 * PAGE));
        map.sync().expect("a mapping of ours can be synced");
        for access in [Access::Sequential, Access::Random, Access::Soon] {
            map.advise(access).expect("advice is taken");
        }
        drop(map);
        let bytes = fs::read(&path).expect("the file is there");
        fs::remove_file(&path).expect("the file is ours");
        assert_eq!((bytes.len(), &bytes[PAGE - 2..PAGE + 2]), (2 * PAGE, &b"over"[..]));
    }

    #[test]
    fn a_mapping_can_move_to_another_thread() {
        let (file, path) = file("moved", PAGE as u64);
        let mut map = MappedFile::new(&file, PAGE).expect("the file is long enough");
        std::thread::spawn(move || map.write(0, b"there")).join().expect("the write fits");
        let bytes = fs::read(&path).expect("the file is there");
        fs::remove_file(&path).expect("the file is ours");
        assert_eq!(&bytes[..5], b"there");
    }

    #[test]
    fn a_file_is_not_mapped_beyond_its_end() {
        let (file, path) = file("short", PAGE as u64);
        fs::remove_file(&path).expect("the file is ours");
        for bytes in [0, PAGE + 1, usize::MAX] {
            let refused = MappedFile::new(&file, bytes).map(drop);
            assert_eq!(refused.map_err(|error| error.kind()), Err(io::ErrorKind::InvalidInput), "{bytes}");
        }
    }

    #[test]
    #[should_panic(expected = "the bytes lie within the span")]
    fn a_write_beyond_the_end_is_refused() {
        let (file, path) = file("beyond", PAGE as u64);
        fs::remove_file(&path).expect("the file is ours");
        MappedFile::new(&file, PAGE).expect("the file is long enough").write(PAGE - 1, b"ab");
    }
}
