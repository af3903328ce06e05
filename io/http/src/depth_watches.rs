//! Books that are watched for clients that poll them over REST. A watch ends when no client has
//! asked for a minute, because it costs the shard and this thread work for each change.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use pitlane_engine::id::SecurityId;
use pitlane_engine::time::{NS_PER_S, Timestamp};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// Securities that are watched for such clients. Each costs at most 64 KiB for its updates.
const WATCHES_MAX: usize = 256;
/// Time after the last request after which a watch ends.
const UNUSED_NS_MAX: u64 = 60 * NS_PER_S;

/// Securities that are watched for clients that poll, by their last request.
#[derive(Debug, Default)]
pub(crate) struct DepthWatches {
    used_at: RefCell<BTreeMap<SecurityId, Timestamp>>,
    /// Number of requests that wait for a book.
    waiting: Cell<usize>,
    /// Notified when a book may have become known.
    changed: Notify,
}

impl DepthWatches {
    /// Records a request. Returns whether the security must be watched from now on, and the one
    /// whose watch ends for it.
    pub(crate) fn begin(&self, security: SecurityId, now: Timestamp) -> (bool, Option<SecurityId>) {
        let mut used_at = self.used_at.borrow_mut();
        if used_at.insert(security, now).is_some() {
            return (false, None);
        }
        if used_at.len() <= WATCHES_MAX {
            return (true, None);
        }
        let others = used_at.iter().filter(|(other, _)| **other != security);
        let oldest = others.min_by_key(|(_, at)| **at).map(|(other, _)| *other);
        oldest.map(|oldest| used_at.remove(&oldest));
        (true, oldest)
    }

    /// Takes a watch that was not used for too long.
    pub(crate) fn take_unused(&self, now: Timestamp) -> Option<SecurityId> {
        let mut used_at = self.used_at.borrow_mut();
        let is_unused = |at: &Timestamp| now.since(*at) > UNUSED_NS_MAX;
        let unused = used_at.iter().find(|(_, at)| is_unused(at)).map(|(security, _)| *security)?;
        used_at.remove(&unused);
        Some(unused)
    }

    /// Returns whether a request waits for a book.
    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting.get() > 0
    }

    /// Returns a future that is ready after the next change.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Lets the waiting requests look again.
    pub(crate) fn notify(&self) {
        if self.has_waiting() {
            self.changed.notify_waiters();
        }
    }
}

/// A request that waits. It is counted until it is dropped, also when its client disconnects.
pub(crate) struct DepthWaiter<'a>(&'a DepthWatches);

impl<'a> DepthWaiter<'a> {
    pub(crate) fn begin(watches: &'a DepthWatches) -> DepthWaiter<'a> {
        watches.waiting.set(watches.waiting.get() + 1);
        DepthWaiter(watches)
    }
}

impl Drop for DepthWaiter<'_> {
    fn drop(&mut self) {
        self.0.waiting.set(self.0.waiting.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::index::index_u32;

    use super::*;

    #[test]
    fn watches_are_bounded_and_end_when_they_are_not_used() {
        let watches = DepthWatches::default();
        let max = index_u32(WATCHES_MAX);
        for id in 0..max {
            assert_eq!(watches.begin(SecurityId(id), Timestamp(u64::from(id))), (true, None));
        }
        assert_eq!(watches.begin(SecurityId(0), Timestamp(1_000)), (false, None));
        let evicted = watches.begin(SecurityId(max), Timestamp(1_001));
        assert_eq!(evicted, (true, Some(SecurityId(1))), "the one that was not used for longest");
        assert_eq!(watches.used_at.borrow().len(), WATCHES_MAX);
        assert_eq!(watches.take_unused(Timestamp(2 + UNUSED_NS_MAX)), None);
        assert_eq!(watches.take_unused(Timestamp(3 + UNUSED_NS_MAX)), Some(SecurityId(2)));
        let mut ended = 1;
        while watches.take_unused(Timestamp(2_000 + UNUSED_NS_MAX)).is_some() {
            ended += 1;
        }
        assert_eq!(ended, WATCHES_MAX);
    }
}
