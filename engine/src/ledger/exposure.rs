//! An account's holdings of a security over all strategies, and the credit they use.

use super::OpenQty;
use crate::id::AccountId;
use crate::number::{Money, Qty};
use crate::prefetch::fetch;
use crate::terms::Side;

/// One account in one security, over all strategies: for its limits.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Exposure {
    pub account: AccountId,
    pub net: Qty,
    pub open: OpenQty,
    /// Cost of the position at average cost, signed like the position.
    pub cost: Money,
    /// Earnings of closed parts, less all commissions.
    pub gain: Money,
    /// Credit reserved for open orders, by side: each order at its whole cost.
    pub reserved: [Money; 2],
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
            reserved: [Money::ZERO; 2],
            used: 0,
        }
    }

    /// Prefetches its memory.
    #[inline]
    pub(super) fn fetch(&self) {
        fetch(&self.net);
        fetch(&self.used);
    }

    /// Reserves credit for orders of a side, or releases it if the amount is negative.
    #[inline]
    pub(crate) fn reserve(&mut self, side: Side, amount: Money) {
        let reserved = &mut self.reserved[side as usize];
        *reserved = reserved.checked_add(amount).expect("the gate has checked that it can be counted");
    }

    /// Returns the credit that the account uses through this security: the magnitude of the cost of
    /// its position, long or short, less the earnings of closed parts, plus the share of the credit
    /// reserved for open orders that opens or extends a position.
    #[inline]
    pub fn credit_used(&self) -> i128 {
        let held = self.cost.raw().unsigned_abs() as i128 - self.gain.raw() as i128;
        let [buys, sells] = self.reserved.map(|reserved| reserved.raw() as i128);
        if self.net.is_zero() {
            return held + buys + sells;
        }
        // Only the side against the position can reduce it.
        let (side, extends) = if self.net.is_positive() { (Side::Sell, buys) } else { (Side::Buy, sells) };
        let opens = self.opening_qty(side, Qty::ZERO);
        let opening = opening_share(self.reserved[side as usize], self.open.of(side), opens);
        held + extends + opening.raw() as i128
    }

    /// Recounts the credit in use, zero unless the security counts, and returns the change.
    #[inline]
    pub fn recount_credit(&mut self, counts: bool) -> i128 {
        let used = if counts { self.credit_used() } else { 0 };
        used - std::mem::replace(&mut self.used, used)
    }

    /// Recounts the credit in use after this much was reserved for orders of a side, or released
    /// if it is negative, and returns the change.
    #[inline]
    pub(crate) fn recount_reserve(&mut self, side: Side, amount: Money) -> i128 {
        if self.closable(side) > 0 {
            return self.recount_credit(true);
        }
        // All orders of the side open or extend a position, so that their whole reserve counts.
        let change = amount.raw() as i128;
        self.used += change;
        change
    }

    /// Returns by how much [`Exposure::credit_used`] grows when `qty` more of a side is open and
    /// `reserve` more is reserved for it; `None` if it cannot be counted.
    #[inline(always)]
    pub fn credit_growth(&self, side: Side, qty: Qty, reserve: Money) -> Option<Money> {
        let (before, open) = (self.reserved[side as usize], self.open.of(side));
        let (after, more_open) = (before.checked_add(reserve)?, open.checked_add(qty)?);
        if self.closable(side) == 0 {
            return Some(reserve);
        }
        let old = opening_share(before, open, self.opening_qty(side, Qty::ZERO));
        let new = opening_share(after, more_open, self.opening_qty(side, qty));
        new.checked_sub(old)
    }

    /// Returns how much of the open orders of a side, plus `more`, remains after the position is
    /// closed. Neither of the two is negative, so their sum has 64 bits.
    #[inline]
    pub fn opening_qty(&self, side: Side, more: Qty) -> u64 {
        let open = self.open.of(side).raw() as u64 + more.raw() as u64;
        open.saturating_sub(self.closable(side))
    }

    /// Returns how much of the position an order of this side can close.
    #[inline]
    fn closable(&self, side: Side) -> u64 {
        let is_against = if side == Side::Buy { self.net.is_negative() } else { self.net.is_positive() };
        if is_against { self.net.raw().unsigned_abs() } else { 0 }
    }
}

/// Returns the part of the credit reserved for the open orders of a side that belongs to the
/// `opening` quantity, rounded up: all orders of the side share equally in what only reduces.
#[inline]
fn opening_share(reserved: Money, open: Qty, opening: u64) -> Money {
    let open = open.raw() as u64;
    if opening >= open || !reserved.is_positive() {
        return reserved;
    }
    if opening == 0 {
        return Money::ZERO;
    }
    let share = (reserved.raw() as u128 * opening as u128).div_ceil(open as u128);
    Money::from_raw(i64::try_from(share).expect("a share is not above the whole"))
}
