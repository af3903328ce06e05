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

#[cfg(test)]
mod tests {
    use pitlane_engine::number::Qty;
    use pitlane_engine::refdata::sample;
    use pitlane_engine::terms::{OrderKind, Side};

    use super::*;
    use crate::fix::encode::Encoder;
    use crate::fix::msg_type;
    use crate::fix::venue::profile::ExtraField;
    use crate::fix::version::FixVersion;

    const NOW: Timestamp = Timestamp(1_800_000_000_000_000_000);

    /// Returns the body of a message as text.
    fn body(write: impl FnOnce(&mut Draft)) -> String {
        let mut out = Vec::new();
        let mut encoder = Encoder::new(FixVersion::Fix44, "PITLANE", "VENUE");
        let mut draft = encoder.begin(&mut out, msg_type::NEW_ORDER_SINGLE, 1, NOW);
        write(&mut draft);
        draft.finish();
        let text = String::from_utf8(out).unwrap().replace('\x01', "|");
        text[text.find("|11=").unwrap() + 1..text.rfind("|10=").unwrap()].to_string()
    }

    #[test]
    fn a_venue_gets_the_fields_of_its_dialect() {
        let reference = RefData::check(sample::sound()).unwrap();
        let day = Terms {
            security: SecurityId(1),
            side: Side::Sell,
            qty: Qty::whole(100).unwrap(),
            kind: OrderKind::Limit,
            limit: sample::price("10.5"),
            tif: Tif::Day,
            ..Terms::default()
        };
        let dated = Terms { tif: Tif::Gtd, tif_date: NOW, kind: OrderKind::Stop, ..day };
        let unknown = Terms { security: SecurityId(99), ..day };
        let fields = ["25035=2", "528=A"].map(|text| ExtraField::parse(text).unwrap());
        let (plain, other) =
            (VenueProfile::default(), VenueProfile::new(&[], &[], &fields, &[21, 38, 54, 60, 207]));
        let (id, orig) = (IntId::parse(b"n").unwrap(), IntId::parse(b"o").unwrap());
        let names = |profile| RequestIds {
            cl_ord_id: &id,
            orig_cl_ord_id: Some(&orig),
            account: Some("acc"),
            profile,
        };
        let new = |profile, terms: &Terms| {
            body(|draft| order(draft, &names(profile), &reference, (terms, None), NOW))
        };
        let end = |profile| body(|draft| cancel(draft, &names(profile), &reference, &day, NOW));
        let start = "11=n|41=o|1=acc";
        let at = "20270115-08:00:00.000";
        for (text, expected) in [
            (new(&plain, &day), format!("21=1|55=ACME|207=XTST|54=2|60={at}|38=100|40=2|44=10.5|59=0")),
            (new(&plain, &dated), format!("21=1|55=ACME|207=XTST|54=2|60={at}|38=100|40=1|59=6|126={at}")),
            (new(&plain, &unknown), format!("21=1|55=[N/A]|54=2|60={at}|38=100|40=2|44=10.5|59=0")),
            (new(&other, &day), "55=ACME|54=2|38=100|40=2|44=10.5|59=0|25035=2|528=A".to_string()),
            (end(&plain), format!("55=ACME|207=XTST|54=2|60={at}|38=100")),
            (end(&other), "55=ACME".to_string()),
        ] {
            assert_eq!(text, format!("{start}|{expected}"));
        }
    }
}
