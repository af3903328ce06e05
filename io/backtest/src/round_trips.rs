//! Follows the positions of a run and forms round trips: from flat to flat.

use std::collections::BTreeMap;

use pitlane_engine::id::{PositionId, SecurityId, StrategyId};
use pitlane_engine::number::{ContractSize, Money, Notional, Price, Qty};
use pitlane_engine::terms::Side;
use pitlane_engine::time::Timestamp;

/// A fill as the tracker sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PositionChange {
    pub at: Timestamp,
    pub strategy: StrategyId,
    pub security: SecurityId,
    /// Signed.
    pub qty: Qty,
    pub price: Price,
    pub fee: Money,
    pub contract_size: ContractSize,
}

/// A round trip in the currency of its security.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClosedTrip {
    pub side: Side,
    pub opened: Timestamp,
    pub qty: Qty,
    pub entry: Price,
    pub exit: Price,
    pub fills: u32,
    pub fees: Money,
    /// Profit after fees; `None` if it cannot be counted.
    pub profit: Option<Money>,
}

/// The open part of a position.
#[derive(Clone, Copy, Debug)]
struct OpenTrip {
    side: Side,
    opened: Timestamp,
    /// Unsigned quantities, and the sums of price times quantity.
    entered: Qty,
    entry: Notional,
    left: Qty,
    exit: Notional,
    fills: u32,
    fees: Money,
}

/// Time during which a strategy holds any position.
#[derive(Clone, Copy, Debug, Default)]
struct MarketTime {
    open: u32,
    since: Timestamp,
    sum_ns: u64,
}

#[derive(Debug, Default)]
pub(crate) struct TripTracker {
    open: BTreeMap<PositionId, OpenTrip>,
    times: BTreeMap<StrategyId, MarketTime>,
}

impl TripTracker {
    /// Applies a fill, and returns the round trip that it has closed.
    pub(crate) fn apply(&mut self, change: &PositionChange) -> Option<ClosedTrip> {
        if change.qty.is_zero() {
            return None;
        }
        let position = PositionId::new(change.strategy, change.security);
        let side = if change.qty.is_positive() { Side::Buy } else { Side::Sell };
        let qty = change.qty.abs();
        let Some(open) = self.open.get_mut(&position) else {
            self.begin(position, side, qty, change.fee, change);
            return None;
        };
        open.fills += 1;
        if open.side == side {
            open.entered = sum(open.entered, qty);
            open.left = sum(open.left, qty);
            open.entry = sum_notional(open.entry, Notional::of(change.price, qty));
            open.fees = sum_money(open.fees, change.fee);
            return None;
        }
        let closing = qty.min(open.left);
        // The fee of a fill that turns the position belongs to both round trips, by quantity.
        let fee = change.fee.share(closing, qty).unwrap_or(change.fee);
        open.fees = sum_money(open.fees, fee);
        open.exit = sum_notional(open.exit, Notional::of(change.price, closing));
        open.left = Qty::from_raw(open.left.raw() - closing.raw());
        if open.left.is_positive() {
            return None;
        }
        let trip = open.close(change.contract_size);
        self.open.remove(&position);
        let rest = Qty::from_raw(qty.raw() - closing.raw());
        self.leave_market(change.strategy, change.at);
        if rest.is_positive() {
            let fee = Money::from_raw(change.fee.raw() - fee.raw());
            self.begin(position, side, rest, fee, change);
        }
        Some(trip)
    }

    /// Returns the time during which a strategy held a position, up to `now`.
    pub(crate) fn time_in_market_ns(&self, strategy: StrategyId, now: Timestamp) -> u64 {
        self.times.get(&strategy).map_or(0, |time| {
            let open_ns = if time.open > 0 { now.since(time.since) } else { 0 };
            time.sum_ns.saturating_add(open_ns)
        })
    }

    /// Returns the number of positions of a strategy that are open.
    pub(crate) fn open(&self, strategy: StrategyId) -> usize {
        self.open.keys().filter(|position| position.strategy() == strategy).count()
    }

    fn begin(&mut self, position: PositionId, side: Side, qty: Qty, fees: Money, change: &PositionChange) {
        let trip = OpenTrip {
            side,
            opened: change.at,
            entered: qty,
            entry: Notional::of(change.price, qty),
            left: qty,
            exit: Notional::ZERO,
            fills: 1,
            fees,
        };
        self.open.insert(position, trip);
        let time = self.times.entry(change.strategy).or_default();
        if time.open == 0 {
            time.since = change.at;
        }
        time.open += 1;
    }

    fn leave_market(&mut self, strategy: StrategyId, at: Timestamp) {
        let time = self.times.entry(strategy).or_default();
        time.open = time.open.saturating_sub(1);
        if time.open == 0 {
            time.sum_ns = time.sum_ns.saturating_add(at.since(time.since));
        }
    }
}

impl OpenTrip {
    fn close(&self, size: ContractSize) -> ClosedTrip {
        let gain = match self.side {
            Side::Buy => self.exit.checked_sub(self.entry),
            Side::Sell => self.entry.checked_sub(self.exit),
        };
        let gross = gain.and_then(|gain| gain.money(size));
        ClosedTrip {
            side: self.side,
            opened: self.opened,
            qty: self.entered,
            entry: self.entry.average(self.entered),
            exit: self.exit.average(self.entered),
            fills: self.fills,
            fees: self.fees,
            profit: gross.and_then(|gross| gross.checked_sub(self.fees)),
        }
    }
}

// Sums saturate: a run with such amounts has no meaning, but it must not end the process.
fn sum(one: Qty, other: Qty) -> Qty {
    one.checked_add(other).unwrap_or(Qty::MAX)
}

fn sum_money(one: Money, other: Money) -> Money {
    one.checked_add(other).unwrap_or(Money::MAX)
}

fn sum_notional(one: Notional, other: Notional) -> Notional {
    one.checked_add(other).unwrap_or(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRATEGY: StrategyId = StrategyId(1);

    fn change(at: u64, security: u32, qty: i64, price: i64, fee: i64) -> PositionChange {
        PositionChange {
            at: Timestamp(at),
            strategy: STRATEGY,
            security: SecurityId(security),
            qty: Qty::whole(qty).unwrap(),
            price: Price::whole(price).unwrap(),
            fee: Money::whole(fee).unwrap(),
            contract_size: ContractSize::ONE,
        }
    }

    #[test]
    fn a_round_trip_goes_from_flat_to_flat_and_bears_its_fees() {
        let mut tracker = TripTracker::default();
        assert_eq!(tracker.apply(&change(10, 1, 10, 100, 1)), None);
        assert_eq!(tracker.apply(&change(20, 1, 10, 110, 1)), None);
        assert_eq!(tracker.apply(&change(30, 1, -5, 120, 1)), None);
        let trip = tracker.apply(&change(40, 1, -15, 130, 3)).unwrap();
        assert_eq!((trip.side, trip.opened, trip.fills), (Side::Buy, Timestamp(10), 4));
        assert_eq!((trip.qty, trip.entry), (Qty::whole(20).unwrap(), Price::whole(105).unwrap()));
        assert_eq!(trip.exit, Price::parse(b"127.5").unwrap());
        assert_eq!((trip.fees, trip.profit), (Money::whole(6).unwrap(), Money::whole(450 - 6)));
        assert_eq!(tracker.open(STRATEGY), 0);
    }

    #[test]
    fn a_fill_that_turns_a_position_ends_one_trip_and_begins_the_next() {
        let mut tracker = TripTracker::default();
        tracker.apply(&change(10, 1, 10, 100, 0));
        let long = tracker.apply(&change(20, 1, -30, 90, 6)).unwrap();
        assert_eq!((long.fees, long.profit), (Money::whole(2).unwrap(), Money::whole(-102)));
        let short = tracker.apply(&change(30, 1, 20, 80, 0)).unwrap();
        assert_eq!((short.side, short.opened), (Side::Sell, Timestamp(20)));
        assert_eq!((short.fees, short.profit), (Money::whole(4).unwrap(), Money::whole(200 - 4)));
        assert_eq!(tracker.time_in_market_ns(STRATEGY, Timestamp(99)), 20);
    }

    #[test]
    fn time_in_the_market_counts_overlapping_positions_once() {
        let mut tracker = TripTracker::default();
        tracker.apply(&change(10, 1, 1, 100, 0));
        tracker.apply(&change(20, 2, -1, 100, 0));
        tracker.apply(&change(30, 1, -1, 100, 0));
        assert_eq!(tracker.time_in_market_ns(STRATEGY, Timestamp(35)), 25);
        tracker.apply(&change(50, 2, 1, 100, 0));
        assert_eq!(tracker.time_in_market_ns(STRATEGY, Timestamp(99)), 40);
        tracker.apply(&change(100, 1, 1, 100, 0));
        assert_eq!(tracker.time_in_market_ns(STRATEGY, Timestamp(105)), 45);
    }
}
