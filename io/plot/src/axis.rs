//! Maps values to positions on a line, and chooses the marks beside it.

/// Distribution of values along the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    Linear,
    /// Every factor of ten takes the same length.
    Log,
}

#[derive(Clone, Copy, Debug)]
pub struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    /// Positions of `low` and `high`.
    from: f64,
    to: f64,
}

impl Axis {
    /// Creates an axis from the lowest to the highest of these values, with some margin; without
    /// values, from 0 (or 1) to 10.
    pub fn over(scale: Scale, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Axis {
        let (low, high) = match (scale, bounds(values)) {
            (Scale::Linear, Some((low, high))) => (low.min(0.0), if high > 0.0 { high * 1.05 } else { 1.0 }),
            (Scale::Linear, None) => (0.0, 10.0),
            (Scale::Log, Some((low, high))) => {
                let (low, high) = (low.max(1e-9).log10().floor(), high.max(1e-9).log10().ceil());
                (10f64.powf(low), 10f64.powf(high.max(low + 1.0)))
            }
            (Scale::Log, None) => (1.0, 10.0),
        };
        Axis { scale, low, high, from, to }
    }

    /// Creates a linear axis from exactly the lowest to exactly the highest of these values; if
    /// they are equal, or there are none, over a range of 1.
    pub fn exactly(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Axis {
        let (low, high) = bounds(values).unwrap_or((0.0, 1.0));
        Axis { scale: Scale::Linear, low, high: if high > low { high } else { low + 1.0 }, from, to }
    }

    /// Returns the position of a value.
    pub fn at(&self, value: f64) -> f64 {
        let part = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value.max(self.low) / self.low).log10() / (self.high / self.low).log10(),
        };
        self.from + part.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Returns round values for marks: about five, or one for each power of ten.
    pub fn marks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Log => {
                let (low, high) = (power_of_ten(self.low), power_of_ten(self.high));
                (low..=high).map(|power| 10f64.powi(power)).collect()
            }
            Scale::Linear => {
                let rough = (self.high - self.low) / 5.0;
                let magnitude = 10f64.powf(rough.log10().floor());
                let factor =
                    [1.0, 2.0, 5.0, 10.0].into_iter().find(|f| f * magnitude >= rough).unwrap_or(10.0);
                let step = factor * magnitude;
                let first = whole((self.low / step).ceil());
                let last = whole((self.high / step).floor());
                (first..=last).map(|nth| nth as f64 * step).collect()
            }
        }
    }
}

/// Returns the nearest power of ten; floats have a few hundred of them.
fn power_of_ten(value: f64) -> i32 {
    i32::try_from(whole(value.log10().round()).clamp(-400, 400)).expect("it has three digits")
}

/// Returns a number without a fraction. A number beyond 64 bits gives the end of their range.
fn whole(number: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "the number is whole")]
    let whole = number as i64;
    whole
}

/// Returns the lowest and the highest of the values that are finite.
fn bounds(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let finite = values.filter(|value| value.is_finite());
    finite.map(|value| (value, value)).reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
}

/// Formats nanoseconds with a readable unit.
pub fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{} µs", short(ns / 1e3)),
        ns if ns < 1e9 => format!("{} ms", short(ns / 1e6)),
        ns => format!("{} s", short(ns / 1e9)),
    }
}

/// Formats up to three digits, without trailing zeros.
pub fn short(value: f64) -> String {
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_axis_reaches_both_ends_and_spaces_powers_of_ten_evenly() {
        let axis = Axis::over(Scale::Log, [10.0, 1_000.0].into_iter(), 0.0, 100.0);
        assert_eq!((axis.at(10.0), axis.at(100.0).round(), axis.at(1_000.0)), (0.0, 50.0, 100.0));
        assert_eq!(axis.marks(), [10.0, 100.0, 1_000.0]);
    }

    #[test]
    fn marks_are_round() {
        let axis = Axis::over(Scale::Linear, [0.0, 9.2].into_iter(), 0.0, 100.0);
        assert_eq!(axis.marks(), [0.0, 2.0, 4.0, 6.0, 8.0]);
    }

    #[test]
    fn an_axis_without_values_is_finite() {
        for scale in [Scale::Linear, Scale::Log] {
            assert!(Axis::over(scale, std::iter::empty(), 0.0, 1.0).at(5.0).is_finite());
        }
        assert!(Axis::exactly(std::iter::empty(), 0.0, 1.0).at(5.0).is_finite());
    }

    #[test]
    fn an_exact_axis_begins_and_ends_at_its_values() {
        let axis = Axis::exactly([7.0, 3.0, f64::NAN, 5.0].into_iter(), 100.0, 0.0);
        assert_eq!([3.0, 5.0, 7.0].map(|value| axis.at(value)), [100.0, 50.0, 0.0]);
        let flat = Axis::exactly([3.0, 3.0].into_iter(), 100.0, 0.0);
        assert_eq!((flat.at(3.0), flat.at(4.0)), (100.0, 0.0));
    }

    #[test]
    fn times_are_short() {
        assert_eq!([1.0, 1_500.0, 20_000.0, 3e6, 2e9].map(time), ["1 ns", "1.5 µs", "20 µs", "3 ms", "2 s"]);
    }
}
