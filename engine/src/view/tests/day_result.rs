use super::valuation::{hold, quote, reference};
use super::*;
use crate::view::DayResult;

/// Books a trade of strategy 1 in security 1, whose contract size is 10.
fn trade(bench: &mut ViewBench, number: u32, quantity: &str, at: &str, held: &str) {
    let position = PositionState { qty: qty(held), cost: money("0"), realized: money("0") };
    let booking = Booking { qty: qty(quantity), price: price(at), position, ..booking(1, number, "0") };
    bench.emit(0, EventKind::Booked(booking));
}

fn results(bench: &ViewBench, close: Option<&str>) -> Vec<DayResult> {
    bench.view.day_results(|_| true, |_| close.map(price), &reference())
}

#[test]
fn a_day_that_begins_flat_counts_its_trades_at_the_market() {
    let mut bench = ViewBench::new(1);
    quote(&mut bench, 1, "12", "13", "12.5");
    trade(&mut bench, 1, "5", "10", "5");
    trade(&mut bench, 2, "-3", "14", "2");
    let expected = DayResult {
        strategy: StrategyId(1),
        security: SecurityId(1),
        currency: currency("USD"),
        qty: qty("2"),
        price: Some(price("12")),
        trades: 2,
        // 2 × 12 − 5 × 10 + 3 × 14 = 16, ten times.
        gross: Some(money("160")),
        fees: Some(money("0.2")),
        net: Some(money("159.8")),
    };
    assert_eq!(results(&bench, None), [expected]);
    assert_eq!(bench.view.day_results(|of| of != StrategyId(1), |_| None, &reference()), []);
}

#[test]
fn a_position_from_the_day_before_counts_from_its_close() {
    let mut bench = ViewBench::new(1);
    quote(&mut bench, 1, "12", "13", "12.5");
    hold(&mut bench, 1, 1, qty("4"), money("300"), Money::ZERO);
    assert_eq!(results(&bench, None)[0].gross, None);
    // 4 × (12 − 11), ten times: what it cost is of an earlier day.
    assert_eq!(results(&bench, Some("11"))[0].gross, Some(money("40")));
    trade(&mut bench, 1, "-4", "12.5", "0");
    let closed = results(&bench, Some("11"));
    assert_eq!((closed[0].gross, closed[0].net), (Some(money("60")), Some(money("59.9"))));
}

#[test]
fn without_all_trades_of_the_day_there_is_no_result() {
    let mut bench = ViewBench::with(1, ViewSettings { transactions_max: 2, ..ViewSettings::default() });
    quote(&mut bench, 1, "12", "13", "12.5");
    bench.emit(0, EventKind::TradingDay { day: Day(1) });
    (1..=2).for_each(|number| trade(&mut bench, number, "1", "10", &number.to_string()));
    assert_eq!(results(&bench, None)[0].gross, Some(money("40")));
    trade(&mut bench, 3, "1", "10", "3");
    assert_eq!((results(&bench, None)[0].gross, results(&bench, None)[0].fees), (None, None));
    bench.emit(0, EventKind::TradingDay { day: Day(2) });
    assert_eq!(results(&bench, Some("12"))[0].gross, Some(Money::ZERO));
}

#[test]
fn a_shard_that_kept_no_more_trades_than_it_can_may_have_dropped_some() {
    for (kept, gross) in [(2, Some(money("40"))), (3, None)] {
        let settings = ViewSettings { shard_transactions_max: 3, ..ViewSettings::default() };
        let mut bench = ViewBench::with(1, settings);
        quote(&mut bench, 1, "12", "13", "12.5");
        bench.begin(0);
        (1..=kept).for_each(|number: u32| trade(&mut bench, number, "1", "10", &number.to_string()));
        bench.emit(
            0,
            EventKind::Tick(Tick {
                security: SecurityId(1),
                bid: price("12"),
                bid_size: qty("1"),
                ..Tick::default()
            }),
        );
        bench.end(0);
        assert_eq!(results(&bench, None)[0].gross, gross, "{kept}");
    }
}

#[test]
fn the_totals_of_a_day_that_ends_are_kept_until_they_are_taken() {
    let mut bench = ViewBench::new(2);
    (0..2).for_each(|shard| bench.emit(shard, EventKind::TradingDay { day: Day(1) }));
    quote(&mut bench, 1, "12", "13", "12.5");
    trade(&mut bench, 1, "5", "10", "5");
    assert_eq!(bench.view.take_ended_days(), [], "the first day that is told ends none");
    bench.emit(0, EventKind::TradingDay { day: Day(2) });
    bench.emit(0, EventKind::TradingDay { day: Day(2) });
    quote(&mut bench, 1, "20", "21", "20.5");
    let ended = bench.view.take_ended_days();
    assert_eq!((ended.len(), ended[0].day, ended[0].totals.len()), (1, Day(1), 1));
    let first = ended[0].totals[0].result(None, &reference()).unwrap();
    assert_eq!(
        (first.price, first.gross, first.fees),
        (Some(price("12")), Some(money("100")), Some(money("0.1")))
    );
    // The next day begins where the first one ended, so that no profit is counted twice or never.
    let next = bench.view.day_results(|_| true, |_| first.price, &reference());
    assert_eq!((next[0].trades, next[0].gross), (0, Some(money("400"))));
    // The other shard has no positions.
    bench.emit(1, EventKind::TradingDay { day: Day(2) });
    let ended = bench.view.take_ended_days();
    assert_eq!((ended[0].day, ended[0].totals.as_slice()), (Day(1), &[][..]));
    assert_eq!(bench.view.take_ended_days(), []);
}

#[test]
fn ended_days_that_nobody_takes_are_bounded() {
    let mut bench = ViewBench::new(2);
    bench.emit(1, EventKind::TradingDay { day: Day(1) });
    bench.emit(1, EventKind::TradingDay { day: Day(2) });
    (1..100).for_each(|day| bench.emit(0, EventKind::TradingDay { day: Day(day) }));
    let days: Vec<Day> = bench.view.take_ended_days().iter().map(|ended| ended.day).collect();
    assert_eq!(days, [1, 95, 96, 97, 98].map(Day));
}
