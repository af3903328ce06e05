//! Requests of a strategy by id, in progress or answered, so that a repeated request has no second
//! effect.

use std::collections::{BTreeMap, VecDeque};

use async_nats::Subject;
use pitlane_engine::command::CommandKind;
use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::id::{IntId, OrderHandle};
use pitlane_engine::strategy::remote_protocol;
use pitlane_engine::terms::Terms;

/// Maximum number of ids remembered after their answer, by strategy. A strategy retries within
/// seconds; older orders are in the view.
const ANSWERED_MAX: usize = 65_536;

/// Maximum number of requests in progress, by strategy: as many as its process awaits. Requests
/// beyond it must be retried.
const UNDER_WAY_MAX: usize = 16_384;

/// A request, as far as needed to distinguish it from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    Submit(Terms),
    /// A cancel or a modification.
    About(OrderHandle),
}

impl Request {
    /// Returns the request and its id; `None` if it is about no order.
    pub fn of(body: &CommandKind) -> Option<(IntId, Request)> {
        match *body {
            CommandKind::Submit { id, terms } => Some((id, Request::Submit(core_of(&terms)))),
            CommandKind::Modify { order, id, .. } | CommandKind::Cancel { order, id } => {
                Some((id, Request::About(order)))
            }
            _ => None,
        }
    }

    /// Returns the request that an event answers.
    fn answered(event: &Event) -> Option<(IntId, Request)> {
        let id = remote_protocol::answers(event)?;
        match &event.body {
            EventKind::Order(told) => Some((id, Request::Submit(core_of(&told.terms)))),
            EventKind::Status(report) => Some((id, Request::About(report.order))),
            EventKind::Refused(refusal) => Some((id, Request::About(refusal.order))),
            _ => None,
        }
    }
}

/// Returns the terms that identify an order, without those that a shard fills in.
fn core_of(terms: &Terms) -> Terms {
    let Terms { security, side, kind, qty, limit, stop, .. } = *terms;
    Terms { security, side, kind, qty, limit, stop, ..Terms::default() }
}

/// What is to be done with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    New,
    /// It is in progress: the latest sender is answered.
    UnderWay,
    /// Its result was sent.
    Answered,
    /// The id belongs to another request.
    Another,
}

#[derive(Debug, Default)]
pub struct RequestLog {
    under_way: BTreeMap<IntId, (Request, Option<Subject>)>,
    answered: BTreeMap<IntId, Request>,
    /// The answered ids, oldest first.
    order: VecDeque<IntId>,
}

impl RequestLog {
    /// Decides about a request, and updates the reply subject of one that is in progress.
    pub fn judge(&mut self, id: &IntId, request: Request, reply: Option<&Subject>) -> Verdict {
        if let Some((known, asker)) = self.under_way.get_mut(id) {
            if *known != request {
                return Verdict::Another;
            }
            *asker = reply.cloned();
            return Verdict::UnderWay;
        }
        match self.answered.get(id) {
            Some(known) if *known == request => Verdict::Answered,
            Some(_) => Verdict::Another,
            None => Verdict::New,
        }
    }

    pub fn sent(&mut self, id: IntId, request: Request, reply: Option<Subject>) {
        self.under_way.insert(id, (request, reply));
    }

    /// Returns whether there is no room for another request.
    pub fn is_full(&self) -> bool {
        self.under_way.len() >= UNDER_WAY_MAX
    }

    pub fn is_idle(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Handles an event of the strategy; returns the reply subject of the request that it answers.
    pub fn hear(&mut self, event: &Event) -> Option<Subject> {
        let (id, request) = Request::answered(event)?;
        let waiting = self.under_way.remove(&id);
        if self.answered.insert(id, request).is_none() {
            self.order.push_back(id);
        }
        if self.order.len() > ANSWERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.answered.remove(&oldest);
        }
        waiting.and_then(|(_, reply)| reply)
    }

    /// Removes a request that failed without being stored: it may be sent again.
    pub fn forget(&mut self, id: &IntId) -> Option<Subject> {
        self.under_way.remove(id).and_then(|(_, reply)| reply)
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::event::{ExecType, OrderTerms};
    use pitlane_engine::id::Source;
    use pitlane_engine::number::Qty;
    use pitlane_engine::reason::Reason;
    use pitlane_engine::terms::Status;
    use pitlane_engine::time::Timestamp;

    use super::*;

    fn entered(id: IntId, terms: Terms) -> Event {
        let order = OrderTerms {
            order: OrderHandle::NONE,
            id,
            orig_id: IntId::NONE,
            source: Source::default(),
            what: ExecType::Entered,
            status: Status::PendingNew,
            reason: Reason::None,
            sender: Default::default(),
            terms,
        };
        Event { seq: 1, at: Timestamp(1), body: EventKind::Order(order) }
    }

    #[test]
    fn requests_in_progress_and_remembered_answers_are_bounded() {
        let (mut asked, terms) = (RequestLog::default(), Terms::default());
        let id = |number: usize| IntId::numbered(b's', number as u64);
        let request = Request::Submit(core_of(&terms));
        for number in 0..UNDER_WAY_MAX {
            assert!(!asked.is_full());
            asked.sent(id(number), request, None);
        }
        assert!(asked.is_full());
        asked.hear(&entered(id(0), terms));
        assert!(!asked.is_full(), "what was answered makes room");
        for number in 1..=ANSWERED_MAX {
            asked.hear(&entered(id(number), terms));
        }
        assert_eq!((asked.answered.len(), asked.order.len()), (ANSWERED_MAX, ANSWERED_MAX));
        assert_eq!(asked.judge(&id(0), request, None), Verdict::New, "the oldest was forgotten");
        assert_eq!(asked.judge(&id(1), request, None), Verdict::Answered);
    }

    #[test]
    fn a_repeated_request_is_recognised() {
        let mut asked = RequestLog::default();
        let (id, terms) = (IntId::numbered(b's', 1), Terms { qty: Qty::from_raw(5), ..Terms::default() });
        let request = Request::Submit(core_of(&terms));
        let (first, second) = (Subject::from("first"), Subject::from("second"));
        assert_eq!(asked.judge(&id, request, Some(&first)), Verdict::New);
        asked.sent(id, request, Some(first));
        assert_eq!(asked.judge(&id, request, Some(&second)), Verdict::UnderWay);
        assert_eq!(asked.judge(&id, Request::Submit(Terms::default()), None), Verdict::Another);
        assert_eq!(asked.hear(&entered(id, terms)), Some(second));
        assert!(asked.is_idle());
        assert_eq!(asked.judge(&id, request, None), Verdict::Answered);
        assert_eq!(asked.judge(&id, Request::About(OrderHandle::NONE), None), Verdict::Another);
        // Events that the journal has from before the start count as well.
        let mut later = RequestLog::default();
        assert_eq!(later.hear(&entered(id, terms)), None);
        assert_eq!(later.judge(&id, request, None), Verdict::Answered);
    }
}
