//! Encodes requests to a venue: New Order Single (D), Order Cancel Request (F), Order
//! Cancel/Replace Request (G) and Order Status Request (H).

use pitlane_engine::id::{IntId, SecurityId};
use pitlane_engine::refdata::RefData;
use pitlane_engine::terms::{OrderKind, SpecialTerms, Terms, Tif};
use pitlane_engine::time::Timestamp;

use crate::codes::Code;
use crate::fix::encode::Draft;
use crate::fix::report::special_terms;
use crate::fix::tag::prefix;
use crate::fix::venue::profile::{OmittedFields, VenueProfile};

/// Symbol of a security that is no longer in the reference data.
const NOT_KNOWN: &[u8] = b"[N/A]";

/// Ids and account with which every request about an order begins.
#[derive(Clone, Copy, Debug)]
pub struct RequestIds<'a> {
    pub cl_ord_id: &'a IntId,
    /// The order's current id, for a cancel or a replacement.
    pub orig_cl_ord_id: Option<&'a IntId>,
    pub account: Option<&'a str>,
    /// Dialect of the venue.
    pub profile: &'a VenueProfile,
}

/// Writes D, and G with the same fields: the whole order as it must become.
pub fn order(
    draft: &mut Draft,
    names: &RequestIds<'_>,
    reference: &RefData,
    (terms, special): (&Terms, Option<&SpecialTerms>),
    now: Timestamp,
) {
    begin(draft, names);
    let omitted = names.profile.omitted();
    if !omitted.handl_inst {
        draft.code(prefix::HANDL_INST, b'1');
    }
    order_instrument(draft, reference, terms.security, omitted);
    draft.code(prefix::SIDE, terms.side.code());
    if !omitted.transact_time {
        draft.time(prefix::TRANSACT_TIME, now);
    }
    draft.scaled(prefix::ORDER_QTY, terms.qty.raw());
    // Stop orders wait in the engine, so an order that leaves has been triggered.
    let kind = match terms.kind {
        OrderKind::Market | OrderKind::Stop => OrderKind::Market,
        OrderKind::Limit | OrderKind::StopLimit => OrderKind::Limit,
    };
    draft.code(prefix::ORD_TYPE, kind.code());
    if kind.has_limit() {
        draft.scaled(prefix::PRICE, terms.limit.raw());
    }
    draft.code(prefix::TIME_IN_FORCE, terms.tif.code());
    if terms.tif == Tif::Gtd {
        draft.time(prefix::EXPIRE_TIME, terms.tif_date);
    }
    if terms.exchange_order {
        draft.code(prefix::EXCHANGE_ORDER, b'Y');
    }
    if let Some(special) = special {
        special_terms(draft, special);
    }
    let more = names.profile.order_fields();
    if !more.is_empty() {
        draft.text(b"", more);
    }
}

pub fn cancel(draft: &mut Draft, names: &RequestIds<'_>, reference: &RefData, terms: &Terms, now: Timestamp) {
    begin(draft, names);
    let omitted = names.profile.omitted();
    order_instrument(draft, reference, terms.security, omitted);
    if !omitted.side {
        draft.code(prefix::SIDE, terms.side.code());
    }
    if !omitted.transact_time {
        draft.time(prefix::TRANSACT_TIME, now);
    }
    if !omitted.order_qty {
        draft.scaled(prefix::ORDER_QTY, terms.qty.raw());
    }
}

pub fn status(draft: &mut Draft, names: &RequestIds<'_>, reference: &RefData, terms: &Terms) {
    draft.id(prefix::ORD_STATUS_REQ_ID, names.cl_ord_id);
    begin(draft, names);
    order_instrument(draft, reference, terms.security, names.profile.omitted());
    draft.code(prefix::SIDE, terms.side.code());
}

fn begin(draft: &mut Draft, names: &RequestIds<'_>) {
    draft.id(prefix::CL_ORD_ID, names.cl_ord_id);
    if let Some(orig) = names.orig_cl_ord_id {
        draft.id(prefix::ORIG_CL_ORD_ID, orig);
    }
    if let Some(account) = names.account {
        draft.text(prefix::ACCOUNT, account.as_bytes());
    }
}

/// Writes our symbol and the exchange's market identifier.
pub(super) fn instrument(draft: &mut Draft, reference: &RefData, security: SecurityId) {
    order_instrument(draft, reference, security, OmittedFields::default());
}

/// Does the same in the dialect of the venue.
fn order_instrument(draft: &mut Draft, reference: &RefData, security: SecurityId, omitted: OmittedFields) {
    let Some(security) = reference.security(security) else {
        return draft.text(prefix::SYMBOL, NOT_KNOWN);
    };
    draft.text(prefix::SYMBOL, security.symbol.as_bytes());
    if !omitted.security_exchange {
        draft.text(prefix::SECURITY_EXCHANGE, reference.exchange_of(security).mic.as_bytes());
    }
}
