//! Charts of latencies: by percentile, on a scale where the tail is as wide as the middle, and over
//! time.

use pitlane_plot::axis::{Axis, Scale, short, time};
use pitlane_plot::svg::{COLOURS, Svg, TextAnchor};

use super::recording::{Recording, STEPS_PER_HALVING};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 840.0;
const BOTTOM: f64 = 372.0;
/// Percentiles with a mark, as one in this many.
const MARKS: [(f64, &str); 6] =
    [(1.0, "0"), (10.0, "90 %"), (100.0, "99 %"), (1e3, "99.9 %"), (1e4, "99.99 %"), (1e5, "99.999 %")];

/// Draws one curve for each recording.
pub fn by_percentile(title: &str, notes: &[String], recordings: &[&Recording]) -> String {
    let curves: Vec<Vec<(f64, f64)>> = recordings.iter().map(|recording| curve(recording)).collect();
    let mut svg = Svg::titled(WIDTH, HEIGHT, title, notes);
    let top = Svg::top(notes);
    let x = Axis::over(Scale::Log, curves.iter().flatten().map(|point| point.0).chain([1.0]), LEFT, RIGHT);
    let y = Axis::over(Scale::Log, curves.iter().flatten().map(|point| point.1), BOTTOM, top);
    latency_marks(&mut svg, &y);
    for (value, label) in MARKS {
        let at = x.at(value);
        // Beyond the last curve all marks coincide.
        if value == 1.0 || at < RIGHT {
            svg.line((at, top), (at, BOTTOM), "grid");
            svg.text(at, BOTTOM + 16.0, TextAnchor::Middle, "tick", label);
        }
    }
    draw(&mut svg, &x, &y, recordings.iter().map(|recording| recording.name.as_str()), &curves);
    svg.finish()
}

/// Draws the median, the 99th percentile and the maximum of one recording, slice by slice.
pub fn over_time(title: &str, notes: &[String], recording: &Recording) -> String {
    let lines = [("median", 0.5), ("99 %", 0.99), ("longest", 1.0)];
    let curves: Vec<Vec<(f64, f64)>> =
        lines.iter().map(|&(_, quantile)| recording.over_time(quantile)).collect();
    let mut svg = Svg::titled(WIDTH, HEIGHT, title, notes);
    let top = Svg::top(notes);
    let x = Axis::over(Scale::Linear, curves.iter().flatten().map(|point| point.0), LEFT, RIGHT);
    let y = Axis::over(Scale::Log, curves.iter().flatten().map(|point| point.1), BOTTOM, top);
    latency_marks(&mut svg, &y);
    for value in x.marks() {
        svg.text(x.at(value), BOTTOM + 16.0, TextAnchor::Middle, "tick", &format!("{} s", short(value)));
    }
    draw(&mut svg, &x, &y, lines.iter().map(|line| line.0), &curves);
    svg.finish()
}

fn latency_marks(svg: &mut Svg, y: &Axis) {
    for value in y.marks() {
        let at = y.at(value);
        svg.line((LEFT, at), (RIGHT, at), "grid");
        svg.text(LEFT - 8.0, at + 4.0, TextAnchor::End, "tick", &time(value));
    }
}

fn draw<'a>(
    svg: &mut Svg,
    x: &Axis,
    y: &Axis,
    names: impl Iterator<Item = &'a str>,
    curves: &[Vec<(f64, f64)>],
) {
    let mut legend = LEFT;
    for ((name, curve), colour) in names.zip(curves).zip(COLOURS.iter().cycle()) {
        let points: Vec<(f64, f64)> = curve.iter().map(|&(at, value)| (x.at(at), y.at(value))).collect();
        svg.path(&points, colour);
        svg.bar(legend, BOTTOM + 26.0, 14.0, 4.0, colour);
        svg.text(legend + 20.0, BOTTOM + 32.0, TextAnchor::Start, "tick", name);
        legend += 36.0 + 6.5 * name.chars().count() as f64;
    }
}

/// Returns points of a recording: one in this many is slower, and the latency in nanoseconds.
fn curve(recording: &Recording) -> Vec<(f64, f64)> {
    let steps = recording.all.iter_quantiles(STEPS_PER_HALVING);
    // The last step is 100 %, which has no position on the axis; it is drawn at one in all of them.
    let rarest = recording.all.len().max(1) as f64;
    steps
        .map(|step| {
            let rarity = 1.0 / (1.0 - step.quantile_iterated_to()).max(1.0 / rarest);
            (rarity, step.value_iterated_to() as f64)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recording_has_its_curve_and_name() {
        let mut recordings = Vec::new();
        for name in ["ours", "theirs"] {
            let mut recording = Recording::new(name, 10.0, 1_000_000);
            (0..1_000).for_each(|n| recording.count(n * 1_000, 1_000 + n * 10));
            recordings.push(recording);
        }
        let both: Vec<&Recording> = recordings.iter().collect();
        let drawn = by_percentile("orders", &["a machine".into()], &both);
        assert_eq!(drawn.matches("<path").count(), 2);
        assert!(drawn.contains(">ours<") && drawn.contains(">theirs<") && drawn.contains("a machine"));
        assert_eq!(over_time("orders", &[], &recordings[0]).matches("<path").count(), 3);
    }

    #[test]
    fn an_empty_recording_can_be_drawn() {
        let recording = Recording::new("none", 0.0, 1);
        assert!(by_percentile("none", &[], &[&recording]).ends_with("</svg>\n"));
        assert!(over_time("none", &[], &recording).ends_with("</svg>\n"));
    }
}
