//! Accounts.

use pitlane_engine::id::StrategyId;
use pitlane_engine::refdata::TradingAccount;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

/// An account at a venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountVO<'a> {
    pub id: u16,
    pub name: &'a str,
    /// Whether orders may be sent with it.
    pub active: bool,
    /// The adapter that connects to its venue.
    pub adapter_type: &'a str,
    /// The same under the specification's other name.
    pub broker: &'a str,
    /// The strategies that may use it. Absent: all of them.
    #[serde(skip_serializing_if = "<[StrategyId]>::is_empty", serialize_with = "numbers")]
    #[schema(value_type = Option<Vec<u16>>)]
    pub strategy_ids: &'a [StrategyId],
}

impl AccountVO<'_> {
    pub fn of(row: &TradingAccount) -> AccountVO<'_> {
        AccountVO {
            id: row.id.0,
            name: &row.name,
            active: row.active,
            adapter_type: &row.adapter_type,
            broker: &row.adapter_type,
            strategy_ids: &row.strategies,
        }
    }
}

fn numbers<S: Serializer>(ids: &&[StrategyId], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(ids.iter().map(|id| id.0))
}
