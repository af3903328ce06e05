//! Orders.

use pitlane_engine::id::Origin;
use pitlane_engine::refdata::RefData;
use pitlane_engine::terms::{ExecInst, OrderKind, Side, SpecialTerms, Status, Tif};
use pitlane_engine::view::OrderView;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::schema::{OrderKindSchema, SideSchema, StatusSchema, TifSchema};
use super::sender::{SenderVO, SentByVO};
use super::{Decimal, Moment, NamedValue};
use crate::codes::WireName;

/// An order in its current state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrderVO<'a> {
    /// The order's current id. A modification gives it a new one.
    pub int_id: &'a str,
    #[serde(rename = "type")]
    #[schema(value_type = OrderKindSchema)]
    pub kind: NamedValue<OrderKind>,
    #[schema(value_type = SideSchema)]
    pub side: NamedValue<Side>,
    /// Total quantity.
    pub quantity: Decimal,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Decimal>,
    /// Time in force.
    #[schema(value_type = TifSchema)]
    pub tif: NamedValue<Tif>,
    /// With GTD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tif_date: Option<Moment>,
    pub strategy_id: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy_name: Option<&'a str>,
    pub account_id: u16,
    pub security_id: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange_id: Option<u16>,
    /// Name of the adapter that leads to its venue: SIM for the simulated one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub venue: Option<&'a str>,
    /// Passed on to the venue.
    pub exchange_order: bool,
    /// Instructions for the venue (FIX 18): codes with a space between each two.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = &str)]
    pub exec_inst: Option<ExecInstText>,
    /// Smallest quantity to be filled (FIX 110).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_qty: Option<Decimal>,
    /// Largest quantity that the venue shows (FIX 111).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_floor: Option<Decimal>,
    #[schema(value_type = StatusSchema)]
    pub status: NamedValue<Status>,
    pub filled_quantity: Decimal,
    /// The quantity left in the market: zero once the order has ended.
    pub remaining_quantity: Decimal,
    /// Of all fills.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avg_price: Option<Decimal>,
    /// Of the latest fill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_quantity: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_price: Option<Decimal>,
    /// The id before the last modification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orig_int_id: Option<&'a str>,
    /// The reason of the status: a stable code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// REST, STRATEGY, SERVER, or `FIX:` and the session's name.
    #[schema(value_type = &str)]
    pub source: SourceName<'a>,
    /// Sender of the order. Absent if it was not recorded: an order of an earlier version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_by: Option<SenderVO>,
    /// Sender of the last modification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified_by: Option<SenderVO>,
    /// Sender of the cancel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canceled_by: Option<SenderVO>,
    /// The connection to its venue was lost before the venue answered; the status is the last one
    /// known.
    #[serde(skip_serializing_if = "is_false")]
    pub unknown: bool,
    /// Time of submission.
    pub date_time: Moment,
    pub last_update: Moment,
}

impl<'a> OrderVO<'a> {
    /// Returns the value object. `session` is the name of the order's FIX session, if known.
    pub fn of(
        order: &'a OrderView,
        session: Option<&'a str>,
        sent: SentByVO,
        reference: &'a RefData,
    ) -> OrderVO<'a> {
        let terms = &order.terms;
        let security = reference.security(terms.security);
        let exchange = security.map(|row| reference.exchange_of(row));
        let filled = !order.cum_qty.is_zero();
        let last = !order.last_qty.is_zero();
        let SpecialTerms { exec_inst, min_qty, max_floor } = order.special.unwrap_or_default();
        OrderVO {
            int_id: order.id.as_str(),
            kind: NamedValue(terms.kind),
            side: NamedValue(terms.side),
            quantity: terms.qty.into(),
            limit: terms.kind.has_limit().then(|| terms.limit.into()),
            stop: terms.kind.has_stop().then(|| terms.stop.into()),
            tif: NamedValue(terms.tif),
            tif_date: (terms.tif_date.0 != 0).then_some(Moment(terms.tif_date)),
            strategy_id: terms.strategy.0,
            strategy_name: reference.strategy(terms.strategy).map(|row| row.name.as_str()),
            account_id: terms.account.0,
            security_id: terms.security.0,
            symbol: security.map(|row| row.symbol.as_str()),
            exchange_id: exchange.map(|row| row.id.0),
            venue: exchange.map(|row| row.adapter_type.as_str()),
            exchange_order: terms.exchange_order,
            exec_inst: (!exec_inst.is_empty()).then_some(ExecInstText(exec_inst)),
            min_qty: min_qty.map(Decimal::from),
            max_floor: max_floor.map(Decimal::from),
            status: NamedValue(order.status),
            filled_quantity: order.cum_qty.into(),
            remaining_quantity: order.leaves_qty().into(),
            avg_price: filled.then(|| order.avg_price.into()),
            last_quantity: last.then(|| order.last_qty.into()),
            last_price: last.then(|| order.last_price.into()),
            orig_int_id: (!order.orig_id.is_none()).then(|| order.orig_id.as_str()),
            reason: Some(order.reason.code()).filter(|code| !code.is_empty()),
            source: SourceName { origin: order.source.origin, session },
            sent_by: sent.submitted,
            modified_by: sent.modified,
            canceled_by: sent.canceled,
            unknown: order.in_doubt,
            date_time: Moment(order.submitted),
            last_update: Moment(order.updated),
        }
    }
}

/// The codes of ExecInst as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecInstText(pub ExecInst);

impl Serialize for ExecInstText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// Origin of an order, with the name of its FIX session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceName<'a> {
    pub origin: Origin,
    pub session: Option<&'a str>,
}

impl Serialize for SourceName<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.session {
            Some(session) => serializer.collect_str(&format_args!("{}:{session}", self.origin.wire_name())),
            None => serializer.serialize_str(self.origin.wire_name()),
        }
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}
