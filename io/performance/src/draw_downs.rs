//! Draw-downs of a curve: the times during which it is below an earlier high.

use pitlane_engine::time::Timestamp;

/// Number of draw-downs that are listed.
const LISTED_MAX: usize = 10;

/// One fall below a high.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawDown {
    /// Time of the high before it.
    pub from: Timestamp,
    /// Time of the lowest value.
    pub bottom: Timestamp,
    /// Time at which the high was reached again; None if it was not.
    pub to: Option<Timestamp>,
    /// Share of the high, above zero.
    pub depth: f64,
    /// From the high to its recovery, or to the end of the curve.
    pub length_ns: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DrawDowns {
    pub max: f64,
    pub longest_ns: u64,
    /// The deepest first; at most `LISTED_MAX`.
    pub deepest: Vec<DrawDown>,
}

/// Returns the draw-down at each sample, as a share of the earlier high.
pub fn depths(samples: &[(Timestamp, f64)]) -> Vec<(Timestamp, f64)> {
    let mut high = f64::MIN;
    let depth = |&(at, value): &(Timestamp, f64)| {
        high = high.max(value);
        (at, share(high, value))
    };
    samples.iter().map(depth).collect()
}

pub(crate) fn draw_downs(samples: &[(Timestamp, f64)]) -> DrawDowns {
    let Some((&first, rest)) = samples.split_first() else { return DrawDowns::default() };
    let mut all = Vec::new();
    let (mut high_at, mut high) = first;
    let mut open: Option<DrawDown> = None;
    for &(at, value) in rest {
        if value >= high {
            all.extend(open.take().map(|fall| DrawDown {
                to: Some(at),
                length_ns: at.since(high_at),
                ..fall
            }));
            (high_at, high) = (at, value);
            continue;
        }
        let depth = share(high, value);
        let fall = open.get_or_insert(DrawDown { from: high_at, bottom: at, to: None, depth, length_ns: 0 });
        if depth > fall.depth {
            (fall.bottom, fall.depth) = (at, depth);
        }
        fall.length_ns = at.since(high_at);
    }
    all.extend(open);
    let max = all.iter().map(|fall| fall.depth).fold(0.0, f64::max);
    let longest_ns = all.iter().map(|fall| fall.length_ns).max().unwrap_or(0);
    // A stable sort: of equal ones the earliest comes first.
    all.sort_by(|a, b| b.depth.total_cmp(&a.depth));
    all.retain(|fall| fall.depth > 0.0);
    all.truncate(LISTED_MAX);
    DrawDowns { max, longest_ns, deepest: all }
}

fn share(high: f64, value: f64) -> f64 {
    if high > 0.0 { 1.0 - value / high } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[f64]) -> Vec<(Timestamp, f64)> {
        values.iter().enumerate().map(|(at, value)| (Timestamp(at as u64 * 10), *value)).collect()
    }

    #[test]
    fn the_table_has_each_fall_once_and_the_deepest_first() {
        let found = draw_downs(&samples(&[100.0, 95.0, 100.0, 120.0, 60.0, 90.0, 121.0, 110.0]));
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-12;
        assert!(near(found.max, 0.5));
        assert_eq!((found.longest_ns, found.deepest.len()), (30, 3));
        let at = |at: u64| Timestamp(at);
        let [deep, last, first] = found.deepest[..] else { panic!("{found:?}") };
        assert_eq!((deep.from, deep.bottom, deep.to), (at(30), at(40), Some(at(60))));
        assert_eq!((last.from, last.bottom, last.to, last.length_ns), (at(60), at(70), None, 10));
        assert_eq!((first.from, first.to), (at(0), Some(at(20))));
        assert!(near(first.depth, 0.05));
    }

    #[test]
    fn so_many_falls_are_listed_and_a_rise_has_none() {
        let zigzag: Vec<f64> = (0..100).map(|nth| 100.0 + nth as f64 - 5.0 * (nth % 2) as f64).collect();
        assert_eq!(draw_downs(&samples(&zigzag)).deepest.len(), LISTED_MAX);
        assert_eq!(draw_downs(&samples(&[1.0, 2.0, 2.0])), DrawDowns::default());
        assert_eq!(draw_downs(&[]), DrawDowns::default());
    }

    #[test]
    fn depths_are_shares_of_the_high() {
        let depths: Vec<f64> = depths(&samples(&[100.0, 75.0, 100.0])).into_iter().map(|(_, d)| d).collect();
        assert_eq!(depths, [0.0, 0.25, 0.0]);
    }
}
