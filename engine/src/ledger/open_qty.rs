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

    pub fn add(&mut self, side: Side, qty: Qty) {
        self.checked_add(side, qty).expect("headroom is checked on submission");
    }

    /// Adds a quantity. Returns `None`, and adds nothing, if the sum would not fit.
    pub fn checked_add(&mut self, side: Side, qty: Qty) -> Option<()> {
        let place = self.place(side);
        *place = place.checked_add(qty)?;
        Some(())
    }

    pub fn take(&mut self, side: Side, qty: Qty) {
        let place = self.place(side);
        *place = place.checked_sub(qty).expect("what is open was added before");
        assert!(!place.is_negative(), "open quantities are never below zero");
    }

    fn place(&mut self, side: Side) -> &mut Qty {
        match side {
            Side::Buy => &mut self.buy,
            Side::Sell => &mut self.sell,
        }
    }
}
