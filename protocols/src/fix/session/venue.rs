//! Orders of a session with a venue: instructions of the shards go out, what the venue says comes back as reports for them.

use std::collections::VecDeque;

use pitlane_engine::command::Report;
use pitlane_engine::event::{Ask, Instruction};
use pitlane_engine::id::{IntId, OrderHandle, ShardId};
use pitlane_engine::reason::Reason;
use pitlane_engine::text::parse_u64;
use pitlane_engine::time::Timestamp;

use super::initiator::{Initiator, VenueReport, flight_id, readable};
use super::{OUTPUT_BYTES_ENOUGH, Session};
use crate::decoded::Decoded;
use crate::fix::fields::{Message, read};
use crate::fix::frame;
use crate::fix::store::Cause;
use crate::fix::tag;
use crate::fix::venue::answer::{Execution, Meaning, Passed, Refused};
use crate::fix::venue::ask::{self, Names};
use crate::fix::venue::id::{order_of, venue_id};

/// Orders at one venue whose D is remembered, and requests without an answer. As many as all shards may hold together; further
/// ones are refused.
const KNOWN_MAX: usize = 1 << 21;
const ASKED_MAX: usize = 1 << 16;

/// Which message of ours the venue refuses.
struct RefusedMessage {
    order: OrderHandle,
    cl_ord_id: IntId,
    msg_type: u8,
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
            Ask::New => self.send_order(now, instruction),
            Ask::Cancel | Ask::Replace => self.send_change(now, instruction),
            Ask::Query => self.answer_query(now, instruction),
        }
        self.cause = None;
    }

    fn send_order(&mut self, now: Timestamp, instruction: &Instruction) {
        let order = instruction.order;
        let room = self.initiator.as_ref().is_some_and(|initiator| initiator.known.len() < KNOWN_MAX);
        if !self.is_in_touch() || self.output.len() >= OUTPUT_BYTES_ENOUGH || !room {
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
            Ask::Replace => (b'G', Report::ReplaceRefused(Reason::VenueUnavailable)),
            Ask::Cancel | Ask::New | Ask::Query => (b'F', Report::CancelRefused(Reason::VenueUnavailable)),
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
        if !initiator.settings.knows_status_request {
            return;
        }
        initiator.queried.insert(order);
        self.send(now, b'H', instruction, &instruction.id, None);
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
    fn tell_shard(&mut self, order: OrderHandle, report: Report) {
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
                b'F' => asked.push_back(((named.order, named.cl_ord_id), Ask::Cancel)),
                b'G' => asked.push_back(((named.order, named.cl_ord_id), Ask::Replace)),
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
        let by = match initiator.is_asked(order, Ask::Cancel) {
            true => Reason::Requested,
            false => Reason::VenueCancelled,
        };
        let asked = initiator.asked.get(&(order, told.cl_ord_id)).copied();
        let settles = !matches!(told.meaning, Meaning::Pending | Meaning::Report(Report::Filled { .. }));
        if told.is_final {
            initiator.forget(order);
        } else if settles {
            initiator.asked.remove(&(order, told.cl_ord_id));
        }
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

    /// A report that says how the order stands: an answer to H, or what some venues say when a request is done.
    fn handle_status(
        &mut self,
        message: &Message,
        order: OrderHandle,
        status: u8,
        asked: Option<Ask>,
        by: Reason,
    ) {
        let queried = self.initiator.as_mut().is_some_and(|initiator| initiator.queried.remove(&order));
        match status {
            b'0' | b'1' | b'2' if asked == Some(Ask::Replace) => self.tell_shard(order, Report::Replaced),
            b'0' | b'1' | b'2' | b'6' | b'E' => self.tell_shard(order, Report::Accepted),
            b'A' => {}
            b'4' => self.tell_shard(order, Report::Canceled(by)),
            b'C' | b'3' => self.tell_shard(order, Report::Expired(Reason::ExpiredDay)),
            b'8' => {
                self.note_words(message);
                // Unknown order: it never arrived.
                let unknown = message.get(tag::ORD_REJ_REASON) == Some(b"5");
                let reason = if unknown { Reason::VenueUnavailable } else { Reason::VenueRejected };
                self.tell_shard(order, Report::Rejected(reason));
            }
            _ => self.pass_over(Passed::Value),
        }
        if queried {
            self.tell_shard(order, Report::Reconciled);
        }
    }

    fn handle_change_refused(&mut self, message: &Message, told: &Refused) {
        let Some(initiator) = &mut self.initiator else { return };
        if initiator.asked.remove(&(told.order, told.cl_ord_id)).is_none() {
            // Of a request that was answered, or that nobody made: told twice, it would refuse another.
            initiator.counts.unknown_orders += 1;
            return;
        }
        self.note_words(message);
        self.tell_shard(told.order, told.report);
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
            b'H' => _ = initiator.queried.remove(&order),
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

impl Initiator {
    /// Whether such a request is without an answer.
    fn is_asked(&self, order: OrderHandle, ask: Ask) -> bool {
        let of_order = self.asked.range((order, IntId::NONE)..).take_while(|((of, _), _)| *of == order);
        of_order.into_iter().any(|(_, asked)| *asked == ask)
    }

    /// The order is over.
    fn forget(&mut self, order: OrderHandle) {
        self.known.remove(&order);
        while let Some((&key, _)) =
            self.asked.range((order, IntId::NONE)..).next().filter(|((of, _), _)| *of == order)
        {
            self.asked.remove(&key);
        }
    }

    /// Gives the last report since `before` a token, if there is one: its message waits for that to be stored.
    fn mark(&mut self, before: usize) -> Option<u32> {
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
fn named(message: &Message) -> Option<RefusedMessage> {
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
    fn ask(session: &mut Session, ask: Ask, slot: usize) -> (u64, Option<Report>) {
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
        assert_eq!(ask(&mut session, Ask::New, 0), (1, None));
        let refused = Some(Report::Rejected(Reason::VenueUnavailable));
        assert_eq!(ask(&mut session, Ask::New, KNOWN_MAX), (0, refused));
        assert_eq!(initiator(&mut session).known.len(), KNOWN_MAX);
        // Those who are there go on, and one that is over makes room.
        assert_eq!(ask(&mut session, Ask::Cancel, 0), (1, None));
        initiator(&mut session).forget(order(0));
        assert_eq!(ask(&mut session, Ask::New, KNOWN_MAX), (1, None));
    }

    #[test]
    fn so_many_requests_have_no_answer_and_the_next_is_refused() {
        let mut session = session();
        for slot in 0..ASKED_MAX {
            assert_eq!(ask(&mut session, Ask::Cancel, slot), (1, None));
        }
        let refused = |ask| match ask {
            Ask::Replace => Some(Report::ReplaceRefused(Reason::VenueUnavailable)),
            _ => Some(Report::CancelRefused(Reason::VenueUnavailable)),
        };
        for kind in [Ask::Cancel, Ask::Replace] {
            assert_eq!(ask(&mut session, kind, ASKED_MAX), (0, refused(kind)));
        }
        assert_eq!(initiator(&mut session).asked.len(), ASKED_MAX);
        assert_eq!(
            ask(&mut session, Ask::Cancel, 0),
            (0, None),
            "what was asked is there, and its answer comes"
        );
        initiator(&mut session).forget(order(0));
        assert_eq!(ask(&mut session, Ask::Cancel, ASKED_MAX), (1, None));
    }
}
