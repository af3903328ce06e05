//! Turns messages of a client into requests for the desk: a new order (D), a cancel (F), a
//! replacement (G), a cancel of many orders (q). This module checks what the message and the
//! session's own orders show; the shard checks the rest.
//!
//! Rules: docs/fix-rules.md#new-order-single.

use pitlane_engine::command::CancelFilter;
use pitlane_engine::desk::{Declined, Desk, Ticket};
use pitlane_engine::id::IntId;
use pitlane_engine::mesh::PortEnd;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::RefData;
use pitlane_engine::sender::SenderId;
use pitlane_engine::terms::{Changes, OrderKind, Side, SpecialTerms, Terms, Tif};
use pitlane_engine::text::TextError;
use pitlane_engine::time::{Day, Timestamp};

use super::msg_type;
use super::order::{OrderFields, ParsedDecimal};
use super::orders::{ClientOrder, OrderKey};
use super::reject::OrderRejectReason;
use super::resolve;
use super::session::FixSessionSettings;
use super::tag;
use crate::codes::Code;

/// A request for the desk. `key` finds the order among the session's orders, and `order` is its
/// current id. While the lane is full, the caller keeps the request, tries again, and asks the
/// session for no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientRequest {
    Submit { ticket: Ticket, terms: Terms, special: Option<SpecialTerms> },
    Modify { ticket: Ticket, key: OrderKey, order: IntId, changes: Changes, special: Option<SpecialTerms> },
    Cancel { ticket: Ticket, key: OrderKey, order: IntId },
    CancelOrders { ticket: Ticket, filter: CancelFilter },
}

impl ClientRequest {
    pub fn ticket(&self) -> &Ticket {
        match self {
            ClientRequest::Submit { ticket, .. }
            | ClientRequest::Modify { ticket, .. }
            | ClientRequest::Cancel { ticket, .. }
            | ClientRequest::CancelOrders { ticket, .. } => ticket,
        }
    }

    /// Gives the request to the desk as sent by the session's client. A cancel without an id is the
    /// platform's own, because the client is disconnected.
    pub fn send(&self, desk: &mut Desk, port: &mut PortEnd, client: SenderId) -> Result<IntId, Declined> {
        let by_client = |ticket: Ticket| Ticket { sender: client, ..ticket };
        match *self {
            ClientRequest::Submit { ticket, terms, special: None } => {
                desk.submit(port, by_client(ticket), terms)
            }
            ClientRequest::Submit { ticket, terms, special: Some(special) } => {
                desk.submit_special(port, by_client(ticket), terms, special)
            }
            ClientRequest::Modify { ticket, order, changes, special: None, .. } => {
                desk.modify(port, by_client(ticket), &order, changes)
            }
            ClientRequest::Modify { ticket, order, changes, special: Some(special), .. } => {
                desk.modify_special(port, by_client(ticket), &order, changes, special)
            }
            ClientRequest::Cancel { ticket, order, .. } if ticket.id.is_none() => {
                desk.cancel(port, Ticket { sender: SenderId::INTERNAL, ..ticket }, &order)
            }
            ClientRequest::Cancel { ticket, order, .. } => desk.cancel(port, by_client(ticket), &order),
            ClientRequest::CancelOrders { ticket, filter } => {
                desk.cancel_orders(port, by_client(ticket), filter)
            }
        }
    }
}

/// Tag of a required field.
pub type MissingTag = u32;

/// Returns the first required field of D, F, G or q that is absent. SecurityID may stand for
/// Symbol.
pub fn missing(msg_type: u8, order: &OrderFields) -> Option<MissingTag> {
    if msg_type == msg_type::ORDER_MASS_CANCEL_REQUEST {
        let needed = [
            (tag::CL_ORD_ID, order.cl_ord_id.is_some()),
            (tag::TRANSACT_TIME, order.transact_time.is_some()),
        ];
        return needed.into_iter().find(|(_, there)| !there).map(|(tag, _)| tag);
    }
    let replace = msg_type == msg_type::ORDER_CANCEL_REPLACE_REQUEST;
    let needed = [
        (tag::ORIG_CL_ORD_ID, msg_type == msg_type::NEW_ORDER_SINGLE || order.orig_cl_ord_id.is_some()),
        (tag::CL_ORD_ID, order.cl_ord_id.is_some()),
        (tag::SYMBOL, order.symbol.is_some() || order.security_id.is_some()),
        (tag::SIDE, order.side.is_some()),
        (tag::TRANSACT_TIME, order.transact_time.is_some()),
        (tag::ORD_TYPE, msg_type == msg_type::ORDER_CANCEL_REQUEST || order.ord_type.is_some()),
        // A new order without a quantity is refused as an order, because FIX permits other fields
        // instead.
        (tag::ORDER_QTY, !replace || order.order_qty.is_some()),
    ];
    needed.into_iter().find(|(_, there)| !there).map(|(tag, _)| tag)
}

/// Returns the terms of a new order.
pub fn terms(
    settings: &FixSessionSettings,
    reference: &RefData,
    order: &OrderFields,
) -> Result<Terms, OrderRejectReason> {
    let security = resolve::security(reference, order)?;
    let account = resolve::account(reference, order, settings.account, security)?;
    let strategy = resolve::strategy(reference, order, settings.strategy)?;
    let side = order.side.and_then(Side::from_code).ok_or(OrderRejectReason::SideNotTaken)?;
    let kind = order_kind(settings, order)?;
    let tif = tif(order)?;
    let (limit, stop) = (price(order.price)?, price(order.stop_px)?);
    Ok(Terms {
        qty: qty(order.order_qty)?,
        limit: limit.unwrap_or_default(),
        stop: stop.unwrap_or_default(),
        tif_date: tif_date(order, tif)?.unwrap_or_default(),
        security: security.id,
        strategy,
        account,
        side,
        kind,
        tif,
        limit_given: limit.is_some(),
        stop_given: stop.is_some(),
        exchange_order: order.exchange_order.unwrap_or(false),
        reduce_only: false,
        special: order.special.is_some(),
    })
}

/// Returns ExecInst, MinQty and MaxFloor of an order or a replacement. Whether its venue takes them
/// is decided later.
pub fn special(order: &OrderFields) -> Result<Option<SpecialTerms>, OrderRejectReason> {
    match order.special {
        None => Ok(None),
        Some(Ok(special)) => Ok(Some(special)),
        Some(Err(error)) => Err(quantity_fault(error)),
    }
}

/// Returns the changes of a replacement. It carries the whole order as requested; fields that
/// cannot change must be equal.
pub fn changes(
    settings: &FixSessionSettings,
    reference: &RefData,
    order: &OrderFields,
    known: &ClientOrder,
) -> Result<Changes, OrderRejectReason> {
    matches(reference, order, known)?;
    if let Some(named) = order.account
        && resolve::named_account(reference, named) != Some(known.terms.account)
    {
        return Err(OrderRejectReason::AccountDiffers);
    }
    if order_kind(settings, order)? != known.terms.kind {
        return Err(OrderRejectReason::TypeDiffers);
    }
    let mut changes = Changes::default().with_qty(qty(order.order_qty)?);
    let kind = known.terms.kind;
    match (price(order.price)?, kind.has_limit()) {
        (Some(limit), true) => changes = changes.with_limit(limit),
        (None, true) => return Err(Reason::LimitMissing.into()),
        (Some(_), false) => return Err(Reason::LimitSuperfluous.into()),
        (None, false) => {}
    }
    match (price(order.stop_px)?, kind.has_stop()) {
        (Some(stop), true) => changes = changes.with_stop(stop),
        (None, true) => return Err(Reason::StopMissing.into()),
        (Some(_), false) => return Err(Reason::StopSuperfluous.into()),
        (None, false) => {}
    }
    // Without TimeInForce (59) the time in force stays: a client that omits it does not mean to
    // change it.
    if order.time_in_force.is_some() {
        let tif = tif(order)?;
        changes = changes.with_tif(tif);
        if let Some(date) = tif_date(order, tif)? {
            changes = changes.with_tif_date(date);
        }
    }
    // A replacement carries the whole order, so that terms which it does not name are removed.
    if order.special.is_some() || known.terms.special {
        changes = changes.with_special(order.special.is_some());
    }
    Ok(changes)
}

/// Checks that instrument and side of a request are those of its order.
pub fn matches(
    reference: &RefData,
    order: &OrderFields,
    known: &ClientOrder,
) -> Result<(), OrderRejectReason> {
    let side = order.side.and_then(Side::from_code);
    if side != Some(known.terms.side) {
        return Err(OrderRejectReason::SideDiffers);
    }
    match resolve::security(reference, order) {
        Ok(security) if security.id == known.terms.security => Ok(()),
        _ => Err(OrderRejectReason::SecurityDiffers),
    }
}

fn order_kind(settings: &FixSessionSettings, order: &OrderFields) -> Result<OrderKind, OrderRejectReason> {
    let kind = order.ord_type.and_then(OrderKind::from_code);
    kind.filter(|kind| settings.order_types.contains(kind)).ok_or(OrderRejectReason::TypeNotTaken)
}

fn tif(order: &OrderFields) -> Result<Tif, OrderRejectReason> {
    // Spec: absent means DAY.
    order
        .time_in_force
        .map_or(Ok(Tif::Day), |code| Tif::from_code(code).ok_or(OrderRejectReason::TifNotTaken))
}

/// Returns the end of a GTD order: ExpireTime (126), or the end of ExpireDate (432).
fn tif_date(order: &OrderFields, tif: Tif) -> Result<Option<Timestamp>, OrderRejectReason> {
    match (tif, order.expire_time, order.expire_date) {
        (Tif::Gtd, Some(time), None) => Ok(Some(time)),
        // Choice: the day is in UTC. See protocols/README.md.
        (Tif::Gtd, None, Some(day)) => Ok(Some(Day(day.0.saturating_add(1)).start())),
        (Tif::Gtd, None, None) => Err(Reason::TifDateMissing.into()),
        (Tif::Gtd, Some(_), Some(_)) => Err(Reason::TifDateSuperfluous.into()),
        (_, None, None) => Ok(None),
        (_, _, _) => Err(Reason::TifDateSuperfluous.into()),
    }
}

fn qty(qty: Option<ParsedDecimal<Qty>>) -> Result<Qty, OrderRejectReason> {
    match qty {
        Some(Ok(qty)) => Ok(qty),
        Some(Err(error)) => Err(quantity_fault(error)),
        None => Err(Reason::QuantityNotPositive.into()),
    }
}

fn quantity_fault(error: TextError) -> OrderRejectReason {
    if error == TextError::TooManyDecimals { Reason::BadLot.into() } else { Reason::Overflow.into() }
}

fn price(price: Option<ParsedDecimal<Price>>) -> Result<Option<Price>, OrderRejectReason> {
    match price {
        Some(Ok(price)) => Ok(Some(price)),
        Some(Err(TextError::TooManyDecimals)) => Err(Reason::BadTick.into()),
        Some(Err(_)) => Err(Reason::Overflow.into()),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests;
