//! Numbers for the ids we make, never given to anybody else: blocks that somebody with a disk has noted ahead.

use pitlane_engine::desk::IdBlock;
use rtrb::Consumer;

/// Fewer left than this, and the next block is taken. Some milliseconds of orders at full speed.
const LOW: u64 = 1_024;

/// Where numbers come from.
#[derive(Debug, Default)]
pub struct Numbers {
    first: IdBlock,
    /// None: there is only the first.
    more: Option<Consumer<IdBlock>>,
}

impl Numbers {
    /// A block, and a lane on which more of them come.
    pub fn new(first: IdBlock, more: Consumer<IdBlock>) -> Numbers {
        Numbers { first, more: Some(more) }
    }

    /// All of these and no others.
    pub fn only(first: IdBlock) -> Numbers {
        Numbers { first, more: None }
    }

    /// The next block, if there is one.
    pub(super) fn take(&mut self) -> Option<IdBlock> {
        let first = std::mem::take(&mut self.first);
        if first.next < first.end {
            return Some(first);
        }
        self.more.as_mut()?.pop().ok()
    }

    /// The next block, if so few are left that it is wanted.
    #[inline]
    pub(super) fn refill(&mut self, left: u64) -> Option<IdBlock> {
        if left > LOW { None } else { self.take() }
    }
}
