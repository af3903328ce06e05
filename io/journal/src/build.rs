//! Builds a snapshot in small steps, from the previous snapshot and the segments written since. It
//! does not touch the live shard: the state is the replay of the journal.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

use super::Folders;
use super::archive::{Archived, KeptSnapshot};
use super::disk::Disk;
use super::fault::{Fault, FaultKind};
use super::header::{HEADER_BYTES, Header, Owner};
use super::record::{DecodedRecord, JournalRecord};
use super::replay::ShardReplay;
use super::scan::{RecordVisitor, SegmentFile, segment_path};
use super::snapshot::{Snapshot, snapshot_path};

/// Records applied in one step, about one millisecond of work.
const RECORDS_PER_STEP: usize = 2_048;

#[derive(Debug)]
pub(crate) struct Build {
    disk: Disk,
    folder: PathBuf,
    replay: ShardReplay,
    /// Segments still to be read.
    todo: VecDeque<Archived>,
    reading: Option<SegmentReading>,
}

#[derive(Debug)]
struct SegmentReading {
    piece: SegmentFile,
    salt: u32,
    bytes: Vec<u8>,
    at: usize,
    /// Last record to apply.
    last: u64,
}

impl Build {
    /// Starts with the newest snapshot and the segments after it.
    pub(crate) fn new(
        disk: &Disk,
        folders: &Folders,
        owner: Owner,
        archive: &VecDeque<Archived>,
        snapshots: &VecDeque<KeptSnapshot>,
    ) -> io::Result<Build> {
        let (folder, references) = (folders.shard(owner.shard), folders.references());
        let replay = match snapshots.back() {
            Some(kept) => Snapshot::read(disk, &folder, kept.seq, &owner)
                .and_then(|snapshot| ShardReplay::from_snapshot(disk, &references, &folder, &snapshot))
                .map_err(into_io)?,
            None => ShardReplay::new(disk, &references, owner),
        };
        let new = archive.iter().filter(|segment| segment.last > replay.seq());
        let todo = new.copied().collect();
        Ok(Build { disk: disk.clone(), folder, replay, todo, reading: None })
    }

    /// Does one step of work. When everything is read, writes the snapshot and returns it with its
    /// size in bytes.
    pub(crate) fn step(&mut self) -> io::Result<Option<(KeptSnapshot, u64)>> {
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
        let kept = KeptSnapshot { seq: snapshot.seq, reference: snapshot.reference };
        Ok(Some((kept, bytes.len() as u64)))
    }

    fn open(&self, segment: Archived) -> Result<SegmentReading, Fault> {
        let path = segment_path(&self.folder, segment.number);
        let bytes = self.disk.read(&path).map_err(Fault::io(&path))?;
        let Ok((header, header_sum)) = Header::decode(&bytes) else {
            return Err(Fault::new(&path, 0, FaultKind::HeaderDamaged));
        };
        let salt = header.owner.salt(segment.number);
        let piece = SegmentFile { path, header, header_sum, next: None, bytes: bytes.len() as u64 };
        Ok(SegmentReading { piece, salt, bytes, at: HEADER_BYTES, last: segment.last })
    }
}

impl SegmentReading {
    /// Applies some records; returns true at the end of the segment. The segment is complete and
    /// was synced, so anything that is not a record is damage.
    fn step(&mut self, replay: &mut ShardReplay) -> Result<bool, Fault> {
        for _ in 0..RECORDS_PER_STEP {
            let DecodedRecord::Record { record, bytes, .. } =
                JournalRecord::decode(self.salt, &self.bytes[self.at..])
            else {
                let what = FaultKind::RecordDamaged { after: replay.seq() };
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
    if let FaultKind::Io(error) = fault.what {
        return error;
    }
    io::Error::new(io::ErrorKind::InvalidData, fault)
}
