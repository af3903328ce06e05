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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pitlane_engine::event::{EventKind, LevelChange, LevelChanges, LevelsKind};
    use pitlane_engine::id::ShardId;
    use pitlane_engine::number::{Price, Qty};
    use pitlane_engine::refdata::{RefData, sample};
    use pitlane_engine::terms::Side;
    use pitlane_engine::time::Timestamp;

    use super::*;
    use crate::stomp::settings::BrokerSettings;
    use crate::test_reports;

    const SECURITY: SecurityId = SecurityId(1);

    fn publish(broker: &mut StompBroker, kind: LevelsKind, seqs: [u64; 2], price: &[u8], qty: &[u8]) {
        let mut levels = LevelChanges::new(SECURITY, kind, seqs[0], seqs[1]);
        let price = Price::parse(price).expect("a price");
        levels.push(LevelChange { side: Side::Buy, price, qty: Qty::parse(qty).expect("a quantity") });
        levels.is_last = true;
        let event = test_reports::event(seqs[1], EventKind::Levels(levels));
        broker.handle_event(Timestamp(seqs[1]), ShardId(0), &event);
    }

    #[test]
    fn a_reader_gets_a_snapshot_then_what_it_misses_and_nothing_after_the_last_stop() {
        let reference = RefData::check(sample::sound()).expect("a valid sample");
        let mut broker = StompBroker::new(BrokerSettings::default(), Arc::new(reference));
        let watch = |on| Some(BrokerCommand::Watch { interest: Interest::Levels(SECURITY), on });
        let missed = |broker: &mut StompBroker, from| {
            broker.depth_since(SECURITY, from).map(|body| String::from_utf8(body.to_vec()).expect("JSON"))
        };
        broker.keep_levels(SECURITY, true);
        broker.keep_levels(SECURITY, true);
        assert_eq!((broker.poll_command(), broker.poll_command()), (watch(true), None), "once");
        assert_eq!(missed(&mut broker, None), None, "the book is not known");
        publish(&mut broker, LevelsKind::Snapshot, [4, 4], b"10.5", b"3");
        publish(&mut broker, LevelsKind::Update, [4, 6], b"10.4", b"2");
        let snapshot = missed(&mut broker, None).expect("a snapshot");
        assert!(snapshot.contains("10.5") && snapshot.contains("10.4"), "{snapshot}");
        let update = missed(&mut broker, Some(4)).expect("an update");
        assert!(update.contains("10.4") && !update.contains("10.5"), "{update}");
        let nothing = missed(&mut broker, Some(6)).expect("an empty update");
        assert!(!nothing.contains("10.4") && !nothing.contains("10.5"), "{nothing}");
        broker.keep_levels(SECURITY, false);
        assert_eq!(broker.poll_command(), None);
        assert!(missed(&mut broker, None).is_some(), "another reader is left");
        broker.keep_levels(SECURITY, false);
        assert_eq!((broker.poll_command(), missed(&mut broker, None)), (watch(false), None));
    }
}
