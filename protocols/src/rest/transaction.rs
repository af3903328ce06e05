//! Transactions: as they were booked, and as they are recorded by hand.

use std::fmt;

use pitlane_engine::command::{ExecRef, MovementKind};
use pitlane_engine::id::{Currency, IntId, SecurityId, TransactionId, Uuid};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::refdata::RefData;
use pitlane_engine::view::TransactionView;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::schema::MovementSchema;
use super::{Decimal, Moment, NamedValue};
use crate::codes::WireName;

/// A booked transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TransactionVO<'a> {
    pub id: u64,
    pub uuid: String,
    pub date_time: Moment,
    #[serde(rename = "type")]
    #[schema(value_type = MovementSchema)]
    pub kind: NamedValue<MovementKind>,
    pub strategy_id: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy_name: Option<&'a str>,
    pub account_id: u16,
    /// Of trades and expirations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_id: Option<u32>,
    /// Signed: above zero bought, below zero sold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantity: Option<Decimal>,
    /// Per unit for trades; the amount for movements of cash.
    pub price: Decimal,
    pub commission: Decimal,
    pub currency: &'a str,
    /// Id of its order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order_int_id: Option<&'a str>,
    /// The venue's own name for the execution, folded by its adapter; the simulated venue gives
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ext_id: Option<String>,
    /// A readable description.
    pub description: String,
}

impl<'a> TransactionVO<'a> {
    /// Returns the value object. `instance` is the installation's id, from which UUIDs are derived.
    pub fn of(row: &'a TransactionView, instance: u64, reference: &'a RefData) -> TransactionVO<'a> {
        TransactionVO {
            id: row.id.0,
            uuid: uuid_of(row.id, row.order_id, row.exec, instance).to_string(),
            date_time: Moment(row.at),
            kind: NamedValue(row.kind),
            strategy_id: row.strategy.0,
            strategy_name: reference.strategy(row.strategy).map(|row| row.name.as_str()),
            account_id: row.account.0,
            security_id: row.security.map(|id| id.0),
            quantity: row.security.map(|_| row.qty.into()),
            price: row.price.into(),
            commission: row.commission.into(),
            currency: row.currency.as_str(),
            order_int_id: (!row.order_id.is_none()).then(|| row.order_id.as_str()),
            ext_id: ext_id_of(row.order_id, row.exec).map(|id| id.to_string()),
            description: Story {
                kind: row.kind,
                qty: row.qty,
                security: row.security,
                price: row.price,
                currency: row.currency,
                reference,
            }
            .to_string(),
        }
    }
}

/// Returns the UUID. A movement keeps the UUID of its sender, which makes it idempotent; a venue's
/// execution is not a UUID.
pub(crate) fn uuid_of(id: TransactionId, order_id: IntId, exec: ExecRef, instance: u64) -> Uuid {
    let is_movement = order_id.is_none() && exec.0 != 0;
    if is_movement { Uuid(exec.0) } else { id.uuid(instance) }
}

/// Returns the venue's own name for an execution, if it gave one.
pub(crate) fn ext_id_of(order_id: IntId, exec: ExecRef) -> Option<ExtId> {
    (!order_id.is_none() && exec.0 != 0).then_some(ExtId(exec))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExtId(ExecRef);

impl fmt::Display for ExtId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0.0)
    }
}

/// Readable description of a transaction: `BUY 10 AAPL at 100.25 USD`, or `CREDIT 1000 USD`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Story<'a> {
    pub kind: MovementKind,
    pub qty: Qty,
    pub security: Option<SecurityId>,
    pub price: Price,
    pub currency: Currency,
    pub reference: &'a RefData,
}

impl fmt::Display for Story<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, price, currency) = (self.kind.wire_name(), self.price, self.currency);
        let Some(security) = self.security else { return write!(f, "{kind} {price} {currency}") };
        let symbol = self.reference.security(security).map_or("", |row| row.symbol.as_str());
        write!(f, "{kind} {} {symbol} at {price} {currency}", self.qty.abs())
    }
}

/// A transaction to be recorded by hand: a trade with `securityId`, `quantity` and `price`, or a
/// movement of cash with `price` (the amount) and `currency`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TransactionRequestVO {
    #[serde(rename = "type")]
    #[schema(value_type = MovementSchema)]
    pub kind: NamedValue<MovementKind>,
    /// Makes the call idempotent: the same UUID again changes nothing.
    pub uuid: Option<String>,
    /// The strategy, or `strategyName`; without both `SERVER`.
    pub strategy_id: Option<u16>,
    pub strategy_name: Option<String>,
    /// If absent, the only active account of the security's exchange; for cash the first active
    /// one.
    pub account_id: Option<u64>,
    pub security_id: Option<u32>,
    /// Above zero for BUY, above or below zero for SELL (a sale either way), signed for EXPIRATION
    /// and REBALANCE.
    pub quantity: Option<Decimal>,
    pub price: Decimal,
    /// Not below zero.
    pub commission: Option<Decimal>,
    pub currency: Option<String>,
}

/// Reads a UUID: 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12.
pub fn parse_uuid(text: &str) -> Option<Uuid> {
    let bytes = text.as_bytes();
    let is_dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    if bytes.len() != 36 || !bytes.iter().enumerate().all(|(at, octet)| is_dash(at) == (*octet == b'-')) {
        return None;
    }
    let mut value = 0u128;
    for digit in bytes.iter().filter(|octet| **octet != b'-') {
        value = value << 4 | (*digit as char).to_digit(16)? as u128;
    }
    Some(Uuid(value)).filter(|uuid| uuid.0 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_read_back_as_written() {
        let uuid = Uuid(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
        assert_eq!(parse_uuid(&uuid.to_string()), Some(uuid));
        assert_eq!(parse_uuid(&uuid.to_string().to_uppercase()), Some(uuid));
        for bad in [
            "",
            "0",
            "01234567-89ab-cdef-0123-456789abcde",
            "01234567-89ab-cdef-0123-456789abcdeg",
            "0123456789abcdef0123456789abcdef0000",
        ] {
            assert_eq!(parse_uuid(bad), None, "{bad}");
        }
        assert_eq!(parse_uuid("00000000-0000-0000-0000-000000000000"), None, "none is no name");
    }
}
