//! Market data subscriptions.

use serde::Deserialize;
use utoipa::ToSchema;

/// Starts or ends a strategy's subscription to market data of a security.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct MarketDataSubscriptionVO {
    /// `SERVER` is the server itself.
    pub strategy_name: String,
    pub security_id: u32,
    /// May be left out, because the path decides. A contradicting value is refused.
    pub subscribe: Option<bool>,
}
