//! Positions at market prices.

use pitlane_engine::refdata::RefData;
use pitlane_engine::view::{PositionView, View};
use serde::Serialize;
use utoipa::ToSchema;

use super::Decimal;

/// A strategy's position in a security. Unknown figures are absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PositionVO<'a> {
    pub id: u64,
    pub strategy_id: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy_name: Option<&'a str>,
    pub security_id: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<&'a str>,
    /// Above zero long, below zero short.
    pub quantity: Decimal,
    /// Price paid per unit; absent when flat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avg_price: Option<Decimal>,
    /// Long at the bid, short at the ask; the last price without a quote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub market_price: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub market_value: Option<Decimal>,
    #[serde(rename = "realizedPL")]
    pub realized_pl: Decimal,
    #[serde(rename = "unrealizedPL", skip_serializing_if = "Option::is_none")]
    pub unrealized_pl: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<&'a str>,
}

impl<'a> PositionVO<'a> {
    pub fn of(position: &PositionView, view: &View, reference: &'a RefData) -> PositionVO<'a> {
        let (strategy, security) = (position.id.strategy(), position.id.security());
        let row = reference.security(security);
        let valuation = view.valuation(position, reference);
        PositionVO {
            id: position.id.0,
            strategy_id: strategy.0,
            strategy_name: reference.strategy(strategy).map(|row| row.name.as_str()),
            security_id: security.0,
            symbol: row.map(|row| row.symbol.as_str()),
            quantity: position.state.qty.into(),
            avg_price: valuation.and_then(|valuation| valuation.avg_price).map(Decimal::from),
            market_price: valuation.and_then(|valuation| valuation.market_price).map(Decimal::from),
            market_value: valuation.and_then(|valuation| valuation.market_value).map(Decimal::from),
            realized_pl: position.state.realized.into(),
            unrealized_pl: valuation.and_then(|valuation| valuation.unrealized).map(Decimal::from),
            currency: row.map(|row| reference.family_of(row).currency.as_str()),
        }
    }
}
