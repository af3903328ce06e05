//! The ids of a desk: lookup, generation, and the names of its orders.

use super::events::ReportRef;
use super::names::{NIL, Name};
use super::order_table::OrderStage;
use super::{Desk, IdBlock, IdUse, KnownOrder, MADE_ID_TRIES_MAX, NAMES_PER_ORDER_MAX, Ticket};
use crate::event::OrderReport;
use crate::id::IntId;
use crate::reason::Reason;

impl Desk {
    /// Returns what is known about an order by any of its ids.
    pub fn order(&self, session: u16, id: &IntId) -> Option<KnownOrder> {
        self.number_of(session, id).map(|number| self.known(number))
    }

    /// Returns what is known about the order that a report is about.
    pub fn order_of(&self, report: &OrderReport) -> Option<KnownOrder> {
        self.find(&ReportRef::of_status(report)).map(|number| self.known(number))
    }

    /// Returns root and token of the order that a report is about, see [`KnownOrder`].
    pub fn root_of(&self, report: &OrderReport) -> Option<(&IntId, u32)> {
        let entry = self.order_table.at(self.find(&ReportRef::of_status(report))?);
        Some((&self.names.at(entry.root).id, entry.token))
    }

    /// Prefetches memory for a new order with this id.
    pub fn prefetch(&self, session: u16, id: &IntId) {
        self.names.prefetch(session, id);
        self.used.prefetch(session, id);
    }

    /// Generates an id that the session has not used, for a request that bypasses the desk. Returns
    /// `None` when the numbers have run out, or the session has used too many ids of this form: the
    /// next try continues from there.
    pub fn make_id(&mut self, session: u16) -> Option<IntId> {
        for _ in 0..MADE_ID_TRIES_MAX {
            if self.numbers.next >= self.numbers.end {
                self.numbers = std::mem::take(&mut self.spare);
            }
            if self.numbers.next >= self.numbers.end {
                return None;
            }
            let id = IntId::numbered(self.settings.prefix, self.numbers.next);
            self.numbers.next += 1;
            if !self.is_used(session, &id) {
                return Some(id);
            }
        }
        None
    }

    /// Returns the count of numbers left for ids. The caller provides a new block when it runs low.
    pub fn numbers_left(&self) -> u64 {
        let left = |block: &IdBlock| block.end.saturating_sub(block.next);
        left(&self.numbers) + left(&self.spare)
    }

    /// Adds numbers for use after the current block.
    pub fn give_numbers(&mut self, block: IdBlock) {
        assert!(self.spare.next >= self.spare.end, "one block in use and one in spare");
        self.spare = block;
    }

    /// Returns whether an id was used in this trading day, as far back as the bound of
    /// [`crate::used_ids`] reaches.
    pub fn is_used(&self, session: u16, id: &IntId) -> bool {
        self.names.find(session, id).is_some() || self.used.contains(session, id)
    }

    /// Records the id of a request that bypasses the desk, of this server or of another.
    pub fn note_used(&mut self, session: u16, id: &IntId) {
        self.used.insert(session, id);
    }

    /// Returns the number of ids of this trading day that were forgotten for lack of room since the
    /// start; they could be used again.
    pub fn ids_dropped(&self) -> u64 {
        self.used.dropped()
    }

    /// Returns the number of known orders, including finished ones.
    pub fn len(&self) -> usize {
        self.order_table.len() as usize
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether a cancel waits here for the handle of its order, or for room.
    pub fn has_requests(&self) -> bool {
        self.held > 0 || !self.ready.is_empty()
    }

    /// Returns the number of own orders and ids that a shard reported and the tables had no room
    /// for; they cannot be found by id.
    pub fn untracked(&self) -> u64 {
        self.untracked
    }

    /// Returns the id of a request: the given id if it is new, otherwise a generated one. A
    /// modification gets the next version of the order's id.
    pub(super) fn new_id(&mut self, ticket: &Ticket, modified: Option<u32>) -> Result<IntId, Reason> {
        let session = ticket.source.session;
        if !ticket.id.is_none() {
            let is_used = self.is_used(session, &ticket.id);
            return if is_used { Err(Reason::DuplicateId) } else { Ok(ticket.id) };
        }
        let version = modified.and_then(|number| self.next_version(number));
        version.or_else(|| self.make_id(session)).ok_or(Reason::LaneFull)
    }

    pub(super) fn next_version(&self, number: u32) -> Option<IntId> {
        let name = self.names.at(self.order_table.at(number).current);
        let mut id = name.id.next_version()?;
        // Refused modifications have used up some versions.
        for _ in 0..NAMES_PER_ORDER_MAX {
            if !self.is_used(name.session, &id) {
                return Some(id);
            }
            id = id.next_version()?;
        }
        None
    }

    pub(super) fn number_of(&self, session: u16, id: &IntId) -> Option<u32> {
        let name = self.names.at(self.names.find(session, id)?);
        (!name.spent).then_some(name.order)
    }

    pub(super) fn known(&self, number: u32) -> KnownOrder {
        let entry = self.order_table.at(number);
        KnownOrder {
            order: entry.handle,
            root: self.names.at(entry.root).id,
            id: self.names.at(entry.current).id,
            status: entry.status,
            finished: entry.stage == OrderStage::Finished,
            token: entry.token,
        }
    }

    /// Gives an order one more name; its first name becomes its root. There is room.
    pub(super) fn add_name(&mut self, number: u32, id: IntId, spent: bool) -> u32 {
        let entry = self.order_table.at_mut(number);
        let session = entry.source.session;
        let name = self.names.add(Name { id, session, spent, order: number, next: NIL });
        let before = std::mem::replace(&mut entry.youngest, name);
        entry.names += 1;
        if before == NIL {
            (entry.root, entry.current) = (name, name);
        } else {
            self.names.at_mut(before).next = name;
        }
        if entry.names > NAMES_PER_ORDER_MAX {
            self.drop_oldest_name(number);
        }
        name
    }

    /// Forgets the oldest name except the root and the current one.
    pub(super) fn drop_oldest_name(&mut self, number: u32) {
        let entry = self.order_table.at_mut(number);
        let mut before = entry.root;
        if self.names.at(before).next == entry.current {
            before = entry.current;
        }
        let Name { id, session, .. } = *self.names.at(self.names.at(before).next);
        self.used.insert(session, &id);
        let next = self.names.remove(self.names.at(before).next);
        self.names.at_mut(before).next = next;
        entry.names -= 1;
    }

    /// Makes room for a name, and for an entry if requested, by forgetting finished orders. Returns
    /// whether there is room.
    pub(super) fn make_room(&mut self, entry: bool) -> bool {
        while !self.names.has_room() || entry && !self.order_table.has_room() {
            let Some(oldest) = self.order_table.finished_first() else { return false };
            self.forget(oldest, IdUse::StayUsed);
        }
        true
    }

    /// Removes an order and all its names.
    pub(super) fn forget(&mut self, number: u32, ids: IdUse) {
        let mut name = self.order_table.at(number).root;
        while name != NIL {
            // The desk remembers no ids of a day that is over.
            if ids == IdUse::StayUsed && self.stale == 0 {
                let Name { id, session, .. } = *self.names.at(name);
                self.used.insert(session, &id);
            }
            name = self.names.remove(name);
        }
        if self.order_table.at(number).stage == OrderStage::Finished {
            // This order was the oldest.
            self.stale = self.stale.saturating_sub(1);
        }
        self.order_table.remove(number);
    }
}
