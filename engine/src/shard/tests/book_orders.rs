//! Orders of a book: snapshots and updates, and their recipients. The twin in `tests/sim.rs` checks
//! that they are right for any orders and quotes, `tests/depth` that consumers can rebuild them.

use super::*;
use crate::book_orders::BookOrders;
use crate::event::{
    LevelsKind, ORDER_CHANGES_MAX, ORDER_TRADES_MAX, ORDERS_PER_SIDE_MAX, OrderChanges, OrderNumber,
};

const VIEWER: PortId = PortId(0);
const OTHER: PortId = PortId(1);

fn watch(port: PortId, on: bool) -> CommandKind {
    CommandKind::Watch { port, what: WatchTarget::BookOrders(SIM_STOCK), on }
}

fn quote(bid: &str, ask: &str, size: &str) -> CommandKind {
    let (bid_size, ask_size) = (qty(size), qty(size));
    let quote = Quote { bid: price(bid), bid_size, ask: price(ask), ask_size, at: Timestamp(7) };
    CommandKind::Quote { security: SIM_STOCK, quote }
}

fn opened() -> Bench {
    let mut bench = Bench::new();
    bench.send(CommandKind::Subscribe { strategy: StrategyId(0), security: SIM_STOCK, on: true });
    bench
}

impl Bench {
    /// Publishes what waits, and returns the parts for one port.
    fn published_orders(&mut self, port: PortId) -> Vec<OrderChanges> {
        let mut parts = Vec::new();
        while self.shard.has_depths() {
            self.out.clear();
            self.shard.emit_depths(&mut self.out);
            assert!(self.out.waiting().len() <= EVENTS_PER_COMMAND_MAX);
            for (to, event) in self.out.waiting() {
                if let EventKind::BookOrders(part) = event.body
                    && to.contains(port)
                {
                    parts.push(part);
                }
            }
        }
        self.out.clear();
        parts
    }
}

/// A book as a port rebuilds it.
#[derive(Debug, Default, PartialEq)]
struct Rebuilt {
    book: BookOrders,
    seq: u64,
}

impl Rebuilt {
    fn apply(&mut self, parts: &[OrderChanges]) {
        for part in parts {
            match part.kind {
                LevelsKind::Snapshot if part.is_first => self.book.clear(),
                LevelsKind::Update if part.is_first => assert_eq!(part.prev_seq, self.seq),
                LevelsKind::Snapshot | LevelsKind::Update => {}
            }
            for change in part.changes() {
                assert!(self.book.apply(&change), "{change:?}");
            }
            if part.is_last {
                self.seq = part.seq;
            }
        }
    }

    fn texts(&self, side: Side) -> Vec<String> {
        self.book.orders(side).iter().map(|order| format!("{}x{}", order.qty, order.price)).collect()
    }
}

fn actions(parts: &[OrderChanges]) -> Vec<String> {
    let changes = parts.iter().flat_map(OrderChanges::changes);
    changes.map(|change| format!("{:?} {}x{}", change.action, change.order.qty, change.order.price)).collect()
}

#[test]
fn a_watcher_follows_every_order_with_its_place() {
    let mut bench = opened();
    let (first, _) = bench.submit(limit(Side::Buy, 1, "5", "10"));
    bench.submit(limit(Side::Buy, 1, "6", "10"));
    bench.send(watch(VIEWER, true));
    let mut rebuilt = Rebuilt::default();
    let snapshot = bench.published_orders(VIEWER);
    assert_eq!((snapshot[0].kind, snapshot[0].seq), (LevelsKind::Snapshot, bench.shard.applied()));
    rebuilt.apply(&snapshot);
    assert_eq!(rebuilt.texts(Side::Buy), ["5x10", "6x10"]);
    let number = rebuilt.book.orders(Side::Buy)[0].number;
    assert_eq!(number, OrderNumber::of_client(first));

    bench.modify(first, Changes::default().with_qty(qty("4")));
    let parts = bench.published_orders(VIEWER);
    assert_eq!(actions(&parts), ["Change 4x10"], "less keeps the place");
    rebuilt.apply(&parts);
    assert_eq!((parts[0].prev_seq < parts[0].seq, parts[0].seq), (true, bench.shard.applied()));

    bench.modify(first, Changes::default().with_qty(qty("7")));
    let parts = bench.published_orders(VIEWER);
    assert_eq!(actions(&parts), ["Remove 0x10", "Add 7x10"], "more costs the place, not the number");
    rebuilt.apply(&parts);
    assert_eq!(rebuilt.texts(Side::Buy), ["6x10", "7x10"]);
    assert_eq!(rebuilt.book.orders(Side::Buy)[1].number, number);

    bench.submit(limit(Side::Sell, 2, "8", "10"));
    let parts = bench.published_orders(VIEWER);
    assert_eq!(actions(&parts), ["Trade 6x10", "Trade 2x10"]);
    rebuilt.apply(&parts);
    assert_eq!(rebuilt.texts(Side::Buy), ["5x10"]);
    bench.cancel(first);
    rebuilt.apply(&bench.published_orders(VIEWER));
    assert!(rebuilt.texts(Side::Buy).is_empty());

    bench.send(watch(VIEWER, false));
    bench.submit(limit(Side::Buy, 1, "3", "9"));
    assert!(!bench.shard.has_depths(), "no port watches");
}

#[test]
fn an_order_that_came_and_went_between_two_publications_was_never_there() {
    let mut bench = opened();
    bench.send(watch(VIEWER, true));
    bench.published_orders(VIEWER);
    bench.submit(limit(Side::Buy, 1, "5", "10"));
    bench.submit(limit(Side::Sell, 2, "5", "10"));
    assert!(bench.published_orders(VIEWER).is_empty());
}

#[test]
fn the_feed_is_an_order_that_trades_before_the_clients_at_its_price() {
    let mut bench = opened();
    bench.submit(limit(Side::Buy, 1, "5", "10"));
    bench.send(watch(VIEWER, true));
    let mut rebuilt = Rebuilt::default();
    rebuilt.apply(&bench.published_orders(VIEWER));
    bench.send(quote("10", "11", "3"));
    rebuilt.apply(&bench.published_orders(VIEWER));
    assert_eq!(rebuilt.texts(Side::Buy)[..2], ["3x10", "5x10"]);
    assert_eq!(rebuilt.texts(Side::Sell)[0], "3x11");
    let number = rebuilt.book.orders(Side::Buy)[0].number;
    bench.submit(limit(Side::Sell, 2, "1", "10"));
    let parts = bench.published_orders(VIEWER);
    assert_eq!(actions(&parts), ["Change 2x10"]);
    rebuilt.apply(&parts);
    assert_eq!(rebuilt.book.orders(Side::Buy)[0].number, number);
}

#[test]
fn a_second_watcher_gets_its_own_snapshot_and_the_same_updates() {
    let mut bench = opened();
    let mut books = [Rebuilt::default(), Rebuilt::default()];
    bench.send(watch(VIEWER, true));
    books[0].apply(&bench.published_orders(VIEWER));
    bench.submit(limit(Side::Buy, 1, "5", "10"));
    bench.send(watch(OTHER, true));
    let mut parts = [Vec::new(), Vec::new()];
    while bench.shard.has_depths() {
        bench.out.clear();
        bench.shard.emit_depths(&mut bench.out);
        for (to, event) in bench.out.waiting() {
            let EventKind::BookOrders(part) = event.body else { continue };
            for (parts, port) in parts.iter_mut().zip([VIEWER, OTHER]) {
                parts.extend(to.contains(port).then_some(part));
            }
        }
    }
    bench.out.clear();
    assert_eq!(parts[1][0].kind, LevelsKind::Snapshot);
    books.iter_mut().zip(&parts).for_each(|(book, parts)| book.apply(parts));
    assert_eq!(books[0], books[1]);
    assert_eq!(books[1].texts(Side::Buy), ["5x10"]);
    bench.send(watch(OTHER, true));
    let again = bench.published_orders(OTHER);
    assert_eq!((again.len(), again[0].kind), (1, LevelsKind::Snapshot), "who asks again gets it again");
    bench.send(watch(VIEWER, false));
    bench.submit(limit(Side::Buy, 1, "1", "9"));
    assert!(bench.published_orders(VIEWER).is_empty(), "it does not watch any more");
}

#[test]
fn a_book_that_is_not_published_is_empty() {
    let mut bench = opened();
    bench.submit(limit(Side::Buy, 1, "5", "10"));
    bench.send(watch(VIEWER, true));
    let mut rebuilt = Rebuilt::default();
    rebuilt.apply(&bench.published_orders(VIEWER));
    bench.send(CommandKind::Subscribe { strategy: StrategyId(0), security: SIM_STOCK, on: false });
    rebuilt.apply(&bench.published_orders(VIEWER));
    assert!(rebuilt.texts(Side::Buy).is_empty());
    let what = WatchTarget::BookOrders(SecurityId(999));
    let unknown = CommandKind::Watch { port: VIEWER, what, on: true };
    assert_eq!(reason(&bench.send(unknown)), Reason::UnknownSecurity);
}

#[test]
fn the_first_orders_are_published_over_several_steps_and_others_follow_them() {
    let mut bench = opened();
    let mut orders = Vec::new();
    for number in 0..ORDERS_PER_SIDE_MAX + 5 {
        let cents = 1_000 - number / 3;
        let at = format!("{}.{:02}", cents / 100, cents % 100);
        orders.push(bench.submit(limit(Side::Buy, 1, "1", &at)).0);
    }
    bench.send(watch(VIEWER, true));
    let snapshot = bench.published_orders(VIEWER);
    assert_eq!(snapshot.len(), ORDERS_PER_SIDE_MAX / ORDER_CHANGES_MAX);
    assert!(snapshot.len() > EVENTS_PER_COMMAND_MAX / 2);
    let mut rebuilt = Rebuilt::default();
    rebuilt.apply(&snapshot);
    let expected = |orders: &[OrderHandle]| -> Vec<OrderNumber> {
        orders.iter().take(ORDERS_PER_SIDE_MAX).map(|order| OrderNumber::of_client(*order)).collect()
    };
    let numbers = |rebuilt: &Rebuilt| -> Vec<OrderNumber> {
        rebuilt.book.orders(Side::Buy).iter().map(|order| order.number).collect()
    };
    assert_eq!(numbers(&rebuilt), expected(&orders));
    for at in [0, 3, 200] {
        bench.cancel(orders.remove(at));
        rebuilt.apply(&bench.published_orders(VIEWER));
        assert_eq!(numbers(&rebuilt), expected(&orders));
    }
    let (best, _) = bench.submit(limit(Side::Buy, 1, "1", "10.01"));
    orders.insert(0, best);
    rebuilt.apply(&bench.published_orders(VIEWER));
    assert_eq!(numbers(&rebuilt), expected(&orders), "the last one leaves its place");
}

#[test]
fn a_port_that_leaves_another_book_gets_the_rest_of_the_message_about_this_one() {
    for (left, is_complete) in [(SIM_OTHER, true), (SIM_STOCK, false)] {
        let mut bench = opened();
        for (side, at) in [(Side::Buy, "10"), (Side::Sell, "11")] {
            (0..ORDERS_PER_SIDE_MAX).for_each(|_| _ = bench.submit(limit(side, 1, "1", at)));
        }
        let watches =
            |security, on| CommandKind::Watch { port: VIEWER, what: WatchTarget::BookOrders(security), on };
        bench.send(watches(SIM_OTHER, true));
        bench.published_orders(VIEWER);
        bench.send(watches(SIM_STOCK, true));
        bench.out.clear();
        bench.shard.emit_depths(&mut bench.out);
        assert!(bench.shard.has_depths(), "more steps are needed");
        bench.out.clear();
        bench.send(watches(left, false));
        let rest = bench.published_orders(VIEWER);
        assert_eq!(rest.last().is_some_and(|part| part.is_last), is_complete, "{left:?} is left");
    }
}

#[test]
fn more_trades_than_are_held_leave_the_book_exact() {
    let mut bench = opened();
    for _ in 0..ORDER_TRADES_MAX + 20 {
        bench.submit(limit(Side::Buy, 1, "1", "10"));
    }
    bench.submit(limit(Side::Buy, 1, "1", "9"));
    bench.send(watch(VIEWER, true));
    let mut rebuilt = Rebuilt::default();
    rebuilt.apply(&bench.published_orders(VIEWER));
    bench.submit(limit(Side::Sell, 2, &(ORDER_TRADES_MAX + 20).to_string(), "10"));
    let parts = bench.published_orders(VIEWER);
    let is_trade = |text: &&String| text.starts_with("Trade");
    assert_eq!(actions(&parts).iter().filter(is_trade).count(), ORDER_TRADES_MAX);
    rebuilt.apply(&parts);
    assert_eq!(rebuilt.texts(Side::Buy), ["1x9"]);
}
