//! Tables as Parquet and as Arrow streams, read back.

use super::*;
use crate::row_layout::QUOTE_NUMBERS;

/// Returns rows with a full, a partly empty and an empty set of cells.
fn ticks() -> impl Iterator<Item = (Timestamp, SecurityId, [Option<i64>; 6])> {
    let rows = [
        (1_700_000_000_000_000_001, 1, [Some(23_251_000_000), Some(1), Some(i64::MAX), Some(-5), None, None]),
        (1_700_000_000_000_000_002, u32::MAX, [None, None, None, None, Some(7), Some(0)]),
        (1_700_000_000_000_000_002, 1, [None; 6]),
    ];
    rows.into_iter().map(|(at, security, cells)| (Timestamp(at), SecurityId(security), cells))
}

/// Returns a quote with all cells and one of a security that has no price.
fn quotes() -> impl Iterator<Item = QuoteRow> {
    let whole = QuoteRow {
        at: Some(Timestamp(1_700_000_000_000_000_001)),
        security: SecurityId(7),
        numbers: std::array::from_fn(|nth| i64::try_from(nth).ok()),
        previous_day: Some(Timestamp(1_699_920_000_000_000_000)),
    };
    let empty =
        QuoteRow { at: None, security: SecurityId(8), numbers: [None; QUOTE_NUMBERS], previous_day: None };
    [whole, empty].into_iter()
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_the_feature_names_it() {
    for format in [ColumnFormat::Parquet, ColumnFormat::ArrowStream] {
        for encoded in [format.encode(RowLayout::Ticks, ticks()), format.encode_quotes(quotes())] {
            assert!(encoded.is_err_and(|error| error.to_string().contains("`parquet`")));
        }
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
    use crate::row_layout::QUOTES;

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
    fn quotes_may_lack_everything_but_their_security() {
        let (fields, batches) = read_arrow(&ColumnFormat::ArrowStream.encode_quotes(quotes()).unwrap());
        let names: Vec<&str> = fields.iter().map(|field| field.split('"').nth(1).unwrap()).collect();
        assert_eq!(names.join(","), QUOTES);
        let times = |nth: usize| -> Vec<Option<i64>> {
            let times = batches[0].column(nth).as_primitive::<TimestampNanosecondType>();
            assert_eq!(times.timezone(), Some("UTC"));
            times.iter().collect()
        };
        assert_eq!(times(0), [Some(1_700_000_000_000_000_001), None]);
        assert_eq!(times(13), [Some(1_699_920_000_000_000_000), None]);
        let securities = batches[0].column(1).as_primitive::<UInt32Type>();
        assert_eq!(securities.values().as_ref(), [7, 8]);
        for (number, nth) in (0..11).zip(2..13) {
            let cells: Vec<_> = batches[0].column(nth).as_primitive::<Decimal128Type>().iter().collect();
            assert_eq!(cells, [Some(number), None], "{}", names[nth]);
        }
        let cells = read_parquet(ColumnFormat::Parquet.encode_quotes(quotes()).unwrap());
        assert_eq!(cells[0][1..4], ["7", "0.00000000", "0.00000001"]);
        assert_eq!(cells[0][12], "0.00000010");
        assert!(cells[0].iter().all(|cell| cell != "null"), "{cells:?}");
        assert_eq!(cells[1][1], "8");
        assert_eq!(cells[1].iter().filter(|cell| *cell == "null").count(), 13);
    }

    #[test]
    fn a_time_that_no_column_can_hold_is_an_error() {
        let rows = [(Timestamp::MAX, SecurityId(1), [None; 5])];
        let encoded = ColumnFormat::Parquet.encode(RowLayout::Bars, rows.into_iter());
        let late = |quote| QuoteRow { previous_day: Some(Timestamp::MAX), ..quote };
        for encoded in [encoded, ColumnFormat::ArrowStream.encode_quotes(quotes().map(late))] {
            assert!(encoded.is_err_and(|error| error.to_string().contains("2262")));
        }
    }

    #[test]
    fn levels_have_their_sides() {
        let mut table = RowTable::new(TableLayout::Rows(RowLayout::Levels));
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
        let rows = [RowLayout::Ticks, RowLayout::Levels, RowLayout::Bars];
        let headers = rows.map(|layout| (TableLayout::Rows(layout), layout.header()));
        for (layout, header) in headers.into_iter().chain([(TableLayout::Quotes, QUOTES)]) {
            let table = RowTable::new(layout);
            let (fields, batches) = read_arrow(&arrow_stream::encode(&table).unwrap());
            assert_eq!(fields.len(), header.split(',').count());
            assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
            assert!(read_parquet(table::encode(&table).unwrap()).is_empty());
        }
    }
}
