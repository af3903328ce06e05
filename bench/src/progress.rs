//! How far a long run has come, as one line that is written over: to standard error, and only where somebody looks at it.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// How often the line is written at most.
const EVERY: Duration = Duration::from_millis(200);
const WIDTH: usize = 78;

#[derive(Debug)]
pub struct Progress {
    is_seen: bool,
    begun: Instant,
    shown: Option<Instant>,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress { is_seen: stderr().is_terminal(), begun: Instant::now(), shown: None }
    }
}

impl Progress {
    /// Shows what is being done, and since when.
    pub fn show(&mut self, what: &str) {
        let now = Instant::now();
        if self.is_seen && self.shown.is_none_or(|shown| now - shown >= EVERY) {
            self.shown = Some(now);
            let _ = write!(stderr(), "\r{:WIDTH$.WIDTH$}", line(self.begun.elapsed(), what));
            let _ = stderr().flush();
        }
    }

    /// The same for a step that takes long: told at once.
    pub fn begin(&mut self, nth: usize, of: usize, what: &str) {
        self.shown = None;
        self.show(&format!("{nth} of {of}: {what}"));
    }

    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }
}

/// Takes the line away.
impl Drop for Progress {
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
