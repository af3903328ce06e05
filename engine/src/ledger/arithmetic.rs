//! Arithmetic of positions and cash: the effect of one transaction. Live bookings and recounts both
//! use it.

use crate::event::{Booking, PositionState};
use crate::number::{ContractSize, Money, Notional, Price, Qty};

/// Returns the change of the cash balance by a transaction.
pub(super) fn change(booking: &Booking, size: ContractSize) -> Money {
    if booking.security.is_none() {
        return Money::from_raw(booking.price.raw());
    }
    let value = Notional::of(booking.price, booking.qty).money(size);
    let cost = value.and_then(|value| value.checked_add(booking.commission));
    cost.and_then(Money::checked_neg).expect("what was counted once can be counted again")
}

/// Returns a position after a transaction of `qty` (signed) at `price`; `None` if it cannot be
/// counted.
pub fn after(held: &PositionState, qty: Qty, price: Price, size: ContractSize) -> Option<PositionState> {
    apply_trade(held, qty, price, size, Notional::of(price, qty).money(size)?)
}

/// Returns a position after a transaction whose value is known.
///
/// A transaction in the direction of the position adds to the cost. A transaction against it
/// removes a share of the cost, rounded once, so that a flat position has no cost; the proceeds
/// above that share are realized. A transaction through zero closes the position, and the rest
/// opens at the price.
#[inline(always)]
pub(super) fn apply_trade(
    held: &PositionState,
    qty: Qty,
    price: Price,
    size: ContractSize,
    value: Money,
) -> Option<PositionState> {
    let total = held.qty.checked_add(qty)?;
    let grows = held.qty.is_zero() || held.qty.is_negative() == qty.is_negative();
    if grows {
        return Some(PositionState {
            qty: total,
            cost: held.cost.checked_add(value)?,
            realized: held.realized,
        });
    }
    let turns = !total.is_zero() && total.is_negative() != held.qty.is_negative();
    if !turns {
        let closed_cost = held.cost.share(qty.checked_neg()?, held.qty)?;
        let gain = value.checked_neg()?.checked_sub(closed_cost)?;
        let cost = held.cost.checked_sub(closed_cost)?;
        return Some(PositionState { qty: total, cost, realized: held.realized.checked_add(gain)? });
    }
    let closing_value = Notional::of(price, held.qty.checked_neg()?).money(size)?;
    let gain = closing_value.checked_neg()?.checked_sub(held.cost)?;
    let cost = value.checked_sub(closing_value)?;
    Some(PositionState { qty: total, cost, realized: held.realized.checked_add(gain)? })
}
