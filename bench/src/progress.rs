//! The progress of a long run, as one line that is overwritten: on standard error, and only if that
//! is a terminal.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// Shortest time between two updates of the line.
const EVERY: Duration = Duration::from_millis(200);
const WIDTH: usize = 78;

#[derive(Debug)]
pub struct ProgressLine {
    is_seen: bool,
    begun: Instant,
    shown: Option<Instant>,
}

impl Default for ProgressLine {
    fn default() -> ProgressLine {
        ProgressLine { is_seen: stderr().is_terminal(), begun: Instant::now(), shown: None }
    }
}

impl ProgressLine {
    /// Shows the current step and the elapsed time.
    pub fn show(&mut self, what: &str) {
        let now = Instant::now();
        if self.is_seen && self.shown.is_none_or(|shown| now - shown >= EVERY) {
            self.shown = Some(now);
            let _ = write!(stderr(), "\r{:WIDTH$.WIDTH$}", line(self.begun.elapsed(), what));
            let _ = stderr().flush();
        }
    }

    /// Shows a step that takes long, without waiting for the next update.
    pub fn begin(&mut self, nth: usize, of: usize, what: &str) {
        self.shown = None;
        self.show(&format!("{nth} of {of}: {what}"));
    }

    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }
}

/// Clears the line.
impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.is_seen && self.shown.is_some() {
            let _ = write!(stderr(), "\r{:WIDTH$}\r", "");
        }
    }
}

fn line(elapsed: Duration, what: &str) -> String {
    let seconds = elapsed.as_secs();
    format!("{:>2}:{:02}  {what}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_begins_with_the_time() {
        assert_eq!(line(Duration::from_secs(83), "fix"), " 1:23  fix");
    }
}
