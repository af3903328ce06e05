//! The files of the log: `audit/000001.jsonl` and so on in the data folder. The chain continues
//! from one file to the next.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use pitlane_engine::index::index_usize;
use pitlane_runtime::fault_injection;
use rustix::fs::FallocateFlags;

use super::AuditError;
use super::chain::{ChainEnd, LINE_BYTES_MAX, Link};

/// Size in bytes at which the next file starts: some 50,000 acts.
pub(super) const FILE_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of files. Sixteen gigabytes of administrative acts are an attack or a broken
/// script; the log does not delete files to make space for them.
pub(super) const FILES_MAX: usize = 1_024;

/// Returns the log folder in the data folder.
pub(super) fn folder(data: &Path) -> PathBuf {
    data.join("audit")
}

/// Returns the existing files in order.
pub(super) fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if number_of(&path).is_some() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn number_of(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?.strip_suffix(".jsonl")?;
    (name.len() == 6 && name.bytes().all(|byte| byte.is_ascii_digit())).then(|| name.parse().ok())?
}

/// The file being written, and the end of the chain.
#[derive(Debug)]
pub(super) struct AuditFile {
    folder: PathBuf,
    path: PathBuf,
    file: File,
    bytes: u64,
    pub end: ChainEnd,
    /// Length in bytes of a torn last line that the open removed. Its act was never executed.
    pub dropped: u64,
}

impl AuditFile {
    /// Opens the newest file for appending, or creates the first. Fails if another process has it
    /// open.
    pub(super) fn open(data: &Path) -> Result<AuditFile, AuditError> {
        let folder = folder(data);
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |error| AuditError::Io(path, error)
        };
        fs::create_dir_all(&folder).map_err(failed(&folder))?;
        let all = files(&folder).map_err(failed(&folder))?;
        let Some(newest) = all.last() else { return AuditFile::begin(folder, 1, ChainEnd::default()) };
        let read = read(newest, before(&all)?)?;
        let mut file = OpenOptions::new().read(true).write(true).open(newest).map_err(failed(newest))?;
        lock(&file).map_err(failed(newest))?;
        let mut settle = || {
            file.set_len(read.sound_bytes)?;
            file.seek(SeekFrom::End(0))?;
            reserve(&file)
        };
        settle().map_err(failed(newest))?;
        let (bytes, dropped) = (read.sound_bytes, read.torn_bytes);
        Ok(AuditFile { folder, path: newest.clone(), file, bytes, end: read.end, dropped })
    }

    fn begin(folder: PathBuf, number: u64, end: ChainEnd) -> Result<AuditFile, AuditError> {
        let path = folder.join(format!("{number:06}.jsonl"));
        let make = || {
            let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
            lock(&file)?;
            reserve(&file)?;
            File::open(&folder)?.sync_all()?;
            Ok(file)
        };
        let file = make().map_err(|error| AuditError::Io(path.clone(), error))?;
        Ok(AuditFile { folder, path, file, bytes: 0, end, dropped: 0 })
    }

    /// Starts the next file if this one is full.
    pub(super) fn make_room(&mut self) -> Result<(), AuditError> {
        if self.bytes >= FILE_BYTES_MAX { self.rotate() } else { Ok(()) }
    }

    /// Writes lines that lead to this end, and syncs. After a failure this file must not be written
    /// again. Unless [`AuditFile::make_room`] is called first, the file may exceed its maximum
    /// size.
    pub(super) fn write(&mut self, lines: &str, end: ChainEnd) -> Result<(), AuditError> {
        let written = fault_injection::before_audit_write()
            .and_then(|()| self.file.write_all(lines.as_bytes()))
            .and_then(|()| self.file.sync_data());
        written.map_err(|error| AuditError::Io(self.path.clone(), error))?;
        self.bytes += lines.len() as u64;
        self.end = end;
        Ok(())
    }

    fn rotate(&mut self) -> Result<(), AuditError> {
        let all = files(&self.folder).map_err(|error| AuditError::Io(self.folder.clone(), error))?;
        if all.len() >= FILES_MAX {
            return Err(AuditError::Full(self.folder.clone()));
        }
        let number = number_of(&self.path).unwrap_or(0) + 1;
        *self = AuditFile::begin(self.folder.clone(), number, self.end)?;
        Ok(())
    }
}

fn lock(file: &File) -> io::Result<()> {
    file.try_lock().map_err(|_| io::Error::other("another process writes to it"))
}

/// Reserves the disk space of the whole file, so that a full disk does not block the administrative
/// acts that would repair it.
fn reserve(file: &File) -> io::Result<()> {
    match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, FILE_BYTES_MAX) {
        // A file system that cannot reserve space is used as it is, and so is one that is already
        // full.
        Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSPC) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The result of reading a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileContents {
    pub end: ChainEnd,
    pub lines: u64,
    pub sound_bytes: u64,
    /// Length of the incomplete text after the last complete line.
    pub torn_bytes: u64,
}

/// Returns the end of the chain before the newest file; `None` if that is the only one.
fn before(all: &[PathBuf]) -> Result<Option<ChainEnd>, AuditError> {
    let [.., previous, _newest] = all else { return Ok(None) };
    // The beginning of that file is left to `pitlane audit verify`, which reads all files.
    read(previous, None).map(|read| Some(read.end))
}

/// The location of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinePosition {
    At(Link),
    /// The log starts after this line.
    Before {
        first: u64,
    },
    /// The log ends before this line.
    Behind {
        last: u64,
    },
}

/// Searches for a line, in the newest file first.
pub(super) fn find(folder: &Path, line: u64) -> Result<LinePosition, AuditError> {
    let all = match files(folder) {
        Ok(all) => all,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(AuditError::Io(folder.to_path_buf(), error)),
    };
    let mut place = LinePosition::Behind { last: 0 };
    for path in all.iter().rev() {
        let (mut first, mut link, mut last) = (None, None, 0);
        read_with(path, None, &mut |end: ChainEnd| {
            first = first.or(Some(end.seq));
            link = link.or((end.seq == line).then_some(end.link));
            last = end.seq;
        })?;
        match (link, first) {
            (Some(link), _) => return Ok(LinePosition::At(link)),
            (None, Some(first)) if first > line => place = LinePosition::Before { first },
            // The line is neither in this file nor in a later one.
            (None, Some(_)) if place == (LinePosition::Behind { last: 0 }) => {
                return Ok(LinePosition::Behind { last });
            }
            (None, Some(_)) => return Ok(place),
            (None, None) => {}
        }
    }
    Ok(place)
}

/// Follows the chain through a file, starting at this end, or at the file's first line.
pub(super) fn read(path: &Path, from: Option<ChainEnd>) -> Result<FileContents, AuditError> {
    read_with(path, from, &mut |_| {})
}

/// Follows the chain as `read` does, and calls `visit` with the end after each line.
pub(super) fn read_with(
    path: &Path,
    from: Option<ChainEnd>,
    visit: &mut impl FnMut(ChainEnd),
) -> Result<FileContents, AuditError> {
    let failed = |error| AuditError::Io(path.to_path_buf(), error);
    let mut lines = BufReader::new(File::open(path).map_err(failed)?);
    let mut end = from;
    let mut read = FileContents { end: from.unwrap_or_default(), lines: 0, sound_bytes: 0, torn_bytes: 0 };
    let mut line = Vec::new();
    loop {
        line.clear();
        let bytes =
            lines.by_ref().take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line).map_err(failed)?;
        let broken = |why| AuditError::Broken(path.to_path_buf(), index_usize(read.lines) + 1, why);
        let Some(text) = line.strip_suffix(b"\n") else {
            if bytes == LINE_BYTES_MAX {
                return Err(broken("it is longer than any line"));
            }
            return Ok(FileContents { torn_bytes: bytes as u64, ..read });
        };
        let text = str::from_utf8(text).map_err(|_| broken("it is not text"))?;
        let next = match end {
            Some(end) => end.follow(text),
            // The first line of the log has no predecessor. Archived older files are for the reader
            // to know.
            None => ChainEnd::begin(text),
        };
        let next = next.map_err(broken)?;
        visit(next);
        end = Some(next);
        read.end = next;
        read.lines += 1;
        read.sound_bytes += bytes as u64;
    }
}
