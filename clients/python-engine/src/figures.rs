//! The figures of one run as plain values, which pass between the processes of a search.

use pitlane_backtest::sweep::statistic::RunFigures;
use pitlane_engine::number::Money;
use pyo3::prelude::*;

/// Amounts in units of 10⁻⁸: begin, end, fees, expectancy.
type Amounts = (i64, i64, i64, Option<i64>);
/// Return, largest draw-down; Sharpe, Sortino, Calmar; profit factor, win rate.
type Ratios = (f64, f64, Option<f64>, Option<f64>, Option<f64>, Option<f64>, Option<f64>);
/// Hash, amounts, ratios; round trips and fills.
pub(crate) type FiguresRow = (u64, Amounts, Ratios, (u64, u64));

/// The outcome of one run: figures, or the reason why it failed.
#[derive(FromPyObject, IntoPyObject)]
pub(crate) enum RunRow {
    Failure(String),
    Figures(FiguresRow),
}

impl From<RunRow> for Result<RunFigures, String> {
    fn from(row: RunRow) -> Result<RunFigures, String> {
        let (hash, amounts, ratios, (round_trips, fills)) = match row {
            RunRow::Failure(reason) => return Err(reason),
            RunRow::Figures(row) => row,
        };
        let (start, end, fees, expectancy) = amounts;
        let (total_return, max_draw_down, sharpe, sortino, calmar, profit_factor, win_rate) = ratios;
        Ok(RunFigures {
            hash,
            start: Money::from_raw(start),
            end: Money::from_raw(end),
            total_return,
            sharpe,
            sortino,
            calmar,
            max_draw_down,
            profit_factor,
            expectancy: expectancy.map(Money::from_raw),
            win_rate,
            round_trips,
            fills,
            fees: Money::from_raw(fees),
        })
    }
}

pub(crate) fn figures_row(figures: &RunFigures) -> FiguresRow {
    let RunFigures { start, end, fees, expectancy, .. } = figures;
    let RunFigures { sharpe, sortino, calmar, profit_factor, win_rate, .. } = *figures;
    (
        figures.hash,
        (start.raw(), end.raw(), fees.raw(), expectancy.map(Money::raw)),
        (figures.total_return, figures.max_draw_down, sharpe, sortino, calmar, profit_factor, win_rate),
        (figures.round_trips, figures.fills),
    )
}
