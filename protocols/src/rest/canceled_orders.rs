//! Result of a cancel of many orders.

use serde::Serialize;
use utoipa::ToSchema;

/// Result of a cancel of many orders. Orders whose cancel was pending before are not counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanceledOrdersVO {
    /// Orders that are cancelled.
    pub canceled: u32,
    /// Orders whose cancel the venue refused.
    pub refused: u32,
    /// Orders that ended otherwise before their cancel was executed, such as by a fill.
    pub finished: u32,
    /// Orders whose venue has not answered yet. Their results follow by topic and in their status.
    pub pending: u32,
    /// Whether all shards have answered and no order is pending.
    #[serde(rename = "complete")]
    pub is_complete: bool,
    /// Reasons of shards that did not execute the request.
    pub reasons: Vec<&'static str>,
}

impl Default for CanceledOrdersVO {
    fn default() -> CanceledOrdersVO {
        CanceledOrdersVO {
            canceled: 0,
            refused: 0,
            finished: 0,
            pending: 0,
            is_complete: true,
            reasons: Vec::new(),
        }
    }
}
