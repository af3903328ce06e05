//! The past of the market over REST: bars, ticks and quotes of trades with known prices.

use std::fs;
use std::sync::Arc;

use pitlane_config::refdata;
use pitlane_engine::time::Timestamp;
use pitlane_market_data::{BarPath, ReadOptions, TickRow};
use pitlane_testkit::http_client::Response;
use pitlane_testkit::service::TestFolder;
use serde_json::{Value, json};

use crate::service::{RestService, ask, at, folder};

const BARS: &str = "/rest/ext/bars?securityId=1";
const TICKS: &str = "/rest/ext/ticks?securityId=1";
const QUOTE: &str = "/rest/ext/quote?securityId=1";

/// 2027-01-14T20:30:00Z, in the middle of a trading day, so that no test passes the end of one.
const THURSDAY_S: u64 = 1_799_958_600;
const DAY_S: u64 = 86_400;

/// Returns prices and sizes of the trades in a list of ticks.
fn trades(ticks: &Value) -> Vec<(Value, Value)> {
    let rows = ticks.as_array().unwrap().iter().filter(|tick| tick.get("last").is_some());
    rows.map(|tick| (tick["last"].clone(), tick["lastSize"].clone())).collect()
}

/// Returns the bars without their times, which the clock decides.
fn prices(bars: &Value) -> Vec<Value> {
    let names = ["open", "high", "low", "close", "volume", "trades"];
    let row = |bar: &Value| names.iter().map(|name| bar[*name].clone()).collect();
    bars.as_array().unwrap().iter().map(row).collect()
}

#[test]
fn trades_are_in_ticks_bars_and_quote_also_after_a_kill() {
    let data = folder("history");
    let mut service = at(&data, THURSDAY_S, &[]);
    assert_eq!(service.read(TICKS), json!([]));
    assert_eq!(service.read(QUOTE), json!([{ "securityId": 1, "volume": 0 }]));
    for (quantity, price) in [("3", "100"), ("5", "101.5"), ("2", "99.25")] {
        service.trade(1, "BUY", quantity, price);
    }
    let expected = [(json!(100), json!(3)), (json!(101.5), json!(5)), (json!(99.25), json!(2))];
    let ticks = service.read(TICKS);
    assert_eq!(trades(&ticks), expected);
    let day = json!([[100, 101.5, 99.25, 99.25, 10, 3]]);
    let bars = service.until(&format!("{BARS}&interval=1d"), |bars| !bars.as_array().unwrap().is_empty());
    assert_eq!((json!(prices(&bars)), &bars[0]["complete"]), (day.clone(), &json!(false)));
    let quote = service.read(QUOTE);
    let quote = |name: &str| quote[0][name].clone();
    let seen = ["last", "lastSize", "open", "high", "low", "volume", "previousClose"].map(quote);
    assert_eq!(json!(seen), json!([99.25, 2, 100, 101.5, 99.25, 10, null]));
    // Bars of seconds end, and are then as durable as ticks.
    let seconds = format!("{BARS}&interval=1s");
    let is_complete = |bars: &Value| bars.as_array().unwrap().iter().all(|bar| bar["complete"] == true);
    let seconds_before = service.until(&seconds, is_complete);
    assert_eq!(service.read("/rest/ext/quote").as_array().unwrap().len(), 1, "only one has a price");
    // The history is written ten times a second; a kill may come before that.
    let ticks_log = data.join("history").join("ticks.log");
    let written = fs::metadata(&ticks_log).unwrap().len();
    assert!(written > 8, "the bars have ended, so everything was written: {written}");
    service.kill();
    let mut service = at(&data, THURSDAY_S + 60, &[]);
    assert_eq!(service.read(TICKS), ticks);
    assert_eq!(service.read(&seconds), seconds_before);
    let bars = service.read(&format!("{BARS}&interval=1d"));
    assert_eq!(json!(prices(&bars)), day);
    service.trade(1, "SELL", "4", "98");
    assert_eq!(trades(&service.read(TICKS)).last(), Some(&(json!(98), json!(4))));
    let bars = service.read(&format!("{BARS}&interval=1d"));
    assert_eq!(json!(prices(&bars)), json!([[100, 101.5, 98, 98, 14, 4]]));
}

#[test]
fn a_new_trading_day_has_the_close_of_the_day_before() {
    let data = folder("history-days");
    let mut service = at(&data, THURSDAY_S, &[]);
    service.trade(1, "BUY", "3", "100");
    service.trade(1, "BUY", "2", "105");
    service.must_post("/rest/runtime/exit-vm", "");
    assert!(service.ends_well());
    let mut service = at(&data, THURSDAY_S + DAY_S, &[]);
    let seen = |service: &mut RestService| {
        let quote = service.read(QUOTE);
        let names = ["last", "open", "volume", "previousClose", "previousDay"];
        json!(names.map(|name| quote[0][name].clone()))
    };
    // Midnight in New York.
    let thursday = "2027-01-14T05:00:00Z";
    assert_eq!(seen(&mut service), json!([105, null, 0, 105, thursday]));
    service.trade(1, "BUY", "4", "110");
    assert_eq!(seen(&mut service), json!([110, 110, 4, 105, thursday]));
    let bars = service.read(&format!("{BARS}&interval=1d"));
    assert_eq!(json!(prices(&bars)), json!([[100, 105, 100, 105, 5, 2], [110, 110, 110, 110, 4, 1]]));
    assert_eq!(
        (&bars[0]["dateTime"], &bars[1]["dateTime"]),
        (&json!(thursday), &json!("2027-01-15T05:00:00Z"))
    );
    assert_eq!((&bars[0]["complete"], &bars[1]["complete"]), (&json!(true), &json!(false)));
}

#[test]
fn a_page_leads_to_the_next_and_every_row_comes_once() {
    let mut service = RestService::start("history-pages");
    for price in 100..112 {
        service.trade(1, "BUY", "1", &price.to_string());
    }
    let whole = service.read(TICKS);
    let whole = whole.as_array().unwrap();
    let mut rows = Vec::new();
    let mut path = format!("{TICKS}&from=2020-01-01&limit=5");
    loop {
        let answer = service.get(&path);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        let page = answer.json();
        let page = page.as_array().unwrap();
        rows.extend(page.iter().cloned());
        let Some(link) = answer.header("link") else { break };
        assert_eq!(page.len(), 5);
        path = link.strip_prefix('<').unwrap().strip_suffix(">; rel=\"next\"").unwrap().to_string();
    }
    assert_eq!(&rows, whole);
    let mut rows: Vec<Value> = Vec::new();
    let mut path = format!("{TICKS}&limit=5");
    loop {
        let answer = service.get(&path);
        let page = answer.json();
        rows.splice(0..0, page.as_array().unwrap().iter().cloned());
        let Some(link) = answer.header("link") else { break };
        path = link.strip_prefix('<').unwrap().strip_suffix(">; rel=\"prev\"").unwrap().to_string();
    }
    assert_eq!(&rows, whole);
    let at = |row: &Value| row["dateTime"].as_str().unwrap().to_string();
    let (from, to) = (at(&whole[2]), at(&whole[7]));
    let part = service.read(&format!("{TICKS}&from={from}&to={to}"));
    assert_eq!(part.as_array().unwrap()[..], whole[2..7], "the range is half-open");
}

#[test]
fn csv_is_what_a_simulation_reads() {
    let mut service = at(&folder("history-csv"), THURSDAY_S, &[]);
    service.trade(1, "BUY", "3", "100.5");
    let csv = |service: &mut RestService, path: &str| {
        let answer = service.ask("GET", path, "Accept: text/csv\r\n", "");
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.header("content-type"), Some("text/csv; charset=utf-8; header=present"));
        answer.body
    };
    let ticks = csv(&mut service, TICKS);
    let lines: Vec<&str> = ticks.lines().collect();
    assert_eq!(lines[0], "time,security,bid,bidSize,ask,askSize,last,lastSize");
    assert!(lines[lines.len() - 1].ends_with(",100.5,3"), "{ticks}");
    let bars = csv(&mut service, BARS);
    let lines: Vec<&str> = bars.lines().collect();
    assert_eq!((lines.len(), lines[0]), (2, "time,security,open,high,low,close,volume"));
    assert!(lines[1].ends_with("Z,1,100.5,100.5,100.5,100.5,3"), "{bars}");
    let quotes = csv(&mut service, QUOTE);
    assert!(quotes.starts_with("time,security,bid,") && quotes.lines().count() == 2, "{quotes}");
    let refused = service.ask("GET", TICKS, "Accept: image/png\r\n", "");
    assert_eq!((refused.status, refused.code().as_str()), (406, "not-acceptable"));
}

const PARQUET: &str = "application/vnd.apache.parquet";
const ARROW: &str = "application/vnd.apache.arrow.stream";

fn ask_for(service: &mut RestService, method: &str, path: &str, media_type: &str) -> Response {
    // Columns are compressed in the file, so the client's codings do not matter.
    let headers = format!("Accept: {media_type}\r\nAccept-Encoding: gzip, zstd\r\n");
    let answer = ask(&mut service.connect(), method, path, &headers, "");
    assert_eq!((answer.status, answer.header("content-encoding")), (200, None), "{path}: {answer:?}");
    answer
}

/// Reads a file as a simulation does: bars become ticks.
fn simulated(data: &TestFolder, name: &str, content: &[u8]) -> Vec<TickRow> {
    let path = data.join(name);
    fs::write(&path, content).unwrap();
    let reference = Arc::new(refdata::shipped().unwrap());
    let bars = BarPath { interval_ns: 60_000_000_000, volume_bp: 10_000 };
    let options = ReadOptions { bars, files: Default::default() };
    let range = (Timestamp::ZERO, Timestamp::MAX);
    let mut rows = pitlane_market_data::open(&[path], &reference, &options, range).unwrap();
    std::iter::from_fn(|| rows.next_row().unwrap()).collect()
}

#[test]
fn parquet_and_arrow_have_the_rows_of_csv_in_pages_that_lead_on() {
    let data = folder("history-columns");
    let mut service = at(&data, THURSDAY_S, &[]);
    // Nothing was traded: a file without rows, and a stream that ends.
    let empty = ask_for(&mut service, "GET", BARS, PARQUET);
    assert_eq!(simulated(&data, "empty.parquet", &empty.bytes), []);
    let stream = ask_for(&mut service, "GET", BARS, ARROW);
    assert!(stream.bytes.ends_with(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]), "{stream:?}");
    for (quantity, price) in [("3", "100"), ("5", "101.5"), ("2", "99.25")] {
        service.trade(1, "BUY", quantity, price);
    }
    service.until(TICKS, |ticks| trades(ticks).len() == 3);
    for path in [BARS, TICKS] {
        let csv = ask(&mut service.connect(), "GET", path, "Accept: text/csv\r\n", "");
        let expected = simulated(&data, "rows.csv", csv.body.as_bytes());
        assert!(expected.len() >= 3, "{}", csv.body);
        let parquet = ask_for(&mut service, "GET", path, PARQUET);
        assert_eq!(parquet.header("content-type"), Some(PARQUET));
        assert_eq!(simulated(&data, "rows.parquet", &parquet.bytes), expected, "{path}");
        let stream = ask_for(&mut service, "GET", path, ARROW);
        assert_eq!(stream.header("content-type"), Some(ARROW));
        assert!(stream.bytes.ends_with(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]), "{path}: {stream:?}");
        let head = ask_for(&mut service, "HEAD", path, PARQUET);
        assert_eq!(head.header("content-type"), Some(PARQUET));
        assert_eq!(head.header("content-length"), parquet.header("content-length"));
    }
    let whole = ask_for(&mut service, "GET", TICKS, PARQUET);
    let mut rows = Vec::new();
    let mut path = format!("{TICKS}&from=2020-01-01&limit=2");
    loop {
        let page = ask_for(&mut service, "GET", &path, PARQUET);
        rows.extend(simulated(&data, "page.parquet", &page.bytes));
        let Some(link) = page.header("link") else { break };
        path = link.strip_prefix('<').unwrap().strip_suffix(">; rel=\"next\"").unwrap().to_string();
    }
    assert_eq!(rows, simulated(&data, "whole.parquet", &whole.bytes));
}

#[test]
fn quotes_are_parquet_and_arrow_too_also_of_a_security_without_a_price() {
    let mut service = at(&folder("history-quote-columns"), THURSDAY_S, &[]);
    service.trade(1, "BUY", "3", "100.5");
    service.until(QUOTE, |quotes| quotes[0]["last"] == 100.5);
    for path in [QUOTE, "/rest/ext/quote", "/rest/ext/quote?securityId=1,2"] {
        let parquet = ask_for(&mut service, "GET", path, PARQUET);
        assert_eq!(parquet.header("content-type"), Some(PARQUET));
        assert!(parquet.bytes.starts_with(b"PAR1") && parquet.bytes.ends_with(b"PAR1"), "{parquet:?}");
        // The footer has the names of the columns.
        let has = |name: &[u8]| parquet.bytes.windows(name.len()).any(|part| part == name);
        assert!(has(b"previousDay") && has(b"previousClose"), "{parquet:?}");
        let stream = ask_for(&mut service, "GET", path, ARROW);
        assert_eq!(stream.header("content-type"), Some(ARROW));
        assert!(stream.bytes.ends_with(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]), "{path}: {stream:?}");
        let head = ask_for(&mut service, "HEAD", path, PARQUET);
        assert_eq!(head.header("content-length"), parquet.header("content-length"));
    }
    let refused = service.ask("GET", QUOTE, "Accept: image/png\r\n", "");
    assert_eq!((refused.status, refused.code().as_str()), (406, "not-acceptable"));
}

#[test]
fn a_wrong_question_is_refused_with_words() {
    let mut service = RestService::start("history-refused");
    for path in [
        "/rest/ext/bars".to_string(),
        "/rest/ext/bars?securityId=".to_string(),
        "/rest/ext/bars?securityId=AAPL".to_string(),
        "/rest/ext/bars?securityId=-1".to_string(),
        "/rest/ext/bars?securityId=1&securityId=2".to_string(),
        "/rest/ext/bars?security=1".to_string(),
        "/rest/ext/ticks?securityId=1&interval=1m".to_string(),
        "/rest/ext/ticks?securityId=1,2".to_string(),
        "/rest/ext/quote?securityId=".to_string(),
        "/rest/ext/quote?securityId=1,".to_string(),
        format!("/rest/ext/quote?securityId={}", vec!["1"; 1_001].join(",")),
        format!("{BARS}&interval=5m"),
        format!("{BARS}&interval="),
        format!("{BARS}&from=yesterday"),
        format!("{BARS}&to=2026-02-30"),
        format!("{BARS}&from=2026-11-14T10:00:00Z&to=2026-11-14T10:00:00Z"),
        format!("{BARS}&limit=0"),
        format!("{BARS}&limit=10001"),
        format!("{BARS}&limit=many"),
    ] {
        service.refuse("GET", &path, "", 400, "bad-query");
    }
    for path in ["/rest/ext/bars?securityId=999999", "/rest/ext/quote?securityId=1,99999999999999999999"] {
        service.refuse("GET", path, "", 404, "unknown-security");
    }
    service.refuse("POST", BARS, "{}", 405, "method-not-allowed");
    assert_eq!(service.read(&format!("{BARS}&limit=10000")), json!([]));
    let all = vec!["1"; 1_000].join(",");
    assert_eq!(service.read(&format!("/rest/ext/quote?securityId={all}")).as_array().unwrap().len(), 1_000);
}

#[test]
fn without_a_history_the_calls_say_so_and_no_file_is_written() {
    let data = folder("history-off");
    let mut service = RestService::with(&data, &["history.on=false"]);
    for path in [BARS, TICKS, QUOTE] {
        service.refuse("GET", path, "", 404, "history-off");
    }
    assert!(!data.join("history").exists());
}

#[test]
fn a_damaged_history_costs_its_rows_and_not_the_start() {
    let data = folder("history-damaged");
    let mut service = RestService::with(&data, &[]);
    service.trade(1, "BUY", "3", "100");
    service.must_post("/rest/runtime/exit-vm", "");
    assert!(service.ends_well());
    for name in ["ticks.log", "bars-1s.log"] {
        fs::write(data.join("history").join(name), b"no history at all").unwrap();
    }
    let mut service = RestService::with(&data, &[]);
    // The shard still knows its last price, and the history learns it again.
    assert_eq!(trades(&service.read(TICKS)), [(json!(100), json!(3))]);
    assert_eq!(service.read(QUOTE)[0]["last"], 100);
    assert!(service.complaints_at_end().contains("the history ended in an incomplete block"));
}
