//! Deterministic simulation: a seed defines a run.

use pitlane_engine::command::RiskLimits;
use pitlane_engine::mesh::Depths;
use pitlane_engine::number::Money;
use pitlane_engine::settings::{FillModel, QuoteSizes, SelfTrade, ShardSettings, TriggerBy};
use pitlane_tests::dice::Dice;
use pitlane_tests::flow::{Histories, OrderFlow};
#[cfg(feature = "io")]
use pitlane_tests::hours::HoursModel;
use pitlane_tests::platform::{PlatformSetup, SimPlatform, Storage};
use pitlane_tests::shard_and_twin::ShardAndTwin;
use pitlane_tests::shard_run::ShardRun;
use pitlane_tests::workload::{ActionGenerator, Profile};
use pitlane_tests::{seeds, test_market};

/// Actions of one run compared with the twin: long enough to fill a book, short enough for
/// thousands of runs.
const ACTIONS: usize = 250;
/// How often a shard is saved and loaded again, in percent of the actions.
const RELOADS_PERCENT: u64 = 3;

#[test]
fn a_shard_and_its_twin_agree() {
    seeds::run(4_000, duet);
}

fn duet(seed: u64, trace: bool) -> Result<(), String> {
    let mut dice = Dice::new(seed);
    let settings = settings(&mut dice);
    let mut profile = Profile::random(&mut dice);
    if !profile.limits && dice.percent(30) {
        profile.credit = Some(dice.pick(&[500, 3_000, 50_000]));
    }
    let credit = profile.credit;
    let mut workload = ActionGenerator::new(dice.fork(), profile);
    // Every fourth run is with venues that limit orders.
    let reference = if seed % 4 == 1 { test_market::limited_reference() } else { test_market::reference() };
    let mut pair = ShardAndTwin::new(reference, settings);
    pair.trace = trace.then(Vec::new);
    pair.special = seed.is_multiple_of(4).then(|| Dice::new(seed ^ 0x5bec));
    let mut moments = Dice::new(seed ^ 0x10ad);
    let mut run = || {
        for action in
            ActionGenerator::opening().into_iter().chain(credit.into_iter().flat_map(ActionGenerator::credit))
        {
            pair.step(&action)?;
        }
        for _ in 0..ACTIONS {
            let action = workload.next(pair.now);
            pair.step(&action)?;
            if moments.percent(RELOADS_PERCENT) {
                pair.reload()?;
            }
        }
        pair.replay()?;
        pair.checker.double_entry()
    };
    let outcome = seeds::guarded(&mut run);
    if let (Err(_), Some(trace)) = (&outcome, &pair.trace) {
        println!("{}", trace.join("\n"));
    }
    outcome
}

fn settings(dice: &mut Dice) -> ShardSettings {
    let mut settings = ShardSettings {
        orders_max: 1_000,
        finished_max: dice.pick(&[4, 64, 1_000]),
        finished_outside_max: dice.pick(&[4, 64, 1_000]),
        transactions_max: 10_000,
        executions_max: 10_000,
        trigger: dice.pick(&[TriggerBy::Last, TriggerBy::Last, TriggerBy::Quote]),
        ..ShardSettings::default()
    };
    settings.venue.fill_model = dice.pick(&FillModel::ALL);
    settings.venue.slippage_ticks = dice.pick(&[0, 1, 2]);
    settings.venue.quote_levels = dice.pick(&[1, 3, 10]);
    settings.venue.band_bp = dice.pick(&[0, 0, 0, 3, 60]);
    settings.venue.self_trade = dice.pick(&[SelfTrade::CancelNewest, SelfTrade::Allow]);
    settings.venue.quote_sizes = dice.pick(&[QuoteSizes::Equal, QuoteSizes::Varied]);
    settings
}

/// The journal of a run with restarts under other settings gives the same shard, from the beginning
/// or from a snapshot on.
#[test]
fn a_journal_gives_the_same_shard_over_many_starts() {
    seeds::run(1_000, |seed, _| {
        let mut dice = Dice::new(seed ^ 0x57a7);
        // No reader receives the events of a start, so a fill that could not be counted would be
        // missed.
        let profile = Profile { tame: true, ..Profile::random(&mut dice) };
        let mut workload = ActionGenerator::new(dice.fork(), profile);
        let mut run = ShardRun::new(settings(&mut dice));
        for action in ActionGenerator::opening() {
            run.step(&action)?;
        }
        for _ in 0..ACTIONS {
            match dice.below(100) {
                0..3 => run.begin(&mut dice)?,
                3..6 => run.reload()?,
                _ => run.step(&workload.next(run.now()))?,
            }
        }
        run.check_journal()
    });
}

/// Steps of a server with exchange hours: several weeks, for most of which it is down.
#[cfg(feature = "io")]
const HOURS_STEPS: usize = 60;

/// Closes, rollovers and expiries happen whether or not a server runs, and whatever its clock does.
#[cfg(feature = "io")]
#[test]
fn orders_and_expiries_end_on_time_however_often_the_server_is_down() {
    seeds::run(1_000, |seed, trace| {
        let mut hours = HoursModel::new(seed);
        let outcome = seeds::guarded(&mut || (0..HOURS_STEPS).try_for_each(|_| hours.step()));
        if outcome.is_err() && trace {
            println!("{}", hours.trace.join("\n"));
        }
        outcome
    });
}

#[test]
fn a_platform_in_chaos_settles_and_agrees() {
    seeds::run(4_000, |seed, trace| chaos(seed, trace).map(|_| ()));
}

#[test]
fn the_same_seed_gives_the_same_events() {
    seeds::run(100, |seed, trace| {
        let (first, second) = (chaos(seed, trace)?, chaos(seed, trace)?);
        if first == second { Ok(()) } else { Err(format!("{first:016x}, then {second:016x}")) }
    });
}

/// Steps of a platform before it settles.
const STEPS: usize = 2_000;

/// Runs a platform, and returns the hash of all its events.
fn chaos(seed: u64, trace: bool) -> Result<u64, String> {
    let mut dice = Dice::new(seed ^ 0xc4a05);
    let mut settings = settings(&mut dice);
    settings.orders_max = 4_096;
    // Nothing is predicted here, so the venue's random rejects and delays are on.
    settings.venue.reject_permille = dice.pick(&[0, 50]);
    settings.venue.partial_fill = dice.percent(30);
    settings.venue.band_bp = dice.pick(&[0, 0, 300]);
    settings.venue.delays.entry_ns = dice.pick(&[0, 0, 2_000_000]);
    settings.venue.delays.entry_jitter_ns = dice.pick(&[0, 500_000]);
    settings.venue.delays.response_ns = dice.pick(&[0, 0, 3_000_000]);
    settings.venue.delays.response_jitter_ns = dice.pick(&[0, 700_000]);
    let mut profile = Profile::random(&mut dice);
    profile.tame = dice.percent(70);
    let limits = RiskLimits {
        max_open_orders: dice.pick(&[1, 3, 10, 40]),
        max_orders_per_s: dice.pick(&[0, 5, 50]),
        ..RiskLimits::default()
    };
    let setup = PlatformSetup {
        shards: dice.pick(&[1, 2, 5, 7]),
        depths: Depths { commands: dice.pick(&[2, 3, 16, 1_024]), events: dice.pick(&[2, 5, 64, 1_024]) },
        settings,
        profile,
        limits: dice.percent(50).then_some(limits),
        credit: dice.percent(40).then_some(RiskLimits {
            credit: Money::whole(dice.pick(&[2_000, 20_000])).expect("a small number"),
            credit_currency: test_market::currency("USD"),
            ..RiskLimits::default()
        }),
        storage: Storage {
            slow: dice.percent(50),
            shuts_permille: dice.pick(&[0, 0, 5]),
            reloads_permille: dice.pick(&[0, 10]),
        },
        steps: STEPS,
    };
    let mut platform = SimPlatform::new(seed, &setup);
    platform.trace = trace.then(Vec::new);
    let mut run = || {
        for _ in 0..setup.steps {
            platform.step()?;
        }
        platform.settle()
    };
    let outcome = seeds::guarded(&mut run);
    if let (Err(_), Some(trace)) = (&outcome, &platform.trace) {
        println!("{setup:#?}\n{}\n{}", trace.join("\n"), platform.journal());
    }
    outcome.map(|()| platform.hash)
}

#[test]
fn one_shard_and_seven_give_each_order_the_same_history() {
    seeds::run(1_000, |seed, _| {
        let mut dice = Dice::new(seed ^ 0x0107);
        let mut settings = settings(&mut dice);
        (settings.finished_max, settings.finished_outside_max) = (1_000, 1_000);
        let profile = Profile {
            securities: test_market::SECURITIES.to_vec(),
            limits: false,
            ..Profile::random(&mut dice)
        };
        let one = histories(1, seed, &settings, &profile);
        for shards in [2, 7] {
            let many = histories(shards, seed, &settings, &profile);
            for (position, history) in &one.positions {
                same(position, history, many.positions.get(position), shards)?;
            }
            for (nth, history) in &one.orders {
                same(nth, history, many.orders.get(nth), shards)?;
            }
        }
        Ok(())
    });
}

/// Reports the first line at which two histories differ.
fn same<T: PartialEq + std::fmt::Debug>(
    what: &impl std::fmt::Debug,
    one: &[T],
    many: Option<&Vec<T>>,
    shards: u8,
) -> Result<(), String> {
    let many = many.map_or(&[][..], Vec::as_slice);
    let Some(at) = (0..one.len().max(many.len())).find(|&at| one.get(at) != many.get(at)) else {
        return Ok(());
    };
    let (one, many) = (one.get(at), many.get(at));
    Err(format!("{what:?}, line {at}: on one shard {one:?}\non {shards} shards {many:?}"))
}

fn histories(shards: u8, seed: u64, settings: &ShardSettings, profile: &Profile) -> Histories {
    let mut workload = ActionGenerator::new(Dice::new(seed), profile.clone());
    let mut flow = OrderFlow::new(shards, &test_market::reference(), settings);
    for action in ActionGenerator::opening() {
        flow.step(&action);
    }
    for _ in 0..ACTIONS {
        let action = workload.next(flow.now());
        flow.step(&action);
    }
    flow.histories()
}
