//! The header of a segment: the owner of the segment, and the segment that it continues.
//!
//! ```text
//!   0 magic (8)          8 format (4)   12 CRC32C (4)
//!  16 identity of the journal (16)      32 boot of the machine (16)
//!  48 number (8)        56 first sequence (8)
//!  64 time (8)          72 digest of the shard's state before the first record (8)
//!  80 last sequence known to be on disk (8)
//!  88 number of the segment it continues, or zero (8)       96 end of that segment (8)
//! 104 CRC32C of its header (4)         108 chain of its records (4)
//! 112 shard (2)        114 shards (2)  116 reference data in force (8)        124 rules (4)
//! ```
//!
//! The chain is the CRC32C of the checksums of all records up to that point. A segment that is
//! missing, foreign, swapped or outdated therefore does not fit between its neighbours.

use pitlane_engine::id::ShardId;
use pitlane_engine::index::index_u8;

pub const HEADER_BYTES: usize = 128;
const MAGIC: [u8; 8] = *b"PITLANEJ";
/// Format of header and records. The contents of a payload have their own format.
pub const FORMAT: u32 = 1;
/// Version of the rules by which a shard applies commands. It increases when the same commands may
/// give another state; a journal written by an earlier version is then accepted only if its digests
/// still match. It was 0 until the rules for the end of the trading day, busts and stops changed,
/// 1 until those for modifications that fills overtake, reduce-only orders after a bust, the collar
/// of a stop limit and feeds without levels, and 2 until those for reduce-only orders after a
/// manual trade, reports about orders that were never sent, and stops that wait again.
pub const RULES: u32 = 3;

/// The owner of a segment, the same in all headers of one shard's journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Random number, chosen when the data folder is created.
    pub identity: u128,
    pub shard: u16,
    pub shards: u16,
}

impl Owner {
    /// Returns the id of the shard. The identity file bounds the number of shards, and an owner
    /// that was read from another file is compared with it first.
    pub(super) fn shard_id(&self) -> ShardId {
        ShardId(index_u8(self.shard.into()))
    }

    /// Returns the initial value of the checksums of a segment's records.
    pub fn salt(&self, number: u64) -> u32 {
        let mut bytes = [0; 26];
        bytes[0..16].copy_from_slice(&self.identity.to_le_bytes());
        bytes[16..18].copy_from_slice(&self.shard.to_le_bytes());
        bytes[18..26].copy_from_slice(&number.to_le_bytes());
        crc32c::crc32c(&bytes)
    }
}

/// A position in a segment, with a checksum of everything written up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentLink {
    /// Number of the segment; zero at the beginning of the journal.
    pub number: u64,
    pub end: u64,
    pub header_sum: u32,
    pub chain: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub owner: Owner,
    /// Boot id of the machine, random for each boot. It shows whether the page cache may have been
    /// lost since.
    pub boot: u128,
    /// Number of the segment, counted from one.
    pub number: u64,
    pub first: u64,
    pub time: u64,
    pub digest: u64,
    pub durable: u64,
    pub after: SegmentLink,
    /// Name of the reference data in force at the first record.
    pub reference: u64,
    /// Version of the [`RULES`] by which the records were applied.
    pub rules: u32,
}

impl Header {
    /// Returns the encoded header and its checksum.
    pub fn encode(&self) -> ([u8; HEADER_BYTES], u32) {
        let mut out = [0; HEADER_BYTES];
        out[0..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        out[16..32].copy_from_slice(&self.owner.identity.to_le_bytes());
        out[32..48].copy_from_slice(&self.boot.to_le_bytes());
        let text = [
            self.number,
            self.first,
            self.time,
            self.digest,
            self.durable,
            self.after.number,
            self.after.end,
        ];
        for (place, word) in out[48..104].chunks_exact_mut(8).zip(text) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        out[104..108].copy_from_slice(&self.after.header_sum.to_le_bytes());
        out[108..112].copy_from_slice(&self.after.chain.to_le_bytes());
        out[112..114].copy_from_slice(&self.owner.shard.to_le_bytes());
        out[114..116].copy_from_slice(&self.owner.shards.to_le_bytes());
        out[116..124].copy_from_slice(&self.reference.to_le_bytes());
        out[124..128].copy_from_slice(&self.rules.to_le_bytes());
        let sum = crc32c::crc32c(&out);
        out[12..16].copy_from_slice(&sum.to_le_bytes());
        (out, sum)
    }

    /// Decodes the header at the start of `bytes`, and returns it with its checksum.
    pub fn decode(bytes: &[u8]) -> Result<(Header, u32), NoHeader> {
        let Some(head) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(if bytes.iter().all(|&byte| byte == 0) {
                NoHeader::Blank
            } else {
                NoHeader::Damaged
            });
        };
        if head == &[0; HEADER_BYTES] {
            return Err(NoHeader::Blank);
        }
        let mut unsummed = *head;
        unsummed[12..16].fill(0);
        let sum = u32::from_le_bytes(array(&head[12..16]));
        if head[0..8] != MAGIC || crc32c::crc32c(&unsummed) != sum {
            return Err(NoHeader::Damaged);
        }
        match u32::from_le_bytes(array(&head[8..12])) {
            FORMAT => {}
            other => return Err(NoHeader::Format(other)),
        }
        let word = |at: usize| u64::from_le_bytes(array(&head[at..at + 8]));
        let half = |at: usize| u32::from_le_bytes(array(&head[at..at + 4]));
        let short = |at: usize| u16::from_le_bytes(array(&head[at..at + 2]));
        let header = Header {
            owner: Owner {
                identity: u128::from_le_bytes(array(&head[16..32])),
                shard: short(112),
                shards: short(114),
            },
            boot: u128::from_le_bytes(array(&head[32..48])),
            number: word(48),
            first: word(56),
            time: word(64),
            digest: word(72),
            durable: word(80),
            after: SegmentLink { number: word(88), end: word(96), header_sum: half(104), chain: half(108) },
            reference: word(116),
            rules: half(124),
        };
        Ok((header, sum))
    }
}

/// The reason why no header can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoHeader {
    /// Only zeroes: the segment was allocated in advance and never used.
    Blank,
    Damaged,
    /// The header is intact, but has another format version.
    Format(u32),
}

pub(super) fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("the range is as long as the number")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            owner: Owner { identity: 5 << 80, shard: 1, shards: 2 },
            boot: 6 << 90,
            number: 3,
            first: 1_000,
            time: 77,
            digest: 88,
            durable: 990,
            after: SegmentLink { number: 2, end: 4_096, header_sum: 1, chain: 2 },
            reference: 99,
            rules: 5,
        }
    }

    #[test]
    fn a_written_header_is_read_back() {
        let (bytes, sum) = header().encode();
        assert_eq!(Header::decode(&bytes), Ok((header(), sum)));
        assert_eq!(Header::decode(&[0; 200]), Err(NoHeader::Blank));
        assert_eq!(Header::decode(&bytes[..50]), Err(NoHeader::Damaged));
    }

    #[test]
    fn every_flipped_bit_is_detected() {
        let (bytes, _) = header().encode();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(&flipped), Err(NoHeader::Damaged), "bit {bit}");
        }
    }

    #[test]
    fn segments_and_shards_differ_in_their_salt() {
        let owner = header().owner;
        assert_ne!(owner.salt(1), owner.salt(2));
        assert_ne!(owner.salt(1), Owner { shard: 0, ..owner }.salt(1));
    }
}
