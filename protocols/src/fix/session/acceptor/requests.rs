//! Requests of the client: New Order Single, cancels and replacements become requests for the desk.
//! [`super::reports`] reports their results.

use pitlane_engine::desk::{Desk, Ticket};
use pitlane_engine::event::RequestKind;
use pitlane_engine::id::IntId;
use pitlane_engine::index::index_u32;
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::Status;
use pitlane_engine::time::Timestamp;

use super::Acceptor;
use crate::fix::entry::{self, ClientRequest};
use crate::fix::fields::FixMessage;
use crate::fix::msg_type;
use crate::fix::order::OrderFields;
use crate::fix::orders::{ClientOrder, OrderKey};
use crate::fix::reject::OrderRejectReason;
use crate::fix::report::CancelReject;
use crate::fix::session::layer::SessionLayer;

/// Distinguishes tokens of requests from places of orders, which are fewer.
const REQUEST: u32 = 1 << 31;

/// BusinessRejectReason (380).
const OTHER: u8 = 0;
const NOT_AVAILABLE: u8 = 4;
const NOT_AUTHORISED: u8 = 6;

impl Acceptor {
    pub(super) fn handle_order_message(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
        desk: &Desk,
    ) {
        if !layer.settings.may_trade {
            return layer.business_reject(
                now,
                message,
                number,
                NOT_AUTHORISED,
                None,
                "The session may not trade",
            );
        }
        if !self.is_ready {
            return layer.business_reject(
                now,
                message,
                number,
                NOT_AVAILABLE,
                None,
                "Orders are not accepted now",
            );
        }
        let read = OrderFields::read(message);
        let order = match &read {
            Ok(order) => order,
            Err(fault) => return layer.reject(now, message, number, *fault),
        };
        let kind = message.msg_type[0];
        // The client resends it because we asked for it after a restart. Its answer is stored.
        if message.header.poss_dup
            && order.cl_ord_id.is_some_and(|id| layer.sequence.in_flight.was_answered(&id))
        {
            return;
        }
        if let Some(tag) = entry::missing(kind, order) {
            return layer.refuse_missing(now, message, number, tag);
        }
        let admitted = match kind {
            msg_type::ORDER_CANCEL_REQUEST | msg_type::ORDER_MASS_CANCEL_REQUEST => {
                self.rate_limit.admits_cancel(now)
            }
            _ => self.rate_limit.admits_order(now),
        };
        if !admitted {
            let why = Some(OrderRejectReason::Platform(Reason::OrderRate));
            return layer.business_reject(now, message, number, OTHER, why, "");
        }
        match kind {
            msg_type::NEW_ORDER_SINGLE => self.handle_new_order(layer, now, message, order, desk),
            msg_type::ORDER_CANCEL_REQUEST => {
                self.handle_change(layer, now, message, order, RequestKind::Cancel, desk)
            }
            msg_type::ORDER_MASS_CANCEL_REQUEST => self.handle_mass_cancel(layer, now, message, order, desk),
            _ => self.handle_change(layer, now, message, order, RequestKind::Replace, desk),
        }
    }

    fn handle_new_order(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        message: &FixMessage,
        order: &OrderFields,
        desk: &Desk,
    ) {
        let id = order.cl_ord_id.unwrap_or_default();
        let known = desk.order(layer.settings.source.session, &id);
        match known.map(|known| self.orders.get(&known.into()).copied()) {
            // The client resends it in case it was lost, which it was not.
            Some(Some(known)) if message.header.poss_resend => return self.report_status(layer, now, &known),
            Some(_) => return self.refuse_order(layer, now, message, order, Reason::DuplicateId.into()),
            None => {}
        }
        let parsed = entry::special(order)
            .and_then(|special| Ok((entry::terms(&layer.settings, &self.reference, order)?, special)));
        let (terms, special) = match parsed {
            Ok(parsed) => parsed,
            Err(why) => return self.refuse_order(layer, now, message, order, why),
        };
        let Some(place) = self.orders.add(ClientOrder::new(id, terms, now)) else {
            let why = OrderRejectReason::SessionOrderLimit;
            return self.refuse_order(layer, now, message, order, why);
        };
        let ticket = Ticket { source: layer.settings.source, token: place, id, ..Ticket::default() };
        self.pending_request = Some(ClientRequest::Submit { ticket, terms, special });
    }

    /// Handles a cancel or a replacement.
    fn handle_change(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        message: &FixMessage,
        order: &OrderFields,
        kind: RequestKind,
        desk: &Desk,
    ) {
        let id = order.cl_ord_id.unwrap_or_default();
        let orig = order.orig_cl_ord_id.unwrap_or_default();
        let found = desk.order(layer.settings.source.session, &orig).map(OrderKey::from);
        let found = found.and_then(|key| Some((key, *self.orders.get(&key)?)));
        let refused = |root, status, orig_cl_ord_id, why| CancelReject {
            root,
            cl_ord_id: id,
            orig_cl_ord_id,
            status,
            request: kind,
            why,
        };
        let Some((key, known)) = found else {
            let reject = refused(IntId::NONE, Status::Rejected, orig, Reason::UnknownOrder.into());
            return self.refuse_change(layer, now, message, &reject);
        };
        match self.change(layer, order, key, &known, kind) {
            Ok(request) => {
                let Some(kept) = self.orders.get_mut(&key) else { return };
                match kind {
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
                self.refuse_change(layer, now, message, &refused(known.root, known.status, orig, why));
            }
        }
    }

    /// Returns the request for a change of an order, or why it is refused.
    fn change(
        &mut self,
        layer: &SessionLayer,
        order: &OrderFields,
        key: OrderKey,
        known: &ClientOrder,
        kind: RequestKind,
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
        if kind == RequestKind::Replace && !known.replace.is_none() {
            return Err(Reason::RequestPending.into());
        }
        match kind {
            RequestKind::Cancel => {
                entry::matches(&self.reference, order, known)?;
                Ok(ClientRequest::Cancel { ticket: self.ticket(layer, id), key, order: known.cl_ord_id })
            }
            RequestKind::Replace => {
                let special = entry::special(order)?;
                let changes = entry::changes(&layer.settings, &self.reference, order, known)?;
                Ok(ClientRequest::Modify {
                    ticket: self.ticket(layer, id),
                    key,
                    order: known.cl_ord_id,
                    changes,
                    special,
                })
            }
        }
    }

    /// Returns the ticket of a request about an order. The token of an order itself is its place
    /// among the orders, so that its reports find it.
    pub(super) fn ticket(&mut self, layer: &SessionLayer, id: IntId) -> Ticket {
        self.token = self.token.wrapping_add(1);
        Ticket { source: layer.settings.source, token: self.token | REQUEST, id, ..Ticket::default() }
    }

    /// Queues the next cancel of the orders of a disconnected client. The desk makes the id of each
    /// cancel.
    pub(super) fn queue_next_cancel(&mut self, layer: &SessionLayer, desk: &Desk) {
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
                && desk.order(layer.settings.source.session, &order.cl_ord_id).is_some()
            {
                break *order;
            }
        };
        self.cancel_index = Some(at);
        let key = OrderKey { root, place: index_u32(at - 1) };
        if let Some(order) = self.orders.get_mut(&key) {
            order.platform_cancel = true;
        }
        self.pending_request =
            Some(ClientRequest::Cancel { ticket: self.ticket(layer, IntId::NONE), key, order });
    }
}
