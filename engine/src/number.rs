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
mod tests {
    use super::*;

    #[test]
    fn a_quotient_is_that_of_128_bits() {
        let edges = [1, 3, 10_000, SCALE as i128, 256 * 7, 1 << 63, u64::MAX as i128, 1 << 100, i128::MAX];
        let near = |n: i128| [n - 1, n, n.saturating_add(1), n.wrapping_mul(SCALE as i128)];
        let values: Vec<i128> =
            edges.into_iter().flat_map(near).flat_map(|n| [n, n.wrapping_neg()]).collect();
        for &value in &values {
            for &by in values.iter().filter(|by| **by != 0) {
                assert_eq!(quotient(value, by), value / by, "{value} / {by}");
                if let Some(short) = narrow(by) {
                    assert_eq!(divide_by(value, short), divide_rounded(value, by), "{value} / {by}");
                }
            }
        }
    }

    #[test]
    fn a_value_is_the_magnitude_of_the_money() {
        let edges = [0, 1, 49_999_999, 50_000_001, SCALE, 12_345_678_901, 1 << 40, i64::MAX, i64::MIN];
        let numbers: Vec<i64> = edges.into_iter().flat_map(|n| [n, n.wrapping_neg()]).collect();
        for &price in &numbers {
            for &qty in &numbers {
                for size in [ContractSize::ONE, ContractSize(50 * SCALE)] {
                    let (price, qty) = (Price(price), Qty(qty));
                    let expected = Notional::of(price, qty).money(size).map(Money::abs);
                    assert_eq!(Notional::value(price, qty, size), expected, "{price} × {qty}");
                }
            }
        }
    }

    #[test]
    fn a_grid_divides_as_division_does() {
        let steps =
            [1, 2, 3, 5, 7, 64, 100, 1_000_000, 100_000_000, 12_345_678, 1 << 40, i64::MAX, i64::MAX - 1];
        for step in steps {
            let grid = Grid::new(step);
            let near = |n: i64| [n.wrapping_sub(1), n, n.wrapping_add(1)];
            let multiples =
                [0, 1, 2, 3, 10, 99, i64::MAX / step].into_iter().filter_map(|n| step.checked_mul(n));
            let others = [i64::MIN, i64::MAX, 1 << 33, -5];
            for raw in multiples.chain(others).flat_map(near) {
                for raw in [raw, raw.wrapping_neg()] {
                    let expected = (raw % step == 0).then(|| raw / step);
                    assert_eq!(grid.steps(raw), expected, "{raw} by {step}");
                }
            }
        }
    }

    fn price(text: &str) -> Price {
        Price::parse(text.as_bytes()).unwrap()
    }

    fn qty(text: &str) -> Qty {
        Qty::parse(text.as_bytes()).unwrap()
    }

    fn money(text: &str) -> Money {
        Money::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn rounding_is_half_away_from_zero() {
        for (value, by, expected) in [
            (5, 10, 1),
            (-5, 10, -1),
            (4, 10, 0),
            (-4, 10, 0),
            (15, -10, -2),
            (14, -10, -1),
            (7, 7, 1),
            (-15, -10, 2),
        ] {
            assert_eq!(divide_rounded(value, by), expected, "{value}/{by}");
        }
    }

    #[test]
    fn fast_unscaling_agrees_with_division() {
        let mut value = 1i128;
        for step in 0..100_000u32 {
            value = value.wrapping_mul(0x2d99_787b_5b1a_1e6c_a50e_3d9b_9ad7_1a35).wrapping_add(0x1234_5677);
            let value = value >> (step % 127);
            assert_eq!(unscale(value), divide_rounded(value, SCALE as i128), "{value}");
        }
        for value in
            [0, 49_999_999, 50_000_000, -49_999_999, -50_000_000, i64::MAX as i128, i128::MAX, i128::MIN]
        {
            assert_eq!(unscale(value), divide_rounded(value, SCALE as i128), "{value}");
        }
    }

    #[test]
    fn notional_becomes_money_exactly() {
        let notional = Notional::of(price("101.25"), qty("-3"));
        assert_eq!(notional.money(ContractSize::whole(50).unwrap()), Some(money("-15187.5")));
        assert_eq!(notional.average(qty("-3")), price("101.25"));
        assert_eq!(Notional::ZERO.average(Qty::ZERO), Price::ZERO);
        let huge = Notional::of(Price::MAX, Qty::MAX);
        assert_eq!(huge.money(ContractSize::ONE), None);
        assert_eq!(huge.money(ContractSize::MAX), None);
        assert_eq!(huge.checked_add(huge).and_then(|n| n.checked_add(huge)), None);
        assert_eq!(huge.checked_sub(huge), Some(Notional::ZERO));
    }

    #[test]
    fn shares_and_averages_are_rounded_once() {
        assert_eq!(money("100").share(qty("1"), qty("3")), Some(money("33.33333333")));
        assert_eq!(money("200").share(qty("1"), qty("3")), Some(money("66.66666667")));
        assert_eq!(money("100").per(qty("3"), ContractSize::ONE), Some(price("33.33333333")));
        assert_eq!(money("100").per(Qty::ZERO, ContractSize::ONE), None);
        assert_eq!(Money::per_unit(money("0.005"), qty("-300")), Some(money("1.5")));
        assert_eq!(price("200").basis_points(-50), Some(price("-1")));
        for (near, bp) in [("201", 50), ("199", 50), ("200", 0)] {
            assert!(price(near).is_within(bp, price("200")));
        }
        assert!(!price("201.00000001").is_within(50, price("200")));
        assert!(!Price::MAX.is_within(u32::MAX, Price::ZERO));
    }

    #[test]
    fn the_tick_grid_is_exact() {
        assert_eq!(price("1.10005").ticks(price("0.00005")), Some(22_001));
        assert_eq!(price("1.10007").ticks(price("0.00005")), None);
        assert_eq!(Price::from_ticks(22_001, price("0.00005")), Some(price("1.10005")));
        assert_eq!(Price::from_ticks(i64::MAX, price("2")), None);
        let lots = Grid::new(qty("100").raw());
        assert!(lots.steps(qty("300").raw()).is_some());
        assert!(lots.steps(qty("350").raw()).is_none());
    }

    #[test]
    fn overflow_is_none_and_signs_are_known() {
        assert_eq!(Money::MAX.checked_add(Money::from_raw(1)), None);
        assert_eq!(Money::MIN.checked_sub(Money::from_raw(1)), None);
        assert_eq!(Qty::MIN.checked_neg(), None);
        assert_eq!(Qty::MIN.abs(), Qty::MAX);
        assert_eq!(Price::whole(i64::MAX), None);
        assert!(money("-1").is_negative() && money("1").is_positive() && Money::ZERO.is_zero());
        assert_eq!(format!("{:>6}|{:?}", money("1.5"), money("1.5")), "   1.5|1.5");
    }
}
