//! Conditions that an operator should look at.

use serde::Serialize;
use utoipa::ToSchema;

use super::Moment;

/// A condition that an operator should look at. Values that do not apply are absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AlertVO {
    pub date_time: Moment,
    /// What was seen, such as IN_DOUBT or LATE_FILL.
    pub alert: &'static str,
    pub shard: u8,
    /// The order, if the service still knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub int_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// Stable code of the reason, and its text.
    pub reason: &'static str,
    pub detail: &'static str,
}
