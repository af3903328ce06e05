//! Orders of an acceptor's client: requests go to the desk, and events come back as reports.

use pitlane_engine::desk::{Declined, Desk, Ticket};
use pitlane_engine::event::{Event, EventKind, ExecType, OrderReport, Refusal, RequestKind};
use pitlane_engine::id::{IntId, OrderHandle, ShardId, Uuid};
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{Status, Terms};
use pitlane_engine::time::Timestamp;

use super::outbound::route;
use super::{FixSession, FixSessionState, OUTPUT_BYTES_HIGH};
use crate::decoded::Decoded;
use crate::fix::entry::{self, ClientRequest};
use crate::fix::fields::{FixMessage, read};
use crate::fix::frame;
use crate::fix::msg_type;
use crate::fix::order::OrderFields;
use crate::fix::orders::{ClientOrder, OrderKey, order_of};
use crate::fix::reject::OrderRejectReason;
use crate::fix::report::{self, CancelReject, ExecutionReport};
use crate::fix::store::ReportedEvent;
use crate::fix::tag;

/// Kind of UUID of the ExecIDs made here, beside those of events (0) and transactions (1).
const EXEC_ID_KIND: u8 = 2;

/// Distinguishes tokens of requests from places of orders, which are fewer.
const REQUEST: u32 = 1 << 31;

/// BusinessRejectReason (380).
const OTHER: u8 = 0;
const NOT_AVAILABLE: u8 = 4;
const FIELD_MISSING: u8 = 5;
const NOT_AUTHORISED: u8 = 6;

/// Requests of the client.
impl FixSession {
    pub(super) fn handle_order_message(
        &mut self,
        now: Timestamp,
        message: &FixMessage,
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
        // The client resends it because we asked for it after a restart. Its answer is stored.
        if message.header.poss_dup && order.cl_ord_id.is_some_and(|id| self.in_flight.was_answered(&id)) {
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
            msg_type::ORDER_CANCEL_REQUEST => self.rate_limit.admits_cancel(now),
            _ => self.rate_limit.admits_order(now),
        };
        if !admitted {
            let why = Some(OrderRejectReason::Platform(Reason::OrderRate));
            return self.business_reject(now, message, number, OTHER, why, "");
        }
        match kind {
            msg_type::NEW_ORDER_SINGLE => self.handle_new_order(now, message, &order, desk),
            msg_type::ORDER_CANCEL_REQUEST => {
                self.handle_change(now, message, &order, RequestKind::Cancel, desk)
            }
            _ => self.handle_change(now, message, &order, RequestKind::Replace, desk),
        }
    }

    fn handle_new_order(&mut self, now: Timestamp, message: &FixMessage, order: &OrderFields, desk: &Desk) {
        let id = order.cl_ord_id.unwrap_or_default();
        let known = desk.order(self.settings.source.session, &id);
        match known.map(|known| self.orders.get(&known.into()).copied()) {
            // The client resends it in case it was lost, which it was not.
            Some(Some(known)) if message.header.poss_resend => return self.report_status(now, &known),
            Some(_) => return self.refuse_order(now, message, order, Reason::DuplicateId.into()),
            None => {}
        }
        let terms = match entry::terms(&self.settings, &self.reference, order) {
            Ok(terms) => terms,
            Err(why) => return self.refuse_order(now, message, order, why),
        };
        let Some(place) = self.orders.add(ClientOrder::new(id, terms, now)) else {
            return self.refuse_order(now, message, order, Reason::ShardFull.into());
        };
        let ticket = Ticket { source: self.settings.source, token: place, id, ..Ticket::default() };
        self.pending_request = Some(ClientRequest::Submit { ticket, terms });
    }

    /// Handles a cancel or a replacement.
    fn handle_change(
        &mut self,
        now: Timestamp,
        message: &FixMessage,
        order: &OrderFields,
        asked: RequestKind,
        desk: &Desk,
    ) {
        let id = order.cl_ord_id.unwrap_or_default();
        let orig = order.orig_cl_ord_id.unwrap_or_default();
        let found = desk.order(self.settings.source.session, &orig).map(OrderKey::from);
        let found = found.and_then(|key| Some((key, *self.orders.get(&key)?)));
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
                let Some(kept) = self.orders.get_mut(&key) else { return };
                match asked {
                    RequestKind::Cancel if kept.cancel.is_none() => kept.cancel = id,
                    RequestKind::Replace if kept.replace.is_none() => kept.replace = id,
                    RequestKind::Cancel | RequestKind::Replace => {}
                }
                self.pending_request = Some(request);
            }
            Err(why) => {
                // While a request is pending, the order's id is the one before that request.
                let pending = why == OrderRejectReason::Platform(Reason::RequestPending);
                let orig = if pending { known.cl_ord_id } else { orig };
                self.refuse_change(now, message, &refused(known.root, known.status, orig, why));
            }
        }
    }

    /// Returns the request for a change of an order, or why it is refused.
    fn change(
        &mut self,
        order: &OrderFields,
        key: OrderKey,
        known: &ClientOrder,
        asked: RequestKind,
    ) -> Result<ClientRequest, OrderRejectReason> {
        let id = order.cl_ord_id.unwrap_or_default();
        let orig = order.orig_cl_ord_id.unwrap_or_default();
        // A cancel may name the pending replacement: it applies to the result of that replacement.
        let (named, renamed) = (orig == known.cl_ord_id, orig == known.replace);
        if !named && !renamed {
            return Err(Reason::UnknownOrder.into());
        }
        if known.status.is_finished() {
            return Err(Reason::OrderFinished.into());
        }
        // Reports of two pending replacements could not be told apart.
        if asked == RequestKind::Replace && !known.replace.is_none() {
            return Err(Reason::RequestPending.into());
        }
        match asked {
            RequestKind::Cancel => {
                entry::matches(&self.reference, order, known)?;
                Ok(ClientRequest::Cancel { ticket: self.ticket(id), key, order: known.cl_ord_id })
            }
            RequestKind::Replace => {
                let changes = entry::changes(&self.settings, &self.reference, order, known)?;
                Ok(ClientRequest::Modify { ticket: self.ticket(id), key, order: known.cl_ord_id, changes })
            }
        }
    }

    /// Returns the ticket of a request about an order. The token of an order itself is its place
    /// among the orders, so that its reports find it.
    fn ticket(&mut self, id: IntId) -> Ticket {
        self.token = self.token.wrapping_add(1);
        Ticket { source: self.settings.source, token: self.token | REQUEST, id, ..Ticket::default() }
    }

    /// Queues the next cancel of the orders of a disconnected client. The desk makes the id of each
    /// cancel.
    pub(super) fn queue_next_cancel(&mut self, desk: &Desk) {
        let (Some(mut at), None) = (self.cancel_index, &self.pending_request) else { return };
        let ClientOrder { root, cl_ord_id: order, .. } = loop {
            if at >= self.orders.places() {
                self.cancel_index = None;
                return;
            }
            at += 1;
            // An order that the desk does not know cannot be cancelled by its id.
            if let Some(order) = self.orders.at(at - 1)
                && !order.status.is_finished()
                && desk.order(self.settings.source.session, &order.cl_ord_id).is_some()
            {
                break *order;
            }
        };
        self.cancel_index = Some(at);
        let key = OrderKey { root, place: at as u32 - 1 };
        if let Some(order) = self.orders.get_mut(&key) {
            order.platform_cancel = true;
        }
        self.pending_request = Some(ClientRequest::Cancel { ticket: self.ticket(IntId::NONE), key, order });
    }
}

/// Results of requests.
impl FixSession {
    /// Handles a request that the desk refused. While its lane is full ([`Reason::LaneFull`]) the
    /// caller keeps the request instead.
    pub fn handle_declined(&mut self, now: Timestamp, request: &ClientRequest, declined: &Declined) {
        let why = OrderRejectReason::Platform(declined.reason);
        self.in_flight.complete(&request.ticket().id);
        match *request {
            ClientRequest::Submit { ticket, terms } => {
                self.orders.remove(&OrderKey { root: ticket.id, place: ticket.token });
                self.report_rejected(now, ticket.id, &terms, declined.reason);
            }
            ClientRequest::Modify { ticket, key, order, .. } => {
                self.clear_request(&key, &ticket.id);
                self.refuse_declined(now, &ticket, order, RequestKind::Replace, declined, why);
            }
            ClientRequest::Cancel { ticket, key, order } => {
                self.clear_request(&key, &ticket.id);
                // The cancel is ours and not the client's, so the client gets no answer.
                if !ticket.id.is_none() {
                    self.refuse_declined(now, &ticket, order, RequestKind::Cancel, declined, why);
                }
            }
        }
    }

    /// Handles an event of a shard. The desk must have handled it before.
    pub fn handle_event(&mut self, now: Timestamp, shard: ShardId, event: &Event, desk: &Desk) {
        self.handle_numbered_event(now, shard, event, desk, false);
    }

    /// Handles an event from before a restart that was never reported: the journal has it, and the
    /// store has no report of it. The desk must have the current state.
    pub fn handle_missed_event(&mut self, now: Timestamp, shard: ShardId, event: &Event, desk: &Desk) {
        if event.seq > self.store.last_reported_event(shard) {
            self.handle_numbered_event(now, shard, event, desk, true);
        }
    }

    /// Reports an order's status unasked, because the events before it are lost. The desk must have
    /// handled the report before.
    pub fn report_order_status(&mut self, now: Timestamp, told: &OrderReport, desk: &Desk) {
        if told.source != self.settings.source {
            return;
        }
        let known = desk.order_of(told).map(OrderKey::from).or_else(|| self.missed_key(told));
        if let Some(order) = known.and_then(|key| self.orders.get(&key).copied()) {
            self.report_status(now, &order);
        }
    }

    /// Handles an event, and stores its number together with its report.
    fn handle_numbered_event(
        &mut self,
        now: Timestamp,
        shard: ShardId,
        event: &Event,
        desk: &Desk,
        missed: bool,
    ) {
        self.cause = has_number(event).then_some(ReportedEvent { shard, seq: event.seq });
        self.report_event(now, shard, event, desk, missed);
        self.cause = None;
    }

    fn report_event(&mut self, now: Timestamp, shard: ShardId, event: &Event, desk: &Desk, missed: bool) {
        if let EventKind::Refused(refusal) = &event.body {
            if missed && refusal.source == self.settings.source {
                self.in_flight.add_answered(refusal.request_id);
            }
            return self.handle_refusal(now, refusal, desk);
        }
        if let EventKind::Order(told) = &event.body
            && told.source == self.settings.source
        {
            match told.what {
                // The status follows in the next event.
                ExecType::Replaced => {
                    if let Some(key) = self.key_of(&told.id, &told.orig_id, told.order, desk)
                        && let Some(order) = self.orders.get_mut(&key)
                    {
                        order.terms = told.terms;
                    }
                }
                ExecType::Snapshot => self.restore_order(told, event.at, desk),
                _ => {}
            }
        }
        let Some(told) = event.report().filter(|told| told.source == self.settings.source) else { return };
        if matches!(
            told.what,
            ExecType::Entered | ExecType::Rejected | ExecType::CancelPending | ExecType::ReplacePending
        ) {
            self.in_flight.complete(&told.id);
            if missed {
                self.in_flight.add_answered(told.id);
            }
        }
        let known = desk.order_of(&told).map(OrderKey::from);
        let Some(key) = known.or_else(|| if missed { self.missed_key(&told) } else { None }) else {
            // The order is rejected and not recorded, so no table has it.
            return self.report_untracked(now, shard, event);
        };
        if let EventKind::Order(terms) = &event.body
            && self.orders.get(&key).is_none()
        {
            self.orders.restore(order_of(terms, key.root, event.at));
        }
        let exec_id = event.exec_id(self.settings.instance, shard);
        let Some(order) = self.orders.get_mut(&key) else { return };
        let was_finished = order.status.is_finished();
        let mut report = ExecutionReport::of_event(&told, event.at, exec_id, order);
        if missed {
            // After a restart it is unknown which ids the client gave. Most likely they were the
            // client's own at that time.
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
            self.orders.finish(&key);
        }
    }

    /// Handles a request refused by a shard or by the desk on its behalf.
    pub fn handle_refusal(&mut self, now: Timestamp, refusal: &Refusal, desk: &Desk) {
        if refusal.source != self.settings.source {
            return;
        }
        self.in_flight.complete(&refusal.request_id);
        let session = self.settings.source.session;
        let key = desk.order(session, &refusal.id).map_or(OrderKey::of_root(refusal.id), OrderKey::from);
        let mut order = self.orders.get_mut(&key);
        if let Some(order) = &mut order {
            let mine = order.forget(&refusal.request_id);
            let platform_cancel =
                refusal.request == RequestKind::Cancel && std::mem::take(&mut order.platform_cancel);
            // The client gets no answer to a cancel that it did not request.
            if !mine && platform_cancel {
                return;
            }
        }
        let order = order.copied();
        let reject = CancelReject::of_refusal(refusal, order.as_ref());
        self.send_app(now, msg_type::ORDER_CANCEL_REJECT, |draft, settings, _| {
            report::cancel_reject(draft, settings.profile, now, &reject)
        });
    }

    /// Sends one status report for each open order after a reset, because the client has forgotten
    /// earlier reports.
    pub(super) fn continue_status_reports(&mut self, now: Timestamp) {
        while let (Some(at), FixSessionState::LoggedOn) = (self.status_report_index, self.state) {
            if self.output.len() >= OUTPUT_BYTES_HIGH || self.resend.is_active() {
                return;
            }
            if at >= self.orders.places() {
                self.status_report_index = None;
                return;
            }
            self.status_report_index = Some(at + 1);
            if let Some(order) = self.orders.at(at).copied().filter(|order| !order.status.is_finished()) {
                self.report_status(now, &order);
            }
        }
    }

    /// Restores an order from before a restart.
    fn restore_order(&mut self, told: &pitlane_engine::event::OrderTerms, at: Timestamp, desk: &Desk) {
        let Some(key) = self.key_of(&told.id, &told.orig_id, told.order, desk) else { return };
        match self.orders.get_mut(&key) {
            Some(order) => {
                order.terms = told.terms;
                // An order that was modified more than once is first shown under its earlier ids.
                if order.is_restored && order.cl_ord_id == told.orig_id {
                    order.cl_ord_id = told.id;
                }
            }
            None => {
                self.orders.restore(ClientOrder { is_restored: true, ..order_of(told, key.root, at) });
                if told.status.is_finished() {
                    self.orders.finish(&key);
                }
            }
        }
    }

    /// Returns the key of an order that the shard has forgotten since an event from before a
    /// restart, by its id at that time.
    fn missed_key(&self, told: &OrderReport) -> Option<OrderKey> {
        let known = [told.id, told.orig_id]
            .map(OrderKey::of_root)
            .into_iter()
            .find(|key| self.orders.get(key).is_some());
        known.or_else(|| (told.what == ExecType::Entered).then_some(OrderKey::of_root(told.id)))
    }

    /// Loads the ids of all stored answers: after a restart the client resends some of the requests
    /// that they answer.
    pub(super) fn load_answered_ids(&mut self) {
        let (mut message, mut next) = (Vec::new(), 1);
        let mut fields = self.fields.take().expect("no message is read yet");
        while let Some(number) = self.store.next_message(next, u64::MAX, &mut message) {
            next = number + 1;
            let Ok(Decoded::Message { message: frame, .. }) = frame::decode(&message, usize::MAX) else {
                continue;
            };
            let told = read(frame, &mut fields);
            let id = if told.type_code() == msg_type::BUSINESS_MESSAGE_REJECT {
                told.get(tag::BUSINESS_REJECT_REF_ID)
            } else {
                told.get(tag::CL_ORD_ID)
            };
            if let Some(id) = id.and_then(|id| IntId::parse(id).ok()) {
                self.in_flight.add_answered(id);
            }
        }
        self.fields = Some(fields);
    }

    fn key_of(&self, id: &IntId, orig_id: &IntId, handle: OrderHandle, desk: &Desk) -> Option<OrderKey> {
        let session = self.settings.source.session;
        let find = |id| desk.order(session, id).filter(|known| known.order == handle);
        find(id).or_else(|| find(orig_id)).map(OrderKey::from)
    }

    fn clear_request(&mut self, key: &OrderKey, id: &IntId) {
        if let Some(order) = self.orders.get_mut(key) {
            order.forget(id);
        }
    }

    /// Returns an ExecID for a report without an event. It is unique as long as time does not run
    /// backwards over a restart.
    fn exec_id(&mut self, now: Timestamp) -> Uuid {
        self.last_exec = now.0.max(self.last_exec + 1);
        let instance = self.settings.instance ^ (self.settings.source.session as u64) << 32;
        Uuid::derived(instance, EXEC_ID_KIND, self.last_exec)
    }

    fn report(&mut self, now: Timestamp, root: &IntId, terms: &Terms, report: &ExecutionReport) {
        self.send_app(now, msg_type::EXECUTION_REPORT, |draft, settings, reference| {
            report::execution(draft, settings.profile, reference, root, terms, report);
        });
    }

    fn report_status(&mut self, now: Timestamp, order: &ClientOrder) {
        let report = ExecutionReport::of_order(order, self.exec_id(now));
        self.report(now, &order.root, &order.terms, &report);
    }

    fn report_untracked(&mut self, now: Timestamp, shard: ShardId, event: &Event) {
        let (EventKind::Order(told), Some(heard)) = (&event.body, event.report()) else { return };
        let exec_id = event.exec_id(self.settings.instance, shard);
        let mut order = order_of(told, told.id, event.at);
        let report = ExecutionReport::of_event(&heard, event.at, exec_id, &mut order);
        self.orders.remove(&OrderKey::of_root(told.id));
        self.report(now, &order.root, &order.terms, &report);
    }

    /// Reports an order that the desk refused.
    fn report_rejected(&mut self, now: Timestamp, id: IntId, terms: &Terms, reason: Reason) {
        let exec_id = self.exec_id(now);
        let order = ClientOrder { status: Status::Rejected, reason, ..ClientOrder::new(id, *terms, now) };
        let report = ExecutionReport {
            what: ExecType::Rejected,
            reason,
            ..ExecutionReport::of_order(&order, exec_id)
        };
        self.report(now, &order.root, &order.terms, &report);
    }

    /// Refuses an order before it exists.
    fn refuse_order(
        &mut self,
        now: Timestamp,
        message: &FixMessage,
        order: &OrderFields,
        why: OrderRejectReason,
    ) {
        let exec_id = self.exec_id(now);
        self.send_app(now, msg_type::EXECUTION_REPORT, |draft, _, _| {
            route(draft, message);
            report::refusal(draft, exec_id, now, order, why);
        });
    }

    fn refuse_change(&mut self, now: Timestamp, message: &FixMessage, reject: &CancelReject) {
        self.send_app(now, msg_type::ORDER_CANCEL_REJECT, |draft, settings, _| {
            route(draft, message);
            report::cancel_reject(draft, settings.profile, now, reject);
        });
    }

    fn refuse_declined(
        &mut self,
        now: Timestamp,
        ticket: &Ticket,
        order: IntId,
        request: RequestKind,
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
        self.send_app(now, msg_type::ORDER_CANCEL_REJECT, |draft, settings, _| {
            report::cancel_reject(draft, settings.profile, now, &reject)
        });
    }
}

/// Returns whether an event has a number of its own. An answer on behalf of a shard has none.
fn has_number(event: &Event) -> bool {
    match &event.body {
        EventKind::Order(_) | EventKind::Refused(_) => !event.is_substitute(),
        EventKind::Status(told) => told.what != ExecType::Snapshot,
        _ => false,
    }
}
