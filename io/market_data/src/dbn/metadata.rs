//! The metadata at the beginning of a file: version, schema, and which instrument id is which
//! symbol on which day.
//!
//! ```text
//! "DBN" · version 1 · length 4 · dataset 16 · schema 2 · start 8 · end 8 · limit 8 · [record count 8: version 1]
//! · stype_in 1 · stype_out 1 · ts_out 1 · [symbol length 2: from version 2] · reserved to 100
//! · schema definition 4 · symbols · partial · not found · mappings
//! ```

use std::collections::BTreeMap;

use pitlane_engine::id::SecurityId;
use pitlane_engine::text;
use pitlane_engine::time::{Day, Timestamp};

use crate::DataError;
use crate::foreign_symbols::{ForeignSymbols, no_symbol_is_known};
use crate::input::{RecordStream, field};

/// Version and length.
const PREFIX_BYTES: usize = 8;
const FIXED_BYTES: usize = 100;
const VERSIONS: std::ops::RangeInclusive<u8> = 1..=3;
/// Longest metadata: those of a million instruments in version 3.
const METADATA_BYTES_MAX: usize = 256 << 20;
/// Lengths of symbols.
const SYMBOL_BYTES_V1: usize = 22;
const SYMBOL_BYTES: usize = 71;
/// Symbology by instrument id.
const INSTRUMENT_ID: u8 = 0;
/// The length of a symbol stands here from version 2 on.
const SYMBOL_BYTES_AT: usize = 45;

/// Securities of instrument ids, each from one time to another.
#[derive(Debug, Default)]
pub(super) struct InstrumentMap(BTreeMap<u32, Vec<(Timestamp, Timestamp, SecurityId)>>);

impl InstrumentMap {
    #[inline]
    pub(super) fn find(&self, instrument: u32, at: Timestamp) -> Option<SecurityId> {
        let spans = self.0.get(&instrument)?;
        spans.iter().find(|(from, to, _)| (*from..*to).contains(&at)).map(|(.., security)| *security)
    }

    /// Sets the only security of an instrument id; `None` if it has none.
    pub(super) fn set(&mut self, instrument: u32, security: Option<SecurityId>) {
        match security {
            Some(security) => self.0.insert(instrument, vec![(Timestamp::ZERO, Timestamp::MAX, security)]),
            None => self.0.remove(&instrument),
        };
    }

    fn add(&mut self, instrument: u32, span: (Timestamp, Timestamp, SecurityId)) {
        self.0.entry(instrument).or_default().push(span);
    }
}

#[derive(Debug)]
pub(super) struct DbnMetadata {
    /// Length of the symbols in records of mappings.
    pub(super) symbol_bytes: usize,
    pub(super) version: u8,
    pub(super) instruments: InstrumentMap,
}

/// Returns whether a file begins with metadata.
pub(crate) fn is_dbn(head: &[u8]) -> bool {
    matches!(head, [b'D', b'B', b'N', version, ..] if VERSIONS.contains(version))
}

impl DbnMetadata {
    pub(super) fn read(
        stream: &mut RecordStream,
        symbols: &ForeignSymbols,
    ) -> Result<DbnMetadata, DataError> {
        let prefix = stream.peek(PREFIX_BYTES)?;
        let &[b'D', b'B', b'N', version, a, b, c, d] = prefix else {
            return Err(stream.fault("it does not begin as a file of Databento (DBN) does"));
        };
        if !VERSIONS.contains(&version) {
            let problem = format!("its version of DBN is {version}; versions 1 to 3 are read");
            return Err(stream.fault(&problem));
        }
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if !(FIXED_BYTES..=METADATA_BYTES_MAX).contains(&length) {
            let problem = format!("its metadata cannot have {length} bytes");
            return Err(stream.fault(&problem));
        }
        let bytes = stream.peek(PREFIX_BYTES + length)?;
        if bytes.len() < PREFIX_BYTES + length {
            let problem = format!("its metadata have {length} bytes and are cut");
            return Err(stream.fault(&problem));
        }
        let parsed = DbnMetadata::parse(version, &bytes[PREFIX_BYTES..], symbols);
        let metadata = parsed.map_err(|problem| stream.fault(&problem))?;
        stream.skip(PREFIX_BYTES + length);
        Ok(metadata)
    }

    fn parse(version: u8, bytes: &[u8], symbols: &ForeignSymbols) -> Result<DbnMetadata, String> {
        let (stypes_at, symbol_bytes) = match version {
            1 => (50, SYMBOL_BYTES_V1),
            _ => (42, usize::from(u16::from_le_bytes(field(bytes, SYMBOL_BYTES_AT)))),
        };
        if version > 1 && symbol_bytes != SYMBOL_BYTES {
            return Err(format!("a symbol has {SYMBOL_BYTES} bytes in DBN {version}, not {symbol_bytes}"));
        }
        let [stype_in, stype_out] = field(bytes, stypes_at);
        let mut lists = Lists { rest: &bytes[FIXED_BYTES..], symbol_bytes };
        let definition = lists.number()?;
        if definition != 0 {
            return Err("its metadata have a schema definition, which no version has".to_string());
        }
        let requested = lists.symbols()?;
        let _partial = lists.symbols()?;
        let _not_found = lists.symbols()?;
        let mut instruments = InstrumentMap::default();
        let (mut has_ids, count) = (false, lists.number()?);
        for _ in 0..count {
            let symbol = lists.symbol()?;
            for _ in 0..lists.number()? {
                let (from, to, other) = (lists.day()?, lists.day()?, lists.symbol()?);
                // One of the two is the instrument id, in decimal; an empty one is not resolved.
                let (id, name) = if stype_out == INSTRUMENT_ID { (other, symbol) } else { (symbol, other) };
                let Ok(id) = id.parse::<u32>() else { continue };
                has_ids = true;
                if let Some(security) = symbols.find(name)? {
                    instruments.add(id, (from.start(), to.start(), security));
                }
            }
        }
        if count > 0 && !has_ids && stype_in != INSTRUMENT_ID && stype_out != INSTRUMENT_ID {
            return Err("its symbols are not mapped to instrument ids".to_string());
        }
        if count > 0 && instruments.0.is_empty() {
            return Err(no_symbol_is_known(requested.into_iter()));
        }
        Ok(DbnMetadata { symbol_bytes, version, instruments })
    }
}

/// The lists of variable length behind the fixed fields.
struct Lists<'a> {
    rest: &'a [u8],
    symbol_bytes: usize,
}

impl<'a> Lists<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or("its metadata end within a list")?;
        self.rest = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32, String> {
        self.take(4).map(|bytes| u32::from_le_bytes(field(bytes, 0)))
    }

    fn symbol(&mut self) -> Result<&'a str, String> {
        self.take(self.symbol_bytes).and_then(c_text)
    }

    fn symbols(&mut self) -> Result<Vec<&'a str>, String> {
        let count = self.number()? as usize;
        let bytes = self.take(count.saturating_mul(self.symbol_bytes))?;
        bytes.chunks(self.symbol_bytes).map(c_text).collect()
    }

    /// Returns a day such as 20240131.
    fn day(&mut self) -> Result<Day, String> {
        let number = self.number()?;
        let (year, month, day) = (number / 10_000, number / 100 % 100, number % 100);
        let days = i32::try_from(year).ok().and_then(|year| text::days_of(year, month, day));
        days.map(Day).ok_or_else(|| format!("{number} is no day of the form 20240131"))
    }
}

/// Returns a text that ends with a zero or with its field.
pub(super) fn c_text(bytes: &[u8]) -> Result<&str, String> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    std::str::from_utf8(&bytes[..end]).map_err(|_| "a symbol is no text".to_string())
}
