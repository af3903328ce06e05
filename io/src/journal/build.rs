//! Builds a snapshot in small steps, from the previous snapshot and the segments written since. It
//! does not touch the live shard: the state is the replay of the journal.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

use super::Folders;
use super::disk::Disk;
use super::fault::{Fault, What};
use super::header::{HEADER_BYTES, Header, Owner};
use super::record::{Found, Record};
use super::replay::Replay;
use super::scan::{Hear, Piece, segment_path};
use super::segments::{Archived, Kept};
use super::snapshot::{Snapshot, snapshot_path};

/// Records applied in one step, about one millisecond of work.
const RECORDS_PER_STEP: usize = 2_048;

#[derive(Debug)]
pub struct Build {
    disk: Disk,
    folder: PathBuf,
    replay: Replay,
    /// Segments still to be read.
    todo: VecDeque<Archived>,
    reading: Option<Reading>,
}

#[derive(Debug)]
struct Reading {
    piece: Piece,
    salt: u32,
    bytes: Vec<u8>,
    at: usize,
    /// Last record to apply.
    last: u64,
}

impl Build {
    /// Starts with the newest snapshot and the segments after it.
    pub fn new(
        disk: &Disk,
        folders: &Folders,
        owner: Owner,
        archive: &VecDeque<Archived>,
        snapshots: &VecDeque<Kept>,
    ) -> io::Result<Build> {
        let (folder, references) = (folders.shard(owner.shard), folders.references());
        let replay = match snapshots.back() {
            Some(kept) => Snapshot::read(disk, &folder, kept.seq, &owner)
                .and_then(|snapshot| Replay::from_snapshot(disk, &references, &folder, &snapshot))
                .map_err(into_io)?,
            None => Replay::new(disk, &references, owner),
        };
        let new = archive.iter().filter(|segment| segment.last > replay.seq());
        let todo = new.copied().collect();
        Ok(Build { disk: disk.clone(), folder, replay, todo, reading: None })
    }

    /// Does one step of work. When everything is read, writes the snapshot and returns it with its
    /// size in bytes.
    pub fn step(&mut self) -> io::Result<Option<(Kept, u64)>> {
        if let Some(reading) = &mut self.reading {
            if reading.step(&mut self.replay).map_err(into_io)? {
                self.reading = None;
            }
            return Ok(None);
        }
        if let Some(segment) = self.todo.pop_front() {
            let reading = self.open(segment).map_err(into_io)?;
            self.replay.segment(&reading.piece).map_err(into_io)?;
            self.reading = Some(reading);
            return Ok(None);
        }
        let snapshot = self.replay.snapshot().ok_or(io::ErrorKind::InvalidData)?;
        let bytes = snapshot.encode();
        self.disk.put(&snapshot_path(&self.folder, snapshot.seq), &bytes)?;
        let kept = Kept { seq: snapshot.seq, reference: snapshot.reference };
        Ok(Some((kept, bytes.len() as u64)))
    }

    fn open(&self, segment: Archived) -> Result<Reading, Fault> {
        let path = segment_path(&self.folder, segment.number);
        let bytes = self.disk.read(&path).map_err(Fault::io(&path))?;
        let Ok((header, header_sum)) = Header::decode(&bytes) else {
            return Err(Fault::new(&path, 0, What::HeaderDamaged));
        };
        let salt = header.owner.salt(segment.number);
        let piece = Piece { path, header, header_sum, next: None, bytes: bytes.len() as u64 };
        Ok(Reading { piece, salt, bytes, at: HEADER_BYTES, last: segment.last })
    }
}

impl Reading {
    /// Applies some records; returns true at the end of the segment. The segment is complete and
    /// was synced, so anything that is not a record is damage.
    fn step(&mut self, replay: &mut Replay) -> Result<bool, Fault> {
        for _ in 0..RECORDS_PER_STEP {
            let Found::Record { record, bytes, .. } = Record::decode(self.salt, &self.bytes[self.at..])
            else {
                let what = What::RecordDamaged { after: replay.seq() };
                return Err(Fault::new(&self.piece.path, self.at, what));
            };
            replay.record(&self.piece, self.at, &record)?;
            self.at += bytes;
            if record.seq >= self.last {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn into_io(fault: Fault) -> io::Error {
    match fault.what {
        What::Io(error) => error,
        _ => io::Error::new(io::ErrorKind::InvalidData, fault),
    }
}
