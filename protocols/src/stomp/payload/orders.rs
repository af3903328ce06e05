//! Submitted and modified orders, and changes of their status.

use pitlane_engine::event::{OrderReport, OrderTerms};
use pitlane_engine::id::IntId;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::RefData;
use pitlane_engine::terms::SpecialTerms;
use pitlane_engine::time::Timestamp;

use super::{EventStamp, begin};
use crate::codes::WireName;
use crate::json::Object;

/// Writes an order's status under the order's own id, whatever the id of the request was.
pub fn status(
    out: &mut Vec<u8>,
    stamp: EventStamp,
    ids: (&IntId, &IntId),
    report: &OrderReport,
    reference: &RefData,
) {
    let mut object = begin(out, "ORDER_STATUS", stamp);
    identity(&mut object, ids);
    if let Some(strategy) = reference.strategy(report.strategy) {
        object.text("strategyName", &strategy.name);
    }
    object.text("status", report.status.wire_name());
    object.text("execType", report.what.wire_name());
    filled(&mut object, report, (report.last_qty, report.last_price));
    reason(&mut object, report.reason);
    object.number("securityId", report.security.0.into());
    if let Some(security) = reference.security(report.security) {
        object.text("symbol", &security.symbol);
        object.text("venue", &reference.exchange_of(security).adapter_type);
    }
    object.text("side", report.side.wire_name());
    object.decimal("quantity", report.qty.raw());
    object.number("accountId", report.account.0.into());
    if report.in_doubt {
        object.flag("unknown", true);
    }
    object.end();
}

/// What the terms of an order do not contain.
#[derive(Clone, Copy, Debug)]
pub struct OrderContext<'a> {
    /// Report of the same time.
    pub report: &'a OrderReport,
    /// ExecInst, MinQty and MaxFloor; `None` of most orders.
    pub special: Option<SpecialTerms>,
    pub past: OrderHistory,
    /// FIX session of the order, if its name is known: `FIX:CLIENT1`.
    pub session: Option<&'a str>,
}

/// What happened to an order before a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderHistory {
    pub submitted: Timestamp,
    /// Quantity and price of the latest fill; zero if there was none.
    pub last_qty: Qty,
    pub last_price: Price,
}

/// Writes an OrderVO.
pub fn order(
    out: &mut Vec<u8>,
    stamp: EventStamp,
    order_terms: &OrderTerms,
    context: OrderContext<'_>,
    reference: &RefData,
) {
    let OrderContext { report, special, past, session } = context;
    let terms = &order_terms.terms;
    let mut object = begin(out, "ORDER", stamp);
    identity(&mut object, (&order_terms.id, &order_terms.orig_id));
    object.text("orderType", terms.kind.wire_name());
    object.text("side", terms.side.wire_name());
    object.decimal("quantity", terms.qty.raw());
    if terms.kind.has_limit() {
        object.decimal("limit", terms.limit.raw());
    }
    if terms.kind.has_stop() {
        object.decimal("stop", terms.stop.raw());
    }
    object.text("tif", terms.tif.wire_name());
    if terms.tif_date.0 != 0 {
        object.time("tifDate", terms.tif_date);
    }
    object.number("strategyId", terms.strategy.0.into());
    if let Some(strategy) = reference.strategy(terms.strategy) {
        object.text("strategyName", &strategy.name);
    }
    object.number("accountId", terms.account.0.into());
    object.number("securityId", terms.security.0.into());
    if let Some(security) = reference.security(terms.security) {
        object.text("symbol", &security.symbol);
        let exchange = reference.exchange_of(security);
        object.number("exchangeId", exchange.id.0.into());
        object.text("venue", &exchange.adapter_type);
    }
    object.flag("exchangeOrder", terms.exchange_order);
    if let Some(special) = special {
        special_terms(&mut object, &special);
    }
    object.text("status", order_terms.status.wire_name());
    filled(&mut object, report, (past.last_qty, past.last_price));
    reason(&mut object, order_terms.reason);
    object.text("source", session.unwrap_or(order_terms.source.origin.wire_name()));
    if report.in_doubt {
        object.flag("unknown", true);
    }
    object.time("dateTime", past.submitted);
    object.time("lastUpdate", stamp.at);
    object.end();
}

fn special_terms(object: &mut Object<'_>, special: &SpecialTerms) {
    if !special.exec_inst.is_empty() {
        object.text("execInst", &special.exec_inst.to_string());
    }
    if let Some(least) = special.min_qty {
        object.decimal("minQty", least.raw());
    }
    if let Some(shown) = special.max_floor {
        object.decimal("maxFloor", shown.raw());
    }
}

fn identity(object: &mut Object<'_>, (id, orig_id): (&IntId, &IntId)) {
    object.text("intId", id.as_str());
    if !orig_id.is_none() {
        object.text("origIntId", orig_id.as_str());
    }
}

fn filled(object: &mut Object<'_>, report: &OrderReport, (last_qty, last_price): (Qty, Price)) {
    object.decimal("filledQuantity", report.cum_qty.raw());
    object.decimal("remainingQuantity", report.leaves_qty().raw());
    if !report.cum_qty.is_zero() {
        object.decimal("avgPrice", report.avg_price.raw());
    }
    if !last_qty.is_zero() {
        object.decimal("lastQuantity", last_qty.raw());
        object.decimal("lastPrice", last_price.raw());
    }
}

fn reason(object: &mut Object<'_>, reason: Reason) {
    if reason != Reason::None {
        object.text("reason", reason.code());
    }
}
