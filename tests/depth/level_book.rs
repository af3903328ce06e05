//! Price levels of a book, rebuilt from a depth topic.

use std::collections::BTreeMap;

use pitlane_engine::event::LEVELS_PER_SIDE_MAX;
use pitlane_engine::id::SecurityId;
use pitlane_engine::terms::Side;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::consumer::{RebuiltBook, decimal, scaled};
use crate::market::DepthMarket;

/// Levels of each side in a checksum.
const CHECKSUM_LEVELS: usize = 10;

/// Prices and quantities in units of 10⁻⁸.
#[derive(Clone, Debug, Default)]
pub(crate) struct LevelsOfBook {
    bids: BTreeMap<i64, i64>,
    asks: BTreeMap<i64, i64>,
}

#[derive(Deserialize)]
struct DepthBody<'a> {
    #[serde(borrow, default)]
    bids: Vec<(&'a RawValue, &'a RawValue)>,
    #[serde(borrow, default)]
    asks: Vec<(&'a RawValue, &'a RawValue)>,
    #[serde(borrow, default)]
    changes: Vec<(&'a str, &'a RawValue, &'a RawValue)>,
}

impl RebuiltBook for LevelsOfBook {
    fn topic(security: SecurityId) -> String {
        format!("depth.{security}")
    }

    fn replace(&mut self, body: &str) {
        let body: DepthBody<'_> = serde_json::from_str(body).expect("a body is JSON");
        let side = |levels: &[(&RawValue, &RawValue)]| -> BTreeMap<i64, i64> {
            levels.iter().map(|(price, qty)| (scaled(price.get()), scaled(qty.get()))).collect()
        };
        (self.bids, self.asks) = (side(&body.bids), side(&body.asks));
    }

    fn update(&mut self, body: &str) -> usize {
        let body: DepthBody<'_> = serde_json::from_str(body).expect("a body is JSON");
        for (side, price, qty) in &body.changes {
            let levels = match *side {
                "B" => &mut self.bids,
                "A" => &mut self.asks,
                other => panic!("side {other}"),
            };
            match scaled(qty.get()) {
                0 => levels.remove(&scaled(price.get())),
                qty => levels.insert(scaled(price.get()), qty),
            };
        }
        body.changes.len()
    }

    fn canonical_text(&self) -> String {
        let side = |side: Side| -> String {
            let levels = self.best(side).into_iter().take(CHECKSUM_LEVELS);
            levels.map(|(price, qty)| format!("{}:{};", decimal(price), decimal(qty))).collect()
        };
        format!("{}|{}\n", side(Side::Buy), side(Side::Sell))
    }

    fn assert_equal(&mut self, market: &DepthMarket, security: SecurityId) {
        for side in Side::BOTH {
            let expected = market.expected(security, side, LEVELS_PER_SIDE_MAX);
            assert_eq!(self.best(side), expected, "{side:?} of {security}");
        }
    }
}

impl LevelsOfBook {
    fn best(&self, side: Side) -> Vec<(i64, i64)> {
        match side {
            Side::Buy => self.bids.iter().rev().map(|(price, qty)| (*price, *qty)).collect(),
            Side::Sell => self.asks.iter().map(|(price, qty)| (*price, *qty)).collect(),
        }
    }
}
