//! Profit of the day, the portfolio over time, and the log.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::service::{RestService, at, folder};

/// 2027-01-14T12:00:00Z.
const THURSDAY_NOON_S: u64 = 1_799_928_000;
const DAY_S: u64 = 86_400;

#[test]
fn profit_is_shown_before_and_after_fees_also_after_a_restart() {
    let data = folder("profit");
    let mut service = RestService::with(&data, &[]);
    service.trade(1, "BUY", "10", "200");
    service.trade(1, "SELL", "10", "201.5");
    let check = |service: &mut RestService| {
        let profit = service.read("/rest/ext/profit?strategy=SERVER");
        assert_eq!((&profit["baseCurrency"], profit["tradingDay"].is_string()), (&json!("USD"), true));
        let sum = json!({ "grossPL": 15, "fees": 0.1, "netPL": 14.9, "missing": 0 });
        assert_eq!(profit["total"], sum, "{profit}");
        assert_eq!(profit["strategies"][0]["strategyName"], "SERVER");
        assert_eq!(
            profit["rows"],
            json!([{
                "strategyId": 0, "strategyName": "SERVER", "securityId": 1, "symbol": "AAPL", "currency": "USD",
                "quantity": 0, "trades": 2, "grossPL": 15, "fees": 0.1, "netPL": 14.9,
            }])
        );
        // The other side of both trades.
        let all = service.read("/rest/ext/profit");
        assert_eq!((&all["total"]["grossPL"], &all["total"]["netPL"]), (&json!(0), &json!(-0.2)));
        assert_eq!(all["strategies"].as_array().unwrap().len(), 2);
    };
    check(&mut service);
    service.kill();
    let mut service = RestService::with(&data, &[]);
    check(&mut service);
    service.refuse("GET", "/rest/ext/profit?strategy=NOBODY", "", 404, "unknown-strategy");
    service.refuse("GET", "/rest/ext/profit?day=1", "", 400, "bad-query");
    service.refuse("GET", "/rest/ext/profit/days?strategy=NOBODY", "", 404, "unknown-strategy");
    assert_eq!(service.read("/rest/ext/profit/days"), json!([]));
}

#[test]
fn the_profit_of_a_day_that_ends_while_the_server_is_down_is_kept() {
    let data = folder("profit-days");
    let nothing = json!({ "grossPL": 0, "fees": 0, "netPL": 0, "missing": 0 });
    let mut service = at(&data, THURSDAY_NOON_S, &[]);
    service.trade(1, "BUY", "10", "200");
    service.trade(1, "SELL", "4", "201");
    let mine = |path: &str| format!("{path}strategy=SERVER");
    let first = service.read(&mine("/rest/ext/profit?"));
    assert_eq!(first["tradingDay"], "2027-01-14");
    service.kill();
    // The day ends on the next start.
    let mut service = at(&data, THURSDAY_NOON_S + DAY_S, &[]);
    let days = service.until(&mine("/rest/ext/profit/days?"), |days| days.as_array().unwrap().len() == 1);
    assert_eq!(days[0]["tradingDay"], "2027-01-14");
    assert_eq!(days[0]["total"], first["total"], "{days}");
    let past = service.read(&mine("/rest/ext/profit?day=2027-01-14&"));
    assert_eq!(past, first);
    // The next day begins with the price at which the first one ended, and counts what comes then.
    let today = service.read(&mine("/rest/ext/profit?"));
    assert_eq!((&today["tradingDay"], &today["total"]), (&json!("2027-01-15"), &nothing));
    assert_eq!(service.read("/rest/ext/profit?day=2026-01-01")["rows"], json!([]));
    let file = data.join("profit.csv");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !file.exists() {
        assert!(Instant::now() < deadline, "the day was not written");
        sleep(Duration::from_millis(10));
    }
    service.kill();
    let mut service = at(&data, THURSDAY_NOON_S + DAY_S + 60, &[]);
    assert_eq!(service.read(&mine("/rest/ext/profit/days?")), days);
    assert_eq!(service.read(&mine("/rest/ext/profit?"))["total"], nothing);
}

#[test]
fn a_position_without_a_price_has_no_profit_and_is_counted_as_missing() {
    let mut service = RestService::start("profit-missing");
    service.trade(1, "BUY", "10", "200");
    // A last price there is, but the other security has none: a manual trade makes the position.
    let manual = r#"{"type":"BUY","strategyName":"SERVER","securityId":2,"quantity":5,"price":400}"#;
    assert_eq!(service.post("/rest/transaction", manual).status, 200);
    let profit = service.read("/rest/ext/profit?strategy=SERVER");
    assert_eq!(profit["total"]["missing"], json!(1), "{profit}");
    let rows = profit["rows"].as_array().unwrap();
    assert_eq!((rows[1]["symbol"].as_str(), rows[1].get("netPL")), (Some("MSFT"), None));
}

#[test]
fn the_portfolio_over_time_is_kept_in_the_service() {
    let data = folder("samples");
    let mut service = RestService::with(&data, &["demo.cash=1000"]);
    let path = "/rest/ext/portfolio/history?strategy=PAIRS";
    let is_paid = |rows: &serde_json::Value| {
        rows.as_array().unwrap().last().is_some_and(|row| row["netLiquidationValue"] == json!(1000))
    };
    let rows = service.until(path, is_paid);
    let last = rows.as_array().unwrap().last().unwrap();
    assert_eq!((&last["realizedPL"], &last["grossExposure"]), (&json!(0), &json!(0)));
    let all = service.read("/rest/ext/portfolio/history");
    let last = all.as_array().unwrap().last().unwrap();
    assert_eq!(last["netLiquidationValue"], json!(4000));
    service.refuse("GET", "/rest/ext/portfolio/history?strategy=NOBODY", "", 404, "unknown-strategy");
    // A restart goes on with the samples in the file, which is written after a sample was taken.
    let first = all[0]["dateTime"].clone();
    let file = data.join("portfolio.csv");
    let deadline = Instant::now() + Duration::from_secs(60);
    while fs::read_to_string(&file).map_or(0, |text| text.lines().count()) <= 4 {
        assert!(Instant::now() < deadline, "no sample was written");
        sleep(Duration::from_millis(10));
    }
    service.kill();
    let mut service = RestService::with(&data, &[]);
    assert_eq!(service.read("/rest/ext/portfolio/history")[0]["dateTime"], first);
}

#[test]
fn the_last_warnings_are_kept_in_the_service() {
    // The first start makes a certificate, which the second one uses.
    let data = folder("log-certificate");
    RestService::with(&data, &["https.listen=127.0.0.1:0"]).kill();
    let set = |key: &str, file: &str| format!("{key}={}", data.join(file).display());
    let (cert, key) = (set("tls.cert", "self-signed.pem"), set("tls.key", "self-signed.key"));
    let mut service = RestService::with(&folder("log"), &["https.listen=127.0.0.1:0", &cert, &key]);
    // An invalid certificate cannot be reloaded, which is an error.
    fs::write(data.join("self-signed.pem"), "nonsense").unwrap();
    service.signal("HUP");
    let is_error = |row: &serde_json::Value| row["level"] == "ERROR";
    let rows = service.until("/rest/ext/log", |rows| rows.as_array().unwrap().iter().any(is_error));
    let error = rows.as_array().unwrap().iter().find(|row| is_error(row)).unwrap();
    assert!(error["logger"].is_string() && error["message"].is_string(), "{rows}");
    assert!(error["ts"].is_string() && error["fields"].is_object(), "{rows}");
    assert_eq!(service.read("/rest/ext/log?limit=1").as_array().unwrap().len(), 1);
    service.refuse("GET", "/rest/ext/log?limit=x", "", 400, "bad-query");
}

#[test]
fn the_report_of_live_trading_has_the_plots_of_a_simulation() {
    let data = folder("report");
    // Two earlier days, as the service has written them.
    let days = "2027-01-12,0,1,USD,0,,2,5000,0.5,4999.5,USD,5000,0.5\n\
                2027-01-13,0,2,USD,0,,4,-2500,1.5,-2501.5,USD,-2500,1.5\n\
                2027-01-13,1,2,USD,0,,2,,,,USD,,\n";
    fs::write(data.join("profit.csv"), days).unwrap();
    let mut service = at(&data, THURSDAY_NOON_S, &["demo.cash=100000"]);
    let paid = |row: &serde_json::Value| row["netLiquidationValue"] == json!(100_000);
    service.until("/rest/ext/portfolio?strategy=SERVER", paid);
    service.trade(1, "BUY", "10", "200");
    service.trade(1, "SELL", "10", "201.5");
    let page = service.get("/rest/ext/report?strategy=SERVER");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert_eq!(page.header("cache-control"), Some("no-store"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    for text in [
        "<p>2027-01-12 to 2027-01-14, 3 trading days; the last one has not ended.</p>",
        "<h2>SERVER</h2>",
        "<tr><th>Equity<td>97,502.00 to 100,014.90 USD",
        "<tr><th>Profit before fees<td>2,515.00<tr><th>Fees<td>2.10<tr><th>Profit after fees<td>2,512.90",
        "<svg class=\"equity\"",
        "<svg class=\"draw-down\"",
        "<svg class=\"returns\"",
        "<tr><td>2027-01-13<td>-2.44 %<td>4<td>-2,500.00<td>1.50<td>-2,501.50",
        "<tr><td>2027-01-14<td>0.015 %<td>2<td>15.00<td>0.10<td>14.90",
        "<tr><td>MSFT<td>4<td>-2,500.00<td>1.50<td>-2,501.50",
    ] {
        assert!(page.body.contains(text), "{text}: {}", page.body);
    }
    assert!(!page.body.contains("<script") && !page.body.contains("://"), "{}", page.body);
    // A range that has ended: the equity is what it was then.
    let ended = service.get("/rest/ext/report?strategy=SERVER&from=2027-01-13&to=2027-01-13").body;
    assert!(ended.contains("<p>2027-01-13 to 2027-01-13, 1 trading day.</p>"), "{ended}");
    assert!(ended.contains("<tr><th>Equity<td>102,501.50 to 100,000.00 USD"), "{ended}");
    // All strategies, then each with a profit or a loss.
    let all = service.get("/rest/ext/report").body;
    let titles: Vec<&str> = all.split("<h2>").skip(1).filter_map(|part| part.split("</h2>").next()).collect();
    assert_eq!((titles[0], titles[1], titles.last()), ("All strategies", "SERVER", Some(&"Assumptions")));
    assert!(all.contains("<tr><th>Left out<td>1 result of a day without"), "{all}");
    let none = service.get("/rest/ext/report?to=2020-01-01");
    assert!(none.status == 200 && none.body.contains("There is no trading day in this range."));
    service.refuse("GET", "/rest/ext/report?strategy=NOBODY", "", 404, "unknown-strategy");
    for bad in ["from=yesterday", "to=2027-13-01", "from=2027-01-14&to=2027-01-13", "day=2027-01-14", "from="]
    {
        service.refuse("GET", &format!("/rest/ext/report?{bad}"), "", 400, "bad-query");
    }
}
