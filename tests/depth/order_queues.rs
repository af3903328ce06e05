//! Orders of a book, rebuilt from its topic, and the naive queues that they are compared with.

use std::collections::BTreeMap;

use pitlane_engine::event::ORDERS_PER_SIDE_MAX;
use pitlane_engine::id::{OrderHandle, SecurityId};
use pitlane_engine::terms::Side;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::consumer::{RebuiltBook, decimal, scaled};
use crate::market::DepthMarket;

/// Orders of each side in a checksum.
const CHECKSUM_ORDERS: usize = 10;

/// One side of a book: by price a queue, the oldest order first.
pub(crate) type Queues<K> = BTreeMap<i64, Vec<(K, i64)>>;

/// Returns number, price and quantity of the orders of a side, the first one to trade first.
pub(crate) fn in_sequence<K: Copy>(queues: &Queues<K>, side: Side) -> Vec<(K, i64, i64)> {
    let row = |(price, queue): (&i64, &Vec<(K, i64)>)| {
        queue.iter().map(|(key, qty)| (*key, *price, *qty)).collect::<Vec<_>>()
    };
    match side {
        Side::Buy => queues.iter().rev().flat_map(row).collect(),
        Side::Sell => queues.iter().flat_map(row).collect(),
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct OrdersOfBook {
    sides: [Queues<u64>; 2],
    /// Number of each order that was seen in a comparison. It never changes.
    numbers: BTreeMap<OrderHandle, u64>,
}

/// Number, price and size of an order.
type OrderRow<'a> = (u64, &'a RawValue, &'a RawValue);

#[derive(Deserialize)]
struct OrdersBody<'a> {
    #[serde(borrow, default)]
    bids: Vec<OrderRow<'a>>,
    #[serde(borrow, default)]
    asks: Vec<OrderRow<'a>>,
    /// Action, number, side, price and size.
    #[serde(borrow, default)]
    changes: Vec<(&'a str, u64, &'a str, &'a RawValue, &'a RawValue)>,
}

impl RebuiltBook for OrdersOfBook {
    fn topic(security: SecurityId) -> String {
        format!("orders.{security}.book")
    }

    fn replace(&mut self, body: &str) {
        let body: OrdersBody<'_> = serde_json::from_str(body).expect("a body is JSON");
        self.sides = [&body.bids, &body.asks].map(|rows| {
            let mut side = Queues::new();
            for (number, price, qty) in rows {
                side.entry(scaled(price.get())).or_default().push((*number, scaled(qty.get())));
            }
            side
        });
    }

    fn update(&mut self, body: &str) -> usize {
        let body: OrdersBody<'_> = serde_json::from_str(body).expect("a body is JSON");
        for &(action, number, side, price, qty) in &body.changes {
            let side = ["B", "A"].iter().position(|name| *name == side).expect("a side");
            let (price, qty) = (scaled(price.get()), scaled(qty.get()));
            let queue = self.sides[side].entry(price).or_default();
            if action == "ADD" {
                queue.push((number, qty));
                continue;
            }
            let at = queue.iter().position(|(other, _)| *other == number).expect("a known order");
            match action {
                "CHANGE" => queue[at].1 = qty,
                "TRADE" => queue[at].1 -= qty,
                "REMOVE" => queue[at].1 = 0,
                other => panic!("action {other}"),
            }
            assert!(queue[at].1 >= 0, "no order trades more than it has");
            if queue[at].1 == 0 {
                queue.remove(at);
            }
            if queue.is_empty() {
                self.sides[side].remove(&price);
            }
        }
        body.changes.len()
    }

    fn canonical_text(&self) -> String {
        let side = |side: Side| -> String {
            let orders = in_sequence(&self.sides[side as usize], side).into_iter().take(CHECKSUM_ORDERS);
            orders
                .map(|(number, price, qty)| format!("{number}:{}:{};", decimal(price), decimal(qty)))
                .collect()
        };
        format!("{}|{}\n", side(Side::Buy), side(Side::Sell))
    }

    fn assert_equal(&mut self, market: &DepthMarket, security: SecurityId) {
        for side in Side::BOTH {
            let expected = market.expected_orders(security, side, ORDERS_PER_SIDE_MAX);
            let rebuilt = in_sequence(&self.sides[side as usize], side);
            let plain = |rows: &[(u64, i64, i64)]| -> Vec<(i64, i64)> {
                rows.iter().map(|(_, price, qty)| (*price, *qty)).collect()
            };
            let open: Vec<(i64, i64)> = expected.iter().map(|(_, price, qty)| (*price, *qty)).collect();
            assert_eq!(plain(&rebuilt), open, "{side:?} of {security}");
            for ((number, ..), (handle, ..)) in rebuilt.into_iter().zip(expected) {
                assert_eq!(*self.numbers.entry(handle).or_insert(number), number, "of {handle:?}");
            }
        }
        let mut numbers: Vec<u64> = self.numbers.values().copied().collect();
        numbers.sort_unstable();
        assert!(numbers.is_sorted_by(|a, b| a < b), "each order has a number of its own");
        self.numbers.retain(|handle, _| market.is_open(*handle));
    }
}
