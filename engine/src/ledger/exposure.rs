//! An account's holdings of a security over all strategies, and the credit they use.

use super::OpenQty;
use crate::id::AccountId;
use crate::number::{Money, Qty};
use crate::terms::Side;

/// One account in one security, over all strategies: for its limits.
#[derive(Clone, Copy, Debug)]
pub struct Exposure {
    pub account: AccountId,
    pub net: Qty,
    pub open: OpenQty,
    /// Cost of the position at average cost, signed like the position.
    pub cost: Money,
    /// Earnings of closed parts, less all commissions.
    pub gain: Money,
    /// Credit reserved for open orders, by side: each order at its whole cost.
    pub aside: [Money; 2],
    /// [`Exposure::credit_used`] as the account's guard counts it; zero where the security does not
    /// count.
    pub used: i128,
}

impl Exposure {
    pub(super) fn new(account: AccountId) -> Exposure {
        Exposure {
            account,
            net: Qty::ZERO,
            open: OpenQty::default(),
            cost: Money::ZERO,
            gain: Money::ZERO,
            aside: [Money::ZERO; 2],
            used: 0,
        }
    }

    /// Returns the credit that the account uses through this security: the magnitude of the cost of
    /// its position, long or short, less the earnings of closed parts, plus the share of the credit
    /// reserved for open orders that opens or extends a position.
    pub fn credit_used(&self) -> i128 {
        let held = self.cost.raw().unsigned_abs() as i128 - self.gain.raw() as i128;
        let opening = |side: Side| {
            let opens = self.opening_qty(side, Qty::ZERO);
            opening_share(self.aside[side as usize], self.open.of(side), opens)
        };
        held + opening(Side::Buy) + opening(Side::Sell)
    }

    /// Returns by how much [`Exposure::credit_used`] grows when `qty` more of a side is open and
    /// `aside` more is reserved for it; `None` if it cannot be counted.
    pub fn credit_growth(&self, side: Side, qty: Qty, aside: Money) -> Option<Money> {
        let before = self.aside[side as usize];
        let open = self.open.of(side);
        let old = opening_share(before, open, self.opening_qty(side, Qty::ZERO));
        let (after, more_open) = (before.checked_add(aside)?, open.checked_add(qty)?);
        let new = opening_share(after, more_open, self.opening_qty(side, qty));
        i64::try_from(new - old).ok().map(Money::from_raw)
    }

    /// Returns how much of the open orders of a side, plus `more`, remains after the position is
    /// closed.
    pub fn opening_qty(&self, side: Side, more: Qty) -> i128 {
        let open = self.open.of(side).raw() as i128 + more.raw() as i128;
        let net = self.net.raw() as i128;
        let closable = if side == Side::Buy { -net } else { net };
        (open - closable.max(0)).max(0)
    }
}

/// Returns the part of the credit reserved for the open orders of a side that belongs to the
/// `opening` quantity, rounded up: all orders of the side share equally in what only reduces.
fn opening_share(aside: Money, open: Qty, opening: i128) -> i128 {
    let (aside, open) = (aside.raw() as i128, open.raw() as i128);
    if opening >= open || aside <= 0 {
        return aside;
    }
    if opening == 0 {
        return 0;
    }
    (aside * opening + open - 1) / open
}
