//! Which ticks a thread wants, told to the shards. What is kept is the wish, not a queue of changes: however often clients
//! change their minds, a security is told about once for each time there is room.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pitlane_engine::command::{Body, Command, Watch};
use pitlane_engine::id::{SecurityId, Source};
use pitlane_engine::mesh::PortEnd;
use pitlane_engine::refdata::RefData;
use pitlane_engine::shard::shard_of;
use pitlane_protocols::stomp::broker::Interest;

/// Commands sent in one poll, so that a wish for all securities does not hold the round up.
const SENT_PER_POLL_MAX: usize = 256;

/// All maps are bounded by the securities there are.
#[derive(Debug)]
pub struct Watches {
    source: Source,
    reference: Arc<RefData>,
    all: bool,
    ticks: BTreeSet<SecurityId>,
    /// As the shards know it.
    told: BTreeSet<SecurityId>,
    /// Securities whose wish may have changed.
    changed: BTreeMap<SecurityId, ()>,
}

impl Watches {
    pub fn new(source: Source, reference: Arc<RefData>) -> Watches {
        let (ticks, told, changed) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
        Watches { source, reference, all: false, ticks, told, changed }
    }

    /// New reference data; whoever wants all ticks wants those of new securities too.
    pub fn adopt(&mut self, reference: &Arc<RefData>) {
        self.reference = reference.clone();
        if self.all {
            self.changed.extend(reference.securities().iter().map(|row| (row.id, ())));
        }
    }

    pub fn set(&mut self, interest: Interest, on: bool) {
        match interest {
            Interest::Ticks(security) => {
                if self.reference.security(security).is_none() {
                    return;
                }
                if on {
                    self.ticks.insert(security)
                } else {
                    self.ticks.remove(&security)
                };
                self.changed.insert(security, ());
            }
            Interest::AllTicks => {
                self.all = on;
                self.changed.extend(self.reference.securities().iter().map(|row| (row.id, ())));
            }
            // Orders and the system are told to every gateway, always: a receipt for a subscription must mean that
            // nothing is missed from there on, whatever the lanes hold.
            Interest::Rest => {}
        }
    }

    pub fn is_waiting(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Tells what has room, and says how much.
    pub fn poll(&mut self, port: &mut PortEnd) -> usize {
        for sent in 0..SENT_PER_POLL_MAX {
            let Some((&security, ())) = self.changed.first_key_value() else { return sent };
            let on = self.all || self.ticks.contains(&security);
            if on != self.told.contains(&security) {
                let what = Watch::Ticks(security);
                let body = Body::Watch { port: port.id(), what, on };
                let command = Command { source: self.source, token: 0, body };
                if port.send(shard_of(security, port.shards()), command).is_err() {
                    return sent;
                }
                if on {
                    self.told.insert(security)
                } else {
                    self.told.remove(&security)
                };
            }
            self.changed.pop_first();
        }
        SENT_PER_POLL_MAX
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::id::{Origin, ShardId};
    use pitlane_engine::mesh::{Depths, PortClass, mesh};

    use super::*;

    #[test]
    fn a_wish_is_told_once_however_often_it_changed() {
        let reference = Arc::new(crate::refdata::shipped().unwrap());
        let security = reference.securities()[0].id;
        let (mut ports, mut shards) = mesh(&[PortClass::Client], 1, Depths { commands: 1, events: 1 });
        let source = Source { origin: Origin::Server, port: ports[0].id(), session: 0 };
        let mut watches = Watches::new(source, reference.clone());
        for _ in 0..1_000 {
            watches.set(Interest::Ticks(security), true);
            watches.set(Interest::AllTicks, true);
            watches.set(Interest::AllTicks, false);
        }
        let mut told = Vec::new();
        while watches.is_waiting() {
            watches.poll(&mut ports[0]);
            told.extend(shards[0].poll_command().map(|command| command.body));
        }
        let (port, what) = (ports[0].id(), Watch::Ticks(security));
        assert_eq!(told, [Body::Watch { port, what, on: true }]);
        watches.set(Interest::Ticks(security), false);
        watches.poll(&mut ports[0]);
        assert_eq!(shards[0].id(), ShardId(0));
        assert_eq!(
            shards[0].poll_command().map(|command| command.body),
            Some(Body::Watch { port, what, on: false })
        );
        assert!(!watches.is_waiting());
    }
}
