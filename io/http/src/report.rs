//! `GET /rest/ext/report`: the performance of live trading, as the page that a simulation writes.
//!
//! The http thread collects the sums; a thread of its pool draws the page, so that no other request
//! waits for it.

use std::collections::BTreeSet;

use pitlane_engine::id::StrategyId;
use pitlane_engine::number::Money;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::{Day, Timestamp};
use pitlane_engine::view::{Missing, View};
use tokio::task::spawn_blocking;

use super::app_state::AppState;
use super::problem::Problem;
use super::profit::{day_named, running_day};
use super::report_page::{ReportSection, TradingReport};
use super::report_sums::{DayRange, StrategySums, SumsByStrategy, sections};
use super::request_context::RequestContext;
use super::response::{HttpResponse, ResponseKind};
use super::transaction::strategy_named;

pub(crate) async fn show(app: &AppState, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    let query = ctx.query(&["strategy", "from", "to"])?;
    let range = DayRange { from: day_named(&query, "from")?, to: day_named(&query, "to")? };
    if range.from.zip(range.to).is_some_and(|(from, to)| from > to) {
        return Err(Problem::bad_request("bad-query", "`from` must not be after `to`"));
    }
    let reference = app.trading.shard_client.reference();
    let scope = ctx.scope(&reference);
    let strategy = strategy_named(query.get("strategy"), &scope, &reference)?;
    let wanted = |of: StrategyId| scope.contains(of) && strategy.is_none_or(|strategy| strategy == of);
    let (running, results) = running_day(app, &reference, wanted).await?;
    let mut sums = SumsByStrategy::new();
    app.profit_history.for_each(|day, row| {
        if wanted(row.result.strategy) {
            sums.entry(row.result.strategy).or_default().add_row(day, row, range);
        }
    });
    if let Some(day) = running {
        for row in &results {
            sums.entry(row.result.strategy).or_default().add_row(day, row, range);
        }
    }
    let report = SectionBuilder { app, reference: &reference, view: &app.trading.shard_client.view() }
        .report(sums, strategy, running.filter(|day| range.contains(*day)), wanted);
    let page = spawn_blocking(move || report.page()).await;
    // Drawing is interrupted only by the end of the process.
    let page = page.map_err(|_| Problem::stopping())?;
    let kind = ResponseKind::Asset { content_type: "text/html; charset=utf-8", is_immutable: false };
    Ok(HttpResponse::text(kind, page))
}

/// Makes the sections of a report from the sums and from the portfolios of now.
struct SectionBuilder<'a> {
    app: &'a AppState,
    reference: &'a RefData,
    view: &'a View,
}

impl SectionBuilder<'_> {
    fn report(
        &self,
        sums: SumsByStrategy,
        strategy: Option<StrategyId>,
        running: Option<Day>,
        wanted: impl Fn(StrategyId) -> bool,
    ) -> TradingReport {
        let mut all = StrategySums::default();
        sums.values().for_each(|sums| all.add(sums));
        all.fill(&running.into_iter().collect());
        let days: BTreeSet<Day> = all.days.keys().copied().collect();
        let (each, left_out) = match strategy {
            Some(_) => (Vec::new(), 0),
            None => sections(sums),
        };
        let mut shown = Vec::new();
        if !days.is_empty() {
            shown.push(self.section(strategy, all, wanted));
            for (id, mut own) in each {
                own.fill(&days);
                shown.push(self.section(Some(id), own, |of| of == id));
            }
        }
        TradingReport {
            base: self.app.settings.base_currency.to_string(),
            year_days: self.app.settings.year_days,
            is_running: running.is_some(),
            left_out,
            sections: shown,
        }
    }

    /// Makes the section of a strategy; `None`: of all together.
    fn section(
        &self,
        strategy: Option<StrategyId>,
        sums: StrategySums,
        wanted: impl Fn(StrategyId) -> bool,
    ) -> ReportSection {
        let name =
            |id: StrategyId| self.reference.strategy(id).map_or(id.to_string(), |row| row.name.clone());
        let portfolio = self.view.portfolio_of(&wanted, self.app.settings.base_currency, self.reference);
        let symbol = |id| self.reference.security(id).map_or(id.to_string(), |row| row.symbol.clone());
        let missing = portfolio.missing.iter().map(|missing| match missing {
            Missing::Price(id) => format!("{}: there is no price", symbol(*id)),
            Missing::Reference(id) => format!("{}: the reference data do not have it", symbol(*id)),
            Missing::Rate(currency) => format!("{currency}: there is no exchange rate"),
            Missing::TooLarge(currency) => format!("{currency}: the amount is too large"),
        });
        let samples = self.app.portfolio_history.amounts(&wanted).into_iter();
        let recent: Vec<(Timestamp, Money)> =
            samples.filter_map(|(at, amounts)| Some((at, amounts.net_liquidation?))).collect();
        ReportSection {
            title: strategy.map_or("All strategies".to_string(), name),
            equity: sums.equity(portfolio.net_liquidation.unwrap_or_default()),
            recent,
            symbols: sums.securities.keys().map(|id| (*id, symbol(*id))).collect(),
            missing: missing.collect(),
            sums,
        }
    }
}
