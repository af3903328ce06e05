//! Terms of orders: sides, types, times in force, statuses.

mod special;

pub use self::special::{
    AnnouncedTerms, EXEC_INST_CODES_MAX, ExecInst, OrderSpecialTerms, ReportedTerms, SpecialTerms,
    SpecialTermsTable,
};

use crate::id::{AccountId, SecurityId, StrategyId};
use crate::number::{Price, Qty};
use crate::time::Timestamp;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    #[default]
    Buy,
    Sell,
}

impl Side {
    pub const BOTH: [Side; 2] = [Side::Buy, Side::Sell];

    pub fn opposite(self) -> Side {
        match self {
            Side::Buy => Side::Sell,
            Side::Sell => Side::Buy,
        }
    }

    /// Returns the quantity with its sign in a position.
    pub fn signed(self, qty: Qty) -> Qty {
        match self {
            Side::Buy => qty,
            Side::Sell => Qty::from_raw(-qty.raw()),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum OrderKind {
    #[default]
    Market,
    Limit,
    Stop,
    StopLimit,
}

impl OrderKind {
    pub const ALL: [OrderKind; 4] =
        [OrderKind::Market, OrderKind::Limit, OrderKind::Stop, OrderKind::StopLimit];

    pub fn has_limit(self) -> bool {
        matches!(self, OrderKind::Limit | OrderKind::StopLimit)
    }

    pub fn has_stop(self) -> bool {
        matches!(self, OrderKind::Stop | OrderKind::StopLimit)
    }
}

/// Time in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tif {
    #[default]
    Day,
    Gtc,
    /// At the opening (FIX 2, OPG).
    Ato,
    Ioc,
    Fok,
    Gtd,
    /// At the close.
    Atc,
}

impl Tif {
    pub const ALL: [Tif; 7] = [Tif::Day, Tif::Gtc, Tif::Ato, Tif::Ioc, Tif::Fok, Tif::Gtd, Tif::Atc];

    /// Returns whether the unfilled rest is cancelled at once.
    pub fn is_immediate(self) -> bool {
        matches!(self, Tif::Ioc | Tif::Fok)
    }

    /// Returns whether it trades in a call auction only.
    pub fn is_auction(self) -> bool {
        matches!(self, Tif::Ato | Tif::Atc)
    }
}

/// Terms of an order. Prices that a type does not have are zero and ignored; `limit_given` and
/// `stop_given` say whether they were given at all, so that a superfluous price is refused rather
/// than ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    pub qty: Qty,
    pub limit: Price,
    pub stop: Price,
    /// With GTD, otherwise zero.
    pub tif_date: Timestamp,
    pub security: SecurityId,
    pub strategy: StrategyId,
    pub account: AccountId,
    pub side: Side,
    pub kind: OrderKind,
    pub tif: Tif,
    pub limit_given: bool,
    pub stop_given: bool,
    /// Passed on to the venue (FIX 7003).
    pub exchange_order: bool,
    /// Closes a position: asks for no more than there is to close when it arrives.
    pub reduce_only: bool,
    /// Whether the order has [`SpecialTerms`], which are stored beside it.
    pub special: bool,
}

/// The terms that a modification changes; the others stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    named: u8,
    tif: Tif,
    qty: Qty,
    limit: Price,
    stop: Price,
    tif_date: Timestamp,
}

impl Changes {
    const QTY: u8 = 1;
    const LIMIT: u8 = 2;
    const STOP: u8 = 4;
    const TIF: u8 = 8;
    const TIF_DATE: u8 = 16;
    const SPECIAL: u8 = 32;
    const SPECIAL_GIVEN: u8 = 64;

    pub fn with_qty(mut self, qty: Qty) -> Changes {
        self.named |= Changes::QTY;
        self.qty = qty;
        self
    }

    pub fn with_limit(mut self, limit: Price) -> Changes {
        self.named |= Changes::LIMIT;
        self.limit = limit;
        self
    }

    pub fn with_stop(mut self, stop: Price) -> Changes {
        self.named |= Changes::STOP;
        self.stop = stop;
        self
    }

    pub fn with_tif(mut self, tif: Tif) -> Changes {
        self.named |= Changes::TIF;
        self.tif = tif;
        self
    }

    pub fn with_tif_date(mut self, date: Timestamp) -> Changes {
        self.named |= Changes::TIF_DATE;
        self.tif_date = date;
        self
    }

    /// Replaces the [`SpecialTerms`] by those sent before this modification, or removes them.
    pub fn with_special(mut self, is_given: bool) -> Changes {
        self.named &= !Changes::SPECIAL_GIVEN;
        self.named |= Changes::SPECIAL | if is_given { Changes::SPECIAL_GIVEN } else { 0 };
        self
    }

    pub fn qty(&self) -> Option<Qty> {
        (self.named & Changes::QTY != 0).then_some(self.qty)
    }

    pub fn limit(&self) -> Option<Price> {
        (self.named & Changes::LIMIT != 0).then_some(self.limit)
    }

    pub fn stop(&self) -> Option<Price> {
        (self.named & Changes::STOP != 0).then_some(self.stop)
    }

    pub fn tif(&self) -> Option<Tif> {
        (self.named & Changes::TIF != 0).then_some(self.tif)
    }

    pub fn tif_date(&self) -> Option<Timestamp> {
        (self.named & Changes::TIF_DATE != 0).then_some(self.tif_date)
    }

    /// Returns whether the order has [`SpecialTerms`] after this modification; `None` if it leaves
    /// them as they are.
    pub fn special(&self) -> Option<bool> {
        (self.named & Changes::SPECIAL != 0).then_some(self.named & Changes::SPECIAL_GIVEN != 0)
    }

    /// Returns the terms after this modification. A time in force other than GTD drops the old
    /// date.
    pub fn applied_to(&self, terms: &Terms) -> Terms {
        let mut new = *terms;
        new.qty = self.qty().unwrap_or(terms.qty);
        if let Some(limit) = self.limit() {
            (new.limit, new.limit_given) = (limit, true);
        }
        if let Some(stop) = self.stop() {
            (new.stop, new.stop_given) = (stop, true);
        }
        if let Some(tif) = self.tif() {
            new.tif = tif;
            if tif != Tif::Gtd {
                new.tif_date = Timestamp::ZERO;
            }
        }
        new.tif_date = self.tif_date().unwrap_or(new.tif_date);
        new.special = self.special().unwrap_or(new.special);
        new
    }
}

/// The published status of an order: derived, never stored. See [`crate::order`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    #[default]
    PendingNew,
    New,
    PartiallyFilled,
    Filled,
    PendingCancel,
    Canceled,
    PendingReplace,
    Rejected,
    Expired,
}

impl Status {
    pub const ALL: [Status; 9] = [
        Status::PendingNew,
        Status::New,
        Status::PartiallyFilled,
        Status::Filled,
        Status::PendingCancel,
        Status::Canceled,
        Status::PendingReplace,
        Status::Rejected,
        Status::Expired,
    ];

    /// Returns whether the order has ended.
    pub fn is_finished(self) -> bool {
        matches!(self, Status::Filled | Status::Canceled | Status::Rejected | Status::Expired)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_that_a_modification_does_not_name_stay() {
        let terms = Terms {
            qty: Qty::from_raw(5),
            limit: Price::from_raw(7),
            limit_given: true,
            tif: Tif::Gtd,
            tif_date: Timestamp(9),
            ..Terms::default()
        };
        assert_eq!(Changes::default().applied_to(&terms), terms);
        let changed = Changes::default().with_qty(Qty::from_raw(6)).with_tif(Tif::Day).applied_to(&terms);
        assert_eq!(
            changed,
            Terms { qty: Qty::from_raw(6), tif: Tif::Day, tif_date: Timestamp::ZERO, ..terms }
        );
        let all = Changes::default()
            .with_limit(Price::from_raw(8))
            .with_stop(Price::from_raw(1))
            .with_tif_date(Timestamp(10))
            .applied_to(&terms);
        assert_eq!(
            (all.limit, all.stop, all.stop_given, all.tif_date.0),
            (Price::from_raw(8), Price::from_raw(1), true, 10)
        );
        let with = Changes::default().with_special(true).applied_to(&terms);
        assert_eq!(with, Terms { special: true, ..terms });
        assert_eq!(Changes::default().applied_to(&with), with);
        assert_eq!(Changes::default().with_special(true).with_special(false).applied_to(&with), terms);
    }

    #[test]
    fn order_types_and_times_in_force_have_their_properties() {
        assert!(OrderKind::StopLimit.has_limit() && OrderKind::StopLimit.has_stop());
        assert!(!OrderKind::Market.has_limit() && !OrderKind::Limit.has_stop());
        assert!(Tif::Fok.is_immediate() && Tif::Atc.is_auction() && !Tif::Gtc.is_auction());
        assert_eq!(Side::Sell.signed(Qty::from_raw(3)), Qty::from_raw(-3));
        assert_eq!(Side::Sell.opposite(), Side::Buy);
        assert_eq!(Status::ALL.iter().filter(|s| s.is_finished()).count(), 4);
    }
}
