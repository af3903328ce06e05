//! Sessions of this thread that receive copies of the reports of all orders, whichever interface
//! and gateway the orders came from.
//!
//! ```text
//! Event ─► DropCopies ─ CopiedReport ─► each session whose filter wants it
//! ```
//!
//! A copy is stored with the number of its event, as every report of a session is. After a restart
//! the journal has the events without a copy (`SessionRecovery::missed`).

use pitlane_engine::event::Event;
use pitlane_engine::id::ShardId;
use pitlane_engine::time::Timestamp;
use pitlane_journal::Fault;
use pitlane_protocols::fix::drop_copy::{CopiedOrders, CopyFilter};

use super::{FixEndpoint, Unreported, client_of};

#[derive(Debug, Default)]
pub(super) struct DropCopies {
    sessions: Vec<DropCopySession>,
    orders: CopiedOrders,
    /// Events that arrive before the snapshots of all shards are complete. Copies of the events
    /// from before the restart come first.
    early: Option<Vec<Unreported>>,
}

#[derive(Debug)]
struct DropCopySession {
    number: u16,
    filter: CopyFilter,
}

impl FixEndpoint {
    /// Opens the drop-copy sessions of this gateway. They receive copies from now on, although
    /// their clients are not connected.
    pub(super) fn open_drop_copies(&mut self, now: Timestamp) -> Result<(), Fault> {
        let settings = self.settings.clone();
        let ours = settings.drop_copies().filter(|(name, _)| self.assignments.gateway(name) == self.gateway);
        let ours: Vec<_> = ours.collect();
        let mut sessions = Vec::new();
        for (name, filter) in ours {
            if let Some(number) = self.admit(now, &name)? {
                sessions.push(DropCopySession { number, filter: filter.clone() });
            }
        }
        if !sessions.is_empty() {
            let copies = DropCopies { sessions, early: Some(Vec::new()), ..DropCopies::default() };
            self.drop_copies = Some(Box::new(copies));
        }
        Ok(())
    }

    /// Returns whether a session receives copies: then the gateway needs the events of all orders.
    pub fn copies_orders(&self) -> bool {
        self.drop_copies.is_some()
    }

    /// Copies an event of a shard, if it is a report, to the sessions that want it.
    #[inline]
    pub(super) fn copy_event(&mut self, now: Timestamp, shard: ShardId, event: &Event) {
        if self.drop_copies.is_some() {
            self.copy_or_hold(now, shard, event);
        }
    }

    fn copy_or_hold(&mut self, now: Timestamp, shard: ShardId, event: &Event) {
        let Some(copies) = &mut self.drop_copies else { return };
        match &mut copies.early {
            Some(early) if event.body.report_source().is_some() && !event.body.is_order_snapshot() => {
                early.push(Unreported { shard, event: *event });
            }
            Some(_) | None => self.copy(now, shard, event, false),
        }
    }

    /// Copies the events from before the restart of which a session has no copy, and then the
    /// events since.
    pub(super) fn complete_copies(&mut self, now: Timestamp, missed: &[Unreported]) {
        for Unreported { shard, event } in missed {
            self.copy(now, *shard, event, true);
        }
        let early = self.drop_copies.as_mut().and_then(|copies| copies.early.take());
        for Unreported { shard, event } in early.unwrap_or_default() {
            self.copy(now, shard, &event, false);
        }
    }

    fn copy(&mut self, now: Timestamp, shard: ShardId, event: &Event, missed: bool) {
        let FixEndpoint { drop_copies: Some(copies), clients, active, .. } = self else { return };
        let DropCopies { sessions, orders, .. } = &mut **copies;
        let Some(report) = orders.handle_event(event) else { return };
        for DropCopySession { number, filter } in sessions {
            if filter.wants(event)
                && let Some(client) = client_of(clients, *number)
            {
                client.session.copy_report(now, shard, event, &report, missed);
                client.queue(*number, active);
            }
        }
    }
}
