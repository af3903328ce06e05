//! Plots of the page: curves over time, and a price with entries and exits.

use std::fmt::Write;

use pitlane_engine::number::Price;
use pitlane_engine::terms::Side;
use pitlane_engine::time::{NS_PER_DAY, Timestamp};
use pitlane_plot::axis::Axis;
use pitlane_plot::svg::{COLOURS, Marker, Svg, TextAnchor, escaped};

use crate::format::decimal;
use crate::records::RoundTrip;
use crate::report::thinned;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 220.0;
/// Margins for the numbers at the left and the times below.
const LEFT: f64 = 90.0;
const BELOW: f64 = 24.0;
const ABOVE: f64 = 14.0;
/// Round trips that are marked in one plot; more would hide the price.
const MARKED_MAX: usize = 500;
/// Decimals of a mark: those of a price.
const DECIMALS_MAX: usize = 8;

/// Colours of the page: of a purchase or a gain, of a sale or a loss, and of a price.
const UP: &str = "var(--up)";
const DOWN: &str = "var(--down)";
const PRICE: &str = "var(--price)";
/// Share of a day that its bar is wide.
const BAR_SHARE: f64 = 0.75;

/// Draws lines over time.
pub(super) fn plot_curves(
    out: &mut String,
    class: &str,
    title: &str,
    curves: &[(&str, &[(Timestamp, f64)])],
) {
    let mut svg = Svg::new(WIDTH, HEIGHT);
    let times = curves.iter().flat_map(|(_, points)| points.iter().map(|(at, _)| *at));
    let values = curves.iter().flat_map(|(_, points)| points.iter().map(|(_, value)| *value));
    if let Some(frame) = Frame::new(&mut svg, times, values) {
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
    figure(out, class, title, &svg);
}

/// Draws a bar for each day, from zero; `points` have the ends of the days.
pub(super) fn plot_bars(out: &mut String, class: &str, title: &str, points: &[(Timestamp, f64)]) {
    let mut svg = Svg::new(WIDTH, HEIGHT);
    let begin = |at: Timestamp| Timestamp(at.0.saturating_sub(NS_PER_DAY));
    let times = points.iter().flat_map(|(at, _)| [begin(*at), *at]);
    let values = points.iter().map(|(_, value)| *value).chain([0.0]);
    if let Some(frame) = Frame::new(&mut svg, times, values) {
        for (at, value) in points {
            let ((left, zero), (right, end)) = (frame.place(begin(*at), 0.0), frame.place(*at, *value));
            let width = (right - left) * BAR_SHARE;
            let colour = if *value < 0.0 { DOWN } else { UP };
            svg.bar(right - width, zero.min(end), width, (zero - end).abs(), colour);
        }
    }
    figure(out, class, title, &svg);
}

/// Draws the price of a security, and the entries and exits of a strategy.
pub(super) fn plot_prices(
    out: &mut String,
    symbol: &str,
    prices: &[(Timestamp, Price)],
    trips: &[&RoundTrip],
) {
    let value = |price: Price| price.raw() as f64 / 1e8;
    let mut svg = Svg::new(WIDTH, HEIGHT);
    let shown = &trips[..trips.len().min(MARKED_MAX)];
    let own = shown.iter().flat_map(|trip| [(trip.opened, trip.entry), (trip.closed, trip.exit)]);
    let all: Vec<(Timestamp, f64)> =
        prices.iter().copied().chain(own).map(|(at, price)| (at, value(price))).collect();
    let (times, values) = (all.iter().map(|point| point.0), all.iter().map(|point| point.1));
    if let Some(frame) = Frame::new(&mut svg, times, values) {
        let line: Vec<(f64, f64)> =
            thinned(prices).map(|(at, price)| frame.place(*at, value(*price))).collect();
        svg.path(&line, PRICE);
        for trip in shown {
            let (enter, exit) = match trip.side {
                Side::Buy => ((Marker::Up, UP), (Marker::Down, DOWN)),
                Side::Sell => ((Marker::Down, DOWN), (Marker::Up, UP)),
            };
            for ((marker, colour), at, price) in
                [(enter, trip.opened, trip.entry), (exit, trip.closed, trip.exit)]
            {
                svg.marker(frame.place(at, value(price)), marker, colour);
            }
        }
    }
    let title = match trips.len() > shown.len() {
        true => format!("{symbol} with entries and exits of the first {} round trips", shown.len()),
        false => format!("{symbol} with entries and exits"),
    };
    figure(out, "price", &title, &svg);
}

/// The axes of a plot over time.
struct Frame {
    first: Timestamp,
    x: Axis,
    y: Axis,
}

impl Frame {
    /// Draws the axes; `None` without points.
    fn new(
        svg: &mut Svg,
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
        svg.text(LEFT, HEIGHT - 6.0, TextAnchor::Start, "", &first.to_string());
        svg.text(WIDTH, HEIGHT - 6.0, TextAnchor::End, "", &last.to_string());
        Some(Frame { first, x, y })
    }

    fn place(&self, at: Timestamp, value: f64) -> (f64, f64) {
        (self.x.at(at.since(self.first) as f64), self.y.at(value))
    }
}

/// Returns the decimals that tell apart marks at this distance, which has one digit.
fn decimals(step: f64) -> usize {
    let mut powers = std::iter::successors(Some(1.0), |power| Some(power * 10.0)).take(DECIMALS_MAX);
    powers.position(|power| step * power > 0.999).unwrap_or(DECIMALS_MAX)
}

fn figure(out: &mut String, class: &str, title: &str, svg: &Svg) {
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
        let points = [(Timestamp(1), 845_805.3), (Timestamp(2), 2_220_240.1)];
        let mut out = String::new();
        plot_curves(&mut out, "equity", "Equity", &[("equity", &points)]);
        for mark in ["1,000,000", "1,500,000", "2,000,000"] {
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
    }
}
