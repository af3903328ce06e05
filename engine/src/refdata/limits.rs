//! What a venue limits per order: the types it takes, and the smallest and largest value.
//!
//! Rules: docs/engine-rules.md#limits-of-the-venue.

use crate::number::Money;
use crate::reason::Reason;
use crate::terms::OrderKind;

/// Limits of a venue for one order. The default limits nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderLimits {
    pub min_notional: Option<NotionalLimit>,
    pub max_notional: Option<NotionalLimit>,
    /// Types of orders that may be sent.
    pub kinds: OrderKinds,
}

/// A bound of the value of one order, in the currency of the family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotionalLimit {
    /// Above zero.
    pub amount: Money,
    /// Whether it holds for orders without a limit price too: they reach the venue as market
    /// orders.
    pub to_market: bool,
}

/// A set of order types that is not empty. The default has all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OrderKinds(u8);

impl OrderLimits {
    pub const NONE: OrderLimits =
        OrderLimits { min_notional: None, max_notional: None, kinds: OrderKinds::ALL };

    /// Refuses an order of a type that the venue does not take, or whose value is out of bounds.
    /// An order without a known value passes.
    #[cold]
    pub fn check(&self, kind: OrderKind, value: Option<Money>) -> Result<(), Reason> {
        if !self.kinds.contains(kind) {
            return Err(Reason::VenueUnsupported);
        }
        let Some(value) = value else { return Ok(()) };
        let holds = |limit: &NotionalLimit| limit.to_market || kind.has_limit();
        if self.min_notional.filter(holds).is_some_and(|min| value < min.amount) {
            return Err(Reason::MinNotional);
        }
        if self.max_notional.filter(holds).is_some_and(|max| value > max.amount) {
            return Err(Reason::MaxNotional);
        }
        Ok(())
    }
}

impl OrderKinds {
    pub const ALL: OrderKinds = OrderKinds(0b1111);

    /// Returns the set of these types; `None` if there is none.
    pub fn of(kinds: impl IntoIterator<Item = OrderKind>) -> Option<OrderKinds> {
        let bits = kinds.into_iter().fold(0, |bits, kind| bits | 1 << kind as u8);
        OrderKinds::from_bits(bits)
    }

    pub fn contains(self, kind: OrderKind) -> bool {
        self.0 & 1 << kind as u8 != 0
    }

    pub fn iter(self) -> impl Iterator<Item = OrderKind> {
        OrderKind::ALL.into_iter().filter(move |kind| self.contains(*kind))
    }

    /// Returns one bit for each type, the lowest for the first of [`OrderKind::ALL`].
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Returns the set with these bits; `None` if it is empty or has an unknown type.
    pub fn from_bits(bits: u8) -> Option<OrderKinds> {
        (bits != 0 && bits <= OrderKinds::ALL.0).then_some(OrderKinds(bits))
    }
}

impl Default for OrderKinds {
    fn default() -> OrderKinds {
        OrderKinds::ALL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(amount: i64, to_market: bool) -> Option<NotionalLimit> {
        Some(NotionalLimit { amount: Money::from_raw(amount), to_market })
    }

    fn check(limits: &OrderLimits, kind: OrderKind, value: i64) -> Result<(), Reason> {
        limits.check(kind, Some(Money::from_raw(value)))
    }

    #[test]
    fn a_value_at_its_bound_passes() {
        let limits =
            OrderLimits { min_notional: bound(5, true), max_notional: bound(9, true), ..OrderLimits::NONE };
        for kind in OrderKind::ALL {
            assert_eq!(check(&limits, kind, 4), Err(Reason::MinNotional));
            assert_eq!(check(&limits, kind, 5), Ok(()));
            assert_eq!(check(&limits, kind, 9), Ok(()));
            assert_eq!(check(&limits, kind, 10), Err(Reason::MaxNotional));
            assert_eq!(limits.check(kind, None), Ok(()), "without a price there is nothing to compare");
            assert_eq!(check(&OrderLimits::NONE, kind, 0), Ok(()));
        }
    }

    #[test]
    fn orders_without_a_limit_price_have_bounds_of_their_own() {
        let limits =
            OrderLimits { min_notional: bound(5, false), max_notional: bound(9, true), ..OrderLimits::NONE };
        for kind in OrderKind::ALL {
            let refused = if kind.has_limit() { Err(Reason::MinNotional) } else { Ok(()) };
            assert_eq!(check(&limits, kind, 1), refused);
            assert_eq!(check(&limits, kind, 10), Err(Reason::MaxNotional));
        }
    }

    #[test]
    fn a_type_that_is_not_in_the_set_is_refused_with_any_value() {
        let kinds = OrderKinds::of([OrderKind::StopLimit, OrderKind::Limit]).unwrap();
        let limits = OrderLimits { kinds, ..OrderLimits::NONE };
        assert_eq!(kinds.iter().collect::<Vec<_>>(), [OrderKind::Limit, OrderKind::StopLimit]);
        for kind in OrderKind::ALL {
            let expected = if kind.has_limit() { Ok(()) } else { Err(Reason::VenueUnsupported) };
            assert_eq!(limits.check(kind, None), expected);
        }
        assert_eq!(OrderKinds::of(OrderKind::ALL), Some(OrderKinds::ALL));
        assert_eq!(
            (OrderKinds::of([]), OrderKinds::from_bits(0), OrderKinds::from_bits(16)),
            (None, None, None)
        );
    }

    #[test]
    fn a_set_of_types_has_each_that_was_named_once_or_twice() {
        let kinds = OrderKinds::of([OrderKind::Limit, OrderKind::Stop, OrderKind::Limit]).unwrap();
        let named: Vec<OrderKind> = kinds.iter().collect();
        assert!(named.len() == 2 && kinds.contains(OrderKind::Limit) && kinds.contains(OrderKind::Stop));
        assert_eq!(OrderKinds::of([]), None);
    }
}
