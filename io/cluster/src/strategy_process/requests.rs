//! A strategy's unanswered requests to the server: each is sent again until there is an answer.
//!
//! Orders and requests about them are sent concurrently, each under its id. The others (phases,
//! subscriptions, followed securities) are sent one after the other, because their order matters.

use std::collections::{BTreeMap, VecDeque};

use pitlane_engine::command::{Command, CommandKind};
use pitlane_engine::event::{Event, EventKind, ExecType, OrderTerms, RequestKind, RequestRefusal};
use pitlane_engine::id::{IntId, OrderHandle, ShardId};
use pitlane_engine::reason::Reason;
use pitlane_engine::shard::{CommandRoute, route};
use pitlane_engine::terms::Status;
use pitlane_engine::time::{NS_PER_MS, Timestamp};
use pitlane_protocols::remote::strategy::RemoteRequest;

/// Time after which a busy server is asked again.
const BUSY_NS: u64 = 5 * NS_PER_MS;

/// Maximum number of sent messages whose answers are awaited: several for each request. Beyond it,
/// messages of requests that were answered otherwise are forgotten first, then the oldest; the
/// request is sent again, and the answer to that counts.
const NUMBERS_MAX: usize = 16_384;

/// The outcome of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    Done,
    Declined(Reason),
    Busy,
}

#[derive(Debug, Default)]
pub struct PendingRequests {
    /// Requests about orders, by their ids.
    orders: BTreeMap<IntId, PendingRequest>,
    /// Other requests; the first of them is under way.
    rest: VecDeque<RemoteRequest>,
    rest_sent: Option<(u64, Timestamp)>,
    /// Request that the answer to each message belongs to, by message number.
    numbers: BTreeMap<u64, IntId>,
    /// Id of each order, for refusals in place of a shard.
    ids: BTreeMap<OrderHandle, IntId>,
}

#[derive(Debug)]
struct PendingRequest {
    request: RemoteRequest,
    command: Command,
    /// Time at which it is to be sent, again or for the first time.
    due: Timestamp,
}

impl PendingRequests {
    /// Adds an order, or a request about one. The bound is that of the strategy's orders.
    pub fn order(&mut self, incarnation: u64, command: Command) {
        let Some(id) = id_of(&command) else { return };
        let request = RemoteRequest::Command { incarnation, command };
        self.orders.insert(id, PendingRequest { request, command, due: Timestamp::ZERO });
    }

    /// Adds any other request.
    pub fn ask(&mut self, request: RemoteRequest) {
        self.rest.push_back(request);
    }

    pub fn is_empty(&self) -> bool {
        self.orders.is_empty() && self.rest.is_empty()
    }

    /// Removes a request that an event has answered.
    pub fn mark_answered(&mut self, id: &IntId) {
        self.orders.remove(id);
    }

    /// Makes all unanswered requests due.
    pub fn send_again(&mut self) {
        self.orders.values_mut().for_each(|sent| sent.due = Timestamp::ZERO);
        self.numbers.clear();
        self.rest_sent = None;
    }

    pub fn deadline(&self) -> Timestamp {
        let orders = self.orders.values().map(|sent| sent.due).min().unwrap_or(Timestamp::MAX);
        let rest = match self.rest_sent {
            Some((_, due)) => due,
            None if self.rest.is_empty() => Timestamp::MAX,
            None => Timestamp::ZERO,
        };
        orders.min(rest)
    }

    /// Sends what is due; it is due again at `again`.
    pub fn poll(
        &mut self,
        now: Timestamp,
        again: Timestamp,
        mut number: impl FnMut() -> u64,
        out: &mut VecDeque<(u64, RemoteRequest)>,
    ) {
        for (id, sent) in self.orders.iter_mut().filter(|(_, sent)| sent.due <= now) {
            let number = number();
            sent.due = again;
            self.numbers.insert(number, *id);
            out.push_back((number, sent.request.clone()));
        }
        if self.numbers.len() > NUMBERS_MAX {
            let orders = &self.orders;
            self.numbers.retain(|_, id| orders.contains_key(id));
        }
        while self.numbers.len() > NUMBERS_MAX {
            self.numbers.pop_first();
        }
        let is_due = self.rest_sent.is_none_or(|(_, due)| due <= now);
        if let Some(request) = self.rest.front().filter(|_| is_due) {
            let number = number();
            self.rest_sent = Some((number, again));
            out.push_back((number, request.clone()));
        }
    }

    /// Handles the answer to the message of this number; returns the request about an order that
    /// was declined, with the reason.
    pub fn handle_answer(
        &mut self,
        now: Timestamp,
        number: u64,
        answer: RequestOutcome,
    ) -> Option<(Command, Reason)> {
        if let Some((_, due)) = self.rest_sent.as_mut().filter(|(sent, _)| *sent == number) {
            match answer {
                RequestOutcome::Busy => *due = now.plus(BUSY_NS),
                RequestOutcome::Done | RequestOutcome::Declined(_) => {
                    self.rest_sent = None;
                    self.rest.pop_front();
                }
            }
            return None;
        }
        let id = self.numbers.remove(&number)?;
        match answer {
            RequestOutcome::Busy => {
                self.orders.get_mut(&id)?.due = now.plus(BUSY_NS);
                None
            }
            RequestOutcome::Done => {
                self.orders.remove(&id);
                None
            }
            RequestOutcome::Declined(reason) => self.orders.remove(&id).map(|sent| (sent.command, reason)),
        }
    }

    /// Records the id of an order.
    pub fn note(&mut self, event: &Event) {
        if let EventKind::Order(report) = &event.body {
            self.ids.insert(report.order, report.id);
        } else if let EventKind::Forgotten { order, .. } = &event.body {
            self.ids.remove(order);
        } else if let EventKind::Status(report) = &event.body {
            if report.status.is_finished() {
                self.ids.remove(&report.order);
            } else if matches!(report.what, ExecType::Replaced | ExecType::Snapshot) {
                self.ids.insert(report.order, report.id);
            }
        }
    }

    /// Returns the event that a shard would emit for a request that it did not accept.
    pub fn refusal(&self, command: &Command, reason: Reason, shards: u8) -> Option<(ShardId, EventKind)> {
        let CommandRoute::One(shard) = route(&command.body, shards) else { return None };
        let source = command.source;
        let refused = |order, request_id, request| {
            let id = self.ids.get(&order).copied().unwrap_or_default();
            EventKind::Refused(RequestRefusal {
                order,
                id,
                request_id,
                source,
                request,
                status: Status::New,
                reason,
            })
        };
        let body = if let CommandKind::Submit { id, terms } = command.body {
            EventKind::Order(OrderTerms {
                order: OrderHandle::NONE,
                id,
                orig_id: IntId::NONE,
                source,
                what: ExecType::Rejected,
                status: Status::Rejected,
                reason,
                sender: command.sender,
                terms,
            })
        } else {
            let (order, id) = command.body.request()?;
            let is_cancel = matches!(command.body, CommandKind::Cancel { .. });
            refused(order, id, if is_cancel { RequestKind::Cancel } else { RequestKind::Replace })
        };
        Some((shard, body))
    }
}

fn id_of(command: &Command) -> Option<IntId> {
    if let CommandKind::Submit { id, .. } = command.body {
        return Some(id);
    }
    command.body.request().map(|(_, id)| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a strategy's requests, with `count` of them under way.
    fn requests(count: u64) -> PendingRequests {
        let mut requests = PendingRequests::default();
        for n in 0..count {
            let body = CommandKind::Cancel { order: OrderHandle::NONE, id: IntId::numbered(b'c', n) };
            requests.order(1, Command::new(Default::default(), 0, body));
        }
        requests
    }

    #[test]
    fn the_number_of_awaited_answers_is_bounded_however_often_requests_are_repeated() {
        const COUNT: u64 = 1_000;
        let (mut requests, mut out, mut last) = (requests(COUNT), VecDeque::new(), 0);
        let polls = NUMBERS_MAX as u64 / COUNT + 1;
        for poll_number in 1..=2 * polls {
            let (now, again) = (Timestamp(poll_number), Timestamp(poll_number + 1));
            requests.poll(
                now,
                again,
                || {
                    last += 1;
                    last
                },
                &mut out,
            );
            assert_eq!(last, poll_number * COUNT, "each is sent again");
            assert_eq!(requests.numbers.len() as u64, last.min(NUMBERS_MAX as u64));
        }
        let first_kept = last - NUMBERS_MAX as u64 + 1;
        let declined = RequestOutcome::Declined(Reason::OwnerAway);
        assert!(requests.handle_answer(Timestamp(9), first_kept - 1, declined).is_none(), "forgotten");
        assert!(requests.handle_answer(Timestamp(9), first_kept, declined).is_some());
        assert!(requests.handle_answer(Timestamp(9), last, declined).is_some());
        assert_eq!(requests.orders.len() as u64, COUNT - 2, "the others are under way still");
    }

    #[test]
    fn messages_of_answered_requests_are_forgotten_before_awaited_ones() {
        let (mut requests, mut out, mut last) = (requests(2), VecDeque::new(), 0);
        let mut poll = |requests: &mut PendingRequests, poll_number: u64| {
            requests.poll(
                Timestamp(poll_number),
                Timestamp(poll_number + 1),
                || {
                    last += 1;
                    last
                },
                &mut out,
            )
        };
        poll(&mut requests, 1);
        requests.mark_answered(&IntId::numbered(b'c', 0));
        (2..=NUMBERS_MAX as u64).for_each(|poll_number| poll(&mut requests, poll_number));
        assert_eq!(
            requests.numbers.len(),
            NUMBERS_MAX,
            "message 1 belongs to a request that was answered, and is forgotten"
        );
        let declined = RequestOutcome::Declined(Reason::OwnerAway);
        assert!(requests.handle_answer(Timestamp(9), 1, declined).is_none());
        assert!(requests.handle_answer(Timestamp(9), 2, declined).is_some());
    }
}
