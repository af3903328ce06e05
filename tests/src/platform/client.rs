//! A client's thread, with its desk.

use std::collections::BTreeMap;

use pitlane_engine::command::{Command, CommandKind};
use pitlane_engine::desk::{Desk, DeskSettings, IdBlock, Ticket};
use pitlane_engine::event::EventKind;
use pitlane_engine::id::{IntId, OrderHandle, Origin, PortId};
use pitlane_engine::mesh::PortEnd;
use pitlane_engine::pages::LargePages;
use pitlane_engine::sender::{Protocol, Sender, SenderAddress, SenderText};

use super::{PlatformResult, source};
use crate::checks::Checker;

#[derive(Debug)]
pub(super) struct PlatformClient {
    pub(super) desk: Desk,
    origin: Origin,
    pub(super) port: PortId,
    /// Ids of the orders it sent, by number among all submitted.
    pub(super) sent: BTreeMap<usize, IntId>,
    /// Steps in which it does not poll.
    pub(super) asleep: u64,
    token: u32,
    pub(super) received_events: u64,
    /// Number of snapshots that have ended, one for each shard.
    pub(super) snapshots: u8,
}

impl PlatformClient {
    pub(super) fn new(port: PortId, origin: Origin, shards: u8) -> PlatformClient {
        let desk = new_desk(port, shards);
        let (sent, snapshots) = (BTreeMap::new(), 0);
        PlatformClient { desk, origin, port, sent, asleep: 0, token: 0, received_events: 0, snapshots }
    }

    /// Restarts the thread without any state.
    pub(super) fn restart(&mut self, shards: u8) -> Command {
        self.desk = new_desk(self.port, shards);
        self.snapshots = 0;
        let body = CommandKind::Snapshot { port: self.port };
        Command::new(source(self.port, self.origin), u32::MAX, body)
    }

    /// Checks that every id of today's commands is used, and that each open order is found by its
    /// first id.
    pub(super) fn remembers(&self, used: &[IntId], open: &[(IntId, OrderHandle)]) -> PlatformResult {
        if let Some(id) = used.iter().find(|id| !self.desk.is_used(1, id)) {
            return Err(format!("after a restart {id} can be used again"));
        }
        for (id, handle) in open {
            if self.desk.order(1, id).map(|known| known.order) != Some(*handle) {
                return Err(format!("after a restart {id} does not find its order"));
            }
        }
        Ok(())
    }

    /// Returns a ticket; now and then the client has another address.
    pub(super) fn ticket(&mut self, port: &mut PortEnd, id: IntId) -> Ticket {
        self.token += 1;
        let sender = port.register_sender(Sender {
            protocol: Protocol::Rest,
            address: SenderAddress([1 + (self.token / 16 % 8) as u8; 16]),
            login: login_of(self.port),
            session: SenderText::EMPTY,
        });
        Ticket { source: source(self.port, self.origin), token: self.token, id, sender }
    }

    pub(super) fn listen(&mut self, ports: &mut [PortEnd], most: usize) -> Result<usize, String> {
        let port = &mut ports[self.port.0 as usize];
        let mut work = 0;
        while work < most {
            let Some((shard, event)) = port.poll_event() else { break };
            self.received_events += 1;
            self.snapshots += u8::from(event.body == EventKind::SnapshotEnd { port: self.port });
            work += 1;
            self.desk.handle_event(shard, &event);
        }
        Ok(work + self.desk.poll(port))
    }

    /// Checks that every order sent has ended or is open, and that desk and shard agree on it.
    pub(super) fn agrees(&self, checkers: &[Checker]) -> PlatformResult {
        for id in self.sent.values() {
            // Finished orders may be forgotten by now.
            let Some(known) = self.desk.order(1, id) else { continue };
            let shard = known.order.shard().0 as usize;
            let Some(seen) = checkers.get(shard).and_then(|checker| checker.orders.get(&known.order)) else {
                if known.finished {
                    continue;
                }
                return Err(format!("a desk knows {id} as {:?}, and no shard does", known.status));
            };
            if (seen.status, seen.id) != (known.status, known.id) {
                return Err(format!(
                    "{id}: desk {:?} {}, shard {:?} {}",
                    known.status, known.id, seen.status, seen.id
                ));
            }
        }
        Ok(())
    }
}

/// Returns the login of the client at a port.
pub(super) fn login_of(port: PortId) -> SenderText {
    SenderText::new(&format!("client-{port}"))
}

fn new_desk(port: PortId, shards: u8) -> Desk {
    let settings = DeskSettings {
        port,
        shards,
        orders_max: 4_096,
        ids_max: 16_384,
        finished_max: 4_096,
        prefix: b'd',
        seed: 1,
        pages: LargePages::NONE,
    };
    Desk::new(settings, IdBlock { next: 1, end: 1_000_000 })
}
