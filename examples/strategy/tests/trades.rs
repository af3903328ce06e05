//! The strategy at a real shard with its simulated venue.

use std::collections::BTreeMap;

use mean_reversion::market::{Market, STOCK};
use mean_reversion::mean_reversion::make;
use pitlane_engine::command::{Quote, StrategyPhase};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_strategy::parameters::Parameters;

fn parameters(texts: &[(&str, &str)]) -> Parameters {
    let owned = |(name, text): &(&str, &str)| (name.to_string(), text.to_string());
    Parameters::new(texts.iter().map(owned).collect::<BTreeMap<_, _>>())
}

/// Quotes a spread of two cents around each mid price, one per second; returns the transactions.
fn trade_over(mids: &[&str]) -> Vec<String> {
    let texts = [("ticks", "3"), ("distance_bp", "100"), ("qty", "10")];
    let make_strategy = make(&[STOCK], &parameters(&texts)).unwrap_or_else(|bad| panic!("{bad}"));
    let mut market = Market::new(make_strategy, Timestamp(NS_PER_S));
    assert_eq!(market.phase(), StrategyPhase::Running);
    let cent = Price::parse(b"0.01").unwrap().raw();
    let size = Qty::whole(100).unwrap();
    for (second, mid) in mids.iter().enumerate() {
        let mid = Price::parse(mid.as_bytes()).unwrap().raw();
        let (bid, ask) = (Price::from_raw(mid - cent), Price::from_raw(mid + cent));
        let at = Timestamp((second as u64 + 2) * NS_PER_S);
        market.quote(Quote { bid, bid_size: size, ask, ask_size: size, at }).unwrap();
    }
    let after_time = |line: String| line.split_once(' ').unwrap().1.to_string();
    market.take_lines().into_iter().map(after_time).collect()
}

#[test]
fn it_buys_below_the_average_and_sells_when_the_price_is_back() {
    let trades = trade_over(&["10.00", "10.00", "10.00", "9.80", "9.80", "9.95", "10.00"]);
    let expected = ["traded 10 at 9.81, holds 10, realized 0", "traded -10 at 9.94, holds 0, realized 1.3"];
    assert_eq!(trades, expected);
}

#[test]
fn it_sends_nothing_while_the_price_is_near_the_average() {
    assert!(trade_over(&["10.00", "9.99", "10.00", "9.98", "10.02", "9.97", "10.00"]).is_empty());
}

#[test]
fn it_sends_nothing_before_the_average_is_complete() {
    assert!(trade_over(&["10.00", "9.00"]).is_empty());
}

#[test]
fn a_fault_in_the_parameters_is_named() {
    let fault = |texts: &[(&str, &str)]| make(&[STOCK], &parameters(texts)).err().map(|bad| bad.to_string());
    assert_eq!(fault(&[("ticks", "3"), ("distance_bp", "100"), ("qty", "10")]), None);
    let missing = fault(&[("ticks", "3"), ("qty", "10")]);
    assert_eq!(missing.as_deref(), Some("distance_bp: it is missing"));
    let unknown = fault(&[("ticks", "3"), ("distance_bp", "100"), ("qty", "10"), ("size", "1")]);
    assert!(unknown.is_some_and(|text| text.starts_with("size: there is no such parameter")));
}
