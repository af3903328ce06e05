//! All orders of a shard: one slab with a free list, a line of finished orders of which the oldest are forgotten, ids
//! and pending requests beside it. Nothing allocates once the slab has grown to the number of orders there are.

use crate::command::ExecRef;
use crate::id::{GENERATIONS, IntId, OrderHandle, ShardId, Source};
use crate::number::{Money, Notional, Price, Qty};
use crate::order::{Base, NIL, Order, Requests};
use crate::terms::{Status, Terms};
use crate::time::Timestamp;

/// The names of an order: what it is called, and what it was called before its last modification.
#[derive(Clone, Copy, Debug, Default)]
pub struct Names {
    pub id: IntId,
    pub orig_id: IntId,
}

/// One execution at an outside venue, remembered to tell a repeated one and to take one back.
#[derive(Clone, Copy, Debug)]
pub struct Execution {
    pub exec: ExecRef,
    pub qty: Qty,
    pub price: Price,
    /// The order's execution before this one, or the next free place.
    next: u32,
}

#[derive(Debug)]
pub struct Orders {
    shard: ShardId,
    max: u32,
    slots: Vec<Order>,
    names: Vec<Names>,
    free: u32,
    /// How many slots hold an order.
    held: u32,
    finished_first: u32,
    finished_last: u32,
    finished: u32,
    requests: Vec<Requests>,
    requests_free: u32,
    executions: Vec<Execution>,
    executions_free: u32,
    executions_held: u32,
    executions_max: u32,
}

/// An order that is none.
pub fn blank() -> Order {
    Order {
        terms: Terms::default(),
        notional: Notional::ZERO,
        cum: Qty::ZERO,
        submitted: Timestamp::ZERO,
        reserved: Money::ZERO,
        source: Source::default(),
        local: NIL,
        generation: 0,
        requests: NIL,
        execution: NIL,
        next: NIL,
        position: 0,
        exposure: 0,
        base: Base::PendingNew,
        at_venue: false,
        triggered: false,
        in_doubt: false,
        counted: false,
    }
}

impl Orders {
    pub fn new(shard: ShardId, max: u32, executions_max: u32) -> Orders {
        assert!(max < NIL, "one slot number means none");
        Orders {
            shard,
            max,
            slots: Vec::new(),
            names: Vec::new(),
            free: NIL,
            held: 0,
            finished_first: NIL,
            finished_last: NIL,
            finished: 0,
            requests: Vec::new(),
            requests_free: NIL,
            executions: Vec::new(),
            executions_free: NIL,
            executions_held: 0,
            executions_max,
        }
    }

    /// Slots there are, in use or not: the range a walk over all orders covers.
    pub fn len(&self) -> u32 {
        self.slots.len() as u32
    }

    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    pub fn held(&self) -> u32 {
        self.held
    }

    pub fn finished(&self) -> u32 {
        self.finished
    }

    /// Whether another order finds a place.
    pub fn has_room(&self) -> bool {
        self.held < self.max
    }

    /// Gives a new order a slot. The caller has seen that there is room.
    pub fn insert(&mut self, id: IntId, mut order: Order) -> u32 {
        assert!(self.has_room(), "room is checked before");
        self.held += 1;
        let names = Names { id, orig_id: IntId::NONE };
        if self.free == NIL {
            let slot = self.slots.len() as u32;
            self.slots.push(order);
            self.names.push(names);
            return slot;
        }
        let slot = self.free;
        let place = &mut self.slots[slot as usize];
        self.free = place.next;
        order.generation = place.generation;
        order.next = NIL;
        *place = order;
        self.names[slot as usize] = names;
        slot
    }

    #[inline]
    pub fn handle(&self, slot: u32) -> OrderHandle {
        OrderHandle::new(self.shard, self.slots[slot as usize].generation, slot)
    }

    /// The slot of a handle; None if the order is unknown or was forgotten.
    #[inline]
    pub fn find(&self, handle: OrderHandle) -> Option<u32> {
        let order = self.slots.get(handle.slot() as usize)?;
        let known = handle.shard() == self.shard
            && order.generation == handle.generation()
            && self.in_use(handle.slot());
        known.then_some(handle.slot())
    }

    /// Whether a slot holds an order: free ones have no name.
    #[inline]
    pub fn in_use(&self, slot: u32) -> bool {
        !self.names[slot as usize].id.is_none()
    }

    #[inline]
    pub fn get(&self, slot: u32) -> &Order {
        &self.slots[slot as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> &mut Order {
        &mut self.slots[slot as usize]
    }

    #[inline]
    pub fn names(&self, slot: u32) -> &Names {
        &self.names[slot as usize]
    }

    pub fn rename(&mut self, slot: u32, id: IntId) {
        let names = &mut self.names[slot as usize];
        names.orig_id = names.id;
        names.id = id;
    }

    pub fn requests(&self, slot: u32) -> Option<&Requests> {
        match self.slots[slot as usize].requests {
            NIL => None,
            at => Some(&self.requests[at as usize]),
        }
    }

    #[inline]
    pub fn status(&self, slot: u32) -> Status {
        self.slots[slot as usize].status(self.requests(slot))
    }

    /// The requests of an order, to be changed. [`Orders::tidy`] must follow when one of them was answered.
    pub fn requests_mut(&mut self, slot: u32) -> &mut Requests {
        let order = &mut self.slots[slot as usize];
        if order.requests == NIL {
            order.requests = match self.requests_free {
                NIL => {
                    self.requests.push(Requests::default());
                    self.requests.len() as u32 - 1
                }
                at => {
                    self.requests_free = self.requests[at as usize].next;
                    at
                }
            };
            self.requests[order.requests as usize] = Requests::default();
        }
        &mut self.requests[order.requests as usize]
    }

    /// Gives the place of an order's requests back when none is pending.
    pub fn tidy(&mut self, slot: u32) {
        let order = &mut self.slots[slot as usize];
        let at = order.requests;
        if at == NIL {
            return;
        }
        let requests = &mut self.requests[at as usize];
        if requests.replace.is_none() && requests.cancel.is_none() {
            requests.next = self.requests_free;
            self.requests_free = at;
            order.requests = NIL;
        }
    }

    /// Puts an order that has just finished at the end of the line.
    pub fn finish(&mut self, slot: u32) {
        self.slots[slot as usize].next = NIL;
        match self.finished_last {
            NIL => self.finished_first = slot,
            last => self.slots[last as usize].next = slot,
        }
        self.finished_last = slot;
        self.finished += 1;
    }

    /// The order that finished longest ago.
    pub fn oldest_finished(&self) -> Option<u32> {
        (self.finished_first != NIL).then_some(self.finished_first)
    }

    /// Forgets the order that finished longest ago; its slot is free for a next generation.
    pub fn forget_oldest(&mut self) {
        let slot = self.finished_first;
        assert!(slot != NIL, "there is a finished order");
        let mut execution = self.slots[slot as usize].execution;
        while execution != NIL {
            let place = &mut self.executions[execution as usize];
            let next = place.next;
            place.next = self.executions_free;
            self.executions_free = execution;
            self.executions_held -= 1;
            execution = next;
        }
        let order = &mut self.slots[slot as usize];
        assert!(order.requests == NIL, "a finished order has no request left");
        self.finished_first = order.next;
        if order.next == NIL {
            self.finished_last = NIL;
        }
        order.generation = (order.generation + 1) % GENERATIONS;
        order.execution = NIL;
        order.next = self.free;
        self.free = slot;
        self.names[slot as usize].id = IntId::NONE;
        self.finished -= 1;
        self.held -= 1;
    }

    /// The execution of an order with this id at its venue.
    pub fn execution(&self, slot: u32, exec: ExecRef) -> Option<&Execution> {
        let mut at = self.slots[slot as usize].execution;
        while at != NIL {
            let execution = &self.executions[at as usize];
            if execution.exec == exec {
                return Some(execution);
            }
            at = execution.next;
        }
        None
    }

    /// Remembers an execution; false if the memory is full.
    pub fn remember(&mut self, slot: u32, exec: ExecRef, qty: Qty, price: Price) -> bool {
        if self.executions_held == self.executions_max {
            return false;
        }
        let next = self.slots[slot as usize].execution;
        let execution = Execution { exec, qty, price, next };
        let at = match self.executions_free {
            NIL => {
                self.executions.push(execution);
                self.executions.len() as u32 - 1
            }
            at => {
                self.executions_free = self.executions[at as usize].next;
                self.executions[at as usize] = execution;
                at
            }
        };
        self.slots[slot as usize].execution = at;
        self.executions_held += 1;
        true
    }

    /// Gives a remembered execution another size: it was corrected, or taken back.
    pub fn correct(&mut self, slot: u32, exec: ExecRef, qty: Qty, price: Price) {
        let mut at = self.slots[slot as usize].execution;
        while at != NIL {
            let execution = &mut self.executions[at as usize];
            if execution.exec == exec {
                (execution.qty, execution.price) = (qty, price);
                return;
            }
            at = execution.next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u64) -> IntId {
        IntId::numbered(b't', n)
    }

    #[test]
    fn a_forgotten_order_is_not_found_under_its_old_handle() {
        let mut orders = Orders::new(ShardId(3), 2, 0);
        let slot = orders.insert(id(1), blank());
        let handle = orders.handle(slot);
        assert_eq!(orders.find(handle), Some(slot));
        orders.finish(slot);
        assert_eq!((orders.oldest_finished(), orders.finished()), (Some(slot), 1));
        orders.forget_oldest();
        assert_eq!(orders.find(handle), None);
        assert!(orders.is_empty());
        let again = orders.insert(id(2), blank());
        assert_eq!(again, slot);
        assert_ne!(orders.handle(again), handle);
        assert_eq!(orders.find(handle), None);
        assert_eq!(orders.find(OrderHandle::new(ShardId(2), 1, slot)), None);
        assert_eq!(orders.find(OrderHandle::NONE), None);
    }

    #[test]
    fn room_ends_at_the_maximum() {
        let mut orders = Orders::new(ShardId(0), 1, 0);
        assert!(orders.has_room());
        orders.insert(id(1), blank());
        assert!(!orders.has_room());
        assert_eq!((orders.len(), orders.held()), (1, 1));
    }

    #[test]
    fn finished_orders_stand_in_line() {
        let mut orders = Orders::new(ShardId(0), 10, 0);
        let slots: Vec<u32> = (0..3).map(|n| orders.insert(id(n), blank())).collect();
        for &slot in slots.iter().rev() {
            orders.finish(slot);
        }
        for &slot in slots.iter().rev() {
            assert_eq!(orders.oldest_finished(), Some(slot));
            orders.forget_oldest();
        }
        assert_eq!(orders.oldest_finished(), None);
    }

    #[test]
    fn the_place_of_answered_requests_is_used_again() {
        let mut orders = Orders::new(ShardId(0), 10, 0);
        let slot = orders.insert(id(1), blank());
        for _ in 0..5 {
            orders.requests_mut(slot);
            assert!(orders.requests(slot).is_some());
            orders.tidy(slot);
            orders.tidy(slot);
            assert!(orders.requests(slot).is_none());
        }
        assert_eq!(orders.requests.len(), 1);
    }

    #[test]
    fn executions_are_remembered_up_to_their_maximum_and_freed_with_the_order() {
        let mut orders = Orders::new(ShardId(0), 10, 2);
        let slot = orders.insert(id(1), blank());
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
            orders.forget_oldest();
            assert_eq!(orders.insert(id(1), blank()), slot);
        }
        assert_eq!(orders.executions.len(), 2);
    }

    #[test]
    fn a_modification_moves_the_name_behind() {
        let mut orders = Orders::new(ShardId(0), 10, 0);
        let slot = orders.insert(id(1), blank());
        orders.rename(slot, id(2));
        assert_eq!((orders.names(slot).id, orders.names(slot).orig_id), (id(2), id(1)));
    }
}
