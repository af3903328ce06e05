//! The plot of a price with entries and exits.

use pitlane_engine::number::Price;
use pitlane_engine::terms::Side;
use pitlane_engine::time::Timestamp;
use pitlane_performance::curve::{TimeFormat, thinned};
use pitlane_performance::plots::{DOWN, Frame, PRICE, UP, drawing, write_figure};
use pitlane_plot::svg::Marker;

use crate::records::RoundTrip;

/// Round trips that are marked in one plot; more would hide the price.
const MARKED_MAX: usize = 500;

/// Draws the price of a security, and the entries and exits of a strategy.
pub(super) fn plot_prices(
    out: &mut String,
    symbol: &str,
    prices: &[(Timestamp, Price)],
    trips: &[&RoundTrip],
) {
    let value = |price: Price| price.raw() as f64 / 1e8;
    let mut svg = drawing();
    let shown = &trips[..trips.len().min(MARKED_MAX)];
    let own = shown.iter().flat_map(|trip| [(trip.opened, trip.entry), (trip.closed, trip.exit)]);
    let all: Vec<(Timestamp, f64)> =
        prices.iter().copied().chain(own).map(|(at, price)| (at, value(price))).collect();
    let (times, values) = (all.iter().map(|point| point.0), all.iter().map(|point| point.1));
    if let Some(frame) = Frame::new(&mut svg, TimeFormat::Instants, times, values) {
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
    write_figure(out, "price", &title, &svg);
}
