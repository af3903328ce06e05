//! What happened to an order.

use pitlane_engine::event::RequestKind;
use pitlane_engine::terms::Status;
use pitlane_engine::view::{ChangeCause, OrderView, StatusChange};
use serde::Serialize;
use utoipa::ToSchema;

use super::schema::StatusSchema;
use super::{Decimal, Moment, NamedValue};
use crate::codes::WireName;

/// What happened to an order in its trading day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrderChangesVO<'a> {
    /// The order's current id.
    pub int_id: &'a str,
    /// Time of submission.
    pub date_time: Moment,
    /// Whether these are all changes. Otherwise older ones are missing: from before the start of
    /// the service or of the trading day, or beyond the number that the service keeps.
    #[serde(rename = "complete")]
    pub is_complete: bool,
    /// The oldest first.
    pub changes: Vec<StatusChangeVO>,
}

/// A change of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusChangeVO {
    pub date_time: Moment,
    /// As in messages about the order's status; also CANCEL_REJECTED and REPLACE_REJECTED, for a
    /// request that was refused.
    pub exec_type: &'static str,
    #[schema(value_type = StatusSchema)]
    pub status: NamedValue<Status>,
    /// The reason of the change: a stable code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// Total quantity.
    pub quantity: Decimal,
    pub filled_quantity: Decimal,
    /// Of this fill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_quantity: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_price: Option<Decimal>,
    /// The limit at that time. Absent if the order has none, or if it is not known any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Decimal>,
    /// The stop price at that time, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Decimal>,
}

impl<'a> OrderChangesVO<'a> {
    pub fn of(order: &'a OrderView, changes: &[StatusChange], is_complete: bool) -> OrderChangesVO<'a> {
        OrderChangesVO {
            int_id: order.id.as_str(),
            date_time: Moment(order.submitted),
            is_complete,
            changes: changes.iter().map(|change| StatusChangeVO::of(change, order)).collect(),
        }
    }
}

impl StatusChangeVO {
    fn of(change: &StatusChange, order: &OrderView) -> StatusChangeVO {
        let kind = order.terms.kind;
        let is_fill = !change.last_qty.is_zero();
        StatusChangeVO {
            date_time: Moment(change.at),
            exec_type: exec_type(change.cause),
            status: NamedValue(change.status),
            reason: Some(change.reason.code()).filter(|code| !code.is_empty()),
            quantity: change.qty.into(),
            filled_quantity: change.cum_qty.into(),
            last_quantity: is_fill.then(|| change.last_qty.into()),
            last_price: is_fill.then(|| change.last_price.into()),
            limit: change.prices.filter(|_| kind.has_limit()).map(|prices| prices.limit.into()),
            stop: change.prices.filter(|_| kind.has_stop()).map(|prices| prices.stop.into()),
        }
    }
}

fn exec_type(cause: ChangeCause) -> &'static str {
    match cause {
        ChangeCause::Report(what) => what.wire_name(),
        ChangeCause::Refusal(RequestKind::Cancel) => "CANCEL_REJECTED",
        ChangeCause::Refusal(RequestKind::Replace) => "REPLACE_REJECTED",
    }
}
