//! When which connection has to be looked at. One entry for each at most.
//!
//! Most deadlines are only ever moved back, with each message that comes. So an entry stays where it is until its time, and is then
//! put where it belongs by that time: moving a deadline back costs nothing.

use std::collections::BTreeSet;

use pitlane_engine::time::Timestamp;

use super::slab::ConnectionId;

#[derive(Debug, Default)]
pub(super) struct Deadlines {
    entries: BTreeSet<(Timestamp, ConnectionId)>,
}

impl Deadlines {
    /// Looks at a connection at `wanted` or earlier. `entry` is where the connection keeps its present entry.
    pub(super) fn want(
        &mut self,
        id: ConnectionId,
        entry: &mut Option<Timestamp>,
        wanted: Option<Timestamp>,
    ) {
        let Some(wanted) = wanted else { return };
        if entry.is_some_and(|present| present <= wanted) {
            return;
        }
        self.forget(id, entry);
        self.entries.insert((wanted, id));
        *entry = Some(wanted);
    }

    pub(super) fn forget(&mut self, id: ConnectionId, entry: &mut Option<Timestamp>) {
        if let Some(present) = entry.take() {
            self.entries.remove(&(present, id));
        }
    }

    /// Takes out one whose time has come. Its connection has no entry then.
    pub(super) fn pop(&mut self, now: Timestamp) -> Option<ConnectionId> {
        let &(when, id) = self.entries.first()?;
        if when > now {
            return None;
        }
        self.entries.pop_first();
        Some(id)
    }

    pub(super) fn next(&self) -> Option<Timestamp> {
        self.entries.first().map(|&(when, _)| when)
    }
}
