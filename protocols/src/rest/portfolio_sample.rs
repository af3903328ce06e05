//! The value of portfolios over time.

use serde::Serialize;
use utoipa::ToSchema;

use super::{Decimal, Moment};

/// The value of a portfolio at one time, in the base currency. Values that were unknown are absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PortfolioSampleVO {
    pub date_time: Moment,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_liquidation_value: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub market_value: Option<Decimal>,
    /// Sum of the magnitudes of all market values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gross_exposure: Option<Decimal>,
    #[serde(rename = "realizedPL", skip_serializing_if = "Option::is_none")]
    pub realized_pl: Option<Decimal>,
    #[serde(rename = "unrealizedPL", skip_serializing_if = "Option::is_none")]
    pub unrealized_pl: Option<Decimal>,
}
