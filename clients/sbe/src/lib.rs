#![doc = include_str!("../README.md")]

pub mod codes;
pub mod messages;

pub use messages::Message;

use std::fmt;
use std::marker::PhantomData;

/// Why a body is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SbeError {
    /// The body ends inside a message.
    Truncated,
    /// A block or an entry of a group is shorter than the schema says.
    BlockTooShort,
    UnknownSchema(u16),
    UnknownTemplate(u16),
    /// A text is not UTF-8.
    NotText,
}

impl fmt::Display for SbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SbeError::Truncated => write!(f, "the body ends inside a message"),
            SbeError::BlockTooShort => write!(f, "a block is shorter than the schema says"),
            SbeError::UnknownSchema(id) => write!(f, "{id} is not the schema of Pitlane"),
            SbeError::UnknownTemplate(id) => write!(f, "the schema has no message {id}"),
            SbeError::NotText => write!(f, "a text is not UTF-8"),
        }
    }
}

impl std::error::Error for SbeError {}

/// A decimal as a number of units of 10⁻⁸.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Decimal(pub i64);

impl Decimal {
    fn optional(mantissa: i64) -> Option<Decimal> {
        (mantissa != i64::MIN).then_some(Decimal(mantissa))
    }
}

/// Writes all digits, without trailing zeros.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SCALE: u64 = 100_000_000;
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, part) = (self.0.unsigned_abs() / SCALE, self.0.unsigned_abs() % SCALE);
        let text = format!("{part:08}");
        match text.trim_end_matches('0') {
            "" => write!(f, "{sign}{whole}"),
            digits => write!(f, "{sign}{whole}.{digits}"),
        }
    }
}

/// Returns the messages of a body, in order. It ends at the first error.
pub fn messages(body: &[u8]) -> impl Iterator<Item = Result<Message<'_>, SbeError>> {
    let mut reader = Reader { rest: body, block_length: 0 };
    std::iter::from_fn(move || {
        if reader.rest.is_empty() {
            return None;
        }
        let message = reader.message();
        if message.is_err() {
            reader.rest = &[];
        }
        Some(message)
    })
}

/// The octets that are not read yet.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    block_length: usize,
}

impl<'a> Reader<'a> {
    fn message(&mut self) -> Result<Message<'a>, SbeError> {
        let header = self.take(8)?;
        let number = |at| u16::from_le_bytes(octets(header, at));
        self.block_length = number(0).into();
        if number(4) != messages::SCHEMA_ID {
            return Err(SbeError::UnknownSchema(number(4)));
        }
        Message::read(number(2), self)
    }

    /// Takes the block of a message. A newer schema may have made it longer.
    fn block(&mut self, length: usize) -> Result<&'a [u8], SbeError> {
        if self.block_length < length {
            return Err(SbeError::BlockTooShort);
        }
        self.take(self.block_length)
    }

    fn group<T: View<'a>>(&mut self) -> Result<Group<'a, T>, SbeError> {
        let head = self.take(4)?;
        let stride: usize = u16::from_le_bytes(octets(head, 0)).into();
        let count: usize = u16::from_le_bytes(octets(head, 2)).into();
        if stride < T::BLOCK_LENGTH && count > 0 {
            return Err(SbeError::BlockTooShort);
        }
        let entries = self.take(stride * count)?;
        Ok(Group { entries, stride: stride.max(1), view: PhantomData })
    }

    fn text(&mut self) -> Result<&'a str, SbeError> {
        let length = u16::from_le_bytes(octets(self.take(2)?, 0));
        std::str::from_utf8(self.take(length.into())?).map_err(|_| SbeError::NotText)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], SbeError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(SbeError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }
}

/// Fields over a block of octets.
pub trait View<'a> {
    const BLOCK_LENGTH: usize;

    fn new(block: &'a [u8]) -> Self;
}

/// Entries of a repeating group.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a, T> {
    entries: &'a [u8],
    stride: usize,
    view: PhantomData<T>,
}

impl<'a, T: View<'a>> Group<'a, T> {
    pub fn len(&self) -> usize {
        self.entries.len() / self.stride
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = T> + use<'a, T> {
        self.entries.chunks_exact(self.stride).map(T::new)
    }
}

/// Returns some octets of a block, whose length was checked.
fn octets<const N: usize>(block: &[u8], at: usize) -> [u8; N] {
    block.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_is_cut_short_or_foreign_is_refused() {
        let first = |body: &[u8]| messages(body).next().map(|message| message.map(drop));
        assert_eq!(first(&[]), None);
        assert_eq!(first(&[84, 0, 1]), Some(Err(SbeError::Truncated)));
        let header = |block: u8, template: u8, schema: u8| [block, 0, template, 0, schema, 0, 0, 0];
        assert_eq!(first(&header(84, 1, 1)), Some(Err(SbeError::Truncated)));
        assert_eq!(first(&header(83, 1, 1)), Some(Err(SbeError::BlockTooShort)));
        assert_eq!(first(&header(84, 1, 9)), Some(Err(SbeError::UnknownSchema(9))));
        assert_eq!(first(&header(84, 99, 1)), Some(Err(SbeError::UnknownTemplate(99))));
        let mut book = [header(20, 2, 1).as_slice(), &[0; 20]].concat();
        book.extend([1, 0, 1, 0, 0]);
        assert_eq!(first(&book), Some(Err(SbeError::BlockTooShort)), "an entry of one octet");
        let tick = [header(84, 1, 1).as_slice(), &[0; 84], &[7]].concat();
        let results: Vec<bool> = messages(&tick).map(|message| message.is_ok()).collect();
        assert_eq!(results, [true, false], "and nothing after an error");
    }

    #[test]
    fn decimals_have_all_their_digits() {
        for (mantissa, text) in [(0, "0"), (150_000_000, "1.5"), (-1, "-0.00000001"), (10_000_000_000, "100")]
        {
            assert_eq!(Decimal(mantissa).to_string(), text);
        }
        assert_eq!(Decimal::optional(i64::MIN), None);
    }
}
