//! The only file of a zip archive, read from the beginning without the directory at its end: public
//! archives of ticks have one file each.

use std::io::{self, BufRead, Read};

use flate2::Crc;
use flate2::bufread::DeflateDecoder;

const HEADER_BYTES: usize = 30;
const DIRECTORY: [u8; 4] = *b"PK\x01\x02";
const DESCRIPTOR: [u8; 4] = *b"PK\x07\x08";
const DEFLATE: u16 = 8;
const ENCRYPTED: u16 = 1;
/// The checksum follows the data.
const HAS_DESCRIPTOR: u16 = 8;

#[derive(Debug)]
pub(super) struct ZipMember<R> {
    decoder: DeflateDecoder<R>,
    sum: Crc,
    /// None: it follows the data.
    expected: Option<u32>,
    is_done: bool,
}

fn invalid(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem.to_string())
}

impl<R: BufRead> ZipMember<R> {
    pub(super) fn new(mut file: R) -> io::Result<ZipMember<R>> {
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header)?;
        let short = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let (flags, method) = (short(6), short(8));
        if flags & ENCRYPTED != 0 {
            return Err(invalid("the zip archive is encrypted"));
        }
        if method != DEFLATE {
            return Err(invalid(&format!("the zip archive uses method {method}, only deflate (8) is read")));
        }
        let names = u64::from(short(26)) + u64::from(short(28));
        io::copy(&mut file.by_ref().take(names), &mut io::sink())?;
        let sum = u32::from_le_bytes([header[14], header[15], header[16], header[17]]);
        let expected = (flags & HAS_DESCRIPTOR == 0).then_some(sum);
        Ok(ZipMember { decoder: DeflateDecoder::new(file), sum: Crc::new(), expected, is_done: false })
    }

    /// Checks the sum, and that no other file follows.
    fn finish(&mut self) -> io::Result<()> {
        let file = self.decoder.get_mut();
        let word = |file: &mut R| {
            let mut word = [0; 4];
            file.read_exact(&mut word).map(|()| word).map_err(|_| invalid("the zip archive is cut"))
        };
        let mut next = word(file)?;
        let expected = match self.expected {
            Some(sum) => sum,
            None => {
                let sum = if next == DESCRIPTOR { word(file)? } else { next };
                // Two sizes of four bytes, or of eight.
                let _sizes = (word(file)?, word(file)?);
                next = word(file)?;
                if next != DIRECTORY {
                    let _rest = word(file)?;
                    next = word(file)?;
                }
                u32::from_le_bytes(sum)
            }
        };
        if expected != self.sum.sum() {
            return Err(invalid("the checksum of the zip archive does not fit"));
        }
        if next != DIRECTORY {
            return Err(invalid("the zip archive has more than one file"));
        }
        Ok(())
    }
}

impl<R: BufRead> Read for ZipMember<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.decoder.read(into)?;
        self.sum.update(&into[..read]);
        if read == 0 && !into.is_empty() && !self.is_done {
            self.is_done = true;
            self.finish()?;
        }
        Ok(read)
    }
}
