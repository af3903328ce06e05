//! One column: its position, how its values are stored, and what they mean.

use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result as Decoded};
use parquet::file::statistics::Statistics;
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};
use pitlane_engine::id::SecurityId;
use pitlane_engine::terms::Side;
use pitlane_engine::text;
use pitlane_engine::time::{NS_PER_MS, Timestamp};
use pitlane_protocols::rest::Moment;

use crate::column_role::ColumnRole;
use crate::entry::{nearest, rescaled, side_of};
use crate::symbols::Symbols;

const NS_PER_US: i64 = 1_000;
/// Longest text of a time or a number, in bytes. A dictionary may repeat a text of megabytes for
/// every row at no cost in file size.
const TEXT_BYTES_MAX: usize = 64;

#[derive(Clone, Debug)]
pub(super) struct ParquetColumn {
    name: &'static str,
    /// Position in the file.
    nth: usize,
    /// Whether it is an unsigned integer of 32 bits.
    is_unsigned: bool,
    /// Decimals of an integer that represents a decimal.
    decimals: u32,
    /// Nanoseconds per unit, for a time.
    unit_ns: i64,
}

impl ParquetColumn {
    /// Finds the column of this name.
    pub(super) fn find(schema: &SchemaDescriptor, name: &'static str) -> Result<ParquetColumn, String> {
        let role = ColumnRole::of(name);
        let mut columns = schema.columns().iter().enumerate();
        let is_it = |column: &ColumnDescriptor| matches!(column.path().parts(), [only] if only == name);
        let (nth, column) =
            columns.find(|(_, column)| is_it(column)).ok_or_else(|| format!("there is no column {name}"))?;
        let unfit = || format!("{name}: {} cannot be read as that", words(column));
        let logical = column.logical_type_ref();
        let is_decimal = matches!(logical, Some(LogicalType::Decimal { .. }))
            || column.converted_type() == ConvertedType::DECIMAL;
        let is_fit = match (role, column.physical_type()) {
            (ColumnRole::Time | ColumnRole::Security, Physical::INT64 | Physical::INT32)
            | (_, Physical::BYTE_ARRAY) => !is_decimal,
            (ColumnRole::Time | ColumnRole::OptionalTime | ColumnRole::Security | ColumnRole::Side, _)
            | (ColumnRole::Number, Physical::BOOLEAN | Physical::INT96) => false,
            (ColumnRole::Number, Physical::INT32 | Physical::INT64 | Physical::FLOAT | Physical::DOUBLE) => {
                true
            }
            (ColumnRole::Number, Physical::FIXED_LEN_BYTE_ARRAY) => {
                is_decimal && (1..=16).contains(&column.type_length())
            }
        };
        if !is_fit || column.max_rep_level() > 0 || column.max_def_level() > 1 {
            return Err(unfit());
        }
        let unsigned =
            [ConvertedType::UINT_8, ConvertedType::UINT_16, ConvertedType::UINT_32, ConvertedType::UINT_64];
        Ok(ParquetColumn {
            name,
            nth,
            is_unsigned: column.physical_type() == Physical::INT32
                && unsigned.contains(&column.converted_type()),
            decimals: if is_decimal { u32::try_from(column.type_scale()).map_err(|_| unfit())? } else { 0 },
            unit_ns: unit_ns(column, role).ok_or_else(unfit)?,
        })
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn nth(&self) -> usize {
        self.nth
    }

    /// Returns the first and the last time of a row group, if the statistics contain them; only
    /// numeric times have them.
    pub(super) fn span(&self, statistics: &Statistics) -> Option<(Timestamp, Timestamp)> {
        let Statistics::Int64(values) = statistics else { return None };
        let time = |value: &i64| self.time(Some(ParquetCell::Whole(*value))).ok();
        Some((time(values.min_opt()?)?, time(values.max_opt()?)?))
    }

    pub(super) fn time(&self, cell: Option<ParquetCell<'_>>) -> Result<Timestamp, String> {
        let ns = match cell {
            Some(ParquetCell::Whole(value)) => {
                value.checked_mul(self.unit_ns).and_then(|ns| u64::try_from(ns).ok())
            }
            Some(ParquetCell::Text(bytes)) if bytes.len() > TEXT_BYTES_MAX => None,
            Some(ParquetCell::Text(bytes)) => match text::parse_u64(bytes) {
                Ok(ns) => Some(ns),
                Err(_) => {
                    let moment = std::str::from_utf8(bytes).ok().and_then(|text| Moment::parse(text).ok());
                    moment.map(|moment| moment.0.0)
                }
            },
            Some(ParquetCell::Float(_) | ParquetCell::Short(_) | ParquetCell::Wide(_)) => None,
            None => return Err("it is empty".to_string()),
        };
        ns.map(Timestamp).ok_or_else(|| "it is no time since 1970".to_string())
    }

    pub(super) fn security(
        &self,
        cell: Option<ParquetCell<'_>>,
        symbols: &mut Symbols,
    ) -> Result<SecurityId, String> {
        match cell {
            Some(ParquetCell::Text(name)) => symbols.find(name),
            Some(ParquetCell::Whole(id)) => symbols.number(self.whole(id)),
            Some(ParquetCell::Float(_) | ParquetCell::Short(_) | ParquetCell::Wide(_)) | None => {
                Err("security is empty".to_string())
            }
        }
    }

    pub(super) fn side(&self, cell: Option<ParquetCell<'_>>) -> Result<Side, String> {
        match cell {
            Some(ParquetCell::Text(text)) if text.len() <= TEXT_BYTES_MAX => side_of(text),
            _ => Err("side is empty".to_string()),
        }
    }

    /// Returns a number in units of 10⁻⁸; `None` if the cell is empty. NaN counts as empty too:
    /// pandas has no other marker.
    pub(super) fn number(&self, cell: Option<ParquetCell<'_>>) -> Result<Option<i64>, String> {
        let to_text = |error: text::TextError| error.to_string();
        match cell {
            None => Ok(None),
            Some(ParquetCell::Whole(value)) => self.decimal(self.whole(value) as i128).map(Some),
            Some(ParquetCell::Wide(bytes)) => self.decimal(wide(bytes)).map(Some),
            Some(ParquetCell::Float(value)) if value.is_nan() => Ok(None),
            Some(ParquetCell::Float(value)) => nearest(value).map(Some),
            Some(ParquetCell::Short(value)) if value.is_nan() => Ok(None),
            // The shortest text that represents the value gives what was written, not the
            // neighbouring float.
            Some(ParquetCell::Short(value)) => {
                text::parse_scaled(value.to_string().as_bytes()).map(Some).map_err(to_text)
            }
            Some(ParquetCell::Text([])) => Ok(None),
            Some(ParquetCell::Text(bytes)) if bytes.len() > TEXT_BYTES_MAX => {
                Err(format!("a number of {} bytes", bytes.len()))
            }
            Some(ParquetCell::Text(bytes)) => text::parse_scaled(bytes).map(Some).map_err(to_text),
        }
    }

    /// Converts a value that was stored as signed and is meant as unsigned.
    fn whole(&self, value: i64) -> i64 {
        if self.is_unsigned { value & 0xffff_ffff } else { value }
    }

    fn decimal(&self, value: i128) -> Result<i64, String> {
        rescaled(value, self.decimals)
    }
}

/// Decodes a big-endian signed integer.
fn wide(bytes: &[u8]) -> i128 {
    let sign = if bytes.first().is_some_and(|first| *first >= 0x80) { -1 } else { 0 };
    bytes.iter().fold(sign, |value, byte| value << 8 | *byte as i128)
}

fn unit_ns(column: &ColumnDescriptor, role: ColumnRole) -> Option<i64> {
    if role != ColumnRole::Time || column.physical_type() == Physical::BYTE_ARRAY {
        return Some(1);
    }
    match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Timestamp(time)), _) => Some(match time.unit {
            TimeUnit::MILLIS => NS_PER_MS as i64,
            TimeUnit::MICROS => NS_PER_US,
            TimeUnit::NANOS => 1,
        }),
        (_, ConvertedType::TIMESTAMP_MILLIS) => Some(NS_PER_MS as i64),
        (_, ConvertedType::TIMESTAMP_MICROS) => Some(NS_PER_US),
        (None | Some(LogicalType::Integer { .. }), _) if column.physical_type() == Physical::INT64 => Some(1),
        _ => None,
    }
}

fn words(column: &ColumnDescriptor) -> String {
    match column.logical_type_ref() {
        Some(logical) => format!("{:?} ({logical:?})", column.physical_type()),
        None => format!("{:?}", column.physical_type()),
    }
}

/// A value as it is stored.
#[derive(Clone, Copy, Debug)]
pub(super) enum ParquetCell<'a> {
    Whole(i64),
    Float(f64),
    Short(f32),
    Text(&'a [u8]),
    /// An integer of many bytes.
    Wide(&'a [u8]),
}

/// Some rows of every column.
#[derive(Debug)]
pub(super) struct ColumnBatch {
    columns: Vec<ColumnValues>,
    rows: usize,
}

#[derive(Debug, Default)]
struct ColumnValues {
    /// For each row, 1 if there is a value; empty if all rows have one.
    levels: Vec<i16>,
    /// Position of each row's value; used only while there are levels.
    places: Vec<u32>,
    stored: StoredValues,
}

#[derive(Debug, Default)]
enum StoredValues {
    #[default]
    Nothing,
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Text(Vec<ByteArray>),
    Wide(Vec<parquet::data_type::FixedLenByteArray>),
}

impl ColumnBatch {
    pub(super) fn new(columns: usize) -> ColumnBatch {
        ColumnBatch { columns: (0..columns).map(|_| ColumnValues::default()).collect(), rows: 0 }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn clear(&mut self) {
        self.rows = 0;
    }

    /// Reads the available rows, up to a bound.
    pub(super) fn read(&mut self, readers: &mut [ColumnReader], most: usize) -> Decoded<()> {
        let mut rows = None;
        for (values, reader) in self.columns.iter_mut().zip(readers) {
            let read = values.read(reader, most)?;
            if *rows.get_or_insert(read) != read {
                return Err(ParquetError::General("its columns are not of one length".to_string()));
            }
        }
        self.rows = rows.unwrap_or(0);
        Ok(())
    }

    /// Returns a cell; `None` if it is empty.
    #[inline]
    pub(super) fn cell(&self, column: usize, row: usize) -> Option<ParquetCell<'_>> {
        let values = &self.columns[column];
        let place = if values.levels.is_empty() {
            row
        } else if values.levels[row] > 0 {
            values.places[row] as usize
        } else {
            return None;
        };
        Some(match &values.stored {
            StoredValues::Nothing => return None,
            StoredValues::Int32(values) => ParquetCell::Whole(values[place] as i64),
            StoredValues::Int64(values) => ParquetCell::Whole(values[place]),
            StoredValues::Float(values) => ParquetCell::Short(values[place]),
            StoredValues::Double(values) => ParquetCell::Float(values[place]),
            StoredValues::Text(values) => ParquetCell::Text(values[place].data()),
            StoredValues::Wide(values) => ParquetCell::Wide(values[place].data()),
        })
    }
}

impl ColumnValues {
    fn read(&mut self, reader: &mut ColumnReader, most: usize) -> Decoded<usize> {
        self.levels.clear();
        // The type of the values is the column's, and never changes.
        macro_rules! read {
            ($reader:expr, $kind:path) => {{
                if !matches!(self.stored, $kind(_)) {
                    self.stored = $kind(Vec::new());
                }
                let $kind(values) = &mut self.stored else { return Ok(0) };
                values.clear();
                let (rows, count, _) = $reader.read_records(most, Some(&mut self.levels), None, values)?;
                (rows, count, values.len())
            }};
        }
        let (rows, count, held) = match reader {
            ColumnReader::Int32ColumnReader(reader) => read!(reader, StoredValues::Int32),
            ColumnReader::Int64ColumnReader(reader) => read!(reader, StoredValues::Int64),
            ColumnReader::FloatColumnReader(reader) => read!(reader, StoredValues::Float),
            ColumnReader::DoubleColumnReader(reader) => read!(reader, StoredValues::Double),
            ColumnReader::ByteArrayColumnReader(reader) => read!(reader, StoredValues::Text),
            ColumnReader::FixedLenByteArrayColumnReader(reader) => read!(reader, StoredValues::Wide),
            ColumnReader::BoolColumnReader(_) | ColumnReader::Int96ColumnReader(_) => {
                return Err(ParquetError::General("a column of another kind than it was".to_string()));
            }
        };
        self.places.clear();
        let mut place = 0;
        for level in &self.levels {
            self.places.push(place);
            place += u32::from(*level > 0);
        }
        let is_sound = held == count
            && if self.levels.is_empty() {
                count == rows
            } else {
                self.levels.len() == rows && place as usize == count
            };
        if !is_sound {
            return Err(ParquetError::General("a column has fewer values than rows".to_string()));
        }
        Ok(rows)
    }
}
