//! Arithmetic of positions and cash: the effect of one transaction. Live bookings and recounts both
//! use it, so what was counted once can be counted again.

use crate::event::PositionState;
use crate::number::{ContractSize, Money, Notional, Price, Qty};

/// A transaction of a security whose value can be counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountedTrade {
    /// Signed.
    qty: Qty,
    price: Price,
    size: ContractSize,
    value: Money,
    /// Value and commission.
    pub cost: Money,
}

impl CountedTrade {
    /// Returns `None` if the value or the cost cannot be counted.
    #[inline(always)]
    pub(super) fn new(qty: Qty, price: Price, commission: Money, size: ContractSize) -> Option<CountedTrade> {
        let value = Notional::of(price, qty).money(size)?;
        Some(CountedTrade { qty, price, size, value, cost: value.checked_add(commission)? })
    }

    /// Returns the cash after it; `None` if it cannot be counted.
    #[inline(always)]
    pub(super) fn cash_after(&self, cash: Money) -> Option<Money> {
        cash.checked_sub(self.cost)
    }

    /// Returns a position after it; `None` if it cannot be counted.
    ///
    /// A transaction in the direction of the position adds to the cost. A transaction against it
    /// removes a share of the cost, rounded once, so that a flat position has no cost; the proceeds
    /// above that share are realized. A transaction through zero closes the position, and the rest
    /// opens at the price.
    #[inline(always)]
    pub(super) fn position_after(&self, held: &PositionState) -> Option<PositionState> {
        let CountedTrade { qty, price, size, value, .. } = *self;
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
}

/// Returns a position after a transaction of `qty` (signed) at `price`; `None` if it cannot be
/// counted.
pub fn after(held: &PositionState, qty: Qty, price: Price, size: ContractSize) -> Option<PositionState> {
    CountedTrade::new(qty, price, Money::ZERO, size)?.position_after(held)
}
