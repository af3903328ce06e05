//! Passes commands from a worker to the journal writer.

use pitlane_engine::codec::{COMMAND_BYTES_MAX, encode_command};
use pitlane_engine::command::{Command, CommandKind};
use pitlane_engine::shard::Shard;
use pitlane_engine::time::Timestamp;
use pitlane_engine::worker::{ALL_STORED, JournalOutcome};

use super::health::Level;
use super::record::kind;
use super::writer::{Class, NotTaken, Writer};

/// Returns the class of a command, which decides what is refused first when the disk fails. Orders
/// and modifications create new obligations, and prices arrive by the thousand. The remaining space
/// of the journal is for commands that end or settle something.
pub fn class_of(body: &CommandKind) -> Class {
    match body {
        CommandKind::Submit { .. }
        | CommandKind::Modify { .. }
        | CommandKind::SpecialTerms(_)
        | CommandKind::Close { .. }
        | CommandKind::Quote { .. }
        | CommandKind::Trade { .. }
        | CommandKind::Tick { .. }
        | CommandKind::Level { .. }
        | CommandKind::VenueLevels(_)
        | CommandKind::VenueBook { is_known: true, .. } => Class::Entry,
        CommandKind::Cancel { .. }
        | CommandKind::Subscribe { .. }
        | CommandKind::Report { .. }
        | CommandKind::Adapter { .. }
        | CommandKind::VenueBook { is_known: false, .. }
        | CommandKind::Transaction(_)
        | CommandKind::Expire { .. }
        | CommandKind::ResetPositions
        | CommandKind::ResetCash
        | CommandKind::Limits { .. }
        | CommandKind::Restrict { .. }
        | CommandKind::Kill { .. }
        | CommandKind::Direct { .. }
        | CommandKind::Phase { .. }
        | CommandKind::Halt { .. }
        | CommandKind::Budget(_)
        | CommandKind::Session { .. }
        | CommandKind::TradingDay { .. }
        | CommandKind::Timer
        | CommandKind::Watch { .. }
        | CommandKind::Snapshot { .. }
        | CommandKind::Reference { .. }
        | CommandKind::Schedule { .. }
        | CommandKind::Expiry { .. }
        | CommandKind::Sender { .. }
        | CommandKind::AuditAnchor(_)
        | CommandKind::CancelOrders { .. }
        | CommandKind::Validate { .. } => Class::Needed,
    }
}

impl Writer {
    /// Returns the number of the last command whose events a worker may pass on.
    #[inline]
    pub fn stored(&self) -> u64 {
        match self.level() {
            Level::Replicated | Level::Disk => self.safe(),
            Level::Os | Level::None => ALL_STORED,
        }
    }

    /// Stores the command that a worker is about to apply, or returns why not.
    #[inline]
    pub fn take(&mut self, number: u64, now: Timestamp, command: &Command, shard: &Shard) -> JournalOutcome {
        match self.offer(now, command, shard) {
            Ok(seq) => {
                assert_eq!(seq, number, "the journal counts as the shard does");
                JournalOutcome::Accepted
            }
            Err(NotTaken::Wait) => JournalOutcome::Retry,
            Err(NotTaken::Refused(_)) => JournalOutcome::Refused,
        }
    }

    /// Writes a command that `shard` is about to apply, and returns its sequence number.
    #[inline]
    pub fn offer(&mut self, now: Timestamp, command: &Command, shard: &Shard) -> Result<u64, NotTaken> {
        let mut payload = [0; COMMAND_BYTES_MAX];
        let length = encode_command(command, &mut payload);
        if let CommandKind::Reference { name } = command.body {
            self.switch_reference(name, now.0, || shard.digest())?;
        }
        self.append(now.0, kind::COMMAND, &payload[..length], class_of(&command.body), || shard.digest())
    }
}
