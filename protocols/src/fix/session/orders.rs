//! The orders of a session: requests go out to the desk, events come back as reports.

use pitlane_engine::desk::{Declined, Desk, Ticket};
use pitlane_engine::event::{Event, EventKind, ExecType, OrderReport, Refusal, RequestKind as Asked};
use pitlane_engine::id::{IntId, OrderHandle, ShardId, Uuid};
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{Status, Terms};
use pitlane_engine::time::Timestamp;

use super::outbound::route;
use super::{OUTPUT_BYTES_ENOUGH, Session, State};
use crate::decoded::Decoded;
use crate::fix::entry::{self, Request};
use crate::fix::fields::{Message, read};
use crate::fix::frame;
use crate::fix::order::OrderFields;
use crate::fix::orders::{Key, Order, order_of};
use crate::fix::reject::OrderRejectReason;
use crate::fix::report::{self, CancelReject, Report};
use crate::fix::store::Cause;
use crate::fix::tag;

/// The kind of UUID that ExecIDs made here are, beside those of events (0) and transactions (1).
const EXEC_ID_KIND: u8 = 2;

/// Sets the tokens of requests apart from places in the book, of which there are fewer.
const REQUEST: u32 = 1 << 31;

/// BusinessRejectReason (380).
const OTHER: u8 = 0;
const NOT_AVAILABLE: u8 = 4;
const FIELD_MISSING: u8 = 5;
const NOT_AUTHORISED: u8 = 6;

/// What the client asks.
impl Session {
    pub(super) fn handle_order_message(
        &mut self,
        now: Timestamp,
        message: &Message,
        number: u64,
        desk: &Desk,
    ) {
        if !self.settings.may_trade {
            return self.business_reject(
                now,
                message,
                number,
                NOT_AUTHORISED,
                None,
                "The session may not trade",
            );
        }
        if !self.ready {
            return self.business_reject(
                now,
                message,
                number,
                NOT_AVAILABLE,
                None,
                "Orders are not taken now",
            );
        }
        let order = match OrderFields::read(message) {
            Ok(order) => order,
            Err(fault) => return self.reject(now, message, number, fault),
        };
        let kind = message.msg_type[0];
        // Said again because we asked for it after a restart; its answer was kept.
        if message.header.poss_dup && order.cl_ord_id.is_some_and(|id| self.flight.was_answered(&id)) {
            return;
        }
        if let Some(tag) = entry::missing(kind, &order) {
            return match self.settings.validate {
                true => self.reject_missing(now, message, number, tag),
                false => self.business_reject(
                    now,
                    message,
                    number,
                    FIELD_MISSING,
                    None,
                    "Conditionally required field missing",
                ),
            };
        }
        let admitted = match kind {
            b'F' => self.flood.admits_cancel(now),
            _ => self.flood.admits_order(now),
        };
        if !admitted {
            let why = Some(OrderRejectReason::Platform(Reason::OrderRate));
            return self.business_reject(now, message, number, OTHER, why, "");
        }
        match kind {
            b'D' => self.handle_new_order(now, message, &order, desk),
            b'F' => self.handle_change(now, message, &order, Asked::Cancel, desk),
            _ => self.handle_change(now, message, &order, Asked::Replace, desk),
        }
    }

    fn handle_new_order(&mut self, now: Timestamp, message: &Message, order: &OrderFields, desk: &Desk) {
        let id = order.cl_ord_id.unwrap_or_default();
        let known = desk.order(self.settings.source.session, &id);
        match known.map(|known| self.book.get(&known.into()).copied()) {
            // Said again in case it was lost: it was not.
            Some(Some(known)) if message.header.poss_resend => return self.report_status(now, &known),
            Some(_) => return self.refuse_order(now, message, order, Reason::DuplicateId.into()),
            None => {}
        }
        let terms = match entry::terms(&self.settings, &self.reference, order) {
            Ok(terms) => terms,
            Err(why) => return self.refuse_order(now, message, order, why),
        };
        let Some(place) = self.book.add(Order::new(id, terms, now)) else {
            return self.refuse_order(now, message, order, Reason::ShardFull.into());
        };
        let ticket = Ticket { source: self.settings.source, token: place, id, ..Ticket::default() };
        self.request = Some(Request::Submit { ticket, terms });
    }

    /// A cancel or a replacement.
    fn handle_change(
        &mut self,
        now: Timestamp,
        message: &Message,
        order: &OrderFields,
        asked: Asked,
        desk: &Desk,
    ) {
        let id = order.cl_ord_id.unwrap_or_default();
        let orig = order.orig_cl_ord_id.unwrap_or_default();
        let found = desk.order(self.settings.source.session, &orig).map(Key::from);
        let found = found.and_then(|key| Some((key, *self.book.get(&key)?)));
        let refused = |root, status, orig_cl_ord_id, why| CancelReject {
            root,
            cl_ord_id: id,
            orig_cl_ord_id,
            status,
            request: asked,
            why,
        };
        let Some((key, known)) = found else {
            let reject = refused(IntId::NONE, Status::Rejected, orig, Reason::UnknownOrder.into());
            return self.refuse_change(now, message, &reject);
        };
        let request = self.change(order, key, &known, asked);
        match request {
            Ok(request) => {
                let Some(kept) = self.book.get_mut(&key) else { return };
                match asked {
                    Asked::Cancel if kept.cancel.is_none() => kept.cancel = id,
                    Asked::Replace if kept.replace.is_none() => kept.replace = id,
                    Asked::Cancel | Asked::Replace => {}
                }
                self.request = Some(request);
            }
            Err(why) => {
                // Where a request is pending, the order's id is the one before it.
                let pending = why == OrderRejectReason::Platform(Reason::RequestPending);
                let orig = if pending { known.cl_ord_id } else { orig };
                self.refuse_change(now, message, &refused(known.root, known.status, orig, why));
            }
        }
    }

    /// The request for a change of an order of ours, or why it cannot be.
    fn change(
        &mut self,
        order: &OrderFields,
        key: Key,
        known: &Order,
        asked: Asked,
    ) -> Result<Request, OrderRejectReason> {
        let id = order.cl_ord_id.unwrap_or_default();
        let orig = order.orig_cl_ord_id.unwrap_or_default();
        // A cancel may name the replacement that is on its way: it is meant for what becomes of it.
        let (named, renamed) = (orig == known.cl_ord_id, orig == known.replace);
        if !named && !renamed {
            return Err(Reason::UnknownOrder.into());
        }
        if known.status.is_finished() {
            return Err(Reason::OrderFinished.into());
        }
        // Of two replacements on their way we could not tell whose reports are whose.
        if asked == Asked::Replace && !known.replace.is_none() {
            return Err(Reason::RequestPending.into());
        }
        match asked {
            Asked::Cancel => {
                entry::matches(&self.reference, order, known)?;
                Ok(Request::Cancel { ticket: self.ticket(id), key, order: known.cl_ord_id })
            }
            Asked::Replace => {
                let changes = entry::changes(&self.settings, &self.reference, order, known)?;
                Ok(Request::Modify { ticket: self.ticket(id), key, order: known.cl_ord_id, changes })
            }
        }
    }

    /// Of a request about an order. The token of the order itself is its place in the book, so that its reports find it.
    fn ticket(&mut self, id: IntId) -> Ticket {
        self.token = self.token.wrapping_add(1);
        Ticket { source: self.settings.source, token: self.token | REQUEST, id, ..Ticket::default() }
    }

    /// The next cancel of the orders of a client that is away. Each has an id that the desk makes.
    pub(super) fn next_cancel(&mut self, desk: &Desk) {
        let (Some(mut at), None) = (self.cancel_round, &self.request) else { return };
        let Order { root, cl_ord_id: order, .. } = loop {
            if at >= self.book.places() {
                self.cancel_round = None;
                return;
            }
            at += 1;
            // An order that the desk has lost sight of cannot be cancelled by its id.
            if let Some(order) = self.book.at(at - 1)
                && !order.status.is_finished()
                && desk.order(self.settings.source.session, &order.cl_ord_id).is_some()
            {
                break *order;
            }
        };
        self.cancel_round = Some(at);
        let key = Key { root, place: at as u32 - 1 };
        if let Some(order) = self.book.get_mut(&key) {
            order.house_cancel = true;
        }
        self.request = Some(Request::Cancel { ticket: self.ticket(IntId::NONE), key, order });
    }
}

/// What becomes of it.
impl Session {
    /// The desk did not take a request. While its lane is full ([`Reason::LaneFull`]) the caller keeps the request instead.
    pub fn handle_declined(&mut self, now: Timestamp, request: &Request, declined: &Declined) {
        let why = OrderRejectReason::Platform(declined.reason);
        self.flight.end(&request.ticket().id);
        match *request {
            Request::Submit { ticket, terms } => {
                self.book.remove(&Key { root: ticket.id, place: ticket.token });
                self.report_rejected(now, ticket.id, &terms, declined.reason);
            }
            Request::Modify { ticket, key, order, .. } => {
                self.forget_request(&key, &ticket.id);
                self.refuse_declined(now, &ticket, order, Asked::Replace, declined, why);
            }
            Request::Cancel { ticket, key, order } => {
                self.forget_request(&key, &ticket.id);
                // A cancel of ours, not the client's: nobody waits for the answer.
                if !ticket.id.is_none() {
                    self.refuse_declined(now, &ticket, order, Asked::Cancel, declined, why);
                }
            }
        }
    }

    /// What a shard says. The desk has heard it before.
    pub fn handle_event(&mut self, now: Timestamp, shard: ShardId, event: &Event, desk: &Desk) {
        self.take_event(now, shard, event, desk, false);
    }

    /// What a shard said before a restart and nobody heard: the journal has it, the store has no report of it. The desk has heard
    /// how everything stands.
    pub fn handle_missed(&mut self, now: Timestamp, shard: ShardId, event: &Event, desk: &Desk) {
        if event.seq > self.store.heard(shard) {
            self.take_event(now, shard, event, desk, true);
        }
    }

    /// How an order stands, told unasked: what happened to it is lost. The book has heard it before.
    pub fn report_standing(&mut self, now: Timestamp, told: &OrderReport, desk: &Desk) {
        if told.source != self.settings.source {
            return;
        }
        let known = desk.order_of(told).map(Key::from).or_else(|| self.missed_key(told));
        if let Some(order) = known.and_then(|key| self.book.get(&key).copied()) {
            self.report_status(now, &order);
        }
    }

    /// A report and the number of its event are kept together.
    fn take_event(&mut self, now: Timestamp, shard: ShardId, event: &Event, desk: &Desk, missed: bool) {
        self.cause = has_number(event).then_some(Cause { shard, seq: event.seq });
        self.report_event(now, shard, event, desk, missed);
        self.cause = None;
    }

    fn report_event(&mut self, now: Timestamp, shard: ShardId, event: &Event, desk: &Desk, missed: bool) {
        if let EventKind::Refused(refusal) = &event.body {
            if missed && refusal.source == self.settings.source {
                self.flight.recall(refusal.request_id);
            }
            return self.handle_refusal(now, refusal, desk);
        }
        if let EventKind::Order(told) = &event.body
            && told.source == self.settings.source
        {
            match told.what {
                // The status follows.
                ExecType::Replaced => {
                    if let Some(key) = self.key_of(&told.id, &told.orig_id, told.order, desk)
                        && let Some(order) = self.book.get_mut(&key)
                    {
                        order.terms = told.terms;
                    }
                }
                ExecType::Snapshot => self.remember(told, event.at, desk),
                _ => {}
            }
        }
        let Some(told) = event.report().filter(|told| told.source == self.settings.source) else { return };
        if matches!(
            told.what,
            ExecType::Entered | ExecType::Rejected | ExecType::CancelPending | ExecType::ReplacePending
        ) {
            self.flight.end(&told.id);
            if missed {
                self.flight.recall(told.id);
            }
        }
        let known = desk.order_of(&told).map(Key::from);
        let Some(key) = known.or_else(|| if missed { self.missed_key(&told) } else { None }) else {
            // Told and not recorded: it is rejected, and lives on in no table.
            return self.report_untracked(now, shard, event);
        };
        if let EventKind::Order(terms) = &event.body
            && self.book.get(&key).is_none()
        {
            self.book.recall(order_of(terms, key.root, event.at));
        }
        let exec_id = event.exec_id(self.settings.instance, shard);
        let Some(order) = self.book.get_mut(&key) else { return };
        let was_finished = order.status.is_finished();
        let mut report = Report::of_event(&told, event.at, exec_id, order);
        if missed {
            // Which of the ids are the client's own is not known any more; they were its own at that time, most likely.
            let asked = matches!(
                told.what,
                ExecType::CancelPending | ExecType::Canceled | ExecType::ReplacePending | ExecType::Replaced
            );
            report.cl_ord_id = told.id;
            report.orig_cl_ord_id = if asked { told.orig_id } else { IntId::NONE };
        }
        let (terms, is_finished) = (order.terms, order.status.is_finished());
        if told.what != ExecType::Snapshot {
            self.report(now, &key.root, &terms, &report);
        }
        if is_finished && !was_finished {
            self.book.finish(&key);
        }
    }

    /// A request was refused by a shard, or by the desk in its name.
    pub fn handle_refusal(&mut self, now: Timestamp, refusal: &Refusal, desk: &Desk) {
        if refusal.source != self.settings.source {
            return;
        }
        self.flight.end(&refusal.request_id);
        let session = self.settings.source.session;
        let key = desk.order(session, &refusal.id).map_or(Key::of_root(refusal.id), Key::from);
        let mut order = self.book.get_mut(&key);
        if let Some(order) = &mut order {
            let mine = order.forget(&refusal.request_id);
            let house_cancel = refusal.request == Asked::Cancel && std::mem::take(&mut order.house_cancel);
            // A cancel that the client did not ask for is not answered to it.
            if !mine && house_cancel {
                return;
            }
        }
        let order = order.copied();
        let reject = CancelReject::of_refusal(refusal, order.as_ref());
        self.tell(now, b'9', |draft, settings, _| {
            report::cancel_reject(draft, settings.profile, now, &reject)
        });
    }

    /// One report for each open order, after a reset has made the client forget what it was told.
    pub(super) fn go_on_reporting(&mut self, now: Timestamp) {
        while let (Some(at), State::LoggedOn) = (self.status_round, self.state) {
            if self.output.len() >= OUTPUT_BYTES_ENOUGH || self.resend.is_active() {
                return;
            }
            if at >= self.book.places() {
                self.status_round = None;
                return;
            }
            self.status_round = Some(at + 1);
            if let Some(order) = self.book.at(at).copied().filter(|order| !order.status.is_finished()) {
                self.report_status(now, &order);
            }
        }
    }

    /// An order of before a restart.
    fn remember(&mut self, told: &pitlane_engine::event::OrderTerms, at: Timestamp, desk: &Desk) {
        let Some(key) = self.key_of(&told.id, &told.orig_id, told.order, desk) else { return };
        match self.book.get_mut(&key) {
            Some(order) => {
                order.terms = told.terms;
                // An order that was modified more than once is first shown under its earlier ids.
                if order.is_recalled && order.cl_ord_id == told.orig_id {
                    order.cl_ord_id = told.id;
                }
            }
            None => {
                self.book.recall(Order { is_recalled: true, ..order_of(told, key.root, at) });
                if told.status.is_finished() {
                    self.book.finish(&key);
                }
            }
        }
    }

    /// The order of an event from before a restart that the shard has forgotten since: under the id it had then.
    fn missed_key(&self, told: &OrderReport) -> Option<Key> {
        let known =
            [told.id, told.orig_id].map(Key::of_root).into_iter().find(|key| self.book.get(key).is_some());
        known.or_else(|| (told.what == ExecType::Entered).then_some(Key::of_root(told.id)))
    }

    /// The ids of all answers that are kept: whoever is asked again after a restart will say some of what they answer.
    pub(super) fn recall_answers(&mut self) {
        let (mut message, mut next) = (Vec::new(), 1);
        let mut fields = self.fields.take().expect("no message is read yet");
        while let Some(number) = self.store.next_kept(next, u64::MAX, &mut message) {
            next = number + 1;
            let Ok(Decoded::Message { message: frame, .. }) = frame::decode(&message, usize::MAX) else {
                continue;
            };
            let told = read(frame, &mut fields);
            let id = if told.msg_type == b"j" {
                told.get(tag::BUSINESS_REJECT_REF_ID)
            } else {
                told.get(tag::CL_ORD_ID)
            };
            if let Some(id) = id.and_then(|id| IntId::parse(id).ok()) {
                self.flight.recall(id);
            }
        }
        self.fields = Some(fields);
    }

    fn key_of(&self, id: &IntId, orig_id: &IntId, handle: OrderHandle, desk: &Desk) -> Option<Key> {
        let session = self.settings.source.session;
        let find = |id| desk.order(session, id).filter(|known| known.order == handle);
        find(id).or_else(|| find(orig_id)).map(Key::from)
    }

    fn forget_request(&mut self, key: &Key, id: &IntId) {
        if let Some(order) = self.book.get_mut(key) {
            order.forget(id);
        }
    }

    /// ExecID of a report that no event made: unique for ever, as long as time does not run backwards over a restart.
    fn exec_id(&mut self, now: Timestamp) -> Uuid {
        self.exec = now.0.max(self.exec + 1);
        let instance = self.settings.instance ^ (self.settings.source.session as u64) << 32;
        Uuid::derived(instance, EXEC_ID_KIND, self.exec)
    }

    fn report(&mut self, now: Timestamp, root: &IntId, terms: &Terms, report: &Report) {
        self.tell(now, b'8', |draft, settings, reference| {
            report::execution(draft, settings.profile, reference, root, terms, report);
        });
    }

    fn report_status(&mut self, now: Timestamp, order: &Order) {
        let report = Report::of_order(order, self.exec_id(now));
        self.report(now, &order.root, &order.terms, &report);
    }

    fn report_untracked(&mut self, now: Timestamp, shard: ShardId, event: &Event) {
        let (EventKind::Order(told), Some(heard)) = (&event.body, event.report()) else { return };
        let exec_id = event.exec_id(self.settings.instance, shard);
        let mut order = order_of(told, told.id, event.at);
        let report = Report::of_event(&heard, event.at, exec_id, &mut order);
        self.book.remove(&Key::of_root(told.id));
        self.report(now, &order.root, &order.terms, &report);
    }

    /// An order that the desk did not take.
    fn report_rejected(&mut self, now: Timestamp, id: IntId, terms: &Terms, reason: Reason) {
        let exec_id = self.exec_id(now);
        let order = Order { status: Status::Rejected, reason, ..Order::new(id, *terms, now) };
        let report = Report { what: ExecType::Rejected, reason, ..Report::of_order(&order, exec_id) };
        self.report(now, &order.root, &order.terms, &report);
    }

    /// An order that is refused before it was one.
    fn refuse_order(
        &mut self,
        now: Timestamp,
        message: &Message,
        order: &OrderFields,
        why: OrderRejectReason,
    ) {
        let exec_id = self.exec_id(now);
        self.tell(now, b'8', |draft, _, _| {
            route(draft, message);
            report::refusal(draft, exec_id, now, order, why);
        });
    }

    fn refuse_change(&mut self, now: Timestamp, message: &Message, reject: &CancelReject) {
        self.tell(now, b'9', |draft, settings, _| {
            route(draft, message);
            report::cancel_reject(draft, settings.profile, now, reject);
        });
    }

    fn refuse_declined(
        &mut self,
        now: Timestamp,
        ticket: &Ticket,
        order: IntId,
        request: Asked,
        declined: &Declined,
        why: OrderRejectReason,
    ) {
        let reject = CancelReject {
            root: declined.order.map_or(IntId::NONE, |known| known.root),
            cl_ord_id: ticket.id,
            orig_cl_ord_id: order,
            status: declined.order.map_or(Status::Rejected, |known| known.status),
            request,
            why,
        };
        self.tell(now, b'9', |draft, settings, _| {
            report::cancel_reject(draft, settings.profile, now, &reject)
        });
    }
}

/// Whether an event has a number of its own: what is answered in a shard's place has none.
fn has_number(event: &Event) -> bool {
    match &event.body {
        EventKind::Order(_) | EventKind::Refused(_) => !event.is_substitute(),
        EventKind::Status(told) => told.what != ExecType::Snapshot,
        _ => false,
    }
}
