use pitlane_engine::command::MovementKind;
use pitlane_engine::event::PositionState;
use pitlane_engine::id::{AccountId, IntId, TransactionId};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::time::NS_PER_DAY;

use super::*;

const STRATEGY: StrategyId = StrategyId(1);
const SECURITY: SecurityId = SecurityId(1);

fn account(config: &Config) -> SimulationAccount {
    let reference = Arc::new(pitlane_config::refdata::shipped().unwrap());
    let mut account = SimulationAccount::new(config, reference, 1);
    account.lines = vec![StrategyResult { strategy: STRATEGY, ..StrategyResult::default() }];
    account
}

#[test]
fn a_curve_has_so_many_samples_and_is_thinned_out_beyond() {
    let mut account = account(&Config::default());
    let every_ns = account.sample_ns();
    let at = |n: usize| Timestamp(n as u64 * every_ns);
    let sample = |n| EquitySample { at: at(n), ..EquitySample::default() };
    account.lines[0].equity = (0..SAMPLES_MAX - 2).map(sample).collect();
    account.sample(at(SAMPLES_MAX - 2));
    assert_eq!((account.lines[0].equity.len(), account.sample_ns()), (SAMPLES_MAX - 1, every_ns));
    account.sample(at(SAMPLES_MAX - 1));
    assert_eq!((account.lines[0].equity.len(), account.sample_ns()), (SAMPLES_MAX / 2, 2 * every_ns));
    let times = account.lines[0].equity.iter().map(|sample| sample.at);
    assert!(times.eq((0..SAMPLES_MAX).step_by(2).map(at)), "every second one is left");
    assert_eq!(account.sample_at(), at(SAMPLES_MAX), "and they are taken half as often");
}

/// Books a fill of so many units at this price, after which the position is `held`.
fn book(account: &mut SimulationAccount, at: u64, qty: i64, price: i64, held: i64) {
    let currency = account.base;
    let booking = Booking {
        id: TransactionId(at),
        order: OrderHandle::new(ShardId(0), 0, 1),
        order_id: IntId::NONE,
        exec: Default::default(),
        kind: MovementKind::Buy,
        strategy: STRATEGY,
        account: AccountId(1),
        security: Some(SECURITY),
        qty: Qty::whole(qty).unwrap(),
        price: Price::whole(price).unwrap(),
        commission: Money::whole(1).unwrap(),
        currency,
        position: PositionState { qty: Qty::whole(held).unwrap(), ..PositionState::default() },
        cash: Money::ZERO,
    };
    account.book(Timestamp(at), SECURITY, &booking);
}

#[test]
fn fills_and_round_trips_are_counted_apart() {
    let mut config = Config::default();
    config.simulation.records_max = 3;
    let mut account = account(&config);
    for (nth, (qty, price, held)) in
        [(10, 100, 10), (10, 100, 20), (-20, 110, 0), (5, 100, 5), (-5, 90, 0)].into_iter().enumerate()
    {
        book(&mut account, nth as u64, qty, price, held);
    }
    let totals = account.lines[0].totals;
    assert_eq!((totals.fills, totals.round_trips, totals.wins, totals.losses), (5, 2, 1, 1));
    assert_eq!((totals.won, totals.lost), (Money::whole(197).unwrap(), Money::whole(52).unwrap()));
    assert_eq!(totals.turnover, Money::whole(1_000 + 1_000 + 2_200 + 500 + 450).unwrap());
    assert_eq!(totals.fees, Money::whole(5).unwrap());
    assert_eq!(account.lines[0].by_security[&SECURITY], totals);
    assert_eq!(account.lines[0].by_month["1970-01"], totals);
    assert_eq!((account.fills().rows().len(), account.fills().dropped()), (3, 2));
    assert_eq!(account.round_trips().rows().len(), 2);
}

#[test]
fn only_days_with_data_are_closed() {
    let mut account = account(&Config::default());
    account.begin(Timestamp(0));
    let row = TickRow {
        at: Timestamp(5),
        security: SECURITY,
        body: CommandKind::Trade { security: SECURITY, trade: Default::default() },
    };
    account.see(&row);
    for day in 1..=3 {
        account.sample(Timestamp(day * NS_PER_DAY));
    }
    account.see(&row);
    account.end(Timestamp(3 * NS_PER_DAY + 7), 2);
    let closed: Vec<u64> = account.lines[0].daily.iter().map(|sample| sample.at.0).collect();
    assert_eq!(closed, [NS_PER_DAY, 3 * NS_PER_DAY + 7]);
}

#[test]
fn the_hash_depends_on_what_happened_and_not_on_what_is_kept() {
    let run = |records_max: usize, price: i64| {
        let mut config = Config::default();
        config.simulation.records_max = records_max;
        let mut account = account(&config);
        book(&mut account, 1, 10, 100, 10);
        book(&mut account, 2, -10, price, 0);
        account.hash()
    };
    assert_eq!(run(100, 110), run(1, 110));
    assert_ne!(run(100, 110), run(100, 111));
}
