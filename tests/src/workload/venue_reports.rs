//! Reports of external venues, most of them about orders that they do not fit.

use pitlane_engine::command::{ExecRef, VenueFee, VenueReport, VenueState};
use pitlane_engine::number::{Money, Price, Qty};
use pitlane_engine::reason::Reason;

use super::ActionGenerator;
use crate::test_market;

impl ActionGenerator {
    pub(super) fn report(&mut self) -> VenueReport {
        let reason = self.dice.pick(&[Reason::VenueRejected, Reason::VenueCancelled, Reason::PriceBand]);
        let security = test_market::ABROAD[0];
        let (qty, price) = (self.qty(security), self.price(security));
        match self.dice.below(30) {
            0..=4 => VenueReport::Accepted,
            5 if self.dice.percent(50) => VenueReport::Rejected(Reason::VenueUnavailable),
            5 => VenueReport::Rejected(reason),
            6..=9 => VenueReport::Filled { exec: self.exec(), qty, price },
            10 => {
                let currency = test_market::currency(self.dice.pick(&["USD", "BNB", "ALT1"]));
                let amount =
                    Money::from_raw(i64::try_from(self.dice.below(1_000)).expect("it is small") - 100);
                let (cum, fee) = (self.qty(security), VenueFee { amount, currency });
                VenueReport::FilledWithFee { exec: self.exec(), qty, price, cum, fee }
            }
            11 | 12 => VenueReport::FilledTo { exec: self.exec(), qty, price, cum: self.qty(security) },
            13 => VenueReport::Canceled(reason),
            14 => VenueReport::Expired(Reason::ExpiredDay),
            15 if self.dice.percent(50) => VenueReport::CancelRefused(Reason::UnknownOrder),
            15 => VenueReport::CancelRefused(reason),
            16 | 17 => VenueReport::Replaced,
            18 if self.dice.percent(50) => VenueReport::ReplaceRefused(Reason::OrderFinished),
            18 => VenueReport::ReplaceRefused(reason),
            19 => VenueReport::Busted { exec: self.old_exec() },
            20 => VenueReport::Corrected { exec: self.old_exec(), qty, price },
            21..=23 => {
                let is_open = self.dice.percent(70);
                let (qty, price) =
                    if self.dice.percent(50) { (Qty::ZERO, Price::ZERO) } else { (qty, price) };
                VenueReport::Amended { exec_ref: self.old_exec(), exec: self.exec(), qty, price, is_open }
            }
            24 => VenueReport::Unsure,
            25..=27 => {
                let state = self.dice.pick(&[
                    VenueState::Open,
                    VenueState::Open,
                    VenueState::Filled,
                    VenueState::Canceled(Reason::VenueCancelled),
                    VenueState::Expired(Reason::ExpiredDay),
                    VenueState::Rejected(Reason::UnknownOrder),
                ]);
                let cum = if self.dice.percent(30) { Qty::ZERO } else { qty };
                let average = if self.dice.percent(10) { Price::ZERO } else { price };
                VenueReport::Standing { cum, average, state }
            }
            _ => VenueReport::Reconciled,
        }
    }

    fn exec(&mut self) -> ExecRef {
        if self.dice.percent(10) {
            return self.old_exec();
        }
        self.execs += 1;
        ExecRef(self.execs as u128)
    }

    fn old_exec(&mut self) -> ExecRef {
        ExecRef(self.dice.below(self.execs + 1) as u128)
    }
}
