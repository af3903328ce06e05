//! Books that are published over several steps, and ports that leave in between.

use super::*;
use crate::event::{LevelsKind, ORDERS_PER_SIDE_MAX, OrderChanges};

const PORTS: [PortId; 2] = [PortId(0), PortId(1)];

fn watch(port: PortId, what: WatchTarget, on: bool) -> CommandKind {
    CommandKind::Watch { port, what, on }
}

fn watch_orders(port: PortId, security: SecurityId, on: bool) -> CommandKind {
    watch(port, WatchTarget::BookOrders(security), on)
}

fn opened() -> Bench {
    let mut bench = Bench::new();
    for security in [SIM_STOCK, SIM_OTHER] {
        bench.send(CommandKind::Subscribe { strategy: StrategyId(0), security, on: true });
    }
    bench
}

impl Bench {
    /// Publishes one step, and returns its events with their recipients.
    fn publish_step(&mut self) -> Vec<(PortMask, EventKind)> {
        self.out.clear();
        self.shard.emit_depths(&mut self.out);
        let events = self.out.waiting().iter().map(|(to, event)| (*to, event.body)).collect();
        self.out.clear();
        events
    }

    /// Publishes everything that waits.
    fn publish(&mut self) -> Vec<(PortMask, EventKind)> {
        let mut events = Vec::new();
        while self.shard.has_depths() {
            events.extend(self.publish_step());
        }
        events
    }
}

/// Returns the parts that a port gets about the orders of a security.
fn parts(events: &[(PortMask, EventKind)], port: PortId, security: SecurityId) -> Vec<OrderChanges> {
    let of_port = events.iter().filter(|(to, _)| to.contains(port));
    of_port
        .filter_map(|(_, body)| match body {
            EventKind::BookOrders(part) if part.security == security => Some(*part),
            _ => None,
        })
        .collect()
}

fn actions(parts: &[OrderChanges]) -> Vec<String> {
    let changes = parts.iter().flat_map(OrderChanges::changes);
    changes.map(|change| format!("{:?} {}x{}", change.action, change.order.qty, change.order.price)).collect()
}

fn in_stock(bench: &mut Bench, security: SecurityId, side: Side, p: &str) -> OrderHandle {
    let account = if side == Side::Buy { 1 } else { 2 };
    bench.submit(Terms { security, ..limit(side, account, "1", p) }).0
}

#[test]
fn an_order_that_comes_or_goes_changes_no_other() {
    let mut bench = opened();
    in_stock(&mut bench, SIM_STOCK, Side::Buy, "9");
    bench.send(watch_orders(PORTS[0], SIM_STOCK, true));
    bench.publish();
    let best = in_stock(&mut bench, SIM_STOCK, Side::Buy, "10");
    assert_eq!(actions(&parts(&bench.publish(), PORTS[0], SIM_STOCK)), ["Add 1x10"]);
    bench.cancel(best);
    assert_eq!(actions(&parts(&bench.publish(), PORTS[0], SIM_STOCK)), ["Remove 0x10"]);
}

#[test]
fn a_port_that_leaves_before_its_snapshot_gets_none_and_the_others_get_theirs() {
    let mut bench = opened();
    in_stock(&mut bench, SIM_STOCK, Side::Buy, "9");
    bench.send(watch_orders(PORTS[0], SIM_STOCK, true));
    bench.send(watch_orders(PORTS[1], SIM_STOCK, true));
    bench.send(watch_orders(PORTS[0], SIM_STOCK, false));
    let events = bench.publish();
    assert!(parts(&events, PORTS[0], SIM_STOCK).is_empty());
    assert_eq!(actions(&parts(&events, PORTS[1], SIM_STOCK)), ["Add 1x9"]);
}

#[test]
fn a_port_that_leaves_does_not_end_the_updates_of_the_others() {
    let mut bench = opened();
    for port in PORTS {
        bench.send(watch_orders(port, SIM_STOCK, true));
    }
    bench.publish();
    bench.send(watch_orders(PORTS[0], SIM_STOCK, false));
    in_stock(&mut bench, SIM_STOCK, Side::Buy, "9");
    let events = bench.publish();
    assert!(parts(&events, PORTS[0], SIM_STOCK).is_empty());
    assert_eq!(actions(&parts(&events, PORTS[1], SIM_STOCK)), ["Add 1x9"]);
}

#[test]
fn a_book_that_is_not_watched_any_more_leaves_what_waits_of_the_others() {
    let mut bench = opened();
    for security in [SIM_STOCK, SIM_OTHER] {
        in_stock(&mut bench, security, Side::Buy, "9");
        bench.send(watch_orders(PORTS[0], security, true));
    }
    bench.publish();
    for security in [SIM_STOCK, SIM_OTHER] {
        in_stock(&mut bench, security, Side::Sell, "9");
    }
    bench.publish_step();
    bench.send(watch_orders(PORTS[0], SIM_STOCK, false));
    let events = bench.publish();
    assert!(parts(&events, PORTS[0], SIM_STOCK).is_empty());
    assert_eq!(actions(&parts(&events, PORTS[0], SIM_OTHER)), ["Trade 1x9"]);
}

/// Returns a bench whose book has as many bids as are published.
fn large() -> Bench {
    let mut bench = opened();
    for _ in 0..ORDERS_PER_SIDE_MAX {
        in_stock(&mut bench, SIM_STOCK, Side::Buy, "9");
    }
    bench
}

#[test]
fn a_port_that_leaves_during_its_snapshot_gets_no_more_of_it() {
    let mut bench = large();
    for _ in 0..ORDERS_PER_SIDE_MAX {
        in_stock(&mut bench, SIM_STOCK, Side::Sell, "10");
    }
    for (on, remains) in [(true, true), (false, false)] {
        bench.send(watch_orders(PORTS[0], SIM_STOCK, true));
        bench.send(watch_orders(PORTS[0], SIM_OTHER, true));
        assert_eq!(bench.publish_step().len(), EVENTS_PER_COMMAND_MAX);
        // A port that leaves another book still gets all of this one.
        bench.send(watch_orders(PORTS[0], SIM_OTHER, false));
        bench.send(watch_orders(PORTS[0], SIM_STOCK, on));
        let rest = parts(&bench.publish(), PORTS[0], SIM_STOCK);
        assert_eq!(rest.iter().any(|part| !part.is_first), remains);
    }
}

#[test]
fn a_step_has_no_more_events_than_fit_and_begins_few_messages() {
    let mut bench = large();
    for port in PORTS {
        bench.send(watch_orders(port, SIM_STOCK, true));
    }
    assert_eq!(bench.publish_step().len(), EVENTS_PER_COMMAND_MAX);
    let rest = bench.publish_step();
    assert!(!rest.is_empty() && !bench.shard.has_depths());

    let mut bench = opened();
    for port in 0..9 {
        bench.send(watch_orders(PortId(port), SIM_STOCK, true));
    }
    assert_eq!(bench.publish_step().len(), 8, "so many messages are begun");
    assert_eq!(bench.publish_step().len(), 1);
}

#[test]
fn orders_and_other_market_data_take_turns() {
    let mut bench = opened();
    for what in [WatchTarget::BookOrders(SIM_STOCK), WatchTarget::Levels(SIM_STOCK)] {
        bench.send(watch(PORTS[0], what, true));
    }
    let mut is_orders = Vec::new();
    for number in 1..=4 {
        // Both always wait.
        bench.send(watch_orders(PORTS[0], SIM_STOCK, true));
        in_stock(&mut bench, SIM_STOCK, Side::Buy, &format!("{number}"));
        is_orders.push(bench.publish_step().iter().any(|(_, body)| matches!(body, EventKind::BookOrders(_))));
    }
    assert_eq!(is_orders, [true, false, true, false]);
    bench.publish();
    for _ in 0..3 {
        bench.send(watch_orders(PORTS[0], SIM_STOCK, true));
        assert_eq!(bench.publish_step().len(), 1, "nothing else waits, so every step is for orders");
    }
}

/// Enters bids at `levels` prices in one book, and one order in another. Returns the number of
/// events about the levels of each in the next step.
fn events_of_levels(levels: usize) -> [usize; 2] {
    let mut bench = opened();
    for security in [SIM_STOCK, SIM_OTHER] {
        bench.send(watch(PORTS[0], WatchTarget::Levels(security), true));
    }
    for number in 0..levels {
        let (side, cents) =
            if number < 200 { (Side::Buy, 1_000 - number) } else { (Side::Sell, 1_100 + number) };
        in_stock(&mut bench, SIM_STOCK, side, &format!("{}.{:02}", cents / 100, cents % 100));
    }
    in_stock(&mut bench, SIM_OTHER, Side::Buy, "9");
    // Events that wait do not count.
    bench.out = Outbox::for_waiting(0);
    for _ in 0..100 {
        bench.out.emit(PortMask::one(PORTS[1]), Timestamp(1), EventKind::TradingDay { day: Day(1) });
    }
    bench.shard.emit_depths(&mut bench.out);
    [SIM_STOCK, SIM_OTHER].map(|security| {
        let is_of = |body: &EventKind| {
            matches!(body, EventKind::Levels(part) if part.security == security && part.kind == LevelsKind::Update)
        };
        bench.out.waiting().iter().filter(|(_, event)| is_of(&event.body)).count()
    })
}

#[test]
fn a_step_publishes_another_book_while_the_largest_would_fit() {
    assert_eq!(events_of_levels(208), [26, 1]);
    assert_eq!(events_of_levels(209), [27, 0]);
    assert_eq!(events_of_levels(400), [50, 0]);
}

#[test]
fn an_outside_book_that_is_not_known_is_not_shown() {
    let mut bench = Bench::new();
    bench.send(watch(PORTS[0], WatchTarget::Depth(OUTSIDE), true));
    let book = |is_known| CommandKind::VenueBook { security: OUTSIDE, is_known };
    let subscribe = |on| CommandKind::Subscribe { strategy: StrategyId(0), security: OUTSIDE, on };
    bench.send(subscribe(true));
    assert_eq!(bench.publish(), [], "it was never known");
    bench.send(book(true));
    assert_eq!(bench.publish().len(), 2);
    bench.send(subscribe(false));
    bench.publish();
    bench.send(book(false));
    assert_eq!(bench.publish(), [], "it is lost, and no strategy is subscribed");
}
