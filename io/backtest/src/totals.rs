//! Sums of fills and round trips: of a strategy, of one of its securities, or of one month.

use pitlane_engine::number::Money;

use super::records::RoundTrip;

/// Amounts are in the base currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TradeTotals {
    pub fills: u64,
    /// Sum of the absolute values of all fills.
    pub turnover: Money,
    pub fees: Money,
    pub round_trips: u64,
    /// Round trips with a profit after fees, and with a loss.
    pub wins: u64,
    pub losses: u64,
    /// Sum of the profits, and of the losses as a positive amount.
    pub won: Money,
    pub lost: Money,
    pub largest_win: Money,
    pub largest_loss: Money,
    pub holding_sum_ns: u64,
    pub holding_max_ns: u64,
}

impl TradeTotals {
    pub fn add_fill(&mut self, value: Money, fee: Money) {
        self.fills += 1;
        self.turnover = sum(self.turnover, value.abs());
        self.fees = sum(self.fees, fee);
    }

    pub fn add_trip(&mut self, trip: &RoundTrip) {
        self.round_trips += 1;
        if trip.profit.is_positive() {
            self.wins += 1;
            self.won = sum(self.won, trip.profit);
            self.largest_win = self.largest_win.max(trip.profit);
        } else if trip.profit.is_negative() {
            self.losses += 1;
            self.lost = sum(self.lost, trip.profit.abs());
            self.largest_loss = self.largest_loss.max(trip.profit.abs());
        }
        self.holding_sum_ns = self.holding_sum_ns.saturating_add(trip.holding_ns());
        self.holding_max_ns = self.holding_max_ns.max(trip.holding_ns());
    }

    /// Returns the profit of all round trips.
    pub fn profit(&self) -> Money {
        self.won.checked_sub(self.lost).unwrap_or_default()
    }

    /// Returns the share of round trips with a profit.
    pub fn win_rate(&self) -> Option<f64> {
        (self.round_trips > 0).then(|| self.wins as f64 / self.round_trips as f64)
    }

    /// Returns the sum of the profits over the sum of the losses; `None` without a loss.
    pub fn profit_factor(&self) -> Option<f64> {
        self.lost.is_positive().then(|| self.won.raw() as f64 / self.lost.raw() as f64)
    }

    /// Returns the mean profit of a round trip.
    pub fn expectancy(&self) -> Option<Money> {
        let count = i64::try_from(self.round_trips).ok().filter(|count| *count > 0)?;
        Some(Money::from_raw(self.profit().raw() / count))
    }

    pub fn average_win(&self) -> Option<Money> {
        let count = i64::try_from(self.wins).ok().filter(|count| *count > 0)?;
        Some(Money::from_raw(self.won.raw() / count))
    }

    pub fn average_loss(&self) -> Option<Money> {
        let count = i64::try_from(self.losses).ok().filter(|count| *count > 0)?;
        Some(Money::from_raw(self.lost.raw() / count))
    }

    pub fn mean_holding_ns(&self) -> Option<u64> {
        self.holding_sum_ns.checked_div(self.round_trips)
    }
}

// A sum saturates: a run with such amounts has no meaning, but it must not end the process.
fn sum(one: Money, other: Money) -> Money {
    one.checked_add(other).unwrap_or(Money::MAX)
}

#[cfg(test)]
mod tests {
    use pitlane_engine::id::{SecurityId, StrategyId};
    use pitlane_engine::number::{Price, Qty};
    use pitlane_engine::terms::Side;
    use pitlane_engine::time::Timestamp;

    use super::*;

    fn trip(profit: i64, closed: u64) -> RoundTrip {
        RoundTrip {
            strategy: StrategyId(1),
            security: SecurityId(1),
            side: Side::Buy,
            opened: Timestamp(0),
            closed: Timestamp(closed),
            qty: Qty::ZERO,
            entry: Price::ZERO,
            exit: Price::ZERO,
            fills: 2,
            fees: Money::ZERO,
            profit: Money::whole(profit).unwrap(),
        }
    }

    #[test]
    fn figures_of_round_trips_match_a_calculation_by_hand() {
        let mut totals = TradeTotals::default();
        assert_eq!((totals.win_rate(), totals.expectancy(), totals.mean_holding_ns()), (None, None, None));
        for (profit, closed) in [(30, 10), (-10, 20), (0, 30), (20, 40)] {
            totals.add_trip(&trip(profit, closed));
        }
        assert_eq!((totals.round_trips, totals.wins, totals.losses), (4, 2, 1));
        assert_eq!((totals.win_rate(), totals.profit_factor()), (Some(0.5), Some(5.0)));
        assert_eq!((totals.expectancy(), totals.average_win()), (Money::whole(10), Money::whole(25)));
        assert_eq!((totals.average_loss(), totals.mean_holding_ns()), (Money::whole(10), Some(25)));
        assert_eq!(totals.profit(), Money::whole(40).unwrap());
    }

    #[test]
    fn without_a_loss_there_is_no_profit_factor() {
        let mut totals = TradeTotals::default();
        totals.add_trip(&trip(1, 1));
        assert_eq!((totals.profit_factor(), totals.average_loss()), (None, None));
    }
}
