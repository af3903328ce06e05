//! The clock of the http thread.

use std::cell::RefCell;

use pitlane_engine::time::Timestamp;
use pitlane_runtime::clock::Clock;

#[derive(Debug)]
pub(crate) struct ThreadClock(RefCell<Clock>);

impl ThreadClock {
    pub(crate) fn new(clock: Clock) -> ThreadClock {
        ThreadClock(RefCell::new(clock))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.0.borrow_mut().now()
    }
}
