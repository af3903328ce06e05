//! Tracks which reports a shard has stored. A report has no answer of its own; but a shard stores
//! the commands of a port in order, so the answer to a later command confirms all earlier ones:
//! some reports are followed by a question that changes nothing.

use std::collections::VecDeque;

use pitlane_engine::command::{Command, CommandKind, WatchTarget};
use pitlane_engine::id::{AdapterId, ShardId, Source};
use pitlane_engine::mesh::PortEnd;
use pitlane_engine::reason::Reason;
use pitlane_engine::time::{NS_PER_MS, Timestamp};

/// Time until the next attempt after the journal has refused a question.
const RETRY_NS: u64 = 10 * NS_PER_MS;

/// The reports sent to one shard. Bounded by the number of a session's messages in transit.
#[derive(Debug, Default)]
pub(super) struct ReportConfirmations {
    /// Tokens of reports that were sent.
    sent: VecDeque<u32>,
    /// The open question: its token, and how many of `sent` were sent before it.
    asked: Option<(u32, usize)>,
    token: u32,
    /// Earliest time of the next question.
    ask_at: Timestamp,
}

impl ReportConfirmations {
    pub(super) fn deadline(&self) -> Timestamp {
        if self.sent.is_empty() || self.asked.is_some() { Timestamp::MAX } else { self.ask_at }
    }

    /// Records a report sent to the shard.
    pub(super) fn record(&mut self, token: u32) {
        self.sent.push_back(token);
    }

    /// Asks, if there are reports to confirm and no question is open. Returns whether it did.
    pub(super) fn poll(
        &mut self,
        now: Timestamp,
        shard: ShardId,
        source: Source,
        adapter: AdapterId,
        port: &mut PortEnd,
    ) -> bool {
        if self.sent.is_empty() || self.asked.is_some() || now < self.ask_at {
            return false;
        }
        let token = self.token.wrapping_add(1);
        // This is watched already, so the command changes nothing.
        let body = CommandKind::Watch { port: source.port, what: WatchTarget::Venue(adapter), on: true };
        if port.send(shard, Command::new(source, token, body)).is_err() {
            return false;
        }
        (self.token, self.asked) = (token, Some((token, self.sent.len())));
        true
    }

    /// Handles an answer. Returns the tokens of the reports that it confirms.
    pub(super) fn handle_done(
        &mut self,
        now: Timestamp,
        token: u32,
        reason: Reason,
    ) -> impl Iterator<Item = u32> {
        let count = match self.asked.take_if(|(asked, _)| *asked == token) {
            Some((_, count)) if reason == Reason::None => count,
            Some(_) => {
                self.ask_at = now.plus(RETRY_NS);
                0
            }
            None => 0,
        };
        self.sent.drain(..count)
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::id::{Origin, PortId};
    use pitlane_engine::mesh::{Depths, PortClass, mesh};

    use super::*;

    #[test]
    fn an_answer_confirms_the_reports_sent_before_its_question() {
        let (mut ports, _shards) = mesh(&[PortClass::Client], 1, Depths::default());
        let (port, shard) = (&mut ports[0], ShardId(0));
        let source = Source { origin: Origin::Server, port: PortId(0), session: 9 };
        let mut stored = ReportConfirmations::default();
        let now = Timestamp(5);
        assert!(!stored.poll(now, shard, source, AdapterId(1), port), "there is nothing to ask about");
        stored.record(7);
        assert!(stored.poll(now, shard, source, AdapterId(1), port));
        stored.record(8);
        assert!(!stored.poll(now, shard, source, AdapterId(1), port), "one at a time");
        assert_eq!(stored.handle_done(now, 99, Reason::None).count(), 0);
        assert_eq!(stored.handle_done(now, 1, Reason::None).collect::<Vec<_>>(), [7]);
        assert!(stored.poll(now, shard, source, AdapterId(1), port));
        // A closed journal has stored nothing; the question is repeated a little later.
        assert_eq!(stored.handle_done(now, 2, Reason::StorageFailed).count(), 0);
        assert!(!stored.poll(now, shard, source, AdapterId(1), port));
        assert!(stored.poll(stored.deadline(), shard, source, AdapterId(1), port));
        assert_eq!(stored.handle_done(now, 3, Reason::None).collect::<Vec<_>>(), [8]);
        assert!(stored.sent.is_empty());
    }
}
