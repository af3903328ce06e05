//! The example strategies on a moving market.

use super::*;

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
