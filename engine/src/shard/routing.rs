//! Routing: which shard owns a security, and which shards apply a command.

use std::iter::Map;
use std::ops::Range;

use crate::command::CommandKind;
use crate::id::{SecurityId, ShardId, StrategyId};

/// Returns the shard that owns a security. Unknown securities have an owner too: one shard must
/// refuse them.
pub fn shard_of(security: SecurityId, shards: u8) -> ShardId {
    remainder(security.0, shards)
}

/// Returns the shard that books a strategy's movements of cash.
pub fn shard_of_cash(strategy: StrategyId, shards: u8) -> ShardId {
    remainder(strategy.0.into(), shards)
}

#[inline]
fn remainder(id: u32, shards: u8) -> ShardId {
    #[expect(clippy::cast_possible_truncation, reason = "the remainder is below the number of shards")]
    let shard = (id % u32::from(shards)) as u8;
    ShardId(shard)
}

/// Destination of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandRoute {
    One(ShardId),
    /// Every shard applies it.
    All,
}

impl CommandRoute {
    /// Returns the shards of this route, where there are so many.
    pub fn shards(self, count: u8) -> Map<Range<u8>, fn(u8) -> ShardId> {
        let shards = match self {
            CommandRoute::One(shard) => shard.0..shard.0.saturating_add(1),
            CommandRoute::All => 0..count,
        };
        shards.map(ShardId)
    }
}

/// Returns the destination of a command.
pub fn route(body: &CommandKind, shards: u8) -> CommandRoute {
    match body {
        CommandKind::Submit { terms, .. } | CommandKind::Validate { terms } => {
            CommandRoute::One(shard_of(terms.security, shards))
        }
        CommandKind::Modify { order, .. }
        | CommandKind::Cancel { order, .. }
        | CommandKind::Report { order, .. } => CommandRoute::One(order.shard()),
        CommandKind::Close { security, .. }
        | CommandKind::Subscribe { security, .. }
        | CommandKind::Quote { security, .. }
        | CommandKind::Trade { security, .. }
        | CommandKind::Tick { security, .. }
        | CommandKind::Level { security, .. }
        | CommandKind::VenueBook { security, .. }
        | CommandKind::Expire { security, .. }
        | CommandKind::Halt { security, .. } => CommandRoute::One(shard_of(*security, shards)),
        CommandKind::VenueLevels(part) => CommandRoute::One(shard_of(part.security, shards)),
        CommandKind::Transaction(movement) => CommandRoute::One(match movement.security {
            Some(security) => shard_of(security, shards),
            None => shard_of_cash(movement.strategy, shards),
        }),
        CommandKind::CancelOrders { filter, .. } => match filter.security {
            Some(security) => CommandRoute::One(shard_of(security, shards)),
            None => CommandRoute::All,
        },
        CommandKind::Adapter { .. }
        | CommandKind::ResetPositions
        | CommandKind::ResetCash
        | CommandKind::Limits { .. }
        | CommandKind::Restrict { .. }
        | CommandKind::Kill { .. }
        | CommandKind::Direct { .. }
        | CommandKind::Phase { .. }
        | CommandKind::Budget(_)
        | CommandKind::Session { .. }
        | CommandKind::TradingDay { .. }
        | CommandKind::Schedule { .. }
        | CommandKind::Expiry { .. }
        | CommandKind::Timer
        | CommandKind::Watch { .. }
        | CommandKind::Snapshot { .. }
        | CommandKind::Reference { .. }
        | CommandKind::Sender { .. }
        | CommandKind::SpecialTerms(_)
        | CommandKind::AuditAnchor(_) => CommandRoute::All,
    }
}
