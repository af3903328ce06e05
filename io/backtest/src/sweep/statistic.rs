//! The figures of one run of a sweep, and the statistic by which runs are compared.

use pitlane_engine::number::Money;
use pitlane_performance::curve::amount;

use crate::report::{Performance, SimulationReport};

/// A figure by which runs are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Statistic {
    #[default]
    Return,
    Sharpe,
    Sortino,
    Calmar,
    MaxDrawDown,
    ProfitFactor,
    Expectancy,
    WinRate,
}

impl Statistic {
    pub const ALL: [Statistic; 8] = [
        Statistic::Return,
        Statistic::Sharpe,
        Statistic::Sortino,
        Statistic::Calmar,
        Statistic::MaxDrawDown,
        Statistic::ProfitFactor,
        Statistic::Expectancy,
        Statistic::WinRate,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Statistic::Return => "return",
            Statistic::Sharpe => "sharpe",
            Statistic::Sortino => "sortino",
            Statistic::Calmar => "calmar",
            Statistic::MaxDrawDown => "max-draw-down",
            Statistic::ProfitFactor => "profit-factor",
            Statistic::Expectancy => "expectancy",
            Statistic::WinRate => "win-rate",
        }
    }

    /// Parses a name such as `sharpe`.
    pub fn parse(text: &str) -> Result<Statistic, String> {
        let names = || Statistic::ALL.map(Statistic::name).join(", ");
        let named = Statistic::ALL.into_iter().find(|statistic| statistic.name() == text);
        named.ok_or_else(|| format!("it must be one of {}", names()))
    }

    /// Returns the figure of a run; `None` if it is withheld.
    pub fn of(self, figures: &RunFigures) -> Option<f64> {
        match self {
            Statistic::Return => Some(figures.total_return),
            Statistic::Sharpe => figures.sharpe,
            Statistic::Sortino => figures.sortino,
            Statistic::Calmar => figures.calmar,
            Statistic::MaxDrawDown => Some(figures.max_draw_down),
            Statistic::ProfitFactor => figures.profit_factor,
            Statistic::Expectancy => figures.expectancy.map(amount),
            Statistic::WinRate => figures.win_rate,
        }
    }

    /// Returns a number that is higher for a better run.
    pub fn merit(self, figures: &RunFigures) -> Option<f64> {
        self.of(figures).map(|value| if self.is_better_low() { -value } else { value })
    }

    /// Returns whether the lower of two values is the better one.
    pub fn is_better_low(self) -> bool {
        self == Statistic::MaxDrawDown
    }
}

/// Figures of one strategy in one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunFigures {
    pub hash: u64,
    pub start: Money,
    pub end: Money,
    pub total_return: f64,
    /// Ratios are absent if the data are too short for them.
    pub sharpe: Option<f64>,
    pub sortino: Option<f64>,
    pub calmar: Option<f64>,
    pub max_draw_down: f64,
    pub profit_factor: Option<f64>,
    pub expectancy: Option<Money>,
    pub win_rate: Option<f64>,
    pub round_trips: u64,
    pub fills: u64,
    pub fees: Money,
}

impl RunFigures {
    /// Returns the figures of a strategy of the report, of the first without a name, or the reason
    /// why the strategy failed.
    pub fn of(report: &SimulationReport, strategy: Option<&str>) -> Result<RunFigures, String> {
        let named = |result: &&Performance| strategy.is_none_or(|name| result.line.name == name);
        let result = report.results.iter().find(named).ok_or("the strategy did not run")?;
        if let Some((at, why)) = &result.line.failure {
            return Err(format!("it failed at {at}: {why}"));
        }
        let Performance { line, statistics, .. } = result;
        Ok(RunFigures {
            hash: report.hash(),
            start: line.equity.first().map(|sample| sample.equity).unwrap_or_default(),
            end: line.equity.last().map(|sample| sample.equity).unwrap_or_default(),
            total_return: statistics.total_return,
            sharpe: statistics.sharpe.ok(),
            sortino: statistics.sortino.ok(),
            calmar: statistics.calmar.ok(),
            max_draw_down: statistics.max_draw_down,
            profit_factor: line.totals.profit_factor(),
            expectancy: line.totals.expectancy(),
            win_rate: line.totals.win_rate(),
            round_trips: line.totals.round_trips,
            fills: line.fills,
            fees: line.totals.fees,
        })
    }
}
