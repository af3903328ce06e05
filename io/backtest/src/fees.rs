//! Fees by tier: the more a strategy has traded in the month, the lower its rates. Makers and
//! takers have different rates, and a maker's may be a rebate.
//!
//! A fill is that of a taker if it comes in the same step as the acceptance, the replacement or the
//! trigger of its order: a step is one row of data or one due time. An order that has rested before
//! is a maker.

use std::collections::{BTreeMap, VecDeque};

use pitlane_config::{FeeBasis, FeeTier, SimulationConfig};
use pitlane_engine::command::{Movement, MovementKind};
use pitlane_engine::event::Booking;
use pitlane_engine::id::{OrderHandle, StrategyId};
use pitlane_engine::number::{Money, Price, Qty};

use super::sampling::Month;

/// One basis point of one unit of money, in the product of two numbers of eight decimals.
const BASIS_POINT: i128 = 10_000 * 100_000_000;

#[derive(Debug)]
pub(crate) struct FeeSchedule {
    basis: FeeBasis,
    /// In order of the amount from which they apply; the first applies from zero.
    tiers: Vec<FeeTier>,
    /// Amount that each strategy has traded in its last month.
    traded: BTreeMap<StrategyId, (Month, i128)>,
    step: u64,
    /// Step in which an order arrived at the venue, until the shard has forgotten the order.
    arrivals: BTreeMap<OrderHandle, u64>,
    /// Fees that are not yet booked.
    movements: VecDeque<Movement>,
}

impl FeeSchedule {
    /// Returns the schedule of the settings; `None` if the commission of the reference data
    /// applies.
    pub(crate) fn of(settings: &SimulationConfig) -> Option<FeeSchedule> {
        let tiers = settings.fee_tiers.clone();
        (!tiers.is_empty()).then(|| FeeSchedule {
            basis: settings.fee_basis,
            tiers,
            traded: BTreeMap::new(),
            step: 0,
            arrivals: BTreeMap::new(),
            movements: VecDeque::new(),
        })
    }

    #[inline]
    pub(crate) fn begin_step(&mut self) {
        self.step += 1;
    }

    pub(crate) fn note_arrival(&mut self, order: OrderHandle) {
        self.arrivals.insert(order, self.step);
    }

    pub(crate) fn forget(&mut self, order: OrderHandle) {
        self.arrivals.remove(&order);
    }

    /// Charges a fill and returns its fee in the currency of the security. `value` is the absolute
    /// value of the fill in that currency, `in_base` in the base currency.
    pub(crate) fn charge(
        &mut self,
        booking: &Booking,
        value: Money,
        in_base: Money,
        month: Month,
    ) -> Option<Money> {
        if booking.order == OrderHandle::NONE {
            return None;
        }
        let amount = match self.basis {
            FeeBasis::Value => i128::from(in_base.raw()),
            FeeBasis::Quantity => i128::from(booking.qty.abs().raw()),
        };
        let (last, traded) = self.traded.entry(booking.strategy).or_insert((month, 0));
        if *last != month {
            (*last, *traded) = (month, 0);
        }
        let tier = self.tiers.iter().rfind(|tier| i128::from(tier.from.raw()) <= *traded)?;
        *traded += amount;
        let is_taker = self.arrivals.get(&booking.order).is_none_or(|step| *step == self.step);
        let rate = if is_taker { tier.taker } else { tier.maker };
        let fee = match self.basis {
            FeeBasis::Value => basis_points(value, rate)?,
            FeeBasis::Quantity => Money::per_unit(rate, booking.qty.abs())?,
        };
        if !fee.is_zero() {
            self.movements.push_back(Movement {
                kind: if fee.is_positive() { MovementKind::Fees } else { MovementKind::Refund },
                strategy: booking.strategy,
                account: booking.account,
                security: None,
                qty: Qty::ZERO,
                price: Price::from_raw(fee.abs().raw()),
                commission: Money::ZERO,
                currency: booking.currency,
                uuid: Default::default(),
            });
        }
        Some(fee)
    }

    /// Returns the next fee that must be booked.
    pub(crate) fn poll_movement(&mut self) -> Option<Movement> {
        self.movements.pop_front()
    }
}

/// Returns so many basis points of an amount, rounded half away from zero.
fn basis_points(value: Money, rate: Money) -> Option<Money> {
    let product = i128::from(value.raw()) * i128::from(rate.raw());
    let half = if product < 0 { -BASIS_POINT / 2 } else { BASIS_POINT / 2 };
    i64::try_from((product + half) / BASIS_POINT).ok().map(Money::from_raw)
}

#[cfg(test)]
mod tests {
    use pitlane_config::Config;
    use pitlane_engine::event::PositionState;
    use pitlane_engine::id::{AccountId, IntId, SecurityId, ShardId, TransactionId};
    use pitlane_engine::time::Timestamp;

    use super::*;
    use crate::sampling::Months;

    fn money(text: &str) -> Money {
        Money::parse(text.as_bytes()).unwrap()
    }

    fn schedule(basis: FeeBasis) -> FeeSchedule {
        let mut settings = Config::default().simulation;
        let tier =
            |from, maker, taker| FeeTier { from: money(from), maker: money(maker), taker: money(taker) };
        settings.fee_basis = basis;
        settings.fee_tiers = vec![tier("0", "1", "2.5"), tier("1000", "-0.5", "2")];
        FeeSchedule::of(&settings).unwrap()
    }

    fn fill(slot: u32, qty: i64) -> Booking {
        Booking {
            id: TransactionId(1),
            order: OrderHandle::new(ShardId(0), 0, slot),
            order_id: IntId::NONE,
            exec: Default::default(),
            kind: MovementKind::Buy,
            strategy: StrategyId(1),
            account: AccountId(1),
            security: Some(SecurityId(1)),
            qty: Qty::whole(qty).unwrap(),
            price: Price::ZERO,
            commission: Money::ZERO,
            currency: Default::default(),
            position: PositionState::default(),
            cash: Money::ZERO,
        }
    }

    #[test]
    fn the_tier_follows_the_value_of_the_month_and_makers_pay_less() {
        let mut fees = schedule(FeeBasis::Value);
        let mut months = Months::default();
        let (one, two) = (months.of(Timestamp(0)), months.of(Timestamp(40 * 86_400_000_000_000)));
        let order = |slot| OrderHandle::new(ShardId(0), 0, slot);
        fees.note_arrival(order(1));
        let charge = |fees: &mut FeeSchedule, month| {
            fees.charge(&fill(1, 10), money("800"), money("800"), month).unwrap()
        };
        assert_eq!(charge(&mut fees, one), money("0.2"), "a taker of the first tier");
        fees.begin_step();
        assert_eq!(charge(&mut fees, one), money("0.08"), "a maker, still below 1000");
        assert_eq!(charge(&mut fees, one), money("-0.04"), "a rebate of the second tier");
        assert_eq!(charge(&mut fees, two), money("0.08"), "a new month begins at the first tier");
        fees.forget(order(1));
        assert_eq!(charge(&mut fees, two), money("0.2"), "unknown orders are takers");
        let kinds: Vec<MovementKind> = std::iter::from_fn(|| fees.poll_movement()).map(|m| m.kind).collect();
        use MovementKind::{Fees, Refund};
        assert_eq!(kinds, [Fees, Fees, Refund, Fees, Fees]);
    }

    #[test]
    fn rates_may_be_per_unit() {
        let mut fees = schedule(FeeBasis::Quantity);
        let month = Months::default().of(Timestamp(0));
        let charged = fees.charge(&fill(1, 10), money("800"), money("800"), month);
        assert_eq!(charged, Some(money("25")));
        let expiration = Booking { order: OrderHandle::NONE, ..fill(1, 10) };
        assert_eq!(fees.charge(&expiration, money("1"), money("1"), month), None);
    }
}
