//! Trades of the market: each once, with its number, to those who watch them.

use super::*;
use crate::event::MarketTrade;

const VIEWER: PortId = PortId(0);

fn watch(on: bool) -> CommandKind {
    CommandKind::Watch { port: VIEWER, what: WatchTarget::Trades(SIM_STOCK), on }
}

fn trades(events: &[EventKind]) -> Vec<MarketTrade> {
    events
        .iter()
        .filter_map(|body| if let EventKind::MarketTrade(trade) = body { Some(*trade) } else { None })
        .collect()
}

fn texts(events: &[EventKind]) -> Vec<String> {
    let text = |trade: &MarketTrade| format!("{:?} {}x{}", trade.aggressor, trade.qty, trade.price);
    trades(events).iter().map(text).collect()
}

fn opened() -> Bench {
    let mut bench = Bench::new();
    bench.send(CommandKind::Subscribe { strategy: StrategyId(0), security: SIM_STOCK, on: true });
    bench
}

#[test]
fn each_trade_is_published_once_with_a_rising_number() {
    let mut bench = opened();
    bench.submit(limit(Side::Buy, 1, "5", "10"));
    let (_, unwatched) = bench.submit(limit(Side::Sell, 2, "1", "10"));
    assert!(trades(&unwatched).is_empty(), "no port watches");
    bench.send(watch(true));
    bench.submit(limit(Side::Buy, 1, "6", "9"));
    let (_, events) = bench.submit(limit(Side::Sell, 2, "7", "9"));
    assert_eq!(texts(&events), ["Some(Sell) 4x10", "Some(Sell) 3x9"]);
    let trade = Trade { price: price("12"), size: qty("8"), at: Timestamp(7) };
    let by_feed = bench.send(CommandKind::Trade { security: SIM_STOCK, trade });
    assert_eq!(texts(&by_feed), ["None 8x12"]);
    let numbers: Vec<_> =
        [events, by_feed].iter().flat_map(|events| trades(events)).map(|t| t.number).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    bench.send(watch(false));
    assert!(trades(&bench.send(CommandKind::Trade { security: SIM_STOCK, trade })).is_empty());
}

#[test]
fn trades_with_the_feed_are_among_them() {
    let mut bench = opened();
    bench.send(watch(true));
    let quote = |bid: &str, ask: &str| {
        let (bid_size, ask_size) = (qty("4"), qty("4"));
        let quote = Quote { bid: price(bid), bid_size, ask: price(ask), ask_size, at: Timestamp(7) };
        CommandKind::Quote { security: SIM_STOCK, quote }
    };
    bench.send(quote("10", "11"));
    let (_, taken) = bench.submit(limit(Side::Buy, 1, "3", "11"));
    assert_eq!(texts(&taken), ["Some(Buy) 3x11"]);
    bench.submit(limit(Side::Buy, 1, "2", "10.5"));
    assert_eq!(texts(&bench.send(quote("9", "10"))), ["Some(Sell) 2x10.5"], "the quote trades through it");
}

#[test]
fn a_security_without_subscribers_and_an_unknown_one_have_none() {
    let mut bench = Bench::new();
    bench.send(watch(true));
    let trade = Trade { price: price("12"), size: qty("8"), at: Timestamp(7) };
    assert!(trades(&bench.send(CommandKind::Trade { security: SIM_STOCK, trade })).is_empty());
    let unknown = CommandKind::Watch { port: VIEWER, what: WatchTarget::Trades(SecurityId(999)), on: true };
    assert_eq!(reason(&bench.send(unknown)), Reason::UnknownSecurity);
}
