//! Cash and the value of portfolios.

use pitlane_engine::refdata::RefData;
use pitlane_engine::view::{CashBalance, Holding, Missing, Portfolio};
use serde::Serialize;
use utoipa::ToSchema;

use super::Decimal;

/// Cash of one strategy in one currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CashBalanceVO<'a> {
    pub strategy_id: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy_name: Option<&'a str>,
    pub currency: &'a str,
    /// Absent if it overflows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<Decimal>,
}

impl<'a> CashBalanceVO<'a> {
    pub fn of(cash: &'a CashBalance, reference: &'a RefData) -> CashBalanceVO<'a> {
        CashBalanceVO {
            strategy_id: cash.strategy.0,
            strategy_name: reference.strategy(cash.strategy).map(|row| row.name.as_str()),
            currency: cash.currency.as_str(),
            amount: cash.amount.map(Decimal::from),
        }
    }
}

/// Holdings of a strategy, or of all. Sums are in the base currency; `missing` names what they
/// leave out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PortfolioVO<'a> {
    /// Absent: all strategies together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy_name: Option<&'a str>,
    pub base_currency: &'a str,
    /// Cash and market value: the amount after selling everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_liquidation_value: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cash: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub market_value: Option<Decimal>,
    #[serde(rename = "realizedPL", skip_serializing_if = "Option::is_none")]
    pub realized_pl: Option<Decimal>,
    #[serde(rename = "unrealizedPL", skip_serializing_if = "Option::is_none")]
    pub unrealized_pl: Option<Decimal>,
    /// Before conversion, by currency.
    pub holdings: Vec<HoldingVO<'a>>,
    pub missing: Vec<MissingVO<'a>>,
}

/// Holdings in one currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HoldingVO<'a> {
    pub currency: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cash: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub market_value: Option<Decimal>,
    #[serde(rename = "realizedPL", skip_serializing_if = "Option::is_none")]
    pub realized_pl: Option<Decimal>,
    #[serde(rename = "unrealizedPL", skip_serializing_if = "Option::is_none")]
    pub unrealized_pl: Option<Decimal>,
}

/// Something that the sums leave out, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MissingVO<'a> {
    /// NO_PRICE, UNKNOWN_SECURITY, NO_RATE or TOO_LARGE.
    pub what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_id: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<&'a str>,
}

impl<'a> PortfolioVO<'a> {
    pub fn of(portfolio: &'a Portfolio, strategy_name: Option<&'a str>) -> PortfolioVO<'a> {
        PortfolioVO {
            strategy_name,
            base_currency: portfolio.base.as_str(),
            net_liquidation_value: portfolio.net_liquidation.map(Decimal::from),
            cash: portfolio.cash.map(Decimal::from),
            market_value: portfolio.market_value.map(Decimal::from),
            realized_pl: portfolio.realized.map(Decimal::from),
            unrealized_pl: portfolio.unrealized.map(Decimal::from),
            holdings: portfolio.holdings.iter().map(HoldingVO::of).collect(),
            missing: portfolio.missing.iter().map(MissingVO::of).collect(),
        }
    }
}

impl HoldingVO<'_> {
    fn of(holding: &Holding) -> HoldingVO<'_> {
        HoldingVO {
            currency: holding.currency.as_str(),
            cash: holding.cash.map(Decimal::from),
            market_value: holding.market_value.map(Decimal::from),
            realized_pl: holding.realized.map(Decimal::from),
            unrealized_pl: holding.unrealized.map(Decimal::from),
        }
    }
}

impl MissingVO<'_> {
    fn of(missing: &Missing) -> MissingVO<'_> {
        let (what, security, currency) = match missing {
            Missing::Price(security) => ("NO_PRICE", Some(security), None),
            Missing::Reference(security) => ("UNKNOWN_SECURITY", Some(security), None),
            Missing::Rate(currency) => ("NO_RATE", None, Some(currency)),
            Missing::TooLarge(currency) => ("TOO_LARGE", None, Some(currency)),
        };
        MissingVO { what, security_id: security.map(|id| id.0), currency: currency.map(|code| code.as_str()) }
    }
}
