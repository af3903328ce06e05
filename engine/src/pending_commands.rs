//! Commands of a port that wait for room, sent in their order.

use std::collections::VecDeque;

use crate::command::{Command, CommandKind};
use crate::id::{ShardId, Source};
use crate::mesh::{Broadcast, PortEnd};

/// Queue of commands from a port to the shards. Its length is bounded by its use: some commands for
/// each strategy and security at the start, later a few budget commands for each limit.
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
    /// Creates an empty queue. Commands without a source of their own use this source.
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

    /// Drops all commands that were not sent.
    pub fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Sends the commands that have room, in order, and returns their number.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::{Depths, PortClass, mesh};

    #[test]
    fn commands_are_sent_in_their_order_as_far_as_there_is_room() {
        let (mut ports, mut shards) = mesh(&[PortClass::Control], 2, Depths { commands: 1, events: 1 });
        let port = &mut ports[0];
        let mut pending = PendingCommands::new(Source::default());
        assert!(pending.is_empty());
        pending.push(ShardId(1), CommandKind::ResetCash);
        pending.push_all(CommandKind::Timer);
        pending.push(ShardId(0), CommandKind::ResetPositions);
        assert!(!pending.is_empty());
        let mut received = Vec::new();
        for sent in [1, 2, 0] {
            assert_eq!(pending.poll(port), sent);
            received.extend(
                shards
                    .iter_mut()
                    .enumerate()
                    .filter_map(|(shard, end)| end.poll_command().map(|command| (shard, command.body))),
            );
        }
        let expected = [
            (0, CommandKind::Timer),
            (1, CommandKind::ResetCash),
            (0, CommandKind::ResetPositions),
            (1, CommandKind::Timer),
        ];
        assert_eq!(received, expected);
        assert!(pending.is_empty());
    }

    #[test]
    fn dropped_commands_are_not_sent() {
        let (mut ports, _shards) = mesh(&[PortClass::Control], 1, Depths::default());
        let mut pending = PendingCommands::new(Source::default());
        pending.push_all(CommandKind::Timer);
        pending.clear();
        assert_eq!((pending.is_empty(), pending.poll(&mut ports[0])), (true, 0));
    }
}
