//! The past of the market: bars, ticks, and the newest prices beside those of the day before.

use serde::Serialize;
use utoipa::ToSchema;

use super::{Decimal, Moment};

/// The trades of one security in an interval. An interval without trades has no bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BarVO {
    pub security_id: u32,
    /// Begin of the interval.
    pub date_time: Moment,
    pub open: Decimal,
    pub high: Decimal,
    pub low: Decimal,
    pub close: Decimal,
    /// Quantity of all trades.
    pub volume: Decimal,
    /// Number of ticks that showed a trade.
    pub trades: u64,
    /// False while trades may still be added.
    pub complete: bool,
}

/// A change of the market of one security: a quote, a trade or both. Values that do not apply are
/// absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TickVO {
    pub security_id: u32,
    /// Differs from tick to tick of a security.
    pub date_time: Moment,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bid: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bid_size: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask_size: Option<Decimal>,
    /// Price of the trade; absent if the tick has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Decimal>,
    /// Quantity traded since the tick before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_size: Option<Decimal>,
}

/// The newest prices of a security and those of its trading day. Unknown values are absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuoteVO {
    pub security_id: u32,
    /// Time of the last tick.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date_time: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bid: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bid_size: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask_size: Option<Decimal>,
    /// Price of the last trade, also of an earlier day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_size: Option<Decimal>,
    /// First price of the trading day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<Decimal>,
    /// Quantity of all trades of the trading day.
    pub volume: Decimal,
    /// Last price of the last trading day with trades before this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_close: Option<Decimal>,
    /// Begin of that trading day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_day: Option<Moment>,
}
