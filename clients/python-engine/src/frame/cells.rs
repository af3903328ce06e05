//! Columns of a batch as times, securities and scaled numbers.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use pitlane_engine::id::SecurityId;
use pitlane_engine::text;
use pitlane_engine::time::{NS_PER_MS, NS_PER_S, Timestamp};
use pitlane_market_data::entry::{nearest, rescaled};
use pitlane_market_data::symbols::Symbols;
use pitlane_protocols::rest::Moment;

use super::CellError;

const NS_PER_US: u64 = 1_000;

type Converted<T> = Result<T, CellError>;

pub(super) fn check_time(kind: &DataType) -> Result<(), ()> {
    let is_fit =
        matches!(kind, DataType::Timestamp(..) | DataType::Int64 | DataType::UInt64) || is_text(kind);
    if is_fit { Ok(()) } else { Err(()) }
}

pub(super) fn check_security(kind: &DataType) -> Result<(), ()> {
    let is_category = matches!(kind, DataType::Dictionary(_, values) if is_text(values));
    if is_category || kind.is_integer() || is_text(kind) { Ok(()) } else { Err(()) }
}

pub(super) fn check_number(kind: &DataType) -> Result<(), ()> {
    let is_decimal = matches!(kind, DataType::Decimal128(_, 0..));
    let is_float = matches!(kind, DataType::Float32 | DataType::Float64 | DataType::Null);
    if is_decimal || is_float || kind.is_integer() || is_text(kind) { Ok(()) } else { Err(()) }
}

fn is_text(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Converts a column of times.
pub(super) fn times(column: &ArrayRef, times: &mut Vec<Timestamp>) -> Converted<()> {
    times.clear();
    if is_text(column.data_type()) {
        return each_text(column, |cell| {
            let text = cell.ok_or_else(|| "it is empty".to_string())?;
            let ns = text::parse_u64(text.as_bytes()).ok();
            let ns = ns.or_else(|| Moment::parse(text).ok().map(|moment| moment.0.0));
            times.push(Timestamp(ns.ok_or_else(|| format!("{text:?} is no time since 1970"))?));
            Ok(())
        });
    }
    let mut unit_ns = 1;
    if let DataType::Timestamp(unit, _) = column.data_type() {
        unit_ns = match unit {
            TimeUnit::Second => NS_PER_S,
            TimeUnit::Millisecond => NS_PER_MS,
            TimeUnit::Microsecond => NS_PER_US,
            TimeUnit::Nanosecond => 1,
        };
    }
    each_whole(column, |cell| {
        let whole = cell.ok_or_else(|| "it is empty".to_string())?;
        let ns = u64::try_from(whole).ok().and_then(|whole| whole.checked_mul(unit_ns));
        times.push(Timestamp(ns.ok_or_else(|| format!("{whole} is no time since 1970"))?));
        Ok(())
    })
}

/// Converts a column of ids, symbols or categories.
pub(super) fn securities(
    column: &ArrayRef,
    symbols: &mut Symbols,
    securities: &mut Vec<SecurityId>,
) -> Converted<()> {
    securities.clear();
    let empty = || "it is empty".to_string();
    if let Some(categories) = column.as_any_dictionary_opt() {
        // Each category is looked up at most once in a batch.
        let mut names = Vec::new();
        each_text(categories.values(), |name| {
            names.push((name.map(str::to_string), None));
            Ok(())
        })?;
        return each_whole(categories.keys(), |key| {
            let place = usize::try_from(key.ok_or_else(empty)?).map_err(|_| empty())?;
            let (name, found) = names.get_mut(place).ok_or_else(empty)?;
            let id = match *found {
                Some(id) => id,
                None => symbols.find(name.as_deref().ok_or_else(empty)?.as_bytes())?,
            };
            *found = Some(id);
            securities.push(id);
            Ok(())
        });
    }
    if is_text(column.data_type()) {
        return each_text(column, |name| {
            securities.push(symbols.find(name.ok_or_else(empty)?.as_bytes())?);
            Ok(())
        });
    }
    each_whole(column, |id| {
        let id = i64::try_from(id.ok_or_else(empty)?).map_err(|_| "it is too large".to_string())?;
        securities.push(symbols.number(id)?);
        Ok(())
    })
}

/// Converts a column of numbers into units of 10⁻⁸; `None` for an empty cell. NaN counts as empty
/// too: pandas has no other marker.
pub(super) fn numbers(column: &ArrayRef, cells: &mut Vec<Option<i64>>) -> Converted<()> {
    cells.clear();
    if let Some(values) = column.as_primitive_opt::<Float64Type>() {
        return each(values.iter(), |value: Option<f64>| {
            cells.push(value.filter(|value| !value.is_nan()).map(nearest).transpose()?);
            Ok(())
        });
    }
    if let Some(values) = column.as_primitive_opt::<Float32Type>() {
        return each(values.iter(), |value: Option<f32>| {
            // The shortest text that represents the value gives what was written.
            let text = value.filter(|value| !value.is_nan()).map(|value| value.to_string());
            cells.push(text.map(|text| scaled(&text)).transpose()?);
            Ok(())
        });
    }
    if let DataType::Decimal128(_, scale) = column.data_type() {
        let decimals = u32::try_from(*scale).unwrap_or(0);
        return each(column.as_primitive::<Decimal128Type>().iter(), |value| {
            cells.push(value.map(|value| rescaled(value, decimals)).transpose()?);
            Ok(())
        });
    }
    if is_text(column.data_type()) {
        return each_text(column, |text| {
            cells.push(text.filter(|text| !text.is_empty()).map(scaled).transpose()?);
            Ok(())
        });
    }
    if column.data_type().is_null() {
        cells.resize(column.len(), None);
        return Ok(());
    }
    each_whole(column, |whole| {
        cells.push(whole.map(|whole| rescaled(whole, 0)).transpose()?);
        Ok(())
    })
}

fn scaled(text: &str) -> Result<i64, String> {
    text::parse_scaled(text.as_bytes()).map_err(|error| format!("{text:?}: {error}"))
}

/// Calls a function with each cell; an error gets the row of its cell.
fn each<T>(cells: impl Iterator<Item = T>, mut call: impl FnMut(T) -> Result<(), String>) -> Converted<()> {
    for (row, cell) in cells.enumerate() {
        call(cell).map_err(|problem| CellError { row, problem })?;
    }
    Ok(())
}

/// Calls a function with each cell of a column of texts.
fn each_text(column: &dyn Array, call: impl FnMut(Option<&str>) -> Result<(), String>) -> Converted<()> {
    if let Some(texts) = column.as_string_opt::<i32>() {
        return each(texts.iter(), call);
    }
    if let Some(texts) = column.as_string_opt::<i64>() {
        return each(texts.iter(), call);
    }
    match column.as_string_view_opt() {
        Some(texts) => each(texts.iter(), call),
        None => Err(unfit(column)),
    }
}

/// Calls a function with each cell of a column of whole numbers or times.
fn each_whole(column: &dyn Array, mut call: impl FnMut(Option<i128>) -> Result<(), String>) -> Converted<()> {
    macro_rules! try_types {
        ($($kind:ty),*) => {$(
            if let Some(values) = column.as_primitive_opt::<$kind>() {
                return each(values.iter(), |value| call(value.map(i128::from)));
            }
        )*};
    }
    try_types!(Int64Type, TimestampNanosecondType, TimestampMicrosecondType, TimestampMillisecondType);
    try_types!(
        TimestampSecondType,
        Int32Type,
        Int16Type,
        Int8Type,
        UInt64Type,
        UInt32Type,
        UInt16Type,
        UInt8Type
    );
    Err(unfit(column))
}

fn unfit(column: &dyn Array) -> CellError {
    CellError { row: 0, problem: format!("a column of type {} cannot be read as that", column.data_type()) }
}
