//! Ports that watch the events of a shard. Ticks are watched per security, in the directory; depth
//! per book, in [`super::depth`]; instructions per adapter, in [`super::adapters`].

use crate::codec::{ByteReader, ByteSink, Codec, DecodeError};
use crate::id::{PortMask, Source};

/// Ports that watch each kind of event.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EventWatchers {
    pub everything: PortMask,
    pub orders: PortMask,
    pub budgets: PortMask,
    /// Ports that receive the events of every order since the start of the process. They are no
    /// part of the state: no command sets them, so that they miss no event before such a command.
    pub copies: PortMask,
}

impl Codec for EventWatchers {
    fn encode(&self, out: &mut impl ByteSink) {
        let EventWatchers { everything, orders, budgets, copies: _ } = self;
        [everything, orders, budgets].into_iter().for_each(|ports| ports.encode(out));
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<EventWatchers, DecodeError> {
        let (everything, orders, budgets) =
            (Codec::decode(from)?, Codec::decode(from)?, Codec::decode(from)?);
        Ok(EventWatchers { everything, orders, budgets, copies: PortMask::NONE })
    }
}

impl EventWatchers {
    /// Returns the ports that receive an event that belongs to no order.
    #[inline]
    pub(super) fn of_shard(&self) -> PortMask {
        self.everything.with(self.orders)
    }

    /// Returns the ports that receive the events of an order of this source.
    #[inline]
    pub(super) fn of_order(&self, source: Source) -> PortMask {
        self.of_shard().with(self.copies).with(PortMask::one(source.port))
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
