//! Use of the limits of strategies and accounts, and what the limits refused.

use std::collections::BTreeMap;

use pitlane_engine::command::Scope;
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
    /// Of strategies: the largest position that the open orders could lead to, as a magnitude, and
    /// its security. Absent without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position_security_id: Option<u32>,
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

impl LimitUseVO {
    /// Returns the use of every strategy and account with limits that the caller may see.
    pub fn all(view: &View, reference: &RefData, is_visible: impl Fn(Scope) -> bool) -> Vec<LimitUseVO> {
        let uses = view.limit_uses();
        let scopes = view.all_limits().map(|(scope, _)| scope).filter(|scope| is_visible(*scope));
        scopes.map(|scope| LimitUseVO::of(scope, &uses, view, reference)).collect()
    }

    fn of(scope: Scope, uses: &BTreeMap<Scope, LimitUse>, view: &View, reference: &RefData) -> LimitUseVO {
        let (strategy_name, account_name) = names(scope, reference);
        let LimitUse { open_orders, position } = uses.get(&scope).copied().unwrap_or_default();
        LimitUseVO {
            strategy_name,
            account_name,
            open_orders,
            position: position.map(|(_, qty)| qty.into()),
            position_security_id: position.map(|(security, _)| security.0),
            refusals: view.limit_refusals(scope).iter().map(LimitRefusalsVO::of).collect(),
        }
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
