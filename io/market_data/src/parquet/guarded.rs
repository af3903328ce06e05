//! Guards against files that may contain anything, with a third-party decoder: lengths that could
//! require too much memory are checked first, and a panic is reported as an error of the file.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use pitlane_runtime::log::fenced;

use super::PARQUET;

/// Longest metadata at a file's end in bytes: that of some hundred thousand row groups.
const FOOTER_BYTES_MAX: u32 = 64 << 20;
/// Maximum number of bytes read at once: a page as it is stored in the file, which usually has a
/// megabyte. Decompressed it has at most as many.
pub(super) const READ_BYTES_MAX: usize = 256 << 20;

/// A file, read in pieces of bounded length.
#[derive(Clone)]
pub(super) struct GuardedFile {
    file: Arc<File>,
    length: u64,
}

impl GuardedFile {
    pub(super) fn new(mut file: File) -> std::result::Result<GuardedFile, String> {
        let to_text = |error: std::io::Error| error.to_string();
        let length = file.metadata().map_err(to_text)?.len();
        let mut end = [0; 8];
        let cut = || "its end is missing, so it is no whole file of Parquet".to_string();
        file.seek(SeekFrom::End(-(end.len() as i64))).map_err(|_| cut())?;
        file.read_exact(&mut end).map_err(to_text)?;
        let [a, b, c, d, magic @ ..] = end;
        let footer = u32::from_le_bytes([a, b, c, d]);
        if magic != PARQUET {
            return Err(cut());
        }
        if footer > FOOTER_BYTES_MAX || footer as u64 + 12 > length {
            return Err(format!("the description at its end cannot have {footer} bytes"));
        }
        Ok(GuardedFile { file: Arc::new(file), length })
    }

    fn at(&self, start: u64) -> Result<File> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(start))?;
        Ok(file)
    }
}

impl Length for GuardedFile {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for GuardedFile {
    type T = BufReader<File>;

    fn get_read(&self, start: u64) -> Result<BufReader<File>> {
        Ok(BufReader::new(self.at(start)?))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let is_inside = start.checked_add(length as u64).is_some_and(|end| end <= self.length);
        if !is_inside || length > READ_BYTES_MAX {
            return Err(ParquetError::EOF(format!("there are no {length} bytes at {start}")));
        }
        let mut bytes = vec![0; length];
        self.at(start)?.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

/// Calls the decoder; returns its errors and panics as text.
pub(super) fn guarded<T>(call: impl FnOnce() -> Result<T>) -> std::result::Result<T, String> {
    let (mut call, mut answer) = (Some(call), None);
    fenced(&mut || answer = call.take().map(|call| call()))?;
    match answer {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("it was not read".to_string()),
    }
}
