//! Ports that watch the events of a shard. Ticks are watched per security, in the directory; depth
//! per book, in [`super::depth`]; instructions per adapter, in [`super::adapters`].

use crate::codec::codec;
use crate::id::{PortMask, Source};

/// Ports that watch each kind of event.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EventWatchers {
    pub everything: PortMask,
    pub orders: PortMask,
    pub budgets: PortMask,
}

codec!(EventWatchers { everything, orders, budgets });

impl EventWatchers {
    /// Returns the ports that receive an event that belongs to no order.
    #[inline]
    pub(super) fn of_shard(&self) -> PortMask {
        self.everything.with(self.orders)
    }

    /// Returns the ports that receive the events of an order of this source.
    #[inline]
    pub(super) fn of_order(&self, source: Source) -> PortMask {
        self.of_shard().with(PortMask::one(source.port))
    }

    /// Returns the ports that receive an event that also concerns the port which distributes limits
    /// and settles positions.
    pub(super) fn of_shard_and_budgets(&self) -> PortMask {
        self.of_shard().with(self.budgets)
    }

    /// Returns the ports that receive a tick that these ports watch.
    #[inline]
    pub(super) fn of_tick(&self, watchers: PortMask) -> PortMask {
        self.everything.with(watchers)
    }
}
