//! A series of rising rates up to the knee: the highest rate that is sustained before latency runs
//! away.

use crate::convert::whole;
use crate::report::recording::Recording;

/// Fraction of the planned rate that must be reached.
const REACHED_MIN: f64 = 0.98;
/// Highest 99th percentile relative to that of the lowest rate; beyond it, the queue grows faster
/// than it is served.
const P99_GROWTH_MAX: f64 = 20.0;

/// Returns rates from the lowest, each half as much again as the one before, rounded to two digits.
pub fn rising_rates(lowest: u64, highest: u64) -> Vec<u64> {
    let mut rates = Vec::new();
    let mut rate = lowest.max(1) as f64;
    while rate <= highest as f64 {
        let magnitude = 10f64.powf(rate.log10().floor() - 1.0).max(1.0);
        rates.push(whole((rate / magnitude).round() * magnitude).unsigned_abs());
        rate *= 1.5;
    }
    rates.dedup();
    rates
}

/// All steps of a run, including the one that was too much.
#[derive(Clone, Debug, Default)]
pub struct RateSweep {
    pub steps: Vec<Recording>,
}

impl RateSweep {
    /// Raises the rate until it is too much.
    pub fn run_rising<E>(
        rates: &[u64],
        mut run: impl FnMut(u64) -> Result<Recording, E>,
    ) -> Result<RateSweep, E> {
        let mut sweep = RateSweep::default();
        for &rate in rates {
            sweep.steps.push(run(rate)?);
            if !sweep.is_sustained(sweep.steps.len() - 1) {
                break;
            }
        }
        Ok(sweep)
    }

    /// Returns the highest rate that was sustained, or `None` if not even the lowest was.
    pub fn knee(&self) -> Option<&Recording> {
        self.steps.iter().enumerate().rfind(|&(nth, _)| self.is_sustained(nth)).map(|(_, step)| step)
    }

    fn is_sustained(&self, nth: usize) -> bool {
        let p99 = |step: &Recording| step.all.value_at_quantile(0.99) as f64;
        let (first, step) = (&self.steps[0], &self.steps[nth]);
        step.per_s_reached >= REACHED_MIN * step.per_s_planned && p99(step) <= P99_GROWTH_MAX * p99(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(rate: u64, reached: f64, latency_ns: u64) -> Recording {
        let mut recording = Recording::new("step", rate as f64, 1_000_000_000);
        recording.count(0, latency_ns);
        recording.per_s_reached = reached;
        recording
    }

    #[test]
    fn rates_are_round_and_rise() {
        assert_eq!(rising_rates(1_000, 6_000), [1_000, 1_500, 2_300, 3_400, 5_100]);
        assert_eq!(rising_rates(1, 3), [1, 2]);
    }

    #[test]
    fn the_knee_is_the_last_sustained_rate() {
        let run = |rate: u64| Ok::<_, ()>(step(rate, (rate as f64).min(350.0), 100));
        let sweep = RateSweep::run_rising(&[100, 200, 300, 400, 500], run).unwrap();
        assert_eq!(sweep.steps.len(), 4);
        assert_eq!(sweep.knee().unwrap().per_s_planned, 300.0);
    }

    #[test]
    fn a_rate_with_runaway_latency_is_not_sustained() {
        let run = |rate: u64| Ok::<_, ()>(step(rate, rate as f64, if rate > 200 { 1_000_000 } else { 100 }));
        let sweep = RateSweep::run_rising(&[100, 200, 300, 400], run).unwrap();
        assert_eq!((sweep.steps.len(), sweep.knee().unwrap().per_s_planned), (3, 200.0));
    }
}
