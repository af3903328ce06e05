//! Snapshots, delays, credit and routes of a shard.

use super::*;

#[test]
fn a_snapshot_contains_everything_and_uses_no_number() {
    let mut bench = Bench::new();
    bench.submit(limit(Side::Sell, 1, "4", "12"));
    bench.submit(limit(Side::Buy, 2, "3", "12"));
    bench.send(CommandKind::Limits { scope: Scope::Account(AccountId(1)), limits: RiskLimits::default() });
    bench.send(CommandKind::Subscribe { strategy: StrategyId(0), security: SIM_STOCK, on: true });
    let seq = bench.out.seq();
    let events = bench.send(CommandKind::Snapshot { port: PortId(0) });
    // One for the answer that the snapshot has begun.
    assert_eq!(bench.out.seq(), seq + 1);
    let count = |is: fn(&EventKind) -> bool| events.iter().filter(|body| is(body)).count();
    assert_eq!(count(|body| matches!(body, EventKind::Order(_))), 2);
    assert_eq!(count(|body| matches!(body, EventKind::Booked(_))), 2);
    assert_eq!(count(|body| matches!(body, EventKind::Subscription { .. })), 1);
    assert_eq!(events.last(), Some(&EventKind::SnapshotEnd { port: PortId(0) }));
}

#[test]
fn delays_keep_the_order_of_messages() {
    let mut settings = ShardSettings::default();
    settings.venue.delays =
        Delays { entry_ns: 100, entry_jitter_ns: 50, response_ns: 200, response_jitter_ns: 50, feed_ns: 10 };
    let mut bench = Bench::with(settings);
    let (order, events) = bench.submit(limit(Side::Sell, 1, "4", "12"));
    assert_eq!(reports(&events), [(ExecType::Entered, Status::PendingNew, Qty::ZERO)]);
    let events = bench.cancel(order);
    assert_eq!(reports(&events), [(ExecType::CancelPending, Status::PendingCancel, Qty::ZERO)]);
    let mut reported = Vec::new();
    while let Some(deadline) = bench.shard.deadline() {
        bench.now = deadline.0;
        reported.extend(reports(&bench.send(CommandKind::Timer)));
    }
    assert_eq!(
        reported,
        [
            (ExecType::Accepted, Status::PendingCancel, Qty::ZERO),
            (ExecType::Canceled, Status::Canceled, Qty::ZERO)
        ]
    );
    assert!(bench.now > 300);
}

#[test]
fn credit_is_reserved_spent_and_released() {
    let mut bench = Bench::new();
    let limits = RiskLimits { credit: money("100"), credit_currency: usd(), ..RiskLimits::default() };
    bench.send(CommandKind::Limits { scope: Scope::Account(AccountId(2)), limits });
    let (first, _) = bench.submit(limit(Side::Buy, 2, "9", "10"));
    assert_eq!(reason(&bench.submit(limit(Side::Buy, 2, "1", "10")).1), Reason::InsufficientFunds);
    let events = bench.modify(first, Changes::default().with_qty(qty("10")));
    assert_eq!(reason(&events), Reason::InsufficientFunds);
    bench.cancel(first);
    bench.submit(limit(Side::Sell, 1, "9", "5"));
    let (_, events) = bench.submit(limit(Side::Buy, 2, "9", "10"));
    assert_eq!(reports(&events)[2], (ExecType::Filled, Status::Filled, qty("9")));
    // Bought at 5: 45.009 is spent, and the rest of the reserve is free again.
    assert_eq!(reason(&bench.submit(limit(Side::Buy, 2, "5", "10")).1), Reason::None);
}

#[test]
fn routes_lead_to_the_owner() {
    let body = CommandKind::Halt { security: SecurityId(9), on: true };
    assert_eq!(route(&body, 4), CommandRoute::One(ShardId(1)));
    assert_eq!(route(&CommandKind::Timer, 4), CommandRoute::All);
    let order = OrderHandle::new(ShardId(3), 0, 0);
    assert_eq!(route(&CommandKind::Cancel { order, id: IntId::NONE }, 4), CommandRoute::One(ShardId(3)));
}
