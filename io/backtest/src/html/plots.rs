//! Plots of the page: curves over time, and a price with entries and exits.

use std::fmt::Write;

use pitlane_engine::number::Price;
use pitlane_engine::terms::Side;
use pitlane_engine::time::Timestamp;
use pitlane_plot::axis::Axis;
use pitlane_plot::svg::{COLOURS, Marker, Svg, TextAnchor, escaped};

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

/// Colours of a purchase and of a sale.
const BOUGHT: &str = "#1a6b33";
const SOLD: &str = "#a40e26";

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
        svg.path(&line, "#8a94a1");
        for trip in shown {
            let (enter, exit) = match trip.side {
                Side::Buy => ((Marker::Up, BOUGHT), (Marker::Down, SOLD)),
                Side::Sell => ((Marker::Down, SOLD), (Marker::Up, BOUGHT)),
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
        for share in [0.0, 0.5, 1.0] {
            let value = y.value(share);
            let at = y.at(value);
            svg.line((LEFT, at), (WIDTH, at), "axis");
            svg.text(LEFT - 6.0, at + 4.0, TextAnchor::End, "", &number(value));
        }
        svg.text(LEFT, HEIGHT - 6.0, TextAnchor::Start, "", &first.to_string());
        svg.text(WIDTH, HEIGHT - 6.0, TextAnchor::End, "", &last.to_string());
        Some(Frame { first, x, y })
    }

    fn place(&self, at: Timestamp, value: f64) -> (f64, f64) {
        (self.x.at(at.since(self.first) as f64), self.y.at(value))
    }
}

/// Formats a number beside an axis: large ones without, small ones with enough decimals.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        large if large >= 10_000.0 => 0,
        large if large >= 1.0 => 2,
        _ => 4,
    };
    format!("{value:.decimals$}")
}

fn figure(out: &mut String, class: &str, title: &str, svg: &Svg) {
    let caption = escaped(title);
    let _ = write!(out, "<figure><figcaption>{caption}</figcaption>{}</figure>", svg.element(class, title));
}
