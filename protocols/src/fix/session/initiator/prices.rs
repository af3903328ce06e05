//! Market data of a venue: requested once the session is synchronized, and passed on as it arrives.

use pitlane_engine::command::CommandKind;
use pitlane_engine::time::Timestamp;

use super::Initiator;
use crate::fix::fields::FixMessage;
use crate::fix::msg_type;
use crate::fix::session::layer::SessionLayer;

/// Requests sent at once; the next follow when these are written.
const REQUESTS_PER_STEP: usize = 64;

impl Initiator {
    /// Returns the next price for the shard of its security: a quote or a trade.
    pub(in crate::fix::session) fn poll_price(&mut self) -> Option<CommandKind> {
        let price = self.prices.as_mut()?.poll()?;
        self.counts.prices += 1;
        Some(price)
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
        if !self.is_synchronized(layer) || layer.is_resending() {
            return;
        }
        let Some(prices) = &mut self.prices else { return };
        for _ in 0..REQUESTS_PER_STEP {
            if !layer.stream.has_room() {
                break;
            }
            let Some(security) = prices.next_unrequested() else { break };
            layer.send_admin(now, msg_type::MARKET_DATA_REQUEST, |draft| {
                prices.request(draft, &self.reference, security)
            });
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
