//! Use of the limits of strategies and accounts, and what the limits refused.

use pitlane_engine::command::Scope;
use pitlane_engine::id::{AccountId, ShardId};
use pitlane_engine::number::Money;
use pitlane_engine::refdata::RefData;
use pitlane_engine::view::{LimitRefusals, LimitUse, View};
use serde::Serialize;
use utoipa::ToSchema;

use super::limits::names;
use super::{Decimal, Moment};

/// What a strategy or an account uses of its limits, and what they refused in the trading day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LimitUseVO {
    /// The name of a strategy, or of an account in `accountName`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_name: Option<String>,
    pub open_orders: u64,
    /// The largest position that the open orders could lead to, as a magnitude, and its security:
    /// of a strategy, or of an account over all strategies. Absent without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position_security_id: Option<u32>,
    /// Of accounts with a credit limit: the credit in use, in the currency of the limit, at most a
    /// second old. Absent if a shard does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credit: Option<Decimal>,
    /// Of accounts with a credit limit: the shards that did not answer how much of it is in use.
    /// Absent if all did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unanswered_shards: Vec<u8>,
    /// By reason.
    pub refusals: Vec<LimitRefusalsVO>,
}

/// Orders and modifications that one limit refused in the trading day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LimitRefusalsVO {
    /// Stable code of the reason, and its text.
    pub reason: &'static str,
    pub detail: &'static str,
    pub count: u64,
    /// Time and security of the newest.
    pub date_time: Moment,
    pub security_id: u32,
}

/// The credit that an account uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreditInUse {
    /// Absent without a limit, if a shard did not answer, and if it is more than can be counted.
    pub used: Option<Money>,
    /// The shards that did not answer.
    pub unanswered: Vec<ShardId>,
}

impl LimitUseVO {
    /// Returns the use of every strategy and account with limits that the caller may see.
    /// `credit_of` gives the credit that an account uses.
    pub fn all(
        view: &View,
        reference: &RefData,
        is_visible: impl Fn(Scope) -> bool,
        credit_of: impl Fn(AccountId) -> CreditInUse,
    ) -> Vec<LimitUseVO> {
        let uses = view.limit_uses();
        let scopes = view.all_limits().map(|(scope, _)| scope).filter(|scope| is_visible(*scope));
        let row = |scope| {
            let (strategy_name, account_name) = names(scope, reference);
            let LimitUse { open_orders, position } = uses.get(&scope).copied().unwrap_or_default();
            let CreditInUse { used, unanswered } = match scope {
                Scope::Account(account) => credit_of(account),
                Scope::Global | Scope::Strategy(_) | Scope::Security(_) | Scope::Adapter(_) => {
                    CreditInUse::default()
                }
            };
            LimitUseVO {
                strategy_name,
                account_name,
                open_orders,
                position: position.map(|(_, qty)| qty.into()),
                position_security_id: position.map(|(security, _)| security.0),
                credit: used.map(Decimal::from),
                unanswered_shards: unanswered.into_iter().map(|shard| shard.0).collect(),
                refusals: view.limit_refusals(scope).iter().map(LimitRefusalsVO::of).collect(),
            }
        };
        scopes.map(row).collect()
    }
}

impl LimitRefusalsVO {
    fn of(refusals: &LimitRefusals) -> LimitRefusalsVO {
        LimitRefusalsVO {
            reason: refusals.reason.code(),
            detail: refusals.reason.text(),
            count: refusals.count,
            date_time: Moment(refusals.last),
            security_id: refusals.security.0,
        }
    }
}
