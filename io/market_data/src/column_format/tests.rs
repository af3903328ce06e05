//! Tables as Parquet and as Arrow streams, read back.

use super::*;

/// Returns rows with a full, a partly empty and an empty set of cells.
fn ticks() -> impl Iterator<Item = (Timestamp, SecurityId, [Option<i64>; 6])> {
    let rows = [
        (1_700_000_000_000_000_001, 1, [Some(23_251_000_000), Some(1), Some(i64::MAX), Some(-5), None, None]),
        (1_700_000_000_000_000_002, u32::MAX, [None, None, None, None, Some(7), Some(0)]),
        (1_700_000_000_000_000_002, 1, [None; 6]),
    ];
    rows.into_iter().map(|(at, security, cells)| (Timestamp(at), SecurityId(security), cells))
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_the_feature_names_it() {
    for format in [ColumnFormat::Parquet, ColumnFormat::ArrowStream] {
        let encoded = format.encode(RowLayout::Ticks, ticks());
        assert!(encoded.is_err_and(|error| error.to_string().contains("`parquet`")));
    }
}

#[cfg(feature = "parquet")]
mod built {
    use arrow_array::RecordBatch;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Decimal128Type, TimestampNanosecondType, UInt32Type};
    use arrow_ipc::reader::StreamReader;
    use bytes::Bytes;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use pitlane_engine::terms::Side;

    use super::*;

    fn read_arrow(bytes: &[u8]) -> (Vec<String>, Vec<RecordBatch>) {
        let reader = StreamReader::try_new(bytes, None).unwrap();
        let fields = reader.schema().fields().iter().map(|field| field.to_string()).collect();
        (fields, reader.map(Result::unwrap).collect())
    }

    /// Returns every cell of a Parquet file as text.
    fn read_parquet(bytes: Vec<u8>) -> Vec<Vec<String>> {
        let reader = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
        let cell = |(_, field): (&String, &Field)| field.to_string();
        let rows = reader.get_row_iter(None).unwrap();
        rows.map(|row| row.unwrap().get_column_iter().map(cell).collect()).collect()
    }

    #[test]
    fn an_arrow_stream_has_the_rows_exactly() {
        let bytes = ColumnFormat::ArrowStream.encode(RowLayout::Ticks, ticks()).unwrap();
        let (fields, batches) = read_arrow(&bytes);
        let names: Vec<&str> = fields.iter().map(|field| field.split('"').nth(1).unwrap()).collect();
        assert_eq!(names.join(","), RowLayout::Ticks.header());
        let [batch] = &batches[..] else { panic!("{} batches", batches.len()) };
        let times = batch.column(0).as_primitive::<TimestampNanosecondType>();
        let first = 1_700_000_000_000_000_001;
        assert_eq!(times.values().as_ref(), [first, first + 1, first + 1]);
        assert_eq!(times.timezone(), Some("UTC"));
        let securities = batch.column(1).as_primitive::<UInt32Type>();
        assert_eq!(securities.values().as_ref(), [1, u32::MAX, 1]);
        let cells = |nth: usize| -> Vec<Option<i128>> {
            batch.column(nth).as_primitive::<Decimal128Type>().iter().collect()
        };
        assert_eq!(cells(2), [Some(23_251_000_000), None, None]);
        assert_eq!(cells(4), [Some(i64::MAX.into()), None, None]);
        assert_eq!(cells(6), [None, Some(7), None]);
        assert_eq!(cells(7), [None, Some(0), None]);
        let bid = batch.column(2).as_primitive::<Decimal128Type>();
        assert_eq!((bid.precision(), bid.scale(), bid.value_as_string(0).as_str()), (18, 8, "232.51000000"));
    }

    #[test]
    fn a_parquet_file_has_the_rows_exactly() {
        let cells = read_parquet(ColumnFormat::Parquet.encode(RowLayout::Ticks, ticks()).unwrap());
        assert_eq!(cells.len(), 3);
        assert_eq!(cells[0][1..4], ["1", "232.51000000", "0.00000001"]);
        assert_eq!(cells[0][5..], ["-0.00000005", "null", "null"]);
        assert_eq!(cells[1][1..3], ["4294967295", "null"]);
        assert_eq!(cells[1][6..], ["0.00000007", "0.00000000"]);
        assert!(cells[2][2..].iter().all(|cell| cell == "null"));
    }

    #[test]
    fn a_time_that_no_column_can_hold_is_an_error() {
        let rows = [(Timestamp::MAX, SecurityId(1), [None; 5])];
        let encoded = ColumnFormat::Parquet.encode(RowLayout::Bars, rows.into_iter());
        assert!(encoded.is_err_and(|error| error.to_string().contains("2262")));
    }

    #[test]
    fn levels_have_their_sides() {
        let mut table = RowTable::new(RowLayout::Levels);
        for (at, side) in [(1, Side::Buy), (2, Side::Sell)] {
            table.push(Timestamp(at), SecurityId(3), &[Some(100_000_000), Some(0)]).unwrap();
            table.sides.push(side);
        }
        let (_, batches) = read_arrow(&arrow_stream::encode(&table).unwrap());
        let sides: Vec<_> = batches[0].column(2).as_string::<i32>().iter().collect();
        assert_eq!(sides, [Some("B"), Some("A")]);
        let cells = read_parquet(table::encode(&table).unwrap());
        assert_eq!((cells[0][2].as_str(), cells[1][2].as_str()), ("\"B\"", "\"A\""));
    }

    #[test]
    fn no_rows_are_a_valid_file_and_a_valid_stream() {
        for layout in [RowLayout::Ticks, RowLayout::Levels, RowLayout::Bars] {
            let table = RowTable::new(layout);
            let (fields, batches) = read_arrow(&arrow_stream::encode(&table).unwrap());
            assert_eq!(fields.len(), layout.header().split(',').count());
            assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
            assert!(read_parquet(table::encode(&table).unwrap()).is_empty());
        }
    }
}
