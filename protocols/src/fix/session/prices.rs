//! Market data of an initiator: requested once the session is synchronized, and passed on as it
//! arrives.

use pitlane_engine::command::CommandKind;
use pitlane_engine::time::Timestamp;

use super::{FixSession, OUTPUT_BYTES_HIGH};
use crate::fix::fields::FixMessage;
use crate::fix::msg_type;

/// Requests sent at once; the next follow when these are written.
const REQUESTS_PER_STEP: usize = 64;

impl FixSession {
    /// Returns the next price for the shard of its security: a quote or a trade.
    pub fn poll_price(&mut self) -> Option<CommandKind> {
        let initiator = self.initiator.as_mut()?;
        let price = initiator.prices.as_mut()?.poll()?;
        initiator.counts.prices += 1;
        Some(price)
    }

    pub(super) fn has_market_data(&self) -> bool {
        let prices = self.initiator.as_ref().and_then(|initiator| initiator.prices.as_ref());
        prices.is_some_and(|prices| prices.is_waiting())
    }

    /// Starts the requests of a synchronized session.
    pub(super) fn start_market_data(&mut self) {
        let round = self.numbers.next_sender_msg_seq_num;
        if let Some(initiator) = &mut self.initiator
            && let Some(prices) = &mut initiator.prices
        {
            prices.begin(&self.reference, round);
        }
    }

    /// Requests new securities of changed reference data.
    pub(super) fn refresh_market_data(&mut self) {
        if self.is_synchronized()
            && let Some(initiator) = &mut self.initiator
            && let Some(prices) = &mut initiator.prices
        {
            prices.refresh(&self.reference);
        }
    }

    /// Sends some of the outstanding requests. They are not stored, because they mean nothing after
    /// the connection ends.
    pub(super) fn send_market_data_requests(&mut self, now: Timestamp) {
        if !self.is_synchronized() || self.resend.is_active() {
            return;
        }
        let Some(mut prices) = self.initiator.as_mut().and_then(|initiator| initiator.prices.take()) else {
            return;
        };
        for _ in 0..REQUESTS_PER_STEP {
            if self.output.len() >= OUTPUT_BYTES_HIGH {
                break;
            }
            let Some(security) = prices.next_unrequested() else { break };
            let reference = self.reference.clone();
            self.send_admin(now, msg_type::MARKET_DATA_REQUEST, |draft| {
                prices.request(draft, &reference, security)
            });
        }
        if let Some(initiator) = &mut self.initiator {
            initiator.prices = Some(prices);
        }
    }

    /// Handles a snapshot or an incremental refresh. A resent one is of an earlier time and is
    /// ignored.
    pub(super) fn handle_market_data(&mut self, now: Timestamp, message: &FixMessage) {
        let Some(initiator) = &mut self.initiator else { return };
        let Some(prices) = &mut initiator.prices else {
            initiator.counts.unknown_values += 1;
            return;
        };
        if message.header.poss_dup {
            return;
        }
        let passed = prices.read(message, &self.reference, now);
        initiator.counts.unknown_values += passed.unknown;
        initiator.counts.incomplete += passed.incomplete;
    }
}
