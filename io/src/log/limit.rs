//! A limit on log lines that strangers cause: so many in a while, the others are counted.

use pitlane_engine::time::{NS_PER_S, Timestamp};

/// Lines in one while: enough to see what goes on.
const LINES_MAX: u32 = 20;
/// A while.
const WHILE_NS: u64 = 10 * NS_PER_S;

#[derive(Clone, Copy, Debug, Default)]
pub struct LineLimit {
    began: Timestamp,
    lines: u32,
    left_out: u64,
}

impl LineLimit {
    /// Whether one more line may be written now; if so, how many were left out since the last one.
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

    /// How many lines were left out, if that is to be said now because no other line does.
    pub fn overdue(&mut self, now: Timestamp) -> Option<u64> {
        if now.since(self.began) >= WHILE_NS { self.rest() } else { None }
    }

    /// The same at the end.
    pub fn rest(&mut self) -> Option<u64> {
        (self.left_out > 0).then(|| std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_lines_are_written_and_the_others_are_counted() {
        let mut limit = LineLimit::default();
        let at = |seconds: u64| Timestamp((1_000 + seconds) * NS_PER_S);
        for _ in 0..LINES_MAX {
            assert_eq!(limit.take(at(0)), Some(0));
        }
        for _ in 0..500 {
            assert_eq!((limit.take(at(9)), limit.overdue(at(9))), (None, None));
        }
        assert_eq!(limit.take(at(10)), Some(500), "the next line tells");
        for _ in 0..LINES_MAX + 2 {
            limit.take(at(10));
        }
        assert_eq!(limit.overdue(at(20)), Some(3), "or a line of its own");
        assert_eq!(limit.overdue(at(30)), None);
    }
}
