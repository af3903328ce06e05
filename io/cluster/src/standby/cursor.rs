//! The position up to which a shard's journal was sent. Reads segments while they are written,
//! record by record, up to the last record that the writer has published.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use pitlane_engine::index::index_usize;
use pitlane_journal::disk::Disk;
use pitlane_journal::header::{HEADER_BYTES, Header};
use pitlane_journal::record::{DecodedRecord, HEAD_BYTES, JournalRecord, PAYLOAD_BYTES_MAX};
use pitlane_journal::scan::{segment_number, segment_path};

use super::manifest::Manifest;
use super::message::{BYTES_MAX, FilePiece};

/// Approximate bytes of a record: so many are read for each record to be sent.
const RECORD_BYTES: u64 = 256;
/// Minimum number of bytes to read.
const READ_BYTES_MIN: u64 = 4 << 10;

#[derive(Debug)]
pub(super) struct Cursor {
    folder: PathBuf,
    /// Name of the folder within the data folder.
    name: String,
    current: Option<Segment>,
    buffer: Vec<u8>,
    /// Last record that was returned, or is known to have been sent before.
    pub seq: u64,
}

#[derive(Debug)]
struct Segment {
    number: u64,
    file: File,
    salt: u32,
    /// Offset up to which the segment was returned: the end of a record, or zero.
    at: u64,
}

/// Some whole records.
#[derive(Debug)]
pub(super) struct RecordBatch {
    /// Pieces, each small enough for one message.
    pub pieces: Vec<FilePiece>,
    /// Last record of the portion.
    pub seq: u64,
}

impl Cursor {
    pub(super) fn new(data: &Path, shard: usize) -> Cursor {
        let name = format!("journal/shard-{shard:02}");
        Cursor { folder: data.join(&name), name, current: None, buffer: Vec::new(), seq: 0 }
    }

    /// Returns the next unsent records, up to number `limit`.
    pub(super) fn next(&mut self, limit: u64, sent: &Manifest) -> io::Result<Option<RecordBatch>> {
        while self.seq < limit {
            if let Some(found) = self.read(limit)? {
                return Ok(Some(found));
            }
            let Some((number, header)) = self.successor()? else { return Ok(None) };
            // The next segment is started after the last record of this one was written; that
            // record may have been written just now.
            if let Some(segment) = &self.current
                && header.after.number == segment.number
                && header.after.end > segment.at
            {
                return self.read(limit);
            }
            let path = segment_path(&self.folder, number);
            let at = sent.grown(&self.path(number));
            self.current =
                Some(Segment { number, file: File::open(&path)?, salt: header.owner.salt(number), at });
        }
        Ok(None)
    }

    fn path(&self, number: u64) -> String {
        let name = segment_path(Path::new(&self.name), number);
        name.to_str().expect("digits and letters").to_string()
    }

    fn read(&mut self, limit: u64) -> io::Result<Option<RecordBatch>> {
        let Some(segment) = &mut self.current else { return Ok(None) };
        let guess = (limit - self.seq).saturating_mul(RECORD_BYTES).clamp(READ_BYTES_MIN, BYTES_MAX as u64);
        let Some((bytes, seq)) = segment.read(limit, index_usize(guess), &mut self.buffer)? else {
            return Ok(None);
        };
        let (offset, number) = (segment.at, segment.number);
        segment.at += bytes.len() as u64;
        self.seq = seq;
        let path = self.path(number);
        let starts = (0..bytes.len()).step_by(BYTES_MAX);
        let pieces = starts.map(|start| {
            let bytes = bytes.slice(start..(start + BYTES_MAX).min(bytes.len()));
            let offset = offset + start as u64;
            FilePiece { path: path.clone(), offset, total: offset + bytes.len() as u64, bytes }
        });
        Ok(Some(RecordBatch { pieces: pieces.collect(), seq }))
    }

    /// Returns the next segment after the current one that has a header.
    fn successor(&self) -> io::Result<Option<(u64, Header)>> {
        let after = self.current.as_ref().map_or(0, |segment| segment.number);
        for name in Disk::Real.list(&self.folder)? {
            let Some(number) = segment_number(&name).filter(|number| *number > after) else { continue };
            let head = match Disk::Real.read_head(&segment_path(&self.folder, number), HEADER_BYTES) {
                Ok(head) => head,
                // The segment is no longer needed: a snapshot covers it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if let Ok((header, _)) = Header::decode(&head) {
                return Ok(Some((number, header)));
            }
        }
        Ok(None)
    }
}

impl Segment {
    /// Returns whole records from the current offset, with the header before the first; and the
    /// number of the last.
    fn read(&self, limit: u64, guess: usize, buffer: &mut Vec<u8>) -> io::Result<Option<(Bytes, u64)>> {
        for size in [guess, HEADER_BYTES + HEAD_BYTES + PAYLOAD_BYTES_MAX + 8] {
            buffer.resize(buffer.len().max(size), 0);
            let length = read_at(&self.file, &mut buffer[..size], self.at)?;
            let bytes = &buffer[..length];
            let mut end = if self.at == 0 { HEADER_BYTES } else { 0 };
            let mut last = None;
            while let Some(DecodedRecord::Record { record, bytes: taken, .. }) =
                bytes.get(end..).map(|rest| JournalRecord::decode(self.salt, rest))
            {
                if record.seq > limit {
                    break;
                }
                last = Some(record.seq);
                end += taken;
            }
            if let Some(seq) = last {
                return Ok(Some((Bytes::copy_from_slice(&bytes[..end]), seq)));
            }
            // No record fits: the next one may be longer than the buffer.
            let rest = bytes.get(end..).unwrap_or_default();
            let begun = rest.first_chunk::<4>().map_or(0, |length| u32::from_le_bytes(*length) as usize);
            if begun <= rest.len() {
                return Ok(None);
            }
        }
        Ok(None)
    }
}

/// Reads until the buffer is full or the file ends.
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], at + done as u64) {
            Ok(0) => break,
            Ok(more) => done += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
