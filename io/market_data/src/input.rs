//! Bytes of a file from its beginning to its end, decompressed where necessary.
//!
//! ```text
//! file ─► counted ─► zstd, gzip or zip ─► bounded ─► reader of a format
//! ```
//!
//! Compression is recognised by the first bytes. A few bytes may stand for gigabytes, so the output
//! is bounded by the size of what was read.

mod zip;

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;

use self::zip::ZipMember;
use super::DataError;

/// Bytes at the beginning of a file by which its format is recognised.
pub(crate) const HEAD_BYTES: usize = 4_096;
/// Bytes of output that any compressed file may have.
const OUTPUT_FREE: u64 = 64 << 20;
/// Bytes of output beyond those, for each byte of the file. Ticks have a ratio of 4 to 20.
const OUTPUT_PER_BYTE_MAX: u64 = 256;

const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZIP: &[u8] = b"PK\x03\x04";

/// A source of bytes.
pub trait ByteSource: Read + Send + fmt::Debug {}
impl<T: Read + Send + fmt::Debug> ByteSource for T {}

/// Bytes of a file that were read, for the progress.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadCount(Arc<AtomicU64>);

impl ReadCount {
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// An open file.
pub(crate) struct InputFile {
    /// The first bytes, at most [`HEAD_BYTES`], decompressed.
    pub(crate) head: Vec<u8>,
    /// All bytes, from the first on, decompressed.
    pub(crate) bytes: Box<dyn ByteSource>,
    pub(crate) count: ReadCount,
}

impl InputFile {
    pub(crate) fn open(path: &Path) -> Result<InputFile, DataError> {
        let opened = File::open(path).and_then(InputFile::of);
        opened.map_err(|error| DataError::whole(path.display(), error))
    }

    fn of(mut file: File) -> io::Result<InputFile> {
        let magic = head_of(&mut file, ZSTD.len())?;
        file.rewind()?;
        let count = ReadCount::default();
        let file = BufReader::new(CountedFile { file, count: count.clone() });
        let bounded = |bytes: Box<dyn Read + Send>| BoundedOutput { bytes, count: count.clone(), written: 0 };
        let mut bytes: Box<dyn ByteSource> = match magic.as_slice() {
            ZSTD => Box::new(bounded(zstd_decoder(file)?)),
            magic if magic.starts_with(GZIP) => Box::new(bounded(Box::new(MultiGzDecoder::new(file)))),
            ZIP => Box::new(bounded(Box::new(ZipMember::new(file)?))),
            _ => Box::new(file),
        };
        let head = head_of(&mut bytes, HEAD_BYTES)?;
        Ok(InputFile { bytes: Box::new(Cursor::new(head.clone()).chain(bytes)), head, count })
    }
}

/// Reads so many bytes, or as many as there are.
fn head_of(from: &mut impl Read, len: usize) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    from.take(len as u64).read_to_end(&mut head)?;
    Ok(head)
}

#[cfg(feature = "parquet")]
fn zstd_decoder(file: BufReader<CountedFile>) -> io::Result<Box<dyn Read + Send>> {
    Ok(Box::new(zstd::Decoder::with_buffer(file)?))
}

#[cfg(not(feature = "parquet"))]
fn zstd_decoder(_: BufReader<CountedFile>) -> io::Result<Box<dyn Read + Send>> {
    Err(io::Error::other(
        "it is compressed with zstd, and the binary was built without the feature `parquet`, which \
         includes that: decompress it, or use a binary of `make install`",
    ))
}

#[derive(Debug)]
struct CountedFile {
    file: File,
    count: ReadCount,
}

impl Read for CountedFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into)?;
        self.count.0.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// The output of a decoder, bounded by its input.
struct BoundedOutput {
    bytes: Box<dyn Read + Send>,
    count: ReadCount,
    written: u64,
}

impl fmt::Debug for BoundedOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundedOutput").field("written", &self.written).finish_non_exhaustive()
    }
}

impl Read for BoundedOutput {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.bytes.read(into)?;
        self.written += read as u64;
        if self.written > OUTPUT_FREE + self.count.bytes().saturating_mul(OUTPUT_PER_BYTE_MAX) {
            let problem = format!("it expands to more than {OUTPUT_PER_BYTE_MAX} times its size");
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        Ok(read)
    }
}

/// Binary records, read one after the other without a copy.
#[derive(Debug)]
pub(crate) struct RecordStream {
    name: String,
    bytes: Box<dyn ByteSource>,
    block: Vec<u8>,
    from: usize,
    to: usize,
    /// Offset of the current record in the decompressed file.
    offset: u64,
}

/// Bytes read at once.
const BLOCK_BYTES: usize = 1 << 18;

impl RecordStream {
    pub(crate) fn new(name: String, bytes: Box<dyn ByteSource>) -> RecordStream {
        RecordStream { name, bytes, block: vec![0; BLOCK_BYTES], from: 0, to: 0, offset: 0 }
    }

    /// Returns the next `len` bytes; fewer at the end of the file.
    #[inline]
    pub(crate) fn peek(&mut self, len: usize) -> Result<&[u8], DataError> {
        if self.to - self.from < len {
            self.fill(len)?;
        }
        Ok(&self.block[self.from..self.to.min(self.from + len)])
    }

    /// Passes the bytes that were peeked at.
    #[inline]
    pub(crate) fn skip(&mut self, len: usize) {
        self.from += len;
        self.offset += len as u64;
    }

    /// Reads until there are `len` bytes. The buffer grows only with what is really there.
    fn fill(&mut self, len: usize) -> Result<(), DataError> {
        self.block.copy_within(self.from..self.to, 0);
        (self.from, self.to) = (0, self.to - self.from);
        while self.to < len {
            if self.to == self.block.len() {
                self.block.resize(self.to + BLOCK_BYTES, 0);
            }
            match self.bytes.read(&mut self.block[self.to..]) {
                Ok(0) => break,
                Ok(read) => self.to += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.fault(&error.to_string())),
            }
        }
        Ok(())
    }

    /// Returns an error of the current record.
    #[cold]
    pub(crate) fn fault(&self, problem: &str) -> DataError {
        let problem = format!("at byte {}: {problem}", self.offset);
        DataError { file: self.name.clone(), line: 0, problem }
    }
}

/// Returns the bytes at an offset of a record whose length was checked.
#[inline]
pub(crate) fn field<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    record.get(at..at + N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
}
