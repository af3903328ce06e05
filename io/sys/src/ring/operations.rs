//! The operations in flight, with all that the kernel may use meanwhile: the descriptor, and the
//! bytes that it sends.

use std::os::fd::OwnedFd;
use std::rc::Rc;

/// Identifies one operation until its last completion, and nothing afterwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OperationKey {
    slot: u32,
    generation: u32,
}

impl OperationKey {
    pub(super) fn user_data(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.slot)
    }

    pub(super) fn of(user_data: u64) -> OperationKey {
        let generation = u32::try_from(user_data >> 32).expect("32 bits are left");
        let slot = u32::try_from(user_data & u64::from(u32::MAX)).expect("32 bits are left");
        OperationKey { slot, generation }
    }
}

#[derive(Debug)]
pub(super) struct Operation {
    /// Number by which the caller knows the operation.
    pub(super) tag: u64,
    /// Open while the kernel may use it.
    #[expect(dead_code, reason = "is open while it exists")]
    pub(super) descriptor: Rc<OwnedFd>,
    pub(super) kind: OperationKind,
}

#[derive(Debug)]
pub(super) enum OperationKind {
    Receive,
    /// Bytes of which the kernel sends those from a place on. They are not touched meanwhile.
    Send(Vec<u8>, usize),
    Poll,
}

/// Operations by key. A slot is reused only after the last completion of its operation.
#[derive(Debug, Default)]
pub(super) struct Operations {
    slots: Vec<OperationSlot>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct OperationSlot {
    generation: u32,
    operation: Option<Operation>,
}

/// Largest generation, so that no operation has the number of a cancellation.
const GENERATION_MAX: u32 = u32::MAX - 1;

impl Operations {
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn insert(&mut self, operation: Operation) -> OperationKey {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(OperationSlot { generation: 0, operation: None });
            u32::try_from(self.slots.len() - 1).expect("there are fewer operations")
        });
        let place = &mut self.slots[slot as usize];
        place.operation = Some(operation);
        OperationKey { slot, generation: place.generation }
    }

    pub(super) fn get(&self, key: OperationKey) -> Option<&Operation> {
        let place = self.slots.get(key.slot as usize)?;
        place.operation.as_ref().filter(|_| place.generation == key.generation)
    }

    pub(super) fn remove(&mut self, key: OperationKey) -> Option<Operation> {
        let place = self.slots.get_mut(key.slot as usize)?;
        let operation = place.operation.take_if(|_| place.generation == key.generation)?;
        place.generation = if place.generation == GENERATION_MAX { 0 } else { place.generation + 1 };
        self.free.push(key.slot);
        Some(operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(tag: u64) -> Operation {
        let file = std::fs::File::open("/dev/null").expect("every system has it");
        Operation { tag, descriptor: Rc::new(OwnedFd::from(file)), kind: OperationKind::Poll }
    }

    #[cfg_attr(miri, ignore = "Miri is run without files")]
    #[test]
    fn an_old_key_finds_nothing() {
        let mut operations = Operations::default();
        let first = operations.insert(operation(1));
        assert_eq!(OperationKey::of(first.user_data()), first);
        assert_eq!(operations.remove(first).map(|operation| operation.tag), Some(1));
        let second = operations.insert(operation(2));
        assert_eq!(operations.len(), 1);
        assert_eq!(OperationKey::of(second.user_data()), second);
        assert!(operations.get(first).is_none() && operations.remove(first).is_none());
        assert_eq!(operations.get(second).map(|operation| operation.tag), Some(2));
        assert_eq!(operations.remove(second).map(|operation| operation.tag), Some(2));
        assert_eq!(operations.len(), 0);
    }
}
