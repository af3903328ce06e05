//! Market data of a venue: requested once the session is synchronized, and passed on as it arrives.

use pitlane_engine::command::CommandKind;
use pitlane_engine::time::Timestamp;

use super::Initiator;
use crate::fix::fields::FixMessage;
use crate::fix::msg_type;
use crate::fix::session::layer::SessionLayer;
use crate::fix::venue::prices::{PriceRequest, VenuePrices};
use crate::venue::is_price;

/// Requests sent at once; the next follow when these are written.
const REQUESTS_PER_STEP: usize = 64;

impl Initiator {
    /// Returns the next price for the shard of its security: a quote, a trade or a part of a book.
    pub(in crate::fix::session) fn poll_price(&mut self) -> Option<CommandKind> {
        let price = self.prices.as_mut()?.poll()?;
        self.counts.prices += u64::from(is_price(&price));
        Some(price)
    }

    /// Returns why a book of the venue is requested again, once.
    pub(in crate::fix::session) fn take_price_fault(&mut self) -> Option<String> {
        self.prices.as_mut()?.take_fault()
    }

    pub(super) fn next_price_request(&self) -> Option<Timestamp> {
        self.prices.as_ref()?.next_retry()
    }

    /// Handles that messages of the venue may be missing.
    pub(super) fn handle_price_gap(&mut self) {
        self.prices.iter_mut().for_each(VenuePrices::handle_gap);
    }

    /// Handles a message that is rejected.
    pub(super) fn handle_unreadable_prices(&mut self, message: &FixMessage) {
        let is_prices = matches!(
            message.type_code(),
            msg_type::MARKET_DATA_SNAPSHOT | msg_type::MARKET_DATA_INCREMENTAL_REFRESH
        );
        if let Some(prices) = self.prices.as_mut().filter(|_| is_prices) {
            prices.handle_unreadable(message, &self.reference);
        }
    }

    pub(super) fn has_market_data(&self) -> bool {
        self.prices.as_ref().is_some_and(|prices| prices.is_waiting())
    }

    /// Starts the requests of a synchronized session.
    pub(super) fn start_market_data(&mut self, layer: &SessionLayer) {
        if let Some(prices) = &mut self.prices {
            prices.begin(&self.reference, layer.sequence.next_sender());
        }
    }

    /// Requests new securities of changed reference data.
    pub(super) fn refresh_market_data(&mut self, layer: &SessionLayer) {
        if self.is_synchronized(layer)
            && let Some(prices) = &mut self.prices
        {
            prices.refresh(&self.reference);
        }
    }

    /// Sends some of the outstanding requests. They are not stored, because they mean nothing after
    /// the connection ends.
    pub(super) fn send_market_data_requests(&mut self, layer: &mut SessionLayer, now: Timestamp) {
        let may_send = self.is_synchronized(layer) && !layer.is_resending();
        let Some(prices) = &mut self.prices else { return };
        for _ in 0..REQUESTS_PER_STEP {
            if !may_send || !layer.stream.has_room() {
                prices.delay_retries(now);
                break;
            }
            let Some(request) = prices.next_request(now) else { break };
            let mut send = |request, on| {
                layer.send_admin(now, msg_type::MARKET_DATA_REQUEST, |draft| {
                    prices.request(draft, &self.reference, request, on)
                });
            };
            if request.number > 1 {
                // The venue ends the subscription whose snapshot or changes were faulty.
                send(PriceRequest { number: request.number - 1, ..request }, false);
            }
            send(request, true);
        }
    }

    /// Handles a snapshot or an incremental refresh. A resent one is of an earlier time and is
    /// ignored.
    pub(super) fn handle_market_data(&mut self, now: Timestamp, message: &FixMessage) {
        let Some(prices) = &mut self.prices else {
            self.counts.unknown_values += 1;
            return;
        };
        if message.header.poss_dup {
            return;
        }
        let passed = prices.read(message, &self.reference, now);
        self.counts.unknown_values += passed.unknown;
        self.counts.incomplete += passed.incomplete;
    }
}
