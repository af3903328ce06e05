//! A record of a segment. Records follow each other, each at a multiple of eight bytes.
//!
//! ```text
//! 0      4      8          16         24     28     29        32
//! ┌──────┬──────┬──────────┬──────────┬──────┬──────┬─────────┬─────────┬─────────┐
//! │length│CRC32C│ sequence │   time   │ lag  │ kind │ zeroes  │ payload │ zeroes  │
//! └──────┴──────┴──────────┴──────────┴──────┴──────┴─────────┴─────────┴─────────┘
//! ```
//!
//! The length covers the whole record without the trailing zeroes, so a length of zero means that
//! no record is stored here yet. The checksum starts with the segment's salt, so that a record of
//! another segment, of another shard or of an earlier use of the same disk blocks is not accepted.
//! The lag is the number of preceding records that were not yet known to be on disk when this one
//! was written; [`super::scan`] explains its use.

use pitlane_engine::index::index_u32;

/// Bytes before the payload.
pub const HEAD_BYTES: usize = 32;
/// Longest payload in bytes. A command has a few hundred bytes; the longest payload is the settings
/// of a shard with one venue for each exchange.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// Kinds of records. The numbers are stored on disk and never change.
pub mod kind {
    /// Start of a process: names the reference data and contains the settings.
    pub const START: u8 = 1;
    /// A command that the shard applied next.
    pub const COMMAND: u8 = 2;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalRecord<'a> {
    /// Sequence number, counted from one without gaps over the whole history of a shard.
    pub seq: u64,
    /// Time in nanoseconds since the epoch.
    pub time: u64,
    /// Number of preceding records not known to be on disk.
    pub lag: u32,
    pub kind: u8,
    pub payload: &'a [u8],
}

/// Returns the bytes that a record with such a payload takes in a segment.
pub const fn bytes_of(payload: usize) -> usize {
    (HEAD_BYTES + payload).next_multiple_of(8)
}

impl<'a> JournalRecord<'a> {
    /// Returns the last record known to be on disk when this one was written.
    pub fn durable(&self) -> u64 {
        (self.seq - 1).saturating_sub(self.lag as u64)
    }

    /// Writes the record into `out`, which has room for [`bytes_of`] its payload, and returns its
    /// checksum.
    pub fn encode(&self, salt: u32, out: &mut [u8]) -> u32 {
        let length = HEAD_BYTES + self.payload.len();
        assert!(self.payload.len() <= PAYLOAD_BYTES_MAX, "a payload has its bound");
        out[0..4].copy_from_slice(&index_u32(length).to_le_bytes());
        out[8..16].copy_from_slice(&self.seq.to_le_bytes());
        out[16..24].copy_from_slice(&self.time.to_le_bytes());
        out[24..28].copy_from_slice(&self.lag.to_le_bytes());
        out[28..32].copy_from_slice(&[self.kind, 0, 0, 0]);
        out[HEAD_BYTES..length].copy_from_slice(self.payload);
        out[length..bytes_of(self.payload.len())].fill(0);
        let sum = sum(salt, index_u32(length), &out[8..length]);
        out[4..8].copy_from_slice(&sum.to_le_bytes());
        sum
    }

    /// Decodes the record at the start of `bytes`.
    pub fn decode(salt: u32, bytes: &'a [u8]) -> DecodedRecord<'a> {
        let Some(head) = bytes.first_chunk::<HEAD_BYTES>() else {
            return if bytes.iter().all(|&byte| byte == 0) {
                DecodedRecord::Nothing
            } else {
                DecodedRecord::Damage
            };
        };
        let length = u32::from_le_bytes(array(&head[0..4]));
        if length == 0 {
            return DecodedRecord::Nothing;
        }
        let whole = (length as usize).next_multiple_of(8);
        if !(HEAD_BYTES..=HEAD_BYTES + PAYLOAD_BYTES_MAX).contains(&(length as usize)) || whole > bytes.len()
        {
            return DecodedRecord::Damage;
        }
        let stored_sum = u32::from_le_bytes(array(&head[4..8]));
        let filled = bytes[length as usize..whole].iter().all(|&byte| byte == 0) && head[29..32] == [0; 3];
        if !filled || stored_sum != sum(salt, length, &bytes[8..length as usize]) {
            return DecodedRecord::Damage;
        }
        let record = JournalRecord {
            seq: u64::from_le_bytes(array(&head[8..16])),
            time: u64::from_le_bytes(array(&head[16..24])),
            lag: u32::from_le_bytes(array(&head[24..28])),
            kind: head[28],
            payload: &bytes[HEAD_BYTES..length as usize],
        };
        // Sequence numbers start at one, so zero is damage.
        if record.seq == 0 {
            DecodedRecord::Damage
        } else {
            DecodedRecord::Record { record, bytes: whole, sum: stored_sum }
        }
    }
}

/// The contents of a segment at one position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodedRecord<'a> {
    Record { record: JournalRecord<'a>, bytes: usize, sum: u32 },
    Nothing,
    Damage,
}

fn sum(salt: u32, length: u32, rest: &[u8]) -> u32 {
    crc32c::crc32c_append(salt ^ length, rest)
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("the range is as long as the number")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: u32 = 0x1234_5678;

    fn written(payload: &[u8]) -> Vec<u8> {
        let record = JournalRecord { seq: 7, time: 99, lag: 3, kind: kind::COMMAND, payload };
        let mut bytes = vec![0; bytes_of(payload.len())];
        record.encode(SALT, &mut bytes);
        bytes
    }

    #[test]
    fn a_written_record_of_any_length_is_read_back() {
        for length in 0..100u8 {
            let payload: Vec<u8> = (0..length).collect();
            let bytes = written(&payload);
            let DecodedRecord::Record { record, bytes: taken, .. } = JournalRecord::decode(SALT, &bytes)
            else {
                panic!("{length}")
            };
            assert_eq!((record.seq, record.time, record.lag, record.kind), (7, 99, 3, kind::COMMAND));
            assert_eq!((record.payload, taken, record.durable()), (&payload[..], bytes.len(), 3));
        }
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_detected() {
        let bytes = written(b"some words of a client");
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(JournalRecord::decode(SALT, &flipped), DecodedRecord::Damage, "bit {bit}");
        }
        for length in 1..bytes.len() {
            assert_eq!(
                JournalRecord::decode(SALT, &bytes[..length]),
                DecodedRecord::Damage,
                "length {length}"
            );
        }
    }

    #[test]
    fn a_record_of_another_segment_is_not_accepted() {
        assert_eq!(JournalRecord::decode(SALT + 1, &written(b"x")), DecodedRecord::Damage);
        assert_eq!(JournalRecord::decode(SALT, &[0; 64]), DecodedRecord::Nothing);
        assert_eq!(JournalRecord::decode(SALT, &[]), DecodedRecord::Nothing);
    }
}
