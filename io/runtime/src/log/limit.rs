//! A rate limit on log lines that strangers cause: lines beyond it are counted.

use pitlane_engine::time::{NS_PER_S, Timestamp};

/// Maximum number of lines per interval: enough to see what is happening.
const LINES_MAX: u32 = 20;
/// Length of the interval.
const WHILE_NS: u64 = 10 * NS_PER_S;

#[derive(Clone, Copy, Debug, Default)]
pub struct LineLimit {
    began: Timestamp,
    lines: u32,
    left_out: u64,
}

impl LineLimit {
    /// Returns whether one more line may be written now; if so, how many were omitted since the
    /// last one.
    pub fn take(&mut self, now: Timestamp) -> Option<u64> {
        if now.since(self.began) >= WHILE_NS {
            (self.began, self.lines) = (now, 0);
        }
        if self.lines == LINES_MAX {
            self.left_out += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.left_out))
    }

    /// Returns how many lines were omitted, if that is due and no other line has reported it.
    pub fn overdue(&mut self, now: Timestamp) -> Option<u64> {
        if now.since(self.began) >= WHILE_NS { self.rest() } else { None }
    }

    /// Returns how many lines were omitted, at the end of the process.
    pub fn rest(&mut self) -> Option<u64> {
        (self.left_out > 0).then(|| std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_the_limit_are_counted() {
        let mut limit = LineLimit::default();
        let at = |seconds: u64| Timestamp((1_000 + seconds) * NS_PER_S);
        for _ in 0..LINES_MAX {
            assert_eq!(limit.take(at(0)), Some(0));
        }
        for _ in 0..500 {
            assert_eq!((limit.take(at(9)), limit.overdue(at(9))), (None, None));
        }
        assert_eq!(limit.take(at(10)), Some(500), "the next line reports them");
        for _ in 0..LINES_MAX + 2 {
            limit.take(at(10));
        }
        assert_eq!(limit.overdue(at(20)), Some(3), "or a line of its own");
        assert_eq!(limit.overdue(at(30)), None);
    }
}
