//! Commands of the strategy, handled in place of the shards.

use pitlane_engine::command::{Command, CommandKind, WatchTarget};
use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::id::ShardId;
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
                self.handle_command(now, ShardId(at as u8), command);
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
            _ => {}
        }
    }

    /// Reports a failed request to the strategy, in place of a shard.
    pub(super) fn decline(&mut self, now: Timestamp, command: &Command, reason: Reason) {
        let Some((shard, body)) = self.requests.refusal(command, reason, self.ends.len() as u8) else {
            return;
        };
        let seq = self.received[shard.0 as usize];
        self.deliver(now, shard, Event { seq, at: now, body });
    }
}
