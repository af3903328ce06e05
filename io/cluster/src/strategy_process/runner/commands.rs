//! Commands of the strategy, handled in place of the shards.

use pitlane_engine::command::{Command, CommandKind, WatchTarget};
use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::id::ShardId;
use pitlane_engine::index::index_u8;
use pitlane_engine::reason::Reason;
use pitlane_engine::time::Timestamp;
use pitlane_protocols::remote::strategy::RemoteRequest;

use super::RemoteRunner;

impl RemoteRunner {
    /// Takes the commands of the strategy, and returns how many there were.
    pub(super) fn take_commands(&mut self, now: Timestamp) -> usize {
        let mut taken = 0;
        for at in 0..self.ends.len() {
            while let Some(command) = self.ends[at].poll_command() {
                taken += 1;
                self.handle_command(now, ShardId(index_u8(at)), command);
            }
        }
        taken
    }

    /// Handles a command in place of a shard.
    fn handle_command(&mut self, now: Timestamp, shard: ShardId, command: Command) {
        let incarnation = self.incarnation;
        match command.body {
            CommandKind::Snapshot { port } => {
                for event in std::mem::take(&mut self.state[shard.0 as usize]) {
                    self.deliver(now, shard, event);
                }
                let seq = self.received[shard.0 as usize];
                self.deliver(now, shard, Event { seq, at: now, body: EventKind::SnapshotEnd { port } });
            }
            CommandKind::Watch { what: WatchTarget::Ticks(security), on, .. } => {
                self.follows.retain(|followed| *followed != security);
                if on {
                    self.follows.push(security);
                }
                self.requests.ask(RemoteRequest::Follow { incarnation, security, on });
            }
            // The server forwards it to all shards.
            CommandKind::Phase { .. } if shard == ShardId(0) => {
                self.requests.ask(RemoteRequest::Command { incarnation, command })
            }
            CommandKind::Subscribe { .. } => {
                self.requests.ask(RemoteRequest::Command { incarnation, command })
            }
            CommandKind::Submit { .. } | CommandKind::Modify { .. } if !self.is_up() => {
                self.decline(now, &command, Reason::BrokerLost);
            }
            CommandKind::Submit { id, .. } => {
                self.keep_record(|record| record.asked(&id));
                self.requests.order(incarnation, command);
            }
            CommandKind::Modify { .. } | CommandKind::Cancel { .. } => {
                self.requests.order(incarnation, command)
            }
            // A strategy does not send these, or the server needs only one copy of them.
            CommandKind::Watch { .. }
            | CommandKind::Phase { .. }
            | CommandKind::Close { .. }
            | CommandKind::Quote { .. }
            | CommandKind::Trade { .. }
            | CommandKind::Tick { .. }
            | CommandKind::Level { .. }
            | CommandKind::VenueLevels(_)
            | CommandKind::VenueBook { .. }
            | CommandKind::Report { .. }
            | CommandKind::Adapter { .. }
            | CommandKind::Transaction(_)
            | CommandKind::Expire { .. }
            | CommandKind::ResetPositions
            | CommandKind::ResetCash
            | CommandKind::Limits { .. }
            | CommandKind::Restrict { .. }
            | CommandKind::Kill { .. }
            | CommandKind::Halt { .. }
            | CommandKind::Budget(_)
            | CommandKind::Session { .. }
            | CommandKind::TradingDay { .. }
            | CommandKind::Timer
            | CommandKind::Reference { .. }
            | CommandKind::Validate { .. }
            | CommandKind::Direct { .. }
            | CommandKind::Schedule { .. }
            | CommandKind::Expiry { .. }
            | CommandKind::SpecialTerms(_)
            | CommandKind::Sender { .. }
            | CommandKind::AuditAnchor(_)
            | CommandKind::CancelOrders { .. } => {}
        }
    }

    /// Reports a failed request to the strategy, in place of a shard.
    pub(super) fn decline(&mut self, now: Timestamp, command: &Command, reason: Reason) {
        let Some((shard, body)) = self.requests.refusal(command, reason, index_u8(self.ends.len())) else {
            return;
        };
        let seq = self.received[shard.0 as usize];
        self.deliver(now, shard, Event { seq, at: now, body });
    }
}
