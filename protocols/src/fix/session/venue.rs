//! Orders of a session with a venue: instructions of the shards go out, what the venue says comes back as reports for them.

use std::collections::VecDeque;

use pitlane_engine::command::Report;
use pitlane_engine::event::{Instruction, VenueRequest};
use pitlane_engine::id::{IntId, OrderHandle, ShardId};
use pitlane_engine::reason::Reason;
use pitlane_engine::time::Timestamp;

use super::initiator::{Initiator, VenueReport};
use super::{OUTPUT_BYTES_ENOUGH, Session};
use crate::decoded::Decoded;
use crate::fix::fields::{Message, read};
use crate::fix::frame;
use crate::fix::store::Cause;
use crate::fix::tag;
use crate::fix::venue::ask::{self, Names};
use crate::fix::venue::id::{order_of, venue_id};

/// Orders at one venue whose D is remembered, and requests without an answer. As many as all shards may hold together; further
/// ones are refused.
pub(super) const KNOWN_MAX: usize = 1 << 21;
const ASKED_MAX: usize = 1 << 16;
/// Order Status Requests that wait for room in the output: some 15 MB. An order beyond them stays unknown until the next connection.
const QUERIES_MAX: usize = 1 << 16;

/// Which message of ours the venue refuses.
pub(super) struct RefusedMessage {
    pub order: OrderHandle,
    pub cl_ord_id: IntId,
    pub msg_type: u8,
}

/// What the shards ask.
impl Session {
    /// An instruction of a shard, with the number of its event. What cannot be sent is answered at once.
    pub fn handle_instruction(
        &mut self,
        now: Timestamp,
        shard: ShardId,
        seq: u64,
        instruction: &Instruction,
    ) {
        if self.initiator.is_none() {
            return;
        }
        self.cause = Some(Cause { shard, seq });
        match instruction.ask {
            VenueRequest::New => self.send_order(now, instruction),
            VenueRequest::Cancel | VenueRequest::Replace => self.send_change(now, instruction),
            VenueRequest::Query => self.answer_query(now, instruction),
            VenueRequest::Status => self.ask_status(now, instruction),
        }
        self.cause = None;
    }

    fn send_order(&mut self, now: Timestamp, instruction: &Instruction) {
        let order = instruction.order;
        let room = self.initiator.as_ref().is_some_and(|initiator| initiator.known.len() < KNOWN_MAX);
        if self.is_in_touch() && (self.output.len() >= OUTPUT_BYTES_ENOUGH || !room) {
            return self.decline(order, Report::Rejected(Reason::LaneFull));
        }
        if !self.is_in_touch() {
            return self.decline(order, Report::Rejected(Reason::VenueUnavailable));
        }
        if !self.send(now, b'D', instruction, &instruction.id, None) {
            return self.decline(order, Report::Rejected(Reason::VenueUnavailable));
        }
        if let Some(initiator) = &mut self.initiator {
            initiator.known.insert(order);
            initiator.counts.orders_out += 1;
        }
    }

    /// A cancel or a replacement. Without a connection it is left alone: the shard asks again when there is one.
    fn send_change(&mut self, now: Timestamp, instruction: &Instruction) {
        if !self.is_in_touch() {
            return;
        }
        let Instruction { order, ask, .. } = *instruction;
        let (msg_type, refused) = match ask {
            VenueRequest::Replace => (b'G', Report::ReplaceRefused(Reason::VenueUnavailable)),
            VenueRequest::Cancel | VenueRequest::New | VenueRequest::Query | VenueRequest::Status => {
                (b'F', Report::CancelRefused(Reason::VenueUnavailable))
            }
        };
        let Some(initiator) = &self.initiator else { return };
        // What is left of an order is cancelled for a replacement without an id of its own; each time under another.
        let nameless = instruction.request_id.is_none();
        let request = match nameless {
            true => IntId::numbered(b'=', self.cause.map_or(0, |cause| cause.seq)),
            false => instruction.request_id,
        };
        let id = venue_id(initiator.settings.birth, order, &request);
        let pending = nameless && initiator.is_asked(order, ask);
        if pending || initiator.asked.contains_key(&(order, id)) {
            // It is there already, and its answer comes.
            return;
        }
        if initiator.asked.len() >= ASKED_MAX
            || !self.send(now, msg_type, instruction, &request, Some(&instruction.id))
        {
            return self.decline(order, refused);
        }
        if let Some(initiator) = &mut self.initiator {
            initiator.asked.insert((order, id), ask);
        }
    }

    /// We are in touch again: what is known of the order? What the venue has, it has told of, or will; of the rest only the venue knows.
    fn answer_query(&mut self, now: Timestamp, instruction: &Instruction) {
        let order = instruction.order;
        let Some(initiator) = &mut self.initiator else { return };
        if initiator.known.contains(&order) {
            return self.tell_shard(order, Report::Reconciled);
        }
        // Since it was sent, messages of the venue were lost.
        self.tell_shard(order, Report::Unsure);
        self.ask_status(now, instruction);
    }

    /// Asks the venue how an order stands, where it can be asked; otherwise what it says next of the order will tell.
    fn ask_status(&mut self, now: Timestamp, instruction: &Instruction) {
        let Some(initiator) = &mut self.initiator else { return };
        initiator.known.remove(&instruction.order);
        initiator.unsure.insert(instruction.order);
        if initiator.settings.knows_status_request && initiator.queries.len() < QUERIES_MAX {
            initiator.queries.push_back(*instruction);
        }
        self.go_on_querying(now);
    }

    /// Sends Order Status Requests as far as there is room: as many as there are orders may wait, and a venue reads as fast as it can.
    pub(super) fn go_on_querying(&mut self, now: Timestamp) {
        while self.is_in_touch() && self.output.len() < OUTPUT_BYTES_ENOUGH {
            let query = self.initiator.as_mut().and_then(|initiator| initiator.queries.pop_front());
            let Some(query) = query else { return };
            self.send(now, b'H', &query, &query.id, None);
        }
    }

    /// Orders that never left before the process ended are rejected. To be called before anything is sent.
    pub fn reject_never_sent(&mut self) {
        let Some(initiator) = &mut self.initiator else { return };
        for order in std::mem::take(&mut initiator.never_sent) {
            self.decline(order, Report::Rejected(Reason::VenueUnavailable));
        }
    }

    /// Says a request; it is kept first. Answers whether it is.
    fn send(
        &mut self,
        now: Timestamp,
        msg_type: u8,
        instruction: &Instruction,
        request: &IntId,
        orig: Option<&IntId>,
    ) -> bool {
        let Some(initiator) = &self.initiator else { return false };
        let (birth, order, terms) = (initiator.settings.birth, instruction.order, instruction.terms);
        let account = initiator.settings.account.clone();
        let cl_ord_id = venue_id(birth, order, request);
        let orig = orig.map(|orig| venue_id(birth, order, orig));
        let before = self.numbers.outgoing;
        self.tell(now, msg_type, |draft, _, reference| {
            let names =
                Names { cl_ord_id: &cl_ord_id, orig_cl_ord_id: orig.as_ref(), account: account.as_deref() };
            match msg_type {
                b'F' => ask::cancel(draft, &names, reference, &terms, now),
                b'H' => ask::status(draft, &names, reference, &terms),
                _ => ask::order(draft, &names, reference, &terms, now),
            }
        });
        self.numbers.outgoing > before
    }

    fn decline(&mut self, order: OrderHandle, report: Report) {
        if let Some(initiator) = &mut self.initiator {
            initiator.counts.refused += 1;
        }
        self.tell_shard(order, report);
    }

    /// A report for the shard of the order.
    pub(super) fn tell_shard(&mut self, order: OrderHandle, report: Report) {
        if let Some(initiator) = &mut self.initiator {
            initiator.reports.push_back(VenueReport { order, report, token: 0 });
        }
    }

    /// Which orders and requests are in the store: those the venue has, or will ask for.
    pub(super) fn recall_requests(&mut self) {
        let (mut message, mut next) = (Vec::new(), 1);
        let mut asked = VecDeque::new();
        let Some(mut fields) = self.fields.take() else { return };
        while let Some(number) = self.store.next_kept(next, u64::MAX, &mut message) {
            next = number + 1;
            let Ok(Decoded::Message { message: frame, .. }) = frame::decode(&message, usize::MAX) else {
                continue;
            };
            let told = read(frame, &mut fields);
            let Some(named) = named(&told) else { continue };
            let Some(initiator) = &mut self.initiator else { continue };
            initiator.never_sent.remove(&named.order);
            match named.msg_type {
                b'D' => _ = initiator.known.insert(named.order),
                b'F' => asked.push_back(((named.order, named.cl_ord_id), VenueRequest::Cancel)),
                b'G' => asked.push_back(((named.order, named.cl_ord_id), VenueRequest::Replace)),
                _ => {}
            }
            // Some were answered, which does not show here; those of long ago surely were.
            if asked.len() > ASKED_MAX / 2 {
                asked.pop_front();
            }
        }
        self.fields = Some(fields);
        if let Some(initiator) = &mut self.initiator {
            initiator.asked = asked.into_iter().collect();
        }
    }
}

impl Initiator {
    /// Whether such a request is without an answer.
    pub(super) fn is_asked(&self, order: OrderHandle, ask: VenueRequest) -> bool {
        let of_order = self.asked.range((order, IntId::NONE)..).take_while(|((of, _), _)| *of == order);
        of_order.into_iter().any(|(_, asked)| *asked == ask)
    }

    /// The order is over.
    pub(super) fn forget(&mut self, order: OrderHandle) {
        self.known.remove(&order);
        while let Some((&key, _)) =
            self.asked.range((order, IntId::NONE)..).next().filter(|((of, _), _)| *of == order)
        {
            self.asked.remove(&key);
        }
    }

    /// Gives the last report since `before` a token, if there is one: its message waits for that to be stored.
    pub(super) fn mark(&mut self, before: usize) -> Option<u32> {
        if self.reports.len() == before {
            return None;
        }
        self.token = self.token.wrapping_add(1).max(1);
        let last = self.reports.back_mut()?;
        last.token = self.token;
        Some(self.token)
    }
}

/// The order that a request of ours is about.
pub(super) fn named(message: &Message) -> Option<RefusedMessage> {
    let id = message.get(tag::CL_ORD_ID)?;
    let (order, cl_ord_id) = (order_of(id)?, IntId::parse(id).ok()?);
    Some(RefusedMessage { order, cl_ord_id, msg_type: *message.msg_type.first()? })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use pitlane_engine::id::{AdapterId, Origin, PortId, Source};
    use pitlane_engine::refdata::{RefData, Rows};
    use pitlane_engine::terms::Terms;

    use super::super::initiator::Touch;
    use super::super::{SessionSettings, State};
    use super::*;
    use crate::fix::store::MemoryStore;
    use crate::fix::venue::VenueSettings;

    const NOW: Timestamp = Timestamp(1_800_000_000_000_000_000);

    /// In touch with its venue.
    fn session() -> Session {
        let source = Source { origin: Origin::Server, port: PortId(1), session: 1 };
        let settings = SessionSettings::new("PITLANE", "VENUE", source);
        let (venue, store) = (VenueSettings::new(1), Box::new(MemoryStore::new(NOW)));
        let reference = Arc::new(RefData::check(Rows::default()).unwrap());
        let mut session = Session::initiator(settings, venue, store, reference, BTreeSet::new());
        session.state = State::LoggedOn;
        initiator(&mut session).touch = Touch::Full;
        session
    }

    fn initiator(session: &mut Session) -> &mut Initiator {
        session.initiator.as_mut().expect("it calls a venue")
    }

    fn order(slot: usize) -> OrderHandle {
        OrderHandle::new(ShardId(0), 1, slot as u32)
    }

    /// What is said to the venue, and what the shard is told, because of this.
    fn ask(session: &mut Session, ask: VenueRequest, slot: usize) -> (u64, Option<Report>) {
        let (id, request_id) = (IntId::numbered(b'o', slot as u64), IntId::numbered(b'r', slot as u64));
        let terms = Terms::default();
        let instruction =
            Instruction { adapter: AdapterId(1), order: order(slot), ask, id, request_id, terms };
        let before = session.numbers.outgoing;
        session.handle_instruction(NOW, ShardId(0), slot as u64, &instruction);
        let count = session.poll_transmit().len();
        session.handle_transmitted(NOW, count);
        let report = initiator(session).reports.pop_front().map(|told| told.report);
        (session.numbers.outgoing - before, report)
    }

    #[test]
    fn a_venue_has_so_many_orders_and_the_next_is_refused() {
        let mut session = session();
        initiator(&mut session).known.extend((1..KNOWN_MAX).map(order));
        assert_eq!(ask(&mut session, VenueRequest::New, 0), (1, None));
        let refused = Some(Report::Rejected(Reason::LaneFull));
        assert_eq!(ask(&mut session, VenueRequest::New, KNOWN_MAX), (0, refused));
        assert_eq!(initiator(&mut session).known.len(), KNOWN_MAX);
        // Those who are there go on, and one that is over makes room.
        assert_eq!(ask(&mut session, VenueRequest::Cancel, 0), (1, None));
        initiator(&mut session).forget(order(0));
        assert_eq!(ask(&mut session, VenueRequest::New, KNOWN_MAX), (1, None));
    }

    #[test]
    fn so_many_requests_have_no_answer_and_the_next_is_refused() {
        let mut session = session();
        for slot in 0..ASKED_MAX {
            assert_eq!(ask(&mut session, VenueRequest::Cancel, slot), (1, None));
        }
        let refused = |ask| match ask {
            VenueRequest::Replace => Some(Report::ReplaceRefused(Reason::VenueUnavailable)),
            _ => Some(Report::CancelRefused(Reason::VenueUnavailable)),
        };
        for kind in [VenueRequest::Cancel, VenueRequest::Replace] {
            assert_eq!(ask(&mut session, kind, ASKED_MAX), (0, refused(kind)));
        }
        assert_eq!(initiator(&mut session).asked.len(), ASKED_MAX);
        assert_eq!(
            ask(&mut session, VenueRequest::Cancel, 0),
            (0, None),
            "what was asked is there, and its answer comes"
        );
        initiator(&mut session).forget(order(0));
        assert_eq!(ask(&mut session, VenueRequest::Cancel, ASKED_MAX), (1, None));
    }

    #[test]
    fn so_many_status_requests_wait_and_an_order_beyond_them_stays_unknown() {
        let mut session = session();
        initiator(&mut session).settings.knows_status_request = true;
        // A venue that does not read.
        session.output.bytes.resize(OUTPUT_BYTES_ENOUGH, b' ');
        for slot in 0..=QUERIES_MAX {
            let (id, request_id, terms) = (IntId::numbered(b'o', slot as u64), IntId::NONE, Terms::default());
            let (adapter, ask) = (AdapterId(1), VenueRequest::Status);
            let query = Instruction { adapter, order: order(slot), ask, id, request_id, terms };
            session.handle_instruction(NOW, ShardId(0), slot as u64, &query);
        }
        assert_eq!(initiator(&mut session).queries.len(), QUERIES_MAX);
        assert_eq!(initiator(&mut session).unsure.len(), QUERIES_MAX + 1);
        // It reads, and hears them as far as there is room again.
        let before = session.numbers.outgoing;
        session.handle_transmitted(NOW, OUTPUT_BYTES_ENOUGH);
        session.go_on_querying(NOW);
        assert!(session.numbers.outgoing > before);
        assert!(initiator(&mut session).queries.len() > QUERIES_MAX / 2, "not all at once");
    }
}
