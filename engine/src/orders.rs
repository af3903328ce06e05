//! All orders of a shard: one slab with a free list, lists of finished orders of which the oldest
//! are forgotten, and former ids and pending requests beside it. Nothing allocates once the slab
//! has grown to the number of orders in use.

mod executions;
mod fees;
mod codec;
mod events;

use crate::id::{GENERATIONS, IntId, OrderHandle, ShardId, Source};
use crate::index::index_u32;
use crate::number::{Money, Notional, Price, Qty};
use crate::order::{Base, LastFill, NIL, Order, OrderFlags, Replace, Requests};
use crate::pages::LargePages;
use crate::reason::Reason;
use crate::sender::{SenderId, SentBy};
use crate::terms::{SpecialTermsTable, Status, Terms};
use crate::time::Timestamp;

pub use executions::RecordedExecution;
pub use fees::RecordedFee;
use fees::RecordedFees;

/// Former ids of a modified order.
#[derive(Clone, Copy, Debug, Default)]
pub struct FormerIds {
    /// Its first id, which never changes.
    pub first: IntId,
    /// The id before the current one.
    pub last: IntId,
}

/// Finished orders, oldest first, linked by their slots.
#[derive(Clone, Copy, Debug)]
struct FinishedList {
    first: u32,
    last: u32,
    len: u32,
}

impl FinishedList {
    const EMPTY: FinishedList = FinishedList { first: NIL, last: NIL, len: 0 };
}

#[derive(Debug)]
pub struct Orders {
    shard: ShardId,
    max: u32,
    slots: Vec<Order>,
    /// Last fills by slot. For an order without fills it belongs to an earlier order of the slot.
    fills: Vec<LastFill>,
    /// Senders of the last modification by slot, valid if the order has a flag for it.
    modified_by: Vec<SenderId>,
    free: u32,
    /// Number of slots that hold an order.
    held: u32,
    /// Orders of simulated and of outside venues.
    finished: [FinishedList; 2],
    orig_ids: Vec<FormerIds>,
    orig_ids_free: Vec<u32>,
    requests: Vec<Requests>,
    requests_free: u32,
    executions: Vec<RecordedExecution>,
    executions_free: u32,
    executions_held: u32,
    executions_max: u32,
    fees: RecordedFees,
    /// ExecInst, MinQty and MaxFloor of the orders that have them.
    pub special: SpecialTermsTable,
}

/// Returns an order without content.
pub fn empty_order() -> Order {
    Order {
        id: IntId::NONE,
        terms: Terms::default(),
        notional: Notional::ZERO,
        cum: Qty::ZERO,
        submitted: Timestamp::ZERO,
        reserved: Money::ZERO,
        source: Source::default(),
        local: NIL,
        generation: 0,
        requests: NIL,
        orig_id: NIL,
        execution: NIL,
        next: NIL,
        position: 0,
        exposure: 0,
        updated: Timestamp::ZERO,
        reason: Reason::None,
        base: Base::PendingNew,
        flags: OrderFlags::default(),
        era: 0,
        before: NIL,
        submitted_by: SenderId::NONE,
        canceled_by: SenderId::NONE,
    }
}

impl Orders {
    pub fn new(shard: ShardId, max: u32, executions_max: u32, pages: LargePages) -> Orders {
        assert!(max < NIL, "one slot number means none");
        Orders {
            shard,
            max,
            // Room for the maximum: unused memory costs nothing, and a growing slab would stall
            // while it is copied.
            slots: pages.table(max as usize),
            fills: pages.table(max as usize),
            modified_by: pages.table(max as usize),
            free: NIL,
            held: 0,
            finished: [FinishedList::EMPTY; 2],
            orig_ids: Vec::new(),
            orig_ids_free: Vec::new(),
            requests: Vec::new(),
            requests_free: NIL,
            executions: Vec::new(),
            executions_free: NIL,
            executions_held: 0,
            executions_max,
            fees: RecordedFees::default(),
            special: SpecialTermsTable::default(),
        }
    }

    /// Changes the bounds. Orders beyond a smaller bound stay.
    pub fn set_bounds(&mut self, max: u32, executions_max: u32, pages: LargePages) {
        assert!(max < NIL, "one slot number means none");
        (self.max, self.executions_max) = (max, executions_max);
        pages.enlarge(&mut self.slots, max as usize);
        pages.enlarge(&mut self.fills, max as usize);
        pages.enlarge(&mut self.modified_by, max as usize);
    }

    /// Returns the number of slots, in use or not: the range of a walk over all orders.
    pub fn len(&self) -> u32 {
        index_u32(self.slots.len())
    }

    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    pub fn held(&self) -> u32 {
        self.held
    }

    /// Returns the number of finished orders kept, of simulated or of outside venues.
    pub fn finished(&self, outside: bool) -> u32 {
        self.finished[outside as usize].len
    }

    /// Returns whether there is room for another order.
    pub fn has_room(&self) -> bool {
        self.held < self.max
    }

    /// Stores a new order, which has an id, in a slot. The caller has checked that there is room.
    pub fn insert(&mut self, order: Order) -> u32 {
        let slot = self.allocate();
        let generation = self.slots[slot as usize].generation;
        self.slots[slot as usize] = Order { generation, ..order };
        slot
    }

    /// Allocates a free slot, which the caller fills at once. It still has the content of an
    /// earlier order, except for the generation, which must stay.
    #[inline]
    pub fn allocate(&mut self) -> u32 {
        assert!(self.has_room(), "room is checked before");
        self.held += 1;
        if self.free == NIL {
            self.slots.push(empty_order());
            self.fills.push(LastFill::default());
            self.modified_by.push(SenderId::NONE);
            return index_u32(self.slots.len() - 1);
        }
        let slot = self.free;
        self.free = self.slots[slot as usize].next;
        self.fetch(self.free);
        slot
    }

    /// Prefetches the memory of a slot.
    #[inline]
    pub fn fetch(&self, slot: u32) {
        if let Some(order) = self.slots.get(slot as usize) {
            order.fetch();
        }
    }

    /// Prefetches the memory of the slot that the next order will get.
    #[inline]
    pub fn fetch_free(&self) -> u32 {
        self.fetch(self.free);
        self.free
    }

    #[inline]
    pub fn handle(&self, slot: u32) -> OrderHandle {
        OrderHandle::new(self.shard, self.slots[slot as usize].generation, slot)
    }

    /// Returns the slot of a handle; `None` if the order is unknown or was forgotten.
    #[inline]
    pub fn find(&self, handle: OrderHandle) -> Option<u32> {
        let order = self.slots.get(handle.slot() as usize)?;
        let known = handle.shard() == self.shard
            && order.generation == handle.generation()
            && self.in_use(handle.slot());
        known.then_some(handle.slot())
    }

    /// Returns whether a slot holds an order: free slots have no id.
    #[inline]
    pub fn in_use(&self, slot: u32) -> bool {
        !self.slots[slot as usize].id.is_none()
    }

    /// Returns the content of a slot, if the slot exists.
    #[inline]
    pub fn at(&self, slot: u32) -> Option<&Order> {
        self.slots.get(slot as usize)
    }

    #[inline]
    pub fn get(&self, slot: u32) -> &Order {
        &self.slots[slot as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> &mut Order {
        &mut self.slots[slot as usize]
    }

    /// Records the time and reason of an event about an order.
    #[inline]
    pub fn set_updated(&mut self, slot: u32, now: Timestamp, reason: Reason) {
        let order = &mut self.slots[slot as usize];
        (order.updated, order.reason) = (now, reason);
    }

    /// Returns the senders of an order's requests.
    pub fn sent(&self, slot: u32) -> SentBy {
        let order = &self.slots[slot as usize];
        let modified =
            if order.modify_requested() { self.modified_by[slot as usize] } else { SenderId::NONE };
        SentBy { submitted: order.submitted_by, modified, canceled: order.canceled_by }
    }

    /// Records the sender of an order's last modification.
    #[inline]
    pub fn set_modified_by(&mut self, slot: u32, sender: SenderId) {
        self.slots[slot as usize].set_modify_requested(true);
        self.modified_by[slot as usize] = sender;
    }

    /// Forgets the numbers of senders that are no longer known.
    pub fn forget_senders(&mut self, is_known: impl Fn(SenderId) -> bool) {
        for (order, modified_by) in self.slots.iter_mut().zip(&mut self.modified_by) {
            for id in [&mut order.submitted_by, modified_by, &mut order.canceled_by] {
                if !is_known(*id) {
                    *id = SenderId::NONE;
                }
            }
        }
    }

    /// Records the latest fill of an order, or its correction. A fill that was taken back leaves
    /// the last fill unchanged.
    #[inline]
    pub fn set_last_fill(&mut self, slot: u32, qty: Qty, price: Price) {
        if !qty.is_zero() {
            self.fills[slot as usize] = LastFill { qty, price };
        }
    }

    /// Returns the latest fill of an order; zero if there was none.
    pub fn last_fill(&self, slot: u32) -> LastFill {
        match self.slots[slot as usize].cum.is_zero() {
            true => LastFill::default(),
            false => self.fills[slot as usize],
        }
    }

    /// Returns the id of an order before its last modification; `None` if it was never modified.
    #[inline]
    pub fn orig_id(&self, slot: u32) -> Option<&IntId> {
        match self.slots[slot as usize].orig_id {
            NIL => None,
            at => Some(&self.orig_ids[at as usize].last),
        }
    }

    /// Returns the id with which an order was submitted.
    pub fn first_id(&self, slot: u32) -> &IntId {
        let order = &self.slots[slot as usize];
        match order.orig_id {
            NIL => &order.id,
            at => &self.orig_ids[at as usize].first,
        }
    }

    #[inline]
    pub fn rename(&mut self, slot: u32, id: &IntId) {
        let order = &mut self.slots[slot as usize];
        if order.orig_id == NIL {
            order.orig_id = self.orig_ids_free.pop().unwrap_or_else(|| {
                self.orig_ids.push(FormerIds::default());
                // Returning it must never allocate.
                self.orig_ids_free.reserve(self.orig_ids.len());
                index_u32(self.orig_ids.len() - 1)
            });
            self.orig_ids[order.orig_id as usize].first = order.id;
        }
        self.orig_ids[order.orig_id as usize].last = order.id;
        order.id = *id;
    }

    pub fn requests(&self, slot: u32) -> Option<&Requests> {
        match self.slots[slot as usize].requests {
            NIL => None,
            at => Some(&self.requests[at as usize]),
        }
    }

    /// Returns the modification of an order that its venue has not answered yet.
    pub fn pending_replace(&self, slot: u32) -> Option<Replace> {
        self.requests(slot)?.replace
    }

    /// Returns whether exactly the orders and modifications with special terms have some.
    pub(crate) fn special_terms_agree(&self) -> bool {
        let held = || (0..self.len()).filter(|&slot| self.in_use(slot));
        let is_requested =
            |slot: &u32| self.pending_replace(*slot).is_some_and(|replace| replace.terms.special);
        self.special.is_of(held().filter(|&slot| self.get(slot).terms.special), held().filter(is_requested))
    }

    #[inline]
    pub fn status(&self, slot: u32) -> Status {
        self.slots[slot as usize].status(self.requests(slot))
    }

    /// Returns the requests of an order, to be changed. [`Orders::release_answered`] must follow
    /// when one of them was answered.
    pub fn requests_mut(&mut self, slot: u32) -> &mut Requests {
        let order = &mut self.slots[slot as usize];
        if order.requests == NIL {
            order.requests = match self.requests_free {
                NIL => {
                    self.requests.push(Requests::default());
                    index_u32(self.requests.len() - 1)
                }
                at => {
                    self.requests_free = self.requests[at as usize].next;
                    at
                }
            };
            let fresh = &mut self.requests[order.requests as usize];
            (fresh.replace, fresh.cancel) = (None, None);
        }
        &mut self.requests[order.requests as usize]
    }

    /// Releases the place of an order's requests when none is pending.
    pub fn release_answered(&mut self, slot: u32) {
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

    /// Adds an order that has just finished to the end of its list.
    #[inline]
    pub fn finish(&mut self, slot: u32) {
        let order = &mut self.slots[slot as usize];
        let line = &mut self.finished[order.outside() as usize];
        line.len += 1;
        let last = std::mem::replace(&mut line.last, slot);
        (order.before, order.next) = (last, NIL);
        match last {
            NIL => line.first = slot,
            last => self.slots[last as usize].next = slot,
        }
    }

    /// Removes a reopened order from the list of finished orders.
    pub fn unfinish(&mut self, slot: u32) {
        let before = self.finished_before(slot);
        let order = &self.slots[slot as usize];
        let (next, outside) = (order.next, order.outside());
        let line = &mut self.finished[outside as usize];
        line.len -= 1;
        match before {
            NIL => line.first = next,
            before => self.slots[before as usize].next = next,
        }
        match next {
            NIL => line.last = before,
            next => self.slots[next as usize].before = before,
        }
        let order = &mut self.slots[slot as usize];
        (order.before, order.next) = (NIL, NIL);
    }

    /// Returns the order before this one in the list of finished orders; [`NIL`] if it is the
    /// first.
    fn finished_before(&self, slot: u32) -> u32 {
        let order = &self.slots[slot as usize];
        if self.finished[order.outside() as usize].first == slot { NIL } else { order.before }
    }

    /// Returns the order that finished longest ago, of simulated or of outside venues.
    #[inline]
    pub fn oldest_finished(&self, outside: bool) -> Option<u32> {
        let first = self.finished[outside as usize].first;
        (first != NIL).then_some(first)
    }

    /// Forgets the order that finished longest ago; its slot is free for the next generation.
    #[inline]
    pub fn forget_oldest(&mut self, outside: bool) {
        let line = &mut self.finished[outside as usize];
        let slot = line.first;
        assert!(slot != NIL, "there is a finished order");
        let order = &mut self.slots[slot as usize];
        assert!(order.requests == NIL, "a finished order has no request left");
        let following = order.next;
        line.first = following;
        line.len -= 1;
        if following == NIL {
            line.last = NIL;
        }
        order.before = NIL;
        order.generation = (order.generation + 1) % GENERATIONS;
        order.id = IntId::NONE;
        order.next = self.free;
        self.free = slot;
        self.held -= 1;
        if order.orig_id != NIL {
            self.orig_ids_free.push(order.orig_id);
        }
        if order.terms.special {
            self.special.remove(slot);
        }
        let newest = std::mem::replace(&mut order.execution, NIL);
        self.free_executions(newest);
        // It will be forgotten soon, and it ended long ago: its memory is no longer in the cache.
        self.fetch(following);
    }
}

#[cfg(test)]
mod tests;
