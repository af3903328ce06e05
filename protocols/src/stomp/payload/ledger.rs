//! Transactions, positions and cash.

use pitlane_engine::event::{Booking, PositionState, Tick};
use pitlane_engine::id::{Currency, PositionId, SecurityId, StrategyId};
use pitlane_engine::number::{Money, Notional, Price};
use pitlane_engine::refdata::RefData;

use super::{EventStamp, begin};
use crate::codes::WireName;
use crate::json::Object;
use crate::rest::transaction::{Story, ext_id_of, uuid_of};

/// Writes a TransactionVO.
pub fn transaction(
    out: &mut Vec<u8>,
    stamp: EventStamp,
    booking: &Booking,
    instance: u64,
    reference: &RefData,
) {
    let mut object = begin(out, "TRANSACTION", stamp);
    object.number("id", booking.id.0);
    object.shown("uuid", uuid_of(booking.id, booking.order_id, booking.exec, instance));
    object.time("dateTime", stamp.at);
    object.text("transactionType", booking.kind.wire_name());
    strategy(&mut object, booking.strategy, reference);
    object.number("accountId", booking.account.0.into());
    if let Some(security) = booking.security {
        object.number("securityId", security.0.into());
        object.decimal("quantity", booking.qty.raw());
    }
    object.decimal("price", booking.price.raw());
    object.decimal("commission", booking.commission.raw());
    object.text("currency", booking.currency.as_str());
    if !booking.order_id.is_none() {
        object.text("orderIntId", booking.order_id.as_str());
    }
    if let Some(ext_id) = ext_id_of(booking.order_id, booking.exec) {
        object.shown("extId", ext_id);
    }
    let Booking { kind, qty, security, price, currency, .. } = *booking;
    object.shown("description", Story { kind, qty, security, price, currency, reference });
    object.end();
}

/// Writes a PositionVO, valued at the newest known tick.
pub fn position(
    out: &mut Vec<u8>,
    stamp: EventStamp,
    (holder, security): (StrategyId, SecurityId),
    state: &PositionState,
    tick: Option<&Tick>,
    reference: &RefData,
) {
    let mut object = begin(out, "POSITION", stamp);
    object.number("id", PositionId::new(holder, security).0);
    strategy(&mut object, holder, reference);
    object.number("securityId", security.0.into());
    let row = reference.security(security);
    if let Some(row) = row {
        object.text("symbol", &row.symbol);
    }
    object.decimal("quantity", state.qty.raw());
    object.decimal("realizedPL", state.realized.raw());
    if let Some(row) = row {
        let family = reference.family_of(row);
        let size = family.contract_size;
        if let Some(average) = state.cost.per(state.qty, size) {
            object.decimal("avgPrice", average.raw());
        }
        let price = tick.and_then(|tick| market_price(tick, state));
        if let Some(price) = price {
            object.decimal("marketPrice", price.raw());
        }
        let value = match state.qty.is_zero() {
            true => Some(Money::ZERO),
            false => price.and_then(|price| Notional::of(price, state.qty).money(size)),
        };
        if let Some(value) = value {
            object.decimal("marketValue", value.raw());
        }
        if let Some(unrealized) = value.and_then(|value| value.checked_sub(state.cost)) {
            object.decimal("unrealizedPL", unrealized.raw());
        }
        object.text("currency", family.currency.as_str());
    }
    object.end();
}

/// Writes the cash of a strategy in one currency over all shards, without an amount if the sum
/// overflows.
pub fn cash_balance(
    out: &mut Vec<u8>,
    stamp: EventStamp,
    holder: StrategyId,
    currency: Currency,
    amount: Option<Money>,
    reference: &RefData,
) {
    let mut object = begin(out, "CASH_BALANCE", stamp);
    strategy(&mut object, holder, reference);
    object.text("currency", currency.as_str());
    if let Some(amount) = amount {
        object.decimal("amount", amount.raw());
    }
    object.end();
}

/// Returns the market price: long at the bid, short at the ask, and the last price without a quote
/// or position.
fn market_price(tick: &Tick, state: &PositionState) -> Option<Price> {
    let last = tick.traded.then_some(tick.last);
    let quote = match state.qty.raw() {
        0 => None,
        1.. => (!tick.bid_size.is_zero()).then_some(tick.bid),
        _ => (!tick.ask_size.is_zero()).then_some(tick.ask),
    };
    quote.or(last)
}

fn strategy(object: &mut Object<'_>, strategy: StrategyId, reference: &RefData) {
    object.number("strategyId", strategy.0.into());
    if let Some(row) = reference.strategy(strategy) {
        object.text("strategyName", &row.name);
    }
}
