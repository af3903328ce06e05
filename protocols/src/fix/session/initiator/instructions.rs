//! Sends instructions of the shards to a venue.

use pitlane_engine::command::VenueReport;
use pitlane_engine::event::{Instruction, VenueRequest};
use pitlane_engine::id::{IntId, OrderHandle, ShardId};
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::SpecialTerms;
use pitlane_engine::time::Timestamp;

use super::Initiator;
use super::pending_changes::{PENDING_CHANGES_MAX, StoredChanges};
use crate::fix::fields::FixMessage;
use crate::fix::msg_type;
use crate::fix::session::layer::{SessionLayer, msg_seq_num_of};
use crate::fix::store::ReportedEvent;
use crate::fix::tag;
use crate::fix::venue::id::{order_of, venue_id};
use crate::fix::venue::request::{self, RequestIds};
use crate::venue::InboundReport;

/// Orders at one venue whose New Order Single is remembered. The bound is what all shards may hold
/// together; further ones are refused.
pub(super) const KNOWN_ORDERS_MAX: usize = 1 << 21;
/// Order Status Requests that wait for room in the output, about 15 MB. An order beyond them stays
/// unknown until the next connection.
const STATUS_REQUESTS_MAX: usize = 1 << 16;

/// Request of ours that the venue rejects.
pub(super) struct RejectedRequest {
    pub order: OrderHandle,
    pub cl_ord_id: IntId,
    pub msg_type: u8,
}

impl Initiator {
    /// Handles an instruction of a shard; `seq` is the number of its event. An instruction that
    /// cannot be sent is answered at once.
    pub(in crate::fix::session) fn handle_instruction(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        (shard, seq): (ShardId, u64),
        instruction: &Instruction,
        special: Option<&SpecialTerms>,
    ) {
        layer.sequence.set_cause(Some(ReportedEvent { shard, seq }));
        match instruction.request {
            VenueRequest::New => self.send_order(layer, now, instruction, special),
            VenueRequest::Cancel | VenueRequest::Replace => {
                self.send_change(layer, now, seq, instruction, special)
            }
            VenueRequest::Query => self.handle_query(layer, now, instruction),
            VenueRequest::Status => self.request_status(layer, now, instruction),
        }
        layer.sequence.set_cause(None);
    }

    fn send_order(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        instruction: &Instruction,
        special: Option<&SpecialTerms>,
    ) {
        let order = instruction.order;
        if let Err(reason) = self.check_special(special) {
            return self.reject_instruction(order, VenueReport::Rejected(reason));
        }
        let has_room = self.known_orders.len() < KNOWN_ORDERS_MAX;
        if self.is_synchronized(layer) && (!layer.stream.has_room() || !has_room) {
            return self.reject_instruction(order, VenueReport::Rejected(Reason::LaneFull));
        }
        if !self.is_synchronized(layer) {
            return self.reject_instruction(order, VenueReport::Rejected(Reason::VenueUnavailable));
        }
        let ids = (&instruction.id, None);
        if !self.send(layer, now, msg_type::NEW_ORDER_SINGLE, instruction, ids, special) {
            return self.reject_instruction(order, VenueReport::Rejected(Reason::VenueUnavailable));
        }
        self.known_orders.insert(order);
        self.round_trip.handle_order(now, order);
        self.counts.orders_out += 1;
    }

    /// Sends a cancel or a replacement. Without a connection it does nothing: the shard asks again
    /// after the next synchronization.
    fn send_change(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        seq: u64,
        instruction: &Instruction,
        special: Option<&SpecialTerms>,
    ) {
        if !self.is_synchronized(layer) {
            return;
        }
        if let Err(reason) = self.check_special(special) {
            return self.reject_instruction(instruction.order, VenueReport::ReplaceRefused(reason));
        }
        let Instruction { order, request, .. } = *instruction;
        let (msg_type, refused) = match request {
            VenueRequest::Replace => (
                msg_type::ORDER_CANCEL_REPLACE_REQUEST,
                VenueReport::ReplaceRefused(Reason::VenueUnavailable),
            ),
            VenueRequest::Cancel | VenueRequest::New | VenueRequest::Query | VenueRequest::Status => {
                (msg_type::ORDER_CANCEL_REQUEST, VenueReport::CancelRefused(Reason::VenueUnavailable))
            }
        };
        // The rest of an order is cancelled for a replacement that has no id of its own, each time
        // under another id.
        let nameless = instruction.request_id.is_none();
        let request_id = match nameless {
            true => IntId::numbered(b'=', seq),
            false => instruction.request_id,
        };
        let id = venue_id(self.settings.folder_id, order, &request_id);
        let pending = nameless && self.pending_changes.has_coming(order, request);
        if pending || self.pending_changes.ask_again(order, id) {
            // The venue has the request already, and its answer will come.
            return;
        }
        if self.pending_changes.len() >= PENDING_CHANGES_MAX
            || !self.send(layer, now, msg_type, instruction, (&request_id, Some(&instruction.id)), special)
        {
            return self.reject_instruction(order, refused);
        }
        self.pending_changes.insert(order, id, request);
    }

    /// Answers a shard that asks, after a synchronization, what is known of an order. The venue has
    /// reported or will report every known order; only the venue knows the others.
    fn handle_query(&mut self, layer: &mut SessionLayer, now: Timestamp, instruction: &Instruction) {
        let order = instruction.order;
        if self.known_orders.contains(&order) {
            return self.queue_report(order, VenueReport::Reconciled);
        }
        // Messages of the venue were lost since the order was sent.
        self.queue_report(order, VenueReport::Unsure);
        self.request_status(layer, now, instruction);
    }

    /// Requests the order's status from the venue if the venue supports it. Otherwise the venue's
    /// next message about the order settles it.
    fn request_status(&mut self, layer: &mut SessionLayer, now: Timestamp, instruction: &Instruction) {
        self.known_orders.remove(&instruction.order);
        self.unreconciled.insert(instruction.order);
        if self.settings.supports_status_request && self.status_requests.len() < STATUS_REQUESTS_MAX {
            self.status_requests.push_back(*instruction);
        }
        self.send_status_requests(layer, now);
    }

    /// Sends Order Status Requests while there is room. As many may wait as there are orders, and a
    /// venue reads as fast as it can.
    pub(super) fn send_status_requests(&mut self, layer: &mut SessionLayer, now: Timestamp) {
        while self.is_synchronized(layer) && layer.stream.has_room() {
            let Some(query) = self.status_requests.pop_front() else { return };
            self.send(layer, now, msg_type::ORDER_STATUS_REQUEST, &query, (&query.id, None), None);
        }
    }

    /// Rejects orders that never left before the process ended. The caller calls this before
    /// anything is sent.
    pub(in crate::fix::session) fn reject_never_sent(&mut self) {
        for order in std::mem::take(&mut self.never_sent) {
            self.reject_instruction(order, VenueReport::Rejected(Reason::VenueUnavailable));
        }
    }

    /// Sends a request, which is stored first. Returns whether it is stored.
    fn send(
        &self,
        layer: &mut SessionLayer,
        now: Timestamp,
        msg_type: u8,
        instruction: &Instruction,
        (request_id, orig): (&IntId, Option<&IntId>),
        special: Option<&SpecialTerms>,
    ) -> bool {
        let (folder_id, order, terms) = (self.settings.folder_id, instruction.order, instruction.terms);
        let cl_ord_id = venue_id(folder_id, order, request_id);
        let orig = orig.map(|orig| venue_id(folder_id, order, orig));
        layer.send_app(now, msg_type, |draft| {
            let reference = &self.reference;
            let names = RequestIds {
                cl_ord_id: &cl_ord_id,
                orig_cl_ord_id: orig.as_ref(),
                account: self.settings.account.as_deref(),
                profile: &self.settings.profile,
            };
            match msg_type {
                msg_type::ORDER_CANCEL_REQUEST => request::cancel(draft, &names, reference, &terms, now),
                msg_type::ORDER_STATUS_REQUEST => request::status(draft, &names, reference, &terms),
                _ => request::order(draft, &names, reference, (&terms, special), now),
            }
        })
    }

    /// Checks that the venue takes the special terms of an order or a replacement.
    fn check_special(&self, special: Option<&SpecialTerms>) -> Result<(), Reason> {
        special.map_or(Ok(()), |special| self.settings.profile.check_special(special))
    }

    fn reject_instruction(&mut self, order: OrderHandle, report: VenueReport) {
        self.counts.refused += 1;
        self.queue_report(order, report);
    }

    /// Queues a report for the shard of the order.
    pub(super) fn queue_report(&mut self, order: OrderHandle, report: VenueReport) {
        self.reports.push_back(InboundReport { order, report, token: 0 });
    }

    /// Loads the orders and requests in the store: those that the venue has or will ask for. An
    /// order is not known if messages about it were lost.
    pub(super) fn load_requests(&mut self, layer: &SessionLayer) {
        let mut stored_changes = StoredChanges::default();
        layer.sequence.for_each_message(|stored| {
            let Some(RejectedRequest { order, cl_ord_id, msg_type }) = named(stored) else { return };
            let is_lost = msg_seq_num_of(stored).is_some_and(|number| layer.sequence.may_lack_answer(number));
            self.never_sent.remove(&order);
            match msg_type {
                msg_type::NEW_ORDER_SINGLE if !is_lost => _ = self.known_orders.insert(order),
                msg_type::ORDER_CANCEL_REQUEST => {
                    stored_changes.push(order, cl_ord_id, VenueRequest::Cancel, is_lost)
                }
                msg_type::ORDER_CANCEL_REPLACE_REQUEST => {
                    stored_changes.push(order, cl_ord_id, VenueRequest::Replace, is_lost)
                }
                _ => {}
            }
        });
        self.pending_changes = stored_changes.into_pending();
    }

    /// Forgets a finished order.
    pub(super) fn forget(&mut self, order: OrderHandle) {
        self.known_orders.remove(&order);
        self.pending_changes.forget(order);
    }

    /// Gives the last report since `before` a token, if there is one: the message waits until that
    /// report is stored.
    pub(super) fn assign_token(&mut self, before: usize) -> Option<u32> {
        if self.reports.len() == before {
            return None;
        }
        self.token = self.token.wrapping_add(1).max(1);
        let last = self.reports.back_mut()?;
        last.token = self.token;
        Some(self.token)
    }
}

/// Returns the order that a request of ours is about.
pub(super) fn named(message: &FixMessage) -> Option<RejectedRequest> {
    let id = message.get(tag::CL_ORD_ID)?;
    let (order, cl_ord_id) = (order_of(id)?, IntId::parse(id).ok()?);
    Some(RejectedRequest { order, cl_ord_id, msg_type: *message.msg_type.first()? })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use pitlane_engine::id::{AdapterId, Origin, PortId, Source};
    use pitlane_engine::refdata::{RefData, RefDataRows};
    use pitlane_engine::terms::Terms;

    use super::super::SyncState;
    use super::*;
    use crate::fix::fields::tests::check;
    use crate::fix::session::settings::FixSessionSettings;
    use crate::fix::session::stream::OUTPUT_BYTES_HIGH;
    use crate::fix::store::MemoryStore;
    use crate::fix::venue::InitiatorSettings;

    const NOW: Timestamp = Timestamp(1_800_000_000_000_000_000);

    /// Returns a session that is synchronized with its venue.
    fn session() -> (SessionLayer, Initiator) {
        let source = Source { origin: Origin::Server, port: PortId(1), session: 1 };
        let settings = FixSessionSettings::new("PITLANE", "VENUE", source);
        let mut layer = SessionLayer::new(settings, Box::new(MemoryStore::new(NOW)));
        let reference = Arc::new(RefData::check(RefDataRows::default()).unwrap());
        let mut initiator = Initiator::new(&layer, InitiatorSettings::new(1), reference, BTreeSet::new());
        assert!(layer.connect(NOW));
        layer.accept_logon(NOW, 30);
        initiator.sync = SyncState::Synchronized;
        (layer, initiator)
    }

    fn order(slot: usize) -> OrderHandle {
        OrderHandle::new(ShardId(0), 1, slot as u32)
    }

    /// Returns how many messages were sent to the venue, and the report to the shard, because of an
    /// instruction.
    fn instruct(
        (layer, initiator): &mut (SessionLayer, Initiator),
        request: VenueRequest,
        slot: usize,
    ) -> (u64, Option<VenueReport>) {
        let (id, request_id) = (IntId::numbered(b'o', slot as u64), IntId::numbered(b'r', slot as u64));
        let terms = Terms::default();
        let instruction =
            Instruction { adapter: AdapterId(1), order: order(slot), request, id, request_id, terms };
        let before = layer.sequence.next_sender();
        initiator.handle_instruction(layer, NOW, (ShardId(0), slot as u64), &instruction, None);
        layer.handle_transmitted(NOW, layer.stream.unsent_bytes());
        let report = initiator.reports.pop_front().map(|stored| stored.report);
        (layer.sequence.next_sender() - before, report)
    }

    #[test]
    fn an_order_above_the_known_orders_of_a_venue_is_refused() {
        let mut session = session();
        session.1.known_orders.extend((1..KNOWN_ORDERS_MAX).map(order));
        assert_eq!(instruct(&mut session, VenueRequest::New, 0), (1, None));
        let refused = Some(VenueReport::Rejected(Reason::LaneFull));
        assert_eq!(instruct(&mut session, VenueRequest::New, KNOWN_ORDERS_MAX), (0, refused));
        assert_eq!(session.1.known_orders.len(), KNOWN_ORDERS_MAX);
        // Known orders continue, and a finished order makes room.
        assert_eq!(instruct(&mut session, VenueRequest::Cancel, 0), (1, None));
        session.1.forget(order(0));
        assert_eq!(instruct(&mut session, VenueRequest::New, KNOWN_ORDERS_MAX), (1, None));
        // What the venue says of other orders makes none of them known.
        let (layer, initiator) = &mut session;
        initiator.unreconciled.insert(order(KNOWN_ORDERS_MAX + 2));
        for (slot, fields) in [
            (KNOWN_ORDERS_MAX + 1, "39=1|150=G|19=a|17=b|32=1|31=1|"),
            (KNOWN_ORDERS_MAX + 2, "39=1|150=0|14=0|"),
        ] {
            let id = venue_id(1, order(slot), &IntId::NONE);
            check(&format!("35=8|11={id}|{fields}"), |message| initiator.dispatch(layer, NOW, message, 1));
            assert_eq!(initiator.known_orders.len(), KNOWN_ORDERS_MAX, "{fields}");
        }
        assert!(initiator.unreconciled.is_empty());
    }

    #[test]
    fn the_newest_requests_of_a_long_store_are_pending_after_a_restart() {
        let mut session = session();
        for slot in 0..=PENDING_CHANGES_MAX / 2 {
            assert_eq!(instruct(&mut session, VenueRequest::Cancel, slot), (1, None));
        }
        let (layer, initiator) = session;
        let restarted =
            Initiator::new(&layer, InitiatorSettings::new(1), initiator.reference, BTreeSet::new());
        assert_eq!(restarted.pending_changes.len(), PENDING_CHANGES_MAX / 2);
        let is_pending = |slot: usize| {
            let id = venue_id(1, order(slot), &IntId::numbered(b'r', slot as u64));
            restarted.pending_changes.get(order(slot), id).is_some()
        };
        assert!(!is_pending(0) && is_pending(1), "all but the oldest");
    }

    #[test]
    fn a_change_above_the_pending_changes_is_refused() {
        let mut session = session();
        for slot in 0..PENDING_CHANGES_MAX {
            assert_eq!(instruct(&mut session, VenueRequest::Cancel, slot), (1, None));
        }
        let refused = |request| match request {
            VenueRequest::Replace => Some(VenueReport::ReplaceRefused(Reason::VenueUnavailable)),
            _ => Some(VenueReport::CancelRefused(Reason::VenueUnavailable)),
        };
        for kind in [VenueRequest::Cancel, VenueRequest::Replace] {
            assert_eq!(instruct(&mut session, kind, PENDING_CHANGES_MAX), (0, refused(kind)));
        }
        assert_eq!(session.1.pending_changes.len(), PENDING_CHANGES_MAX);
        assert_eq!(
            instruct(&mut session, VenueRequest::Cancel, 0),
            (0, None),
            "what was asked is there, and its answer comes"
        );
        session.1.forget(order(0));
        assert_eq!(instruct(&mut session, VenueRequest::Cancel, PENDING_CHANGES_MAX), (1, None));
    }

    #[test]
    fn an_order_above_the_waiting_status_requests_stays_unknown() {
        let (mut layer, mut initiator) = session();
        initiator.settings.supports_status_request = true;
        // The venue does not read.
        layer.stream.append(&vec![b' '; OUTPUT_BYTES_HIGH]);
        for slot in 0..=STATUS_REQUESTS_MAX {
            let (id, request_id, terms) = (IntId::numbered(b'o', slot as u64), IntId::NONE, Terms::default());
            let (adapter, request) = (AdapterId(1), VenueRequest::Status);
            let query = Instruction { adapter, order: order(slot), request, id, request_id, terms };
            initiator.handle_instruction(&mut layer, NOW, (ShardId(0), slot as u64), &query, None);
        }
        assert_eq!(initiator.status_requests.len(), STATUS_REQUESTS_MAX);
        assert_eq!(initiator.unreconciled.len(), STATUS_REQUESTS_MAX + 1);
        // The venue reads, and requests are sent while there is room.
        let before = layer.sequence.next_sender();
        layer.handle_transmitted(NOW, OUTPUT_BYTES_HIGH);
        initiator.send_status_requests(&mut layer, NOW);
        assert!(layer.sequence.next_sender() > before);
        assert!(initiator.status_requests.len() > STATUS_REQUESTS_MAX / 2, "not all at once");
    }
}
