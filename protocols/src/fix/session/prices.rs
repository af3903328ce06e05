//! Market data of a session with a venue: asked for when both sides are in touch, handed on as it comes.

use crate::fix::msg_type;
use pitlane_engine::command::CommandKind;
use pitlane_engine::time::Timestamp;

use super::{FixSession, OUTPUT_BYTES_ENOUGH};
use crate::fix::fields::FixMessage;

/// Requests said at once; the next follow when these are written.
const REQUESTS_PER_STEP: usize = 64;

impl FixSession {
    /// The next price for the shard of its security: a quote or a trade.
    pub fn poll_price(&mut self) -> Option<CommandKind> {
        let initiator = self.initiator.as_mut()?;
        let price = initiator.prices.as_mut()?.poll()?;
        initiator.counts.prices += 1;
        Some(price)
    }

    pub(super) fn has_price(&self) -> bool {
        let prices = self.initiator.as_ref().and_then(|initiator| initiator.prices.as_ref());
        prices.is_some_and(|prices| prices.is_waiting())
    }

    /// We are in touch.
    pub(super) fn begin_prices(&mut self) {
        let round = self.numbers.next_sender_msg_seq_num;
        if let Some(initiator) = &mut self.initiator
            && let Some(prices) = &mut initiator.prices
        {
            prices.begin(&self.reference, round);
        }
    }

    /// There are other reference data.
    pub(super) fn want_prices(&mut self) {
        if self.is_synchronized()
            && let Some(initiator) = &mut self.initiator
            && let Some(prices) = &mut initiator.prices
        {
            prices.want(&self.reference);
        }
    }

    /// Asks for some of what is not asked for yet. Nothing of it is kept: with the connection it has lost its meaning.
    pub(super) fn go_on_asking_prices(&mut self, now: Timestamp) {
        if !self.is_synchronized() || self.resend.is_active() {
            return;
        }
        let Some(mut prices) = self.initiator.as_mut().and_then(|initiator| initiator.prices.take()) else {
            return;
        };
        for _ in 0..REQUESTS_PER_STEP {
            if self.output.len() >= OUTPUT_BYTES_ENOUGH {
                break;
            }
            let Some(security) = prices.next_unasked() else { break };
            let reference = self.reference.clone();
            self.say(now, msg_type::MARKET_DATA_REQUEST, |draft| prices.request(draft, &reference, security));
        }
        if let Some(initiator) = &mut self.initiator {
            initiator.prices = Some(prices);
        }
    }

    /// A snapshot or an increment. What is said again is of an earlier time.
    pub(super) fn handle_prices(&mut self, now: Timestamp, message: &FixMessage) {
        let Some(initiator) = &mut self.initiator else { return };
        let Some(prices) = &mut initiator.prices else {
            initiator.counts.unknown_values += 1;
            return;
        };
        if message.header.poss_dup {
            return;
        }
        let passed = prices.read(message, &self.reference, now);
        initiator.counts.unknown_values += passed.strange;
        initiator.counts.incomplete += passed.incomplete;
    }
}
