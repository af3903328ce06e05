//! The path of an order, stage by stage: a chart of where its time goes.

use pitlane_plot::axis::{Axis, Scale, time};
use pitlane_plot::svg::{COLOURS, Svg, TextAnchor};
use serde::Serialize;

const WIDTH: f64 = 860.0;
const LEFT: f64 = 120.0;
const RIGHT: f64 = 740.0;
const ROW: f64 = 26.0;

/// One stage: its label, its median, and its 99th percentile.
#[derive(Clone, Debug, Serialize)]
pub struct StageTime {
    #[serde(rename = "word")]
    pub label: String,
    pub p50_ns: f64,
    pub p99_ns: f64,
}

/// Draws the stages. Each begins where the medians of the previous ones end; the thin part is the
/// 99th percentile.
pub fn waterfall(title: &str, notes: &[String], steps: &[StageTime]) -> String {
    let top = Svg::top(notes);
    let bottom = top + ROW * steps.len() as f64;
    let mut svg = Svg::titled(WIDTH, bottom + 36.0, title, notes);
    let mut begin = 0.0;
    let mut begins = Vec::with_capacity(steps.len());
    for step in steps {
        begins.push(begin);
        begin += step.p50_ns;
    }
    let ends = steps.iter().zip(&begins).map(|(step, begin)| begin + step.p99_ns.max(step.p50_ns));
    let x = Axis::over(Scale::Linear, ends.chain([begin]), LEFT, RIGHT);
    for value in x.marks() {
        svg.line((x.at(value), top), (x.at(value), bottom), "grid");
        svg.text(x.at(value), bottom + 16.0, TextAnchor::Middle, "tick", &time(value));
    }
    for (nth, (step, &begin)) in steps.iter().zip(&begins).enumerate() {
        let (y, colour) = (top + ROW * nth as f64, COLOURS[nth % COLOURS.len()]);
        let width = |ns: f64| x.at(begin + ns) - x.at(begin);
        svg.bar(x.at(begin), y + 11.0, width(step.p99_ns.max(step.p50_ns)), 4.0, colour);
        svg.bar(x.at(begin), y + 6.0, width(step.p50_ns), ROW - 12.0, colour);
        svg.text(LEFT - 10.0, y + 17.0, TextAnchor::End, "", &step.label);
        svg.text(
            RIGHT + 12.0,
            y + 17.0,
            TextAnchor::Start,
            "tick",
            &format!("{}, 99 % {}", time(step.p50_ns), time(step.p99_ns)),
        );
    }
    svg.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_begins_where_the_one_before_ends() {
        let step = |label: &str, ns| StageTime { label: label.into(), p50_ns: ns, p99_ns: 2.0 * ns };
        let drawn = waterfall("path", &[], &[step("decode", 100.0), step("send", 300.0)]);
        assert_eq!(drawn.matches("<rect").count(), 4);
        assert!(drawn.contains("100 ns, 99 % 200 ns"));
    }
}
