//! The results of a search as text, CSV, JSON and HTML. Each run is given with its hash and with
//! the command that repeats it.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use pitlane_performance::format::{count, money, percent, ratio};
use serde_json::{Map, Value, json};

use super::heat_map;
use super::statistic::{RunFigures, Statistic};
use super::walk_forward::{Window, WindowResult};
use super::{RunSummary, SweepResult};

/// Rows of the text; the files have all.
const ROWS_SHOWN: usize = 20;
/// Failed runs of the text.
const FAILURES_SHOWN: usize = 5;

/// How a run is repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepeatCommand {
    /// On a command line: the command without the parameters.
    Shell(String),
    /// In Python: what creates the strategy from its parameters.
    Python(String),
}

impl RepeatCommand {
    /// Returns the command that repeats a run.
    pub fn of(&self, run: &RunSummary) -> String {
        match self {
            RepeatCommand::Shell(command) => {
                let range = |Window { from, to }| format!(" --from {from} --to {to}");
                let window = run.window.map(range).unwrap_or_default();
                format!("{command} --param {}{window}", quoted(&run.parameters.to_string()))
            }
            RepeatCommand::Python(strategy) => {
                let values: Vec<String> =
                    run.parameters.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
                let range = |Window { from, to }| {
                    format!(", config={{\"simulation.from\": \"{from}\", \"simulation.to\": \"{to}\"}}")
                };
                let window = run.window.map(range).unwrap_or_default();
                format!("pitlane.backtest({strategy}({}), data{window})", values.join(", "))
            }
        }
    }
}

/// Quotes a word for a shell if it needs that.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Formats a figure of a statistic for people.
pub(super) fn shown(statistic: Statistic, value: Option<f64>) -> String {
    match (statistic, value) {
        (_, None) => "-".to_string(),
        (Statistic::Return | Statistic::MaxDrawDown | Statistic::WinRate, Some(value)) => percent(value),
        (
            Statistic::Sharpe
            | Statistic::Sortino
            | Statistic::Calmar
            | Statistic::ProfitFactor
            | Statistic::Expectancy,
            Some(value),
        ) => ratio(value),
    }
}

pub fn to_text(result: &SweepResult, command: &RepeatCommand) -> String {
    let mut out = String::new();
    let finished = result.runs.len() + result.windows.iter().filter(|window| window.tested.is_some()).count();
    let _ = writeln!(
        out,
        "{} of {} runs{}, sorted by {}",
        count(finished as u64),
        count(result.planned as u64),
        if result.is_stopped { " (stopped)" } else { "" },
        result.settings.statistic.name()
    );
    if result.settings.walk_forward.is_some() {
        write_windows(&mut out, result, command);
    } else {
        write_runs(&mut out, result, command);
    }
    write_failures(&mut out, result);
    out
}

fn write_runs(out: &mut String, result: &SweepResult, command: &RepeatCommand) {
    let sorted = result.sorted();
    let good: Vec<(&RunSummary, &RunFigures)> =
        sorted.iter().filter_map(|run| Some((*run, run.outcome.as_ref().ok()?))).collect();
    let width = good.iter().map(|(run, _)| run.parameters.to_string().len()).max().unwrap_or(0).max(10);
    let _ = writeln!(
        out,
        "\n{:<width$} {:>10} {:>10} {:>10} {:>10} {:>10} {:>8} {:>12}  hash",
        "parameters", "return", "Sharpe", "Sortino", "draw-down", "factor", "trips", "fees"
    );
    for (run, figures) in good.iter().take(ROWS_SHOWN) {
        let or_none = |value: Option<f64>| value.map_or("-".to_string(), ratio);
        let _ = writeln!(
            out,
            "{:<width$} {:>10} {:>10} {:>10} {:>10} {:>10} {:>8} {:>12}  {:016x}",
            run.parameters.to_string(),
            percent(figures.total_return),
            or_none(figures.sharpe),
            or_none(figures.sortino),
            percent(figures.max_draw_down),
            or_none(figures.profit_factor),
            count(figures.round_trips),
            money(figures.fees),
            figures.hash
        );
    }
    if good.len() > ROWS_SHOWN {
        let _ = writeln!(out, "and {} more", count((good.len() - ROWS_SHOWN) as u64));
    }
    match result.best() {
        Some(best) => {
            let _ = writeln!(out, "\nrepeat the best: {}", command.of(best));
        }
        None => {
            let name = result.settings.statistic.name();
            let _ = writeln!(
                out,
                "\nno run has the statistic {name}: the data are too short, or all runs failed"
            );
        }
    }
}

fn write_windows(out: &mut String, result: &SweepResult, command: &RepeatCommand) {
    let statistic = result.settings.statistic;
    let figure = |run: &Option<RunSummary>| {
        let figures = run.as_ref().and_then(|run| run.outcome.as_ref().ok());
        shown(statistic, figures.and_then(|figures| statistic.of(figures)))
    };
    let _ = writeln!(out, "\n{:<27} {:<27} {:>10} {:>10}  chosen", "test from", "to", "train", "test");
    for window in &result.windows {
        let chosen = window.chosen.as_ref().map_or("-".to_string(), |run| run.parameters.to_string());
        let _ = writeln!(
            out,
            "{:<27} {:<27} {:>10} {:>10}  {chosen}",
            window.test.from.to_string(),
            window.test.to.to_string(),
            figure(&window.chosen),
            figure(&window.tested)
        );
    }
    if let Some(total) = result.tested_return() {
        let _ = writeln!(out, "\nreturn of all tests, one after the other: {}", percent(total));
    }
    if let Some(last) = result.windows.iter().rev().find_map(|window| window.tested.as_ref()) {
        let _ = writeln!(out, "repeat the last test: {}", command.of(last));
    }
}

fn write_failures(out: &mut String, result: &SweepResult) {
    let failed: Vec<&RunSummary> = result.runs.iter().filter(|run| run.outcome.is_err()).collect();
    if failed.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{} runs failed", count(failed.len() as u64));
    for run in failed.iter().take(FAILURES_SHOWN) {
        let reason = run.outcome.as_ref().err().map_or("", String::as_str);
        let _ = writeln!(out, "  {}: {reason}", run.parameters);
    }
}

/// Returns all runs as CSV, the best first.
pub fn to_csv(result: &SweepResult, command: &RepeatCommand) -> String {
    let mut out = String::new();
    for swept in &result.settings.grid.parameters {
        let _ = write!(out, "{},", csv_cell(&swept.parameter.to_string()));
    }
    out.push_str(
        "part,from,to,hash,return,sharpe,sortino,calmar,maxDrawDown,profitFactor,expectancy,winRate,\
         roundTrips,fills,fees,endEquity,failure,command\n",
    );
    let part = if result.settings.walk_forward.is_some() { "train" } else { "all" };
    for run in result.sorted() {
        csv_row(&mut out, part, run, command);
    }
    for tested in result.windows.iter().filter_map(|window| window.tested.as_ref()) {
        csv_row(&mut out, "test", tested, command);
    }
    out
}

fn csv_row(out: &mut String, part: &str, run: &RunSummary, command: &RepeatCommand) {
    for (_, value) in &run.parameters.0 {
        let _ = write!(out, "{},", csv_cell(value));
    }
    let window = |end: fn(Window) -> String| run.window.map(end).unwrap_or_default();
    let _ = write!(out, "{part},{},{},", window(|w| w.from.to_string()), window(|w| w.to.to_string()));
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let cells: Vec<String> = match &run.outcome {
        Ok(figures) => vec![
            format!("{:016x}", figures.hash),
            figures.total_return.to_string(),
            number(figures.sharpe),
            number(figures.sortino),
            number(figures.calmar),
            figures.max_draw_down.to_string(),
            number(figures.profit_factor),
            figures.expectancy.map_or(String::new(), |value| value.to_string()),
            number(figures.win_rate),
            figures.round_trips.to_string(),
            figures.fills.to_string(),
            figures.fees.to_string(),
            figures.end.to_string(),
            String::new(),
        ],
        Err(reason) => [vec![String::new(); 13], vec![csv_cell(reason)]].concat(),
    };
    let _ = writeln!(out, "{},{}", cells.join(","), csv_cell(&command.of(run)));
}

fn csv_cell(text: &str) -> String {
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_string(),
    }
}

pub fn to_json(result: &SweepResult, command: &RepeatCommand) -> Value {
    let run = |run: &RunSummary| run_json(run, command);
    let window = |window: &WindowResult| {
        json!({
            "train": range_json(&window.train),
            "test": range_json(&window.test),
            "chosen": window.chosen.as_ref().map(run),
            "tested": window.tested.as_ref().map(run),
        })
    };
    let grid: Map<String, Value> = result
        .settings
        .grid
        .parameters
        .iter()
        .map(|swept| (swept.parameter.to_string(), json!(swept.values)))
        .collect();
    json!({
        "statistic": result.settings.statistic.name(),
        "grid": grid,
        "planned": result.planned,
        "stopped": result.is_stopped,
        "runs": result.sorted().into_iter().map(run).collect::<Vec<_>>(),
        "windows": result.windows.iter().map(window).collect::<Vec<_>>(),
        "testedReturn": result.tested_return(),
    })
}

fn range_json(window: &Window) -> Value {
    json!({ "from": window.from.to_string(), "to": window.to.to_string() })
}

fn run_json(run: &RunSummary, command: &RepeatCommand) -> Value {
    let parameters: Map<String, Value> =
        run.parameters.0.iter().map(|(name, value)| (name.to_string(), json!(value))).collect();
    let figures = run.outcome.as_ref().ok();
    json!({
        "parameters": parameters,
        "window": run.window.as_ref().map(range_json),
        "hash": figures.map(|figures| format!("{:016x}", figures.hash)),
        "return": figures.map(|figures| figures.total_return),
        "sharpe": figures.and_then(|figures| figures.sharpe),
        "sortino": figures.and_then(|figures| figures.sortino),
        "calmar": figures.and_then(|figures| figures.calmar),
        "maxDrawDown": figures.map(|figures| figures.max_draw_down),
        "profitFactor": figures.and_then(|figures| figures.profit_factor),
        "expectancy": figures.and_then(|figures| figures.expectancy).map(|value| value.to_string()),
        "winRate": figures.and_then(|figures| figures.win_rate),
        "roundTrips": figures.map(|figures| figures.round_trips),
        "fills": figures.map(|figures| figures.fills),
        "fees": figures.map(|figures| figures.fees.to_string()),
        "startEquity": figures.map(|figures| figures.start.to_string()),
        "endEquity": figures.map(|figures| figures.end.to_string()),
        "failure": run.outcome.as_ref().err(),
        "command": command.of(run),
    })
}

/// Writes sweep.txt, sweep.csv, sweep.json and sweep.html.
pub fn write(result: &SweepResult, command: &RepeatCommand, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("sweep.txt"), to_text(result, command))?;
    fs::write(folder.join("sweep.csv"), to_csv(result, command))?;
    fs::write(folder.join("sweep.json"), format!("{:#}\n", to_json(result, command)))?;
    fs::write(folder.join("sweep.html"), heat_map::page(result, command))
}

#[cfg(test)]
mod tests {
    use pitlane_engine::time::Timestamp;

    use super::super::PlannedRun;
    use super::super::grid::ParameterSet;
    use super::*;

    #[test]
    fn a_run_is_repeated_by_the_command_line_or_in_python() {
        let window = Some(Window { from: Timestamp(1_000_000_000), to: Timestamp(2_000_000_000) });
        let run = |window| {
            let parameters = ParameterSet::parse("fast=5,slow=40").unwrap();
            PlannedRun { point: 0, parameters, window }.ended(Err(String::new()))
        };
        let shell = RepeatCommand::Shell("pitlane simulate".to_string());
        assert_eq!(shell.of(&run(None)), "pitlane simulate --param fast=5,slow=40");
        let python = RepeatCommand::Python("Cross".to_string());
        assert_eq!(python.of(&run(None)), "pitlane.backtest(Cross(fast=5, slow=40), data)");
        let (from, to) = ("1970-01-01T00:00:01Z", "1970-01-01T00:00:02Z");
        assert!(shell.of(&run(window)).ends_with(&format!("slow=40 --from {from} --to {to}")));
        let config = format!("config={{\"simulation.from\": \"{from}\", \"simulation.to\": \"{to}\"}}");
        assert!(python.of(&run(window)).ends_with(&format!("data, {config})")));
    }

    #[test]
    fn words_are_quoted_for_a_shell_where_they_must_be() {
        assert_eq!(["a=1,b.c", "", "a b", "it's"].map(quoted), ["a=1,b.c", "''", "'a b'", r"'it'\''s'"]);
    }

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        assert_eq!(["a b", "a,b", "a\"b"].map(csv_cell), ["a b", "\"a,b\"", "\"a\"\"b\""]);
    }
}
