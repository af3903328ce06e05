//! How far a shard's journal was sent: its segments read while they are written, record by record, up to what the writer says is there.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::manifest::Manifest;
use super::message::{BYTES_MAX, Piece};
use crate::journal::disk::Disk;
use crate::journal::header::{HEADER_BYTES, Header};
use crate::journal::record::{Found, HEAD_BYTES, PAYLOAD_BYTES_MAX, Record};
use crate::journal::scan::{segment_number, segment_path};

/// Bytes of a record, more or less: so many are looked at for each that is to be sent.
const RECORD_BYTES: u64 = 256;
/// The least that is looked at.
const LOOK_BYTES: u64 = 4 << 10;

#[derive(Debug)]
pub struct Cursor {
    folder: PathBuf,
    /// Of the folder within the data folder.
    name: String,
    current: Option<Segment>,
    buffer: Vec<u8>,
    /// The last record that was handed out, or is known to have been sent before.
    pub seq: u64,
}

#[derive(Debug)]
struct Segment {
    number: u64,
    file: File,
    salt: u32,
    /// Up to where it was handed out: the end of a record, or the very beginning.
    at: u64,
}

/// Some whole records.
#[derive(Debug)]
pub struct Portion {
    /// At most so many bytes each as fit into a parcel.
    pub pieces: Vec<Piece>,
    /// The last record of them.
    pub seq: u64,
}

impl Cursor {
    pub fn new(data: &Path, shard: usize) -> Cursor {
        let name = format!("journal/shard-{shard:02}");
        Cursor { folder: data.join(&name), name, current: None, buffer: Vec::new(), seq: 0 }
    }

    /// The next records that were not sent, up to number `limit`.
    pub fn next(&mut self, limit: u64, sent: &Manifest) -> io::Result<Option<Portion>> {
        while self.seq < limit {
            if let Some(found) = self.read(limit)? {
                return Ok(Some(found));
            }
            let Some((number, header)) = self.successor()? else { return Ok(None) };
            // The next one is begun when the last word was written into this one; which may have been just now.
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

    fn read(&mut self, limit: u64) -> io::Result<Option<Portion>> {
        let Some(segment) = &mut self.current else { return Ok(None) };
        let guess = (limit - self.seq).saturating_mul(RECORD_BYTES).clamp(LOOK_BYTES, BYTES_MAX as u64);
        let Some((bytes, seq)) = segment.read(limit, guess as usize, &mut self.buffer)? else {
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
            Piece { path: path.clone(), offset, total: offset + bytes.len() as u64, bytes }
        });
        Ok(Some(Portion { pieces: pieces.collect(), seq }))
    }

    /// The segment after the current one that something was written into.
    fn successor(&self) -> io::Result<Option<(u64, Header)>> {
        let after = self.current.as_ref().map_or(0, |segment| segment.number);
        for name in Disk::Real.list(&self.folder)? {
            let Some(number) = segment_number(&name).filter(|number| *number > after) else { continue };
            let head = match Disk::Real.read_head(&segment_path(&self.folder, number), HEADER_BYTES) {
                Ok(head) => head,
                // It is no longer needed: a snapshot was made of it.
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
    /// Whole records from where it was read to, with the header before the first; and the number of the last.
    fn read(&self, limit: u64, guess: usize, buffer: &mut Vec<u8>) -> io::Result<Option<(Bytes, u64)>> {
        for room in [guess, HEADER_BYTES + HEAD_BYTES + PAYLOAD_BYTES_MAX + 8] {
            buffer.resize(buffer.len().max(room), 0);
            let length = read_at(&self.file, &mut buffer[..room], self.at)?;
            let bytes = &buffer[..length];
            let mut end = if self.at == 0 { HEADER_BYTES } else { 0 };
            let mut last = None;
            while let Some(Found::Record { record, bytes: taken, .. }) =
                bytes.get(end..).map(|rest| Record::decode(self.salt, rest))
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
            // Nothing that fits: perhaps one that is longer.
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
