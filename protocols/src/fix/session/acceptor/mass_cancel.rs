//! Order Mass Cancel Request (q): one command to each shard for the session's own orders, and an
//! Order Mass Cancel Report (r) when all of them have answered. Each order is reported as usual.

use pitlane_engine::command::CancelFilter;
use pitlane_engine::desk::Desk;
use pitlane_engine::event::{Event, EventKind, ExecType};
use pitlane_engine::id::IntId;
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::Side;
use pitlane_engine::time::Timestamp;

use super::Acceptor;
use crate::codes::Code;
use crate::fix::entry::ClientRequest;
use crate::fix::fields::FixMessage;
use crate::fix::msg_type;
use crate::fix::order::OrderFields;
use crate::fix::reject::OrderRejectReason;
use crate::fix::report::{self, MassCancelReport};
use crate::fix::resolve;
use crate::fix::session::layer::{SessionLayer, route};
use crate::fix::tag;

/// MassCancelRequestType (530).
const FOR_SECURITY: u8 = b'1';
const FOR_ALL: u8 = b'7';

/// A request whose shards have not all answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct MassCancel {
    report: MassCancelReport,
    token: u32,
    /// Id of the command, by which the cancels of this request are counted; none until it is sent.
    command: IntId,
    /// Shards that have not answered.
    left: u8,
}

impl Acceptor {
    /// Handles Order Mass Cancel Request (q), which the session's other checks have passed.
    pub(super) fn handle_mass_cancel(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        message: &FixMessage,
        order: &OrderFields,
        desk: &Desk,
    ) {
        let id = order.cl_ord_id.unwrap_or_default();
        let request_type = match message.get(tag::MASS_CANCEL_REQUEST_TYPE) {
            Some([code]) => *code,
            _ => 0,
        };
        let mut report = MassCancelReport {
            cl_ord_id: id,
            request_type,
            side: order.side,
            security: None,
            affected: 0,
            refusal: None,
        };
        match self.cancel_filter(layer, request_type, order) {
            Ok(filter) if self.mass_cancel.is_none() => {
                report.security = filter.security;
                let ticket = self.ticket(layer, id);
                let left = desk.shards_asked(filter);
                self.mass_cancel =
                    Some(MassCancel { report, token: ticket.token, command: IntId::NONE, left });
                self.pending_request = Some(ClientRequest::CancelOrders { ticket, filter });
            }
            // Answers of two requests at a time could not be told apart by their orders.
            Ok(_) => self.refuse_mass_cancel(layer, now, message, report, Reason::RequestPending.into()),
            Err(why) => self.refuse_mass_cancel(layer, now, message, report, why),
        }
    }

    /// Returns which orders of the session a request means.
    fn cancel_filter(
        &self,
        layer: &SessionLayer,
        request_type: u8,
        order: &OrderFields,
    ) -> Result<CancelFilter, OrderRejectReason> {
        let mut filter = CancelFilter { source: Some(layer.settings.source), ..CancelFilter::default() };
        match request_type {
            FOR_ALL => {}
            FOR_SECURITY => filter.security = Some(resolve::security(&self.reference, order)?.id),
            _ => return Err(OrderRejectReason::RequestTypeNotTaken),
        }
        if let Some(side) = order.side {
            filter.side = Some(Side::from_code(side).ok_or(OrderRejectReason::SideNotTaken)?);
        }
        if order.strategy_id.is_some() || order.strategy_name.is_some() {
            filter.strategy = Some(resolve::strategy(&self.reference, order, layer.settings.strategy)?);
        }
        Ok(filter)
    }

    /// Takes the id under which the desk has sent the command.
    pub(in crate::fix::session) fn handle_mass_cancel_sent(&mut self, command: IntId) {
        if let Some(mass_cancel) = &mut self.mass_cancel {
            mass_cancel.command = command;
        }
    }

    /// Counts the cancels of a request, and reports it when all shards have answered.
    pub(super) fn count_mass_cancel(&mut self, layer: &mut SessionLayer, now: Timestamp, event: &Event) {
        let Some(mass_cancel) = &mut self.mass_cancel else { return };
        if let EventKind::Done { source, token, reason } = event.body {
            if source != layer.settings.source || token != mass_cancel.token {
                return;
            }
            if reason != Reason::None {
                mass_cancel.report.refusal = Some(reason.into());
            }
            mass_cancel.left = mass_cancel.left.saturating_sub(1);
            if mass_cancel.left == 0 {
                let report = mass_cancel.report;
                self.finish_mass_cancel(layer, now, &report);
            }
        } else if let Some(reported) = event.report()
            && reported.what == ExecType::CancelPending
            && reported.id == mass_cancel.command
        {
            mass_cancel.report.affected += 1;
        }
    }

    /// Refuses a request that was not sent to any shard.
    pub(super) fn decline_mass_cancel(&mut self, layer: &mut SessionLayer, now: Timestamp, reason: Reason) {
        if let Some(mass_cancel) = &self.mass_cancel {
            let report = MassCancelReport { refusal: Some(reason.into()), ..mass_cancel.report };
            self.finish_mass_cancel(layer, now, &report);
        }
    }

    fn finish_mass_cancel(&mut self, layer: &mut SessionLayer, now: Timestamp, report: &MassCancelReport) {
        self.mass_cancel = None;
        layer.sequence.in_flight.complete(&report.cl_ord_id);
        let version = layer.settings.version;
        _ = layer.send_app(now, msg_type::ORDER_MASS_CANCEL_REPORT, |draft| {
            report::mass_cancel(draft, version, &self.reference, now, report);
        });
    }

    fn refuse_mass_cancel(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        message: &FixMessage,
        report: MassCancelReport,
        why: OrderRejectReason,
    ) {
        let report = MassCancelReport { refusal: Some(why), ..report };
        let version = layer.settings.version;
        _ = layer.send_app(now, msg_type::ORDER_MASS_CANCEL_REPORT, |draft| {
            route(draft, message);
            report::mass_cancel(draft, version, &self.reference, now, &report);
        });
    }
}
