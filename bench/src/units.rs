//! The workload's ticks and whole quantities in the engine's types: a tick is a hundredth of a
//! cent, a quantity a number of shares.

use pitlane_engine::id::AccountId;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::terms::Side;

use crate::workload::WorkloadSide;

/// A hundredth of a cent, so that the money of a long flow stays far from the end of its range.
pub const TICK: Price = Price::from_raw(10_000);
/// One share.
pub const LOT: Qty = Qty::from_raw(100_000_000);

#[inline]
pub fn qty(shares: u32) -> Qty {
    Qty::from_raw(shares as i64 * LOT.raw())
}

#[inline]
pub fn shares(qty: Qty) -> u64 {
    qty.raw() as u64 / LOT.raw() as u64
}

#[inline]
pub fn price(ticks: i32) -> Price {
    Price::from_raw(ticks as i64 * TICK.raw())
}

#[inline]
pub fn ticks(price: Price) -> u64 {
    price.raw() as u64 / TICK.raw() as u64
}

#[inline]
pub fn side(side: WorkloadSide) -> Side {
    match side {
        WorkloadSide::Buy => Side::Buy,
        WorkloadSide::Sell => Side::Sell,
    }
}

/// Returns the account of a side. Buys and sells have two accounts, so that the check for
/// self-trades runs and never hits.
#[inline]
pub fn account(side: WorkloadSide) -> AccountId {
    match side {
        WorkloadSide::Buy => AccountId(1),
        WorkloadSide::Sell => AccountId(2),
    }
}
