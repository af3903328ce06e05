//! Prices, quantities and money: 64-bit integers in units of 10⁻⁸. Products use 128 bits and are
//! rounded once, half away from zero. A result that does not fit is `None`, never a wrapped value.
//!
//! Rules: docs/domain.md#numbers.

use std::fmt;

use crate::text::{self, DECIMAL_BYTES_MAX, SCALE, TextError};

macro_rules! scaled {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(i64);

        impl $name {
            pub const ZERO: $name = $name(0);
            pub const MAX: $name = $name(i64::MAX);
            pub const MIN: $name = $name(i64::MIN);

            /// Creates a value from units of 10⁻⁸.
            pub const fn from_raw(raw: i64) -> $name {
                $name(raw)
            }

            /// Creates a value from a whole number; `None` if it is too large.
            pub const fn whole(value: i64) -> Option<$name> {
                match value.checked_mul(SCALE) {
                    Some(raw) => Some($name(raw)),
                    None => None,
                }
            }

            /// Returns the value in units of 10⁻⁸.
            pub const fn raw(self) -> i64 {
                self.0
            }

            pub fn parse(bytes: &[u8]) -> Result<$name, TextError> {
                text::parse_scaled(bytes).map($name)
            }

            pub fn checked_add(self, other: $name) -> Option<$name> {
                self.0.checked_add(other.0).map($name)
            }

            pub fn checked_sub(self, other: $name) -> Option<$name> {
                self.0.checked_sub(other.0).map($name)
            }

            pub fn checked_neg(self) -> Option<$name> {
                self.0.checked_neg().map($name)
            }

            /// Returns the magnitude; the most negative value becomes the largest.
            pub fn abs(self) -> $name {
                $name(self.0.saturating_abs())
            }

            pub fn is_zero(self) -> bool {
                self.0 == 0
            }

            pub fn is_positive(self) -> bool {
                self.0 > 0
            }

            pub fn is_negative(self) -> bool {
                self.0 < 0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut out = [0; DECIMAL_BYTES_MAX];
                let len = text::write_scaled(self.0, &mut out);
                f.pad(std::str::from_utf8(&out[..len]).expect("digits are ASCII"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }
    };
}

scaled!(
    /// A price per unit. It may be zero or negative, as for spreads and some futures.
    Price
);
scaled!(
    /// A quantity. Signed in positions and transactions.
    Qty
);
scaled!(
    /// An amount of one currency.
    Money
);
scaled!(
    /// Multiplier of one unit of quantity: 1 for a share, 50 for an index future.
    ContractSize
);

impl ContractSize {
    pub const ONE: ContractSize = ContractSize(SCALE);
}

/// An exact product of price and quantity, in units of 10⁻¹⁶: the sum of fills before rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Notional(i128);

impl Notional {
    pub const ZERO: Notional = Notional(0);

    pub fn of(price: Price, qty: Qty) -> Notional {
        Notional(price.0 as i128 * qty.0 as i128)
    }

    pub const fn from_raw(raw: i128) -> Notional {
        Notional(raw)
    }

    pub const fn raw(self) -> i128 {
        self.0
    }

    pub fn checked_add(self, other: Notional) -> Option<Notional> {
        self.0.checked_add(other.0).map(Notional)
    }

    pub fn checked_sub(self, other: Notional) -> Option<Notional> {
        self.0.checked_sub(other.0).map(Notional)
    }

    /// Returns the average price over a quantity; zero over nothing.
    pub fn average(self, qty: Qty) -> Price {
        if qty.0 == 0 {
            return Price::ZERO;
        }
        // Choice: an average always lies between two prices, so it always fits.
        Price(narrow(divide_by(self.0, qty.0)).unwrap_or(i64::MAX))
    }

    /// Returns the magnitude of the amount of money that a quantity costs.
    #[inline]
    pub fn value(price: Price, qty: Qty, size: ContractSize) -> Option<Money> {
        let exact = price.0.unsigned_abs() as u128 * qty.0.unsigned_abs() as u128;
        match unscale_common(exact) {
            Some(value) if size == ContractSize::ONE => Some(Money(value.cast_signed())),
            _ => Notional::of(price, qty).money(size).map(Money::abs),
        }
    }

    /// Returns the amount of money for a contract size.
    #[inline]
    pub fn money(self, size: ContractSize) -> Option<Money> {
        if size == ContractSize::ONE {
            return narrow(unscale(self.0)).map(Money);
        }
        let exact = self.0.checked_mul(size.0 as i128)?;
        narrow(divide_rounded(exact, SCALE as i128 * SCALE as i128)).map(Money)
    }
}

impl Money {
    /// Returns `rate` per unit of quantity, for the magnitude of `qty`.
    pub fn per_unit(rate: Money, qty: Qty) -> Option<Money> {
        narrow(unscale(rate.0 as i128 * (qty.0 as i128).abs())).map(Money)
    }

    /// Returns the share `part / whole` of this amount, rounded once. `whole` is not zero.
    pub fn share(self, part: Qty, whole: Qty) -> Option<Money> {
        assert!(!whole.is_zero(), "a share is of something");
        if part == whole {
            return Some(self);
        }
        narrow(divide_by(self.0 as i128 * part.0 as i128, whole.0)).map(Money)
    }

    /// Returns the price per unit of this amount over a quantity of contracts; `None` if the
    /// quantity is zero or the price does not fit.
    pub fn per(self, qty: Qty, size: ContractSize) -> Option<Price> {
        let units = qty.0 as i128 * size.0 as i128;
        if units == 0 {
            return None;
        }
        // self / 1e8 / (units / 1e16) in units of 1e-8: self × 1e16 / units.
        let exact = self.0 as i128 * (SCALE as i128 * SCALE as i128);
        narrow(divide_rounded(exact, units)).map(Price)
    }
}

impl Price {
    /// Returns this many hundredths of a percent of this price, rounded once.
    pub fn basis_points(self, bp: i64) -> Option<Price> {
        narrow(divide_rounded(self.0 as i128 * bp as i128, 10_000)).map(Price)
    }

    /// Returns whether this price is at most this many hundredths of a percent of `reference` away
    /// from it.
    pub fn is_within(self, bp: u32, reference: Price) -> bool {
        let distance = (self.0 as i128 - reference.0 as i128).abs();
        distance * 10_000 <= (reference.0 as i128).abs() * bp as i128
    }

    /// Returns the number of whole ticks; `None` if the price is not on the grid. `tick` is
    /// positive.
    pub fn ticks(self, tick: Price) -> Option<i64> {
        (self.0 % tick.0 == 0).then_some(self.0 / tick.0)
    }

    /// Returns the price of a number of ticks.
    pub fn from_ticks(ticks: i64, tick: Price) -> Option<Price> {
        ticks.checked_mul(tick.0).map(Price)
    }
}

impl Qty {
    pub fn min(self, other: Qty) -> Qty {
        Qty(self.0.min(other.0))
    }

    /// Returns the largest multiple of a step that is not above a quantity of zero or more.
    pub fn round_down(self, step: Qty) -> Qty {
        Qty(self.0 - self.0 % step.0)
    }
}

/// A step prepared so that a division by it takes one multiplication. A multiple times the inverse
/// of the step's odd part, modulo 2⁶⁴, gives its quotient; every other number gives a result too
/// large to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    inverse: u64,
    twos: u32,
    quotient_max: u64,
}

impl Grid {
    /// `step` is above zero.
    pub fn new(step: i64) -> Grid {
        assert!(step > 0, "a step goes forward");
        let twos = step.trailing_zeros();
        let odd = (step as u64) >> twos;
        // Each round doubles the number of correct bits, from the three that every odd number has.
        let inverse =
            (0..5).fold(odd, |inverse, _| inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse))));
        Grid { inverse, twos, quotient_max: u64::MAX / step as u64 }
    }

    /// Returns the number of steps in a value; `None` if it is not a multiple.
    #[inline]
    pub fn steps(&self, raw: i64) -> Option<i64> {
        let quotient = raw.unsigned_abs().wrapping_mul(self.inverse).rotate_right(self.twos);
        let signed = if raw < 0 { (quotient as i64).wrapping_neg() } else { quotient as i64 };
        (quotient <= self.quotient_max).then_some(signed)
    }
}

/// Divides by [`SCALE`], rounded half away from zero. It equals [`divide_rounded`], but common
/// amounts (below some 400,000) need no 128-bit division, which takes longer than all the rest of a
/// booking.
#[inline]
fn unscale(value: i128) -> i128 {
    let Some(rounded) = unscale_common(value.unsigned_abs()) else {
        return divide_rounded(value, SCALE as i128);
    };
    if value < 0 { -(rounded as i128) } else { rounded as i128 }
}

/// Divides a common amount by [`SCALE`], rounded half up; `None` for others.
#[inline]
fn unscale_common(magnitude: u128) -> Option<u64> {
    const POWER_OF_TWO: u32 = SCALE.trailing_zeros();
    const ODD: u64 = (SCALE >> POWER_OF_TWO) as u64;
    let quotient = u64::try_from(magnitude >> POWER_OF_TWO).ok()? / ODD;
    #[expect(clippy::cast_possible_truncation, reason = "the rest of a division is below the divisor")]
    let rest = (magnitude - quotient as u128 * SCALE as u128) as u64;
    Some(quotient + (rest >= SCALE as u64 / 2) as u64)
}

/// Returns the amount, or the nearest that 64 bits can hold.
#[inline]
pub(crate) fn saturated(amount: i128) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "the next line looks whether it was")]
    let low = amount as i64;
    // A branch that is hardly ever taken; `try_from` would compute both ends each time.
    if low as i128 == amount { low } else { end_of_range(amount < 0) }
}

#[cold]
fn end_of_range(is_negative: bool) -> i64 {
    if is_negative { i64::MIN } else { i64::MAX }
}

/// Divides by a number of 64 bits, rounded half away from zero. It equals [`divide_rounded`], and
/// takes a third of its instructions where the quotient without common powers of two needs no
/// 128-bit division.
#[inline]
fn divide_by(value: i128, by: i64) -> i128 {
    let (magnitude, divisor) = (value.unsigned_abs(), by.unsigned_abs());
    let twos = divisor.trailing_zeros() & 63;
    let Ok(reduced) = u64::try_from(magnitude >> twos) else {
        return divide_rounded(value, by as i128);
    };
    let quotient = reduced / (divisor >> twos);
    // The rest is below the divisor, so its lower 64 bits are all of it.
    #[expect(clippy::cast_possible_truncation, reason = "only the lower bits are needed")]
    let rest = (magnitude as u64).wrapping_sub(quotient.wrapping_mul(divisor));
    let rounded = quotient as i128 + (rest >= divisor - rest) as i128;
    if (value < 0) == (by < 0) { rounded } else { -rounded }
}

/// Divides, rounded half away from zero.
#[inline(never)]
fn divide_rounded(value: i128, by: i128) -> i128 {
    let quotient = quotient(value, by);
    let rest = value - quotient * by;
    let up = rest.unsigned_abs() >= by.unsigned_abs() - rest.unsigned_abs();
    match up && rest != 0 {
        true if (value < 0) == (by < 0) => quotient + 1,
        true => quotient - 1,
        false => quotient,
    }
}

/// Divides, rounded towards zero. Without their common powers of two most numbers have 64 bits, and
/// need no 128-bit division.
#[inline]
fn quotient(value: i128, by: i128) -> i128 {
    let (magnitude, divisor) = (value.unsigned_abs(), by.unsigned_abs());
    let twos = divisor.trailing_zeros();
    match (u64::try_from(magnitude >> twos), u64::try_from(divisor >> twos)) {
        (Ok(magnitude), Ok(divisor)) => {
            let quotient = (magnitude / divisor) as i128;
            if (value < 0) == (by < 0) { quotient } else { -quotient }
        }
        _ => value / by,
    }
}

fn narrow(value: i128) -> Option<i64> {
    i64::try_from(value).ok()
}

#[cfg(test)]
mod tests;
