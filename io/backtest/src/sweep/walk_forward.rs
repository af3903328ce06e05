//! Walk-forward: the parameters are chosen over one part of the data and judged over the next,
//! which the choice has not seen. Then both parts move on by the length of the second.
//!
//! ```text
//! |---- train ----|- test -|
//!          |---- train ----|- test -|
//!                   |---- train ----|- test -|
//! ```

use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::{PlannedRun, RunExecutor, RunSummary, SweepResult, SweepSettings, best};
use crate::SimulateError;

/// Most windows of a search: each runs the whole grid.
const WINDOWS_MAX: usize = 10_000;

/// Lengths of the two parts of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkForward {
    pub train_ns: u64,
    pub test_ns: u64,
}

impl WalkForward {
    /// Parses two lengths such as `30d,10d`, in s, m, h or d.
    pub fn parse(text: &str) -> Result<WalkForward, String> {
        let length = |text: &str| {
            let text = text.trim();
            let unit_s = match text.chars().last()? {
                's' => 1,
                'm' => 60,
                'h' => 3_600,
                'd' => 86_400,
                _ => return None,
            };
            let count: u64 = text[..text.len() - 1].parse().ok()?;
            count.checked_mul(unit_s)?.checked_mul(NS_PER_S).filter(|ns| *ns > 0)
        };
        let lengths = text.split_once(',').and_then(|(train, test)| length(train).zip(length(test)));
        let problem = || format!("it must be two lengths such as 30d,10d (s, m, h or d), not {text:?}");
        lengths.map(|(train_ns, test_ns)| WalkForward { train_ns, test_ns }).ok_or_else(problem)
    }

    /// Returns both parts of each window of a range that are complete, or of the last one as far as
    /// the data go.
    fn windows(&self, from: Timestamp, to: Timestamp) -> Result<Vec<(Window, Window)>, String> {
        let mut windows = Vec::new();
        let mut begin = from;
        loop {
            let split = begin.plus(self.train_ns);
            if split >= to {
                break;
            }
            let end = split.plus(self.test_ns).min(to);
            windows.push((Window { from: begin, to: split }, Window { from: split, to: end }));
            if windows.len() > WINDOWS_MAX {
                return Err(format!("there are more than {WINDOWS_MAX} windows"));
            }
            begin = begin.plus(self.test_ns);
        }
        if windows.is_empty() { Err("the data are shorter than one window".to_string()) } else { Ok(windows) }
    }
}

/// A part of the data: from a time on, and before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub from: Timestamp,
    pub to: Timestamp,
}

/// The choice of one window, and how it did afterwards.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowResult {
    pub train: Window,
    pub test: Window,
    /// The best run over the first part; None if no run has the statistic.
    pub chosen: Option<RunSummary>,
    /// The same parameters over the second part.
    pub tested: Option<RunSummary>,
}

impl SweepResult {
    /// Returns the return of all second parts, one after the other.
    pub fn tested_return(&self) -> Option<f64> {
        let tested = self.windows.iter().filter_map(|window| window.tested.as_ref());
        let returns = tested.filter_map(|run| run.outcome.as_ref().ok()).map(|figures| figures.total_return);
        returns.map(|value| 1.0 + value).reduce(|all, one| all * one).map(|factor| factor - 1.0)
    }
}

impl WalkForward {
    pub(super) fn search(
        &self,
        settings: &SweepSettings,
        (from, to): (Timestamp, Timestamp),
        executor: &impl RunExecutor,
    ) -> Result<SweepResult, SimulateError> {
        let windows = self
            .windows(from, to)
            .map_err(|problem| SimulateError::Strategy("walk-forward".to_string(), problem))?;
        let points = settings.grid.len();
        let planned = windows.len() * (points + 1);
        let plan: Vec<PlannedRun> =
            windows.iter().flat_map(|(train, _)| settings.grid.plan(Some(*train))).collect();
        let runs = executor.run_all(&plan, planned);
        let mut results: Vec<WindowResult> = windows
            .iter()
            .map(|&(train, test)| {
                let own: Vec<&RunSummary> = runs.iter().filter(|run| run.window == Some(train)).collect();
                // A choice among a part of the runs would not be the choice of the search.
                let is_complete = own.len() == points;
                let chosen = best(own.into_iter(), settings.statistic).filter(|_| is_complete).cloned();
                WindowResult { train, test, chosen, tested: None }
            })
            .collect();
        let tests: Vec<PlannedRun> = results
            .iter()
            .filter_map(|result| {
                let chosen = result.chosen.as_ref()?;
                let (point, parameters) = (chosen.point, chosen.parameters.clone());
                Some(PlannedRun { point, parameters, window: Some(result.test) })
            })
            .collect();
        for tested in executor.run_all(&tests, planned) {
            let own = results.iter_mut().find(|result| Some(result.test) == tested.window);
            if let Some(result) = own {
                result.tested = Some(tested);
            }
        }
        let is_stopped = executor.is_stopped();
        if is_stopped {
            results.retain(|result| result.tested.is_some());
        }
        Ok(SweepResult { settings: settings.clone(), runs, windows: results, planned, is_stopped })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_move_on_by_the_length_of_the_test() {
        let walk_forward = WalkForward { train_ns: 30, test_ns: 10 };
        let windows = walk_forward.windows(Timestamp(100), Timestamp(155)).unwrap();
        let numbers: Vec<[u64; 4]> =
            windows.iter().map(|(a, b)| [a.from.0, a.to.0, b.from.0, b.to.0]).collect();
        assert_eq!(numbers, [[100, 130, 130, 140], [110, 140, 140, 150], [120, 150, 150, 155]]);
        let short = walk_forward.windows(Timestamp(100), Timestamp(130)).unwrap_err();
        assert_eq!(short, "the data are shorter than one window");
        let tiny = WalkForward { train_ns: 1, test_ns: 1 };
        assert!(tiny.windows(Timestamp(0), Timestamp(u64::MAX - 1)).unwrap_err().contains("more than"));
    }

    #[test]
    fn lengths_have_units() {
        let parsed = WalkForward::parse("90m, 1d").unwrap();
        assert_eq!((parsed.train_ns, parsed.test_ns), (5_400 * NS_PER_S, 86_400 * NS_PER_S));
        for text in ["", "5d", "5d,", "5,6", "0d,1d", "1w,1d", "-1d,1d", "99999999999999999d,1d"] {
            assert!(WalkForward::parse(text).is_err(), "{text}");
        }
    }
}
