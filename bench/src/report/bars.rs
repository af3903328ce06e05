//! A chart of ratios: how many times as fast, one bar for each, and a line at equality.

use pitlane_plot::axis::{Axis, Scale, short};
use pitlane_plot::svg::{COLOURS, Svg, TextAnchor};

const WIDTH: f64 = 860.0;
const LEFT: f64 = 300.0;
const RIGHT: f64 = 780.0;
const ROW: f64 = 24.0;

/// One comparison.
#[derive(Clone, Debug)]
pub struct Ratio {
    /// For example `STOMP to 10, NATS`.
    pub what: String,
    /// Ratio in our favour: above 1, we are faster.
    pub times: f64,
}

pub fn ratios(title: &str, notes: &[String], ratios: &[Ratio]) -> String {
    let top = Svg::top(notes);
    let bottom = top + ROW * ratios.len() as f64;
    let mut svg = Svg::titled(WIDTH, bottom + 36.0, title, notes);
    let x = Axis::over(Scale::Log, ratios.iter().map(|ratio| ratio.times).chain([1.0]), LEFT, RIGHT);
    for value in x.marks() {
        svg.line((x.at(value), top), (x.at(value), bottom), "grid");
        svg.text(x.at(value), bottom + 16.0, TextAnchor::Middle, "tick", &format!("{} ×", short(value)));
    }
    for (nth, ratio) in ratios.iter().enumerate() {
        let y = top + ROW * nth as f64;
        let (even, at) = (x.at(1.0), x.at(ratio.times));
        let colour = COLOURS[usize::from(ratio.times < 1.0)];
        svg.bar(even.min(at), y + 5.0, (at - even).abs(), ROW - 10.0, colour);
        svg.text(LEFT - 10.0, y + 16.0, TextAnchor::End, "", &ratio.what);
        svg.text(RIGHT + 12.0, y + 16.0, TextAnchor::Start, "", &format!("{} ×", short(ratio.times)));
    }
    svg.line((x.at(1.0), top), (x.at(1.0), bottom), "goal");
    svg.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ratio_has_a_bar() {
        let both = [Ratio { what: "a".into(), times: 3.2 }, Ratio { what: "b".into(), times: 0.5 }];
        let drawn = ratios("beside", &[], &both);
        assert_eq!(drawn.matches("<rect").count(), 2);
        assert!(drawn.contains("3.2 ×") && drawn.contains("0.5 ×"));
    }
}
