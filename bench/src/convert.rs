//! Numbers of a measurement in other types: durations in nanoseconds, floats as whole numbers, and
//! ids and quantities of a workload in 32 bits.

use std::time::Duration;

use pitlane_engine::index::{index_u32, index_usize};

/// Returns a duration in nanoseconds, or the longest that 64 bits can hold.
#[inline]
pub fn duration_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the whole part of a number. A number beyond 64 bits gives the end of their range.
#[inline]
pub fn whole(number: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "the fraction is to be dropped")]
    let whole = number as i64;
    whole
}

/// Returns an order id or a quantity of a workload. Ids are bounded by
/// [`ORDER_ID_MAX`](crate::workload::ORDER_ID_MAX), and quantities have 32 bits.
#[inline]
pub fn workload_u32(number: u64) -> u32 {
    index_u32(index_usize(number))
}
