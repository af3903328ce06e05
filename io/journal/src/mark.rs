//! The high-water mark of a shard's journal: the last record known to be on disk, and its segment.
//! The mark is stored outside the shard's folder, so that the next start notices the loss of the
//! newest segment or of the whole folder.
//!
//! ```text
//! DATA/journal/marks/shard-00      segment (8), record (8), identity of the journal (16), CRC32C (4)
//! ```
//!
//! The syncer writes the mark after the first sync of each segment and when the process ends: once
//! per 16 MB, not per record. A segment that the mark names has been synced, so a loss of power
//! cannot have erased its header. A journal that is copied to a standby has no mark until that
//! server becomes the leader.

use std::io;
use std::path::PathBuf;

use super::Folders;
use super::disk::Disk;
use super::fault::{Fault, FaultKind};
use super::header::{Owner, array};
use super::writer::JournalPosition;

const BYTES: usize = 36;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskMark {
    /// Newest segment that was synced.
    pub segment: u64,
    /// Last record that was synced when the mark was written.
    pub record: u64,
}

impl DiskMark {
    /// Returns the mark of a shard, or `None` if there is none. A mark that is damaged, or belongs
    /// to another journal, gives `None` and a warning.
    pub fn read(
        disk: &Disk,
        folders: &Folders,
        owner: &Owner,
        warnings: &mut Vec<String>,
    ) -> Result<Option<DiskMark>, Fault> {
        let path = folders.mark(owner.shard);
        let bytes = match disk.read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Fault::new(&path, 0, FaultKind::Io(error))),
        };
        let mark = decode(&bytes, owner);
        if mark.is_none() {
            // No acknowledged record is lost by this.
            warnings.push(format!("{}: the mark is damaged and is written again", path.display()));
        }
        Ok(mark)
    }

    /// Refuses a journal that ends before the record known to be on disk.
    pub fn check(&self, folders: &Folders, owner: &Owner, end: &JournalPosition) -> Result<(), Fault> {
        if end.seq >= self.record {
            return Ok(());
        }
        let what = FaultKind::Behind { segment: self.segment, record: self.record, found: end.seq };
        Err(Fault::new(&folders.shard(owner.shard), 0, what))
    }
}

fn decode(bytes: &[u8], owner: &Owner) -> Option<DiskMark> {
    let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
    let sum = u32::from_le_bytes(array(&bytes[32..]));
    let identity = u128::from_le_bytes(array(&bytes[16..32]));
    let word = |at: usize| u64::from_le_bytes(array(&bytes[at..at + 8]));
    let is_ours = crc32c::crc32c(&bytes[..32]) == sum && identity == owner.identity;
    is_ours.then(|| DiskMark { segment: word(0), record: word(8) })
}

/// Writes the mark of one shard.
#[derive(Debug)]
pub(super) struct Marker {
    disk: Disk,
    path: PathBuf,
    identity: u128,
    mark: DiskMark,
}

impl Marker {
    pub(super) fn new(disk: &Disk, folders: &Folders, owner: &Owner) -> Marker {
        let (disk, path) = (disk.clone(), folders.mark(owner.shard));
        Marker { disk, path, identity: owner.identity, mark: DiskMark::default() }
    }

    /// Records that all records up to this one are on disk, the last of them in this segment.
    /// Writes the file only if the segment differs from the previous mark, or if `now` is set. An
    /// error changes nothing: the older mark is still true, and the next sync tries again.
    pub(super) fn note(&mut self, mark: DiskMark, now: bool) -> io::Result<()> {
        if mark == self.mark || mark.segment == self.mark.segment && !now {
            return Ok(());
        }
        let mut bytes = [0; BYTES];
        bytes[0..8].copy_from_slice(&mark.segment.to_le_bytes());
        bytes[8..16].copy_from_slice(&mark.record.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.identity.to_le_bytes());
        let sum = crc32c::crc32c(&bytes[..32]);
        bytes[32..].copy_from_slice(&sum.to_le_bytes());
        self.disk.put(&self.path, &bytes)?;
        self.mark = mark;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::simulated_disk::Simulated;
    use super::*;

    #[test]
    fn a_mark_is_read_as_written_and_every_flipped_bit_is_detected() {
        let simulated = Simulated::new(1);
        let (disk, folders) = (Disk::Simulated(simulated.clone()), Folders::new(Path::new("data")));
        let owner = Owner { identity: 7 << 99, shard: 3, shards: 4 };
        let read = |owner: &Owner| {
            let mut warnings = Vec::new();
            let mark = DiskMark::read(&disk, &folders, owner, &mut warnings).unwrap();
            (mark, warnings.len())
        };
        assert_eq!(read(&owner), (None, 0));
        let mut marker = Marker::new(&disk, &folders, &owner);
        let (first, later) = (DiskMark { segment: 2, record: 10 }, DiskMark { segment: 2, record: 20 });
        marker.note(first, false).unwrap();
        marker.note(later, false).unwrap();
        assert_eq!(read(&owner), (Some(first), 0), "once for each segment");
        marker.note(later, true).unwrap();
        assert_eq!(read(&owner), (Some(later), 0));
        assert_eq!(read(&Owner { identity: 8, ..owner }), (None, 1), "of another journal");
        for bit in 0..BYTES * 8 {
            let flip = |bytes: &mut Vec<u8>| bytes[bit / 8] ^= 1 << (bit % 8);
            simulated.meddle(&folders.mark(3), flip);
            assert_eq!(read(&owner), (None, 1), "bit {bit}");
            simulated.meddle(&folders.mark(3), flip);
        }
        let end = |seq| JournalPosition { seq, ..JournalPosition::default() };
        assert!(later.check(&folders, &owner, &end(20)).is_ok());
        let fault = later.check(&folders, &owner, &end(19)).unwrap_err().to_string();
        assert!(fault.contains("segment 2") && fault.contains("20"), "{fault}");
    }
}
