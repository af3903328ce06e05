//! Writes Execution Report (8), Order Cancel Reject (9) and Order Mass Cancel Report (r).
//!
//! Rules: docs/fix-rules.md#execution-report.

use pitlane_engine::event::{ExecType, OrderReport, RequestKind, RequestRefusal};
use pitlane_engine::id::{IntId, SecurityId, Uuid};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::RefData;
use pitlane_engine::terms::{SpecialTerms, Status, Terms, Tif};
use pitlane_engine::time::Timestamp;

use super::encode::Draft;
use super::exec_type;
use super::ord_status;
use super::order::OrderFields;
use super::orders::ClientOrder;
use super::reject::OrderRejectReason;
use super::resolve::security_type;
use super::tag::prefix;
use super::version::FixVersion;
use crate::codes::{Code, FixProfile, exec_trans_type, exec_type, ord_status, reported_ord_status};

/// Bytes of an unknown value of the client that are echoed.
const ECHO_BYTES_MAX: usize = 64;

/// FIX's text for a required value that is unknown.
const NOT_KNOWN: &[u8] = b"[N/A]";

/// Side (54) of a report that concerns no order.
const UNDISCLOSED: u8 = b'7';

/// MassCancelResponse (531) of a request that was refused.
const MASS_CANCEL_REFUSED: u8 = b'0';

/// Fields of a report beside the order's terms.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionReport {
    pub exec_id: Uuid,
    pub at: Timestamp,
    pub what: ExecType,
    pub status: Status,
    pub reason: Reason,
    /// ClOrdID (11).
    pub cl_ord_id: IntId,
    /// OrigClOrdID (41); none if the report answers no request.
    pub orig_cl_ord_id: IntId,
    pub cum_qty: Qty,
    pub avg_price: Price,
    /// LastQty and LastPx of a fill.
    pub last: Option<(Qty, Price)>,
}

impl ExecutionReport {
    /// Returns a report of an order's status, without an event.
    pub fn of_order(order: &ClientOrder, exec_id: Uuid) -> ExecutionReport {
        ExecutionReport {
            exec_id,
            at: order.updated,
            what: ExecType::Snapshot,
            status: order.status,
            reason: Reason::None,
            cl_ord_id: order.cl_ord_id,
            orig_cl_ord_id: IntId::NONE,
            cum_qty: order.cum_qty,
            avg_price: order.avg_price,
            last: None,
        }
    }

    /// Returns the report of a shard's event, under the ids that the client knows. It applies the
    /// event to `order`, which is as before the event.
    pub fn of_event(
        report: &OrderReport,
        at: Timestamp,
        exec_id: Uuid,
        order: &mut ClientOrder,
    ) -> ExecutionReport {
        let ids = ids(report, order);
        order.update(report, at);
        ExecutionReport::with_ids(report, at, exec_id, ids)
    }

    /// Returns the report of a shard's event under ClOrdID and OrigClOrdID.
    pub fn with_ids(
        report: &OrderReport,
        at: Timestamp,
        exec_id: Uuid,
        (cl_ord_id, orig_cl_ord_id): (IntId, IntId),
    ) -> ExecutionReport {
        ExecutionReport {
            exec_id,
            at,
            what: report.what,
            status: report.status,
            reason: report.reason,
            cl_ord_id,
            orig_cl_ord_id,
            cum_qty: report.cum_qty,
            avg_price: report.avg_price,
            last: (report.what == ExecType::Filled).then_some((report.last_qty, report.last_price)),
        }
    }
}

/// Returns ClOrdID and OrigClOrdID of a report. A request of the client is reported under its own
/// id; a request from elsewhere under the id that the client knows.
fn ids(report: &OrderReport, order: &mut ClientOrder) -> (IntId, IntId) {
    let before = order.cl_ord_id;
    match report.what {
        ExecType::CancelPending if report.id == order.cancel => (order.cancel, before),
        ExecType::Canceled if !order.cancel.is_none() && report.id == order.cancel => {
            (std::mem::take(&mut order.cancel), before)
        }
        ExecType::ReplacePending if report.id == order.replace => (order.replace, before),
        ExecType::Replaced if !order.replace.is_none() && report.id == order.replace => {
            order.cl_ord_id = std::mem::take(&mut order.replace);
            (order.cl_ord_id, before)
        }
        ExecType::Entered
        | ExecType::Rejected
        | ExecType::Accepted
        | ExecType::Filled
        | ExecType::CancelPending
        | ExecType::Canceled
        | ExecType::Expired
        | ExecType::ReplacePending
        | ExecType::Replaced
        | ExecType::Triggered
        | ExecType::Corrected
        | ExecType::Snapshot => (before, IntId::NONE),
    }
}

/// Writes an Execution Report. Spec: the table of its fields; also 22, 30, 31, 32, 40, 44, 60, 99
/// and 126.
pub fn execution(
    draft: &mut Draft,
    profile: FixProfile,
    reference: &RefData,
    root: &IntId,
    terms: &Terms,
    report: &ExecutionReport,
) {
    let write_terms = |draft: &mut Draft| {
        account_and_instrument(draft, reference, terms);
        order_terms(draft, terms);
    };
    execution_with(draft, profile, write_terms, root, terms, report);
}

/// Writes an Execution Report, with the fields of the order's terms as `write_terms` writes them.
#[inline]
pub(super) fn execution_with(
    draft: &mut Draft,
    profile: FixProfile,
    write_terms: impl FnOnce(&mut Draft),
    root: &IntId,
    terms: &Terms,
    report: &ExecutionReport,
) {
    draft.id(prefix::ORDER_ID, root);
    draft.id(prefix::CL_ORD_ID, &report.cl_ord_id);
    if !report.orig_cl_ord_id.is_none() {
        draft.id(prefix::ORIG_CL_ORD_ID, &report.orig_cl_ord_id);
    }
    draft.uuid(prefix::EXEC_ID, report.exec_id);
    write_exec_trans_type(draft, profile, report.what);
    draft.code(prefix::EXEC_TYPE, exec_type(profile, report.what, report.status));
    draft.code(prefix::ORD_STATUS, reported_ord_status(profile, report.what, report.status));
    if report.status == Status::Rejected {
        let reason = OrderRejectReason::Platform(report.reason).ord_rej_reason();
        draft.number(prefix::ORD_REJ_REASON, profile.ord_rej_reason(reason) as u64);
    }
    write_terms(draft);
    if let Some((qty, price)) = report.last {
        draft.scaled(prefix::LAST_QTY, qty.raw());
        draft.scaled(prefix::LAST_PX, price.raw());
    }
    draft.scaled(prefix::LEAVES_QTY, leaves_qty(report, terms).raw());
    draft.scaled(prefix::CUM_QTY, report.cum_qty.raw());
    draft.scaled(prefix::AVG_PX, report.avg_price.raw());
    draft.time(prefix::TRANSACT_TIME, report.at);
    text(draft, OrderRejectReason::Platform(report.reason));
}

/// Writes Account, the fields of the security, and its exchange as LastMkt.
pub(super) fn account_and_instrument(draft: &mut Draft, reference: &RefData, terms: &Terms) {
    draft.number(prefix::ACCOUNT, terms.account.0 as u64);
    instrument(draft, reference, terms.security);
    if let Some(security) = reference.security(terms.security) {
        draft.text(prefix::LAST_MKT, reference.exchange_of(security).mic.as_bytes());
    }
}

/// Writes the fields of an order's own terms.
pub(super) fn order_terms(draft: &mut Draft, terms: &Terms) {
    draft.code(prefix::SIDE, terms.side.code());
    draft.scaled(prefix::ORDER_QTY, terms.qty.raw());
    draft.code(prefix::ORD_TYPE, terms.kind.code());
    if terms.kind.has_limit() && terms.limit_given {
        draft.scaled(prefix::PRICE, terms.limit.raw());
    }
    if terms.kind.has_stop() && terms.stop_given {
        draft.scaled(prefix::STOP_PX, terms.stop.raw());
    }
    draft.code(prefix::TIME_IN_FORCE, terms.tif.code());
    if terms.tif == Tif::Gtd {
        draft.time(prefix::EXPIRE_TIME, terms.tif_date);
    }
}

/// Writes ExecInst, MinQty and MaxFloor of an order.
#[cold]
pub fn special_terms(draft: &mut Draft, special: &SpecialTerms) {
    if !special.exec_inst.is_empty() {
        special.exec_inst.with_text(|text| draft.text(prefix::EXEC_INST, text));
    }
    if let Some(qty) = special.min_qty {
        draft.scaled(prefix::MIN_QTY, qty.raw());
    }
    if let Some(qty) = special.max_floor {
        draft.scaled(prefix::MAX_FLOOR, qty.raw());
    }
}

/// Writes ExecTransType (20), which only FIX 4.2 has.
#[inline]
fn write_exec_trans_type(draft: &mut Draft, profile: FixProfile, what: ExecType) {
    if profile == FixProfile::Fix42 {
        draft.code(prefix::EXEC_TRANS_TYPE, exec_trans_type(what));
    }
}

fn leaves_qty(report: &ExecutionReport, terms: &Terms) -> Qty {
    if report.status.is_finished() {
        return Qty::ZERO;
    }
    terms.qty.checked_sub(report.cum_qty).unwrap_or_default()
}

/// Writes the fields of a security.
pub fn instrument(draft: &mut Draft, reference: &RefData, id: SecurityId) {
    let security = reference.security(id);
    draft.text(prefix::SYMBOL, security.map_or(NOT_KNOWN, |security| security.symbol.as_bytes()));
    draft.number(prefix::SECURITY_ID, id.0 as u64);
    draft.code(prefix::SECURITY_ID_SOURCE, b'8');
    if let Some(kind) = security.and_then(|security| security_type(security.kind)) {
        draft.text(prefix::SECURITY_TYPE, kind.as_bytes());
    }
}

/// Writes the Execution Report of an order that was refused before it existed. It echoes the
/// client's values.
pub fn refusal(
    draft: &mut Draft,
    profile: FixProfile,
    exec_id: Uuid,
    now: Timestamp,
    order: &OrderFields,
    why: OrderRejectReason,
) {
    let cl_ord_id = order.cl_ord_id.unwrap_or_default();
    let duplicate = why == OrderRejectReason::Platform(Reason::DuplicateId);
    // The first order of this id is not affected, so it is not named.
    draft.text(prefix::ORDER_ID, if duplicate { b"NONE" } else { cl_ord_id.as_bytes() });
    draft.text(prefix::CL_ORD_ID, cl_ord_id.as_bytes());
    draft.uuid(prefix::EXEC_ID, exec_id);
    write_exec_trans_type(draft, profile, ExecType::Rejected);
    draft.code(prefix::EXEC_TYPE, exec_type::REJECTED);
    draft.code(prefix::ORD_STATUS, ord_status::REJECTED);
    draft.number(prefix::ORD_REJ_REASON, profile.ord_rej_reason(why.ord_rej_reason()) as u64);
    draft.text(prefix::ACCOUNT, echo(order.account));
    draft.text(prefix::SYMBOL, echo(order.symbol));
    draft.text(prefix::SECURITY_ID, echo(order.security_id));
    draft.code(prefix::SECURITY_ID_SOURCE, b'8');
    draft.code(prefix::SIDE, order.side.unwrap_or(b'1'));
    let qty = order.order_qty.and_then(Result::ok).unwrap_or_default();
    draft.scaled(prefix::ORDER_QTY, qty.raw());
    if let Some(ord_type) = order.ord_type {
        draft.code(prefix::ORD_TYPE, ord_type);
    }
    if let Some(Ok(price)) = order.price {
        draft.scaled(prefix::PRICE, price.raw());
    }
    if let Some(Ok(stop)) = order.stop_px {
        draft.scaled(prefix::STOP_PX, stop.raw());
    }
    draft.code(prefix::TIME_IN_FORCE, order.time_in_force.unwrap_or(b'0'));
    draft.text(prefix::LEAVES_QTY, b"0");
    draft.text(prefix::CUM_QTY, b"0");
    draft.text(prefix::AVG_PX, b"0");
    draft.time(prefix::TRANSACT_TIME, now);
    text(draft, why);
}

/// Writes the Execution Report that answers a status request without an order: FIX's code for an
/// unknown order, and the client's values. The fields of the request follow.
pub fn unknown_order(
    draft: &mut Draft,
    profile: FixProfile,
    exec_id: Uuid,
    now: Timestamp,
    cl_ord_id: Option<&IntId>,
    order: &OrderFields,
) {
    let why = OrderRejectReason::Platform(Reason::UnknownOrder);
    draft.text(prefix::ORDER_ID, b"NONE");
    if let Some(id) = cl_ord_id {
        draft.id(prefix::CL_ORD_ID, id);
    }
    draft.uuid(prefix::EXEC_ID, exec_id);
    write_exec_trans_type(draft, profile, ExecType::Snapshot);
    draft.code(prefix::EXEC_TYPE, exec_type(profile, ExecType::Snapshot, Status::Rejected));
    draft.code(prefix::ORD_STATUS, ord_status::REJECTED);
    draft.number(prefix::ORD_REJ_REASON, why.ord_rej_reason() as u64);
    draft.text(prefix::SYMBOL, echo(order.symbol));
    draft.code(prefix::SIDE, order.side.unwrap_or(UNDISCLOSED));
    draft.text(prefix::LEAVES_QTY, b"0");
    draft.text(prefix::CUM_QTY, b"0");
    draft.text(prefix::AVG_PX, b"0");
    draft.time(prefix::TRANSACT_TIME, now);
    text(draft, why);
}

/// Cuts a value of the client to [`ECHO_BYTES_MAX`]; FIX's text for an unknown value replaces one
/// that is missing.
pub fn echo(value: Option<&[u8]>) -> &[u8] {
    value.map_or(NOT_KNOWN, |value| &value[..value.len().min(ECHO_BYTES_MAX)])
}

/// Fields of an Order Cancel Reject.
#[derive(Clone, Copy, Debug)]
pub struct CancelReject {
    /// OrderID (37); none if there is no such order.
    pub root: IntId,
    pub cl_ord_id: IntId,
    pub orig_cl_ord_id: IntId,
    pub status: Status,
    pub request: RequestKind,
    pub why: OrderRejectReason,
}

impl CancelReject {
    /// Returns the reject of a request that a shard or the desk refused.
    pub fn of_refusal(refusal: &RequestRefusal, order: Option<&ClientOrder>) -> CancelReject {
        CancelReject {
            root: order.map_or(IntId::NONE, |order| order.root),
            cl_ord_id: refusal.request_id,
            orig_cl_ord_id: order.map_or(refusal.id, |order| order.cl_ord_id),
            status: refusal.status,
            request: refusal.request,
            why: refusal.reason.into(),
        }
    }
}

pub fn cancel_reject(draft: &mut Draft, profile: FixProfile, now: Timestamp, reject: &CancelReject) {
    let unknown = reject.root.is_none();
    draft.text(prefix::ORDER_ID, if unknown { b"NONE" } else { reject.root.as_bytes() });
    draft.id(prefix::CL_ORD_ID, &reject.cl_ord_id);
    let orig = reject.orig_cl_ord_id;
    draft.text(prefix::ORIG_CL_ORD_ID, if orig.is_none() { b"NONE" } else { orig.as_bytes() });
    draft.code(
        prefix::ORD_STATUS,
        if unknown { ord_status::REJECTED } else { ord_status(profile, reject.status) },
    );
    draft.time(prefix::TRANSACT_TIME, now);
    draft.code(prefix::CXL_REJ_RESPONSE_TO, reject.request.code());
    draft.number(prefix::CXL_REJ_REASON, profile.cxl_rej_reason(reject.why.cxl_rej_reason()) as u64);
    text(draft, reject.why);
}

/// Fields of an Order Mass Cancel Report.
#[derive(Clone, Copy, Debug)]
pub struct MassCancelReport {
    pub cl_ord_id: IntId,
    /// MassCancelRequestType (530); zero if it is missing.
    pub request_type: u8,
    pub side: Option<u8>,
    pub security: Option<SecurityId>,
    /// Orders whose cancel was requested.
    pub affected: u64,
    /// Why a shard, or all of them, did not execute the request.
    pub refusal: Option<OrderRejectReason>,
}

/// Writes an Order Mass Cancel Report (r). A request that some shards have executed is not refused,
/// and its text names the reason of the others.
pub fn mass_cancel(
    draft: &mut Draft,
    version: FixVersion,
    reference: &RefData,
    now: Timestamp,
    report: &MassCancelReport,
) {
    let is_refused = report.refusal.is_some() && report.affected == 0;
    let request_type = if report.request_type == 0 { b'7' } else { report.request_type };
    draft.id(prefix::CL_ORD_ID, &report.cl_ord_id);
    draft.id(prefix::ORDER_ID, &report.cl_ord_id);
    if version.has_mass_action_report_id() {
        draft.id(prefix::MASS_ACTION_REPORT_ID, &report.cl_ord_id);
    }
    draft.code(prefix::MASS_CANCEL_REQUEST_TYPE, request_type);
    draft.code(prefix::MASS_CANCEL_RESPONSE, if is_refused { MASS_CANCEL_REFUSED } else { request_type });
    if let Some(why) = report.refusal.filter(|_| is_refused) {
        draft.number(prefix::MASS_CANCEL_REJECT_REASON, why.mass_cancel_reject_reason() as u64);
    }
    draft.number(prefix::TOTAL_AFFECTED_ORDERS, report.affected);
    if let Some(security) = report.security.and_then(|id| reference.security(id)) {
        draft.text(prefix::SYMBOL, security.symbol.as_bytes());
        draft.number(prefix::SECURITY_ID, security.id.0 as u64);
        draft.code(prefix::SECURITY_ID_SOURCE, b'8');
    }
    if let Some(side) = report.side {
        draft.code(prefix::SIDE, side);
    }
    draft.time(prefix::TRANSACT_TIME, now);
    if let Some(why) = report.refusal {
        text(draft, why);
    }
}

/// Writes Text (58): the code and its text; nothing without a reason.
pub fn text(draft: &mut Draft, why: OrderRejectReason) {
    if why != OrderRejectReason::Platform(Reason::None) {
        draft.pieces(prefix::TEXT, &[why.code().as_bytes(), b": ", why.text().as_bytes()]);
    }
}

#[cfg(test)]
mod tests;
