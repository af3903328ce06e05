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
    /// Events that arrive before the snapshots of all shards are complete, at most
    /// [`EARLY_EVENTS_MAX`]. Copies of the events from before the restart come first.
    early: Option<EarlyCopies>,
}

/// Events that are held until the snapshots of all shards are complete. At the start few orders
/// change: this is what a venue can report in several seconds, in about 16 MiB. With one more event
/// the copies no longer wait: no report is lost, but a copy about an order whose snapshot has not
/// arrived has neither its prices nor the name of its session.
const EARLY_EVENTS_MAX: usize = 1 << 16;

#[derive(Debug, Default)]
struct EarlyCopies(Vec<Unreported>);

impl EarlyCopies {
    /// Holds an event. Returns whether there is room for another one.
    fn hold(&mut self, event: Unreported) -> bool {
        self.0.push(event);
        self.0.len() < EARLY_EVENTS_MAX
    }
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
            let copies =
                DropCopies { sessions, early: Some(EarlyCopies::default()), ..DropCopies::default() };
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
                if !early.hold(Unreported { shard, event: *event }) {
                    self.release_copies(now);
                }
            }
            Some(_) | None => self.copy(now, shard, event, false),
        }
    }

    /// Copies what is held before the snapshots are complete, because there is no room for more.
    fn release_copies(&mut self, now: Timestamp) {
        if self.may_log(now) {
            tracing::warn!(
                events = EARLY_EVENTS_MAX,
                "drop copies no longer wait for the state of all orders: some lack prices"
            );
        }
        let missed = std::mem::take(&mut self.recovery.missed);
        self.complete_copies(now, &missed);
        self.recovery.missed = missed;
    }

    /// Copies the events from before the restart of which a session has no copy, and then the
    /// events since, once.
    pub(super) fn complete_copies(&mut self, now: Timestamp, missed: &[Unreported]) {
        let early = self.drop_copies.as_mut().and_then(|copies| copies.early.take());
        let Some(EarlyCopies(early)) = early else { return };
        for Unreported { shard, event } in missed {
            self.copy(now, *shard, event, true);
        }
        for Unreported { shard, event } in early {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pitlane_auth::{Auth, AuthSettings};
    use pitlane_config::{Config, SessionPurpose, refdata};
    use pitlane_engine::desk::IdBlock;
    use pitlane_engine::event::{EventKind, ExecType, OrderTerms};
    use pitlane_engine::id::{IntId, OrderHandle, Origin, PortId, Source};
    use pitlane_engine::reason::Reason;
    use pitlane_engine::sender::SenderId;
    use pitlane_engine::terms::{Status, Terms};
    use pitlane_journal::Level;
    use pitlane_runtime::wakeup::Wakeup;

    use super::*;
    use crate::fix::handoff::ConnectionHandoff;
    use crate::fix::message_log::FixLogWriter;
    use crate::fix::session_registry::{SessionAssignments, SessionRegistry};
    use crate::fix::settings::FixSettings;
    use crate::gateway::fix::{FixParts, SessionRecovery};

    const NOW: Timestamp = Timestamp(1_800_000_000_000_000_000);
    const SHARD: ShardId = ShardId(0);

    /// Returns a report about an order that no snapshot has shown.
    fn report(seq: u64) -> Event {
        let order = OrderTerms {
            order: OrderHandle::NONE,
            id: IntId::parse(b"a").expect("an id"),
            orig_id: IntId::NONE,
            source: Source { origin: Origin::Rest, port: PortId(1), session: 0 },
            what: ExecType::Rejected,
            status: Status::Rejected,
            reason: Reason::Halted,
            sender: SenderId::NONE,
            terms: Terms::default(),
        };
        Event { seq, at: NOW, body: EventKind::Order(order) }
    }

    /// Returns an endpoint with one drop-copy session, which has missed the event with the number
    /// one.
    fn endpoint() -> FixEndpoint {
        let reference = Arc::new(refdata::shipped().expect("the shipped set is sound"));
        let mut config = Config::default();
        config.fix.sessions.truncate(1);
        let session = &mut config.fix.sessions[0];
        session.target_comp_id = "COPIES".to_string();
        (session.purpose, session.reset_on_logon) = (SessionPurpose::DropCopy, false);
        let recovery = SessionRecovery {
            level: Level::None,
            store_bytes: 1 << 20,
            reported: vec![0],
            missed: vec![Unreported { shard: SHARD, event: report(1) }],
        };
        let mut auth = Auth::open(AuthSettings::off()).expect("no files");
        let parts = FixParts {
            gateway: 0,
            port: PortId(4),
            shards: 1,
            settings: Arc::new(FixSettings::of(&config, &reference)),
            assignments: Arc::new(SessionAssignments::read(None, 1).expect("nothing is stored")),
            registry: SessionRegistry::open(None, 0).expect("nothing is stored"),
            reference,
            recovery,
            handoff: ConnectionHandoff::between(&[Wakeup::new(|| {})]).remove(0),
            fix_log: FixLogWriter::default().handle(),
            auth: auth.client(Wakeup::new(|| {})),
            numbers: IdBlock { next: 1, end: 2 },
        };
        FixEndpoint::new(NOW, parts).expect("its store is in memory")
    }

    /// Returns the number of copies sent.
    fn copies(endpoint: &mut FixEndpoint) -> u64 {
        let client = client_of(&mut endpoint.clients, 1).expect("the session is open");
        client.session.sequence_numbers().next_sender_msg_seq_num - 1
    }

    #[test]
    fn copies_wait_for_the_snapshots_and_come_after_the_missed_ones() {
        let mut endpoint = endpoint();
        endpoint.handle_watched_event(NOW, SHARD, &report(2));
        assert_eq!(copies(&mut endpoint), 0);
        endpoint.complete(NOW);
        assert_eq!(copies(&mut endpoint), 2);
        endpoint.handle_watched_event(NOW, SHARD, &report(3));
        assert_eq!(copies(&mut endpoint), 3);
    }

    #[test]
    fn above_the_bound_copies_do_not_wait_and_none_is_lost_or_doubled() {
        let mut endpoint = endpoint();
        let most = EARLY_EVENTS_MAX as u64;
        for seq in 2..=most {
            endpoint.handle_watched_event(NOW, SHARD, &report(seq));
        }
        assert_eq!(copies(&mut endpoint), 0, "all of them wait");
        endpoint.handle_watched_event(NOW, SHARD, &report(most + 1));
        assert_eq!(copies(&mut endpoint), most + 1, "the missed one, and those that waited");
        endpoint.handle_watched_event(NOW, SHARD, &report(most + 2));
        endpoint.complete(NOW);
        assert_eq!(copies(&mut endpoint), most + 2);
    }
}
