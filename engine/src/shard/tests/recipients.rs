//! Ports that receive events, senders in events, and what a new start forgets.

use super::bench::kinds;
use super::outside::venue_requests;
use super::*;
use crate::command::ExecRef;
use crate::event::Event;
use crate::order::Base;
use crate::sender::{Protocol, SenderAddress, SenderId, SenderPart, SenderText};
use crate::time::NS_PER_DAY;

const OTHER: Source = Source { origin: Origin::Fix, port: PortId(2), session: 1 };
const KNOWN: SenderId = SenderId(100);

fn register(bench: &mut Bench, id: SenderId) {
    let (protocol, address, login) = (Protocol::Fix, SenderAddress::NONE, SenderText::new("desk"));
    bench.send(CommandKind::Sender { id, part: SenderPart::Login { protocol, address, login } });
}

fn ports(events: &[(PortMask, Event)]) -> Vec<PortMask> {
    events.iter().filter(|(_, event)| event.report().is_some()).map(|(to, _)| *to).collect()
}

#[test]
fn a_port_of_copies_gets_the_events_of_every_order() {
    let mut bench = Bench::new();
    bench.shard.set_copies(PortMask::one(PortId(3)));
    let (id, terms) = (bench.id(), limit(Side::Buy, 1, "1", "9"));
    let events = bench.apply(&Command::new(CLIENT, 5, CommandKind::Submit { id, terms }));
    assert!(events.len() == 2 && events.iter().all(|(to, _)| to.contains(PortId(3))), "{events:?}");
}

/// The cancel has no sender of its own, so it is reported to the port of the order only.
#[test]
fn a_cancel_by_the_shard_is_reported_to_the_port_of_the_order() {
    let mut bench = Bench::new();
    bench.send(CommandKind::Watch { port: PortId(0), what: WatchTarget::Everything, on: false });
    bench.submit_as(OTHER, KNOWN, limit(Side::Buy, 1, "1", "9"));
    let kill = CommandKind::Kill { scope: Scope::Global, on: true };
    let events = bench.apply(&Command::new(CLIENT, 5, kill));
    assert_eq!(ports(&events), [PortMask::one(OTHER.port); 2]);
    let sender = |event: &Event| event.report().map(|report| report.sender);
    let senders: Vec<SenderId> = events.iter().filter_map(|(_, event)| sender(event)).collect();
    assert_eq!(senders, [SenderId::INTERNAL; 2], "no sender has sent it");
}

#[test]
fn senders_and_the_anchor_of_the_audit_log_are_known() {
    let mut bench = Bench::new();
    assert_eq!((bench.shard.audit_anchor(), bench.shard.senders().get(KNOWN)), (None, None));
    let anchor = crate::command::AuditAnchor { log: 1, line: 2, hash: [3; 32] };
    bench.send(CommandKind::AuditAnchor(anchor));
    register(&mut bench, KNOWN);
    assert_eq!(bench.shard.audit_anchor(), Some(anchor));
    assert_eq!(bench.shard.senders().get(KNOWN).map(|sender| sender.protocol), Some(Protocol::Fix));
}

#[test]
fn a_late_event_of_a_past_order_shows_its_senders_if_it_has_some() {
    for (sender, is_shown) in [(KNOWN, true), (SenderId::NONE, false)] {
        let mut bench = Bench::new();
        bench.send(CommandKind::TradingDay { day: Day(1) });
        let order = bench.submit_as(CLIENT, sender, outside("10"));
        bench.report(order, VenueReport::Canceled(Reason::VenueCancelled));
        bench.now += NS_PER_DAY;
        bench.send(CommandKind::TradingDay { day: Day(2) });
        let fill = VenueReport::Filled { exec: ExecRef(1), qty: qty("1"), price: price("9") };
        let events = bench.report(order, fill);
        assert_eq!(events.iter().any(|body| matches!(body, EventKind::Sent { .. })), is_shown);
    }
}

/// The close waits until another order has ended, and has its own sender then.
#[test]
fn a_close_that_waits_keeps_its_sender_over_a_start_if_it_is_known() {
    for (sender, expected) in [(KNOWN, KNOWN), (SenderId(101), SenderId::NONE)] {
        let mut bench = Bench::new();
        register(&mut bench, KNOWN);
        bench.trade_by_hand(0, 3, OUTSIDE, "10");
        let (sale, _) = bench.submit(Terms { side: Side::Sell, limit: price("12"), ..outside("6") });
        bench.report(sale, VenueReport::Accepted);
        let (id, strategy, account) = (bench.id(), StrategyId(0), AccountId(3));
        let body = CommandKind::Close { id, strategy, account, security: OUTSIDE, qty: Qty::ZERO };
        bench.apply(&Command { sender, ..Command::new(CLIENT, 5, body) });
        let events = bench.begin(ShardSettings::default());
        let refused = events.iter().find_map(|body| match body {
            EventKind::Order(order) if order.id == id => Some((order.sender, order.reason)),
            _ => None,
        });
        assert_eq!(refused, Some((expected, Reason::VenueUnavailable)), "{events:?}");
    }
}

#[test]
fn after_a_start_no_port_gets_market_data_or_instructions() {
    let mut bench = Bench::new();
    let watched = |security| {
        [
            WatchTarget::Depth(security),
            WatchTarget::Levels(security),
            WatchTarget::BookOrders(security),
            WatchTarget::Trades(security),
            WatchTarget::Ticks(security),
        ]
    };
    for security in [SIM_STOCK, OUTSIDE] {
        bench.send(CommandKind::Subscribe { strategy: StrategyId(0), security, on: true });
        for what in watched(security) {
            bench.send(CommandKind::Watch { port: PortId(1), what, on: true });
        }
    }
    bench.send(CommandKind::VenueBook { security: OUTSIDE, is_known: true });
    while bench.shard.has_depths() {
        bench.shard.emit_depths(&mut bench.out);
        bench.out.clear();
    }
    bench.begin(ShardSettings::default());
    bench.send(CommandKind::Adapter { adapter: ADAPTER, connected: true });
    let source = Source { port: PortId(4), ..CLIENT };
    let mut bodies = vec![CommandKind::Trade {
        security: SIM_STOCK,
        trade: Trade { price: price("9"), size: qty("1"), at: Timestamp(1) },
    }];
    for terms in [limit(Side::Buy, 1, "1", "9"), limit(Side::Sell, 2, "2", "9"), outside("1")] {
        bodies.push(CommandKind::Submit { id: bench.id(), terms });
    }
    for body in bodies {
        for (to, event) in bench.apply(&Command::new(source, 5, body)) {
            assert_eq!(to, PortMask::one(source.port), "{event:?}");
        }
    }
    assert!(!bench.shard.has_depths(), "no book is watched");
    // The book of the venue is unknown until the venue sends it again.
    let what = WatchTarget::Depth(OUTSIDE);
    let events = bench.send(CommandKind::Watch { port: source.port, what, on: true });
    assert!(!events.iter().any(|body| matches!(body, EventKind::Depth(_))), "{events:?}");
    // Another port that watches a book does not bring back the earlier ones.
    bench.send(CommandKind::Watch { port: source.port, what: WatchTarget::Depth(SIM_STOCK), on: true });
    bench.submit(limit(Side::Buy, 1, "1", "8"));
    let mut published = Vec::new();
    while bench.shard.has_depths() {
        bench.shard.emit_depths(&mut bench.out);
        published.extend(bench.out.waiting().iter().map(|(to, _)| *to));
        bench.out.clear();
    }
    assert_eq!(published, [PortMask::one(source.port); 2]);
    bench.send(CommandKind::Watch { port: PortId(0), what: WatchTarget::Venue(ADAPTER), on: true });
    assert_eq!(venue_requests(&bench.submit(outside("1")).1), [VenueRequest::New], "it is told again");
}

#[test]
fn a_refused_order_is_kept_with_its_reason_its_time_and_its_source() {
    let mut bench = Bench::with(ShardSettings { finished_max: 1, ..ShardSettings::default() });
    bench.send(CommandKind::Watch { port: PortId(0), what: WatchTarget::Everything, on: false });
    let order = bench.submit_as(OTHER, KNOWN, limit(Side::Buy, 1, "0", "9"));
    let at = Timestamp(bench.now);
    let events = bench.apply(&Command::new(CLIENT, 5, CommandKind::Snapshot { port: PortId(1) }));
    let about: Vec<Event> = events.into_iter().map(|(_, event)| event).collect();
    let image = about.iter().find(|event| matches!(event.body, EventKind::Order(_))).unwrap();
    let report = about.iter().find_map(|event| event.report().map(|report| (event.at, report))).unwrap();
    assert_eq!((image.at, report.0), (at, at));
    assert_eq!((report.1.reason, report.1.source), (Reason::QuantityNotPositive, OTHER));
    let sent = about.iter().find_map(|event| match event.body {
        EventKind::Sent { order, sent } => Some((order, sent.submitted)),
        _ => None,
    });
    assert_eq!(sent, Some((order, KNOWN)));
    let (id, terms) = (bench.id(), limit(Side::Buy, 1, "0", "9"));
    let events = bench.apply(&Command::new(CLIENT, 5, CommandKind::Submit { id, terms }));
    let forgotten = events.iter().find(|(_, event)| matches!(event.body, EventKind::Forgotten { .. }));
    assert_eq!(forgotten.map(|(to, _)| *to), Some(PortMask::one(OTHER.port)), "its port forgets it");
}

#[test]
fn a_report_about_an_order_that_was_never_sent_is_unexpected() {
    let mut bench = Bench::new();
    let (refused, _) = bench.submit(outside("0"));
    let (simulated, _) = bench.submit(limit(Side::Buy, 1, "1", "9"));
    let fill = VenueReport::Filled { exec: ExecRef(1), qty: qty("1"), price: price("9") };
    for (order, report) in [(refused, fill), (simulated, fill), (simulated, VenueReport::Accepted)] {
        let events = bench.report(order, report);
        assert!(matches!(events[..], [EventKind::Alert { .. }]), "{events:?}");
    }
    // The venue has refused this one, and may have filled it all the same.
    let (order, _) = bench.submit(outside("1"));
    bench.report(order, VenueReport::Rejected(Reason::VenueRejected));
    assert_eq!(kinds(&bench.report(order, fill)), [ExecType::Filled]);
    assert_eq!(bench.shard.orders.get(order.slot()).base, Base::Filled);
}

#[test]
fn so_many_finished_orders_are_kept() {
    let mut bench = Bench::with(ShardSettings { finished_max: 2, ..ShardSettings::default() });
    let orders: Vec<_> = (0..3).map(|_| bench.submit(limit(Side::Buy, 1, "1", "9")).0).collect();
    for order in &orders {
        bench.cancel(*order);
    }
    let reasons: Vec<Reason> = orders.iter().map(|order| reason(&bench.cancel(*order))).collect();
    assert_eq!(reasons, [Reason::UnknownOrder, Reason::OrderFinished, Reason::OrderFinished]);
}

#[test]
fn a_finished_order_of_an_outside_venue_is_kept_for_so_many_days() {
    use crate::shard::order_entry::FINISHED_OUTSIDE_DAYS;
    let mut bench = Bench::new();
    bench.send(CommandKind::TradingDay { day: Day(1) });
    let (order, _) = bench.submit(outside("1"));
    bench.report(order, VenueReport::Canceled(Reason::VenueCancelled));
    let ended = bench.now;
    let kept = |bench: &mut Bench, day: i32, at: u64| {
        bench.now = at - 1;
        bench.send(CommandKind::TradingDay { day: Day(day) });
        bench.shard.orders.find(order).is_some()
    };
    let last = ended + FINISHED_OUTSIDE_DAYS * NS_PER_DAY;
    assert!(kept(&mut bench, 7, ended + 6 * NS_PER_DAY));
    assert!(kept(&mut bench, 8, last));
    assert!(!kept(&mut bench, 9, last + 1));
}
