//! Ids of orders that REST clients of other servers have sent to our shards, until the read model
//! shows them.
//!
//! The owner of a security decides about the ids of REST orders for it: all of them, from whichever
//! server, pass its http thread. The desk knows the ids that are used; this set knows those whose
//! order is still on the path to the shard, so that a repeated request waits for it and gets the
//! same response as the first.

use std::collections::{BTreeSet, VecDeque};

use pitlane_engine::id::{IntId, StrategyId};

/// Maximum number of ids known here, with those that have arrived since. Beyond it the oldest id is
/// dropped, which the read model already shows: between taking an order and showing it there is at
/// most one full lane of commands and one of events. Takes some 4 MB.
const IDS_MAX: usize = 65_536;

#[derive(Debug, Default)]
pub(super) struct ElsewhereIds {
    /// Ids from oldest to newest.
    order: VecDeque<(StrategyId, IntId)>,
    known: BTreeSet<(StrategyId, IntId)>,
}

impl ElsewhereIds {
    pub(super) fn contains(&self, strategy: StrategyId, id: &IntId) -> bool {
        self.known.contains(&(strategy, *id))
    }

    /// Removes an id whose order the shard has reported.
    pub(super) fn remove(&mut self, strategy: StrategyId, id: &IntId) {
        self.known.remove(&(strategy, *id));
    }

    pub(super) fn add(&mut self, strategy: StrategyId, id: IntId) {
        if !self.known.insert((strategy, id)) {
            return;
        }
        self.order.push_back((strategy, id));
        if self.order.len() > IDS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: StrategyId = StrategyId(1);

    #[test]
    fn the_newest_ids_are_known_up_to_the_maximum() {
        let id = |number: usize| IntId::numbered(b'x', number as u64);
        let mut ids = ElsewhereIds::default();
        for number in 0..IDS_MAX + 3 {
            ids.add(OWN, id(number));
            ids.add(OWN, id(number));
        }
        assert_eq!((ids.order.len(), ids.known.len()), (IDS_MAX, IDS_MAX));
        assert!(
            !ids.contains(OWN, &id(2)) && ids.contains(OWN, &id(3)) && ids.contains(OWN, &id(IDS_MAX + 2))
        );
        assert!(!ids.contains(StrategyId(2), &id(3)), "another strategy has ids of its own");
    }

    #[test]
    fn an_id_is_known_until_its_order_has_arrived() {
        let [arrived, other] = [1, 2].map(|number| IntId::numbered(b'x', number));
        let mut ids = ElsewhereIds::default();
        ids.add(OWN, arrived);
        ids.add(OWN, other);
        ids.remove(OWN, &arrived);
        assert!(!ids.contains(OWN, &arrived) && ids.contains(OWN, &other));
    }
}
