//! Orders as readers see them. A record is kept while its shard keeps the order, and after that
//! among the finished ones.
//!
//! ```text
//! shard, slot ─► record ◄─ id            Forgotten cuts the left arrow; the record stays among the finished
//! open of a shard: oldest ⇄ … ⇄ newest   finished of all shards: ended first ⇄ … ⇄ ended last
//! ```
//!
//! A status change touches its slot and its record, nothing else. The rest is done when an order
//! arrives or ends.

use std::collections::BTreeMap;

use super::ids::IdChains;
use super::order::{LiveOrder, OrderRecord, OrderView};
use super::slab::{NONE, PagedTable, Places};
use super::walk::{WalkHandle, Walks};
use super::{SnapshotMark, ViewSettings};
use crate::event::{ExecType, OrderReport, OrderTerms, RequestKind, RequestRefusal};
use crate::id::{IntId, OrderHandle, ShardId};
use crate::number::Qty;
use crate::reason::Reason;
use crate::sender::SentBy;
use crate::terms::{OrderSpecialTerms, ReportedTerms, SpecialTerms, Status, Terms};
use crate::time::Timestamp;

#[derive(Clone, Copy, Debug)]
struct ViewSlot {
    generation: u32,
    record: u32,
}

const EMPTY: ViewSlot = ViewSlot { generation: 0, record: NONE };

/// Slots by which the table of a shard grows: it takes them one after the other.
const SLOTS_STEP: usize = 1_024;

/// Both ends of a list of records, and its length.
#[derive(Clone, Copy, Debug)]
struct RecordList {
    head: u32,
    tail: u32,
    len: usize,
}

impl RecordList {
    const EMPTY: RecordList = RecordList { head: NONE, tail: NONE, len: 0 };
}

#[derive(Debug)]
pub(super) struct OrderStore {
    /// Both halves of an order have the same index.
    places: Places,
    live: PagedTable<LiveOrder>,
    records: PagedTable<OrderRecord>,
    ids: IdChains,
    /// By shard, then slot.
    slots: Vec<Vec<ViewSlot>>,
    /// By shard, in order of submission.
    open: Vec<RecordList>,
    finished: RecordList,
    finished_max: usize,
    versions_max: u32,
    walks: Walks,
    /// By index; only orders that have some.
    special: BTreeMap<u32, SpecialTerms>,
    reported: ReportedTerms,
}

impl OrderStore {
    pub(super) fn new(shards: u8, settings: &ViewSettings) -> OrderStore {
        OrderStore {
            places: Places::default(),
            live: PagedTable::new(settings.pages),
            records: PagedTable::new(settings.pages),
            ids: IdChains::new(settings.seed, settings.pages),
            slots: vec![Vec::new(); shards as usize],
            open: vec![RecordList::EMPTY; shards as usize],
            finished: RecordList::EMPTY,
            finished_max: settings.finished_max as usize,
            versions_max: settings.versions_max.max(2),
            walks: Walks::default(),
            special: BTreeMap::new(),
            reported: ReportedTerms::default(),
        }
    }
}

/// Events.
impl OrderStore {
    /// Prefetches memory for an order whose event will be applied soon.
    pub(super) fn prefetch(&self, event: &OrderTerms) {
        if event.what == ExecType::Entered {
            self.ids.prefetch(&event.id);
        }
    }

    /// Keeps special terms for the event that follows with the terms of their order.
    pub(super) fn announce(&mut self, shard: ShardId, special: &OrderSpecialTerms) {
        self.reported.put(shard, special);
    }

    /// Applies the terms of an order: it is entered, its terms have changed, or this is a snapshot.
    /// Returns whether the order is new here.
    pub(super) fn terms(&mut self, at: Timestamp, event: &OrderTerms, mark: SnapshotMark) -> bool {
        // A refused order may never have had a slot; then there is nothing to keep.
        if event.order == OrderHandle::NONE {
            return true;
        }
        let Some(index) = self.mapped(event.order) else {
            let index = self.enter(at, event, mark);
            self.set_special(index, event);
            return true;
        };
        self.records[index].terms = event.terms;
        self.set_special(index, event);
        let live = &mut self.live[index];
        live.qty = event.terms.qty;
        live.reason = event.reason;
        live.updated = live.updated.max(at);
        live.epoch = mark.epoch;
        // A snapshot first emits an order that was modified more than once under an earlier id.
        let is_former =
            event.what == ExecType::Snapshot && self.ids.find(&event.id).any(|found| found == index);
        if !is_former {
            self.rename(index, &event.id);
        }
        self.set_status(index, event.status);
        false
    }

    /// Applies a report about an order, if it is known. The snapshot of an unknown order is still
    /// to come.
    pub(super) fn status(&mut self, at: Timestamp, event: &OrderReport, mark: SnapshotMark) -> bool {
        let Some(index) = self.mapped(event.order) else {
            return false;
        };
        match event.what.pending_request() {
            Some(RequestKind::Cancel) => self.records[index].sent.canceled = event.sender,
            Some(RequestKind::Replace) => self.records[index].sent.modified = event.sender,
            None => {}
        }
        let live = &mut self.live[index];
        live.qty = event.qty;
        live.cum_qty = event.cum_qty;
        live.avg_price = event.avg_price;
        // An order whose fills were all taken back has no last fill.
        if !event.last_qty.is_zero() || event.cum_qty.is_zero() {
            (live.last_qty, live.last_price) = (event.last_qty, event.last_price);
        }
        live.reason = event.reason;
        live.in_doubt = event.in_doubt;
        live.updated = live.updated.max(at);
        live.epoch = mark.epoch;
        // Other reports may carry the id of a request, which is not the order's.
        if event.what == ExecType::Replaced {
            self.rename(index, &event.id);
        }
        self.set_status(index, event.status);
        true
    }

    /// Sets the senders of the requests of a known order.
    pub(super) fn sent(&mut self, order: OrderHandle, sent: SentBy) {
        if let Some(index) = self.mapped(order) {
            self.records[index].sent = sent;
        }
    }

    /// Applies the refusal of a request, if its order is known: it no longer shows it as pending.
    /// Returns its state and its terms.
    pub(super) fn refused(
        &mut self,
        at: Timestamp,
        event: &RequestRefusal,
        mark: SnapshotMark,
    ) -> Option<(&LiveOrder, &Terms)> {
        // The shard does not know this order. A venue may give the same reason for an order that
        // has its id.
        if event.reason == Reason::UnknownOrder && event.id.is_none() {
            return None;
        }
        let index = self.mapped(event.order)?;
        let live = &mut self.live[index];
        // A request that was not stored, or did not arrive, does not change the order itself.
        if !event.reason.is_substitute() {
            live.updated = live.updated.max(at);
        }
        live.epoch = mark.epoch;
        self.set_status(index, event.status);
        Some((&self.live[index], &self.records[index].terms))
    }

    /// Handles the reuse of a slot by the shard. A finished order stays readable.
    pub(super) fn forgotten(&mut self, handle: OrderHandle) {
        let Some(index) = self.mapped(handle) else {
            return;
        };
        if self.live[index].status.is_finished() {
            self.unmap(index);
        } else {
            self.drop(index);
        }
    }

    /// Ends the trading day of a shard: its finished orders are no longer readable.
    pub(super) fn day_over(&mut self, shard: ShardId) {
        let mut index = self.finished.head;
        while index != NONE {
            let record = &self.records[index];
            let next = record.next;
            if record.handle.shard() == shard {
                self.drop(index);
            }
            index = next;
        }
    }

    /// Ends a snapshot: drops what the shard did not mention, and sorts what came in any order.
    pub(super) fn sweep(&mut self, mark: SnapshotMark) {
        let shard = mark.shard.0 as usize;
        for slot in 0..self.slots[shard].len() {
            let index = self.slots[shard][slot].record;
            if index != NONE && self.live[index].epoch != mark.epoch {
                self.drop(index);
            }
        }
        self.sort_open(shard);
        self.sort_finished();
    }
}

/// Queries.
impl OrderStore {
    pub(super) fn order(&self, handle: OrderHandle) -> Option<OrderView> {
        self.mapped(handle).map(|index| self.read(index))
    }

    pub(super) fn with_id(&self, id: &IntId) -> Vec<OrderView> {
        let mut found: Vec<OrderView> = self.ids.find(id).map(|index| self.read(index)).collect();
        found.sort_by_key(|order| (order.submitted, order.handle));
        found
    }

    /// Returns the open orders: each shard's are already sorted, so the oldest of their heads is
    /// the next.
    pub(super) fn open(&self) -> impl Iterator<Item = OrderView> {
        let mut heads: Vec<u32> = self.open.iter().map(|list| list.head).collect();
        std::iter::from_fn(move || {
            let heads_left = heads.iter_mut().filter(|head| **head != NONE);
            let oldest = heads_left.min_by_key(|head| self.age(**head))?;
            let index = *oldest;
            *oldest = self.records[index].next;
            Some(self.read(index))
        })
    }

    /// Returns terms and remaining quantity of the open orders, in no particular order. The terms
    /// have the quantity of the submission.
    pub(super) fn open_leaves(&self) -> impl Iterator<Item = (&Terms, Qty)> {
        let present = |index: u32| (index != NONE).then_some(index);
        let orders = self.open.iter().flat_map(move |list| {
            std::iter::successors(present(list.head), move |index| present(self.records[*index].next))
        });
        orders.map(|index| {
            let live = &self.live[index];
            let leaves = live.qty.checked_sub(live.cum_qty).unwrap_or_default();
            (&self.records[index].terms, leaves)
        })
    }

    /// Returns the state of an order.
    pub(super) fn live(&self, handle: OrderHandle) -> Option<&LiveOrder> {
        self.mapped(handle).map(|index| &self.live[index])
    }

    pub(super) fn open_len(&self) -> usize {
        self.open.iter().map(|list| list.len).sum()
    }

    /// Returns the finished orders, the last ended first.
    pub(super) fn finished(&self) -> impl Iterator<Item = OrderView> {
        let mut index = self.finished.tail;
        std::iter::from_fn(move || {
            let order = (index != NONE).then(|| self.read(index))?;
            index = self.records[index].before;
            Some(order)
        })
    }

    pub(super) fn finished_len(&self) -> usize {
        self.finished.len
    }

    /// Begins to walk over the orders that are open now.
    pub(super) fn walk_open(&mut self, until: Timestamp) -> Option<WalkHandle> {
        self.walks.begin(self.open.iter().map(|list| list.head).collect(), until)
    }

    /// Begins to walk over the orders that are finished now, from the last ended.
    pub(super) fn walk_finished(&mut self) -> Option<WalkHandle> {
        self.walks.begin(vec![self.finished.tail], Timestamp::MAX)
    }

    pub(super) fn walk_next(&mut self, walk: WalkHandle) -> Option<OrderView> {
        let (places, until) = self.walks.places(walk)?;
        let left = places.iter().enumerate().filter(|(_, place)| **place != NONE);
        let (at, index) = left.map(|(at, place)| (at, *place)).min_by_key(|(_, place)| self.age(*place))?;
        if self.records[index].submitted > until {
            return None;
        }
        let next = self.after(index);
        self.walks.step(walk, at, next);
        Some(self.read(index))
    }

    pub(super) fn walk_end(&mut self, walk: WalkHandle) {
        self.walks.end(walk);
    }

    /// Returns where a walk continues after an order: newer ones that are open, ones that ended
    /// earlier.
    fn after(&self, index: u32) -> u32 {
        match self.live[index].status.is_finished() {
            true => self.records[index].before,
            false => self.records[index].next,
        }
    }

    fn read(&self, index: u32) -> OrderView {
        let (live, record) = (&self.live[index], &self.records[index]);
        let special = self.special.get(&index).filter(|_| record.terms.special).copied();
        OrderView { special, ..OrderView::of(live, record, &self.ids) }
    }

    fn age(&self, index: u32) -> (Timestamp, OrderHandle) {
        let record = &self.records[index];
        (record.submitted, record.handle)
    }
}

/// Insertion, change and removal.
impl OrderStore {
    fn enter(&mut self, at: Timestamp, event: &OrderTerms, mark: SnapshotMark) -> u32 {
        self.clear_slot(event.order);
        let index = self.places.take();
        let is_modified = !event.orig_id.is_none() && event.orig_id != event.id;
        let first = self.ids.insert(if is_modified { &event.orig_id } else { &event.id }, index);
        self.live.put(index, LiveOrder::new(at, event, mark.epoch, first));
        self.records.put(index, OrderRecord::new(at, event, first));
        if is_modified {
            self.rename(index, &event.id);
        }
        let slot = &mut self.slots[event.order.shard().0 as usize][event.order.slot() as usize];
        *slot = ViewSlot { generation: event.order.generation(), record: index };
        self.join(index, event.status);
        index
    }

    /// Gives an order the special terms that were announced for it, or removes what it had.
    fn set_special(&mut self, index: u32, event: &OrderTerms) {
        if event.terms.special {
            if let Some(reported) = self.reported.take(event.order.shard(), event.order, &event.terms) {
                self.special.insert(index, reported.special);
            }
        } else if !self.special.is_empty() {
            self.special.remove(&index);
        }
    }

    /// Makes room for a handle: its slot exists, and the previous order is no longer mapped to it.
    fn clear_slot(&mut self, handle: OrderHandle) {
        let slots = &mut self.slots[handle.shard().0 as usize];
        let slot = handle.slot() as usize;
        if slot >= slots.len() {
            slots.resize((slot + 1).next_multiple_of(SLOTS_STEP), EMPTY);
        }
        let before = slots[slot].record;
        if before != NONE {
            self.forgotten(self.records[before].handle);
        }
    }

    fn rename(&mut self, index: u32, id: &IntId) {
        let live = &mut self.live[index];
        if self.ids.id(live.current) == id {
            return;
        }
        live.current = self.ids.append(live.current, id);
        live.versions += 1;
        if live.versions > self.versions_max {
            live.versions -= 1;
            self.ids.remove_second(self.records[index].first);
        }
    }

    /// Moves the order to the other list if it ended, or if a corrected fill reopened it.
    #[inline]
    fn set_status(&mut self, index: u32, status: Status) {
        let before = std::mem::replace(&mut self.live[index].status, status);
        if before.is_finished() != status.is_finished() {
            self.leave(index, before);
            self.join(index, status);
        }
    }

    /// Adds an order to the list for its status.
    fn join(&mut self, index: u32, status: Status) {
        let record = &mut self.records[index];
        let list = match status.is_finished() {
            true => &mut self.finished,
            false => &mut self.open[record.handle.shard().0 as usize],
        };
        let before = std::mem::replace(&mut list.tail, index);
        list.len += 1;
        (record.before, record.next) = (before, NONE);
        match before {
            NONE => list.head = index,
            _ => self.records[before].next = index,
        }
        if self.finished.len > self.finished_max {
            self.drop(self.finished.head);
        }
    }

    /// Removes an order from the list for a status.
    fn leave(&mut self, index: u32, status: Status) {
        let OrderRecord { before, next, handle, .. } = self.records[index];
        let list = match status.is_finished() {
            true => &mut self.finished,
            false => &mut self.open[handle.shard().0 as usize],
        };
        list.len -= 1;
        if before == NONE {
            list.head = next;
        }
        if next == NONE {
            list.tail = before;
        }
        if !self.walks.is_empty() {
            self.walks.leave(index, if status.is_finished() { before } else { next });
        }
        if before != NONE {
            self.records[before].next = next;
        }
        if next != NONE {
            self.records[next].before = before;
        }
    }

    fn drop(&mut self, index: u32) {
        self.leave(index, self.live[index].status);
        self.unmap(index);
        self.ids.remove_chain(self.records[index].first);
        self.places.give(index);
        if !self.special.is_empty() {
            self.special.remove(&index);
        }
    }

    fn unmap(&mut self, index: u32) {
        if std::mem::replace(&mut self.live[index].mapped, false) {
            let handle = self.records[index].handle;
            self.slots[handle.shard().0 as usize][handle.slot() as usize] = EMPTY;
        }
    }

    fn mapped(&self, handle: OrderHandle) -> Option<u32> {
        let slot = self.slots.get(handle.shard().0 as usize)?.get(handle.slot() as usize)?;
        (slot.record != NONE && slot.generation == handle.generation()).then_some(slot.record)
    }

    fn sort_open(&mut self, shard: usize) {
        let mut sorted = self.in_list(&self.open[shard]);
        if sorted.is_sorted_by_key(|&index| self.age(index)) {
            return;
        }
        sorted.sort_by_key(|&index| self.age(index));
        self.open[shard] = RecordList::EMPTY;
        sorted.into_iter().for_each(|index| self.join(index, self.live[index].status));
    }

    /// Snapshots of finished orders come in any order; each carries its time.
    fn sort_finished(&mut self) {
        let mut sorted = self.in_list(&self.finished);
        let ended = |index: &u32| self.live[*index].updated;
        if sorted.is_sorted_by_key(ended) {
            return;
        }
        sorted.sort_by_key(ended);
        self.finished = RecordList::EMPTY;
        sorted.into_iter().for_each(|index| self.join(index, self.live[index].status));
    }

    fn in_list(&self, list: &RecordList) -> Vec<u32> {
        let mut found = Vec::with_capacity(list.len);
        let mut index = list.head;
        while index != NONE {
            found.push(index);
            index = self.records[index].next;
        }
        found
    }
}
