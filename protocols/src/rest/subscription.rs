//! Market data subscriptions.

use serde::Deserialize;
use utoipa::ToSchema;

/// Who wants market data of which security, or no longer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct MarketDataSubscriptionVO {
    /// `SERVER` is the server itself.
    pub strategy_name: String,
    pub security_id: u32,
    /// May be left out: the path decides. One that contradicts it is refused.
    pub subscribe: Option<bool>,
}
