//! Price of an option that follows its underlying: the intrinsic value, and a time value that is
//! largest at the strike and falls with the distance from it. No model of markets, but the shape is
//! right: the price never falls when the option gets better, its delta is one half at the strike,
//! and goes to zero and one away from it.
//!
//! ```text
//! time value = 2a² / (2a + distance)        a: the time value at the strike
//! ```

use crate::number::Price;
use crate::refdata::{OptionKind, Security};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OptionPrice {
    kind: OptionKind,
    strike: i64,
    /// Time value at the strike, above zero.
    at_strike: i64,
}

impl OptionPrice {
    /// Creates the price function that gives `start` when the underlying is at `underlying`.
    /// Returns `None` if the security is no option, or if its start price is below the intrinsic
    /// value.
    pub(super) fn new(security: &Security, start: Price, underlying: Price) -> Option<OptionPrice> {
        let (kind, strike) = (security.option?, security.strike?.raw());
        let free = OptionPrice { kind, strike, at_strike: 1 };
        let time_value =
            start.raw().checked_sub(free.intrinsic(underlying.raw())).filter(|value| *value > 0)?;
        let time_value = time_value as i128;
        let distance = strike.abs_diff(underlying.raw()) as i128;
        let root = (time_value * time_value + 2 * time_value * distance).isqrt();
        let at_strike = i64::try_from((time_value + root) / 2).unwrap_or(i64::MAX).max(1);
        Some(OptionPrice { at_strike, ..free })
    }

    /// Returns the price at a price of the underlying, in raw units.
    pub(super) fn at(&self, underlying: i64) -> i64 {
        let (a, distance) = (self.at_strike as i128, self.strike.abs_diff(underlying) as i128);
        let time_value = i64::try_from(2 * a * a / (2 * a + distance)).unwrap_or(i64::MAX);
        self.intrinsic(underlying).saturating_add(time_value)
    }

    fn intrinsic(&self, underlying: i64) -> i64 {
        let value = match self.kind {
            OptionKind::Call => underlying.saturating_sub(self.strike),
            OptionKind::Put => self.strike.saturating_sub(underlying),
        };
        value.max(0)
    }
}
