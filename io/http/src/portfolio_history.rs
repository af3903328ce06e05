//! The value of each strategy's portfolio over the last hours, so that a page that was just opened
//! shows the curve of the profit. The samples are lost at a restart.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use pitlane_engine::id::{Currency, StrategyId};
use pitlane_engine::number::Money;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_engine::view::View;
use pitlane_protocols::rest::{Decimal, Moment, PortfolioSampleVO};

use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::HttpResponse;
use super::shard_client::ShardClient;
use super::transaction::strategy_named;

/// Samples that are kept: those of four hours, see [`super::event_loop::sample_portfolios`].
const SAMPLES_MAX: usize = 2_880;
/// Strategies that are sampled, those with the lowest ids: 16 MB if there are so many.
const STRATEGIES_MAX: usize = 64;

/// Amounts in the base currency; `None` where one was unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PortfolioAmounts {
    net_liquidation: Option<Money>,
    market_value: Option<Money>,
    gross_exposure: Option<Money>,
    realized: Option<Money>,
    unrealized: Option<Money>,
}

/// One strategy's samples, oldest first.
type StrategySamples = VecDeque<(Timestamp, PortfolioAmounts)>;

#[derive(Debug, Default)]
pub(crate) struct PortfolioHistory {
    samples: RefCell<BTreeMap<StrategyId, StrategySamples>>,
}

impl PortfolioHistory {
    /// Adds the values of now.
    pub(crate) fn sample(&self, now: Timestamp, view: &View, reference: &RefData, base: Currency) {
        let mut samples = self.samples.borrow_mut();
        for strategy in reference.strategies().iter().take(STRATEGIES_MAX) {
            let of_strategy = samples.entry(strategy.id).or_default();
            of_strategy.push_back((now, PortfolioAmounts::of(strategy.id, view, reference, base)));
            if of_strategy.len() > SAMPLES_MAX {
                of_strategy.pop_front();
            }
        }
    }

    /// Returns the samples of a strategy, or of all that the caller may see together.
    pub(crate) fn show(
        &self,
        shard_client: &ShardClient,
        ctx: &RequestContext<'_>,
    ) -> Result<HttpResponse, Problem> {
        let query = ctx.query(&["strategy"])?;
        let reference = shard_client.reference();
        let scope = ctx.scope(&reference);
        let strategy = strategy_named(query.get("strategy"), &scope, &reference)?;
        let wanted = |of| scope.contains(of) && strategy.is_none_or(|strategy| strategy == of);
        Ok(HttpResponse::list(self.sums(wanted).into_iter()))
    }

    /// Returns the sums of the selected strategies at each time.
    fn sums(&self, wanted: impl Fn(StrategyId) -> bool) -> Vec<PortfolioSampleVO> {
        let samples = self.samples.borrow();
        let mut sums: BTreeMap<Timestamp, PortfolioAmounts> = BTreeMap::new();
        for (_, of_strategy) in samples.iter().filter(|(id, _)| wanted(**id)) {
            for (at, amounts) in of_strategy {
                sums.entry(*at).and_modify(|sum| *sum = sum.plus(amounts)).or_insert(*amounts);
            }
        }
        sums.into_iter().map(|(at, amounts)| amounts.vo(at)).collect()
    }
}

impl PortfolioAmounts {
    fn of(strategy: StrategyId, view: &View, reference: &RefData, base: Currency) -> PortfolioAmounts {
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

    fn plus(&self, other: &PortfolioAmounts) -> PortfolioAmounts {
        PortfolioAmounts {
            net_liquidation: plus(self.net_liquidation, other.net_liquidation),
            market_value: plus(self.market_value, other.market_value),
            gross_exposure: plus(self.gross_exposure, other.gross_exposure),
            realized: plus(self.realized, other.realized),
            unrealized: plus(self.unrealized, other.unrealized),
        }
    }

    fn vo(&self, at: Timestamp) -> PortfolioSampleVO {
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
    use pitlane_engine::view::ViewSettings;

    use super::*;

    #[test]
    fn samples_are_bounded_and_the_oldest_are_dropped() {
        let reference = pitlane_config::refdata::shipped().unwrap();
        let (history, view) = (PortfolioHistory::default(), View::new(1, ViewSettings::default()));
        let base = Currency::parse(b"USD").unwrap();
        let ns = |count: usize| Timestamp(count as u64);
        (1..=SAMPLES_MAX + 2).for_each(|count| history.sample(ns(count), &view, &reference, base));
        let all = history.sums(|_| true);
        assert_eq!((all.len(), all[0].date_time), (SAMPLES_MAX, Moment(ns(3))));
        assert_eq!(history.sums(|_| false), []);
    }

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
