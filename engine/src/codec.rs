//! The byte format of stored data: commands in a journal, the state of a shard and reference data
//! in snapshots. It is exact, canonical (one value has one encoding, and one encoding one value)
//! and little-endian, the same on every machine.
//!
//! ```text
//! number    its bytes, lowest first            enum      its tag, a byte, then its fields
//! flag      0 or 1                             option    0, or 1 and the value
//! text      length, then the characters        list      count (4 bytes), then one after the other
//! struct    its fields, in the order written here, whatever order they have in memory
//! ```
//!
//! [`codec!`] lists fields and tags once: a field or a variant that is missing there does not
//! compile, and moving one in its type changes nothing here. Decoding validates untrusted input:
//! any bytes give a value that keeps its type's invariants, or a [`DecodeError`].

mod primitives;
mod events;
mod settings;
#[cfg(test)]
mod tests;
mod commands;

pub use primitives::encode_list;
pub(crate) use primitives::{decode_into, encode_count};

use std::fmt;

use crate::command::Command;

/// Number of this format, stored in front of all data. It rises when bytes written before would be
/// decoded differently.
pub const FORMAT: u32 = 1;

/// Number of the format of a shard's state, which changes more often and can be rebuilt from the
/// commands. It rises with [`FORMAT`] too. In format 1, orders lost the reason, time and fill that
/// were last reported. In format 2, there were no used ids, no directives, no credit by position,
/// no hours and expiries, and orders of outside venues lost the data needed to recount their fills:
/// such a state cannot be completed, so it is not read. In format 3, there were no senders. In
/// format 4, there were no levels of feeds.
pub const STATE_FORMAT: u32 = 5;

/// Longest encoding of a command: its size in memory. The longest in use, a submission, takes 109
/// bytes.
pub const COMMAND_BYTES_MAX: usize = 128;

/// Writes a command at the beginning of `out`, which has room for [`COMMAND_BYTES_MAX`], and
/// returns its length.
#[inline]
pub fn encode_command(command: &Command, out: &mut [u8]) -> usize {
    let mut buffer = FixedBuffer { bytes: &mut out[..COMMAND_BYTES_MAX], len: 0 };
    command.encode(&mut buffer);
    buffer.len
}

/// Decodes a command from exactly these bytes.
pub fn decode_command(bytes: &[u8]) -> Result<Command, DecodeError> {
    decode_whole(bytes)
}

/// Decodes a value from exactly these bytes.
pub fn decode_whole<T: Codec>(bytes: &[u8]) -> Result<T, DecodeError> {
    let mut from = ByteReader::new(bytes);
    let value = T::decode(&mut from)?;
    from.finish()?;
    Ok(value)
}

/// Reason why bytes cannot be decoded, and the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Position of the reader.
    pub at: usize,
    pub problem: DecodeProblem,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeProblem {
    /// The bytes end before the value does.
    Short,
    /// The value ends before the bytes do.
    Left,
    /// Bytes that stand for no value, or are not canonical.
    Value,
    /// Each value is valid, but not together with the others.
    Contradiction,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = match self.problem {
            DecodeProblem::Short => "the bytes end before the value does",
            DecodeProblem::Left => "the value ends before the bytes do",
            DecodeProblem::Value => "the bytes stand for no value",
            DecodeProblem::Contradiction => "the values contradict each other",
        };
        write!(f, "byte {}: {problem}", self.at)
    }
}

impl std::error::Error for DecodeError {}

/// A type that can be encoded and decoded.
pub trait Codec: Sized {
    fn encode(&self, out: &mut impl ByteSink);
    fn decode(from: &mut ByteReader<'_>) -> Result<Self, DecodeError>;
}

/// Destination of encoded bytes.
pub trait ByteSink {
    fn put(&mut self, bytes: &[u8]);
}

impl ByteSink for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// A buffer that is long enough.
struct FixedBuffer<'a> {
    bytes: &'a mut [u8],
    len: usize,
}

impl ByteSink for FixedBuffer<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        self.bytes[self.len..end].copy_from_slice(bytes);
        self.len = end;
    }
}

/// A checksum of everything put into it. It detects states that differ by accident, not by intent.
pub(crate) struct Digest(u64);

impl Digest {
    pub(crate) fn new() -> Digest {
        Digest(FORMAT as u64)
    }

    /// Returns the checksum, its bits mixed once more.
    pub(crate) fn sum(&self) -> u64 {
        let x = (self.0 ^ self.0 >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        x ^ x >> 32
    }
}

impl ByteSink for Digest {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            let mixed = (self.0 ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.0 = mixed.rotate_left(29);
        }
    }
}

/// Bytes being decoded.
pub struct ByteReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Largest value of a stored number that rises by one at a time: at a billion a second it takes 146
/// years to get there.
pub const COUNTER_MAX: i64 = i64::MAX / 2;

impl<'a> ByteReader<'a> {
    pub fn new(bytes: &'a [u8]) -> ByteReader<'a> {
        ByteReader { bytes, at: 0 }
    }

    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        match self.bytes[self.at..].get(..count) {
            Some(taken) => {
                self.at += count;
                Ok(taken)
            }
            None => Err(self.error(DecodeProblem::Short)),
        }
    }

    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        match self.bytes[self.at..].first_chunk::<N>() {
            Some(taken) => {
                self.at += N;
                Ok(*taken)
            }
            None => Err(self.error(DecodeProblem::Short)),
        }
    }

    /// Decodes a number that rises by one at a time, see [`COUNTER_MAX`].
    pub fn counter(&mut self) -> Result<u64, DecodeError> {
        let count = u64::decode(self)?;
        self.check(count <= COUNTER_MAX as u64, DecodeProblem::Value)?;
        Ok(count)
    }

    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub fn finish(&self) -> Result<(), DecodeError> {
        if self.left() == 0 { Ok(()) } else { Err(self.error(DecodeProblem::Left)) }
    }

    /// Returns an error unless the decoded value is valid.
    #[inline]
    pub fn check(&self, sound: bool, problem: DecodeProblem) -> Result<(), DecodeError> {
        if sound { Ok(()) } else { Err(self.error(problem)) }
    }

    #[cold]
    pub fn error(&self, problem: DecodeProblem) -> DecodeError {
        DecodeError { at: self.at, problem }
    }
}

/// Lists the parts of a type: `codec!(Quote { bid, bid_size })`, `codec!(Day(number))`, or with a
/// tag for each variant `codec!(enum Side { 0 = Buy, 1 = Sell })`.
#[macro_export]
macro_rules! codec {
    (enum $name:ident { $($tag:literal = $variant:ident $({ $($field:ident),+ })? $(( $($item:ident),+ ))?),+ $(,)? }) => {
        impl $crate::codec::Codec for $name {
            #[inline]
            fn encode(&self, out: &mut impl $crate::codec::ByteSink) {
                match self {
                    $($name::$variant $({ $($field),+ })? $(($($item),+))? => {
                        out.put(&[$tag]);
                        $($($field.encode(out);)+)?
                        $($($item.encode(out);)+)?
                    })+
                }
            }

            #[inline]
            fn decode(from: &mut $crate::codec::ByteReader<'_>) -> Result<$name, $crate::codec::DecodeError> {
                match from.array()? {
                    $([$tag] => {
                        $($(let $field = $crate::codec::Codec::decode(from)?;)+)?
                        $($(let $item = $crate::codec::Codec::decode(from)?;)+)?
                        Ok($name::$variant $({ $($field),+ })? $(($($item),+))?)
                    })+
                    _ => Err(from.error($crate::codec::DecodeProblem::Value)),
                }
            }
        }
    };
    ($name:ident { $($field:ident),+ $(,)? }) => {
        impl $crate::codec::Codec for $name {
            #[inline]
            fn encode(&self, out: &mut impl $crate::codec::ByteSink) {
                let $name { $($field),+ } = self;
                $($field.encode(out);)+
            }

            #[inline]
            fn decode(from: &mut $crate::codec::ByteReader<'_>) -> Result<$name, $crate::codec::DecodeError> {
                $(let $field = $crate::codec::Codec::decode(from)?;)+
                Ok($name { $($field),+ })
            }
        }
    };
    ($name:ident ( $item:ident )) => {
        impl $crate::codec::Codec for $name {
            #[inline]
            fn encode(&self, out: &mut impl $crate::codec::ByteSink) {
                let $name($item) = self;
                $item.encode(out);
            }

            #[inline]
            fn decode(from: &mut $crate::codec::ByteReader<'_>) -> Result<$name, $crate::codec::DecodeError> {
                $crate::codec::Codec::decode(from).map($name)
            }
        }
    };
}
pub use codec;
