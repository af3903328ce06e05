//! Writes tables as groups of rows of a Parquet file.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::column_role::{ColumnRole, TableLayout, columns};
use crate::entry::side_name;
use crate::row_table::{DECIMAL_DIGITS, DECIMAL_PLACES, RowTable};

/// Returns a table as a whole file.
pub(crate) fn encode(table: &RowTable) -> Result<Vec<u8>> {
    let mut writer = begin(table.layout, Vec::new())?;
    if table.rows() > 0 {
        write_group(table, &mut writer)?;
    }
    writer.into_inner()
}

/// Begins a file.
pub(super) fn begin<W: Write + Send>(layout: TableLayout, to: W) -> Result<SerializedFileWriter<W>> {
    let mut schema = "message rows {".to_string();
    for (name, role) in columns(layout) {
        let column = match role {
            ColumnRole::Time => format!("REQUIRED INT64 {name} (TIMESTAMP(NANOS,true));"),
            ColumnRole::OptionalTime => format!("OPTIONAL INT64 {name} (TIMESTAMP(NANOS,true));"),
            ColumnRole::Security => format!("REQUIRED INT32 {name} (INTEGER(32,false));"),
            ColumnRole::Side => format!("REQUIRED BINARY {name} (STRING);"),
            ColumnRole::Number => {
                format!("OPTIONAL INT64 {name} (DECIMAL({DECIMAL_DIGITS},{DECIMAL_PLACES}));")
            }
        };
        schema.push_str(&column);
    }
    schema.push('}');
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    SerializedFileWriter::new(to, Arc::new(parse_message_type(&schema)?), Arc::new(properties))
}

/// Adds a table to a file of its layout.
pub(super) fn write_group<W: Write + Send>(
    table: &RowTable,
    writer: &mut SerializedFileWriter<W>,
) -> Result<()> {
    let mut group = writer.next_row_group()?;
    let mut optionals = table.optionals.iter();
    for (_, role) in columns(table.layout) {
        let missing = || ParquetError::General("a column is missing".to_string());
        let mut column = group.next_column()?.ok_or_else(missing)?;
        match role {
            ColumnRole::Time => column.typed::<Int64Type>().write_batch(&table.times, None, None)?,
            ColumnRole::Security => column.typed::<Int32Type>().write_batch(&table.securities, None, None)?,
            ColumnRole::Side => {
                let sides: Vec<ByteArray> = table.sides.iter().map(|side| side_name(*side).into()).collect();
                column.typed::<ByteArrayType>().write_batch(&sides, None, None)?
            }
            ColumnRole::OptionalTime | ColumnRole::Number => {
                let cells = optionals.next().ok_or_else(missing)?;
                column.typed::<Int64Type>().write_batch(&cells.values, Some(&cells.levels), None)?
            }
        };
        column.close()?;
    }
    group.close()?;
    Ok(())
}
