//! Reads the headers of pages, to know how many bytes the decoder will make of a column before it
//! does: it allocates and decompresses what a header says, without a bound, and does not compare
//! it with the file's metadata.
//!
//! ```text
//! column chunk:  header, page   header, page   …        header: the type, the length decompressed,
//!                                                        the length stored, a struct for the type
//! ```
//!
//! A header is a struct in Thrift's compact encoding. Its fields must ascend, as all writers write
//! them. Otherwise a field could occur twice, and the decoder would use the other one.

use std::io::{Read, copy, sink};

use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::ChunkReader;

use super::guarded::{GuardedFile, READ_BYTES_MAX};

/// Maximum number of values in a dictionary, for each of which the decoder allocates up to 32
/// bytes. Writers end a dictionary at a megabyte.
const DICTIONARY_VALUES_MAX: u64 = 1 << 20;
/// Depth of the structs in a header: the header, what its type needs, statistics. One more is for
/// later versions of the format.
const DEPTH_MAX: u32 = 4;

/// Types of fields in Thrift's compact encoding.
const STOP: u8 = 0;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const STRUCT: u8 = 12;

/// Fields of a page header.
const DECOMPRESSED: u8 = 2;
const STORED: u8 = 3;
const DICTIONARY: u8 = 7;
/// Field of a dictionary's header.
const VALUES: u8 = 1;

/// Returns the bytes of all pages of a column chunk when they are decompressed.
pub(super) fn decompressed_bytes(file: &GuardedFile, chunk: &ColumnChunkMetaData) -> Result<u64> {
    let (start, length) = chunk.byte_range();
    let end = start.saturating_add(length);
    let (mut at, mut bytes) = (start, 0);
    while at < end {
        let header = PageHeader::read(file.get_read(at)?)?;
        at = at.saturating_add(header.length).saturating_add(header.stored);
        if at > end {
            return Err(unreadable("it extends beyond its column"));
        }
        bytes += header.page_bytes()?;
    }
    Ok(bytes)
}

fn unreadable(why: &str) -> ParquetError {
    ParquetError::General(format!("a page cannot be read: {why}"))
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PageHeader {
    /// Bytes of the header itself.
    length: u64,
    decompressed: u64,
    stored: u64,
    /// Values of a dictionary; 0 for other pages.
    dictionary_values: u64,
}

impl PageHeader {
    fn read(from: impl Read) -> Result<PageHeader> {
        let mut header = PageHeader::default();
        let mut input = ThriftReader { from, length: 0 };
        let mut field = 0;
        while let Some(kind) = input.next_field(&mut field)? {
            match field {
                DECOMPRESSED => header.decompressed = input.read_size(kind)?,
                STORED => header.stored = input.read_size(kind)?,
                DICTIONARY => header.dictionary_values = input.read_dictionary_values(kind)?,
                _ => input.skip(kind, 1)?,
            }
        }
        header.length = input.length;
        Ok(header)
    }

    /// Returns the bytes of the page when it is decompressed, if it may be decoded.
    fn page_bytes(&self) -> Result<u64> {
        // A page that is not compressed has its stored length, whatever the header says.
        let bytes = self.decompressed.max(self.stored);
        if bytes > READ_BYTES_MAX as u64 {
            return Err(unreadable(&format!("it expands to {bytes} bytes")));
        }
        if self.dictionary_values > DICTIONARY_VALUES_MAX.min(bytes) {
            let values = self.dictionary_values;
            return Err(unreadable(&format!("it is a dictionary of {values} values in {bytes} bytes")));
        }
        Ok(bytes)
    }
}

/// Reads Thrift's compact encoding.
struct ThriftReader<R> {
    from: R,
    /// Bytes that were read.
    length: u64,
}

impl<R: Read> ThriftReader<R> {
    /// Advances `field` to the next field of a struct and returns its type; `None` at the end.
    fn next_field(&mut self, field: &mut u8) -> Result<Option<u8>> {
        let byte = self.read_byte()?;
        let (step, kind) = (byte >> 4, byte & 0xf);
        if kind == STOP {
            return Ok(None);
        }
        // Without a step, the number of the field follows and may be any.
        *field = field
            .checked_add(step)
            .filter(|_| step > 0)
            .ok_or_else(|| unreadable("its fields do not ascend"))?;
        Ok(Some(kind))
    }

    /// Returns the number of values in the header of a dictionary.
    fn read_dictionary_values(&mut self, kind: u8) -> Result<u64> {
        if kind != STRUCT {
            return Err(unreadable("its header has a field of another type"));
        }
        let (mut values, mut field) = (0, 0);
        while let Some(kind) = self.next_field(&mut field)? {
            match field {
                VALUES => values = self.read_size(kind)?,
                _ => self.skip(kind, 2)?,
            }
        }
        Ok(values)
    }

    /// Returns a number that cannot be negative.
    fn read_size(&mut self, kind: u8) -> Result<u64> {
        if kind != I32 {
            return Err(unreadable("its header has a field of another type"));
        }
        let zigzag = self.read_u32()?;
        // The lowest bit is the sign.
        if zigzag & 1 == 1 {
            return Err(unreadable("its header has a negative length"));
        }
        Ok((zigzag >> 1) as u64)
    }

    /// Skips a value of a type, in a struct at this depth.
    fn skip(&mut self, kind: u8, depth: u32) -> Result<()> {
        match kind {
            TRUE | FALSE => Ok(()),
            BYTE => self.read_byte().map(|_| ()),
            I16 | I32 | I64 => {
                while self.read_byte()? & 0x80 != 0 {}
                Ok(())
            }
            DOUBLE => self.skip_bytes(8),
            BINARY => {
                let length = self.read_u32()?;
                self.skip_bytes(length as u64)
            }
            STRUCT if depth < DEPTH_MAX => {
                let mut field = 0;
                while let Some(kind) = self.next_field(&mut field)? {
                    self.skip(kind, depth + 1)?;
                }
                Ok(())
            }
            _ => Err(unreadable("its header has a field of an unknown type")),
        }
    }

    fn skip_bytes(&mut self, count: u64) -> Result<()> {
        let skipped = copy(&mut self.from.by_ref().take(count), &mut sink())?;
        self.length += skipped;
        if skipped < count { Err(unreadable("its header is cut")) } else { Ok(()) }
    }

    fn read_u32(&mut self) -> Result<u32> {
        let mut value = 0;
        for shift in (0..u32::BITS).step_by(7) {
            let byte = self.read_byte()?;
            value |= ((byte & 0x7f) as u64) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(value).map_err(|_| unreadable("its header has too large a number"));
            }
        }
        Err(unreadable("its header has too long a number"))
    }

    fn read_byte(&mut self) -> Result<u8> {
        let mut byte = [0];
        self.from.read_exact(&mut byte)?;
        self.length += 1;
        Ok(byte[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header of a dictionary of 3 values with 300 bytes, stored in 20, and a checksum.
    const SOUND: [u8; 16] =
        [0x15, 4, 0x15, 0xd8, 0x04, 0x15, 40, 0x15, 7, 0x3c, 0x15, 6, 0x15, 0, STOP, STOP];

    fn problem(header: &[u8]) -> String {
        PageHeader::read(header).expect_err("it is unsound").to_string()
    }

    #[test]
    fn a_header_is_read_without_what_follows() {
        let mut bytes = SOUND.to_vec();
        bytes.extend([0x15; 9]);
        let header = PageHeader::read(&bytes[..]).unwrap();
        assert_eq!(header, PageHeader { length: 16, decompressed: 300, stored: 20, dictionary_values: 3 });
    }

    /// A page of data: a struct with a struct of statistics, which have texts, numbers and flags.
    #[test]
    fn fields_that_do_not_matter_are_skipped() {
        let statistics = [0x5c, 0x18, 2, b'a', b'b', 0x16, 0x80, 1, 0x11, 0x12, STOP];
        let mut header = vec![0x15, 0, 0x15, 2, 0x15, 4, 0x2c, 0x15, 10];
        header.extend(statistics);
        header.extend([STOP, STOP]);
        let length = header.len() as u64;
        let read = PageHeader::read(&header[..]).unwrap();
        assert_eq!(read, PageHeader { length, decompressed: 1, stored: 2, dictionary_values: 0 });
    }

    #[test]
    fn pages_and_dictionaries_for_which_the_decoder_would_allocate_too_much_are_refused() {
        let page = |decompressed, stored, dictionary_values| {
            let header = PageHeader { length: 20, decompressed, stored, dictionary_values };
            header.page_bytes().map_err(|error| error.to_string())
        };
        let most = READ_BYTES_MAX as u64;
        assert_eq!((page(300, 20, 0), page(0, 20, 0), page(most, 1, 0)), (Ok(300), Ok(20), Ok(most)));
        assert!(page(most + 1, 1, 0).is_err_and(|error| error.ends_with("it expands to 268435457 bytes")));
        assert_eq!(page(300, 20, 300), Ok(300));
        let error = page(300, 20, 301).unwrap_err();
        assert!(error.ends_with("it is a dictionary of 301 values in 300 bytes"), "{error}");
        assert_eq!(page(4 << 20, 20, DICTIONARY_VALUES_MAX), Ok(4 << 20));
        assert!(page(4 << 20, 20, DICTIONARY_VALUES_MAX + 1).is_err());
    }

    #[test]
    fn a_header_that_the_decoder_might_read_differently_is_refused() {
        // The length decompressed once more, by its number.
        assert!(problem(&[0x15, 4, 0x15, 2, 0x15, 2, 0x05, 4, 0x80, 1]).ends_with("do not ascend"));
        assert!(problem(&[0x15, 4, 0x16, 2]).ends_with("of another type"));
        assert!(problem(&[0x15, 4, 0x15, 3]).ends_with("a negative length"));
        assert!(problem(&[0x15, 4, 0x15, 0x80, 0x80, 0x80, 0x80, 0x10]).ends_with("too large a number"));
        assert!(problem(&[0x15, 4, 0x15, 0x80, 0x80, 0x80, 0x80, 0x80, 0]).ends_with("too long a number"));
        assert!(problem(&[0x19, 4]).ends_with("of an unknown type"));
        assert!(problem(&[0x1c, 0x1c, 0x1c, 0x1c, 0x1c]).ends_with("of an unknown type"), "it is too deep");
        assert!(problem(&[0x18, 9, 1]).ends_with("its header is cut"));
        for length in 0..SOUND.len() {
            assert!(PageHeader::read(&SOUND[..length]).is_err(), "{length}");
        }
    }
}
