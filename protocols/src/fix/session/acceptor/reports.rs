//! Results of the client's requests: events of the shards and refusals of the desk become reports
//! for the client.

use pitlane_engine::desk::{Declined, Desk, Ticket};
use pitlane_engine::event::{
    Event, EventKind, ExecType, OrderReport, OrderTerms, RequestKind, RequestRefusal,
};
use pitlane_engine::id::{IntId, OrderHandle, ShardId, Uuid};
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{SpecialTerms, Status, Terms};
use pitlane_engine::time::Timestamp;

use super::{Acceptor, id_seed};
use crate::fix::entry::ClientRequest;
use crate::fix::fields::FixMessage;
use crate::fix::msg_type;
use crate::fix::order::OrderFields;
use crate::fix::orders::{ClientOrder, OrderKey, order_of};
use crate::fix::reject::OrderRejectReason;
use crate::fix::report::{self, CancelReject, ExecutionReport};
use crate::fix::session::layer::{SessionLayer, route};
use crate::fix::store::ReportedEvent;

/// Kind of UUID of the ExecIDs made here, beside those of events (0) and transactions (1).
const EXEC_ID_KIND: u8 = 2;

impl Acceptor {
    /// Handles a request that the desk refused. While its lane is full ([`Reason::LaneFull`]) the
    /// caller keeps the request instead.
    pub(in crate::fix::session) fn handle_declined(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        request: &ClientRequest,
        declined: &Declined,
    ) {
        layer.sequence.in_flight.complete(&request.ticket().id);
        match *request {
            ClientRequest::Submit { ticket, terms, special } => {
                self.orders.remove(&OrderKey { root: ticket.id, place: ticket.token });
                let order = ClientOrder::new(ticket.id, terms, now);
                self.report_rejected(layer, now, order, special, declined.reason);
            }
            ClientRequest::Modify { ticket, key, order, .. } => {
                self.clear_request(&key, &ticket.id);
                self.refuse_declined(layer, now, &ticket, order, RequestKind::Replace, declined);
            }
            ClientRequest::Cancel { ticket, key, order } => {
                self.clear_request(&key, &ticket.id);
                // The cancel is ours and not the client's, so the client gets no answer.
                if !ticket.id.is_none() {
                    self.refuse_declined(layer, now, &ticket, order, RequestKind::Cancel, declined);
                }
            }
            ClientRequest::CancelOrders { .. } => self.decline_mass_cancel(layer, now, declined.reason),
        }
    }

    /// Handles an event of a shard. The desk must have handled it before.
    pub(in crate::fix::session) fn handle_event(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        shard: ShardId,
        event: &Event,
        desk: &Desk,
    ) {
        self.handle_numbered_event(layer, now, shard, event, desk, false);
    }

    /// Handles an event from before a restart that was never reported: the journal has it, and the
    /// store has no report of it. The desk must have the current state.
    pub(in crate::fix::session) fn handle_missed_event(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        shard: ShardId,
        event: &Event,
        desk: &Desk,
    ) {
        if event.seq > layer.sequence.last_reported_event(shard) {
            self.handle_numbered_event(layer, now, shard, event, desk, true);
        }
    }

    /// Reports an order's status unasked, because the events before it are lost. The desk must have
    /// handled the report before.
    pub(in crate::fix::session) fn report_order_status(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        reported: &OrderReport,
        desk: &Desk,
    ) {
        if reported.source != layer.settings.source {
            return;
        }
        let known = desk.order_of(reported).map(OrderKey::from).or_else(|| self.missed_key(reported));
        if let Some(order) = known.and_then(|key| self.orders.get(&key).copied()) {
            self.report_status(layer, now, &order);
        }
    }

    /// Handles an event, and stores its number together with its report.
    fn handle_numbered_event(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        shard: ShardId,
        event: &Event,
        desk: &Desk,
        missed: bool,
    ) {
        let cause = has_number(event).then_some(ReportedEvent { shard, seq: event.seq });
        layer.sequence.set_cause(cause);
        self.report_event(layer, now, shard, event, desk, missed);
        layer.sequence.set_cause(None);
        if self.mass_cancel.is_some() {
            self.count_mass_cancel(layer, now, event);
        }
    }

    fn report_event(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        shard: ShardId,
        event: &Event,
        desk: &Desk,
        missed: bool,
    ) {
        if let EventKind::Refused(refusal) = &event.body {
            if missed && refusal.source == layer.settings.source {
                layer.sequence.in_flight.add_answered(refusal.request_id);
            }
            return self.handle_refusal(layer, now, refusal, desk);
        }
        if let EventKind::SpecialTerms(special) = &event.body {
            if special.source == layer.settings.source {
                self.special.put(shard, special);
            }
            return;
        }
        let special = self.take_special(shard, event);
        if let EventKind::Order(reported) = &event.body
            && reported.source == layer.settings.source
        {
            // The status of a replaced order follows in the next event.
            if reported.what == ExecType::Replaced
                && let Some(key) = key_of(layer, &reported.id, &reported.orig_id, reported.order, desk)
            {
                self.orders.set_terms(&key, &reported.terms, special);
            }
            if reported.what == ExecType::Snapshot {
                self.restore_order(layer, reported, special, event.at, desk);
            }
        }
        let of_order;
        let reported = if let EventKind::Status(reported) = &event.body {
            reported
        } else if let Some(report) = event.report() {
            of_order = report;
            &of_order
        } else {
            return;
        };
        if reported.source != layer.settings.source {
            return;
        }
        if matches!(
            reported.what,
            ExecType::Entered | ExecType::Rejected | ExecType::CancelPending | ExecType::ReplacePending
        ) {
            layer.sequence.in_flight.complete(&reported.id);
            if missed {
                layer.sequence.in_flight.add_answered(reported.id);
            }
        }
        let known = desk.root_of(reported).map(|(root, place)| OrderKey { root: *root, place });
        let Some(key) = known.or_else(|| if missed { self.missed_key(reported) } else { None }) else {
            // The order is rejected and not recorded, so no table has it.
            return self.report_untracked(layer, now, shard, event, special);
        };
        let mut place = self.orders.find(&key);
        if place.is_none()
            && let EventKind::Order(terms) = &event.body
        {
            self.orders.restore(order_of(terms, key.root, event.at));
            place = self.orders.find(&key);
        }
        if let (EventKind::Order(reported), Some(_)) = (&event.body, special) {
            self.orders.set_terms(&key, &reported.terms, special);
        }
        let exec_id = event.exec_id(layer.settings.instance, shard);
        let Some(order) = place.and_then(|place| self.orders.at_mut(place)) else { return };
        let was_finished = order.status.is_finished();
        let mut report = ExecutionReport::of_event(reported, event.at, exec_id, order);
        if missed {
            // After a restart it is unknown which ids the client gave. Most likely they were the
            // client's own at that time.
            let asked = matches!(
                reported.what,
                ExecType::CancelPending | ExecType::Canceled | ExecType::ReplacePending | ExecType::Replaced
            );
            report.cl_ord_id = reported.id;
            report.orig_cl_ord_id = if asked { reported.orig_id } else { IntId::NONE };
        }
        let (terms, is_finished) = (order.terms, order.status.is_finished());
        if reported.what != ExecType::Snapshot {
            self.report(layer, now, (&key.root, &terms), &report);
        }
        if is_finished && !was_finished {
            self.orders.finish(&key);
        }
    }

    /// Handles a request refused by a shard or by the desk on its behalf.
    pub(in crate::fix::session) fn handle_refusal(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        refusal: &RequestRefusal,
        desk: &Desk,
    ) {
        if refusal.source != layer.settings.source {
            return;
        }
        layer.sequence.in_flight.complete(&refusal.request_id);
        let session = layer.settings.source.session;
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
        let profile = layer.settings.profile;
        _ = layer.send_app(now, msg_type::ORDER_CANCEL_REJECT, |draft| {
            report::cancel_reject(draft, profile, now, &reject)
        });
    }

    /// Restores an order from before a restart.
    fn restore_order(
        &mut self,
        layer: &SessionLayer,
        reported: &OrderTerms,
        special: Option<SpecialTerms>,
        at: Timestamp,
        desk: &Desk,
    ) {
        let Some(key) = key_of(layer, &reported.id, &reported.orig_id, reported.order, desk) else { return };
        match self.orders.get_mut(&key) {
            Some(order) => {
                // An order that was modified more than once is first shown under its earlier ids.
                if order.is_restored && order.cl_ord_id == reported.orig_id {
                    order.cl_ord_id = reported.id;
                }
            }
            None => {
                self.orders.restore(ClientOrder { is_restored: true, ..order_of(reported, key.root, at) });
                if reported.status.is_finished() {
                    self.orders.finish(&key);
                }
            }
        }
        self.orders.set_terms(&key, &reported.terms, special);
    }

    /// Returns the key of an order that the shard has forgotten since an event from before a
    /// restart, by its id at that time.
    fn missed_key(&self, reported: &OrderReport) -> Option<OrderKey> {
        let known = [reported.id, reported.orig_id]
            .map(OrderKey::of_root)
            .into_iter()
            .find(|key| self.orders.get(key).is_some());
        known.or_else(|| (reported.what == ExecType::Entered).then_some(OrderKey::of_root(reported.id)))
    }

    fn clear_request(&mut self, key: &OrderKey, id: &IntId) {
        if let Some(order) = self.orders.get_mut(key) {
            order.forget(id);
        }
    }

    /// Returns an ExecID for a report without an event. It is unique as long as time does not run
    /// backwards over a restart.
    pub(super) fn exec_id(&mut self, layer: &SessionLayer, now: Timestamp) -> Uuid {
        self.last_exec = now.0.max(self.last_exec + 1);
        Uuid::derived(id_seed(&layer.settings), EXEC_ID_KIND, self.last_exec)
    }

    fn report(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        (root, terms): (&IntId, &Terms),
        report: &ExecutionReport,
    ) {
        self.report_with(layer, now, (root, terms), self.orders.special(root, terms), report);
    }

    fn report_with(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        (root, terms): (&IntId, &Terms),
        special: Option<SpecialTerms>,
        report: &ExecutionReport,
    ) {
        let profile = layer.settings.profile;
        let Acceptor { terms_text, reference, .. } = self;
        _ = layer.send_app(now, msg_type::EXECUTION_REPORT, |draft| {
            terms_text.execution(draft, profile, reference, (root, terms), report);
            if let Some(special) = &special {
                report::special_terms(draft, special);
            }
        });
    }

    /// Takes the special terms that came before the event of their order.
    #[inline]
    fn take_special(&mut self, shard: ShardId, event: &Event) -> Option<SpecialTerms> {
        let EventKind::Order(reported) = &event.body else { return None };
        let special = self.special.take(shard, reported.order, &reported.terms)?;
        (special.source == reported.source).then_some(special.special)
    }

    pub(super) fn report_status(&mut self, layer: &mut SessionLayer, now: Timestamp, order: &ClientOrder) {
        let report = ExecutionReport::of_order(order, self.exec_id(layer, now));
        self.report(layer, now, (&order.root, &order.terms), &report);
    }

    fn report_untracked(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        shard: ShardId,
        event: &Event,
        special: Option<SpecialTerms>,
    ) {
        let (EventKind::Order(reported), Some(order_report)) = (&event.body, event.report()) else { return };
        let exec_id = event.exec_id(layer.settings.instance, shard);
        let mut order = order_of(reported, reported.id, event.at);
        let report = ExecutionReport::of_event(&order_report, event.at, exec_id, &mut order);
        self.orders.remove(&OrderKey::of_root(reported.id));
        self.report_with(layer, now, (&order.root, &order.terms), special, &report);
    }

    /// Reports an order that the desk refused.
    fn report_rejected(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        order: ClientOrder,
        special: Option<SpecialTerms>,
        reason: Reason,
    ) {
        let exec_id = self.exec_id(layer, now);
        let order = ClientOrder { status: Status::Rejected, reason, ..order };
        let report = ExecutionReport {
            what: ExecType::Rejected,
            reason,
            ..ExecutionReport::of_order(&order, exec_id)
        };
        self.report_with(layer, now, (&order.root, &order.terms), special, &report);
    }

    /// Refuses an order before it exists.
    pub(super) fn refuse_order(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        message: &FixMessage,
        order: &OrderFields,
        why: OrderRejectReason,
    ) {
        let (exec_id, profile) = (self.exec_id(layer, now), layer.settings.profile);
        _ = layer.send_app(now, msg_type::EXECUTION_REPORT, |draft| {
            route(draft, message);
            report::refusal(draft, profile, exec_id, now, order, why);
        });
    }

    pub(super) fn refuse_change(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        message: &FixMessage,
        reject: &CancelReject,
    ) {
        let profile = layer.settings.profile;
        _ = layer.send_app(now, msg_type::ORDER_CANCEL_REJECT, |draft| {
            route(draft, message);
            report::cancel_reject(draft, profile, now, reject);
        });
    }

    fn refuse_declined(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        ticket: &Ticket,
        order: IntId,
        request: RequestKind,
        declined: &Declined,
    ) {
        let reject = CancelReject {
            root: declined.order.map_or(IntId::NONE, |known| known.root),
            cl_ord_id: ticket.id,
            orig_cl_ord_id: order,
            status: declined.order.map_or(Status::Rejected, |known| known.status),
            request,
            why: OrderRejectReason::Platform(declined.reason),
        };
        let profile = layer.settings.profile;
        _ = layer.send_app(now, msg_type::ORDER_CANCEL_REJECT, |draft| {
            report::cancel_reject(draft, profile, now, &reject)
        });
    }
}

/// Returns whether an event has a number of its own. An answer on behalf of a shard has none.
pub(super) fn has_number(event: &Event) -> bool {
    if let EventKind::Status(reported) = &event.body {
        return reported.what != ExecType::Snapshot;
    }
    matches!(event.body, EventKind::Order(_) | EventKind::Refused(_)) && !event.is_substitute()
}

/// Returns the key of an order by its handle, which the desk has under one of two ids.
fn key_of(
    layer: &SessionLayer,
    id: &IntId,
    orig_id: &IntId,
    handle: OrderHandle,
    desk: &Desk,
) -> Option<OrderKey> {
    let session = layer.settings.source.session;
    let find = |id| desk.order(session, id).filter(|known| known.order == handle);
    find(id).or_else(|| find(orig_id)).map(OrderKey::from)
}
