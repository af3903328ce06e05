//! Numbers for the ids made here, each given out once: they come in blocks that a thread with a
//! disk has recorded in advance.

use pitlane_engine::desk::IdBlock;
use rtrb::Consumer;

/// Number of remaining ids below which the next block is taken. Some milliseconds of orders at full
/// speed.
const LOW: u64 = 1_024;

/// Source of numbers.
#[derive(Debug, Default)]
pub struct Numbers {
    first: IdBlock,
    /// Lane of further blocks; `None` if there is only the first.
    more: Option<Consumer<IdBlock>>,
}

impl Numbers {
    /// Creates a source with a first block and a lane on which more of them come.
    pub fn new(first: IdBlock, more: Consumer<IdBlock>) -> Numbers {
        Numbers { first, more: Some(more) }
    }

    /// Creates a source with one block and no others.
    pub fn only(first: IdBlock) -> Numbers {
        Numbers { first, more: None }
    }

    /// Takes the next block, if there is one.
    pub(super) fn take(&mut self) -> Option<IdBlock> {
        let first = std::mem::take(&mut self.first);
        if first.next < first.end {
            return Some(first);
        }
        self.more.as_mut()?.pop().ok()
    }

    /// Takes the next block if so few numbers are left that it is wanted.
    #[inline]
    pub(super) fn refill(&mut self, left: u64) -> Option<IdBlock> {
        if left > LOW { None } else { self.take() }
    }
}
