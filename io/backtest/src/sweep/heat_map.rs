//! The results of a search as a page: a heat map of two parameters, and the table of runs. If there
//! are more parameters, a cell shows the best of their values.

use std::fmt::Write;

use pitlane_performance::page::head;
use pitlane_plot::svg::{Svg, TextAnchor, escaped};

use super::results::{RepeatCommand, shown, to_text};
use super::{RunSummary, SweepResult};

const CELL_WIDTH: f64 = 74.0;
const CELL_HEIGHT: f64 = 30.0;
const LEFT: f64 = 110.0;
const ABOVE: f64 = 40.0;
/// Most values of a parameter in the map: more cells cannot be read.
const VALUES_MAX: usize = 60;

pub(super) fn page(result: &SweepResult, command: &RepeatCommand) -> String {
    let title = format!("Sweep by {}", result.settings.statistic.name());
    let mut out = head(&title);
    let _ = write!(
        out,
        "<style>.cell{{fill:#1b1f24}}.heat-map{{min-width:0}}</style><h1>{}</h1>",
        escaped(&title)
    );
    match heat_map(result) {
        Some(map) => out.push_str(&map),
        None => out.push_str("<p>There are no values to draw.</p>"),
    }
    let _ = write!(out, "<pre>{}</pre></html>", escaped(&to_text(result, command)));
    out
}

/// Returns the figure, with one parameter as one row; `None` without a value.
fn heat_map(result: &SweepResult) -> Option<String> {
    let parameters = &result.settings.grid.parameters;
    let (rows, columns) = match parameters.as_slice() {
        [] => return None,
        [only] => (None, only),
        [rows, columns, ..] => (Some(rows), columns),
    };
    let row_values: Vec<Option<&String>> =
        rows.map_or(vec![None], |rows| rows.values.iter().take(VALUES_MAX).map(Some).collect());
    let column_values: Vec<&String> = columns.values.iter().take(VALUES_MAX).collect();
    let cell = |row: Option<&String>, column: &String| {
        let is_here = |run: &&RunSummary| {
            let value = |nth: usize| &run.parameters.0[nth].1;
            match row {
                Some(row) => value(0) == row && value(1) == column,
                None => value(0) == column,
            }
        };
        value_of(result, result.runs.iter().filter(is_here))
    };
    let cells: Vec<Vec<Option<f64>>> = row_values
        .iter()
        .map(|row| column_values.iter().map(|column| cell(*row, column)).collect())
        .collect();
    let bounds = cells.iter().flatten().flatten().copied().map(|value| (value, value));
    let (low, high) = bounds.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))?;
    let width = LEFT + CELL_WIDTH * column_values.len() as f64 + 10.0;
    let mut svg = Svg::new(width, ABOVE + CELL_HEIGHT * row_values.len() as f64 + 10.0);
    svg.text(LEFT, 14.0, TextAnchor::Start, "", &columns.parameter.to_string());
    if let Some(rows) = rows {
        svg.text(LEFT - 10.0, 14.0, TextAnchor::End, "", &rows.parameter.to_string());
    }
    for (x, column) in column_values.iter().enumerate() {
        let middle = LEFT + CELL_WIDTH * (x as f64 + 0.5);
        svg.text(middle, ABOVE - 8.0, TextAnchor::Middle, "", column);
    }
    let is_low_good = result.settings.statistic.is_better_low();
    for (y, (row, cells)) in row_values.iter().zip(&cells).enumerate() {
        let top = ABOVE + CELL_HEIGHT * y as f64;
        let text_y = top + CELL_HEIGHT / 2.0 + 4.0;
        svg.text(LEFT - 10.0, text_y, TextAnchor::End, "", row.map_or("", String::as_str));
        for (x, value) in cells.iter().enumerate() {
            let left = LEFT + CELL_WIDTH * x as f64;
            let share = value.map(|value| if high > low { (value - low) / (high - low) } else { 0.5 });
            let colour = share
                .map_or("#e3e6ea".to_string(), |share| colour(if is_low_good { 1.0 - share } else { share }));
            svg.bar(left, top, CELL_WIDTH - 2.0, CELL_HEIGHT - 2.0, &colour);
            let text = shown(result.settings.statistic, *value);
            svg.text(left + CELL_WIDTH / 2.0 - 1.0, text_y, TextAnchor::Middle, "cell", &text);
        }
    }
    let title = match parameters.len() > 2 {
        true => "The best over the other parameters",
        false => "All runs",
    };
    let caption = match result.settings.walk_forward {
        Some(_) => format!("{title}; mean over the windows, first parts"),
        None => title.to_string(),
    };
    Some(format!(
        "<figure><figcaption>{}</figcaption><div style=\"width:{width}px\">{}</div></figure>",
        escaped(&caption),
        svg.element("heat-map", &caption)
    ))
}

/// Returns the value of a cell: the best of its runs, or the mean over windows.
fn value_of<'a>(result: &SweepResult, runs: impl Iterator<Item = &'a RunSummary>) -> Option<f64> {
    let statistic = result.settings.statistic;
    let values = runs.filter_map(|run| statistic.of(run.outcome.as_ref().ok()?));
    if result.settings.walk_forward.is_some() {
        let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
        return (count > 0).then(|| sum / f64::from(count));
    }
    values.reduce(if statistic.is_better_low() { f64::min } else { f64::max })
}

/// Returns a colour from red over pale yellow to green; the numbers in the cells do not need it.
fn colour(share: f64) -> String {
    const STOPS: [[f64; 3]; 3] = [[214.0, 96.0, 77.0], [255.0, 250.0, 214.0], [102.0, 172.0, 104.0]];
    let (from, to, part) = match share < 0.5 {
        true => (STOPS[0], STOPS[1], share * 2.0),
        false => (STOPS[1], STOPS[2], share * 2.0 - 1.0),
    };
    let mixed = [0, 1, 2].map(|at| from[at] + (to[at] - from[at]) * part);
    format!("rgb({:.0},{:.0},{:.0})", mixed[0], mixed[1], mixed[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_go_from_red_to_green() {
        assert_eq!([0.0, 0.5, 1.0].map(colour), ["rgb(214,96,77)", "rgb(255,250,214)", "rgb(102,172,104)"]);
    }
}
