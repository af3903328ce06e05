//! The value of a strategy's portfolio at one time.

use pitlane_engine::id::{Currency, StrategyId};
use pitlane_engine::number::Money;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_engine::view::View;
use pitlane_protocols::rest::{Decimal, Moment, PortfolioSampleVO};

/// A strategy at one time.
pub(crate) type Sample = (Timestamp, StrategyId, PortfolioAmounts);

/// Amounts in the base currency; `None` where one was unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PortfolioAmounts {
    pub net_liquidation: Option<Money>,
    pub market_value: Option<Money>,
    pub gross_exposure: Option<Money>,
    pub realized: Option<Money>,
    pub unrealized: Option<Money>,
}

impl PortfolioAmounts {
    pub(crate) fn of(
        strategy: StrategyId,
        view: &View,
        reference: &RefData,
        base: Currency,
    ) -> PortfolioAmounts {
        let portfolio = view.portfolio(Some(strategy), base, reference);
        let held = view.positions().filter(|position| position.id.strategy() == strategy);
        // Like the sums of the portfolio it leaves out what has no price or no rate.
        let exposures = held.filter_map(|position| {
            let valuation = view.valuation(&position, reference)?;
            view.convert(valuation.market_value?.abs(), valuation.currency, base, reference)
        });
        PortfolioAmounts {
            net_liquidation: portfolio.net_liquidation,
            market_value: portfolio.market_value,
            gross_exposure: exposures.map(Some).fold(Some(Money::ZERO), plus),
            realized: portfolio.realized,
            unrealized: portfolio.unrealized,
        }
    }

    /// Returns all amounts in the order of the file.
    pub(crate) fn all(&self) -> [Option<Money>; 5] {
        [self.net_liquidation, self.market_value, self.gross_exposure, self.realized, self.unrealized]
    }

    pub(crate) fn plus(&self, other: &PortfolioAmounts) -> PortfolioAmounts {
        PortfolioAmounts {
            net_liquidation: plus(self.net_liquidation, other.net_liquidation),
            market_value: plus(self.market_value, other.market_value),
            gross_exposure: plus(self.gross_exposure, other.gross_exposure),
            realized: plus(self.realized, other.realized),
            unrealized: plus(self.unrealized, other.unrealized),
        }
    }

    pub(crate) fn vo(&self, at: Timestamp) -> PortfolioSampleVO {
        PortfolioSampleVO {
            date_time: Moment(at),
            net_liquidation_value: self.net_liquidation.map(Decimal::from),
            market_value: self.market_value.map(Decimal::from),
            gross_exposure: self.gross_exposure.map(Decimal::from),
            realized_pl: self.realized.map(Decimal::from),
            unrealized_pl: self.unrealized.map(Decimal::from),
        }
    }
}

/// Returns the sum, or `None` if a part is unknown or the sum cannot be counted.
fn plus(one: Option<Money>, other: Option<Money>) -> Option<Money> {
    one?.checked_add(other?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_with_an_unknown_part_is_unknown() {
        let one = PortfolioAmounts {
            net_liquidation: Some(Money::from_raw(1)),
            market_value: None,
            gross_exposure: Some(Money::from_raw(i64::MAX)),
            realized: Some(Money::from_raw(-5)),
            unrealized: Some(Money::ZERO),
        };
        let sum = one.plus(&one);
        assert_eq!((sum.net_liquidation, sum.market_value), (Some(Money::from_raw(2)), None));
        assert_eq!((sum.gross_exposure, sum.realized), (None, Some(Money::from_raw(-10))));
    }
}
