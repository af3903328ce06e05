//! Binance Spot as a controllable venue, for the cases that every adapter must pass.

use std::collections::BTreeMap;

use pitlane_dialogue::binance::NextOrder;
use pitlane_engine::event::OrderReport;
use pitlane_engine::terms::Changes;
use pitlane_tests::binance::BinanceHarness;
use pitlane_tests::fix::seconds;
use pitlane_tests::test_market;

use super::conformance::{VenueAction, VenueRig};

pub(crate) struct BinanceVenue {
    harness: BinanceHarness,
    /// Orders of the exchange, by the first id of the client.
    orders: BTreeMap<String, u64>,
}

impl BinanceVenue {
    pub(crate) fn new() -> BinanceVenue {
        let mut harness = BinanceHarness::connected();
        harness.holds_changes = true;
        BinanceVenue { harness, orders: BTreeMap::new() }
    }

    /// Sends messages that no documentation has, each of which must change nothing.
    fn babble(&mut self) {
        let known = self.harness.last_event.clone();
        for text in [
            "{".to_string(),
            "[]".to_string(),
            "{\"id\":99999,\"status\":200,\"result\":{}}".to_string(),
            "{\"event\":{\"e\":\"somethingNew\"}}".to_string(),
            "{\"event\":{\"e\":\"executionReport\"}}".to_string(),
            known.replace("\"x\":\"NEW\"", "\"x\":\"SOMETHING_NEW\""),
            known.replace("\"c\":\"", "\"c\":\"web_"),
        ] {
            self.harness.deliver_message(&text);
        }
        self.harness.settle();
    }
}

impl VenueRig for BinanceVenue {
    fn submit(&mut self, id: &str, qty: u32) {
        self.harness.exchange.next_order = NextOrder::TakeSilently;
        let before = self.harness.exchange.orders.len();
        self.harness.submit(id, &qty.to_string(), "100");
        if self.harness.exchange.orders.len() > before {
            let newest = self.harness.exchange.orders.keys().next_back().expect("an order");
            self.orders.insert(id.to_string(), *newest);
        }
    }

    fn cancel(&mut self, id: &str, order: &str) {
        self.harness.cancel(id, order);
        assert_eq!(self.harness.held_requests.len(), 1, "the venue has the request");
    }

    fn replace(&mut self, id: &str, order: &str, qty: u32) {
        let changes = Changes::default().with_qty(test_market::qty(&qty.to_string()));
        self.harness.replace(id, order, changes);
        assert_eq!(self.harness.held_requests.len(), 1, "the venue has the request");
    }

    fn act(&mut self, order: &str, act: VenueAction) -> bool {
        let id = self.orders.get(order).copied().unwrap_or_default();
        let exchange = &mut self.harness.exchange;
        match act {
            VenueAction::Accept => exchange.accept(id),
            VenueAction::Reject => exchange.reject(id),
            VenueAction::Fill(qty) => {
                exchange.fill(id, test_market::qty(&qty.to_string()), test_market::price("100"));
            }
            VenueAction::FillAgain => {
                let last = self.harness.last_event.clone();
                self.harness.deliver_message(&last);
            }
            VenueAction::Grant => self.harness.answer_held(),
            VenueAction::Refuse => {
                exchange.refuses_change = true;
                self.harness.answer_held();
            }
            VenueAction::Disconnect => self.harness.disconnect(),
            VenueAction::Reconnect => self.harness.wait(seconds(5)),
            VenueAction::Restart => {
                self.harness.restart();
                self.harness.wait(seconds(5));
            }
            VenueAction::Close => {
                self.harness.shard.close("close");
                self.harness.settle();
                assert_eq!(self.harness.held_requests.len(), 1, "the venue has the request");
            }
            VenueAction::Babble => self.babble(),
            // The venue has no sequence numbers, and takes no fill back.
            VenueAction::ReconnectWithReset | VenueAction::Bust => return false,
        }
        self.harness.settle();
        true
    }

    fn order(&self, id: &str) -> (OrderReport, usize) {
        let known = self.harness.order(id);
        (known.last, known.fills)
    }
}
