//! Adapters of the venues: whether each is connected, whether the operator has killed it, and the
//! port that takes its instructions. The simulated venue is an adapter that is always connected.

use crate::codec::codec;
use crate::id::{AdapterId, PortMask};
use crate::index::index_u8;

const ADAPTERS: usize = 256;

#[derive(Debug)]
pub(super) struct Adapters {
    states: [AdapterState; ADAPTERS],
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AdapterState {
    pub is_connected: bool,
    pub is_killed: bool,
    /// The port of its adapter.
    pub ports: PortMask,
}

codec!(AdapterState { is_connected, is_killed, ports });
codec!(Adapters { states });

impl Default for Adapters {
    fn default() -> Adapters {
        let mut adapters = Adapters { states: [AdapterState::default(); ADAPTERS] };
        adapters.get_mut(AdapterId::SIM).is_connected = true;
        adapters
    }
}

impl Adapters {
    #[inline]
    pub(super) fn get(&self, adapter: AdapterId) -> &AdapterState {
        &self.states[adapter.0 as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, adapter: AdapterId) -> &mut AdapterState {
        &mut self.states[adapter.0 as usize]
    }

    /// Returns the adapter of this index, or `None` after the last one.
    pub(super) fn at(&self, at: usize) -> Option<(AdapterId, &AdapterState)> {
        self.states.get(at).map(|state| (AdapterId(index_u8(at)), state))
    }

    #[inline]
    pub(super) fn is_connected(&self, adapter: AdapterId) -> bool {
        self.get(adapter).is_connected
    }

    /// Sets whether an adapter is connected. Returns whether that is a change.
    pub(super) fn set_connected(&mut self, adapter: AdapterId, is_connected: bool) -> bool {
        let state = self.get_mut(adapter);
        std::mem::replace(&mut state.is_connected, is_connected) != is_connected
    }

    /// Returns all adapters but that of the simulated venue.
    pub(super) fn outside() -> impl Iterator<Item = AdapterId> {
        (1..ADAPTERS).map(|at| AdapterId(index_u8(at)))
    }

    pub(super) fn forget_ports(&mut self) {
        self.states.iter_mut().for_each(|state| state.ports = PortMask::NONE);
    }
}
