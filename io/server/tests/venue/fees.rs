//! Fees of Binance Spot in the asset that was bought, in the asset that was received for a sale,
//! and in a third asset: our books are those of the venue.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pitlane_engine::number::Money;
use pitlane_testkit::binance::FeeRule;
use pitlane_testkit::service::{ServiceProcess, folder};
use serde_json::Value;

use crate::binance_standin::BinanceStandIn;
use crate::market::{VenueAddress, await_connected, client, get, start};
use crate::orders::report;

/// Time until the books must be equal. Only a failing test waits for so long.
const PATIENCE: Duration = Duration::from_secs(120);

/// The assets of the share that these tests trade: the share itself, and its currency.
pub(crate) const ASSETS: [&str; 2] = ["BINA", "USD"];

pub(crate) fn received() -> FeeRule {
    let [base, quote] = ASSETS.map(str::to_string);
    FeeRule::Received { base, quote }
}

/// Returns what we hold of each asset: the position in the share, and cash.
fn holdings(service: &ServiceProcess) -> BTreeMap<String, i64> {
    let mut held: BTreeMap<String, i64> = BTreeMap::new();
    let mut add = |asset: &Value, amount: &Value| {
        let amount = Money::parse(amount.to_string().as_bytes()).expect("a decimal");
        *held.entry(asset.as_str().expect("a name").to_string()).or_default() += amount.raw();
    };
    let rows = |path: &str| get(service, path).as_array().expect("a list").clone();
    for row in rows("/rest/position") {
        add(&row["symbol"], &row["quantity"]);
    }
    for row in rows("/rest/ext/cash-balance") {
        add(&row["currency"], &row["amount"]);
    }
    held.retain(|_, amount| *amount != 0);
    held
}

/// Waits until the holdings are the balances of the venue.
pub(crate) fn await_equal_books(service: &ServiceProcess, standin: &BinanceStandIn) {
    let end = Instant::now() + PATIENCE;
    loop {
        let mut balances = standin.exchange().balances(ASSETS[0], ASSETS);
        balances.retain(|_, amount| *amount != 0);
        let held = holdings(service);
        if held == balances {
            return;
        }
        assert!(Instant::now() < end, "ours: {held:?}, those of the venue: {balances:?}");
        std::thread::yield_now();
    }
}

#[test]
fn fees_are_booked_in_the_asset_in_which_the_venue_charges_them() {
    let data = folder("binance-fees");
    let standin = BinanceStandIn::start(0);
    let table = standin.table(20_000);
    let venues = [VenueAddress { name: "BINA", port: 0, more: &table }];
    let service = start(&data, &venues, &["topology.shards=2"]);
    await_connected(&service, "BINA", true);
    let mut client = client(&service, "KEEP1");
    let third = FeeRule::Fixed { asset: "BNB".to_string(), amount: Money::from_raw(1_500_000) };
    for (id, side, qty, price, fees, asset) in [
        ("a", 1, 10, "201", received(), "BINA"),
        ("b", 2, 4, "199", received(), "USD"),
        ("c", 1, 3, "201", third, "BNB"),
    ] {
        standin.exchange().fees = fees;
        client.order(id, "BINA", side, qty, price);
        report(&mut client, &[(11, id), (39, "2")]);
        await_equal_books(&service, &standin);
        let charged: Vec<String> =
            standin.exchange().trades.iter().map(|trade| trade.commission_asset.clone()).collect();
        assert_eq!(charged.last().map(String::as_str), Some(asset));
    }
    let transactions = get(&service, "/rest/transaction/daily");
    let rows = transactions.as_array().expect("a list");
    // Each order trades in two parts. A fee in the currency of the share is a part of its fill.
    let count = |kind: &str| rows.iter().filter(|row| row["type"] == kind).count();
    assert_eq!((count("BUY"), count("SELL"), count("FEES")), (4, 2, 4), "{transactions}");
    let fees = rows.iter().filter(|row| row["type"] == "FEES");
    assert!(fees.clone().all(|row| row["orderIntId"].is_string()), "{transactions}");
    service.signal("TERM");
    assert!(service.end().is_orderly());
    // The journal has the same books.
    let service = start(&data, &venues, &["topology.shards=2"]);
    await_equal_books(&service, &standin);
    service.signal("TERM");
    assert!(service.end().is_orderly());
}
