//! The orders that a desk knows, in a slab with two linked lists: orders in flight and finished
//! orders, oldest first.

use super::names::NIL;
use crate::id::{OrderHandle, Source};
use crate::index::index_u32;
use crate::pages::LargePages;
use crate::sender::SenderId;
use crate::terms::Status;

/// Stage of an entry. Each of the first two has a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrderStage {
    /// Sent; its handle is not known yet.
    InFlight,
    Finished,
    Working,
    /// Unused place.
    Free,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct DeskEntry {
    /// None while in flight, and once the shard has forgotten the order.
    pub handle: OrderHandle,
    pub source: Source,
    /// Token of the command that entered the order.
    pub token: u32,
    /// Names of the first id, of the current id, and the newest name of all.
    pub root: u32,
    pub current: u32,
    pub youngest: u32,
    pub names: u32,
    /// A cancel that waits for the handle: the name of its id, its token and its sender.
    pub held: u32,
    pub held_token: u32,
    pub held_sender: SenderId,
    pub status: Status,
    pub stage: OrderStage,
    /// Neighbours in the list of the stage. In a free place: the next free place.
    prev: u32,
    next: u32,
}

const _: () = assert!(size_of::<DeskEntry>() <= 64, "an entry has one cache line");

#[derive(Clone, Copy, Debug)]
struct EntryList {
    first: u32,
    last: u32,
    len: u32,
}

#[derive(Debug)]
pub(super) struct OrderTable {
    slab: Vec<DeskEntry>,
    max: u32,
    len: u32,
    free: u32,
    in_flight: EntryList,
    finished: EntryList,
}

impl OrderTable {
    pub(super) fn new(max: u32, pages: LargePages) -> OrderTable {
        let line = EntryList { first: NIL, last: NIL, len: 0 };
        let slab = pages.table(max as usize);
        OrderTable { slab, max, len: 0, free: NIL, in_flight: line, finished: line }
    }

    pub(super) fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn has_room(&self) -> bool {
        self.len < self.max
    }

    /// Adds an entry in flight, without names.
    pub(super) fn add(&mut self, source: Source, token: u32) -> u32 {
        assert!(self.has_room(), "the caller checks for room first");
        let entry = DeskEntry {
            handle: OrderHandle::NONE,
            source,
            token,
            root: NIL,
            current: NIL,
            youngest: NIL,
            names: 0,
            held: NIL,
            held_token: 0,
            held_sender: SenderId::NONE,
            status: Status::PendingNew,
            stage: OrderStage::Free,
            prev: NIL,
            next: NIL,
        };
        let number = if self.free == NIL {
            self.slab.push(entry);
            index_u32(self.slab.len() - 1)
        } else {
            let number = self.free;
            self.free = std::mem::replace(&mut self.slab[number as usize], entry).next;
            number
        };
        self.len += 1;
        self.move_to(number, OrderStage::InFlight);
        number
    }

    pub(super) fn remove(&mut self, number: u32) {
        self.move_to(number, OrderStage::Free);
        self.slab[number as usize].next = self.free;
        self.free = number;
        self.len -= 1;
    }

    pub(super) fn at(&self, number: u32) -> &DeskEntry {
        &self.slab[number as usize]
    }

    /// Returns an entry; `None` if the place was never used.
    pub(super) fn get(&self, number: u32) -> Option<&DeskEntry> {
        self.slab.get(number as usize)
    }

    pub(super) fn at_mut(&mut self, number: u32) -> &mut DeskEntry {
        &mut self.slab[number as usize]
    }

    pub(super) fn finished(&self) -> u32 {
        self.finished.len
    }

    pub(super) fn finished_first(&self) -> Option<u32> {
        (self.finished.first != NIL).then_some(self.finished.first)
    }

    /// Returns the entries in flight, oldest first.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = u32> {
        let mut at = self.in_flight.first;
        std::iter::from_fn(move || {
            let number = at;
            at = self.slab.get(number as usize)?.next;
            Some(number)
        })
    }

    /// Moves an entry from its list to the end of the list of its new stage.
    pub(super) fn move_to(&mut self, number: u32, stage: OrderStage) {
        let DeskEntry { prev, next, stage: old, .. } = self.slab[number as usize];
        if let Some(line) = self.line(old) {
            line.len -= 1;
            if prev == NIL {
                line.first = next;
            }
            if next == NIL {
                line.last = prev;
            }
            self.link(prev, next);
        }
        let mut last = NIL;
        if let Some(line) = self.line(stage) {
            last = std::mem::replace(&mut line.last, number);
            line.len += 1;
            if last == NIL {
                line.first = number;
            }
        }
        self.link(last, number);
        let entry = &mut self.slab[number as usize];
        (entry.prev, entry.next, entry.stage) = (last, NIL, stage);
    }

    fn link(&mut self, left: u32, right: u32) {
        if left != NIL {
            self.slab[left as usize].next = right;
        }
        if right != NIL {
            self.slab[right as usize].prev = left;
        }
    }

    fn line(&mut self, stage: OrderStage) -> Option<&mut EntryList> {
        match stage {
            OrderStage::InFlight => Some(&mut self.in_flight),
            OrderStage::Finished => Some(&mut self.finished),
            OrderStage::Working | OrderStage::Free => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_keep_their_order_when_entries_leave() {
        let mut order_table = OrderTable::new(4, LargePages::NONE);
        let numbers: Vec<_> = (0..4).map(|token| order_table.add(Source::default(), token)).collect();
        assert!(!order_table.has_room());
        assert_eq!(order_table.in_flight().collect::<Vec<_>>(), numbers);
        order_table.move_to(1, OrderStage::Finished);
        order_table.move_to(3, OrderStage::Working);
        order_table.move_to(0, OrderStage::Finished);
        assert_eq!(order_table.in_flight().collect::<Vec<_>>(), [2]);
        assert_eq!((order_table.finished_first(), order_table.finished()), (Some(1), 2));
        order_table.remove(1);
        order_table.remove(2);
        assert_eq!(
            (order_table.finished_first(), order_table.finished(), order_table.len()),
            (Some(0), 1, 2)
        );
        assert_eq!(order_table.in_flight().count(), 0);
        assert_eq!(order_table.add(Source::default(), 9), 2, "the slot freed last is used first");
        assert_eq!(order_table.add(Source::default(), 9), 1);
        assert_eq!(order_table.in_flight().collect::<Vec<_>>(), [2, 1]);
        order_table.move_to(0, OrderStage::Working);
        assert_eq!(order_table.finished_first(), None);
    }
}
