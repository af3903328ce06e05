//! Quantities of open orders, by side.

use crate::number::Qty;
use crate::terms::Side;

/// Quantities of open orders, by side. Invariant: never below zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenQty {
    pub buy: Qty,
    pub sell: Qty,
}

impl OpenQty {
    pub fn of(&self, side: Side) -> Qty {
        match side {
            Side::Buy => self.buy,
            Side::Sell => self.sell,
        }
    }

    /// Changes the quantity of a side. What is added has headroom, which was checked before; what
    /// is taken was added before.
    #[inline]
    pub fn change(&mut self, side: Side, by: Qty) {
        let place = self.place(side);
        *place = place.checked_add(by).expect("headroom is checked on submission");
        assert!(!place.is_negative(), "open quantities are never below zero");
    }

    /// Adds a quantity. Returns `None`, and adds nothing, if the sum would not fit.
    pub fn checked_add(&mut self, side: Side, qty: Qty) -> Option<()> {
        let place = self.place(side);
        *place = place.checked_add(qty)?;
        Some(())
    }

    fn place(&mut self, side: Side) -> &mut Qty {
        match side {
            Side::Buy => &mut self.buy,
            Side::Sell => &mut self.sell,
        }
    }
}
