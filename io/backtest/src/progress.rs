//! Progress of a simulation or of a search, as one line that is overwritten.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Interval at which the line is written.
const EVERY: Duration = Duration::from_millis(200);
const WIDTH: usize = 40;

/// Writes to standard error, if that is a terminal.
#[derive(Debug)]
pub struct SimulationProgress {
    on: bool,
    begun: Instant,
    shown: Option<Instant>,
}

impl SimulationProgress {
    pub fn new(quiet: bool) -> SimulationProgress {
        SimulationProgress { on: !quiet && io::stderr().is_terminal(), begun: Instant::now(), shown: None }
    }

    pub fn show(&mut self, done: u64, all: u64, rows: u64) {
        let now = Instant::now();
        if !self.on || self.shown.is_some_and(|shown| now - shown < EVERY) {
            return;
        }
        self.shown = Some(now);
        let _ = write!(io::stderr(), "\r{}", line(done, all, rows, now - self.begun));
    }

    /// Removes the line.
    pub fn end(&mut self) {
        if self.shown.take().is_some() {
            let _ = write!(io::stderr(), "\r{:width$}\r", "", width = WIDTH + 60);
        }
    }
}

/// Progress of a search: its threads report each finished run. Writes to standard error, if that is
/// a terminal.
#[derive(Debug)]
pub struct SweepProgress {
    on: bool,
    begun: Instant,
    /// Number of runs that is shown.
    shown: Mutex<usize>,
}

impl SweepProgress {
    pub fn new(quiet: bool) -> SweepProgress {
        let on = !quiet && io::stderr().is_terminal();
        SweepProgress { on, begun: Instant::now(), shown: Mutex::new(0) }
    }

    pub fn show(&self, done: usize, all: usize) {
        if !self.on {
            return;
        }
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        // The threads do not come here in the order of their numbers.
        if done > *shown {
            *shown = done;
            let _ = write!(io::stderr(), "\r{}", sweep_line(done, all, self.begun.elapsed()));
        }
    }

    /// Removes the line.
    pub fn end(&self) {
        if *self.shown.lock().unwrap_or_else(PoisonError::into_inner) > 0 {
            let _ = write!(io::stderr(), "\r{:width$}\r", "", width = WIDTH + 60);
        }
    }
}

fn sweep_line(done: usize, all: usize, elapsed: Duration) -> String {
    let left_s = elapsed.as_secs_f64() / done.max(1) as f64 * all.saturating_sub(done) as f64;
    format!("{} {done} of {all} runs, {left_s:.0} s left ", bar(done as u64, all as u64))
}

/// Returns the bar of a share.
fn bar(done: u64, all: u64) -> String {
    let full = usize::try_from(u128::from(done.min(all)) * WIDTH as u128 / u128::from(all.max(1)));
    let full = full.unwrap_or(WIDTH);
    format!("[{}{}]", "#".repeat(full), " ".repeat(WIDTH - full))
}

fn line(done: u64, all: u64, rows: u64, elapsed: Duration) -> String {
    let share = if all == 0 { 0.0 } else { (done as f64 / all as f64).min(1.0) };
    let rate = rows as f64 / elapsed.as_secs_f64().max(1e-9) / 1e6;
    format!("{} {:3.0} %  {:.1} M ticks  {rate:.2} M/s ", bar(done, all), share * 100.0, rows as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_one_length_and_never_more_than_all() {
        let half = line(50, 100, 2_000_000, Duration::from_secs(1));
        assert!(
            half.starts_with("[####################                    ]  50 %  2.0 M ticks  2.00 M/s"),
            "{half}"
        );
        assert!(line(200, 100, 1, Duration::ZERO).contains("100 %"));
        assert!(line(0, 0, 0, Duration::ZERO).contains("  0 %"));
    }

    #[test]
    fn the_line_of_a_search_estimates_the_rest() {
        let quarter = sweep_line(5, 20, Duration::from_secs(10));
        assert!(
            quarter.starts_with("[##########  ") && quarter.ends_with("] 5 of 20 runs, 30 s left "),
            "{quarter}"
        );
    }
}
