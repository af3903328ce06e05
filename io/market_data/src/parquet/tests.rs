//! Tests with files written by the crate's own writer, and some written by others
//! (`tests/data/ticks/make.py`): each must give the rows of the equivalent CSV file.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{
    ByteArray, ByteArrayType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, FloatType, Int32Type,
    Int64Type,
};
use parquet::file::metadata::{ParquetMetaDataWriter, RowGroupMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use pitlane_config::refdata;
use pitlane_engine::time::Timestamp;

use super::budget::ReadBudget;
use super::writer::RowWriter;
use crate::bars::BarPath;
use crate::file::DataFile;
use crate::recorded_rows::RecordedRows;
use crate::row_layout::{BARS, TICKS};
use crate::{DataError, ReadOptions, TickRow, merge};

const ALL: (Timestamp, Timestamp) = (Timestamp::ZERO, Timestamp::MAX);
/// 2026-11-02T14:30:00Z.
const START: u64 = 1_793_629_800_000_000_000;

fn options() -> ReadOptions {
    let bars = BarPath { interval_ns: 60_000_000_000, volume_bp: 1_000 };
    ReadOptions { bars, files: Default::default() }
}

struct TestFolder(PathBuf);

impl TestFolder {
    fn new(name: &str) -> TestFolder {
        let path = std::env::temp_dir().join(format!("pitlane-parquet-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        TestFolder(path)
    }

    fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn read_in(path: &Path, range: (Timestamp, Timestamp)) -> Result<Vec<TickRow>, DataError> {
    let reference = Arc::new(refdata::shipped().unwrap());
    let mut file = DataFile::open(path, &reference, &options(), range)?;
    let mut rows = Vec::new();
    while let Some(row) = file.next_row()? {
        rows.push(row);
    }
    Ok(rows)
}

fn read(path: &Path) -> Result<Vec<TickRow>, DataError> {
    read_in(path, ALL)
}

type Write<'a> = &'a dyn Fn(usize, &mut SerializedColumnWriter<'_>);

/// Creates a file of this schema with `groups` row groups; `write` fills a column of one.
fn made(
    folder: &TestFolder,
    schema: &str,
    compression: Compression,
    groups: usize,
    write: Write<'_>,
) -> PathBuf {
    made_with(folder, schema, WriterProperties::builder().set_compression(compression), groups, write)
}

fn made_with(
    folder: &TestFolder,
    schema: &str,
    properties: WriterPropertiesBuilder,
    groups: usize,
    write: Write<'_>,
) -> PathBuf {
    let path = folder.0.join("made.parquet");
    let schema = parse_message_type(&format!("message made {{ {schema} }}")).unwrap();
    let properties = properties.build();
    let file = fs::File::create(&path).unwrap();
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)).unwrap();
    for group in 0..groups {
        let mut row_group = writer.next_row_group().unwrap();
        let mut nth = group * 100;
        while let Some(mut column) = row_group.next_column().unwrap() {
            write(nth, &mut column);
            column.close().unwrap();
            nth += 1;
        }
        row_group.close().unwrap();
    }
    writer.close().unwrap();
    path
}

const CSV: &str = "1793629800000000000,1,232.51,100,232.53,200,,\n\
                   1793629800250000000,2,,,,,415.1,7\n\
                   1793629801000000000,1,232.5,300,232.52,100,232.505,12.5\n";

fn expected(folder: &TestFolder) -> Vec<TickRow> {
    read(&folder.file("expected.csv", format!("{TICKS}\n{CSV}").as_bytes())).unwrap()
}

#[test]
fn default_files_of_other_libraries_are_read() {
    let folder = TestFolder::new("others");
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/ticks");
    for name in ["pandas", "polars"] {
        assert_eq!(read(&data.join(format!("{name}.parquet"))).unwrap(), expected(&folder), "{name}");
    }
    let bars =
        format!("{BARS}\n{START},1,10,12,9,11,4000\n{},1,11,11.5,10.5,11.25,2000\n", START + 60_000_000_000);
    let bars = read(&folder.file("bars.csv", bars.as_bytes())).unwrap();
    assert_eq!((read(&data.join("bars.parquet")).unwrap(), bars.len()), (bars, 8));
}

#[test]
fn files_of_the_recorder_are_read() {
    let folder = TestFolder::new("recorder");
    let path = folder.0.join("ticks.parquet");
    for round in 1..=2 {
        let mut writer = RowWriter::new(&path, RecordedRows::Ticks).unwrap();
        CSV.lines().for_each(|line| writer.push(line).unwrap());
        assert!(writer.push("1,2").is_err());
        drop(writer);
        let mut writer = RowWriter::new(&path, RecordedRows::Ticks).unwrap();
        CSV.lines().for_each(|line| writer.push(line).unwrap());
        writer.close().unwrap();
        let file = folder.0.join(format!("ticks-{round:06}.parquet"));
        assert_eq!(read(&file).unwrap(), expected(&folder));
    }
    assert!(
        fs::read_dir(&folder.0)
            .unwrap()
            .all(|entry| { entry.unwrap().path().extension().is_some_and(|extension| extension != "part") })
    );
}

/// However a number is stored, it gives the decimal that was written.
#[test]
fn numbers_are_decimals_floats_or_texts() {
    let folder = TestFolder::new("kinds");
    let schema = "REQUIRED BYTE_ARRAY time (STRING); OPTIONAL BYTE_ARRAY security (STRING); OPTIONAL FLOAT bid;
        REQUIRED DOUBLE bidSize; OPTIONAL FIXED_LEN_BYTE_ARRAY(9) ask (DECIMAL(20,10)); REQUIRED INT32 askSize (DECIMAL(9,1));
        OPTIONAL BYTE_ARRAY last (STRING); OPTIONAL INT32 lastSize (INTEGER(32,false)); REQUIRED INT64 other;";
    let texts = |texts: &[&str]| texts.iter().map(|text| ByteArray::from(*text)).collect::<Vec<_>>();
    let write = |nth: usize, column: &mut SerializedColumnWriter<'_>| {
        let both = Some(&[1, 1][..]);
        let written = match nth {
            0 => column.typed::<ByteArrayType>().write_batch(
                &texts(&["2026-11-02T14:30:00Z", "1793629800000000001"]),
                None,
                None,
            ),
            1 => column.typed::<ByteArrayType>().write_batch(&texts(&["AAPL", "2"]), both, None),
            2 => column.typed::<FloatType>().write_batch(&[232.51, f32::NAN], both, None),
            3 => column.typed::<DoubleType>().write_batch(&[0.1 + 0.2, f64::NAN], None, None),
            4 => {
                let raw = 2_325_300_000_000_i128.to_be_bytes()[7..].to_vec();
                let values = [FixedLenByteArray::from(raw)];
                column.typed::<FixedLenByteArrayType>().write_batch(&values, Some(&[1, 0]), None)
            }
            5 => column.typed::<Int32Type>().write_batch(&[2_005, 0], None, None),
            6 => column.typed::<ByteArrayType>().write_batch(&texts(&["415.1"]), Some(&[0, 1]), None),
            7 => column.typed::<Int32Type>().write_batch(&[-1_294_967_296], Some(&[0, 1]), None),
            _ => column.typed::<Int64Type>().write_batch(&[5, 5], None, None),
        };
        assert_eq!(written.unwrap(), if matches!(nth, 4 | 6 | 7) { 1 } else { 2 });
    };
    let csv =
        format!("{TICKS}\n{START},1,232.51,0.3,232.53,200.5,,\n{},2,,,,0,415.1,3000000000\n", START + 1);
    let expected = read(&folder.file("same.csv", csv.as_bytes())).unwrap();
    for compression in
        [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::ZSTD(ZstdLevel::try_new(1).unwrap())]
    {
        let path = made(&folder, schema, compression, 1, &write);
        assert_eq!(read(&path).unwrap(), expected, "{compression:?}");
    }
}

const QUOTES: &str = "REQUIRED INT64 time (TIMESTAMP(MICROS,true)); REQUIRED INT32 security; REQUIRED INT64 bid;
    REQUIRED INT64 bidSize; REQUIRED INT64 ask; REQUIRED INT64 askSize; OPTIONAL INT64 last; OPTIONAL INT64 lastSize;";

/// Writes ten rows into each of the groups, a microsecond apart.
fn quotes(nth: usize, column: &mut SerializedColumnWriter<'_>) {
    let (group, nth) = (nth / 100, nth % 100);
    let first = (START / 1_000) as i64 + 10 * group as i64;
    let times: Vec<i64> = (first..first + 10).collect();
    let written = match nth {
        0 => column.typed::<Int64Type>().write_batch(&times, None, None),
        1 => column.typed::<Int32Type>().write_batch(&[1; 10], None, None),
        2..6 => column.typed::<Int64Type>().write_batch(&[7 + nth as i64 / 4; 10], None, None),
        _ => column.typed::<Int64Type>().write_batch(&[], Some(&[0; 10]), None),
    };
    written.unwrap();
}

#[test]
fn row_groups_outside_the_time_range_are_not_read() {
    let folder = TestFolder::new("groups");
    let path = made(&folder, QUOTES, Compression::SNAPPY, 5, &quotes);
    assert_eq!(read(&path).unwrap().len(), 50);
    let within = (Timestamp(START + 15_000), Timestamp(START + 30_000));
    let rows = read_in(&path, within).unwrap();
    let times: Vec<u64> = rows.iter().map(|row| (row.at.0 - START) / 1_000).collect();
    assert_eq!(times, (10..30).collect::<Vec<_>>(), "two groups of five");
    // The merge skips the rest, and rows of a CSV file are merged in between.
    let csv = format!("{TICKS}\n{},2,1,1,2,1,,\n", START + 15_500);
    let both = [path, folder.file("other.csv", csv.as_bytes())];
    let reference = Arc::new(refdata::shipped().unwrap());
    let mut merged = merge::open(&both, &reference, &options(), within).unwrap();
    let mut rows_read = Vec::new();
    while let Some(row) = merged.next_row().unwrap() {
        rows_read.push((row.at.0 - START, row.security.0));
    }
    assert_eq!((rows_read.len(), &rows_read[..3]), (16, &[(15_000, 1), (15_500, 2), (16_000, 1)][..]));
}

#[test]
fn errors_are_reported() {
    let folder = TestFolder::new("wrong");
    let problem = |path: &Path| read(path).unwrap_err().to_string();
    let one = |schema: &str, from: &str, to: &str| schema.replacen(from, to, 1);
    let nothing = |_: usize, column: &mut SerializedColumnWriter<'_>| _ = column;
    let cases = [
        (one(QUOTES, "askSize", "asksize"), "there is no column askSize"),
        (one(QUOTES, "INT64 bid;", "BOOLEAN bid;"), "bid: BOOLEAN cannot be read as that"),
        (one(QUOTES, "INT64 time (TIMESTAMP(MICROS,true))", "DOUBLE time"), "time: DOUBLE cannot"),
        (one(QUOTES, "REQUIRED INT32 security", "REPEATED INT32 security"), "security: INT32 cannot"),
    ];
    for (schema, expected) in cases {
        let path = made(&folder, &schema, Compression::SNAPPY, 0, &nothing);
        let error = problem(&path);
        assert!(error.contains(expected), "{error}");
    }
    let backwards = |nth: usize, column: &mut SerializedColumnWriter<'_>| {
        quotes(100 - nth / 100 * 100 + nth % 100, column)
    };
    let error = problem(&made(&folder, QUOTES, Compression::SNAPPY, 2, &backwards));
    assert!(error.ends_with("made.parquet:11: its time is before that of the row above"), "{error}");
    let stranger = |nth: usize, column: &mut SerializedColumnWriter<'_>| match nth {
        1 => {
            _ = column
                .typed::<Int32Type>()
                .write_batch(&[1, 1, 999_999, 1, 1, 1, 1, 1, 1, 1], None, None)
                .unwrap()
        }
        nth => quotes(nth, column),
    };
    let error = problem(&made(&folder, QUOTES, Compression::SNAPPY, 1, &stranger));
    assert!(error.ends_with("made.parquet:3: there is no security 999999"), "{error}");
}

/// Very many equal rows take no bytes: such a file of a few kilobytes once took half a minute.
#[test]
fn a_small_file_of_very_many_rows_is_refused_before_they_are_read() {
    let folder = TestFolder::new("many");
    let many = |rows: usize| {
        move |nth: usize, column: &mut SerializedColumnWriter<'_>| {
            let written = match nth % 100 {
                0 => column.typed::<Int64Type>().write_batch(&vec![START as i64 / 1_000; rows], None, None),
                1 => column.typed::<Int32Type>().write_batch(&vec![1; rows], None, None),
                2..6 => column.typed::<Int64Type>().write_batch(&vec![7; rows], None, None),
                _ => column.typed::<Int64Type>().write_batch(&[], Some(&vec![0; rows]), None),
            };
            written.unwrap();
        }
    };
    // One page for each column, as an attacker would write it.
    let pages = WriterProperties::builder().set_data_page_row_count_limit(usize::MAX);
    let path = made_with(&folder, QUOTES, pages, 1, &many(1_500_000));
    let length = fs::metadata(&path).unwrap().len();
    assert!(length < 6_000, "{length} bytes");
    let error = read(&path).unwrap_err().to_string();
    let most = (1 << 20) + 64 * length;
    assert!(
        error.contains(&format!("it has more than {most} rows, too many for its {length} bytes")),
        "{error}"
    );
    let path = made(&folder, QUOTES, Compression::SNAPPY, 1, &many(100_000));
    assert_eq!(read(&path).unwrap().len(), 100_000);
}

#[test]
fn rows_are_counted_whatever_the_metadata_says() {
    let mut budget = ReadBudget::of(10);
    let most = (1 << 20) + 640;
    assert!(budget.take_rows(most - 1).is_ok() && budget.take_rows(1).is_ok());
    assert!(
        budget
            .take_rows(1)
            .is_err_and(|error| error.contains("more than 1049216 rows, too many for its 10 bytes"))
    );
    let mut budget = ReadBudget::of(u64::MAX);
    assert!(budget.take_rows(u64::MAX).is_ok() && budget.take_bytes(u64::MAX).is_ok());
}

/// Writes a file again with other metadata about the same pages.
fn with_groups(
    folder: &TestFolder,
    path: &Path,
    change: impl Fn(&[RowGroupMetaData]) -> Vec<RowGroupMetaData>,
) -> PathBuf {
    let mut bytes = fs::read(path).unwrap();
    let metadata = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap().metadata().clone();
    let groups = change(metadata.row_groups());
    let metadata = metadata.into_builder().set_row_groups(groups).build();
    ParquetMetaDataWriter::new(&mut bytes, &metadata).finish().unwrap();
    folder.file("changed.parquet", &bytes)
}

/// Returns a row group with these bytes as the decompressed length of each column.
fn stating(group: &RowGroupMetaData, bytes: i64) -> RowGroupMetaData {
    let columns = group.columns().iter().cloned();
    let columns =
        columns.map(|column| column.into_builder().set_total_uncompressed_size(bytes).build().unwrap());
    group.clone().into_builder().set_column_metadata(columns.collect()).build().unwrap()
}

/// Writes rows of one time, so that a row group may follow itself.
fn same_time(nth: usize, column: &mut SerializedColumnWriter<'_>) {
    match nth % 100 {
        0 => {
            let times = [START as i64 / 1_000; 10];
            column.typed::<Int64Type>().write_batch(&times, None, None).unwrap();
        }
        nth => quotes(nth, column),
    }
}

/// The pages of one row group, such as a large dictionary, were decompressed for each of very many
/// row groups that were the same bytes.
#[test]
fn row_groups_stored_in_the_same_place_are_refused_before_they_are_read() {
    let folder = TestFolder::new("same-place");
    let path = made(&folder, QUOTES, Compression::SNAPPY, 2, &same_time);
    let same = with_groups(&folder, &path, <[_]>::to_vec);
    assert_eq!(read(&same).unwrap().len(), 20, "the metadata is the same");
    let many = with_groups(&folder, &path, |groups| vec![groups[1].clone(); 1_000]);
    let error = read(&many).unwrap_err().to_string();
    assert!(error.ends_with("two of its columns or row groups are stored in the same place"), "{error}");
}

#[test]
fn a_file_that_states_too_many_decompressed_bytes_is_refused_before_they_are_read() {
    let folder = TestFolder::new("states");
    let path = made(&folder, QUOTES, Compression::SNAPPY, 1, &quotes);
    let path = with_groups(&folder, &path, |groups| vec![stating(&groups[0], 1 << 30)]);
    let length = fs::metadata(&path).unwrap().len();
    let error = read(&path).unwrap_err().to_string();
    let most = (64 << 20) + 256 * length;
    let expected = format!("its pages expand to more than {most} bytes, too many for its {length} bytes");
    assert!(error.contains(&expected), "{error}");
}

const LONG_TEXTS: &str = "REQUIRED INT64 time; REQUIRED INT32 security; REQUIRED BYTE_ARRAY bid (STRING);
    REQUIRED INT64 bidSize; REQUIRED INT64 ask; REQUIRED INT64 askSize; REQUIRED INT64 last; REQUIRED INT64 lastSize;";

/// Writes five rows, each with a text of 16 MiB in a page of its own.
fn long_texts(nth: usize, column: &mut SerializedColumnWriter<'_>) {
    let written = match nth {
        0 => column.typed::<Int64Type>().write_batch(&[START as i64; 5], None, None),
        1 => column.typed::<Int32Type>().write_batch(&[1; 5], None, None),
        2 => {
            let text = ByteArray::from(vec![b'0'; 16 << 20]);
            let writer = column.typed::<ByteArrayType>();
            (0..5).map(|_| writer.write_batch(std::slice::from_ref(&text), None, None)).sum()
        }
        _ => column.typed::<Int64Type>().write_batch(&[7; 5], None, None),
    };
    assert_eq!(written.unwrap(), 5);
}

/// The decoder decompresses whatever the pages have, also if the metadata states less.
#[test]
fn a_small_file_of_pages_that_expand_is_refused_before_they_are_decompressed() {
    let folder = TestFolder::new("expand");
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).unwrap()))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_dictionary_enabled(false);
    let path = made_with(&folder, LONG_TEXTS, properties, 1, &long_texts);
    let path = with_groups(&folder, &path, |groups| vec![stating(&groups[0], 1)]);
    let length = fs::metadata(&path).unwrap().len();
    assert!(length < 50_000, "{length} bytes");
    let error = read(&path).unwrap_err().to_string();
    assert!(error.contains("its pages expand to more than"), "{error}");
}

#[test]
fn an_overlong_text_is_not_a_number() {
    let folder = TestFolder::new("long");
    let schema = "REQUIRED INT64 time; REQUIRED INT32 security; REQUIRED BYTE_ARRAY bid (STRING);
        REQUIRED INT64 bidSize; REQUIRED INT64 ask; REQUIRED INT64 askSize; REQUIRED INT64 last; REQUIRED INT64 lastSize;";
    let zeros = |nth: usize, column: &mut SerializedColumnWriter<'_>| {
        let written = match nth {
            0 => column.typed::<Int64Type>().write_batch(&[START as i64], None, None),
            1 => column.typed::<Int32Type>().write_batch(&[1], None, None),
            2 => {
                let text = ByteArray::from("0".repeat(100_000).as_str());
                column.typed::<ByteArrayType>().write_batch(&[text], None, None)
            }
            _ => column.typed::<Int64Type>().write_batch(&[7], None, None),
        };
        written.unwrap();
    };
    let error = read(&made(&folder, schema, Compression::SNAPPY, 1, &zeros)).unwrap_err().to_string();
    assert!(error.ends_with("bid: a number of 100000 bytes"), "{error}");
}

/// A file that is cut or damaged anywhere is either read or reported as an error.
#[test]
fn a_damaged_file_is_an_error() {
    let folder = TestFolder::new("damaged");
    let sound = fs::read(made(&folder, QUOTES, Compression::SNAPPY, 3, &quotes)).unwrap();
    let (mut faults, mut read_anyway) = (0, 0);
    for length in (4..sound.len()).step_by(7) {
        let error = read(&folder.file("cut.parquet", &sound[..length])).unwrap_err().to_string();
        assert!(error.contains("its end is missing") || error.contains("cannot have"), "{error}");
    }
    for at in (4..sound.len()).step_by(13) {
        for flip in [0xff, 0x01, 0x80] {
            let mut damaged = sound.clone();
            damaged[at] ^= flip;
            match read(&folder.file("damaged.parquet", &damaged)) {
                Ok(_) => read_anyway += 1,
                Err(_) => faults += 1,
            }
        }
    }
    assert!(faults > 30 && read_anyway > 3, "{faults} faults, {read_anyway} read");
}
