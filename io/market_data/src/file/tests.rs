//! Files of other providers, which packages of other authors have written: see
//! tests/data/formats/make.py.

mod faults;

use std::path::PathBuf;
use std::sync::OnceLock;

use pitlane_config::refdata;
use pitlane_engine::command::{Quote, Trade};
use pitlane_engine::terms::Side;
use pitlane_engine::time::Day;

use super::*;

/// 2024-03-01T14:30:00Z.
const OPEN: u64 = 1_709_303_400_000_000_000;
/// The same time a year later.
const YEAR_LATER: u64 = 1_740_839_400_000_000_000;

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/formats"))
}

fn options() -> ReadOptions {
    let symbols = [("BTCUSDT".to_string(), "BTCUSD".to_string())].into();
    let files = DataFilesConfig { symbols, levels: 10, ..Default::default() };
    ReadOptions { bars: BarPath { interval_ns: 7, volume_bp: 10_000 }, files }
}

fn reference() -> &'static Arc<RefData> {
    static REFERENCE: OnceLock<Arc<RefData>> = OnceLock::new();
    REFERENCE.get_or_init(|| Arc::new(refdata::shipped().unwrap()))
}

/// Reads a file and shows its rows, with times after `OPEN`.
fn read(path: &Path, options: &ReadOptions, from: u64) -> Result<Vec<String>, DataError> {
    let range = (Timestamp(from), Timestamp::MAX);
    let mut merge = crate::merge::open(&[path.to_path_buf()], reference(), options, range)?;
    let mut rows = Vec::new();
    while let Some(row) = merge.next_row()? {
        rows.push(show(&row));
    }
    assert!(merge.consumed() <= merge.bytes());
    Ok(rows)
}

fn show(row: &TickRow) -> String {
    let at = row.at.0 - if row.at.0 < YEAR_LATER { OPEN } else { YEAR_LATER };
    let security = row.security;
    let quoted =
        |quote: &Quote| format!("Q {}x{} {}x{}", quote.bid, quote.bid_size, quote.ask, quote.ask_size);
    let traded = |trade: &Trade| format!("T {}x{}", trade.price, trade.size);
    let text = if let CommandKind::Quote { quote, .. } = &row.body {
        quoted(quote)
    } else if let CommandKind::Trade { trade, .. } = &row.body {
        traded(trade)
    } else if let CommandKind::Tick { quote, trade, .. } = &row.body {
        format!("{} {}", traded(trade), quoted(quote))
    } else {
        let CommandKind::Level { level, .. } = row.body else { panic!("{row:?}") };
        let side = if level.side == Side::Buy { "B" } else { "A" };
        format!("L {side} {}x{}", level.price, level.size)
    };
    format!("{at} {security} {text}")
}

fn rows(name: &str) -> Vec<String> {
    read(&folder().join(name), &options(), 0).unwrap()
}

#[test]
fn trades_of_databento_are_read_in_all_versions() {
    let expected = ["0 1 T 170.25x100", "10 1 T 170.24x50", "20 1 T 170.245x7"];
    for version in 1..=3 {
        assert_eq!(rows(&format!("trades-v{version}.dbn")), expected, "{version}");
    }
    assert_eq!(rows("live.dbn"), expected, "the symbol comes with a record");
}

#[test]
fn a_trade_makes_a_quote_where_there_is_none() {
    let mut options = options();
    options.files.trade_quotes = true;
    let read = |name: &str| read(&folder().join(name), &options, 0).unwrap();
    let expected = [
        "0 1 T 170.25x100 Q 170.24x100 170.25x100",
        "10 1 T 170.24x50 Q 170.24x50 170.25x50",
        "20 1 T 170.245x7 Q 170.235x7 170.255x7",
    ];
    assert_eq!(read("trades-v3.dbn"), expected, "the taker bought, sold, and is unknown");
    let quoted = ["0 1 Q 170.24x300 170.26x200", "10 1 T 170.26x50"];
    assert_eq!(read("mbp-1.dbn.zst")[..2], quoted, "this file has quotes");
    assert_eq!(read("BTCUSDT-trades-2024-03-01.csv")[0], "0 50 T 62000.1x0.005 Q 62000x0.005 62000.1x0.005");
}

#[test]
fn best_prices_of_databento_are_quotes_and_trades() {
    let expected = [
        "0 1 Q 170.24x300 170.26x200",
        "10 1 T 170.26x50",
        "10 1 Q 170.24x300 170.26x150",
        "20 1 Q 0x0 170.26x150",
    ];
    assert_eq!(rows("mbp-1.dbn.zst"), expected);
}

#[test]
fn ten_levels_of_databento_are_levels_quotes_and_trades() {
    let expected = [
        "0 1 L B 170.24x300",
        "0 1 L B 170.23x500",
        "0 1 L A 170.26x200",
        "0 1 L A 170.27x100",
        "0 1 Q 170.24x300 170.26x200",
        "10 1 L B 170.23x400",
        "20 1 T 170.24x300",
        "20 1 L B 170.24x0",
        "20 1 L B 170.22x60",
        "20 1 Q 170.23x400 170.26x200",
    ];
    assert_eq!(rows("mbp-10.dbn"), expected);
}

#[test]
fn orders_of_databento_make_a_book() {
    let expected = [
        "2 1 L B 170.24x100",
        "2 1 Q 170.24x100 0x0",
        "3 1 L B 170.24x300",
        "3 1 Q 170.24x300 0x0",
        "4 1 L A 170.26x150",
        "4 1 Q 170.24x300 170.26x150",
        "5 1 L B 170.23x80",
        "6 1 T 170.24x130",
        "6 1 L B 170.24x200",
        "6 1 L B 170.24x170",
        "6 1 Q 170.24x170 170.26x150",
        "7 1 L A 170.26x0",
        "7 1 L A 170.25x140",
        "7 1 Q 170.24x170 170.25x140",
        "8 1 L B 170.24x0",
        "8 1 Q 170.23x80 170.25x140",
    ];
    assert_eq!(rows("mbo.dbn.zst"), expected);
}

#[test]
fn bars_of_databento_have_their_own_length() {
    let quarter = 15_000_000_000_u64;
    let step = |nth: u64, price: &str, size: u32| {
        let cents = |price: &str, by: i64| {
            Price::from_raw(Price::parse(price.as_bytes()).unwrap().raw() + by * 1_000_000)
        };
        let (bid, ask) = (cents(price, -1), cents(price, 1));
        format!("{} 1 T {price}x{size} Q {bid}x{size} {ask}x{size}", nth * quarter)
    };
    let first =
        [step(0, "170", 1_000), step(1, "169.5", 1_000), step(2, "171", 1_000), step(3, "170.5", 1_000)];
    let second =
        [step(4, "170.5", 200), step(5, "170.25", 200), step(6, "170.75", 200), step(7, "170.5", 200)];
    assert_eq!(rows("ohlcv-1m.dbn"), [first, second].concat());
}

#[test]
fn messages_of_nasdaq_make_a_book() {
    let expected = [
        "0 1 L B 170.24x100",
        "0 1 Q 170.24x100 0x0",
        "1 1 L B 170.24x300",
        "1 1 Q 170.24x300 0x0",
        "2 1 L A 170.26x150",
        "2 1 Q 170.24x300 170.26x150",
        "3 1 L B 170.23x80",
        "4 1 T 170.24x60",
        "4 1 L B 170.24x240",
        "4 1 Q 170.24x240 170.26x150",
        "5 1 T 170.245x40",
        "5 1 L B 170.24x200",
        "5 1 Q 170.24x200 170.26x150",
        "6 1 L B 170.24x150",
        "6 1 Q 170.24x150 170.26x150",
        "7 1 L A 170.26x0",
        "7 1 L A 170.25x120",
        "7 1 Q 170.24x150 170.25x120",
        "8 1 L B 170.24x0",
        "8 1 Q 170.23x80 170.25x120",
        "9 1 T 170.2475x33",
        "10 1 T 170.245x5000",
    ];
    assert_eq!(rows("03012024.NASDAQ_ITCH50"), expected);
    assert_eq!(rows("03012024.NASDAQ_ITCH50.gz"), expected);
}

#[test]
fn the_number_of_levels_is_a_setting() {
    let mut options = options();
    let read = |options: &ReadOptions| read(&folder().join("03012024.NASDAQ_ITCH50"), options, 0).unwrap();
    options.files.levels = 0;
    assert!(read(&options).iter().all(|row| !row.contains(" L ")));
    options.files.levels = 1;
    let bids: Vec<String> = read(&options).into_iter().filter(|row| row.contains(" L B ")).collect();
    assert_eq!(bids[4..], ["6 1 L B 170.24x150", "8 1 L B 170.24x0", "8 1 L B 170.23x80"]);
}

#[test]
fn a_range_begins_with_the_levels_that_stand_then() {
    let rows = read(&folder().join("03012024.NASDAQ_ITCH50"), &options(), OPEN + 6).unwrap();
    let first = ["6 1 L B 170.23x80", "6 1 L B 170.24x200", "6 1 L A 170.26x150", "6 1 L B 170.24x150"];
    assert_eq!(rows[..4], first);
}

#[test]
fn rows_of_binance_are_trades_and_bars() {
    let trades = ["0 50 T 62000.1x0.005", "250000000 50 T 62000x0.1"];
    assert_eq!(rows("BTCUSDT-trades-2024-03-01.csv"), trades, "spot, without a header");
    assert_eq!(rows("BTCUSDT-trades-2024-03.csv"), trades, "futures, with a header");
    assert_eq!(rows("BTCUSDT-aggTrades-2024-03-01.csv"), trades);
    let microseconds = ["0 50 T 94000.1x0.005", "250001000 50 T 94000x0.1"];
    assert_eq!(rows("BTCUSDT-aggTrades-2025-03-01.zip"), microseconds);
    let bars = rows("BTCUSDT-1m-2024-03-01.csv");
    assert_eq!(bars.len(), 8);
    assert!(bars[1].starts_with("15000000000 50 T 61950x3.125 "), "{}", bars[1]);
}

#[test]
fn a_named_format_is_not_guessed() {
    let path = folder().join("BTCUSDT-1m-2024-03-01.csv");
    let read_as = |format| {
        let mut options = options();
        options.files.format = format;
        read(&path, &options, 0)
    };
    assert_eq!(read_as(DataFormat::BinanceKlines).unwrap().len(), 8);
    let problem = |format| read_as(format).unwrap_err().to_string();
    assert!(problem(DataFormat::Csv).contains("the first line must be"));
    assert!(problem(DataFormat::Dbn).contains("does not begin as a file of Databento"));
    assert!(problem(DataFormat::Itch(None)).contains("ITCH does not contain its day"));
    let day = Day::parse(b"2024-03-01").ok();
    assert!(problem(DataFormat::Itch(day)).contains("at byte 0: a message of 12599 bytes is cut"));
    assert!(problem(DataFormat::BinanceTrades).contains("is no time in milliseconds"));
    assert!(problem(DataFormat::Parquet).contains("Parquet"));
}

#[test]
fn the_day_of_nasdaq_is_in_the_name_or_named() {
    let day = |text: &str| Day::parse(text.as_bytes()).ok();
    for name in ["03012024.NASDAQ_ITCH50", "S030124-v50.txt.gz", "20240301.itch"] {
        assert_eq!(day_in_name(name), day("2024-03-01"), "{name}");
    }
    for name in ["itch.bin", "99999999.itch", "1234567.itch"] {
        assert_eq!(day_in_name(name), None, "{name}");
    }
}
