//! Progress of a simulation, as one line that is overwritten.

use std::io::{self, IsTerminal, Write};
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

fn line(done: u64, all: u64, rows: u64, elapsed: Duration) -> String {
    let share = if all == 0 { 0.0 } else { (done as f64 / all as f64).min(1.0) };
    let full = usize::try_from(u128::from(done.min(all)) * WIDTH as u128 / u128::from(all.max(1)));
    let full = full.unwrap_or(WIDTH);
    let rate = rows as f64 / elapsed.as_secs_f64().max(1e-9) / 1e6;
    format!(
        "[{}{}] {:3.0} %  {:.1} M ticks  {rate:.2} M/s ",
        "#".repeat(full),
        " ".repeat(WIDTH - full),
        share * 100.0,
        rows as f64 / 1e6
    )
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
}
