//! A snapshot: the whole state of a shard after one of its records, in one file.
//!
//! ```text
//!   0 magic (8)          8 format (4)   12 CRC32C of this header (4)
//!  16 identity of the journal (16)      32 hash of what follows the header (16)
//!  48 sequence (8)      56 time of that record (8)
//!  64 number of the last event (8)      72 digest (8)
//!  80 reference data (8)                88 bytes of the settings (8)   96 bytes of the state (8)
//! 104 shard (2)        106 shards (2)  108 format of settings and state (4)   112 zeroes (16)
//! 128 settings, state
//! ```

use std::path::{Path, PathBuf};

use pitlane_engine::codec;
use pitlane_engine::index::index_usize;
use xxhash_rust::xxh3::xxh3_128;

use super::disk::Disk;
use super::fault::{Fault, FaultKind};
use super::header::{Owner, array};

const HEADER_BYTES: usize = 128;
const MAGIC: [u8; 8] = *b"PITLANES";
const FORMAT: u32 = 1;
const ENDING: &str = "snap";
/// Number of snapshots that are kept. If the newest is unreadable, the previous one serves too,
/// with more to replay.
pub const KEPT: usize = 2;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub owner: Owner,
    /// Last record contained in the snapshot.
    pub seq: u64,
    pub time: u64,
    /// Sequence number of the last event that the shard emitted.
    pub event: u64,
    pub digest: u64,
    /// Name of the reference data.
    pub reference: u64,
    pub settings: Vec<u8>,
    pub state: Vec<u8>,
}

pub fn snapshot_path(folder: &Path, seq: u64) -> PathBuf {
    folder.join(format!("{seq:020}.{ENDING}"))
}

/// Returns the sequence numbers of the snapshots in a folder, newest last.
pub fn snapshots_in(disk: &Disk, folder: &Path) -> Result<Vec<u64>, Fault> {
    let names = disk.list(folder).map_err(Fault::io(folder))?;
    let mut seqs: Vec<u64> = names
        .iter()
        .filter_map(|name| name.split_once('.'))
        .filter(|(_, ending)| *ending == ENDING)
        .filter_map(|(seq, _)| seq.parse().ok())
        .collect();
    seqs.sort_unstable();
    Ok(seqs)
}

impl Snapshot {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; HEADER_BYTES];
        out.reserve_exact(self.settings.len() + self.state.len());
        out.extend_from_slice(&self.settings);
        out.extend_from_slice(&self.state);
        let hash = xxh3_128(&out[HEADER_BYTES..]);
        out[0..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        out[16..32].copy_from_slice(&self.owner.identity.to_le_bytes());
        out[32..48].copy_from_slice(&hash.to_le_bytes());
        let sizes = [self.settings.len() as u64, self.state.len() as u64];
        let text = [self.seq, self.time, self.event, self.digest, self.reference, sizes[0], sizes[1]];
        for (place, word) in out[48..104].chunks_exact_mut(8).zip(text) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        out[104..106].copy_from_slice(&self.owner.shard.to_le_bytes());
        out[106..108].copy_from_slice(&self.owner.shards.to_le_bytes());
        out[108..112].copy_from_slice(&codec::STATE_FORMAT.to_le_bytes());
        let sum = crc32c::crc32c(&out[..HEADER_BYTES]);
        out[12..16].copy_from_slice(&sum.to_le_bytes());
        out
    }

    /// Reads a snapshot and checks that it is intact and belongs to this owner.
    pub fn read(disk: &Disk, folder: &Path, seq: u64, owner: &Owner) -> Result<Snapshot, Fault> {
        let path = snapshot_path(folder, seq);
        let bytes = disk.read(&path).map_err(Fault::io(&path))?;
        let snapshot = Snapshot::decode(&bytes).map_err(|(at, what)| Fault::new(&path, at, what))?;
        if snapshot.owner.shards != owner.shards {
            let what = FaultKind::Shards { journal: snapshot.owner.shards, asked: owner.shards };
            return Err(Fault::new(&path, 106, what));
        }
        if snapshot.owner != *owner || snapshot.seq != seq {
            return Err(Fault::new(&path, 16, FaultKind::Foreign));
        }
        Ok(snapshot)
    }

    /// Decodes a file. An error carries the offset and the kind of the fault.
    pub fn decode(bytes: &[u8]) -> Result<Snapshot, (usize, FaultKind)> {
        let damaged = |text: &str| FaultKind::StateDamaged(text.into());
        let Some((head, body)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Err((0, damaged("the snapshot is cut short")));
        };
        let mut unsummed = *head;
        unsummed[12..16].fill(0);
        if head[0..8] != MAGIC || crc32c::crc32c(&unsummed).to_le_bytes() != head[12..16] {
            return Err((0, damaged("the snapshot's header is damaged")));
        }
        let half = |at: usize| u32::from_le_bytes(array(&head[at..at + 4]));
        for (at, ours) in [(8, FORMAT), (108, codec::STATE_FORMAT)] {
            if half(at) != ours {
                let is_old_state = at == 108 && half(at) < ours;
                return Err((
                    at,
                    if is_old_state { FaultKind::OldState(half(at)) } else { FaultKind::Format(half(at)) },
                ));
            }
        }
        let word = |at: usize| u64::from_le_bytes(array(&head[at..at + 8]));
        let short = |at: usize| u16::from_le_bytes(array(&head[at..at + 2]));
        let settings = index_usize(word(88));
        let whole = word(88).checked_add(word(96)) == Some(body.len() as u64);
        if !whole || xxh3_128(body).to_le_bytes() != head[32..48] {
            return Err((HEADER_BYTES, damaged("the snapshot is not what its hash says")));
        }
        Ok(Snapshot {
            owner: Owner {
                identity: u128::from_le_bytes(array(&head[16..32])),
                shard: short(104),
                shards: short(106),
            },
            seq: word(48),
            time: word(56),
            event: word(64),
            digest: word(72),
            reference: word(80),
            settings: body[..settings].to_vec(),
            state: body[settings..].to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> Snapshot {
        Snapshot {
            owner: Owner { identity: 9 << 100, shard: 1, shards: 4 },
            seq: 77,
            time: 1,
            event: 2,
            digest: 3,
            reference: 4,
            settings: b"how".to_vec(),
            state: b"what there is".to_vec(),
        }
    }

    #[test]
    fn a_written_snapshot_is_read_back() {
        assert_eq!(Snapshot::decode(&snapshot().encode()).unwrap(), snapshot());
    }

    #[test]
    fn every_flipped_byte_and_every_cut_is_detected() {
        let bytes = snapshot().encode();
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            assert!(Snapshot::decode(&flipped).is_err(), "byte {at}");
            assert!(Snapshot::decode(&bytes[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_snapshot_under_another_name_or_of_another_shard_is_refused() {
        let disk = Disk::Simulated(super::super::simulated_disk::Simulated::new(1));
        let folder = Path::new("f");
        let owner = snapshot().owner;
        disk.put(&snapshot_path(folder, 77), &snapshot().encode()).unwrap();
        disk.put(&snapshot_path(folder, 78), &snapshot().encode()).unwrap();
        assert_eq!(snapshots_in(&disk, folder).unwrap(), [77, 78]);
        assert!(Snapshot::read(&disk, folder, 77, &owner).is_ok());
        assert!(Snapshot::read(&disk, folder, 78, &owner).is_err());
        assert!(Snapshot::read(&disk, folder, 77, &Owner { shard: 0, ..owner }).is_err());
        assert!(Snapshot::read(&disk, folder, 77, &Owner { shards: 2, ..owner }).is_err());
    }
}
