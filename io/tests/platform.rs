//! The whole platform of `pitlane serve`, on a virtual clock.

use std::sync::Arc;

use pitlane::config::Config;
use pitlane::platform::{Platform, PlatformSettings};
use pitlane::refdata;
use pitlane_engine::event::{Body, Event};
use pitlane_engine::mesh::Depths;
use pitlane_engine::terms::{OrderKind, Status};
use pitlane_engine::time::{NS_PER_MS, NS_PER_S, Timestamp};

const START: Timestamp = Timestamp(1_800_000_000 * NS_PER_S);

/// What a platform says in so many seconds of virtual time.
fn story(settings: PlatformSettings, seconds: u64) -> (Platform, Vec<Event>) {
    let reference = Arc::new(refdata::shipped().expect("the shipped set is sound"));
    let mut platform = Platform::new(START, reference, &settings);
    let mut said = Vec::new();
    for step in 0..seconds * 100 {
        let now = START.plus(step * 10 * NS_PER_MS);
        while platform.poll(now, |_, _, event| said.push(*event)) > 0 {}
    }
    platform.wind_down();
    while platform.poll(START.plus(seconds * NS_PER_S), |_, _, event| said.push(*event)) > 0 {}
    (platform, said)
}

fn settings(shards: u8, seed: u64) -> PlatformSettings {
    let reference = refdata::shipped().expect("the shipped set is sound");
    let mut config = Config::default();
    config.topology.shards = shards;
    (config.service.seed, config.feed.seed, config.demo.on) = (seed, seed, true);
    PlatformSettings::of(&config, &reference)
}

#[test]
fn a_market_moves_and_a_trader_trades() {
    let (platform, said) = story(settings(2, 1), 120);
    let view = platform.view();
    assert_eq!(view.ticks().count(), platform.reference().securities().len(), "every security is quoted");
    let reports: Vec<_> = said.iter().filter_map(|event| event.report()).collect();
    for kind in OrderKind::ALL {
        assert!(reports.iter().any(|report| report.kind == kind), "{kind:?}");
    }
    for status in [Status::PendingNew, Status::New, Status::Filled, Status::Canceled, Status::Rejected] {
        assert!(reports.iter().any(|report| report.status == status), "{status:?}");
    }
    let booked = said.iter().filter(|event| matches!(event.body, Body::Booked(_))).count();
    assert!(booked > 10, "{booked}");
    assert!(view.positions().count() > 0);
}

#[test]
fn the_same_seed_says_the_same_and_another_does_not() {
    let (_, first) = story(settings(2, 5), 10);
    assert_eq!(first, story(settings(2, 5), 10).1);
    assert_ne!(first, story(settings(2, 6), 10).1);
}

#[test]
fn the_narrowest_lanes_are_wide_enough() {
    let narrow = PlatformSettings { depths: Depths { commands: 1, events: 1 }, ..settings(3, 2) };
    let (platform, said) = story(narrow, 20);
    assert!(said.iter().filter(|event| event.report().is_some()).count() > 50);
    assert_eq!(platform.view().ticks().count(), platform.reference().securities().len());
}
