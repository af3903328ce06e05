//! What a venue says of orders, as reports for the shards that own them.

use pitlane_engine::command::{Report, VenueState};
use pitlane_engine::event::VenueRequest;
use pitlane_engine::id::OrderHandle;
use pitlane_engine::number::Qty;
use pitlane_engine::reason::Reason;
use pitlane_engine::text::parse_u64;
use pitlane_engine::time::Timestamp;

use super::Session;
use super::initiator::{flight_id, readable};
use super::venue::{KNOWN_MAX, RefusedMessage, named};
use crate::decoded::Decoded;
use crate::fix::fields::{Message, read};
use crate::fix::frame;
use crate::fix::tag;
use crate::fix::venue::answer::{Execution, Meaning, Passed, Refused};

/// What the venue says.
impl Session {
    /// The message that is next. Its number is used up, and kept when the shards have stored what it says.
    pub(super) fn handle_next_from_venue(&mut self, now: Timestamp, message: &Message, number: u64) {
        self.flight.begin(number);
        self.step_if_next(number);
        let before = self.initiator.as_ref().map_or(0, |initiator| initiator.reports.len());
        match self.fault_of(message) {
            Some(fault) => self.reject(now, message, number, fault),
            None => self.obey_venue(now, message, number),
        }
        let waits = self.initiator.as_mut().and_then(|initiator| initiator.mark(before));
        self.flight.decide(waits.map(flight_id));
    }

    fn obey_venue(&mut self, now: Timestamp, message: &Message, number: u64) {
        match message.msg_type {
            b"0" => self.handle_heartbeat_of_venue(message),
            b"1" => self.handle_test_request(now, message, number),
            b"2" => self.handle_resend_request(now, message, number),
            b"8" => match Execution::read(message) {
                Ok(told) => self.handle_execution(message, &told),
                Err(passed) => self.pass_over(passed),
            },
            b"9" => match Refused::read(message) {
                Ok(told) => self.handle_change_refused(message, &told),
                Err(passed) => self.pass_over(passed),
            },
            b"3" | b"j" => self.handle_message_refused(message),
            b"W" | b"X" => self.handle_prices(now, message),
            // The security has no prices there.
            b"Y" => self.note_words(message),
            _ => self.business_reject(now, message, number, 3, None, "Unsupported message type"),
        }
    }

    fn handle_execution(&mut self, message: &Message, told: &Execution) {
        let order = told.order;
        let Some(initiator) = &mut self.initiator else { return };
        initiator.counts.executions += 1;
        let by = match initiator.is_asked(order, VenueRequest::Cancel) {
            true => Reason::Requested,
            false => Reason::VenueCancelled,
        };
        let asked = initiator.asked.get(&(order, told.cl_ord_id)).copied();
        let is_fill =
            matches!(told.meaning, Meaning::Report(Report::Filled { .. } | Report::FilledTo { .. }));
        if told.is_final {
            initiator.forget(order);
        } else if !is_fill && told.meaning != Meaning::Pending {
            initiator.asked.remove(&(order, told.cl_ord_id));
        }
        // Of an order that was filled and works again, all is known.
        if let Meaning::Report(Report::Amended { is_open: true, .. }) = told.meaning
            && !initiator.unsure.contains(&order)
            && initiator.known.len() < KNOWN_MAX
        {
            initiator.known.insert(order);
        }
        let standing = self.standing(message, told, by);
        if standing.is_some() && !is_fill {
            self.note_words(message);
        } else {
            self.tell_execution(message, told, asked, by);
        }
        standing.into_iter().for_each(|report| self.tell_shard(order, report));
    }

    /// How an order stands of which messages may be lost, if this tells: the answer to our question; or, where the venue cannot be
    /// asked, whatever it says of the order.
    fn standing(&mut self, message: &Message, told: &Execution, by: Reason) -> Option<Report> {
        let initiator = self.initiator.as_mut()?;
        let tells = told.is_status || !initiator.settings.knows_status_request;
        if !tells || !initiator.unsure.contains(&told.order) {
            return None;
        }
        let state = told.state(message, by)?;
        let is_rejected = matches!(state, VenueState::Rejected(_));
        let Some(cum) = told.cum.or(is_rejected.then_some(Qty::ZERO)) else {
            self.pass_over(Passed::Field);
            return None;
        };
        initiator.unsure.remove(&told.order);
        if state == VenueState::Open && initiator.known.len() < KNOWN_MAX {
            initiator.known.insert(told.order);
        }
        Some(Report::Standing { cum, average: told.average, state })
    }

    fn tell_execution(
        &mut self,
        message: &Message,
        told: &Execution,
        asked: Option<VenueRequest>,
        by: Reason,
    ) {
        let order = told.order;
        match told.meaning {
            Meaning::Pending => {}
            Meaning::Report(report) => {
                if let Report::Rejected(_) = report {
                    self.note_words(message);
                }
                self.tell_shard(order, report);
            }
            Meaning::Canceled => self.tell_shard(order, Report::Canceled(by)),
            Meaning::Replaced => self.tell_shard(order, Report::Replaced),
            Meaning::Status(status) => self.handle_status(message, order, status, asked, by),
        }
    }

    /// A report that says how the order stands: what some venues say when a request is done.
    fn handle_status(
        &mut self,
        message: &Message,
        order: OrderHandle,
        status: u8,
        asked: Option<VenueRequest>,
        by: Reason,
    ) {
        if self.initiator.as_ref().is_some_and(|initiator| initiator.unsure.contains(&order)) {
            // Without what is filled it tells too little.
            return;
        }
        match status {
            b'0' | b'1' | b'2' if asked == Some(VenueRequest::Replace) => {
                self.tell_shard(order, Report::Replaced)
            }
            b'0' | b'1' | b'2' | b'6' | b'E' => self.tell_shard(order, Report::Accepted),
            b'A' => {}
            b'4' => self.tell_shard(order, Report::Canceled(by)),
            b'C' | b'3' => self.tell_shard(order, Report::Expired(Reason::ExpiredDay)),
            b'8' => {
                self.note_words(message);
                self.tell_shard(order, Report::Rejected(Reason::VenueRejected));
            }
            _ => self.pass_over(Passed::Value),
        }
    }

    fn handle_change_refused(&mut self, message: &Message, told: &Refused) {
        let Some(initiator) = &mut self.initiator else { return };
        let Some(asked) = initiator.asked.remove(&(told.order, told.cl_ord_id)) else {
            // Of a request that was answered, or that nobody made: told twice, it would refuse another.
            initiator.counts.unknown_orders += 1;
            return;
        };
        if told.response_to.is_some_and(|to| to != asked) {
            initiator.counts.unknown_values += 1;
        }
        self.note_words(message);
        let report = match asked {
            VenueRequest::Replace => Report::ReplaceRefused(told.reason),
            VenueRequest::Cancel | VenueRequest::New | VenueRequest::Query | VenueRequest::Status => {
                Report::CancelRefused(told.reason)
            }
        };
        self.tell_shard(told.order, report);
    }

    /// Reject (3) or Business Message Reject (j) of a message of ours, found by its number.
    fn handle_message_refused(&mut self, message: &Message) {
        if message.get(tag::REF_MSG_TYPE) == Some(b"V") {
            // It gives no market data.
            return self.note_words(message);
        }
        let Some(refused) = self.refused_message(message) else { return self.pass_over(Passed::Order) };
        self.note_words(message);
        let Some(initiator) = &mut self.initiator else { return };
        let RefusedMessage { order, cl_ord_id, msg_type } = refused;
        match msg_type {
            b'D' => {
                initiator.known.remove(&order);
                self.tell_shard(order, Report::Rejected(Reason::VenueRejected));
            }
            b'F' if initiator.asked.remove(&(order, cl_ord_id)).is_some() => {
                self.tell_shard(order, Report::CancelRefused(Reason::VenueRejected));
            }
            b'G' if initiator.asked.remove(&(order, cl_ord_id)).is_some() => {
                self.tell_shard(order, Report::ReplaceRefused(Reason::VenueRejected));
            }
            // It does not know H: the order stays as it is, in doubt.
            _ => {}
        }
    }

    fn refused_message(&mut self, message: &Message) -> Option<RefusedMessage> {
        let number = parse_u64(message.get(tag::REF_SEQ_NUM)?).ok()?;
        let mut kept = Vec::new();
        self.store.next_kept(number, number, &mut kept)?;
        let Ok(Decoded::Message { message: frame, .. }) = frame::decode(&kept, usize::MAX) else {
            return None;
        };
        // The table of the message that is being read is in use.
        let mut fields = Box::default();
        named(&read(frame, &mut fields))
    }

    fn note_words(&mut self, message: &Message) {
        if let (Some(initiator), Some(text)) = (&mut self.initiator, message.get(tag::TEXT)) {
            initiator.words = Some(readable(text));
        }
    }

    fn pass_over(&mut self, passed: Passed) {
        let Some(initiator) = &mut self.initiator else { return };
        match passed {
            Passed::Order => initiator.counts.unknown_orders += 1,
            Passed::Value => initiator.counts.unknown_values += 1,
            Passed::Field => initiator.counts.incomplete += 1,
        }
    }
}
