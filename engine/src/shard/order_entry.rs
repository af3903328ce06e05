//! New orders: from the checks to the place where they wait or trade.
//!
//! Rules: docs/engine-rules.md#order-entry.

use super::Shard;
use super::risk_gate::{AdmittedOrder, OrderRefs};
use crate::command::Command;
use crate::event::{EventKind, ExecType, Instruction, OrderTerms, VenueRequest};
use crate::id::{AdapterId, IntId, OrderHandle, Source};
use crate::number::{Grid, Notional, Qty};
use crate::order::{Base, NIL, Order, OrderFlags};
use crate::orders::empty_order;
use crate::outbox::Outbox;
use crate::reason::Reason;
use crate::sender::SenderId;
use crate::terms::{OrderSpecialTerms, Status, Terms, Tif};
use crate::time::NS_PER_DAY;
use crate::venue::OrderEntry;

/// Days for which finished orders of outside venues are kept, so that a late fill or bust is
/// booked: as long as a trade takes to settle anywhere, with a weekend and a holiday in it. Their
/// number has a bound too, see [`crate::settings::ShardSettings::finished_outside_max`].
pub(super) const FINISHED_OUTSIDE_DAYS: u64 = 7;

impl Shard {
    #[inline]
    pub(super) fn submit(&mut self, source: Source, id: &IntId, terms: &Terms, out: &mut Outbox) {
        if id.is_none() {
            return self.emit_refused(OrderHandle::NONE, source, id, terms, Reason::BadId, out);
        }
        if !self.make_room(out) {
            return self.emit_refused(OrderHandle::NONE, source, id, terms, Reason::ShardFull, out);
        }
        match self.admit(terms, out) {
            Ok(admitted) => self.enter(source, id, terms, &admitted, out),
            Err(reason) => self.record_refused(source, id, terms, reason, out),
        }
    }

    /// Submits an order with special terms, which arrived before it. Without them, because they did
    /// not fit into the journal, it is refused.
    #[cold]
    pub(super) fn submit_special(&mut self, command: &Command, id: &IntId, terms: &Terms, out: &mut Outbox) {
        self.requests.take_special(command.source, command.token);
        if self.requests.special.is_some() {
            return self.submit(command.source, id, terms, out);
        }
        let terms = Terms { special: false, ..*terms };
        self.record_refused(command.source, id, &terms, Reason::LaneFull, out);
    }

    #[inline]
    fn enter(
        &mut self,
        source: Source,
        id: &IntId,
        terms: &Terms,
        admitted: &AdmittedOrder,
        out: &mut Outbox,
    ) {
        let refs = &admitted.refs;
        let slot = self.orders.allocate();
        self.fill_slot(slot, source, id, terms, admitted);
        if terms.special {
            self.orders.special.set(slot, self.requests.special);
        }
        let counts = (refs.local, refs.position, refs.exposure);
        self.ledger.add_new(counts, terms, admitted.credit.reserve, admitted.credit.more);
        self.count_new_credit(slot, refs, admitted.credit.more, out);
        if terms.reduce_only {
            let position = self.ledger.position_mut(refs.local, refs.position);
            position.reducing = position.reducing.checked_add(terms.qty).expect("headroom was checked");
        }
        self.emit_submitted(self.orders.handle(slot), source, id, terms, Reason::None, out);
        if terms.tif == Tif::Gtd {
            self.deadlines.add_dated();
            self.note_date(slot);
        }
        if terms.kind.has_stop() {
            self.await_trigger(slot, out)
        } else if !self.rest_at_once(slot, terms, refs, out) {
            self.send_to_venue(slot, VenueRequest::New, out)
        }
    }

    /// Takes the fast path of most orders: the simulated venue has no delay and only has to add the
    /// order to its queue.
    #[inline]
    fn rest_at_once(&mut self, slot: u32, terms: &Terms, refs: &OrderRefs, out: &mut Outbox) -> bool {
        let security = &self.directory.locals[refs.local as usize];
        if self.deadlines.is_delayed() || security.adapter != AdapterId::SIM {
            return false;
        }
        let Terms { side, qty, tif, account, .. } = *terms;
        let limit = limit_ticks(terms, &security.ticks);
        if !self.venue.rest(&OrderEntry { slot, book: refs.local, side, limit, qty, tif, account }) {
            return false;
        }
        let order = self.orders.get_mut(slot);
        order.set_at_venue(true);
        order.base = Base::Working;
        self.emit_accepted(slot, out);
        true
    }

    /// Writes a new order into its slot, field by field: created elsewhere and copied, it would
    /// take three times as long.
    #[inline]
    fn fill_slot(&mut self, slot: u32, source: Source, id: &IntId, terms: &Terms, admitted: &AdmittedOrder) {
        let refs = &admitted.refs;
        let is_outside = !self.directory.is_simulated(refs.local);
        let order = self.orders.get_mut(slot);
        // All fields by name, so that a new field does not compile until it is handled here.
        let Order {
            id: place,
            terms: place_terms,
            notional,
            cum,
            submitted,
            reserved,
            source: place_source,
            local,
            generation: _,
            requests,
            orig_id,
            execution,
            next,
            position,
            exposure,
            updated,
            reason,
            base,
            flags,
            era,
            before,
            submitted_by,
            canceled_by,
        } = &mut *order;
        *place = *id;
        *place_terms = *terms;
        (*notional, *cum, *reserved) = (Notional::ZERO, Qty::ZERO, admitted.credit.reserve);
        (*submitted, *place_source) = (self.now, source);
        (*updated, *reason) = (self.now, Reason::None);
        (*local, *position, *exposure) = (refs.local, refs.position, refs.exposure);
        (*requests, *orig_id, *execution, *next) = (NIL, NIL, NIL, NIL);
        (*base, *flags, *era, *before) = (Base::PendingNew, OrderFlags::default(), 0, NIL);
        (*submitted_by, *canceled_by) = (self.requests.sender(), SenderId::NONE);
        order.set_outside(is_outside);
    }

    /// Adds a timer at the order's date.
    pub(super) fn note_date(&mut self, slot: u32) {
        let orders = &self.orders;
        self.deadlines.push_date(orders.get(slot).terms.tif_date, orders.handle(slot), |order| {
            orders.find(order).is_some_and(|slot| !orders.get(slot).base.is_finished())
        });
    }

    /// Sends an order, or a request about it, to its venue.
    #[inline]
    pub(super) fn send_to_venue(&mut self, slot: u32, request: VenueRequest, out: &mut Outbox) {
        let local = self.orders.get(slot).local;
        if !self.directory.is_simulated(local) {
            return self.instruct(slot, request, out);
        }
        let delays = self.delays(local);
        if delays.entry_ns == 0 && delays.entry_jitter_ns == 0 {
            return self.reach_venue(slot, request);
        }
        self.deadlines.send_to_venue(self.now, local, &delays, self.orders.handle(slot), request);
    }

    /// Handles a request that has arrived at the simulated venue.
    #[inline]
    pub(super) fn reach_venue(&mut self, slot: u32, request: VenueRequest) {
        match request {
            VenueRequest::New => {
                self.orders.get_mut(slot).set_at_venue(true);
                self.venue.enter(&self.entry_of(slot));
            }
            // An order that leaves moves no other order, so a sweep may cancel in several
            // securities in one step.
            VenueRequest::Cancel => return self.venue.cancel(slot),
            VenueRequest::Replace => self.reach_venue_replace(slot),
            VenueRequest::Query | VenueRequest::Status => return,
        }
        self.continuation.set_busy(self.orders.get(slot).local);
    }

    /// Returns an order in the form that the simulated venue takes.
    #[inline]
    fn entry_of(&self, slot: u32) -> OrderEntry {
        let order = self.orders.get(slot);
        OrderEntry {
            slot,
            book: order.local,
            side: order.terms.side,
            limit: limit_ticks(&order.terms, &self.directory.locals[order.local as usize].ticks),
            qty: order.leaves(),
            tif: order.terms.tif,
            account: order.terms.account,
        }
    }

    fn reach_venue_replace(&mut self, slot: u32) {
        let order = self.orders.get(slot);
        let Some(replace) = self.orders.pending_replace(slot) else {
            return;
        };
        // What the venue has filled counts, even if its reports are still in transit.
        let here = self.venue.remaining(slot).unwrap_or_else(|| order.leaves());
        let filled = order.terms.qty.checked_sub(here).unwrap_or_default();
        let left = replace.terms.qty.checked_sub(filled).unwrap_or_default();
        if !left.is_positive() {
            // Stop here: the rest is cancelled, see `Shard::ended`.
            return self.venue.cancel(slot);
        }
        let limit = limit_ticks(&replace.terms, &self.directory.locals[order.local as usize].ticks);
        self.venue.replace(slot, left, limit, replace.terms.tif);
    }

    /// Sends an instruction to an outside venue's adapter.
    pub(super) fn instruct(&mut self, slot: u32, request: VenueRequest, out: &mut Outbox) {
        let order = self.orders.get_mut(slot);
        order.set_at_venue(true);
        match request {
            VenueRequest::New => order.set_status_queried(false),
            VenueRequest::Query | VenueRequest::Status => order.set_status_queried(true),
            VenueRequest::Cancel | VenueRequest::Replace => {}
        }
        let adapter = self.directory.locals[order.local as usize].adapter;
        let mut terms = order.terms;
        let requests = self.orders.requests(slot);
        let request_id = match request {
            VenueRequest::Cancel => requests.and_then(|requests| requests.cancel).map(|cancel| cancel.id),
            VenueRequest::Replace => requests.and_then(|requests| requests.replace).map(|replace| {
                terms = replace.terms;
                replace.id
            }),
            VenueRequest::New | VenueRequest::Query | VenueRequest::Status => None,
        };
        let special = match request {
            _ if !terms.special => None,
            VenueRequest::New => self.orders.special.current(slot),
            VenueRequest::Replace => self.orders.special.requested(slot),
            VenueRequest::Cancel | VenueRequest::Query | VenueRequest::Status => None,
        };
        if let Some(special) = special {
            let (order, source) = (self.orders.handle(slot), self.orders.get(slot).source);
            let special = OrderSpecialTerms { order, source, is_snapshot: false, special };
            let to = self.adapters.get(adapter).ports;
            out.emit(to, self.now, EventKind::SpecialTerms(special));
        }
        let instruction = Instruction {
            adapter,
            order: self.orders.handle(slot),
            request,
            id: self.orders.get(slot).id,
            request_id: request_id.unwrap_or_default(),
            terms,
        };
        out.emit(self.adapters.get(adapter).ports, self.now, EventKind::ToVenue(instruction));
    }

    /// Records an order that failed a check. It is an order all the same: it is reported, and can
    /// be read until it is forgotten.
    pub(super) fn record_refused(
        &mut self,
        source: Source,
        id: &IntId,
        terms: &Terms,
        reason: Reason,
        out: &mut Outbox,
    ) {
        if id.is_none() || !self.make_room(out) {
            return self.emit_refused(OrderHandle::NONE, source, id, terms, reason, out);
        }
        let local = self.directory.local(terms.security).unwrap_or(NIL);
        let order = Order {
            id: *id,
            terms: *terms,
            submitted: self.now,
            updated: self.now,
            reason,
            source,
            local,
            base: Base::Rejected,
            submitted_by: self.requests.sender(),
            ..empty_order()
        };
        let slot = self.orders.insert(order);
        if terms.special {
            self.orders.special.set(slot, self.requests.special);
        }
        self.emit_refused(self.orders.handle(slot), source, id, terms, reason, out);
        self.add_finished(slot, out);
    }

    /// Emits an order that is refused.
    #[cold]
    #[inline(never)]
    fn emit_refused(
        &self,
        order: OrderHandle,
        source: Source,
        id: &IntId,
        terms: &Terms,
        reason: Reason,
        out: &mut Outbox,
    ) {
        self.emit_submitted(order, source, id, terms, reason, out);
    }

    /// Emits the submitted order as entered, or with a reason as rejected.
    #[inline(always)]
    fn emit_submitted(
        &self,
        order: OrderHandle,
        source: Source,
        id: &IntId,
        terms: &Terms,
        reason: Reason,
        out: &mut Outbox,
    ) {
        let (what, status) = match reason == Reason::None {
            true => (ExecType::Entered, Status::PendingNew),
            false => (ExecType::Rejected, Status::Rejected),
        };
        if let Some(special) = self.requests.special.filter(|_| terms.special) {
            let special = OrderSpecialTerms { order, source, is_snapshot: false, special };
            out.emit(self.watchers.of_order(source), self.now, EventKind::SpecialTerms(special));
        }
        let sender = self.requests.sender();
        if let Some(place) = out.next_place(self.watchers.of_order(source), self.now) {
            let (id, orig_id, terms) = (*id, IntId::NONE, *terms);
            let order = OrderTerms { order, id, orig_id, source, what, status, reason, sender, terms };
            *place = EventKind::Order(order);
        }
    }

    /// Adds an order that has ended to the finished list, and forgets the oldest when the list is
    /// too long.
    #[inline]
    pub(super) fn add_finished(&mut self, slot: u32, out: &mut Outbox) {
        let order = self.orders.get_mut(slot);
        order.era = self.days.era;
        let outside = order.outside();
        self.orders.finish(slot);
        let max = if outside { self.settings.finished_outside_max } else { self.settings.finished_max };
        if self.orders.finished(outside) > max {
            self.forget_oldest_of(outside, out);
        }
    }

    /// Returns whether there is a place for another order, for which an ended order may have to be
    /// forgotten. Under a lowered bound even that may not be enough.
    #[inline]
    fn make_room(&mut self, out: &mut Outbox) -> bool {
        self.orders.has_room() || self.forget_oldest(out) && self.orders.has_room()
    }

    /// Forgets the order that ended longest ago, those of simulated venues first. Returns false if
    /// there is none.
    pub(super) fn forget_oldest(&mut self, out: &mut Outbox) -> bool {
        self.forget_oldest_of(false, out) || self.forget_oldest_of(true, out)
    }

    /// Forgets an order that ended before the current day: any order of a simulated venue, which
    /// reports nothing after the end; of an outside venue, which may report or take back a fill
    /// days later, one that ended [`FINISHED_OUTSIDE_DAYS`] ago. Returns false if there is none.
    pub(super) fn forget_aged(&mut self, out: &mut Outbox) -> bool {
        let since = self.now.0.saturating_sub(FINISHED_OUTSIDE_DAYS * NS_PER_DAY);
        let is_past = |slot: u32| self.orders.get(slot).updated.0 < since;
        let past = self.orders.oldest_finished(true).is_some_and(is_past);
        self.forget_oldest_of(false, out) || past && self.forget_oldest_of(true, out)
    }

    fn forget_oldest_of(&mut self, outside: bool, out: &mut Outbox) -> bool {
        let Some(slot) = self.orders.oldest_finished(outside) else {
            return false;
        };
        let (order, forgotten) = (self.orders.handle(slot), self.orders.get(slot));
        let source = forgotten.source;
        if let Some(place) = out.next_place(self.watchers.of_order(source), self.now) {
            *place = EventKind::Forgotten { order, source, id: forgotten.id };
        }
        self.orders.forget_oldest(outside);
        // The next order gets its slot, and its node.
        self.venue.nodes().fetch(slot);
        true
    }
}

/// Returns the limit in ticks that an order has at the venue: a triggered stop limit keeps its own,
/// a stop has none.
#[inline]
pub(super) fn limit_ticks(terms: &Terms, grid: &Grid) -> Option<i64> {
    let steps = |limit: i64| grid.steps(limit).expect("the gate admits prices on the grid only");
    terms.kind.has_limit().then(|| steps(terms.limit.raw()))
}
