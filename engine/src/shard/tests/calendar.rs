//! Exchanges with hours, and securities that expire.

use super::*;
use crate::event::Alert;

const EXCHANGE: ExchangeId = ExchangeId(1);

fn schedule(session: TradingSession, since: u64, has_hours: bool) -> CommandKind {
    CommandKind::Schedule { exchange: EXCHANGE, session, since: Timestamp(since), has_hours }
}

fn ended(events: &[EventKind]) -> Vec<Reason> {
    let reasons = events.iter().filter_map(|body| match body {
        EventKind::Status(report) if report.what == ExecType::Expired => Some(report.reason),
        EventKind::Order(order) if order.what == ExecType::Expired => Some(order.reason),
        _ => None,
    });
    reasons.collect()
}

fn stop(side: Side, account: u16, stop: &str) -> Terms {
    Terms { kind: OrderKind::Stop, stop: price(stop), stop_given: true, ..limit(side, account, "1", "10") }
}

#[test]
fn an_exchange_with_hours_keeps_its_day_orders_over_the_rollover() {
    let mut bench = Bench::new();
    bench.send(schedule(TradingSession::Continuous, 5, true));
    bench.submit(limit(Side::Sell, 1, "1", "10"));
    bench.submit(Terms { limit: Price::ZERO, limit_given: false, ..stop(Side::Buy, 1, "12") });
    let events = bench.send(CommandKind::TradingDay { day: Day(3) });
    assert_eq!(ended(&events), []);
    assert_eq!(bench.shard.open_orders(Scope::Global), 2);
    let events = bench.send(schedule(TradingSession::Closed, 9, true));
    assert_eq!(ended(&events), [Reason::ExpiredDay, Reason::ExpiredDay]);
}

#[test]
fn an_order_of_the_evening_waits_for_the_next_session() {
    let mut bench = Bench::new();
    bench.send(schedule(TradingSession::Closed, 5, true));
    bench.submit(limit(Side::Sell, 1, "1", "10"));
    assert_eq!(ended(&bench.send(CommandKind::TradingDay { day: Day(3) })), []);
    assert_eq!(ended(&bench.send(schedule(TradingSession::Continuous, 6, true))), []);
    assert_eq!(ended(&bench.send(schedule(TradingSession::Closed, 7, true))), [Reason::ExpiredDay]);
}

#[test]
fn an_exchange_that_loses_its_hours_ends_its_day_orders_with_the_day() {
    let mut bench = Bench::new();
    bench.send(schedule(TradingSession::Continuous, 5, true));
    bench.submit(limit(Side::Sell, 1, "1", "10"));
    bench.send(schedule(TradingSession::Continuous, 0, false));
    assert_eq!(ended(&bench.send(CommandKind::TradingDay { day: Day(3) })), [Reason::ExpiredDay]);
}

#[test]
fn the_state_of_a_stream_decodes_to_itself() {
    let mut bench = Bench::new();
    bench.send(schedule(TradingSession::ClosingAuction, 77, true));
    let mut bytes = Vec::new();
    bench.shard.save(&mut bytes);
    let (reference, settings) = (bench.shard.reference().clone(), bench.shard.settings().clone());
    let loaded = Shard::load(&bytes, ShardId(0), 1, reference, settings).unwrap();
    assert_eq!(loaded.session_states(), bench.shard.session_states());
    assert_eq!(loaded.digest(), bench.shard.digest());
    let state = loaded.session_states()[0];
    let session = TradingSession::ClosingAuction;
    let expected = SessionState { exchange: EXCHANGE, session, since: Timestamp(77), has_hours: true };
    assert_eq!(state, expected);
}

/// Returns a bench in which the first security of the exchange expires on day 10.
fn expiring(settings: ShardSettings) -> Bench {
    let mut bench = Bench::with(settings);
    let reference = Arc::new(RefData::check(dated(10)).unwrap());
    bench.shard.set_reference(reference);
    bench
}

fn dated(day: i32) -> RefDataRows {
    let mut rows = rows();
    let family =
        SecurityFamily { id: FamilyId(3), name: "F3".into(), expirable: true, ..rows.families[0].clone() };
    rows.families.push(family);
    let row = &mut rows.securities[0];
    (row.kind, row.family, row.expiration) = (SecurityKind::Future, FamilyId(3), Some(Day(day)));
    rows
}

fn unsettled(events: &[EventKind]) -> usize {
    let is_unsettled = |body: &&EventKind| matches!(body, EventKind::Alert { alert: Alert::Unsettled, .. });
    events.iter().filter(is_unsettled).count()
}

fn expiry(day: i32) -> CommandKind {
    CommandKind::Expiry { exchange: EXCHANGE, day: Day(day) }
}

#[test]
fn on_its_date_a_security_expires_and_its_positions_wait_for_settlement() {
    let mut bench = expiring(ShardSettings::default());
    bench.submit(limit(Side::Sell, 1, "4", "12"));
    bench.submit(limit(Side::Buy, 2, "3", "12"));
    let events = bench.send(expiry(9));
    assert_eq!((ended(&events), unsettled(&events)), (vec![], 0));
    assert_eq!(reason(&bench.submit(limit(Side::Buy, 2, "1", "11")).1), Reason::None);
    let events = bench.send(expiry(10));
    assert_eq!(
        (ended(&events).len(), unsettled(&events)),
        (2, 1),
        "one strategy bought and sold, through two accounts"
    );
    assert!(ended(&events).iter().all(|reason| *reason == Reason::SecurityExpired));
    assert_eq!(reason(&bench.submit(limit(Side::Buy, 2, "1", "11")).1), Reason::ExpiredSecurity);
    let movement = Movement {
        kind: MovementKind::Buy,
        strategy: StrategyId(0),
        account: AccountId(1),
        security: Some(SIM_STOCK),
        qty: qty("10"),
        price: price("9"),
        commission: Money::ZERO,
        currency: Currency::default(),
        uuid: Uuid(78),
    };
    bench.send(CommandKind::Transaction(movement));
    assert_eq!(unsettled(&bench.send(expiry(11))), 1, "a position that came late");
    let booked =
        |events: &[EventKind]| events.iter().filter(|body| matches!(body, EventKind::Booked(_))).count();
    let settle = CommandKind::Expire { security: SIM_STOCK, price: price("13") };
    assert_eq!(booked(&bench.send(settle)), 1);
    assert_eq!(booked(&bench.send(settle)), 0, "exactly once");
    assert_eq!(unsettled(&bench.send(expiry(12))), 0);
}

#[test]
fn an_expired_security_stays_expired_under_later_reference_data() {
    let mut bench = expiring(ShardSettings::default());
    bench.send(expiry(10));
    let (reference, settings) = (bench.shard.reference().clone(), bench.shard.settings().clone());
    bench.shard.begin(Timestamp(99), reference, settings, &mut bench.out);
    while bench.shard.has_work() {
        bench.shard.resume(&mut bench.out);
    }
    bench.out.clear();
    bench.now = 100;
    assert_eq!(reason(&bench.submit(limit(Side::Buy, 2, "1", "11")).1), Reason::ExpiredSecurity);
}

#[test]
fn a_security_that_is_added_after_its_date_is_expired_at_once() {
    let mut bench = Bench::new();
    bench.send(expiry(10));
    let mut rows = dated(20_000);
    rows.securities.push(Security {
        id: SecurityId(9),
        expiration: Some(Day(10)),
        ..rows.securities[0].clone()
    });
    rows.securities[0] = super::rows().securities[0].clone();
    rows.securities[3].symbol = "LATE".into();
    bench.shard.set_reference(Arc::new(RefData::check(rows).unwrap()));
    let late = Terms { security: SecurityId(9), ..limit(Side::Buy, 2, "1", "11") };
    assert_eq!(reason(&bench.submit(late).1), Reason::ExpiredSecurity);
}

#[test]
fn an_order_in_transit_ends_if_its_security_has_expired() {
    let mut settings = ShardSettings::default();
    settings.venue.delays.entry_ns = 1_000;
    let mut bench = expiring(settings);
    bench.submit(limit(Side::Sell, 1, "4", "12"));
    assert_eq!(ended(&bench.send(expiry(10))), []);
    bench.now = 10_000;
    assert_eq!(ended(&bench.send(CommandKind::Timer)), [Reason::SecurityExpired]);
    assert_eq!(bench.shard.open_orders(Scope::Global), 0);
}
