//! The connections of one thread by their ids.

use pitlane_engine::slot_map::SlotMap;

use super::connection::Connection;
use super::connection_id::ConnectionId;

/// All connections of a thread. Their number is limited before they come here: by `PeerLimits`,
/// and by the number of descriptors of the process.
pub(super) struct Connections(SlotMap<Connection>);

impl Connections {
    pub(super) fn new() -> Connections {
        Connections(SlotMap::new(u32::MAX, u32::MAX))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn insert(&mut self, connection: Connection) -> ConnectionId {
        ConnectionId(self.0.insert(connection).expect("a process has fewer descriptors than slots"))
    }

    #[inline]
    pub(super) fn get(&self, id: ConnectionId) -> Option<&Connection> {
        self.0.get(id.0)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.0.get_mut(id.0)
    }

    pub(super) fn remove(&mut self, id: ConnectionId) -> Option<Connection> {
        self.0.remove(id.0)
    }

    /// Returns the id of the connection in a slot.
    #[inline]
    pub(super) fn id_at(&self, slot: usize) -> Option<ConnectionId> {
        self.0.key_at(slot).map(ConnectionId)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.0.values_mut()
    }
}
