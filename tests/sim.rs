//! Deterministic simulation: a run is a seed.

use pitlane_engine::settings::{FillModel, SelfTrade, ShardSettings, TriggerBy};
use pitlane_tests::dice::Dice;
use pitlane_tests::pair::Pair;
use pitlane_tests::workload::{Profile, Workload};
use pitlane_tests::{seeds, world};

/// Deeds of one run beside the twin: long enough to fill a book, short enough for thousands of runs.
const DEEDS: usize = 250;

#[test]
fn a_shard_says_what_its_twin_predicts() {
    seeds::run(1_200, duet);
}

fn duet(seed: u64, trace: bool) -> Result<(), String> {
    let mut dice = Dice::new(seed);
    let settings = settings(&mut dice);
    let profile = Profile::random(&mut dice);
    let mut workload = Workload::new(dice.fork(), profile);
    let mut pair = Pair::new(world::reference(), settings);
    pair.trace = trace.then(Vec::new);
    let mut run = || {
        for deed in Workload::opening() {
            pair.step(&deed)?;
        }
        for _ in 0..DEEDS {
            let deed = workload.next(pair.now);
            pair.step(&deed)?;
        }
        pair.checker.double_entry()
    };
    let outcome = run();
    if let (Err(_), Some(trace)) = (&outcome, &pair.trace) {
        println!("{}", trace.join("\n"));
    }
    outcome
}

fn settings(dice: &mut Dice) -> ShardSettings {
    let mut settings = ShardSettings {
        orders_max: 1_000,
        finished_max: dice.pick(&[4, 64, 1_000]),
        transactions_max: 10_000,
        executions_max: 10_000,
        trigger: dice.pick(&[TriggerBy::Last, TriggerBy::Last, TriggerBy::Quote]),
        ..ShardSettings::default()
    };
    settings.venue.fill_model =
        dice.pick(&[FillModel::Queue, FillModel::Queue, FillModel::Through, FillModel::Touch]);
    settings.venue.slippage_ticks = dice.pick(&[0, 1, 2]);
    settings.venue.quote_levels = dice.pick(&[1, 3, 10]);
    settings.venue.self_trade = dice.pick(&[SelfTrade::CancelNewest, SelfTrade::Allow]);
    settings
}
