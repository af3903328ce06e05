//! Files that are cut, damaged or too large: each gives an error with its place, and no panic.

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use pitlane_engine::rng::Rng;

use super::*;

/// Writes a file for one test; the name is that of a fixture, which may say what it contains.
fn scratch(test: &str, name: &str, bytes: &[u8]) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("pitlane-formats-{}-{test}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn problem(test: &str, name: &str, bytes: &[u8]) -> String {
    let path = scratch(test, name, bytes);
    let error = read(&path, &options(), 0).unwrap_err();
    let file = path.display().to_string();
    assert_eq!(error.file, file);
    error.to_string()[file.len()..].to_string()
}

const FIXTURES: [&str; 14] = [
    "trades-v1.dbn",
    "trades-v2.dbn",
    "live.dbn",
    "mbp-1.dbn.zst",
    "mbp-10.dbn",
    "mbo.dbn.zst",
    "ohlcv-1m.dbn",
    "03012024.NASDAQ_ITCH50",
    "03012024.NASDAQ_ITCH50.gz",
    "BTCUSDT-trades-2024-03-01.csv",
    "BTCUSDT-trades-2024-03.csv",
    "BTCUSDT-aggTrades-2024-03-01.csv",
    "BTCUSDT-aggTrades-2025-03-01.zip",
    "BTCUSDT-1m-2024-03-01.csv",
];

/// Binary files end with a whole record, so every cut is either between two records or an error.
#[test]
fn a_cut_file_gives_its_first_rows_or_an_error() {
    for name in FIXTURES {
        let (whole, bytes) = (rows(name), fs::read(folder().join(name)).unwrap());
        let is_text = name.ends_with(".csv");
        for end in 0..bytes.len() {
            let path = scratch("cut", name, &bytes[..end]);
            match read(&path, &options(), 0) {
                Ok(rows) if is_text => assert!(rows.len() <= whole.len()),
                Ok(rows) => assert_eq!(rows[..], whole[..rows.len()], "{name} cut at {end}"),
                Err(error) => assert!(!error.problem.is_empty()),
            }
        }
    }
}

#[test]
fn a_damaged_file_gives_rows_in_time_order_or_an_error() {
    let mut rng = Rng::named(11, 24);
    for name in FIXTURES {
        let bytes = fs::read(folder().join(name)).unwrap();
        for _ in 0..150 {
            let mut damaged = bytes.clone();
            for _ in 0..=rng.below(3) {
                let at = rng.index(damaged.len());
                damaged[at] = if rng.below(2) == 0 { rng.byte() } else { damaged[at] ^ 1 << rng.below(8) };
            }
            let path = scratch("damaged", name, &damaged);
            let range = (Timestamp::ZERO, Timestamp::MAX);
            let Ok(mut file) = DataFile::open(&path, reference(), &options(), range) else { continue };
            let mut last = Timestamp::ZERO;
            while let Ok(Some(row)) = file.next_row() {
                assert!(row.at >= last, "{name}: {row:?}");
                last = row.at;
            }
        }
    }
}

#[test]
fn errors_name_the_offset() {
    let dbn = fs::read(folder().join("trades-v3.dbn")).unwrap();
    let records = dbn.len() - 4 * 48;
    let with = |at: usize, byte: u8| {
        let mut bytes = dbn.clone();
        bytes[at] = byte;
        problem("offset", "x.dbn", &bytes)
    };
    let cut = problem("offset", "x.dbn", &dbn[..records + 60]);
    assert_eq!(cut, format!(": at byte {}: a record of 48 bytes is cut", records + 48));
    assert_eq!(with(records, 3), format!(": at byte {records}: a record has 12 bytes, less than its header"));
    assert!(with(records, 5).contains("of the type 0x00 has 48 bytes, not 20"));
    assert!(with(records + 1, 0x99).contains("records of the type 0x99 are not read"));
    assert!(with(records + 29, b'?').contains("a side '?' is unknown"));
    assert!(with(records + 16, 1).contains("too many decimals"));
    let later = with(records + 39, 0x20);
    assert!(later.ends_with("its time is before that of the record before"), "{later}");
    let itch = fs::read(folder().join("03012024.NASDAQ_ITCH50")).unwrap();
    let end = itch.len();
    let name = "03012024.NASDAQ_ITCH50";
    let cut = problem("offset", name, &itch[..end - 1]);
    assert_eq!(cut, format!(": at byte {}: a message of 12 bytes is cut", end - 14));
    let one = problem("offset", name, &itch[..end - 13]);
    assert_eq!(one, format!(": at byte {}: the length of a message is cut", end - 14));
    let mut again = itch.clone();
    again.extend_from_slice(&itch[..14]);
    assert!(problem("offset", name, &again).ends_with("its time is before that of the message before"));
    let mut long = itch[..14].to_vec();
    long.extend_from_slice(&[0, 3, b'A', 0, 0]);
    assert!(problem("offset", name, &long).contains("a message A has 36 bytes, not 3"));
}

#[test]
fn metadata_that_lie_are_errors() {
    let dbn = fs::read(folder().join("trades-v3.dbn")).unwrap();
    let with = |at: usize, bytes: &[u8]| {
        let mut file = dbn.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        let mut options = options();
        options.files.format = DataFormat::Dbn;
        read(&scratch("metadata", "x.dbn", &file), &options, 0).unwrap_err().to_string()
    };
    assert!(with(3, &[4]).contains("its version of DBN is 4; versions 1 to 3 are read"));
    assert!(with(4, &[0xff; 4]).contains("its metadata cannot have 4294967295 bytes"));
    assert!(with(4, &[0xff, 0xff, 0xff, 0x0f]).contains("and are cut"));
    assert!(with(4, &[99, 0, 0, 0]).contains("cannot have 99 bytes"));
    assert!(with(53, &[1, 0]).contains("a symbol has 71 bytes in DBN 3, not 1"));
    assert!(with(112, &[0xff; 4]).contains("its metadata end within a list"), "the number of symbols");
}

#[test]
fn symbols_without_a_security_are_named() {
    let path = folder().join("foreign.dbn");
    let error = read(&path, &options(), 0).unwrap_err().problem;
    assert!(error.contains("its symbols (YYYY, ZZZZ) are not in the reference data"), "{error}");
    let mut given = options();
    given.files.symbols.insert("YYYY".to_string(), "2".to_string());
    assert_eq!(read(&path, &given, 0).unwrap()[0], "0 2 T 170.25x100");
    given.files.symbols.insert("ZZZZ".to_string(), "NOONE".to_string());
    let error = read(&path, &given, 0).unwrap_err().problem;
    assert_eq!(error, "symbols: ZZZZ=NOONE: there is no security NOONE");
    let binance = fs::read(folder().join("BTCUSDT-trades-2024-03-01.csv")).unwrap();
    let error = problem("symbols", "XRPUSDT-trades.csv", &binance);
    assert!(error.contains("its symbols (XRPUSDT) are not in the reference data"), "{error}");
    let itch = fs::read(folder().join("03012024.NASDAQ_ITCH50")).unwrap();
    let error = problem("symbols", "03012024", &itch[..14]);
    assert!(error.contains("it names no symbol of the reference data"), "{error}");
    let error = problem("symbols", "itch", &itch);
    assert!(error.contains("ITCH does not contain its day"), "{error}");
}

#[test]
fn rows_of_binance_are_checked() {
    let trade =
        |row: &str| problem("binance", "BTCUSDT-trades.csv", format!("1,1,1,1,1,true\n{row}\n").as_bytes());
    assert_eq!(trade("2,1,1,1,0,true"), ":2: its time is before that of the row above");
    assert!(trade("2,,1,1,2,true").starts_with(":2: price is empty"));
    assert!(trade("2,1,-1,1,2,true").starts_with(":2: quantity is empty or negative"));
    // Beyond microseconds, and milliseconds beyond the year 2554.
    for time in ["100000000000000000", "20000000000000"] {
        let problem = trade(&format!("2,1,1,1,{time},true"));
        assert!(problem.contains("no time in milliseconds or microseconds"), "{problem}");
    }
    assert!(trade("2,1,1,1,2,maybe").contains("\"maybe\" is neither true nor false"));
    assert!(trade("2,1").contains("there is no quantity"));
    let kline = |row: &str| {
        let first = "0,1,1,1,1,1,59999,1,1,1,1,0";
        problem("binance", "BTCUSDT-1m.csv", format!("{first}\n{row}\n").as_bytes())
    };
    assert!(kline("60000,1,1,1,1,1,89999,1,1,1,1,0").contains("another than that of the first bar"));
    assert!(kline("60000,1,1,1,1,1,50000,1,1,1,1,0").contains("not after the open time"));
    assert!(kline("60000,1,1,2,1,1,119999,1,1,1,1,0").contains("do not fit together"));
}

#[test]
fn a_file_that_expands_too_much_is_refused() {
    let compressed = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    // A system event, and 120 times a mebibyte of messages of a kind that is skipped.
    let itch = fs::read(folder().join("03012024.NASDAQ_ITCH50")).unwrap();
    let mut message = vec![0; 1 << 16];
    message[..3].copy_from_slice(&[0xff, 0xfe, b'z']);
    let file = [compressed(&itch[..14]), compressed(&message.repeat(16)).repeat(120)].concat();
    let error = problem("expands", "03012024.gz", &file);
    assert!(error.contains("it expands to more than 256 times its size"), "{error}");
}

#[test]
fn a_zip_archive_is_checked() {
    let zip = fs::read(folder().join("BTCUSDT-aggTrades-2025-03-01.zip")).unwrap();
    let with = |at: usize, byte: u8| {
        let mut bytes = zip.clone();
        bytes[at] = byte;
        problem("zip", "BTCUSDT-aggTrades.zip", &bytes)
    };
    assert!(with(6, 1).contains("encrypted"));
    assert!(with(8, 0).contains("method 0"));
    assert!(with(14, zip[14] ^ 1).contains("checksum"));
    let directory = zip.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    assert!(with(directory + 2, 3).contains("more than one file"));
    assert!(problem("zip", "BTCUSDT-aggTrades.zip", &zip[..directory]).contains("the zip archive is cut"));
}
