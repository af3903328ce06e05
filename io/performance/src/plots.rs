//! Plots over time: curves, and bars by day.

use std::fmt::Write;

use pitlane_engine::time::{NS_PER_DAY, NS_PER_S, Timestamp};
use pitlane_plot::axis::Axis;
use pitlane_plot::svg::{COLOURS, Svg, TextAnchor, escaped};

use super::curve::{Point, TimeFormat, thinned};
use super::format::decimal;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 220.0;
/// Margins for the numbers at the left and the times below.
const LEFT: f64 = 90.0;
const BELOW: f64 = 24.0;
const ABOVE: f64 = 14.0;
/// Decimals of a mark: those of a price.
const DECIMALS_MAX: usize = 8;

/// Colours of the page: of a purchase or a gain, of a sale or a loss, and of a price.
pub const UP: &str = "var(--up)";
pub const DOWN: &str = "var(--down)";
pub const PRICE: &str = "var(--price)";
/// Share of a day that its bar is wide.
const BAR_SHARE: f64 = 0.75;

/// Draws lines over time.
pub fn plot_curves(
    out: &mut String,
    class: &str,
    title: &str,
    format: TimeFormat,
    curves: &[(&str, &[Point])],
) {
    let mut svg = drawing();
    let times = curves.iter().flat_map(|(_, points)| points.iter().map(|(at, _)| *at));
    let values = curves.iter().flat_map(|(_, points)| points.iter().map(|(_, value)| *value));
    if let Some(frame) = Frame::new(&mut svg, format, times, values) {
        for (nth, (name, points)) in curves.iter().enumerate() {
            let colour = COLOURS[nth % COLOURS.len()];
            let line: Vec<(f64, f64)> = thinned(points).map(|(at, value)| frame.place(*at, *value)).collect();
            svg.path(&line, colour);
            if curves.len() > 1 {
                let x = LEFT + 8.0 + 220.0 * nth as f64;
                svg.bar(x, 2.0, 12.0, 8.0, colour);
                svg.text(x + 17.0, 10.0, TextAnchor::Start, "", name);
            }
        }
    }
    write_figure(out, class, title, &svg);
}

/// Draws a bar for each day, from zero; `points` have the ends of the days.
pub fn plot_bars(out: &mut String, class: &str, title: &str, points: &[Point]) {
    let mut svg = drawing();
    let begin = |at: Timestamp| Timestamp(at.0.saturating_sub(NS_PER_DAY));
    let times = points.iter().flat_map(|(at, _)| [begin(*at), *at]);
    let values = points.iter().map(|(_, value)| *value).chain([0.0]);
    if let Some(frame) = Frame::new(&mut svg, TimeFormat::DayEnds, times, values) {
        for (at, value) in points {
            let ((left, zero), (right, end)) = (frame.place(begin(*at), 0.0), frame.place(*at, *value));
            let width = (right - left) * BAR_SHARE;
            let colour = if *value < 0.0 { DOWN } else { UP };
            svg.bar(right - width, zero.min(end), width, (zero - end).abs(), colour);
        }
    }
    write_figure(out, class, title, &svg);
}

/// Begins a plot.
pub fn drawing() -> Svg {
    Svg::new(WIDTH, HEIGHT)
}

/// The axes of a plot over time.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    first: Timestamp,
    x: Axis,
    y: Axis,
}

impl Frame {
    /// Draws the axes; `None` without points.
    pub fn new(
        svg: &mut Svg,
        format: TimeFormat,
        times: impl Iterator<Item = Timestamp> + Clone,
        values: impl Iterator<Item = f64>,
    ) -> Option<Frame> {
        let (first, last) = (times.clone().min()?, times.max()?);
        let x = Axis::exactly([0.0, last.since(first) as f64].into_iter(), LEFT, WIDTH - 10.0);
        let y = Axis::exactly(values, HEIGHT - BELOW, ABOVE);
        let marks = y.marks();
        let decimals = marks.windows(2).next().map_or(0, |pair| decimals(pair[1] - pair[0]));
        for value in marks {
            let at = y.at(value);
            svg.line((LEFT, at), (WIDTH, at), "axis");
            svg.text(LEFT - 6.0, at + 4.0, TextAnchor::End, "", &decimal(value, decimals));
        }
        let label = |at: Timestamp| format.text(Timestamp(at.0 - at.0 % NS_PER_S));
        svg.text(LEFT, HEIGHT - 6.0, TextAnchor::Start, "", &label(first));
        svg.text(WIDTH, HEIGHT - 6.0, TextAnchor::End, "", &label(last));
        Some(Frame { first, x, y })
    }

    /// Returns the position of a value at a time.
    pub fn place(&self, at: Timestamp, value: f64) -> (f64, f64) {
        (self.x.at(at.since(self.first) as f64), self.y.at(value))
    }
}

/// Returns the decimals that tell apart marks at this distance, which has one digit.
fn decimals(step: f64) -> usize {
    let mut powers = std::iter::successors(Some(1.0), |power| Some(power * 10.0)).take(DECIMALS_MAX);
    powers.position(|power| step * power > 0.999).unwrap_or(DECIMALS_MAX)
}

/// Writes a plot with its caption.
pub fn write_figure(out: &mut String, class: &str, title: &str, svg: &Svg) {
    let caption = escaped(title);
    let _ = write!(out, "<figure><figcaption>{caption}</figcaption>{}</figure>", svg.element(class, title));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_have_the_decimals_that_they_need() {
        assert_eq!([500_000.0, 1.0, 0.5, 0.02, 0.1].map(decimals), [0, 0, 1, 2, 1]);
        assert_eq!(decimals(1e-12), DECIMALS_MAX);
    }

    #[test]
    fn the_marks_of_a_plot_are_round() {
        let points = [(Timestamp(1), 845_805.3), (Timestamp(2 * NS_PER_S + 3), 2_220_240.1)];
        let mut out = String::new();
        plot_curves(&mut out, "equity", "Equity", TimeFormat::Instants, &[("equity", &points)]);
        for mark in ["1,000,000", "1,500,000", "2,000,000", "1970-01-01T00:00:00Z", "1970-01-01T00:00:02Z"] {
            assert!(out.contains(&format!(">{mark}</text>")), "{mark}: {out}");
        }
    }

    #[test]
    fn a_bar_goes_from_zero_to_its_value() {
        let points = [(Timestamp(NS_PER_DAY), 2.0), (Timestamp(2 * NS_PER_DAY), -2.0)];
        let mut out = String::new();
        plot_bars(&mut out, "returns", "Daily returns", &points);
        let middle = (HEIGHT - BELOW + ABOVE) / 2.0;
        assert!(
            out.contains(&format!("y=\"{ABOVE:.1}\"")) && out.contains(&format!("y=\"{middle:.1}\"")),
            "{out}"
        );
        assert!(out.contains("fill=\"var(--up)\"") && out.contains("fill=\"var(--down)\""));
        // The axis ends with the day whose bar is the last.
        assert!(out.contains(">1970-01-02</text>") && !out.contains("1970-01-03"), "{out}");
    }
}
