//! The configured strategies in the form that a runner takes, in every mode.

use pitlane_config::StrategyConfig;
use pitlane_config::pages::LARGE_PAGES;
use pitlane_engine::desk::IdBlock;
use pitlane_engine::id::StrategyId;
use pitlane_engine::refdata::RefData;
use pitlane_runtime::log::fenced;
use pitlane_strategy::Operation;
use pitlane_strategy::host::HostSettings;
use pitlane_strategy::registry::Registry;
use pitlane_strategy::runner::RunnerSettings;

/// Orders of all strategies of this process that are known at once, and finished ones among them: a
/// strategy has at most a thousand open.
const ORDERS_MAX: u32 = 65_536;
const FINISHED_MAX: u32 = 16_384;

/// Returns the ids of the strategies that run in this process.
pub fn run_here(strategies: &[StrategyConfig], reference: &RefData) -> Vec<StrategyId> {
    let rows = reference.strategies().iter();
    let here = |name: &String| strategies.iter().any(|strategy| strategy.name == *name);
    rows.filter(|row| here(&row.name)).map(|row| row.id).collect()
}

/// Returns the strategies that the reference data contain; a start with any other is refused.
pub fn hosts(strategies: &[StrategyConfig], reference: &RefData, registry: &Registry) -> Vec<HostSettings> {
    let host = |strategy: &StrategyConfig| {
        let row = reference.strategies().iter().find(|row| row.name == strategy.name)?;
        Some(HostSettings {
            id: row.id,
            name: strategy.name.clone(),
            make: strategy.make(reference, registry).ok()?,
            start: strategy.start,
            cancel_on_failure: strategy.cancel_on_failure,
        })
    };
    strategies.iter().filter_map(host).collect()
}

pub fn runner_settings(operation: Operation, numbers: IdBlock, seed: u64) -> RunnerSettings {
    RunnerSettings {
        operation,
        guard: fenced,
        orders_max: ORDERS_MAX,
        finished_max: FINISHED_MAX,
        numbers,
        seed,
        pages: LARGE_PAGES,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pitlane_config::refdata;
    use pitlane_engine::command::StrategyPhase;
    use pitlane_engine::id::ShardId;
    use pitlane_engine::mesh::{Depths, PortClass, mesh};
    use pitlane_engine::settings::ShardSettings;
    use pitlane_engine::shard::Shard;
    use pitlane_engine::time::Timestamp;
    use pitlane_engine::worker::Worker;
    use pitlane_strategy::host::StrategyFactory;
    use pitlane_strategy::runner::{Notice, Runner};
    use pitlane_strategy::{Context, Failure, Strategy};

    use super::*;

    struct Panicking;

    impl Strategy for Panicking {
        fn on_phase(&mut self, phase: StrategyPhase, _: &mut Context<'_>) -> Result<(), Failure> {
            assert_ne!(phase, StrategyPhase::Running, "it does not know how to run");
            Ok(())
        }
    }

    struct DoesNothing;

    impl Strategy for DoesNothing {}

    #[test]
    fn a_strategy_that_panics_is_stopped_alone() {
        let reference = Arc::new(refdata::shipped().unwrap());
        let (mut ports, mut ends) = mesh(&[PortClass::Client], 1, Depths::default());
        let settings = ShardSettings { orders_max: 100, ..ShardSettings::default() };
        let shard = Shard::new(ShardId(0), 1, reference.clone(), settings);
        let mut worker = Worker::new(shard, ends.remove(0));
        let host = |id, make| HostSettings {
            id: StrategyId(id),
            name: reference.strategy(StrategyId(id)).unwrap().name.clone(),
            make,
            start: true,
            cancel_on_failure: true,
        };
        let hosts = vec![
            host(1, Box::new(|| -> Box<dyn Strategy> { Box::new(Panicking) }) as StrategyFactory),
            host(2, Box::new(|| -> Box<dyn Strategy> { Box::new(DoesNothing) })),
        ];
        let run = runner_settings(Operation::RealTime, IdBlock { next: 1, end: 100 }, 1);
        let mut runner = Runner::new(ports.remove(0), reference.clone(), run, hosts);
        let now = Timestamp(1);
        while worker.poll(now) + runner.drain_events(now, 1_000) + runner.poll(now) > 0 {}
        runner.begin();
        while worker.poll(now) + runner.drain_events(now, 1_000) + runner.poll(now) > 0 {}
        let phases: Vec<StrategyPhase> = runner.hosts().iter().map(|host| host.phase()).collect();
        assert_eq!(phases, [StrategyPhase::Stop, StrategyPhase::Running]);
        let Some(Notice::Failed { reason, .. }) = runner.poll_notice() else { panic!("no notice was sent") };
        assert!(reason.contains("it does not know how to run"), "{reason}");
    }
}
