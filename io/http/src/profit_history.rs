//! The profit of the trading days that have ended. A file keeps it across restarts.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use pitlane_engine::id::{Currency, PositionId, SecurityId, StrategyId};
use pitlane_engine::number::{Money, Price};
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Day;
use pitlane_engine::view::{DayResult, EndedDay, View};
use pitlane_protocols::rest::{ConvertedResult, ProfitDayVO};

use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::HttpResponse;
use super::shard_client::ShardClient;
use super::transaction::strategy_named;

/// Days and rows that are kept. Beyond either the oldest days are dropped: 20 MB if there are so
/// many.
const DAYS_MAX: usize = 400;
const ROWS_MAX: usize = 100_000;

/// A row of the file: a position on one day, with the currency of its base amounts.
pub(crate) type ProfitRecord = (Day, Currency, ConvertedResult);

type DayRows = BTreeMap<(StrategyId, SecurityId), ConvertedResult>;

#[derive(Debug)]
pub(crate) struct ProfitHistory {
    base: Currency,
    days: RefCell<BTreeMap<Day, DayRows>>,
    /// Price at the end of the last day on which the position was not flat or was traded.
    prices: RefCell<BTreeMap<PositionId, Option<Price>>>,
    /// Days of shards that may have ended before the read model knew them.
    running: RefCell<Vec<EndedDay>>,
    is_changed: Cell<bool>,
}

impl ProfitHistory {
    /// `running` are the days of the shards before the start.
    pub(crate) fn new(base: Currency, running: Vec<EndedDay>) -> ProfitHistory {
        ProfitHistory {
            base,
            days: RefCell::default(),
            prices: RefCell::default(),
            running: RefCell::new(running),
            is_changed: Cell::new(false),
        }
    }

    /// Takes over the rows of an earlier process.
    pub(crate) fn restore(&self, records: Vec<ProfitRecord>) {
        for (day, base, row) in records {
            // Amounts in another base currency cannot be added to those of this one.
            let base = row.base.filter(|_| base == self.base);
            self.push(day, ConvertedResult { base, ..row });
        }
    }

    /// Adds the days that have ended since the last call.
    pub(crate) fn collect(&self, shard_client: &ShardClient) {
        let taken = shard_client.view_mut().take_ended_days();
        let (reference, view) = (shard_client.reference(), shard_client.view());
        let mut running = self.running.borrow_mut();
        let mut ended: Vec<EndedDay> =
            running.extract_if(.., |running| running.is_over(&view) == Some(true)).collect();
        // The read model will tell the end of a day that it knows.
        running.retain(|running| running.is_over(&view).is_none());
        ended.extend(taken);
        if ended.is_empty() {
            return;
        }
        for ended in ended {
            for totals in ended.totals {
                let result = totals.result(self.price(totals.position), &reference);
                let row = result.map(|result| converted(result, self.base, &view, &reference));
                row.into_iter().for_each(|row| self.push(ended.day, row));
            }
        }
        self.is_changed.set(true);
    }

    fn push(&self, day: Day, row: ConvertedResult) {
        let position = PositionId::new(row.result.strategy, row.result.security);
        let mut days = self.days.borrow_mut();
        days.entry(day).or_default().insert((row.result.strategy, row.result.security), row);
        self.prices.borrow_mut().insert(position, row.result.price);
        while days.len() > DAYS_MAX || days.values().map(BTreeMap::len).sum::<usize>() > ROWS_MAX {
            days.pop_first();
        }
    }

    /// Returns all rows if some are new since the last call.
    pub(crate) fn changed(&self) -> Option<Vec<ProfitRecord>> {
        self.is_changed.replace(false).then(|| self.records())
    }

    fn records(&self) -> Vec<ProfitRecord> {
        let days = self.days.borrow();
        let of = |(day, rows): (&Day, &DayRows)| {
            let day = *day;
            rows.values().map(move |row| (day, self.base, *row)).collect::<Vec<_>>()
        };
        days.iter().flat_map(of).collect()
    }

    /// Returns the price at which the running day of a position begins.
    pub(crate) fn price(&self, position: PositionId) -> Option<Price> {
        self.prices.borrow().get(&position).copied().flatten()
    }

    /// Returns the rows of a day that has ended.
    pub(crate) fn day(&self, day: Day, wanted: impl Fn(StrategyId) -> bool) -> Vec<ConvertedResult> {
        let days = self.days.borrow();
        let rows = days.get(&day).into_iter().flat_map(BTreeMap::values);
        rows.filter(|row| wanted(row.result.strategy)).copied().collect()
    }

    /// Calls `each` with every row of the days that have ended, oldest first.
    pub(crate) fn for_each(&self, mut each: impl FnMut(Day, &ConvertedResult)) {
        for (day, rows) in self.days.borrow().iter() {
            rows.values().for_each(|row| each(*day, row));
        }
    }

    /// Returns the sums of each day that has ended, newest first.
    pub(crate) fn show_days(
        &self,
        shard_client: &ShardClient,
        ctx: &RequestContext<'_>,
    ) -> Result<HttpResponse, Problem> {
        let query = ctx.query(&["strategy"])?;
        let reference = shard_client.reference();
        let scope = ctx.scope(&reference);
        let strategy = strategy_named(query.get("strategy"), &scope, &reference)?;
        let wanted = |of| scope.contains(of) && strategy.is_none_or(|strategy| strategy == of);
        self.collect(shard_client);
        Ok(HttpResponse::list(self.sums(wanted).into_iter()))
    }

    fn sums(&self, wanted: impl Fn(StrategyId) -> bool) -> Vec<ProfitDayVO> {
        let days = self.days.borrow();
        let sum = |(day, rows): (&Day, &DayRows)| {
            let rows = rows.values().filter(|row| wanted(row.result.strategy));
            ProfitDayVO::of(*day, rows, self.base)
        };
        days.iter().rev().map(sum).collect()
    }
}

/// Returns a result with its amounts in the base currency at the current rates.
pub(crate) fn converted(
    result: DayResult,
    base: Currency,
    view: &View,
    reference: &RefData,
) -> ConvertedResult {
    let in_base = |amount: Option<Money>| view.convert(amount?, result.currency, base, reference);
    ConvertedResult { result, base: in_base(result.gross).zip(in_base(result.fees)) }
}

#[cfg(test)]
pub(crate) mod tests {
    use pitlane_engine::number::Qty;

    use super::*;

    pub(crate) fn currency(name: &str) -> Currency {
        Currency::parse(name.as_bytes()).unwrap()
    }

    /// Returns a position that is held, with a price of as many units as its number.
    pub(crate) fn row(strategy: u16, security: u32, gross: Option<i64>) -> ConvertedResult {
        let (gross, fees) = (gross.map(Money::from_raw), Money::from_raw(5));
        let result = DayResult {
            strategy: StrategyId(strategy),
            security: SecurityId(security),
            currency: currency("EUR"),
            qty: Qty::from_raw(-100_000_000),
            price: Some(Price::from_raw(security as i64)),
            trades: 2,
            gross,
            fees: Some(fees),
            net: gross.and_then(|gross| gross.checked_sub(fees)),
        };
        ConvertedResult { result, base: gross.map(|gross| (gross, fees)) }
    }

    #[test]
    fn days_are_summed_newest_first_and_a_repeated_row_counts_once() {
        let (history, usd) = (ProfitHistory::new(currency("USD"), Vec::new()), currency("USD"));
        history.restore(vec![
            (Day(1), usd, row(1, 1, Some(100))),
            (Day(2), usd, row(1, 1, Some(50))),
            (Day(2), usd, row(1, 1, Some(200))),
            (Day(2), usd, row(2, 1, Some(7))),
            (Day(2), usd, row(2, 2, None)),
            (Day(3), currency("CHF"), row(1, 1, Some(100))),
        ]);
        assert_eq!(history.changed(), None);
        let sums = history.sums(|_| true);
        let days: Vec<&str> = sums.iter().map(|sum| sum.trading_day.as_str()).collect();
        assert_eq!(days, ["1970-01-04", "1970-01-03", "1970-01-02"]);
        let total = |sum: &ProfitDayVO| (sum.total.gross_pl.map(|sum| sum.raw), sum.total.missing);
        let totals: Vec<_> = sums.iter().map(total).collect();
        assert_eq!(totals, [(Some(0), 1), (Some(207), 1), (Some(100), 0)]);
        let of_second = history.sums(|strategy| strategy == StrategyId(2));
        assert_eq!(of_second[1].total.gross_pl.map(|sum| sum.raw), Some(7));
        assert_eq!(history.day(Day(2), |strategy| strategy == StrategyId(2)).len(), 2);
        assert_eq!(history.day(Day(9), |_| true), []);
        assert_eq!(history.records().len(), 5);
    }

    #[test]
    fn the_oldest_days_are_dropped_and_their_prices_stay() {
        let (history, usd) = (ProfitHistory::new(currency("USD"), Vec::new()), currency("USD"));
        let old = (Day(0), usd, row(1, 7, Some(1)));
        let days = (1..=DAYS_MAX as i32).map(|day| (Day(day), usd, row(1, 1, Some(1))));
        history.restore(std::iter::once(old).chain(days).collect());
        assert_eq!((history.records().len(), history.records()[0].0), (DAYS_MAX, Day(1)));
        let position = PositionId::new(StrategyId(1), SecurityId(7));
        assert_eq!(history.price(position), Some(Price::from_raw(7)));
        assert_eq!(history.price(PositionId::new(StrategyId(2), SecurityId(7))), None);
    }
}
