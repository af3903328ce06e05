//! Ids of connections.

use pitlane_engine::index::index_u32;
use pitlane_engine::slot_map::SlotKey;
use pitlane_engine::slot_table::HasSlot;

/// Identifies one connection of one thread while it exists, and nothing afterwards. A gateway may
/// keep its sessions in a table by slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub(super) SlotKey);

impl ConnectionId {
    /// Returns the id of the first connection in a slot, for tests of tables by slot.
    pub fn of_slot(slot: usize) -> ConnectionId {
        ConnectionId(SlotKey::new(index_u32(slot), 1))
    }
}

impl HasSlot for ConnectionId {
    #[inline]
    fn slot(self) -> usize {
        self.0.slot()
    }
}
