//! Applies the order events of the shards to the desk.

use super::names::NIL;
use super::order_table::{DeskEntry, OrderStage};
use super::{Desk, FORGET_PER_POLL_MAX, IdUse};
use crate::command::{Command, CommandKind};
use crate::event::{Event, EventKind, ExecType, OrderReport, OrderTerms, RequestKind, RequestRefusal};
use crate::id::{IntId, OrderHandle, Origin, ShardId, Source};
use crate::mesh::PortEnd;
use crate::reason::Reason;
use crate::terms::Status;
use crate::time::Day;
use crate::used_ids::UsedIds;

/// Entries in flight that are compared before the index is searched: more than one because several
/// shards answer.
const NEAR_MAX: usize = 4;

/// The fields of an order event that the desk needs.
pub(super) struct ReportRef<'a> {
    order: OrderHandle,
    id: &'a IntId,
    orig_id: &'a IntId,
    source: Source,
    what: ExecType,
    status: Status,
}

impl ReportRef<'_> {
    pub(super) fn of_order(order: &OrderTerms) -> ReportRef<'_> {
        let OrderTerms { order, ref id, ref orig_id, source, what, status, .. } = *order;
        ReportRef { order, id, orig_id, source, what, status }
    }

    pub(super) fn of_status(report: &OrderReport) -> ReportRef<'_> {
        let OrderReport { order, ref id, ref orig_id, source, what, status, .. } = *report;
        ReportRef { order, id, orig_id, source, what, status }
    }
}

impl Desk {
    /// Updates the table; after a restart a snapshot fills it. If a held cancel can never be sent
    /// because its order never existed, returns the refusal, which the caller reports as if a shard
    /// had sent it.
    pub fn handle_event(&mut self, shard: ShardId, event: &Event) -> Option<RequestRefusal> {
        match &event.body {
            EventKind::Order(order) => self.handle_report(&ReportRef::of_order(order)),
            EventKind::Status(report) => self.handle_report(&ReportRef::of_status(report)),
            EventKind::Refused(refusal) => {
                self.handle_refusal(refusal);
                None
            }
            EventKind::Forgotten { order, source, id } => {
                self.handle_forgotten(*order, *source, id);
                None
            }
            EventKind::Done { source, token, reason } => self.handle_done(*source, *token, *reason),
            EventKind::TradingDay { day } => {
                self.handle_day(shard, *day);
                None
            }
            EventKind::UsedIds(used) => {
                self.handle_used(shard, used);
                None
            }
            EventKind::Booked(_)
            | EventKind::Adjusted { .. }
            | EventKind::Tick(_)
            | EventKind::Depth(_)
            | EventKind::Levels(_)
            | EventKind::BookOrders(_)
            | EventKind::MarketTrade(_)
            | EventKind::Subscription { .. }
            | EventKind::Session { .. }
            | EventKind::Halt { .. }
            | EventKind::Phase { .. }
            | EventKind::Adapter { .. }
            | EventKind::Limits { .. }
            | EventKind::Restrict { .. }
            | EventKind::Kill { .. }
            | EventKind::Directed { .. }
            | EventKind::Alert { .. }
            | EventKind::ToVenue(_)
            | EventKind::Budget(_)
            | EventKind::Exposure { .. }
            | EventKind::SnapshotBegin { .. }
            | EventKind::SnapshotEnd { .. }
            | EventKind::Sender { .. }
            | EventKind::SpecialTerms(_)
            | EventKind::Sent { .. } => None,
        }
    }

    /// Sends the waiting cancels as far as there is room, and forgets a few orders of a day that is
    /// over. Returns the amount of work done.
    pub fn poll(&mut self, port: &mut PortEnd) -> usize {
        let mut work = 0;
        // The cancels are of different orders, so one may overtake another whose lane is full.
        for _ in 0..self.ready.len() {
            let Some((shard, command)) = self.ready.pop_front() else { break };
            match port.send(shard, command) {
                Ok(()) => work += 1,
                Err(_) => self.ready.push_back((shard, command)),
            }
        }
        for _ in 0..self.stale.min(FORGET_PER_POLL_MAX) {
            let Some(oldest) = self.order_table.finished_first() else { break };
            self.forget(oldest, IdUse::Free);
            work += 1;
        }
        work
    }

    fn handle_report(&mut self, report_ref: &ReportRef) -> Option<RequestRefusal> {
        if report_ref.source.port != self.settings.port {
            if matches!(report_ref.what, ExecType::Entered | ExecType::Replaced | ExecType::Rejected) {
                self.note_remote(report_ref.source, report_ref.id);
            }
            return None;
        }
        let number = self.find(report_ref).or_else(|| self.insert_unknown(report_ref))?;
        let entry = self.order_table.at_mut(number);
        entry.status = report_ref.status;
        let mut refusal = None;
        if entry.stage == OrderStage::InFlight {
            entry.handle = report_ref.order;
            self.order_table.move_to(number, OrderStage::Working);
            refusal = self.release(number);
        }
        match report_ref.what {
            ExecType::Replaced | ExecType::Snapshot => self.rename(number, report_ref.id),
            ExecType::Entered
            | ExecType::Rejected
            | ExecType::Accepted
            | ExecType::Filled
            | ExecType::CancelPending
            | ExecType::Canceled
            | ExecType::Expired
            | ExecType::ReplacePending
            | ExecType::Triggered
            | ExecType::Corrected => {}
        }
        self.settle(number);
        refusal
    }

    /// Finds the entry that a report is about. The handle must match, because an id may have
    /// belonged to another order before. An entry in flight has no handle; its first report says
    /// that it is entered or rejected.
    #[inline]
    pub(super) fn find(&self, report_ref: &ReportRef) -> Option<u32> {
        let last = self.last.get();
        if self.is_same(last, report_ref) { Some(last) } else { self.search(report_ref) }
    }

    /// Finds the entry of a report that is not about the entry of the last report.
    fn search(&self, report_ref: &ReportRef) -> Option<u32> {
        let begins = matches!(report_ref.what, ExecType::Entered | ExecType::Rejected);
        let matches = |number: &u32| {
            let entry = self.order_table.at(*number);
            match entry.stage {
                OrderStage::InFlight => begins,
                OrderStage::Working | OrderStage::Finished => entry.handle == report_ref.order,
                OrderStage::Free => false,
            }
        };
        let find = |id| self.names.find(report_ref.source.session, id).map(|name| self.names.at(name).order);
        let near = if begins { self.find_in_flight(report_ref) } else { None };
        let found = near.or_else(|| {
            find(report_ref.id).filter(matches).or_else(|| find(report_ref.orig_id).filter(matches))
        })?;
        self.last.set(found);
        Some(found)
    }

    /// Finds one of the first entries in flight, since shards answer in the order in which they
    /// were asked. The index is large and often not in the cache.
    fn find_in_flight(&self, report_ref: &ReportRef) -> Option<u32> {
        let matches = |number: &u32| {
            let name = self.names.at(self.order_table.at(*number).root);
            name.session == report_ref.source.session && name.id == *report_ref.id
        };
        self.order_table.in_flight().take(NEAR_MAX).find(matches)
    }

    /// Returns whether a report is about this entry, by its handle and one of its names.
    #[inline]
    fn is_same(&self, number: u32, report_ref: &ReportRef) -> bool {
        let Some(entry) = self.order_table.get(number) else { return false };
        let is_known = matches!(entry.stage, OrderStage::Working | OrderStage::Finished);
        is_known && entry.handle == report_ref.order && report_ref.order != OrderHandle::NONE && {
            let now = &self.names.at(entry.current).id;
            now == report_ref.id || now == report_ref.orig_id
        }
    }

    /// Creates an entry for an order that did not come from this desk, or came before a restart.
    fn insert_unknown(&mut self, report_ref: &ReportRef) -> Option<u32> {
        if !matches!(report_ref.what, ExecType::Entered | ExecType::Rejected | ExecType::Snapshot) {
            return None;
        }
        let session = report_ref.source.session;
        let is_free = |id: &IntId| !id.is_none() && self.names.find(session, id).is_none();
        let root = [report_ref.orig_id, report_ref.id].into_iter().find(|id| is_free(id));
        let (Some(root), true) = (root, self.make_room(true)) else {
            self.untracked += 1;
            return None;
        };
        let number = self.order_table.add(report_ref.source, 0);
        self.add_name(number, *root, false);
        Some(number)
    }

    /// Releases a held cancel: the handle of its order has arrived, or never will.
    fn release(&mut self, number: u32) -> Option<RequestRefusal> {
        let entry = self.order_table.at_mut(number);
        let held = std::mem::replace(&mut entry.held, NIL);
        if held == NIL {
            return None;
        }
        self.held -= 1;
        let DeskEntry { handle: order, source, held_token: token, held_sender: sender, .. } = *entry;
        let id = self.names.at(held).id;
        if order != OrderHandle::NONE {
            let command = Command { source, token, sender, body: CommandKind::Cancel { order, id } };
            self.ready.push_back((order.shard(), command));
            return None;
        }
        Some(RequestRefusal {
            order,
            id: self.names.at(entry.current).id,
            request_id: id,
            source,
            request: RequestKind::Cancel,
            status: Status::Rejected,
            reason: Reason::OrderFinished,
        })
    }

    /// Gives the order a new current id.
    fn rename(&mut self, number: u32, id: &IntId) {
        let entry = self.order_table.at(number);
        let name = match self.names.find(entry.source.session, id) {
            Some(name) if self.names.at(name).order == number => name,
            None if self.make_room(false) => self.add_name(number, *id, false),
            Some(_) | None => {
                self.untracked += 1;
                return;
            }
        };
        self.names.at_mut(name).spent = false;
        self.order_table.at_mut(number).current = name;
    }

    /// Moves an order to the list of its status, and forgets the oldest finished order if there are
    /// too many.
    fn settle(&mut self, number: u32) {
        let DeskEntry { status, stage, .. } = *self.order_table.at(number);
        let right = if status.is_finished() { OrderStage::Finished } else { OrderStage::Working };
        if stage != right {
            self.order_table.move_to(number, right);
        }
        if self.order_table.finished() > self.settings.finished_max
            && let Some(oldest) = self.order_table.finished_first()
        {
            self.forget(oldest, IdUse::StayUsed);
        }
    }

    fn handle_refusal(&mut self, refusal: &RequestRefusal) {
        let RequestRefusal { order, source, .. } = *refusal;
        if source.port != self.settings.port {
            return self.note_remote(source, &refusal.request_id);
        }
        let Some(name) = self.names.find(source.session, &refusal.request_id) else { return };
        let number = self.names.at(name).order;
        if self.order_table.at(number).handle != order || order == OrderHandle::NONE {
            return;
        }
        self.names.at_mut(name).spent = true;
        if refusal.id.is_none() {
            // The shard no longer knows this order, so the status belongs to no order.
            return;
        }
        self.order_table.at_mut(number).status = refusal.status;
        self.settle(number);
    }

    /// The shard will not report this order again. Its ids stay used.
    fn handle_forgotten(&mut self, order: OrderHandle, source: Source, id: &IntId) {
        if source.port != self.settings.port {
            return;
        }
        let Some(number) = self.number_of(source.session, id) else { return };
        let entry = self.order_table.at_mut(number);
        if entry.handle == order && entry.stage == OrderStage::Finished {
            entry.handle = OrderHandle::NONE;
        }
    }

    /// Records an id that a REST client of another server has used.
    fn note_remote(&mut self, source: Source, id: &IntId) {
        if source.origin == Origin::Rest && source.port.id_scope() == self.settings.port && !id.is_none() {
            self.used.insert(source.session, id);
        }
    }

    /// Adds ids from before a restart, whose orders a shard may have forgotten. A shard that has
    /// not begun the trading day sends those of the day before, which may be used again.
    fn handle_used(&mut self, shard: ShardId, used: &UsedIds) {
        let day = self.days.get(shard.0 as usize).copied().flatten();
        let is_past = day.is_some_and(|day| self.day > Some(day));
        if !is_past && used.source.port.id_scope() == self.settings.port {
            used.hashes().iter().for_each(|hash| self.used.insert_hash(*hash));
        }
    }

    /// Handles the refusal of an own command before an order existed: there is nothing to keep.
    fn handle_done(&mut self, source: Source, token: u32, reason: Reason) -> Option<RequestRefusal> {
        if source.port != self.settings.port || reason == Reason::None {
            return None;
        }
        // Shards answer in the order in which they were asked, so the search ends early.
        let matches = |number: &u32| {
            let entry = self.order_table.at(*number);
            entry.source == source && entry.token == token
        };
        let number = self.order_table.in_flight().find(matches)?;
        let refusal = self.release(number);
        self.forget(number, IdUse::Free);
        refusal
    }

    /// Handles a new trading day. Every shard reports it; the first report counts. The first day
    /// after a restart ends no earlier day.
    fn handle_day(&mut self, shard: ShardId, day: Day) {
        if let Some(known) = self.days.get_mut(shard.0 as usize) {
            *known = Some(day);
        }
        if self.day.is_some_and(|known| known < day) {
            self.stale = self.order_table.finished();
            self.used.clear();
        }
        self.day = self.day.max(Some(day));
    }
}
