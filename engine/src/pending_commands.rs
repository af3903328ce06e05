//! Commands of a port that wait for room, sent in their order.

use std::collections::VecDeque;

use crate::command::{Command, CommandKind};
use crate::id::{ShardId, Source};
use crate::mesh::{Broadcast, PortEnd};

/// What a port has to tell the shards. Its length is bounded by what is asked of it: some commands for each strategy and
/// security at the start, later a few of the budget's for each limit.
#[derive(Debug)]
pub struct PendingCommands {
    source: Source,
    waiting: VecDeque<PendingCommand>,
}

#[derive(Debug)]
enum PendingCommand {
    All(Broadcast),
    One(ShardId, Command),
}

impl PendingCommands {
    /// None yet; whatever has no sender of its own is told in this name.
    pub fn new(source: Source) -> PendingCommands {
        PendingCommands { source, waiting: VecDeque::new() }
    }

    pub fn push_all(&mut self, body: CommandKind) {
        let command = Command::new(self.source, 0, body);
        self.waiting.push_back(PendingCommand::All(Broadcast::new(command)));
    }

    pub fn push(&mut self, shard: ShardId, body: CommandKind) {
        self.push_command(shard, Command::new(self.source, 0, body));
    }

    pub fn push_command(&mut self, shard: ShardId, command: Command) {
        self.waiting.push_back(PendingCommand::One(shard, command));
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// What was not sent is not sent any more.
    pub fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Sends what has room, in order, and says how much.
    pub fn poll(&mut self, port: &mut PortEnd) -> usize {
        let mut sent = 0;
        while let Some(pending) = self.waiting.front_mut() {
            let is_sent = match pending {
                PendingCommand::All(broadcast) => port.send_all(broadcast),
                PendingCommand::One(shard, command) => port.send(*shard, *command).is_ok(),
            };
            if !is_sent {
                break;
            }
            self.waiting.pop_front();
            sent += 1;
        }
        sent
    }
}
