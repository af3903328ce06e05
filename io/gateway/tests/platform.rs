//! The whole platform of `pitlane serve`, with a virtual clock.

use std::sync::Arc;

use pitlane_config::refdata;
use pitlane_config::{Config, HoursBy};
use pitlane_engine::command::TradingSession;
use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::mesh::Depths;
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{OrderKind, Status};
use pitlane_engine::time::{NS_PER_MS, NS_PER_S, Timestamp};
use pitlane_gateway::{Platform, PlatformSettings};

const START: Timestamp = Timestamp(1_800_000_000 * NS_PER_S);

/// Returns the events of a platform in so many seconds of virtual time.
fn run_events(settings: PlatformSettings, seconds: u64) -> (Platform, Vec<Event>) {
    story_from(START, settings, seconds)
}

fn story_from(start: Timestamp, settings: PlatformSettings, seconds: u64) -> (Platform, Vec<Event>) {
    let reference = Arc::new(refdata::shipped().expect("the shipped set is sound"));
    let mut platform = Platform::new(start, reference, &settings);
    let mut events = Vec::new();
    for step in 0..seconds * 100 {
        let now = start.plus(step * 10 * NS_PER_MS);
        while platform.poll(now, |_, _, event| events.push(*event)) > 0 {}
    }
    platform.wind_down();
    while platform.poll(start.plus(seconds * NS_PER_S), |_, _, event| events.push(*event)) > 0 {}
    (platform, events)
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
    let (platform, events) = run_events(settings(2, 1), 120);
    let view = platform.view();
    assert_eq!(view.ticks().count(), platform.reference().securities().len(), "every security is quoted");
    let reports: Vec<_> = events.iter().filter_map(|event| event.report()).collect();
    for kind in OrderKind::ALL {
        assert!(reports.iter().any(|report| report.kind == kind), "{kind:?}");
    }
    for status in [Status::PendingNew, Status::New, Status::Filled, Status::Canceled, Status::Rejected] {
        assert!(reports.iter().any(|report| report.status == status), "{status:?}");
    }
    let booked = events.iter().filter(|event| matches!(event.body, EventKind::Booked(_))).count();
    assert!(booked > 10, "{booked}");
    assert!(view.positions().count() > 0);
}

#[test]
fn the_same_seed_gives_the_same_events_and_another_does_not() {
    let (_, first) = run_events(settings(2, 5), 10);
    assert_eq!(first, run_events(settings(2, 5), 10).1);
    assert_ne!(first, run_events(settings(2, 6), 10).1);
}

#[test]
fn the_narrowest_lanes_are_wide_enough() {
    let narrow = PlatformSettings { depths: Depths { commands: 1, events: 1 }, ..settings(3, 2) };
    let (platform, events) = run_events(narrow, 20);
    assert!(events.iter().filter(|event| event.report().is_some()).count() > 50);
    assert_eq!(platform.view().ticks().count(), platform.reference().securities().len());
}

/// Four minutes of a Thursday before XNAS closes, and one after it. 2026-01-15T21:00Z is 16:00 in
/// New York.
#[test]
fn an_exchange_closes_by_its_own_hours_and_day_orders_end() {
    let reference = refdata::shipped().expect("the shipped set is sound");
    let mut config = Config::default();
    config.demo.on = true;
    config.calendar.hours.by = HoursBy::Exchange;
    config.calendar.hours.closing_auction_s = 120;
    let start = Timestamp(1_768_510_800 * NS_PER_S - 240 * NS_PER_S);
    let (_, events) = story_from(start, PlatformSettings::of(&config, &reference), 300);

    let nasdaq = reference.exchanges().iter().find(|row| row.mic == "XNAS").expect("it is shipped");
    let of_nasdaq = |security| {
        let row = reference.security(security).expect("only known securities are sent");
        reference.exchange_of(row).id == nasdaq.id
    };
    let sessions: Vec<_> = events
        .iter()
        .filter_map(|event| {
            let EventKind::Session { exchange, session } = event.body else { return None };
            (exchange == nasdaq.id).then_some(session)
        })
        .collect();
    let closes = events
        .iter()
        .position(|event| matches!(event.body, EventKind::Session { exchange, session: TradingSession::Closed } if exchange == nasdaq.id))
        .expect("it closes");
    assert!(sessions.contains(&TradingSession::ClosingAuction), "{sessions:?}");
    let ticks = |events: &[Event], ours: bool| {
        let is_tick =
            |event: &&Event| matches!(event.body, EventKind::Tick(tick) if of_nasdaq(tick.security) == ours);
        events.iter().filter(is_tick).count()
    };
    let late: Vec<Event> =
        events[closes..].iter().filter(|event| event.at > start.plus(241 * NS_PER_S)).copied().collect();
    assert!(ticks(&events[..closes], true) > 100);
    assert_eq!(ticks(&late, true), 0, "a closed exchange shows no prices");
    assert!(ticks(&late, false) > 100, "the others go on");
    let ended =
        events.iter().filter_map(|event| event.report()).filter(|report| report.reason == Reason::ExpiredDay);
    let ended: Vec<_> = ended.collect();
    assert!(!ended.is_empty(), "there were open DAY orders");
    assert!(ended.iter().all(|report| of_nasdaq(report.security)));
}
