//! Price levels for readers that are no session: they ask now and then, under the same rule as a
//! subscription with `resume`.

use pitlane_engine::id::SecurityId;

use super::{BrokerCommand, Interest, StompBroker};

impl StompBroker {
    /// Starts or stops to keep the price levels of a security. Each start needs one stop.
    pub fn keep_levels(&mut self, security: SecurityId, on: bool) {
        let interest = Interest::Levels(security);
        if self.interests.count(interest, on) {
            self.commands.push_back(BrokerCommand::Watch { interest, on });
        }
        if !self.interests.has_levels(security)
            && let Some(topic) = self.market.depth_topic(security, &self.reference)
        {
            self.market.forget(topic);
        }
    }

    /// Returns what a reader misses whose book has the sequence number `from`, as JSON: a snapshot,
    /// or an update, which is empty if nothing has changed. `None`: the book is not known yet.
    pub fn depth_since(&mut self, security: SecurityId, from: Option<u64>) -> Option<&[u8]> {
        let topic = self.market.depth_topic(security, &self.reference)?;
        self.market.depth_json(topic, from)
    }
}
