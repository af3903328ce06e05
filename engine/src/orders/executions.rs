//! Executions at outside venues, remembered for as long as their orders: to detect a repeated one,
//! to take one back, and to recognize one that was counted before it was reported.

use super::Orders;
use crate::command::ExecRef;
use crate::index::index_u32;
use crate::number::{Price, Qty};
use crate::order::NIL;

/// One execution at an outside venue, remembered to detect a repeated one and to take one back.
///
/// A correction has an id of its own, by which a later correction may refer to the execution. Such
/// an id is an entry too, which leads to the execution (`root`).
#[derive(Clone, Copy, Debug)]
pub struct RecordedExecution {
    pub exec: ExecRef,
    pub qty: Qty,
    pub price: Price,
    /// The order's previous execution, or the next free place.
    pub(super) next: u32,
    /// The execution that this id corrected, or [`NIL`] if this is an execution.
    pub(super) root: u32,
    /// Whether it stands for fills that the venue did not report one by one.
    pub(super) presumed: bool,
}

impl Orders {
    pub(super) fn free_executions(&mut self, newest: u32) {
        let mut at = newest;
        while at != NIL {
            let place = &mut self.executions[at as usize];
            let next = std::mem::replace(&mut place.next, self.executions_free);
            place.root = NIL;
            self.fees.take(at);
            self.executions_free = at;
            self.executions_held -= 1;
            at = next;
        }
    }

    /// Returns the entries of an order, newest first.
    pub(super) fn entries(&self, slot: u32) -> impl Iterator<Item = u32> + '_ {
        let place = |at: u32| (at != NIL).then_some(at);
        std::iter::successors(place(self.slots[slot as usize].execution), move |&at| {
            place(self.executions[at as usize].next)
        })
    }

    /// Returns the entry of this id, an execution or a correction of one.
    fn entry(&self, slot: u32, exec: ExecRef) -> Option<u32> {
        self.entries(slot).find(|&at| self.executions[at as usize].exec == exec)
    }

    /// Returns the execution that has this id, or was corrected under it.
    pub(super) fn root(&self, slot: u32, exec: ExecRef) -> Option<u32> {
        let at = self.entry(slot, exec)?;
        match self.executions[at as usize].root {
            NIL => Some(at),
            root => Some(root),
        }
    }

    /// Returns the quantity of all remembered executions of an order.
    pub fn remembered_qty(&self, slot: u32) -> i128 {
        self.entries(slot).map(|at| i128::from(self.executions[at as usize].qty.raw())).sum()
    }

    /// Returns whether a report with this id was received before.
    pub fn has_execution(&self, slot: u32, exec: ExecRef) -> bool {
        self.entry(slot, exec).is_some()
    }

    /// Returns the execution of an order that has this id at its venue, or was corrected under it.
    pub fn execution(&self, slot: u32, exec: ExecRef) -> Option<&RecordedExecution> {
        self.root(slot, exec).map(|at| &self.executions[at as usize])
    }

    /// Remembers an execution. Returns false if the memory is full.
    pub fn remember(&mut self, slot: u32, exec: ExecRef, qty: Qty, price: Price) -> bool {
        let next = self.slots[slot as usize].execution;
        self.add_entry(slot, RecordedExecution { exec, qty, price, next, root: NIL, presumed: false })
    }

    /// Remembers the id of a correction. Returns false if the memory is full.
    pub fn remember_correction(&mut self, slot: u32, of: ExecRef, exec: ExecRef) -> bool {
        let Some(root) = self.root(slot, of) else { return true };
        let next = self.slots[slot as usize].execution;
        let (qty, price) = (Qty::ZERO, Price::ZERO);
        self.add_entry(slot, RecordedExecution { exec, qty, price, next, root, presumed: false })
    }

    fn add_entry(&mut self, slot: u32, execution: RecordedExecution) -> bool {
        if self.executions_held >= self.executions_max {
            return false;
        }
        let at = match self.executions_free {
            NIL => {
                self.executions.push(execution);
                index_u32(self.executions.len() - 1)
            }
            at => {
                self.executions_free = self.executions[at as usize].next;
                self.executions[at as usize] = execution;
                self.fees.take(at);
                at
            }
        };
        self.slots[slot as usize].execution = at;
        self.executions_held += 1;
        true
    }

    /// Changes a remembered execution, which was corrected or taken back.
    pub fn correct(&mut self, slot: u32, exec: ExecRef, qty: Qty, price: Price) {
        if let Some(at) = self.root(slot, exec) {
            let execution = &mut self.executions[at as usize];
            (execution.qty, execution.price) = (qty, price);
        }
    }

    /// Marks an execution as standing for fills that the venue did not report one by one.
    pub fn presume(&mut self, slot: u32, exec: ExecRef) {
        if let Some(at) = self.entry(slot, exec) {
            self.executions[at as usize].presumed = true;
        }
    }

    /// Finds the newest execution that still counts for fills which the venue did not report one by
    /// one.
    fn presumed_at(&self, slot: u32) -> Option<u32> {
        self.entries(slot).find(|&at| {
            let entry = &self.executions[at as usize];
            entry.presumed && entry.qty.is_positive()
        })
    }

    /// Returns the newest execution that stands for fills which the venue did not report one by
    /// one.
    pub fn presumed(&self, slot: u32) -> Option<&RecordedExecution> {
        self.presumed_at(slot).map(|at| &self.executions[at as usize])
    }

    /// Handles a fill that is part of a presumed execution: from now on it has its own id, at the
    /// price at which it was booked. Returns `None` if there is no such part.
    pub fn absorb(&mut self, slot: u32, exec: ExecRef, qty: Qty) -> Option<()> {
        let at = self.presumed_at(slot)?;
        let entry = &mut self.executions[at as usize];
        let (part, price) = (qty.min(entry.qty), entry.price);
        entry.qty = entry.qty.checked_sub(part).unwrap_or_default();
        if !self.remember(slot, exec, part, price) {
            // It stays a part of the presumed execution.
            let entry = &mut self.executions[at as usize];
            entry.qty = entry.qty.checked_add(part).unwrap_or_default();
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{IntId, ShardId};
    use crate::order::Order;
    use crate::orders::empty_order;
    use crate::pages::LargePages;

    fn order(n: u64) -> Order {
        Order { id: IntId::numbered(b't', n), ..empty_order() }
    }

    #[test]
    fn executions_are_remembered_up_to_their_maximum_and_freed_with_the_order() {
        let mut orders = Orders::new(ShardId(0), 10, 2, LargePages::NONE);
        let slot = orders.insert(order(1));
        let (qty, price) = (Qty::from_raw(1), Price::from_raw(2));
        for round in 0..3 {
            assert!(orders.remember(slot, ExecRef(round * 10 + 1), qty, price));
            assert!(orders.remember(slot, ExecRef(round * 10 + 2), qty, price));
            assert!(!orders.remember(slot, ExecRef(round * 10 + 3), qty, price));
            assert!(orders.execution(slot, ExecRef(round * 10 + 1)).is_some());
            assert!(orders.execution(slot, ExecRef(round * 10 + 3)).is_none());
            orders.correct(slot, ExecRef(round * 10 + 1), Qty::ZERO, price);
            assert!(orders.execution(slot, ExecRef(round * 10 + 1)).unwrap().qty.is_zero());
            orders.finish(slot);
            orders.forget_oldest(false);
            assert_eq!(orders.insert(order(1)), slot);
        }
        assert_eq!(orders.executions.len(), 2);
    }

    #[test]
    fn an_execution_is_found_by_every_id_that_it_was_corrected_under() {
        let mut orders = Orders::new(ShardId(0), 10, 3, LargePages::NONE);
        let slot = orders.insert(order(1));
        let (qty, price) = (Qty::from_raw(4), Price::from_raw(2));
        assert!(orders.remember(slot, ExecRef(1), qty, price));
        assert!(orders.remember_correction(slot, ExecRef(1), ExecRef(2)));
        assert!(orders.remember_correction(slot, ExecRef(2), ExecRef(3)));
        assert!(!orders.remember_correction(slot, ExecRef(3), ExecRef(4)), "the memory is full");
        orders.correct(slot, ExecRef(3), Qty::from_raw(7), price);
        for exec in 1..=3 {
            assert_eq!(orders.execution(slot, ExecRef(exec)).unwrap().qty, Qty::from_raw(7));
            assert!(orders.has_execution(slot, ExecRef(exec)));
        }
        assert!(!orders.has_execution(slot, ExecRef(4)));
        assert!(
            orders.remember_correction(slot, ExecRef(9), ExecRef(9)),
            "of nothing there is nothing to keep"
        );
    }

    #[test]
    fn a_presumed_execution_is_absorbed_part_by_part() {
        let mut orders = Orders::new(ShardId(0), 10, 3, LargePages::NONE);
        let slot = orders.insert(order(1));
        let (qty, price) = (Qty::from_raw(5), Price::from_raw(2));
        assert!(orders.remember(slot, ExecRef(1), qty, price));
        assert_eq!(orders.absorb(slot, ExecRef(8), qty), None, "nothing is presumed");
        orders.presume(slot, ExecRef(1));
        assert_eq!(orders.absorb(slot, ExecRef(2), Qty::from_raw(3)), Some(()));
        assert_eq!(orders.execution(slot, ExecRef(1)).unwrap().qty, Qty::from_raw(2));
        let part = *orders.execution(slot, ExecRef(2)).unwrap();
        assert_eq!((part.qty, part.price), (Qty::from_raw(3), price));
        assert_eq!(orders.absorb(slot, ExecRef(3), Qty::from_raw(9)), Some(()), "no more than there is");
        assert_eq!(orders.execution(slot, ExecRef(3)).unwrap().qty, Qty::from_raw(2));
        assert_eq!(orders.absorb(slot, ExecRef(4), qty), None);
    }
}
