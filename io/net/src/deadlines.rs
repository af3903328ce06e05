//! The times at which connections must be checked. Each connection has at most one entry.
//!
//! Most deadlines are only ever postponed, with each message that arrives. So an entry stays until
//! its time, and is then moved to the deadline valid at that time: postponing a deadline costs
//! nothing.

use std::collections::BTreeSet;

use pitlane_engine::time::Timestamp;

use super::connection_id::ConnectionId;

#[derive(Debug, Default)]
pub(super) struct Deadlines {
    entries: BTreeSet<(Timestamp, ConnectionId)>,
}

impl Deadlines {
    /// Requests a check of a connection at `wanted` or earlier. `entry` is the connection's current
    /// entry.
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

    /// Removes one entry whose time has come. Its connection has no entry afterwards.
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
