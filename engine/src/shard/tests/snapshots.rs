//! What a snapshot contains, and how much of it one step emits.

use super::bench::strategies;
use super::*;
use crate::directive::{Directive, DirectiveVersion};
use crate::sender::{Protocol, SenderAddress, SenderId, SenderPart, SenderText};
use crate::shard::snapshot::SNAPSHOT_EVENTS_PER_STEP_MAX;

const READER: PortId = PortId(1);

/// Returns the events of a snapshot.
fn snapshot(bench: &mut Bench) -> Vec<EventKind> {
    bench.send(CommandKind::Snapshot { port: READER })
}

fn count(events: &[EventKind], is: fn(&EventKind) -> bool) -> usize {
    events.iter().filter(|body| is(body)).count()
}

#[test]
fn a_snapshot_has_every_row_of_each_kind() {
    let mut bench = Bench::with_rows(strategies(2));
    for id in [SenderId(100), SenderId(101)] {
        let (protocol, address, login) = (Protocol::Fix, SenderAddress::NONE, SenderText::new("desk"));
        bench.send(CommandKind::Sender { id, part: SenderPart::Login { protocol, address, login } });
    }
    for (version, scope) in [(1, Scope::Global), (2, Scope::Security(SIM_OTHER))] {
        let directive = Directive::Kill { scope, on: true };
        bench.send(CommandKind::Direct { version: DirectiveVersion(version), directive });
    }
    for security in [SIM_STOCK, SIM_OTHER] {
        bench.send(CommandKind::Restrict { scope: Scope::Account(AccountId(1)), security, on: true });
    }
    bench.send(CommandKind::Kill { scope: Scope::Adapter(ADAPTER), on: true });
    let events = snapshot(&mut bench);
    assert_eq!(count(&events, |body| matches!(body, EventKind::Sender { .. })), 2);
    assert_eq!(count(&events, |body| matches!(body, EventKind::Directed { .. })), 2);
    assert_eq!(count(&events, |body| matches!(body, EventKind::Restrict { .. })), 2);
    assert_eq!(count(&events, |body| matches!(body, EventKind::Kill { .. })), 3);
    assert!(events.contains(&EventKind::Adapter { adapter: ADAPTER, connected: true }));
    assert!(events.contains(&EventKind::Kill { scope: Scope::Adapter(ADAPTER), on: true }));
}

#[test]
fn a_snapshot_has_the_orders_of_the_day_and_those_that_are_open() {
    let settings = ShardSettings { finished_max: 0, transactions_max: 1, ..ShardSettings::default() };
    let mut bench = Bench::with(settings);
    let shown = |bench: &mut Bench| {
        let events = snapshot(bench);
        let sent = count(&events, |body| matches!(body, EventKind::Sent { .. }));
        (count(&events, |body| matches!(body, EventKind::Order(_))), sent)
    };
    bench.send(CommandKind::TradingDay { day: Day(1) });
    let (gone, _) = bench.submit(limit(Side::Buy, 1, "1", "9"));
    bench.cancel(gone);
    assert_eq!(shown(&mut bench), (0, 0), "it is forgotten");
    let (ended, _) = bench.submit(outside("1"));
    bench.report(ended, VenueReport::Canceled(Reason::VenueCancelled));
    bench.submit(Terms { tif: Tif::Gtc, ..outside("1") });
    assert_eq!(shown(&mut bench), (2, 0), "their sender is not known");
    bench.send(CommandKind::TradingDay { day: Day(2) });
    assert_eq!(shown(&mut bench), (1, 0));
    bench.submit_as(CLIENT, SenderId(100), outside("1"));
    assert_eq!(shown(&mut bench), (2, 1));
}

#[test]
fn a_snapshot_has_the_kept_transactions_and_the_positions_of_accounts() {
    let mut bench = Bench::with(ShardSettings { transactions_max: 2, ..ShardSettings::default() });
    for (account, q) in [(1, "1"), (1, "2"), (2, "5"), (2, "-5"), (1, "4")] {
        bench.trade_by_hand(0, account, SIM_STOCK, q);
    }
    let events = snapshot(&mut bench);
    let quantities = super::bench::bookings(&events).iter().map(|booking| booking.qty).collect::<Vec<_>>();
    assert_eq!(quantities, [qty("-5"), qty("4")]);
    let accounts: Vec<_> = events
        .iter()
        .filter_map(|body| match body {
            EventKind::Exposure { account, qty, .. } => Some((*account, *qty)),
            _ => None,
        })
        .collect();
    assert_eq!(accounts, [(Some(AccountId(1)), qty("7"))], "the other one is flat");
    assert_eq!(count(&events, |body| matches!(body, EventKind::UsedIds(_))), 0, "no order had an id");
    bench.submit(limit(Side::Buy, 1, "1", "9"));
    let events = snapshot(&mut bench);
    assert_eq!(count(&events, |body| matches!(body, EventKind::UsedIds(_))), 0, "none of this port");
}

#[test]
fn a_step_of_a_snapshot_is_nearly_full_and_never_overfull() {
    let mut bench = Bench::new();
    for _ in 0..200 {
        bench.trade_by_hand(0, 1, SIM_STOCK, "1");
    }
    // Events of earlier commands that wait take no room from it.
    bench.out = Outbox::for_waiting(0);
    for _ in 0..300 {
        bench.out.emit(PortMask::one(PortId(5)), Timestamp(1), EventKind::TradingDay { day: Day(1) });
    }
    let body = CommandKind::Snapshot { port: READER };
    bench.shard.apply(Timestamp(999), &Command::new(CLIENT, 5, body), &mut bench.out);
    let mut steps = Vec::new();
    while bench.shard.has_background() {
        let before = bench.out.waiting_count();
        bench.shard.resume(&mut bench.out);
        steps.push(bench.out.waiting_count() - before);
    }
    assert!(steps.iter().all(|events| *events <= SNAPSHOT_EVENTS_PER_STEP_MAX), "{steps:?}");
    // The room that is left is less than one row may need.
    assert!(steps[2..6].iter().all(|events| *events == SNAPSHOT_EVENTS_PER_STEP_MAX - 4), "{steps:?}");
}
