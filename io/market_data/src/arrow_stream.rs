//! Writes a table as an Arrow stream, with the types that pyarrow gives the columns of our Parquet
//! files.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Decimal128Array, RecordBatch, StringArray, TimestampNanosecondArray, UInt32Array,
};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Field, Schema};

use super::column_role::{ColumnRole, columns};
use super::entry::side_name;
use super::row_table::{DECIMAL_DIGITS, DECIMAL_PLACES, OptionalColumn, RowTable};

pub(crate) fn encode(table: &RowTable) -> Result<Vec<u8>, ArrowError> {
    let mut optionals = table.optionals.iter();
    let mut fields = Vec::new();
    let mut arrays = Vec::new();
    for (name, role) in columns(table.layout) {
        let array: ArrayRef = match role {
            ColumnRole::Time => {
                let times = TimestampNanosecondArray::from_iter_values(table.times.iter().copied());
                Arc::new(times.with_timezone("UTC"))
            }
            ColumnRole::Security => {
                let ids = table.securities.iter().map(|id| id.cast_unsigned());
                Arc::new(UInt32Array::from_iter_values(ids))
            }
            ColumnRole::Side => {
                let sides = table.sides.iter().map(|side| side_name(*side));
                Arc::new(StringArray::from_iter_values(sides))
            }
            ColumnRole::OptionalTime => {
                let times: TimestampNanosecondArray = cells(optionals.next()).collect();
                Arc::new(times.with_timezone("UTC"))
            }
            ColumnRole::Number => Arc::new(decimals(optionals.next())?),
        };
        fields.push(Field::new(name, array.data_type().clone(), role.is_optional()));
        arrays.push(array);
    }
    let schema = Arc::new(Schema::new(fields));
    let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
    if table.rows() > 0 {
        writer.write(&RecordBatch::try_new(schema, arrays)?)?;
    }
    writer.into_inner()
}

/// Returns the cells of a column, an empty one as `None`.
fn cells(column: Option<&OptionalColumn>) -> impl Iterator<Item = Option<i64>> {
    let (levels, values) = column.map_or((&[][..], &[][..]), |column| (&column.levels, &column.values));
    let mut values = values.iter().copied();
    levels.iter().map(move |level| if *level > 0 { values.next() } else { None })
}

fn decimals(column: Option<&OptionalColumn>) -> Result<Decimal128Array, ArrowError> {
    let cells: Decimal128Array = cells(column).map(|cell| cell.map(i128::from)).collect();
    cells.with_precision_and_scale(DECIMAL_DIGITS, DECIMAL_PLACES.cast_signed())
}
