//! The value of each strategy's portfolio over the last hours, so that a page that was just opened
//! shows the curve of the profit. A file keeps them across restarts.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};

use pitlane_engine::id::{Currency, StrategyId};
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_engine::view::View;
use pitlane_protocols::rest::PortfolioSampleVO;

use super::portfolio_file::is_mostly_old;
use super::portfolio_sample::{PortfolioAmounts, Sample};
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::HttpResponse;
use super::shard_client::ShardClient;
use super::transaction::strategy_named;

/// Samples that are kept: those of four hours, see [`super::event_loop::sample_portfolios`].
const SAMPLES_MAX: usize = 2_880;
/// Strategies that are sampled, those with the lowest ids: 16 MB if there are so many.
const STRATEGIES_MAX: usize = 64;

/// One strategy's samples, oldest first.
type StrategySamples = VecDeque<(Timestamp, PortfolioAmounts)>;

#[derive(Debug, Default)]
pub(crate) struct PortfolioHistory {
    samples: RefCell<BTreeMap<StrategyId, StrategySamples>>,
    /// Lines in the file; `None` before this process has written it.
    lines: Cell<Option<usize>>,
}

/// What is to be written into the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FileChange {
    Append(Vec<Sample>),
    Replace(Vec<Sample>),
}

impl PortfolioHistory {
    /// Takes over the samples of an earlier process.
    pub(crate) fn restore(&self, samples: Vec<Sample>) {
        samples.into_iter().for_each(|sample| self.push(sample));
    }

    /// Adds the values of now.
    pub(crate) fn sample(
        &self,
        now: Timestamp,
        view: &View,
        reference: &RefData,
        base: Currency,
    ) -> FileChange {
        let strategies = reference.strategies().iter().take(STRATEGIES_MAX);
        let amounts = |id| PortfolioAmounts::of(id, view, reference, base);
        let added: Vec<Sample> = strategies.map(|row| (now, row.id, amounts(row.id))).collect();
        added.iter().for_each(|sample| self.push(*sample));
        let kept = self.samples.borrow().values().map(VecDeque::len).sum();
        let lines = self.lines.get().map(|lines| lines + added.len());
        let is_appended = lines.is_some_and(|lines| !is_mostly_old(lines, kept));
        self.lines.set(lines.filter(|_| is_appended).or(Some(kept)));
        if is_appended { FileChange::Append(added) } else { FileChange::Replace(self.all()) }
    }

    fn push(&self, (at, strategy, amounts): Sample) {
        let mut samples = self.samples.borrow_mut();
        if samples.len() >= STRATEGIES_MAX && !samples.contains_key(&strategy) {
            return;
        }
        let of_strategy = samples.entry(strategy).or_default();
        of_strategy.push_back((at, amounts));
        if of_strategy.len() > SAMPLES_MAX {
            of_strategy.pop_front();
        }
    }

    /// Returns all samples in the order of their times.
    fn all(&self) -> Vec<Sample> {
        let samples = self.samples.borrow();
        let of = |(id, rows): (&StrategyId, &StrategySamples)| {
            let id = *id;
            rows.iter().map(move |(at, amounts)| (*at, id, *amounts)).collect::<Vec<_>>()
        };
        let mut all: Vec<Sample> = samples.iter().flat_map(of).collect();
        all.sort_by_key(|(at, strategy, _)| (*at, *strategy));
        all
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

    fn sums(&self, wanted: impl Fn(StrategyId) -> bool) -> Vec<PortfolioSampleVO> {
        self.amounts(wanted).into_iter().map(|(at, amounts)| amounts.vo(at)).collect()
    }

    /// Returns the sums of the selected strategies at each time.
    pub(crate) fn amounts(
        &self,
        wanted: impl Fn(StrategyId) -> bool,
    ) -> BTreeMap<Timestamp, PortfolioAmounts> {
        let samples = self.samples.borrow();
        let mut sums: BTreeMap<Timestamp, PortfolioAmounts> = BTreeMap::new();
        for (_, of_strategy) in samples.iter().filter(|(id, _)| wanted(**id)) {
            for (at, amounts) in of_strategy {
                sums.entry(*at).and_modify(|sum| *sum = sum.plus(amounts)).or_insert(*amounts);
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::view::ViewSettings;
    use pitlane_protocols::rest::Moment;

    use super::*;

    #[test]
    fn samples_are_bounded_and_the_oldest_are_dropped() {
        let reference = pitlane_config::refdata::shipped().unwrap();
        let (history, view) = (PortfolioHistory::default(), View::new(1, ViewSettings::default()));
        let base = Currency::parse(b"USD").unwrap();
        let ns = |count: usize| Timestamp(count as u64);
        (1..=SAMPLES_MAX + 2).for_each(|count| _ = history.sample(ns(count), &view, &reference, base));
        let all = history.sums(|_| true);
        assert_eq!((all.len(), all[0].date_time), (SAMPLES_MAX, Moment(ns(3))));
        assert_eq!(history.sums(|_| false), []);
    }

    #[test]
    fn the_file_is_written_again_when_most_of_it_is_old() {
        let reference = pitlane_config::refdata::shipped().unwrap();
        let (history, view) = (PortfolioHistory::default(), View::new(1, ViewSettings::default()));
        let base = Currency::parse(b"USD").unwrap();
        let first = history.sample(Timestamp(1), &view, &reference, base);
        assert_eq!(first, FileChange::Replace(history.all()), "a process writes the file once");
        let mut replaced = 0;
        for count in 2..=4 * SAMPLES_MAX {
            if let FileChange::Replace(kept) =
                history.sample(Timestamp(count as u64), &view, &reference, base)
            {
                assert_eq!(kept.len(), SAMPLES_MAX * reference.strategies().len());
                assert!(kept.is_sorted_by_key(|(at, _, _)| *at));
                replaced += 1;
            }
        }
        assert_eq!(replaced, 1);
        let restarted = PortfolioHistory::default();
        restarted.restore(history.all());
        assert_eq!(restarted.all(), history.all());
        assert_eq!(restarted.sums(|_| true), history.sums(|_| true));
    }
}
