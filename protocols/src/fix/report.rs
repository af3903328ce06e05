//! What is said of orders: Execution Report (8) and Order Cancel Reject (9), field by field.

use pitlane_engine::event::{ExecType, OrderReport, Refusal, RequestKind};
use pitlane_engine::id::{IntId, Uuid};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::RefData;
use pitlane_engine::terms::{Status, Terms, Tif};
use pitlane_engine::time::Timestamp;

use super::encode::Draft;
use super::order::OrderFields;
use super::orders::Order;
use super::reject::OrderRejectReason;
use super::resolve::security_type;
use crate::codes::{Code, Profile, exec_type, ord_status};

/// Bytes of a value that the client sent and that is said back although it means nothing to us.
const ECHO_BYTES_MAX: usize = 64;

/// What FIX writes where a needed value is not known.
const NOT_KNOWN: &[u8] = b"[N/A]";

/// What a report tells beside the order itself.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    pub exec_id: Uuid,
    pub at: Timestamp,
    pub what: ExecType,
    pub status: Status,
    pub reason: Reason,
    /// ClOrdID (11).
    pub cl_ord_id: IntId,
    /// OrigClOrdID (41); none where the report answers no request.
    pub orig_cl_ord_id: IntId,
    pub cum_qty: Qty,
    pub avg_price: Price,
    /// Of a fill.
    pub last: Option<(Qty, Price)>,
}

impl Report {
    /// How an order stands: nothing has happened.
    pub fn of_order(order: &Order, exec_id: Uuid) -> Report {
        Report {
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

    /// What a shard reports, under the ids by which the client knows it. `order` is as it was before the report, and is brought up
    /// to it.
    pub fn of_event(report: &OrderReport, at: Timestamp, exec_id: Uuid, order: &mut Order) -> Report {
        let (cl_ord_id, orig_cl_ord_id) = ids(report, order);
        order.update(report, at);
        Report {
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

/// ClOrdID and OrigClOrdID of a report. A request of the client's own is told under its id; what somebody else asked, under the
/// id that the client knows.
fn ids(report: &OrderReport, order: &mut Order) -> (IntId, IntId) {
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

/// An Execution Report. Spec: the table of its fields; 22, 31, 32, 40, 44, 60, 99, 126 beside them.
pub fn execution(
    draft: &mut Draft,
    profile: Profile,
    reference: &RefData,
    root: &IntId,
    terms: &Terms,
    report: &Report,
) {
    draft.id(b"37=", root);
    draft.id(b"11=", &report.cl_ord_id);
    if !report.orig_cl_ord_id.is_none() {
        draft.id(b"41=", &report.orig_cl_ord_id);
    }
    draft.uuid(b"17=", report.exec_id);
    draft.code(b"150=", exec_type(profile, report.what, report.status));
    draft.code(b"39=", ord_status(profile, report.status));
    if report.status == Status::Rejected {
        draft.number(b"103=", OrderRejectReason::Platform(report.reason).ord_rej_reason() as u64);
    }
    draft.number(b"1=", terms.account.0 as u64);
    instrument(draft, reference, terms);
    draft.code(b"54=", terms.side.code());
    draft.scaled(b"38=", terms.qty.raw());
    draft.code(b"40=", terms.kind.code());
    if terms.kind.has_limit() {
        draft.scaled(b"44=", terms.limit.raw());
    }
    if terms.kind.has_stop() {
        draft.scaled(b"99=", terms.stop.raw());
    }
    draft.code(b"59=", terms.tif.code());
    if terms.tif == Tif::Gtd {
        draft.time(b"126=", terms.tif_date);
    }
    if let Some((qty, price)) = report.last {
        draft.scaled(b"32=", qty.raw());
        draft.scaled(b"31=", price.raw());
    }
    draft.scaled(b"151=", leaves_qty(report, terms).raw());
    draft.scaled(b"14=", report.cum_qty.raw());
    draft.scaled(b"6=", report.avg_price.raw());
    draft.time(b"60=", report.at);
    text(draft, OrderRejectReason::Platform(report.reason));
}

fn leaves_qty(report: &Report, terms: &Terms) -> Qty {
    if report.status.is_finished() {
        return Qty::ZERO;
    }
    terms.qty.checked_sub(report.cum_qty).unwrap_or_default()
}

fn instrument(draft: &mut Draft, reference: &RefData, terms: &Terms) {
    let security = reference.security(terms.security);
    draft.text(b"55=", security.map_or(NOT_KNOWN, |security| security.symbol.as_bytes()));
    draft.number(b"48=", terms.security.0 as u64);
    draft.code(b"22=", b'8');
    if let Some(kind) = security.and_then(|security| security_type(security.kind)) {
        draft.text(b"167=", kind.as_bytes());
    }
}

/// The Execution Report of an order that never was one: what the client sent is said back.
pub fn refusal(
    draft: &mut Draft,
    exec_id: Uuid,
    now: Timestamp,
    order: &OrderFields,
    why: OrderRejectReason,
) {
    let cl_ord_id = order.cl_ord_id.unwrap_or_default();
    let duplicate = why == OrderRejectReason::Platform(Reason::DuplicateId);
    // The first order of this id is untouched, so it is not named.
    draft.text(b"37=", if duplicate { b"NONE" } else { cl_ord_id.as_bytes() });
    draft.text(b"11=", cl_ord_id.as_bytes());
    draft.uuid(b"17=", exec_id);
    draft.code(b"150=", b'8');
    draft.code(b"39=", b'8');
    draft.number(b"103=", why.ord_rej_reason() as u64);
    draft.text(b"1=", echo(order.account));
    draft.text(b"55=", echo(order.symbol));
    draft.text(b"48=", echo(order.security_id));
    draft.code(b"22=", b'8');
    draft.code(b"54=", order.side.unwrap_or(b'1'));
    let qty = order.order_qty.and_then(Result::ok).unwrap_or_default();
    draft.scaled(b"38=", qty.raw());
    if let Some(ord_type) = order.ord_type {
        draft.code(b"40=", ord_type);
    }
    if let Some(Ok(price)) = order.price {
        draft.scaled(b"44=", price.raw());
    }
    if let Some(Ok(stop)) = order.stop_px {
        draft.scaled(b"99=", stop.raw());
    }
    draft.code(b"59=", order.time_in_force.unwrap_or(b'0'));
    draft.text(b"151=", b"0");
    draft.text(b"14=", b"0");
    draft.text(b"6=", b"0");
    draft.time(b"60=", now);
    text(draft, why);
}

fn echo(value: Option<&[u8]>) -> &[u8] {
    value.map_or(NOT_KNOWN, |value| &value[..value.len().min(ECHO_BYTES_MAX)])
}

/// What an Order Cancel Reject tells.
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
    /// What a shard or a desk refused.
    pub fn of_refusal(refusal: &Refusal, order: Option<&Order>) -> CancelReject {
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

pub fn cancel_reject(draft: &mut Draft, profile: Profile, now: Timestamp, reject: &CancelReject) {
    let unknown = reject.root.is_none();
    draft.text(b"37=", if unknown { b"NONE" } else { reject.root.as_bytes() });
    draft.id(b"11=", &reject.cl_ord_id);
    let orig = reject.orig_cl_ord_id;
    draft.text(b"41=", if orig.is_none() { b"NONE" } else { orig.as_bytes() });
    draft.code(b"39=", if unknown { b'8' } else { ord_status(profile, reject.status) });
    draft.time(b"60=", now);
    draft.code(b"434=", reject.request.code());
    draft.number(b"102=", reject.why.cxl_rej_reason() as u64);
    text(draft, reject.why);
}

/// Text (58): the code and its words; none without a reason.
pub fn text(draft: &mut Draft, why: OrderRejectReason) {
    if why != OrderRejectReason::Platform(Reason::None) {
        draft.pieces(b"58=", &[why.code().as_bytes(), b": ", why.words().as_bytes()]);
    }
}
