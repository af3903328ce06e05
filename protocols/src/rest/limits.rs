//! Pre-trade limits, switches and restrictions.

use pitlane_engine::command::{RiskLimits, Scope};
use pitlane_engine::directive::{Directive, DirectiveKey};
use pitlane_engine::id::Currency;
use pitlane_engine::refdata::RefData;
use pitlane_engine::view::{SwitchState, View};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Decimal;

/// Pre-trade controls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RiskVO {
    /// Whether the kill switch of the whole platform is on.
    pub kill_switch: bool,
    /// In which shards it is on: `ALL`, `SOME` or `NONE`. `SOME` while an owner in the cluster has
    /// not applied it.
    pub kill_switch_state: SwitchStateVO,
    pub limits: Vec<LimitsVO>,
    /// Securities that a strategy or an account may not trade.
    pub restrictions: Vec<RestrictionVO>,
    /// Decisions of an operator that some shards have not applied yet; empty on a single server.
    pub unconfirmed: Vec<UnconfirmedVO>,
}

/// In how many shards a switch is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum SwitchStateVO {
    All,
    Some,
    None,
}

/// A decision that some shards have not applied yet. They apply it when the servers that own them
/// are back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnconfirmedVO {
    /// `KILL_SWITCH`, `LIMITS` or `RESTRICTION`.
    pub directive: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_id: Option<u32>,
    pub shards: Vec<u8>,
}

/// Progress of an operator's decision: the response to a switch and to changed limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfirmationVO {
    /// Which shards have applied it: `ALL`, or `SOME` while the servers of the others are away.
    pub confirmed: SwitchStateVO,
    /// The shards that have not. They apply it when their servers are back, before any newer
    /// request.
    pub unconfirmed_shards: Vec<u8>,
}

/// Limits of one strategy or account. Zero means no limit. In a request, absent values stay
/// unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct LimitsVO {
    /// The name of a strategy, or of an account in `accountName`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_name: Option<String>,
    /// Whether orders may be sent at all; cancels are always permitted.
    pub trading_enabled: Option<bool>,
    pub max_order_qty: Option<Decimal>,
    /// In the security's currency.
    pub max_order_value: Option<Decimal>,
    /// Largest distance of a limit price from the last price, in percent with at most two places.
    pub price_collar_pct: Option<Decimal>,
    pub max_open_orders: Option<u32>,
    /// In one security, long or short, open orders included.
    pub max_position: Option<Decimal>,
    pub max_orders_per_s: Option<u32>,
    /// Milliseconds within which an equal order counts as a double click.
    pub duplicate_window_ms: Option<u32>,
    /// Of accounts: the amount that may be spent in `creditCurrency`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credit: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credit_currency: Option<String>,
}

/// A security that a strategy or an account may not trade.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestrictionVO {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_name: Option<String>,
    pub security_id: u32,
}

/// Units of 10⁻⁸ in a hundredth of a percent.
const RAW_PER_BP: i64 = 1_000_000;
/// Largest collar; a larger one has no effect.
const COLLAR_BP_MAX: u32 = 1_000_000;
/// Longest window for a double click: a minute.
const WINDOW_MS_MAX: u32 = 60_000;

impl RiskVO {
    pub fn of(view: &View, reference: &RefData) -> RiskVO {
        let restrictions = view.restrictions().map(|(scope, security)| {
            let (strategy_name, account_name) = names(scope, reference);
            RestrictionVO { strategy_name, account_name, security_id: security.0 }
        });
        RiskVO {
            kill_switch: view.kills().any(|scope| scope == Scope::Global),
            limits: view.all_limits().map(|(scope, limits)| LimitsVO::of(scope, limits, reference)).collect(),
            restrictions: restrictions.collect(),
            kill_switch_state: view.switch(Scope::Global).into(),
            unconfirmed: view
                .directives()
                .filter_map(|(row, _)| UnconfirmedVO::of(&row, view, reference))
                .collect(),
        }
    }
}

impl From<SwitchState> for SwitchStateVO {
    fn from(state: SwitchState) -> SwitchStateVO {
        match state {
            SwitchState::All => SwitchStateVO::All,
            SwitchState::Some => SwitchStateVO::Some,
            SwitchState::None => SwitchStateVO::None,
        }
    }
}

impl UnconfirmedVO {
    /// Returns `None` if every shard has applied it.
    fn of(directive: &Directive, view: &View, reference: &RefData) -> Option<UnconfirmedVO> {
        let shards: Vec<u8> = view.unconfirmed(directive.key()).map(|shard| shard.0).collect();
        let (word, scope, security) = match *directive {
            Directive::Kill { scope: Scope::Security(id), .. } => ("KILL_SWITCH", Scope::Global, Some(id.0)),
            Directive::Kill { scope, .. } => ("KILL_SWITCH", scope, None),
            Directive::Limits { scope, .. } => ("LIMITS", scope, None),
            Directive::Restrict { scope, security, .. } => ("RESTRICTION", scope, Some(security.0)),
        };
        let (strategy_name, account_name) = names(scope, reference);
        let row =
            UnconfirmedVO { directive: word, strategy_name, account_name, security_id: security, shards };
        (!row.shards.is_empty()).then_some(row)
    }
}

impl ConfirmationVO {
    /// Returns the progress of the newest directive for a key.
    pub fn of(view: &View, key: DirectiveKey) -> ConfirmationVO {
        let unconfirmed_shards: Vec<u8> = view.unconfirmed(key).map(|shard| shard.0).collect();
        // One shard at least has applied it: otherwise the view would not know it.
        let confirmed = if unconfirmed_shards.is_empty() { SwitchStateVO::All } else { SwitchStateVO::Some };
        ConfirmationVO { confirmed, unconfirmed_shards }
    }

    pub fn is_whole(&self) -> bool {
        self.unconfirmed_shards.is_empty()
    }
}

impl LimitsVO {
    pub fn of(scope: Scope, limits: &RiskLimits, reference: &RefData) -> LimitsVO {
        let (strategy_name, account_name) = names(scope, reference);
        let has_credit = !limits.credit.is_zero();
        LimitsVO {
            strategy_name,
            account_name,
            trading_enabled: Some(limits.trading_enabled),
            max_order_qty: Some(limits.max_order_qty.into()),
            max_order_value: Some(limits.max_order_value.into()),
            price_collar_pct: Some(Decimal { raw: limits.price_collar_bp as i64 * RAW_PER_BP }),
            max_open_orders: Some(limits.max_open_orders),
            max_position: Some(limits.max_position.into()),
            max_orders_per_s: Some(limits.max_orders_per_s),
            duplicate_window_ms: Some(limits.duplicate_window_ms),
            credit: has_credit.then(|| limits.credit.into()),
            credit_currency: has_credit.then(|| limits.credit_currency.to_string()),
        }
    }

    /// Returns these limits with the named values changed, or why a value is refused.
    pub fn applied_to(&self, old: &RiskLimits) -> Result<RiskLimits, &'static str> {
        let mut limits = *old;
        let at_least_zero = |decimal: Option<Decimal>, old: i64| match decimal {
            Some(decimal) if decimal.raw < 0 => Err("a limit is not below zero"),
            Some(decimal) => Ok(decimal.raw),
            None => Ok(old),
        };
        use pitlane_engine::number::{Money, Qty};
        limits.trading_enabled = self.trading_enabled.unwrap_or(old.trading_enabled);
        limits.max_order_qty = Qty::from_raw(at_least_zero(self.max_order_qty, old.max_order_qty.raw())?);
        limits.max_order_value =
            Money::from_raw(at_least_zero(self.max_order_value, old.max_order_value.raw())?);
        limits.max_position = Qty::from_raw(at_least_zero(self.max_position, old.max_position.raw())?);
        limits.credit = Money::from_raw(at_least_zero(self.credit, old.credit.raw())?);
        limits.max_open_orders = self.max_open_orders.unwrap_or(old.max_open_orders);
        limits.max_orders_per_s = self.max_orders_per_s.unwrap_or(old.max_orders_per_s);
        limits.duplicate_window_ms = self.duplicate_window_ms.unwrap_or(old.duplicate_window_ms);
        if limits.duplicate_window_ms > WINDOW_MS_MAX {
            return Err("duplicateWindowMs is at most a minute");
        }
        if let Some(collar) = self.price_collar_pct {
            let bp = u32::try_from(collar.raw / RAW_PER_BP).ok();
            let bp = bp.filter(|bp| collar.raw % RAW_PER_BP == 0 && *bp <= COLLAR_BP_MAX);
            limits.price_collar_bp =
                bp.ok_or("priceCollarPct has at most two places and is not below zero")?;
        }
        if let Some(currency) = &self.credit_currency {
            limits.credit_currency =
                Currency::parse(currency.as_bytes()).map_err(|_| "creditCurrency is no currency")?;
        }
        if !limits.credit.is_zero() && limits.credit_currency == Currency::default() {
            return Err("credit needs creditCurrency");
        }
        Ok(limits)
    }
}

pub(super) fn names(scope: Scope, reference: &RefData) -> (Option<String>, Option<String>) {
    match scope {
        Scope::Strategy(id) => (reference.strategy(id).map(|row| row.name.clone()), None),
        Scope::Account(id) => (None, reference.account(id).map(|row| row.name.clone())),
        Scope::Global | Scope::Security(_) | Scope::Adapter(_) => (None, None),
    }
}
