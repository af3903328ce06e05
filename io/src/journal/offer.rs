//! Commands on their way into the journal.

use pitlane_engine::command::{Body, Command};
use pitlane_engine::image::{COMMAND_BYTES_MAX, encode_command};
use pitlane_engine::shard::Shard;
use pitlane_engine::time::Timestamp;
use pitlane_engine::worker::{ALL_STORED, Taken};

use super::health::Level;
use super::record::kind;
use super::writer::{Class, NotTaken, Writer};

/// Who is refused first when the disk does not go along. Orders and changes of orders make new obligations, and prices come
/// by the thousand: what is left of the journal is for whatever ends or settles something.
pub fn class_of(body: &Body) -> Class {
    match body {
        Body::Submit { .. }
        | Body::Modify { .. }
        | Body::Close { .. }
        | Body::Quote { .. }
        | Body::Trade { .. }
        | Body::Tick { .. } => Class::Entry,
        Body::Cancel { .. }
        | Body::Subscribe { .. }
        | Body::Report { .. }
        | Body::Adapter { .. }
        | Body::Transaction(_)
        | Body::Expire { .. }
        | Body::ResetPositions
        | Body::ResetCash
        | Body::Limits { .. }
        | Body::Restrict { .. }
        | Body::Kill { .. }
        | Body::Direct { .. }
        | Body::Phase { .. }
        | Body::Halt { .. }
        | Body::Budget(_)
        | Body::Session { .. }
        | Body::TradingDay { .. }
        | Body::Timer
        | Body::Watch { .. }
        | Body::Snapshot { .. }
        | Body::Reference { .. }
        | Body::Schedule { .. }
        | Body::Expiry { .. }
        | Body::Sender { .. }
        | Body::AuditAnchor(_)
        | Body::Validate { .. } => Class::Needed,
    }
}

impl Writer {
    /// Up to which command a worker may hand on what it said.
    #[inline]
    pub fn stored(&self) -> u64 {
        match self.level() {
            Level::Replicated | Level::Disk => self.safe(),
            Level::Os | Level::None => ALL_STORED,
        }
    }

    /// Takes the command that a worker is about to apply, or not.
    #[inline]
    pub fn take(&mut self, number: u64, now: Timestamp, command: &Command, shard: &Shard) -> Taken {
        match self.offer(now, command, shard) {
            Ok(seq) => {
                assert_eq!(seq, number, "the journal counts as the shard does");
                Taken::Yes
            }
            Err(NotTaken::Wait) => Taken::Wait,
            Err(NotTaken::Refused(_)) => Taken::No,
        }
    }

    /// Writes a command that `shard` is about to apply, and answers with its number.
    #[inline]
    pub fn offer(&mut self, now: Timestamp, command: &Command, shard: &Shard) -> Result<u64, NotTaken> {
        let mut payload = [0; COMMAND_BYTES_MAX];
        let length = encode_command(command, &mut payload);
        if let Body::Reference { name } = command.body {
            self.turn_to(name, now.0, || shard.digest())?;
        }
        self.append(now.0, kind::COMMAND, &payload[..length], class_of(&command.body), || shard.digest())
    }
}
