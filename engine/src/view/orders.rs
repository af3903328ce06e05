//! Orders as the readers see them. A record is kept while its shard keeps the order, and after that with the finished
//! ones.
//!
//! ```text
//! shard, slot ─► record ◄─ id            Forgotten cuts the left arrow; the record stays among the finished
//! open of a shard: oldest ⇄ … ⇄ newest   finished of all shards: ended first ⇄ … ⇄ ended last
//! ```
//!
//! A status change touches its slot and its record, nothing else. The rest is done when an order comes or ends.

use super::ids::IdChains;
use super::order::{LiveOrder, Order, OrderRecord};
use super::slab::{NONE, Slab};
use super::walk::{Walk, Walks};
use super::{SnapshotMark, ViewSettings};
use crate::event::{ExecType, OrderReport, OrderTerms, Refusal};
use crate::id::{IntId, OrderHandle, ShardId};
use crate::reason::Reason;
use crate::sender::SentBy;
use crate::terms::Status;
use crate::time::Timestamp;

#[derive(Clone, Copy, Debug)]
struct Slot {
    generation: u32,
    record: u32,
}

const EMPTY: Slot = Slot { generation: 0, record: NONE };

/// Both ends of a list of records, and its length.
#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
    len: usize,
}

impl List {
    const EMPTY: List = List { head: NONE, tail: NONE, len: 0 };
}

#[derive(Debug)]
pub(super) struct OrderStore {
    /// Both halves of an order have the same place.
    live: Slab<LiveOrder>,
    records: Slab<OrderRecord>,
    ids: IdChains,
    /// By shard, then slot.
    slots: Vec<Vec<Slot>>,
    /// By shard, in the order they were submitted.
    open: Vec<List>,
    finished: List,
    finished_max: usize,
    versions_max: u32,
    walks: Walks,
}

impl OrderStore {
    pub(super) fn new(shards: u8, settings: &ViewSettings) -> OrderStore {
        OrderStore {
            live: Slab::new(),
            records: Slab::new(),
            ids: IdChains::new(settings.seed),
            slots: vec![Vec::new(); shards as usize],
            open: vec![List::EMPTY; shards as usize],
            finished: List::EMPTY,
            finished_max: settings.finished_max as usize,
            versions_max: settings.versions_max.max(2),
            walks: Walks::default(),
        }
    }
}

/// What events do.
impl OrderStore {
    /// Has memory brought near for an order that will be told of soon.
    pub(super) fn prefetch(&self, event: &OrderTerms) {
        if event.what == ExecType::Entered {
            self.ids.prefetch(&event.id);
        }
    }

    /// An order is entered, its terms have changed, or this is its image.
    pub(super) fn terms(&mut self, at: Timestamp, event: &OrderTerms, mark: SnapshotMark) {
        // A refused order may never have had a place; then there is nothing to keep.
        if event.order == OrderHandle::NONE {
            return;
        }
        let Some(index) = self.mapped(event.order) else {
            return self.enter(at, event, mark);
        };
        self.records[index].terms = event.terms;
        let live = &mut self.live[index];
        live.qty = event.terms.qty;
        live.reason = event.reason;
        live.updated = live.updated.max(at);
        live.epoch = mark.epoch;
        // A snapshot tells an order that was modified more than once under an earlier id first.
        let is_former =
            event.what == ExecType::Snapshot && self.ids.find(&event.id).any(|found| found == index);
        if !is_former {
            self.rename(index, event.id);
        }
        self.set_status(index, event.status);
    }

    /// Something happened to an order. One that is not known has its image still to come.
    pub(super) fn status(&mut self, at: Timestamp, event: &OrderReport, mark: SnapshotMark) {
        let Some(index) = self.mapped(event.order) else {
            return;
        };
        match event.what {
            ExecType::CancelPending => self.records[index].sent.canceled = event.sender,
            ExecType::ReplacePending => self.records[index].sent.modified = event.sender,
            _ => {}
        }
        let live = &mut self.live[index];
        live.qty = event.qty;
        live.cum_qty = event.cum_qty;
        live.avg_price = event.avg_price;
        // Of an order of which all fills were taken back there is no last one.
        if !event.last_qty.is_zero() || event.cum_qty.is_zero() {
            (live.last_qty, live.last_price) = (event.last_qty, event.last_price);
        }
        live.reason = event.reason;
        live.in_doubt = event.in_doubt;
        live.updated = live.updated.max(at);
        live.epoch = mark.epoch;
        // Other reports may carry the id of a request, which is not the order's.
        if event.what == ExecType::Replaced {
            self.rename(index, event.id);
        }
        self.set_status(index, event.status);
    }

    /// Who asked for what of an order that was told before.
    pub(super) fn sent(&mut self, order: OrderHandle, sent: SentBy) {
        if let Some(index) = self.mapped(order) {
            self.records[index].sent = sent;
        }
    }

    /// A request came to nothing, so the order no longer shows it as pending.
    pub(super) fn refused(&mut self, at: Timestamp, event: &Refusal, mark: SnapshotMark) {
        // To a stranger an order is unknown, whatever it is. A venue may say so too, of an order that has its name.
        if event.reason == Reason::UnknownOrder && event.id.is_none() {
            return;
        }
        let Some(index) = self.mapped(event.order) else {
            return;
        };
        let live = &mut self.live[index];
        // Of what was not stored, or did not get there, the order itself knows nothing.
        if !event.reason.is_substitute() {
            live.updated = live.updated.max(at);
        }
        live.epoch = mark.epoch;
        self.set_status(index, event.status);
    }

    /// The shard uses the slot again. A finished order stays readable.
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

    /// The trading day of a shard is over, and with it the time its finished orders stay readable.
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

    /// A snapshot has ended: what the shard did not mention is gone, and what it told came in any order.
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

/// What readers ask.
impl OrderStore {
    pub(super) fn order(&self, handle: OrderHandle) -> Option<Order> {
        self.mapped(handle).map(|index| self.read(index))
    }

    pub(super) fn with_id(&self, id: &IntId) -> Vec<Order> {
        let mut found: Vec<Order> = self.ids.find(id).map(|index| self.read(index)).collect();
        found.sort_by_key(|order| (order.submitted, order.handle));
        found
    }

    /// Each shard's open orders are in order already; the oldest of them all is the next.
    pub(super) fn open(&self) -> impl Iterator<Item = Order> {
        let mut heads: Vec<u32> = self.open.iter().map(|list| list.head).collect();
        std::iter::from_fn(move || {
            let heads_left = heads.iter_mut().filter(|head| **head != NONE);
            let oldest = heads_left.min_by_key(|head| self.age(**head))?;
            let index = *oldest;
            *oldest = self.records[index].next;
            Some(self.read(index))
        })
    }

    pub(super) fn open_len(&self) -> usize {
        self.open.iter().map(|list| list.len).sum()
    }

    /// The one that ended last comes first.
    pub(super) fn finished(&self) -> impl Iterator<Item = Order> {
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
    pub(super) fn walk_open(&mut self, until: Timestamp) -> Option<Walk> {
        self.walks.begin(self.open.iter().map(|list| list.head).collect(), until)
    }

    /// Begins to walk over the orders that are finished now, from the one that ended last.
    pub(super) fn walk_finished(&mut self) -> Option<Walk> {
        self.walks.begin(vec![self.finished.tail], Timestamp::MAX)
    }

    pub(super) fn walk_next(&mut self, walk: Walk) -> Option<Order> {
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

    pub(super) fn walk_end(&mut self, walk: Walk) {
        self.walks.end(walk);
    }

    /// Where a walk goes on behind an order: newer ones that are open, ones that ended earlier.
    fn after(&self, index: u32) -> u32 {
        match self.live[index].status.is_finished() {
            true => self.records[index].before,
            false => self.records[index].next,
        }
    }

    fn read(&self, index: u32) -> Order {
        Order::of(&self.live[index], &self.records[index], &self.ids)
    }

    fn age(&self, index: u32) -> (Timestamp, OrderHandle) {
        let record = &self.records[index];
        (record.submitted, record.handle)
    }
}

/// Coming, changing, going.
impl OrderStore {
    fn enter(&mut self, at: Timestamp, event: &OrderTerms, mark: SnapshotMark) {
        self.clear_slot(event.order);
        let index = self.live.insert(LiveOrder::new(at, event, mark.epoch));
        let same = self.records.insert(OrderRecord::new(at, event));
        assert!(index == same, "both halves come and go together");
        let modified = !event.orig_id.is_none() && event.orig_id != event.id;
        let first = self.ids.insert(if modified { event.orig_id } else { event.id }, index);
        self.records[index].first = first;
        self.live[index].current = first;
        self.rename(index, event.id);
        let slot = &mut self.slots[event.order.shard().0 as usize][event.order.slot() as usize];
        *slot = Slot { generation: event.order.generation(), record: index };
        self.join(index);
    }

    /// Makes room for a handle: its slot exists, and whoever was in it before is no longer known by it.
    fn clear_slot(&mut self, handle: OrderHandle) {
        let slots = &mut self.slots[handle.shard().0 as usize];
        let slot = handle.slot() as usize;
        if slot >= slots.len() {
            slots.resize(slot + 1, EMPTY);
        }
        let before = slots[slot].record;
        if before != NONE {
            self.forgotten(self.records[before].handle);
        }
    }

    fn rename(&mut self, index: u32, id: IntId) {
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

    /// Moves the order to the other list if it ended, or if a corrected fill brought it back.
    fn set_status(&mut self, index: u32, status: Status) {
        let live = &mut self.live[index];
        if live.status.is_finished() == status.is_finished() {
            live.status = status;
            return;
        }
        self.leave(index);
        self.live[index].status = status;
        self.join(index);
    }

    fn join(&mut self, index: u32) {
        let list = self.list_of(index);
        let before = std::mem::replace(&mut list.tail, index);
        list.len += 1;
        match before {
            NONE => list.head = index,
            _ => self.records[before].next = index,
        }
        let record = &mut self.records[index];
        (record.before, record.next) = (before, NONE);
        if self.finished.len > self.finished_max {
            self.drop(self.finished.head);
        }
    }

    fn leave(&mut self, index: u32) {
        if !self.walks.is_empty() {
            self.walks.leave(index, self.after(index));
        }
        let OrderRecord { before, next, .. } = self.records[index];
        let list = self.list_of(index);
        list.len -= 1;
        if before == NONE {
            list.head = next;
        }
        if next == NONE {
            list.tail = before;
        }
        if before != NONE {
            self.records[before].next = next;
        }
        if next != NONE {
            self.records[next].before = before;
        }
    }

    /// The list an order of its status is in.
    fn list_of(&mut self, index: u32) -> &mut List {
        match self.live[index].status.is_finished() {
            true => &mut self.finished,
            false => &mut self.open[self.records[index].handle.shard().0 as usize],
        }
    }

    fn drop(&mut self, index: u32) {
        self.leave(index);
        self.unmap(index);
        self.ids.remove_chain(self.records[index].first);
        self.live.remove(index);
        self.records.remove(index);
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
        self.open[shard] = List::EMPTY;
        sorted.into_iter().for_each(|index| self.join(index));
    }

    /// Images of finished orders come in any order; when each ended is told with it.
    fn sort_finished(&mut self) {
        let mut sorted = self.in_list(&self.finished);
        let ended = |index: &u32| self.live[*index].updated;
        if sorted.is_sorted_by_key(ended) {
            return;
        }
        sorted.sort_by_key(ended);
        self.finished = List::EMPTY;
        sorted.into_iter().for_each(|index| self.join(index));
    }

    fn in_list(&self, list: &List) -> Vec<u32> {
        let mut found = Vec::with_capacity(list.len);
        let mut index = list.head;
        while index != NONE {
            found.push(index);
            index = self.records[index].next;
        }
        found
    }
}
