//! The example strategies on a moving market.

use super::*;
use crate::bars::BarMaker;
use crate::examples::{MarketMaker, MovingAverage};
use crate::testing::TestMarket;

fn example(kind: &str, texts: &[(&str, &str)]) -> StrategyFactory {
    let texts: BTreeMap<String, String> = texts.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let registry = Registry::with_examples();
    let Ok(make) = registry.find(kind).unwrap().make(&[STOCK], &Parameters::new(texts)) else {
        panic!("{kind}")
    };
    make
}

/// Runs a walk of trades with a quote of one tick to each side.
fn walk(rig: &mut RunnerRig, steps: u32, mut look: impl FnMut(&RunnerRig)) {
    let mut rng = Rng::new(3);
    let mut at = price("10").raw();
    for _ in 0..steps {
        at = (at + (rng.below(7) as i64 - 3) * price("0.01").raw()).max(price("1").raw());
        rig.trade(STOCK, Price::from_raw(at));
        look(rig);
    }
}

#[test]
fn the_moving_average_holds_what_the_averages_say() {
    let texts = [("fast", "3"), ("slow", "12"), ("bar_s", "0"), ("qty", "10"), ("short", "true")];
    let run = || {
        let mut rig =
            RunnerRig::new(vec![host(FIRST, example("moving-average-cross", &texts))], Operation::RealTime);
        let mut held = Vec::new();
        walk(&mut rig, 500, |rig| {
            held.push(rig.runner.hosts()[0].book.positions.get(&STOCK).map_or(0, |state| state.qty.raw()));
        });
        assert!(held.iter().all(|held| [0, qty(10).raw(), -qty(10).raw()].contains(held)));
        let turns = held.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(turns > 10, "{turns}");
        (held, rig.order_events())
    };
    assert_eq!(run(), run(), "the same market, the same orders");
}

#[test]
fn the_market_maker_quotes_both_sides_within_its_bounds() {
    let texts = [("qty", "10"), ("half_spread_ticks", "2"), ("position_max", "30"), ("loss_max", "0")];
    let mut rig = RunnerRig::new(vec![host(FIRST, example("market-maker", &texts))], Operation::RealTime);
    let (mut both, mut held_most) = (0, 0);
    walk(&mut rig, 500, |rig| {
        let book = &rig.runner.hosts()[0].book;
        let (open, tick) = (book.orders.open(), rig.runner.market().tick(STOCK).unwrap());
        for order in open {
            let crosses = match order.side {
                Side::Buy => order.limit >= tick.ask,
                Side::Sell => order.limit <= tick.bid,
            };
            assert!(!crosses, "{order:?} {tick:?}");
        }
        both += (open.len() == 2) as u32;
        held_most = held_most.max(book.positions.get(&STOCK).map_or(0, |state| state.qty.raw().abs()));
        assert!(open.len() <= 2 && held_most <= qty(30).raw());
    });
    assert!(both > 250, "{both}");
    assert!(rig.order_events().iter().any(|line| line.contains(&format!("{:?}", ExecType::Filled))));
    // After the stop no order is left in the market.
    rig.transition_to(FIRST, StrategyPhase::Stop);
    assert!(rig.runner.hosts()[0].book.orders.open().is_empty());
}

#[test]
fn the_market_maker_gives_up_at_its_loss() {
    let texts = [("qty", "10"), ("half_spread_ticks", "1"), ("position_max", "100"), ("loss_max", "0.01")];
    let mut rig = RunnerRig::new(vec![host(FIRST, example("market-maker", &texts))], Operation::RealTime);
    for cents in (0..200).map(|step| 1_000 - step * 2).chain((0..200).map(|step| 600 + step * 2)) {
        rig.trade(STOCK, Price::from_raw(price("0.01").raw() * cents));
    }
    let host = &rig.runner.hosts()[0];
    let reason = host.reason().map(|reason| reason.to_string()).unwrap_or_default();
    assert!(host.phase() == StrategyPhase::Stop && reason.contains("loss_max"), "{host:?}");
}

#[test]
fn the_market_maker_needs_a_position_of_one_quote_or_more() {
    for (position_max, fault) in [("9", Some("position_max")), ("10", None), ("11", None)] {
        let texts = [("qty", "10"), ("position_max", position_max)];
        let found = TestMarket::with::<MarketMaker>(&texts).err().map(|bad| bad.name);
        assert_eq!(found.as_deref(), fault, "{position_max}");
    }
}

#[test]
fn the_market_maker_quotes_around_two_prices_and_only_while_it_runs() {
    let mut rig = RunnerRig::new(vec![host(FIRST, example("market-maker", &[]))], Operation::Simulation);
    rig.transition_to(FIRST, StrategyPhase::Prefeed);
    rig.quote(STOCK, "10.00", "10.02");
    assert_eq!(rig.phase(FIRST), StrategyPhase::Prefeed);
    rig.transition_to(FIRST, StrategyPhase::Running);
    let open = |rig: &RunnerRig| rig.runner.hosts()[0].book.orders.open().len();
    let quote = Quote { bid: price("10.00"), bid_size: qty(1), at: rig.now.plus(1), ..Quote::default() };
    rig.send(STOCK, CommandKind::Quote { security: STOCK, quote });
    let quote = Quote { ask: price("10.00"), ask_size: qty(1), at: rig.now.plus(2), ..Quote::default() };
    rig.send(STOCK, CommandKind::Quote { security: STOCK, quote });
    assert_eq!(open(&rig), 0);
    rig.quote(STOCK, "10.00", "10.02");
    assert_eq!(open(&rig), 2);
}

#[test]
fn the_moving_average_trades_at_a_cross_and_only_while_it_runs() {
    let texts = [("fast", "1"), ("slow", "2"), ("bar_s", "0"), ("qty", "10")];
    let mut market = TestMarket::with::<MovingAverage>(&texts).unwrap();
    for (at, held) in [("10.00", 0), ("10.10", 10), ("10.20", 10), ("10.05", 0), ("10.00", 0), ("10.30", 10)]
    {
        market.trade(at);
        assert_eq!(market.position().qty, qty(held), "{at}");
    }
    let make = example("moving-average-cross", &texts);
    let mut rig = RunnerRig::new(vec![host(FIRST, make)], Operation::Simulation);
    rig.transition_to(FIRST, StrategyPhase::Prefeed);
    for at in ["10.00", "10.10", "10.00"] {
        rig.trade(STOCK, price(at));
        assert_eq!(rig.phase(FIRST), StrategyPhase::Prefeed);
    }
}

#[test]
fn the_moving_average_reads_bars_of_its_seconds_and_stops_if_it_is_rejected() {
    let make = example("moving-average-cross", &[("bar_s", "30")]);
    let rig = RunnerRig::new(vec![host(FIRST, make)], Operation::RealTime);
    let intervals = rig.runner.hosts()[0].book.bars.iter().map(BarMaker::interval_ns);
    assert_eq!(intervals.collect::<Vec<_>>(), [30 * NS_PER_S]);
    // Half a share is no whole lot.
    let texts = [("fast", "1"), ("slow", "2"), ("bar_s", "0"), ("qty", "0.5")];
    let mut market = TestMarket::with::<MovingAverage>(&texts).unwrap();
    market.trade("10.00");
    market.trade("10.10");
    assert!(market.failure().unwrap_or_default().contains("was rejected"), "{:?}", market.failure());
    assert_eq!(market.phase(), StrategyPhase::Stop);
}
